use std::collections::BTreeMap;

use crate::language::{Line, Tag};

/// What a session remembers from one message to the next.
#[derive(Clone)]
pub(crate) struct State {
    /// Where it is; an oracle's is nowhere.
    pub(crate) home: Option<Home>,
    pub(crate) transaction: Transaction,
    /// The client whose transaction or batch is open.
    pub(crate) owner: Option<u32>,
    /// The client whose message came last.
    pub(crate) served: Option<u32>,
    /// What the open transaction has changed.
    pub(crate) writes: Vec<Tag>,
    /// A statement whose constraint fails when the transaction ends.
    pub(crate) deferred: Option<Tag>,
    /// What clients have left in the session.
    pub(crate) stains: Vec<Stain>,
    pub(crate) listens: bool,
    /// Notifications that go out when the transaction is committed.
    pub(crate) notifications: Vec<Tag>,
    /// Notifications that have gone out, and were not taken yet.
    pub(crate) announced: Vec<Tag>,
    /// What temp_buffers was when a temporary table was used first: it stays that.
    buffers: Option<String>,
    /// DISCARD ALL has run, and the prepared statements are to go.
    pub(crate) discarded: bool,
    settings: Settings,
    /// What RESET goes back to.
    startup: Settings,
    /// What a rollback goes back to.
    saved: Option<Settings>,
    reported: Settings,
}

type Settings = BTreeMap<String, String>;

/// Whether a transaction is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transaction {
    None,
    /// That of a single statement, of a query string, or of a batch up to its Sync.
    Implicit,
    Block,
    /// A block in which something has failed.
    Failed,
}

/// What a session was logged in to, and as whom.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Home {
    pub(crate) database: String,
    pub(crate) user: String,
}

/// State that outlives its transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stain {
    pub(crate) client: u32,
    pub(crate) what: &'static str,
}

/// Who is told what a session does.
pub(crate) trait Witness {
    /// The session looks at a message with this tag.
    fn meets(&mut self, tag: Tag, state: &State);
    /// A statement begins to be carried out.
    fn executes(&mut self, tag: Tag);
    /// What these statements have changed is there to stay.
    fn committed(&mut self, tags: &[Tag]);
    /// What these statements have changed is undone.
    fn undone(&mut self, tags: &[Tag]);
    /// A COPY reads data.
    fn copies(&mut self, tag: Tag, data: &[u8]);
    /// The session ends, because it was sent what makes no sense.
    fn gives_up(&mut self);
    /// Something came that nobody sends.
    fn wrong(&mut self, text: String);
}

/// Settings that a client may ask for at startup: name as it is reported, and default.
pub(crate) const SETTINGS: [(&str, &str); 4] = [
    ("application_name", ""),
    ("DateStyle", "ISO, MDY"),
    ("temp_buffers", "8MB"),
    ("TimeZone", "GMT"),
];

/// A setting that only a server's configuration can set, and that is reported. Each new
/// configuration has another value of it.
pub(crate) const VERSION: &str = "sim.version";

const SETTINGS_CHANGED: &str = "changed settings";
const LIBRARY: &str = "a library";
const TABLE: &str = "a temporary table";

impl State {
    pub(crate) fn new(startup: Settings) -> Self {
        let mut settings: Settings =
            SETTINGS.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).into();
        settings.extend(startup);
        Self {
            home: None,
            transaction: Transaction::None,
            owner: None,
            served: None,
            writes: Vec::new(),
            deferred: None,
            stains: Vec::new(),
            listens: false,
            notifications: Vec::new(),
            announced: Vec::new(),
            buffers: None,
            discarded: false,
            startup: settings.clone(),
            saved: None,
            reported: Settings::new(),
            settings,
        }
    }

    pub(crate) fn default_of(name: &str) -> &'static str {
        let setting = SETTINGS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        setting.map_or("", |(_, value)| value)
    }

    /// Whether PostgreSQL would refuse this value.
    pub(crate) fn is_valid(name: &str, value: &str) -> bool {
        !(name.eq_ignore_ascii_case("TimeZone") && value == "Nowhere")
    }

    /// A message with a tag has come.
    pub(crate) fn meet(&mut self, tag: Tag, witness: &mut impl Witness) {
        witness.meets(tag, self);
        self.owner.get_or_insert(tag.client);
        self.served = Some(tag.client);
    }

    /// Whether the open transaction has failed and this is not its end.
    pub(crate) fn refuses(&self, line: &Line) -> bool {
        self.transaction == Transaction::Failed && !line.is_exit()
    }

    /// Opens an implicit transaction if none is open.
    pub(crate) fn start(&mut self) {
        if self.transaction == Transaction::None {
            self.transaction = Transaction::Implicit;
            self.saved = Some(self.settings.clone());
        }
    }

    /// Ends the implicit transaction, if there is one.
    pub(crate) fn commit_implicit(
        &mut self,
        witness: &mut impl Witness,
    ) -> Result<(), (&'static [u8; 5], String)> {
        match self.transaction {
            Transaction::Implicit => self.commit(witness),
            Transaction::None | Transaction::Block | Transaction::Failed => Ok(()),
        }
    }

    /// Ends the transaction well, unless a constraint fails.
    pub(crate) fn commit(
        &mut self,
        witness: &mut impl Witness,
    ) -> Result<(), (&'static [u8; 5], String)> {
        if let Some(tag) = self.deferred {
            self.abort(witness);
            return Err((b"23505", format!("a deferred constraint is violated [{tag}]")));
        }
        witness.committed(&self.writes);
        self.announced.append(&mut self.notifications);
        self.saved = None;
        self.over();
        Ok(())
    }

    /// Undoes the transaction, if one is open.
    pub(crate) fn abort(&mut self, witness: &mut impl Witness) {
        witness.undone(&self.writes);
        if let Some(saved) = self.saved.take() {
            self.settings = saved;
        }
        self.over();
    }

    /// An error: a block has failed, anything less is over.
    pub(crate) fn error(&mut self, witness: &mut impl Witness) {
        let owner = self.owner;
        let block = matches!(self.transaction, Transaction::Block | Transaction::Failed);
        self.abort(witness);
        if block {
            self.transaction = Transaction::Failed;
            self.owner = owner;
        }
    }

    /// The transaction is over, and nobody knows how it has ended.
    pub(crate) fn forget(&mut self) {
        if let Some(saved) = self.saved.take() {
            self.settings = saved;
        }
        self.over();
    }

    pub(crate) fn stain(&mut self, client: u32, what: &'static str) {
        let stain = Stain { client, what };
        if !self.stains.contains(&stain) {
            self.stains.push(stain);
        }
    }

    pub(crate) fn load(&mut self, client: u32) {
        self.stain(client, LIBRARY);
    }

    /// A client makes a temporary table.
    pub(crate) fn make_temporary(&mut self, client: u32) {
        self.stain(client, TABLE);
        self.buffers = self.buffers.take().or_else(|| self.settings.get("temp_buffers").cloned());
    }

    /// A client changes a setting.
    pub(crate) fn set(&mut self, client: u32, name: &str, value: &str) {
        self.stain(client, SETTINGS_CHANGED);
        self.settings.insert(name.to_ascii_lowercase(), value.to_owned());
    }

    /// pgweir changes settings: all of them, or none.
    pub(crate) fn configure(&mut self, pairs: &[(String, Option<String>)]) -> Result<(), String> {
        for (name, value) in pairs {
            let Some(value) = value else { continue };
            if !Self::is_valid(name, value) {
                return Err(format!("invalid value for parameter \"{name}\": \"{value}\""));
            }
            if name == "temp_buffers" && self.buffers.as_ref().is_some_and(|fixed| fixed != value) {
                return Err(format!("parameter \"{name}\" cannot be changed any more"));
            }
        }
        for (name, value) in pairs {
            let value = value.as_ref().or_else(|| self.startup.get(name));
            self.settings.insert(name.clone(), value.cloned().unwrap_or_default());
        }
        Ok(())
    }

    /// The server has a new configuration, or says so.
    pub(crate) fn reload(&mut self, version: &str) {
        let all = [Some(&mut self.settings), Some(&mut self.startup), self.saved.as_mut()];
        for settings in all.into_iter().flatten() {
            settings.insert(VERSION.to_owned(), version.to_owned());
        }
    }

    pub(crate) fn discard(&mut self) {
        self.settings = self.startup.clone();
        self.saved = Some(self.settings.clone());
        self.stains.retain(|stain| stain.what == LIBRARY);
        self.listens = false;
        self.discarded = true;
    }

    pub(crate) fn setting(&self, name: &str) -> &str {
        self.settings.get(&name.to_ascii_lowercase()).map_or("", String::as_str)
    }

    /// The settings that clients may ask for at startup.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = |(name, _): &(&str, &str)| name.to_ascii_lowercase();
        SETTINGS.iter().filter_map(move |setting| {
            let (name, value) = self.settings.get_key_value(&own(setting))?;
            Some((name.as_str(), value.as_str()))
        })
    }

    /// Whether the settings are what this client itself has made of them.
    pub(crate) fn settings_are_own(&self, client: u32) -> bool {
        self.stains.iter().any(|stain| stain.client == client && stain.what == SETTINGS_CHANGED)
    }

    /// A setting that the frontend has to be told of; it counts as told from now on.
    pub(crate) fn unreported(&mut self) -> Option<(&'static str, String)> {
        for (name, _) in SETTINGS {
            let value = self.setting(name);
            if self.reported.get(name).map(String::as_str) != Some(value) {
                let value = value.to_owned();
                self.reported.insert(name.to_owned(), value.clone());
                return Some((name, value));
            }
        }
        None
    }

    fn over(&mut self) {
        self.transaction = Transaction::None;
        self.owner = None;
        self.writes.clear();
        self.notifications.clear();
        self.deferred = None;
    }
}

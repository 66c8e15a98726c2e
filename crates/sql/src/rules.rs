//! What pins, as one table, and the index that finds its rows by word.

use crate::pins::PinReason;

#[cfg(test)]
mod tests;

/// One row of [`RULES`]: a word that means something for the session where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// The word in lower case. Case does not matter in the text.
    pub name: &'static str,
    /// Where the word has to stand.
    pub form: Form,
    /// What the session keeps.
    pub reason: PinReason,
    /// The row in one sentence, for the documentation.
    pub doc: &'static str,
}

/// Where a word has to stand to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The name of a function, quoted or not, in front of its `(`. Also the functional notation of
    /// one argument that PostgreSQL allows for any expression: `(0.5::float8).setseed`.
    Call,
    /// A word, in no quotes and behind no dot, in front of a `(` within which AS stands.
    Cast,
    /// The word behind a COMMIT that begins a statement.
    Commit,
    /// A [`Form::Call`] whose first argument is the name of a setting.
    SettingCall,
    /// The first word of a statement that may end something too ([`PinReason::Ends`]).
    Ends,
    /// The word behind `CURSOR WITH`.
    Hold,
    /// The first word of a statement, unless `TRANSACTION` and a literal follow.
    Prepare,
    /// A name that counts wherever it stands, quoted or not.
    Schema,
    /// The first word of a statement, unless `LOCAL`, `TRANSACTION` or `CONSTRAINTS` follows as a
    /// keyword: `SET local.name = 1` sets a custom setting.
    Set,
    /// The first word of a statement.
    Statement,
    /// The word behind `CREATE`, `OR REPLACE` or `INTO`, with or without `LOCAL` or `GLOBAL`,
    /// unless the statement says `ON COMMIT DROP` or the `INTO` is that of INSERT or MERGE.
    Temporary,
    /// A name anywhere behind `UPDATE` in the same statement, quoted or not.
    Updated,
    /// The setting's name in a SET statement, SET LOCAL included, quoted or not.
    Variable,
}

/// Everything that the classifier knows to change a session's state.
#[rustfmt::skip]
pub static RULES: &[Rule] = &[
    row("set", Form::Set, PinReason::Setting,
        "Changes a setting for the session, unlike SET LOCAL, SET TRANSACTION, SET CONSTRAINTS; \
         the script of CREATE EXTENSION or ALTER EXTENSION may do so too."),
    row("seed", Form::Variable, PinReason::Seed,
        "SET seed, even SET LOCAL, seeds random() for good."),
    row("dynamic_library_path", Form::Variable, PinReason::Unclear,
        "Only roles with pg_read_all_settings are shown what it is set to."),
    row("session_preload_libraries", Form::Variable, PinReason::Unclear,
        "Only roles with pg_read_all_settings are shown what it is set to."),
    row("reset", Form::Statement, PinReason::Reset,
        "Takes settings back to those of the server's own start."),
    row("discard", Form::Ends, PinReason::Reset,
        "DISCARD ALL takes settings back as RESET ALL does; the other forms are not told apart."),
    row("listen", Form::Statement, PinReason::Listen,
        "Notifications go to the session that listens."),
    row("notify", Form::Statement, PinReason::Notify,
        "A session that listens on the channel hears of it before its own reply is over."),
    row("prepare", Form::Prepare, PinReason::Prepared,
        "The statement exists in this session; PREPARE TRANSACTION leaves nothing in it."),
    row("execute", Form::Statement, PinReason::Names,
        "Runs a statement that was prepared in this session, perhaps by the protocol."),
    row("deallocate", Form::Ends, PinReason::Names,
        "Removes a statement that was prepared in this session, perhaps by the protocol."),
    row("do", Form::Statement, PinReason::Block,
        "What its block does is read there."),
    row("load", Form::Statement, PinReason::Library,
        "A library cannot be unloaded."),
    row("hold", Form::Hold, PinReason::HoldCursor,
        "DECLARE … CURSOR WITH HOLD outlives its transaction."),
    row("prepared", Form::Commit, PinReason::Schema,
        "COMMIT PREPARED: what it commits may have changed the schema."),
    row("end", Form::Statement, PinReason::Commit,
        "Commits, as COMMIT does (a keyword below) and PREPARE TRANSACTION."),
    row("rollback", Form::Statement, PinReason::Commit,
        "What stands behind it in the same string, or batch, is committed at its end."),
    row("abort", Form::Statement, PinReason::Commit,
        "The same as ROLLBACK."),
    row("close", Form::Ends, PinReason::Ends,
        "A cursor WITH HOLD may be closed."),
    row("unlisten", Form::Ends, PinReason::Unlisten,
        "No channel may be listened on any more."),
    row("temp", Form::Temporary, PinReason::TempTable,
        "CREATE TEMP TABLE, VIEW or SEQUENCE, SELECT INTO TEMP; ON COMMIT DROP leaves nothing."),
    row("temporary", Form::Temporary, PinReason::TempTable,
        "The same as TEMP."),
    row("pg_temp", Form::Schema, PinReason::TempTable,
        "What is created in pg_temp is temporary; pg_temp_1 and the like count too, and so does \
         such a literal in SET LOCAL search_path or in set_config."),

    row("set_config", Form::SettingCall, PinReason::Setting,
        "SET as a function; SET LOCAL if its third argument is the word true."),
    row("pg_settings", Form::Updated, PinReason::Setting,
        "A rule of this view makes an UPDATE of it call set_config; nothing else does so."),
    row("set_limit", Form::Call, PinReason::Setting,
        "pg_trgm: sets pg_trgm.similarity_threshold."),
    row("setseed", Form::Call, PinReason::Seed,
        "Seeds random() for good."),
    row("st_generatepoints", Form::Call, PinReason::Seed,
        "PostGIS: with a third argument it seeds the points of later calls."),
    row("st_fromflatgeobuftotable", Form::Call, PinReason::TempTable,
        "PostGIS: makes a table in the schema that it is given, which may be pg_temp."),

    row("pg_advisory_lock", Form::Call, PinReason::AdvisoryLock,
        "Held until it is unlocked; the pg_advisory_xact_ functions end with the transaction."),
    row("pg_advisory_lock_shared", Form::Call, PinReason::AdvisoryLock,
        "Held until it is unlocked."),
    row("pg_try_advisory_lock", Form::Call, PinReason::AdvisoryLock,
        "Held until it is unlocked, if it was got."),
    row("pg_try_advisory_lock_shared", Form::Call, PinReason::AdvisoryLock,
        "Held until it is unlocked, if it was got."),

    row("pg_advisory_unlock", Form::Call, PinReason::Ends,
        "Unlocks what pg_advisory_lock locked, or one time less."),
    row("pg_advisory_unlock_all", Form::Call, PinReason::Ends,
        "Unlocks all that pg_advisory_lock and its kin locked."),
    row("pg_advisory_unlock_shared", Form::Call, PinReason::Ends,
        "Unlocks what pg_advisory_lock_shared locked, or one time less."),

    row("pg_notify", Form::Call, PinReason::Notify,
        "NOTIFY as a function."),

    row("nextval", Form::Call, PinReason::Sequence,
        "Sets what currval and lastval answer in this session."),
    row("setval", Form::Call, PinReason::Sequence,
        "Sets what currval answers in this session."),
    row("autoinc", Form::Call, PinReason::Sequence,
        "spi: a trigger that calls nextval."),
    row("currval", Form::Call, PinReason::LastValue,
        "Answers what nextval or setval has set in this session."),
    row("lastval", Form::Call, PinReason::LastValue,
        "Answers what nextval has set in this session."),

    row("query_to_xml", Form::Call, PinReason::Unclear,
        "Runs SQL that it is given as text."),
    row("query_to_xml_and_xmlschema", Form::Call, PinReason::Unclear,
        "Runs SQL that it is given as text."),
    row("query_to_xmlschema", Form::Call, PinReason::Unclear,
        "Plans SQL that it is given as text, and so runs functions that are marked IMMUTABLE."),
    row("ts_rewrite", Form::Call, PinReason::Unclear,
        "With two arguments, runs SQL that it is given as text."),
    row("ts_stat", Form::Call, PinReason::Unclear,
        "Runs SQL that it is given as text."),
    row("treat", Form::Cast, PinReason::Unclear,
        "TREAT(a AS f) calls the function f of pg_catalog, whatever that is."),
    row("connectby", Form::Call, PinReason::Unclear,
        "tablefunc: puts the names that it is given into SQL as they are."),
    row("crosstab", Form::Call, PinReason::Unclear,
        "tablefunc: runs SQL that it is given as text."),
    row("crosstab2", Form::Call, PinReason::Unclear,
        "tablefunc: runs SQL that it is given as text."),
    row("crosstab3", Form::Call, PinReason::Unclear,
        "tablefunc: runs SQL that it is given as text."),
    row("crosstab4", Form::Call, PinReason::Unclear,
        "tablefunc: runs SQL that it is given as text."),
    row("xpath_table", Form::Call, PinReason::Unclear,
        "xml2: puts the names and the criteria that it is given into SQL as they are."),

    row("pg_backup_start", Form::Call, PinReason::Backup,
        "The backup ends with the session."),
    row("pg_start_backup", Form::Call, PinReason::Backup,
        "The name of pg_backup_start before PostgreSQL 15."),
    row("pg_copy_logical_replication_slot", Form::Call, PinReason::Replication,
        "A temporary slot belongs to the session."),
    row("pg_copy_physical_replication_slot", Form::Call, PinReason::Replication,
        "A temporary slot belongs to the session."),
    row("pg_create_logical_replication_slot", Form::Call, PinReason::Replication,
        "A temporary slot belongs to the session."),
    row("pg_create_physical_replication_slot", Form::Call, PinReason::Replication,
        "A temporary slot belongs to the session."),
    row("pg_replication_origin_session_setup", Form::Call, PinReason::Replication,
        "The session replays from an origin until it is reset."),

    row("dblink_connect", Form::Call, PinReason::Extension,
        "dblink: the connection is kept until dblink_disconnect."),
    row("dblink_connect_u", Form::Call, PinReason::Extension,
        "dblink: the connection is kept until dblink_disconnect."),
    row("hll_set_defaults", Form::Call, PinReason::Extension,
        "hll: keeps what sketches are to be like, and not as a setting that RESET knows."),
    row("hll_set_max_sparse", Form::Call, PinReason::Extension,
        "hll: keeps when a sketch becomes a full one, likewise."),
    row("hll_set_output_version", Form::Call, PinReason::Extension,
        "hll: keeps in which form sketches are said, likewise."),
    row("isn_weak", Form::Call, PinReason::Extension,
        "isn: keeps whether wrong numbers are let through, up to PostgreSQL 17 not as a setting."),
    row("sepgsql_setcon", Form::Call, PinReason::Extension,
        "sepgsql: changes the security label of the session."),
];

/// What a word may mean, before its place is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning {
    /// It stands in [`RULES`].
    Rule(Form, PinReason),
    /// It helps to tell where a word of [`RULES`] stands.
    Keyword(Keyword),
    /// Nothing.
    Plain,
}

impl Meaning {
    /// The meaning of a name in double quotes, which is no keyword. Rows match in any case here
    /// too, although PostgreSQL would not find the function "SETSEED".
    pub(crate) fn quoted(self) -> Self {
        match self {
            Self::Keyword(Keyword::SearchPath) => self,
            Self::Rule(
                Form::Call | Form::SettingCall | Form::Schema | Form::Updated | Form::Variable,
                _,
            ) => self,
            Self::Keyword(_) | Self::Rule(..) | Self::Plain => Self::Plain,
        }
    }
}

/// The words by which the classifier finds its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    Alter,
    As,
    Commit,
    Constraints,
    Create,
    Cursor,
    Default,
    Delete,
    Distinct,
    Drop,
    For,
    Global,
    Insert,
    Into,
    Key,
    Local,
    Merge,
    No,
    On,
    Ordinality,
    Recursive,
    Replace,
    Returning,
    Schema,
    SearchPath,
    Session,
    Share,
    Transaction,
    Update,
    With,
    /// Changes tables, and means nothing else.
    Writes,
}

/// Every word that has a meaning, in lower case: those of [`RULES`] and those of their context.
pub fn words() -> impl Iterator<Item = &'static str> {
    (0..RULES.len() + KEYWORDS.len()).map(|number| entry(number).0)
}

/// The meaning of a word in any case, which is nearly always nothing: that answer costs one hash
/// of its ends and its length and one look into the index.
#[inline]
pub(crate) fn meaning(word: &[u8]) -> Meaning {
    let (Some(&first), Some(&last)) = (word.first(), word.last()) else {
        return Meaning::Plain;
    };
    let mut slot = slot(first, last, word.len());
    while INDEX[slot] != EMPTY {
        let (name, meaning) = entry(INDEX[slot] as usize);
        if name.as_bytes().eq_ignore_ascii_case(word) {
            return meaning;
        }
        slot = (slot + 1) % SLOTS;
    }
    if last.is_ascii_digit() && is_numbered_pg_temp(word) {
        return meaning(b"pg_temp");
    }
    Meaning::Plain
}

/// Whether the word is the real name of some session's `pg_temp`, such as `pg_temp_3`.
fn is_numbered_pg_temp(word: &[u8]) -> bool {
    const PREFIX: &[u8] = b"pg_temp_";
    word.split_at_checked(PREFIX.len()).is_some_and(|(prefix, number)| {
        prefix.eq_ignore_ascii_case(PREFIX)
            && !number.is_empty()
            && number.iter().all(u8::is_ascii_digit)
    })
}

const KEYWORDS: &[(&str, Keyword)] = &[
    ("alter", Keyword::Alter),
    ("as", Keyword::As),
    ("commit", Keyword::Commit),
    ("constraints", Keyword::Constraints),
    ("copy", Keyword::Writes),
    ("create", Keyword::Create),
    ("cursor", Keyword::Cursor),
    ("default", Keyword::Default),
    ("delete", Keyword::Delete),
    ("distinct", Keyword::Distinct),
    ("drop", Keyword::Drop),
    ("for", Keyword::For),
    ("global", Keyword::Global),
    ("insert", Keyword::Insert),
    ("into", Keyword::Into),
    ("key", Keyword::Key),
    ("local", Keyword::Local),
    ("merge", Keyword::Merge),
    ("no", Keyword::No),
    ("on", Keyword::On),
    ("ordinality", Keyword::Ordinality),
    ("recursive", Keyword::Recursive),
    ("replace", Keyword::Replace),
    ("returning", Keyword::Returning),
    ("schema", Keyword::Schema),
    ("search_path", Keyword::SearchPath),
    ("session", Keyword::Session),
    ("share", Keyword::Share),
    ("transaction", Keyword::Transaction),
    ("truncate", Keyword::Writes),
    ("update", Keyword::Update),
    ("with", Keyword::With),
];

/// A power of two, several times the number of words, so that most others meet an empty slot.
const SLOTS: usize = 256;

/// What the index holds where there is no word.
const EMPTY: u8 = u8::MAX;

/// [`RULES`] and [`KEYWORDS`] as a hash table with linear probing, built by the compiler: numbers
/// as [`entry`] knows them.
static INDEX: [u8; SLOTS] = {
    const COUNT: usize = RULES.len() + KEYWORDS.len();
    assert!(COUNT < SLOTS / 2, "the index is too full to be quick");
    let mut index = [EMPTY; SLOTS];
    let mut number = 0;
    while number < COUNT {
        let name = entry(number).0.as_bytes();
        let mut slot = slot(name[0], name[name.len() - 1], name.len());
        while index[slot] != EMPTY {
            slot = (slot + 1) % SLOTS;
        }
        index[slot] = number as u8;
        number += 1;
    }
    index
};

/// A word by its number: the rows of [`RULES`] first, then those of [`KEYWORDS`].
const fn entry(number: usize) -> (&'static str, Meaning) {
    if number < RULES.len() {
        let Rule { name, form, reason, .. } = RULES[number];
        (name, Meaning::Rule(form, reason))
    } else {
        let (name, keyword) = KEYWORDS[number - RULES.len()];
        (name, Meaning::Keyword(keyword))
    }
}

/// Where a word of that length, first and last byte is looked for. 0x20 is what the cases of an
/// ASCII letter differ by. The factor is one of many tried: with it, hardly any word that is
/// frequent in queries meets a slot that is taken.
const fn slot(first: u8, last: u8, length: usize) -> usize {
    let ends = (first | 0x20) as u32 | ((last | 0x20) as u32) << 8;
    let mixed = (ends | (length as u32) << 16).wrapping_mul(0xd680_cbeb);
    (mixed >> (u32::BITS - SLOTS.ilog2())) as usize
}

const fn row(name: &'static str, form: Form, reason: PinReason, doc: &'static str) -> Rule {
    Rule { name, form, reason, doc }
}

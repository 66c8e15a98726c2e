//! Workers in threads of their own, and what the main thread does with them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use pgweir_config::{Config, TcpOptions};
use pgweir_engine::{Member, Placement, Plan, TICK};
use pgweir_proxy_interleaved::{Listeners, Mailboxes, Renewal};
use shuttle::future::block_on;
use shuttle::thread::{self, JoinHandle};
use tokio::sync::{mpsc, oneshot};

use crate::control::Control;
use crate::line::{Heard, Line, REFUSED, Way};
use crate::worker::{Outside, Post, Site, run};

/// How many workers there are in most tests. The pools go to them in turn: the first to the first.
const WORKERS: usize = 2;

/// More letters than lead to one another: a client goes to its worker, a nudge says what this
/// lacks, another that there is room now, and so on for three clients.
const LETTERS_IN_A_ROW: usize = 12;

/// What a pool says that looks for no loud names.
const IGNORE: &str = "loud_functions = 'ignore'";

/// A process that is at work.
pub(crate) struct Process {
    pub(crate) mailboxes: Mailboxes<Line>,
    outside: Vec<mpsc::UnboundedSender<Outside>>,
    threads: Vec<JoinHandle<()>>,
    control: JoinHandle<()>,
    /// Those workers that have ended.
    ended: mpsc::UnboundedReceiver<usize>,
    member: Member,
    site: Arc<Site>,
}

/// Plans of one process, one after the other: each knows where pools were before.
pub(crate) struct Plans(Placement);

/// A client that is connected, or on its way.
pub(crate) struct Client {
    line: Line,
    end: oneshot::Receiver<Heard>,
    /// What it was told by the end of its connection.
    heard: Option<Heard>,
}

impl Plans {
    pub(crate) fn new() -> Self {
        Self::among(WORKERS)
    }

    pub(crate) fn among(workers: usize) -> Self {
        Self(Placement::new(workers))
    }

    /// A pool of one connection for each of these databases, with more lines for `general`.
    pub(crate) fn next(&mut self, general: &str, databases: &[&str]) -> Plan {
        self.plan(general, IGNORE, "pool_size = 1", databases)
    }

    /// The same, where the first pool may have two and keeps them.
    pub(crate) fn growing(&mut self, general: &str, databases: &[&str]) -> Plan {
        self.plan(general, IGNORE, "pool_size = 2\nmin_pool_size = 2", databases)
    }

    /// The same where catalogues are read, for names that are not `quiet`.
    pub(crate) fn reading(&mut self, quiet: &str, databases: &[&str]) -> Plan {
        self.plan("", &format!("quiet_functions = '{quiet}'"), "pool_size = 1", databases)
    }

    fn plan(&mut self, general: &str, pool: &str, first: &str, databases: &[&str]) -> Plan {
        let pool = |(place, database): (usize, &&str)| {
            let size = if place == 0 { first } else { "pool_size = 1" };
            format!(
                "[pools.{database}]\n{pool}\n\
                 [pools.{database}.users.0]\nusername = 'user'\npassword = 'password'\n\
                 {size}\n\
                 [pools.{database}.shards.0]\nservers = [['127.0.0.1', 5432, 'primary']]\n\
                 database = '{database}'\n"
            )
        };
        let pools: String = databases.iter().enumerate().map(pool).collect();
        let text = format!(
            "[general]\nhost = '127.0.0.1'\nport = 6000\nauth_type = 'trust'\n\
             admin_username = 'admin'\nadmin_password = 'secret'\nadmin_auth_type = 'trust'\n\
             {general}\n{pools}"
        );
        let config = Config::parse(&text, Path::new("interleave.toml")).expect("it is valid");
        let mut plan = Plan::new(&config, "0.1.0", [8; 32]).expect("a plan");
        self.0.place(&mut plan);
        plan
    }
}

impl Process {
    /// Starts the workers. There may be so many servers at a time. `then`: clients that come to the
    /// first worker in the moment in which it has read the next configuration.
    pub(crate) fn start(plan: &Plan, most: usize, then: Vec<Line>) -> Self {
        Self::among(WORKERS, plan, most, then)
    }

    /// The same with so many workers.
    pub(crate) fn among(workers: usize, plan: &Plan, most: usize, then: Vec<Line>) -> Self {
        let site = Arc::new(Site { most, ..Site::default() });
        let members = Member::all(workers);
        let member = members[0].clone();
        let (mailboxes, inboxes) = Mailboxes::new(workers);
        let (mut outside, mut threads) = (Vec::new(), Vec::new());
        let mut then = Some(then);
        let (farewell, ended) = mpsc::unbounded_channel();
        let (news, inbox) = mpsc::unbounded_channel();
        let control = Control { mailboxes: mailboxes.clone(), inbox };
        let control = thread::spawn(move || control.run());
        for (member, inbox) in members.into_iter().zip(inboxes) {
            let (tell, told) = mpsc::unbounded_channel();
            outside.push(tell.clone());
            let post = Post {
                member,
                plan: plan.clone(),
                peers: mailboxes.clone(),
                inbox,
                outside: (tell, told),
                site: Arc::clone(&site),
                then: then.take().unwrap_or_default(),
                news: news.clone(),
                ended: farewell.clone(),
            };
            threads.push(thread::spawn(move || run(post)));
        }
        Self { mailboxes, outside, threads, control, ended, member, site }
    }

    /// A client connects.
    pub(crate) fn client(&self, database: &str, name: &str, leaves: bool) -> Client {
        self.connects(Line::of_client(&pool_of(database), &[name], leaves))
    }

    /// A client connects that asks for what no server takes that somebody has had.
    pub(crate) fn demanding(&self, database: &str, name: &str) -> Client {
        let parameters = [&pool_of(database)[..], &[("search_path", REFUSED)]].concat();
        self.connects(Line::of_client(&parameters, &[name], true))
    }

    /// A client of the console connects.
    pub(crate) fn console(&self, commands: &[&str], leaves: bool) -> Client {
        let parameters = [("user", "admin"), ("database", "pgweir")];
        self.connects(Line::of_client(&parameters, commands, leaves))
    }

    /// A client connects that gets lost on its way to another worker.
    pub(crate) fn lost(&self, database: &str, name: &str, way: Way) -> Client {
        let (line, end) = Line::of_client(&pool_of(database), &[name], true);
        line.is_lost(way);
        self.connects((line, end))
    }

    fn connects(&self, (line, end): (Line, oneshot::Receiver<Heard>)) -> Client {
        // A worker that has ended takes no clients.
        let _ = self.outside[0].send(Outside::Client(line.clone()));
        Client { line, end, heard: None }
    }

    /// The machine of a client of the first worker vanishes.
    pub(crate) fn breaks(&self, client: &Client) {
        let _ = self.outside[0].send(Outside::Broken(client.line.clone()));
    }

    /// Another configuration. Clients come in where they did before.
    pub(crate) fn reload(&self, plan: Plan) {
        let tcp = TcpOptions {
            keepalives_idle: None,
            keepalives_interval: None,
            keepalives_count: None,
            user_timeout: None,
        };
        self.mailboxes.reload(Renewal { plan, tcp, listeners: door() });
    }

    /// Waits until all clients are gone. Time passes only where nothing happens without, and not
    /// more than so many ticks.
    pub(crate) fn see_off(&self, clients: &mut [Client], ticks: usize) {
        for _ in 0..=ticks {
            self.rest();
            if clients.iter_mut().all(Client::is_gone) {
                return;
            }
            self.tick();
        }
        panic!("somebody still waits after {ticks} ticks");
    }

    /// Waits until nobody is left by the count: all were asked to leave.
    pub(crate) fn empties(&self) {
        let mut looks = 0;
        while block_on(self.mailboxes.clients_left()) > 0 {
            self.tick();
            self.rest();
            looks += 1;
            assert!(looks < 20, "they do not leave");
        }
    }

    /// The next attempt to connect but one fails.
    pub(crate) fn refuse_second(&self) {
        self.site.refused.store(2, SeqCst);
    }

    /// Time passes, and nobody is told.
    pub(crate) fn pass(&self, time: Duration) {
        self.site.clock.fetch_add(time.as_micros() as u64, SeqCst);
    }

    /// A tick's time passes on all workers.
    pub(crate) fn tick(&self) {
        self.pass(TICK);
        for worker in &self.outside {
            let _ = worker.send(Outside::Tick);
        }
    }

    /// Waits until all that is under way has come to its end, as far as no time passes.
    pub(crate) fn rest(&self) {
        for _ in 0..LETTERS_IN_A_ROW {
            // All letters before this one are read now.
            block_on(self.mailboxes.clients_left());
            for worker in &self.outside {
                let (done, over) = oneshot::channel();
                let _ = worker.send(Outside::Rest(done));
                let _ = block_on(over);
            }
        }
    }

    /// Ends, when all clients are gone.
    pub(crate) fn stop(self) {
        self.mailboxes.stop();
        self.join();
    }

    /// Tells all clients that this is the end, and sees to it as the program's own thread does.
    pub(crate) fn shut_down(self) {
        self.mailboxes.shut_down();
        self.ends();
    }

    /// Somebody has told all clients that this is the end.
    pub(crate) fn ends(mut self) {
        while let Some(worker) = block_on(self.ended.recv()) {
            self.mailboxes.has_ended(worker);
        }
        self.join();
    }

    fn join(self) {
        self.threads.into_iter().for_each(|thread| thread.join().expect("it ends"));
        self.control.join().expect("it ends with the last worker");
        self.member.check_empty();
    }
}

impl Client {
    /// One that comes later.
    pub(crate) fn later(database: &str, name: &str) -> (Line, Self) {
        let (line, end) = Line::of_client(&pool_of(database), &[name], true);
        (line.clone(), Self { line, end, heard: None })
    }

    /// What it was told by the end of its connection, which comes by itself.
    pub(crate) fn heard(self) -> Heard {
        match self.heard {
            Some(heard) => heard,
            None => block_on(self.end).expect("the connection comes to an end of its own"),
        }
    }

    /// It has its answer, or hears that this is the end.
    pub(crate) fn assert_told(self) {
        let heard = self.heard();
        let is_sent_away = heard.error.as_deref().is_some_and(|code| code.starts_with("57P0"));
        let is_answered = heard.answers == 1 && heard.error.is_none();
        assert!(is_answered || is_sent_away, "{heard:?}");
    }

    /// Whether its connection has ended.
    pub(crate) fn is_gone(&mut self) -> bool {
        if self.heard.is_none() {
            self.heard = self.end.try_recv().ok();
        }
        self.heard.is_some()
    }
}

/// What a client says that wants the pool of a database.
fn pool_of(database: &str) -> [(&str, &str); 2] {
    [("user", "user"), ("database", database)]
}

/// Where clients come in, which is open already.
pub(crate) fn door() -> Listeners {
    vec![("door".to_owned(), None)]
}

//! A connection, and whoever is at its far end, who answers at once whatever is written to it.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};

use pgweir_proxy_interleaved::Transport;
use pgweir_wire::{CancelKey, Header, Initial, ProtocolVersion, Startup, backend, frontend};
use pgweir_wire::{HEADER_LEN, SqlState, TransactionStatus};
use tokio::sync::oneshot;

const COLUMN: backend::Column<'static> =
    backend::Column { name: "column", type_oid: 25, type_len: -1 };

/// How the question begins what there is in a server's catalogue.
const CATALOGUE_QUESTION: &[u8] = b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY;";

/// What the function does that there is in each.
const LOCKS: &[u8] = b"SELECT pg_advisory_lock(1)";

/// What no server takes that somebody has had.
pub(crate) const REFUSED: &str = "refused";

/// A connection. Its lock is never held while another thread may go on, so it is no step.
#[derive(Clone, Debug)]
pub(crate) struct Line(Arc<Mutex<Ends>>);

#[derive(Debug)]
struct Ends {
    /// To pgweir, not yet read.
    incoming: VecDeque<u8>,
    /// From pgweir, and not a whole message yet.
    outgoing: Vec<u8>,
    far: Far,
    /// The far end sends no more.
    ended: bool,
    /// Its machine is gone: whatever is read or written fails.
    broken: bool,
    /// Where it gets lost, if it is to be handed over.
    lost: Option<Way>,
    woken: bool,
}

#[derive(Debug)]
enum Far {
    Client(Client),
    Server(Server),
}

/// A step of the way from one worker to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the worker that gives it away.
    Off,
    /// To the one that is given it.
    On,
}

/// A client that asks some things, and wants each of them back for an answer.
#[derive(Debug)]
struct Client {
    asks: Vec<String>,
    /// It takes its leave when it has all answers, and otherwise when it is told to.
    leaves: bool,
    greeted: bool,
    heard: Heard,
    /// Whoever waits for it.
    waits: Option<oneshot::Sender<Heard>>,
}

/// What a client was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    pub(crate) answers: usize,
    /// The SQLSTATE of an error.
    pub(crate) error: Option<String>,
}

/// A server that answers each query with its text, and says that its catalogue has one function,
/// which is called like its database and takes a lock. Once somebody has had it, it does not take
/// what is called [`REFUSED`].
#[derive(Debug)]
struct Server {
    /// Its database, once it has let us in.
    database: Option<String>,
    /// It has answered a client.
    touched: bool,
    /// How many there are like it.
    all: Arc<AtomicUsize>,
}

impl Line {
    /// A client that has sent its startup packet and these queries, and whoever waits for its end.
    pub(crate) fn of_client(
        parameters: &[(&str, &str)],
        asks: &[&str],
        leaves: bool,
    ) -> (Self, oneshot::Receiver<Heard>) {
        let (waits, over) = oneshot::channel();
        let mut sent = Vec::new();
        let parameters = parameters.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        Startup::write(&mut sent, ProtocolVersion::V3_0, parameters);
        asks.iter().for_each(|text| frontend::write_query(&mut sent, text.as_bytes()));
        let client = Client {
            asks: asks.iter().map(|text| (*text).to_owned()).collect(),
            leaves,
            greeted: false,
            heard: Heard::default(),
            waits: Some(waits),
        };
        (Self::new(sent, Far::Client(client)), over)
    }

    /// A server, which has not said anything yet. `all` counts it as long as it is there, and
    /// there may be so many.
    pub(crate) fn of_server(all: &Arc<AtomicUsize>, most: usize) -> Self {
        let before = all.fetch_add(1, SeqCst);
        assert!(before < most, "more servers than there may be");
        let server = Server { database: None, touched: false, all: Arc::clone(all) };
        Self::new(Vec::new(), Far::Server(server))
    }

    fn new(sent: Vec<u8>, far: Far) -> Self {
        let (incoming, outgoing) = (sent.into(), Vec::new());
        let (ended, broken, lost, woken) = (false, false, None, true);
        let ends = Ends { incoming, outgoing, far, ended, broken, lost, woken };
        Self(Arc::new(Mutex::new(ends)))
    }

    /// It gets lost if it is handed over.
    pub(crate) fn is_lost(&self, way: Way) {
        self.ends().lost = Some(way);
    }

    /// Goes this step of the way to another worker.
    pub(crate) fn goes(&self, way: Way) -> io::Result<()> {
        if self.ends().lost == Some(way) { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
    }

    /// Its far end vanishes, with all that it has sent and was not read yet.
    pub(crate) fn breaks(&self) {
        let mut ends = self.ends();
        ends.broken = true;
        ends.incoming.clear();
        ends.end();
    }

    /// Whether both are ends of the same connection.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether a read would find something.
    pub(crate) fn is_readable(&self) -> bool {
        let ends = self.ends();
        ends.ended || !ends.incoming.is_empty()
    }

    /// Whether its far end has vanished.
    pub(crate) fn is_broken(&self) -> bool {
        self.ends().broken
    }

    /// Whether pgweir has asked to be looked at since the last time.
    pub(crate) fn take_wake(&self) -> bool {
        std::mem::take(&mut self.ends().woken)
    }

    /// pgweir has closed its end.
    pub(crate) fn let_go(&self) {
        let told = self.ends().let_go();
        if let Some((waits, heard)) = told {
            // Nobody may be waiting any more.
            let _ = waits.send(heard);
        }
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.0.lock().expect("nobody panics with the lock")
    }
}

impl Transport for Line {
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut ends = self.ends();
        if ends.broken {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        if ends.incoming.is_empty() && !ends.ended {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let n = buffer.len().min(ends.incoming.len());
        for (to, byte) in buffer.iter_mut().zip(ends.incoming.drain(..n)) {
            *to = byte;
        }
        Ok(n)
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut ends = self.ends();
        if ends.broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        ends.outgoing.extend_from_slice(bytes);
        while ends.hears() {}
        Ok(bytes.len())
    }

    fn shutdown(&self) {}

    fn wake(&self) {
        self.ends().woken = true;
    }
}

impl Ends {
    /// The far end takes a message and answers it, if there is a whole one.
    fn hears(&mut self) -> bool {
        if let Far::Server(server @ Server { database: None, .. }) = &mut self.far {
            let packet = Initial::parse(&self.outgoing).expect("a startup packet");
            let Some((Initial::Startup(startup), length)) = packet else { return false };
            server.database = Some(database_of(&startup));
            self.outgoing.drain(..length);
            self.incoming.extend(welcome());
            return true;
        }
        let header = Header::parse(&self.outgoing).expect("a message");
        let Some(header) = header.filter(|its| its.message_len() <= self.outgoing.len()) else {
            return false;
        };
        let message: Vec<u8> = self.outgoing.drain(..header.message_len()).collect();
        let body = &message[HEADER_LEN..];
        match (&mut self.far, header.tag) {
            (Far::Server(server), b'Q') => self.incoming.extend(server.answers(body)),
            (Far::Server(_), b'X') => self.end(),
            (Far::Client(client), b'D') => client.hears_row(body),
            (Far::Client(client), b'E') => {
                let error = backend::ErrorFields::parse(body).expect("an error");
                client.heard.error = error.code.map(|code| code.to_string());
            }
            (Far::Client(client), b'Z') if !client.greeted => client.greeted = true,
            (Far::Client(client), b'Z') if client.leaves && client.has_all() => {
                self.incoming.extend(frontend::TERMINATE);
                self.end();
            }
            (Far::Client(_) | Far::Server(_), _) => {}
        }
        true
    }

    /// pgweir's end is closed. Gives whom to tell, and what was heard by then.
    fn let_go(&mut self) -> Option<(oneshot::Sender<Heard>, Heard)> {
        self.end();
        match &mut self.far {
            Far::Client(client) => Some((client.waits.take()?, client.heard.clone())),
            Far::Server(_) => None,
        }
    }

    /// Its stream ends. A server that has gone is counted no more.
    fn end(&mut self) {
        if !std::mem::replace(&mut self.ended, true)
            && let Far::Server(server) = &self.far
        {
            server.all.fetch_sub(1, SeqCst);
        }
    }
}

impl Client {
    fn hears_row(&mut self, row: &[u8]) {
        let asked = self.asks.get(self.heard.answers).expect("it has asked for more");
        // Behind the number of columns and the length of the only one.
        assert_eq!(&row[6..], asked.as_bytes(), "somebody else's row");
        self.heard.answers += 1;
    }

    fn has_all(&self) -> bool {
        self.heard.answers == self.asks.len()
    }
}

impl Server {
    fn answers(&mut self, query: &[u8]) -> Vec<u8> {
        let text = query.strip_suffix(b"\0").expect("a whole query");
        // All that pgweir says by itself names the schema.
        let says = |words: &str| text.windows(words.len()).any(|part| part == words.as_bytes());
        self.touched |= !says("pg_catalog");
        if self.touched && says(REFUSED) {
            return refusal();
        }
        match &self.database {
            Some(name) if text.starts_with(CATALOGUE_QUESTION) => {
                row(&[b"f", b"16384", b"public", name.as_bytes(), b"sql", b"0", LOCKS])
            }
            Some(_) | None => answer(text),
        }
    }
}

fn database_of(startup: &Startup<'_>) -> String {
    let mut parameters = startup.parameters();
    let database = parameters.find(|(name, _)| *name == b"database");
    let (_, name) = database.expect("it names its database");
    String::from_utf8_lossy(name).into_owned()
}

/// What a server says that lets us in.
fn welcome() -> Vec<u8> {
    let mut out = Vec::new();
    backend::authentication_ok(&mut out);
    backend::parameter_status(&mut out, b"server_version", b"15.1");
    let key = CancelKey { process_id: 1, secret: Box::new([9, 8, 7, 6]) };
    backend::backend_key_data(&mut out, &key);
    backend::ready_for_query(&mut out, TransactionStatus::Idle);
    out
}

/// A row with what was asked. To the question what a server has room for, that is no answer.
pub(crate) fn answer(asked: &[u8]) -> Vec<u8> {
    row(&[asked])
}

fn refusal() -> Vec<u8> {
    let mut out = Vec::new();
    backend::Report::error(SqlState::INVALID_PARAMETER_VALUE, "not that").write(&mut out);
    backend::ready_for_query(&mut out, TransactionStatus::Idle);
    out
}

fn row(cells: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    backend::row_description(&mut out, &vec![COLUMN; cells.len()]);
    backend::data_row(&mut out, cells.iter().map(|cell| Some(*cell)));
    backend::command_complete(&mut out, "SELECT 1");
    backend::ready_for_query(&mut out, TransactionStatus::Idle);
    out
}

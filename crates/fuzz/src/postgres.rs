//! A server that keeps PostgreSQL's protocol to the letter, with a language of a few statements.
//!
//! Its rules are those of `PostgresMain` and `SocketBackend` (postgres.c) and `CopyGetData`
//! (copyfromparse.c). What a client may send to a real server may be sent to this one, and is
//! answered with the same messages, so an engine that loses count of its replies has nobody else
//! to blame. It also knows what no protocol shows: whether a bystander's statement finds the
//! session as a new one would be.

mod login;
mod statements;

use pgweir_wire::backend::{self, Report};
use pgweir_wire::frontend::Tag;
use pgweir_wire::{
    CancelKey, HEADER_LEN, Header, ProtocolVersion, SqlState, Startup, TransactionStatus,
};

pub(crate) use login::Login;
use login::Progress;
use statements::Session;

/// What a server answers to the bytes of somebody who has logged in.
pub fn replies(input: &[u8]) -> Vec<u8> {
    let mut server = Postgres::new(1, Login::Trust, Manners::Good);
    let parameters: [(&[u8], &[u8]); 1] = [(b"user", b"alice")];
    let mut startup = Vec::new();
    Startup::write(&mut startup, ProtocolVersion::V3_0, parameters);
    server.input(&startup);
    server.output.clear();
    server.input(input);
    server.output
}

/// How the question for the catalogue begins.
const READS: &[u8] = b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL ";

/// A statement with this text in it is the bystander's.
pub(crate) const BYSTANDER: &[u8] = b"BYSTANDER";

/// How far a server can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manners {
    /// It behaves as PostgreSQL does.
    Good,
    /// As long as it logs in; then it says only what it is told to say.
    AtLogin,
    /// It says only what it is told to say.
    None,
}

/// One backend and its connection.
pub(crate) struct Postgres {
    pub(crate) manners: Manners,
    login: Progress,
    key: CancelKey,
    input: Vec<u8>,
    /// What it has sent and nobody has read yet.
    pub(crate) output: Vec<u8>,
    /// It has closed its connection, behind the output.
    pub(crate) closed: bool,
    session: Session,
    /// An error of the extended protocol: all up to the next Sync is skipped.
    skipping: bool,
    /// The statement that it performs and that more input or time will end.
    busy: Option<Busy>,
}

/// A statement that is not over.
struct Busy {
    kind: BusyKind,
    /// What follows it in a simple query; `None` in the extended protocol.
    behind: Option<Vec<Vec<u8>>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BusyKind {
    CopyIn,
    Sleep,
}

/// What a statement came to.
enum Outcome {
    Done,
    Busy(BusyKind),
    Error(Refusal),
    /// The backend ends.
    Fatal,
}

/// An error's message.
type Refusal = &'static str;

const MALFORMED: Refusal = "invalid message format";
const TIMEOUT: Refusal = "canceling statement due to statement timeout";
const USER_REQUEST: Refusal = "canceling statement due to user request";

impl Postgres {
    pub(crate) fn new(process_id: i32, login: Login, manners: Manners) -> Self {
        let secret = (process_id as u32).wrapping_mul(0x9e37_79b9).to_be_bytes();
        Self {
            manners,
            login: Progress::new(login),
            key: CancelKey { process_id, secret: Box::new(secret) },
            input: Vec::new(),
            output: Vec::new(),
            closed: false,
            session: Session::new(),
            skipping: false,
            busy: None,
        }
    }

    /// Bytes have arrived.
    pub(crate) fn input(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.work();
    }

    /// A sleep is over.
    pub(crate) fn wake(&mut self) {
        if self.is_asleep() {
            backend::command_complete(&mut self.output, "SLEEP");
            self.resume();
            self.work();
        }
    }

    /// A CancelRequest has arrived.
    pub(crate) fn cancel(&mut self, key: &CancelKey) {
        if *key == self.key && self.is_asleep() {
            self.fail_busy(USER_REQUEST);
            self.work();
        }
    }

    /// Whether it performs a statement that its statement_timeout is to end.
    pub(crate) fn overruns(&self) -> bool {
        self.is_asleep() && self.session.brakes()
    }

    /// The statement_timeout of servers that are shared is over.
    pub(crate) fn brake(&mut self) {
        if self.overruns() {
            self.fail_busy(TIMEOUT);
            self.work();
        }
    }

    /// Reads what is there, as far as it is let.
    fn work(&mut self) {
        if self.manners == Manners::None {
            return;
        }
        while !self.closed && !self.login.is_over() {
            let Some(read) = self.login.step(&self.input, &self.key, &mut self.output) else {
                return;
            };
            self.input.drain(..read);
        }
        if self.manners == Manners::AtLogin {
            return;
        }
        while !self.closed && !self.is_asleep() {
            let Ok(found) = Header::parse(&self.input) else {
                // `pq_getmessage` says so in the log only.
                self.closed = true;
                return;
            };
            let Some(header) = found else { return };
            match Tag::of(header) {
                Ok(Tag::Password) => return self.die("invalid frontend message type 112"),
                Ok(_) if self.input.len() < header.message_len() => return,
                Ok(tag) => {
                    let message: Vec<u8> = self.input.drain(..header.message_len()).collect();
                    self.message(tag, &message[HEADER_LEN..]);
                }
                Err(pgweir_wire::Malformed::Length { .. }) => self.closed = true,
                Err(_) => return self.die("invalid frontend message type"),
            }
        }
    }

    fn is_asleep(&self) -> bool {
        self.busy.as_ref().is_some_and(|busy| busy.kind == BusyKind::Sleep)
    }

    fn message(&mut self, tag: Tag, body: &[u8]) {
        if self.busy.is_some() {
            return self.copy_message(tag, body);
        }
        if matches!(tag, Tag::Sync | Tag::Terminate) {
            self.skipping = false;
        }
        if self.skipping {
            return;
        }
        match tag {
            Tag::Query => self.query(body),
            Tag::FunctionCall => self.function_call(body),
            Tag::Sync => {
                let result = if body.is_empty() { self.session.sync() } else { Err(MALFORMED) };
                self.answer_simple(result);
            }
            Tag::Terminate => self.closed = true,
            // Accepted and ignored: they may come late.
            Tag::CopyData | Tag::CopyDone | Tag::CopyFail => {}
            Tag::Bind
            | Tag::Close
            | Tag::Describe
            | Tag::Execute
            | Tag::Flush
            | Tag::Parse
            | Tag::Password => self.extended(tag, body),
        }
    }

    fn query(&mut self, body: &[u8]) {
        if body.starts_with(READS) {
            // It is long, and asked in each run: to read it would be most of what there is to do.
            self.session.forget_unnamed();
            backend::command_complete(&mut self.output, "SELECT 0");
            return self.answer_simple(Ok(()));
        }
        let text = match statements::query_text(body) {
            Ok(text) => text,
            Err(refusal) => return self.answer_simple(Err(refusal)),
        };
        // Not before: what cannot be read has not this effect either.
        self.session.forget_unnamed();
        let statements = statements::split(text);
        if statements.is_empty() {
            backend::empty_query_response(&mut self.output);
        }
        self.perform_all(statements);
    }

    /// Performs the statements of a simple query up to the one that needs more input.
    fn perform_all(&mut self, mut statements: Vec<Vec<u8>>) {
        while !statements.is_empty() {
            let statement = statements.remove(0);
            match self.session.perform(&statement, 0, true, &mut self.output) {
                Outcome::Done => {}
                Outcome::Busy(kind) => {
                    self.busy = Some(Busy { kind, behind: Some(statements) });
                    return;
                }
                Outcome::Error(refusal) => return self.answer_simple(Err(refusal)),
                Outcome::Fatal => return self.die("terminating connection"),
            }
        }
        let result = self.session.sync();
        self.answer_simple(result);
    }

    fn function_call(&mut self, body: &[u8]) {
        let result = match self.session.status() {
            TransactionStatus::Failed => Err(statements::FAILED_BLOCK),
            _ if body.len() < 4 => Err(MALFORMED),
            _ => Ok(()),
        };
        if result.is_ok() {
            // FunctionCallResponse with NULL.
            self.output.extend_from_slice(b"V\0\0\0\x08\xff\xff\xff\xff");
        }
        self.answer_simple(result);
    }

    /// Ends a message after which a server is ready again.
    fn answer_simple(&mut self, result: Result<(), Refusal>) {
        if let Err(refusal) = result {
            self.error(refusal);
        }
        backend::ready_for_query(&mut self.output, self.session.status());
    }

    fn extended(&mut self, tag: Tag, body: &[u8]) {
        match self.session.extended(tag, body, &mut self.output) {
            Outcome::Done => {}
            Outcome::Busy(kind) => self.busy = Some(Busy { kind, behind: None }),
            Outcome::Error(refusal) => {
                self.error(refusal);
                self.skipping = true;
            }
            Outcome::Fatal => self.die("terminating connection"),
        }
    }

    fn copy_message(&mut self, tag: Tag, body: &[u8]) {
        match tag {
            Tag::CopyData | Tag::Flush | Tag::Sync => {}
            Tag::CopyDone => {
                backend::command_complete(&mut self.output, "COPY 1");
                self.resume();
            }
            Tag::CopyFail => {
                let refusal = match body {
                    [.., 0] => "COPY from stdin failed",
                    _ => MALFORMED,
                };
                self.fail_busy(refusal);
            }
            Tag::Bind
            | Tag::Close
            | Tag::Describe
            | Tag::Execute
            | Tag::FunctionCall
            | Tag::Parse
            | Tag::Password
            | Tag::Query
            | Tag::Terminate => {
                self.error("unexpected message type during COPY from stdin");
                // The message was not read to its end.
                self.die("terminating connection because protocol synchronization was lost");
            }
        }
    }

    /// The busy statement is done: what is behind it goes on.
    fn resume(&mut self) {
        let Some(Busy { behind, .. }) = self.busy.take() else { return };
        if let Some(behind) = behind {
            self.perform_all(behind);
        }
    }

    fn fail_busy(&mut self, refusal: Refusal) {
        let Some(Busy { behind, .. }) = self.busy.take() else { return };
        if behind.is_some() {
            self.answer_simple(Err(refusal));
        } else {
            self.error(refusal);
            self.skipping = true;
        }
    }

    fn error(&mut self, refusal: Refusal) {
        self.session.fail();
        // Nobody decides by the code of the others.
        let canceled = [TIMEOUT, USER_REQUEST].contains(&refusal);
        let code = if canceled { SqlState::QUERY_CANCELED } else { SqlState::INTERNAL_ERROR };
        Report::error(code, refusal).write(&mut self.output);
    }

    fn die(&mut self, text: &str) {
        Report::fatal(SqlState::PROTOCOL_VIOLATION, text).write(&mut self.output);
        self.closed = true;
    }
}

//! What workers are told, and what they tell.

use std::io;
use std::sync::Arc;

use pgweir_config::TcpOptions;
use pgweir_engine::{CatalogueRows, ClientId, Database, Event, HandedOver, Loud, Plan, Snapshot};

use crate::listener::Listeners;
use crate::socket::Detached;
use crate::sync::{Inbox, Mailbox, mailbox, oneshot};

/// What a worker is told from outside. It is an event like any other to it. `C`: how a connection
/// goes from one worker to another.
#[derive(Debug)]
pub enum Mail<C = Detached> {
    /// A client that another worker has taken in, for a pool of this one.
    Arrival(Box<Arrival<C>>),
    /// The answer to [`News::Catalogue`].
    Catalogue(Database, Result<Arc<Loud>, String>),
    /// How many clients are connected?
    ClientsLeft(oneshot::Sender<usize>),
    /// The answer to [`News::Console`].
    ConsoleReply(ClientId, Vec<u8>),
    /// Take no more clients, and let those that are there finish.
    Drain,
    /// Take clients there and nowhere else from now on, and say when that is so.
    Listen(Listeners, oneshot::Sender<()>),
    /// Another worker lacks connections, or has left some.
    Nudge,
    /// Go on with another configuration.
    Reload(Box<Renewal>),
    /// Tell every client that this is the end, whatever it does, then end.
    ShutDown,
    /// What are you doing?
    Snapshot(oneshot::Sender<Snapshot>),
    /// End now.
    Stop,
}

/// Another configuration, as far as workers are concerned.
#[derive(Debug)]
pub struct Renewal {
    /// The engine's part.
    pub plan: Plan,
    /// Socket options.
    pub tcp: TcpOptions,
    /// All that is listened on from now on.
    pub listeners: Listeners,
}

/// What a worker tells.
#[derive(Debug)]
pub enum News {
    /// A command for the console, to be answered by [`Mail::ConsoleReply`] to the same worker.
    Console {
        /// Whose client has given it.
        worker: usize,
        /// Which client.
        client: ClientId,
        /// What the log and the console call that client.
        number: i32,
        /// The command.
        text: Box<[u8]>,
    },
    /// The loud names in this are to be found, and sent to the same worker as [`Mail::Catalogue`].
    Catalogue {
        /// Who asks.
        worker: usize,
        /// What a server has said.
        rows: Box<CatalogueRows>,
    },
    /// Something that an operator acts on.
    Log(Event),
    /// A client could not be taken, and so many others since this was told last.
    AcceptFailed(io::Error, u64),
    /// Where clients come in is not all as a reload has it.
    ListenFailed(io::Error),
    /// Peers that vanish are noticed by the kernel's own patience only.
    NoSockDiag(io::Error),
    /// This worker's thread has ended, in whatever way.
    Ended(usize),
}

/// A connection on its way from one worker to another.
#[derive(Debug)]
pub struct Arrival<C = Detached> {
    /// The connection.
    pub connection: C,
    /// What the engine has to know of it.
    pub handed: HandedOver,
    /// What was read and not consumed.
    pub input: Vec<u8>,
}

/// The way to all workers.
#[derive(Debug)]
pub struct Mailboxes<C = Detached>(Vec<Mailbox<Mail<C>>>);

impl<C> Mailboxes<C> {
    /// A mailbox for each of so many workers, and where each finds its mail, in the order in which
    /// it was sent.
    pub fn new(workers: usize) -> (Self, Vec<Inbox<Mail<C>>>) {
        let (mailboxes, inboxes) = (0..workers).map(|_| mailbox()).unzip();
        (Self(mailboxes), inboxes)
    }

    /// Tells one worker. One that has ended needs to be told nothing.
    pub fn tell(&self, worker: usize, mail: Mail<C>) {
        if let Some(mailbox) = self.0.get(worker) {
            let _ = mailbox.send(mail);
        }
    }

    /// Tells all workers the same.
    pub fn tell_all(&self, mail: impl Fn() -> Mail<C>) {
        (0..self.0.len()).for_each(|worker| self.tell(worker, mail()));
    }

    /// Nudges all workers but this one.
    pub fn nudge_others(&self, from: usize) {
        let others = (0..self.0.len()).filter(|worker| *worker != from);
        others.for_each(|worker| self.tell(worker, Mail::Nudge));
    }

    /// Goes on with another configuration. The first worker is told last, so that no other is given
    /// a client for a pool that it has not heard of.
    pub fn reload(&self, renewal: Renewal) {
        let Renewal { plan, tcp, listeners } = renewal;
        for worker in 1..self.0.len() {
            let renewal = Renewal { plan: plan.clone(), tcp, listeners: Listeners::new() };
            self.tell(worker, Mail::Reload(Box::new(renewal)));
        }
        self.tell(0, Mail::Reload(Box::new(Renewal { plan, tcp, listeners })));
    }

    /// Ends all workers now.
    pub fn stop(&self) {
        self.tell_all(|| Mail::Stop);
    }

    /// Tells every client that this is the end. The first worker is told, and tells the others when
    /// it has done so itself: until then it may give them clients.
    pub fn shut_down(&self) {
        self.tell(0, Mail::ShutDown);
    }

    /// This worker has told its clients. The first one gives none away any more, and tells the
    /// others.
    pub fn has_shut_down(&self, worker: usize) {
        if worker == 0 {
            (1..self.0.len()).for_each(|other| self.tell(other, Mail::ShutDown));
        }
    }

    /// A worker has ended when all are told that this is the end. With the first one the others
    /// must end too, if it could not tell them; behind another they may still have to read that.
    pub fn has_ended(&self, worker: usize) {
        if worker == 0 {
            self.stop();
        }
    }

    /// Has clients let in there and nowhere else, and waits until they are.
    pub async fn listen(&self, listeners: Listeners) {
        let (asker, done) = oneshot::channel();
        self.tell(0, Mail::Listen(listeners, asker));
        // A worker that has ended lets nobody in.
        let _ = done.await;
    }

    /// What all workers are doing; `None` once one has ended.
    pub async fn snapshot(&self) -> Option<Snapshot> {
        let mut answers = Vec::new();
        for worker in 0..self.0.len() {
            let (asker, answer) = oneshot::channel();
            self.tell(worker, Mail::Snapshot(asker));
            answers.push(answer);
        }
        let mut parts = Vec::new();
        for answer in answers {
            parts.push(answer.await.ok()?);
        }
        Snapshot::of_all(parts)
    }

    /// How many clients are connected; none where the worker has ended.
    ///
    /// The first worker is asked first and the others when it has answered: if it has no client
    /// left, and takes none, all that it has ever handed over have arrived where they are counted.
    pub async fn clients_left(&self) -> usize {
        let mut left = 0;
        for worker in 0..self.0.len() {
            let (asker, answer) = oneshot::channel();
            self.tell(worker, Mail::ClientsLeft(asker));
            left += answer.await.unwrap_or(0);
        }
        left
    }
}

impl<C> Clone for Mailboxes<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

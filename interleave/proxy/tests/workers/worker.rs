//! A worker as in `crates/proxy/src/worker.rs`, without sockets: a thread with a driver, its mail,
//! and the far ends of its connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use pgweir_engine::{Endpoint, Engine, Member, Plan, Time};
use pgweir_proxy_interleaved::{
    Arrival, Driver, Handover, Inbox, Interest, Mail, Mailboxes, Piece, Renewal, Request,
};
use shuttle::rand::{Rng, thread_rng};
use tokio::sync::{mpsc, oneshot};

use crate::line::Line;

/// More rounds than any test needs to come to rest.
const ROUNDS: usize = 1_000;

/// What all threads have in common, and no thread waits for.
#[derive(Debug, Default)]
pub(crate) struct Site {
    /// Microseconds.
    pub(crate) clock: AtomicU64,
    /// Servers that there are, and how many there may be.
    pub(crate) servers: Arc<AtomicUsize>,
    pub(crate) most: usize,
}

/// What comes to a worker that is no mail.
pub(crate) enum Outside {
    /// A client connects.
    Client(Line),
    /// A connection that was asked for can be made.
    Connected(Endpoint),
    /// It is said when all that came before is done, and what that led to.
    Rest(oneshot::Sender<()>),
    /// Time has passed.
    Tick,
}

/// What a worker is told next.
enum Told {
    Mail(Mail<Line>),
    Outside(Outside),
}

/// What a worker starts with.
pub(crate) struct Post {
    pub(crate) member: Member,
    pub(crate) plan: Plan,
    pub(crate) peers: Mailboxes<Line>,
    pub(crate) inbox: Inbox<Mail<Line>>,
    /// Both ends: it tells itself what it can connect to.
    pub(crate) outside: (mpsc::UnboundedSender<Outside>, mpsc::UnboundedReceiver<Outside>),
    pub(crate) site: Arc<Site>,
    /// Clients that come when the next configuration is read.
    pub(crate) then: Vec<Line>,
    /// Where it says that it has ended.
    pub(crate) ended: mpsc::UnboundedSender<usize>,
}

struct Worker {
    index: usize,
    driver: Driver<Line>,
    peers: Mailboxes<Line>,
    inbox: Inbox<Mail<Line>>,
    tell: mpsc::UnboundedSender<Outside>,
    outside: mpsc::UnboundedReceiver<Outside>,
    site: Arc<Site>,
    then: Vec<Line>,
    tasks: Vec<Task>,
}

/// Serves one connection.
struct Task {
    endpoint: Endpoint,
    line: Line,
    /// What it waited for when it looked last.
    awaited: Interest,
    /// Nothing is to be done for it any more, or not here.
    over: bool,
}

/// A worker's thread, until it is told to end.
pub(crate) fn run(post: Post) {
    let Post { member, plan, peers, inbox, outside, site, then, ended } = post;
    let index = member.index();
    let driver = Driver::new(Engine::with(member, plan, [7; 32]));
    let (tell, outside) = outside;
    let tasks = Vec::new();
    let worker = Worker { index, driver, peers, inbox, tell, outside, site, then, tasks };
    shuttle::future::block_on(worker.run());
    // Nobody may be waiting for it.
    let _ = ended.send(index);
}

impl Worker {
    async fn run(mut self) {
        loop {
            match self.next().await {
                Told::Mail(Mail::Arrival(arrival)) => {
                    let Arrival { connection, handed, input } = *arrival;
                    let io = connection.clone();
                    let endpoint = self.drive(|driver, _| driver.handed_over(io, handed, input));
                    self.serve(endpoint, connection);
                }
                Told::Mail(Mail::ClientsLeft(asker)) => {
                    let _ = asker.send(self.driver.engine().clients());
                }
                Told::Mail(Mail::Snapshot(asker)) => {
                    let _ = asker.send(self.driver.snapshot(self.now()));
                }
                Told::Mail(Mail::Nudge) => self.drive(|driver, now| driver.nudged(now)),
                Told::Mail(Mail::Reload(renewal)) => {
                    let Renewal { plan, .. } = *renewal;
                    self.drive(|driver, now| driver.reload(now, plan));
                    std::mem::take(&mut self.then).into_iter().for_each(|line| self.accept(line));
                }
                Told::Mail(Mail::Drain) => {
                    self.drive(|driver, now| driver.drain(now));
                    self.close_door();
                }
                Told::Mail(Mail::ShutDown) => {
                    self.drive(|driver, now| driver.shut_down(now));
                    self.peers.has_shut_down(self.index);
                    self.close_door();
                    self.drive(|driver, now| driver.shut_down(now));
                    return self.settle();
                }
                Told::Mail(Mail::Stop) => return,
                Told::Mail(Mail::Catalogue(..) | Mail::ConsoleReply(..) | Mail::Listen(..)) => {
                    unreachable!("no test sends it")
                }
                Told::Outside(outside) => self.hear(outside),
            }
            self.settle();
        }
    }

    /// What comes next, in any order of both.
    async fn next(&mut self) -> Told {
        let Self { inbox, outside, .. } = self;
        if thread_rng().gen_bool(0.5) {
            tokio::select! { biased;
                Some(mail) = inbox.recv() => Told::Mail(mail),
                Some(outside) = outside.recv() => Told::Outside(outside),
            }
        } else {
            tokio::select! { biased;
                Some(outside) = outside.recv() => Told::Outside(outside),
                Some(mail) = inbox.recv() => Told::Mail(mail),
            }
        }
    }

    /// Who has come by now is told; others find the door closed.
    fn close_door(&mut self) {
        while let Ok(outside) = self.outside.try_recv() {
            self.hear(outside);
        }
    }

    fn hear(&mut self, outside: Outside) {
        match outside {
            Outside::Client(line) => self.accept(line),
            Outside::Connected(endpoint) => {
                if !self.driver.engine().awaits(endpoint) {
                    return;
                }
                let line = Line::of_server(&self.site.servers, self.site.most);
                let io = line.clone();
                let wanted = self.drive(|driver, now| driver.connected(now, endpoint, io).is_ok());
                if wanted {
                    self.serve(endpoint, line);
                }
            }
            Outside::Rest(done) => {
                self.settle();
                let _ = done.send(());
            }
            Outside::Tick => self.drive(|driver, now| driver.tick(now)),
        }
    }

    fn accept(&mut self, line: Line) {
        let io = line.clone();
        let endpoint = self.drive(|driver, now| driver.accept(now, io, None));
        self.serve(endpoint, line);
    }

    fn serve(&mut self, endpoint: Endpoint, line: Line) {
        let awaited = Interest { read: false, write: false, reset: false };
        self.tasks.push(Task { endpoint, line, awaited, over: false });
    }

    fn now(&self) -> Time {
        Time(self.site.clock.fetch_add(1, SeqCst))
    }

    /// Something happens, and what it asks for is done.
    fn drive<R>(&mut self, event: impl FnOnce(&mut Driver<Line>, Time) -> R) -> R {
        let now = self.now();
        let result = event(&mut self.driver, now);
        self.driver.engine().check();
        for request in self.driver.take_requests() {
            match request {
                Request::Connect(endpoint, _) => {
                    let _ = self.tell.send(Outside::Connected(endpoint));
                }
                Request::HandOver(handover) => self.hand_over(*handover),
                Request::Nudge => self.peers.nudge_others(self.index),
                Request::Console(..) => unreachable!("nobody is at the console"),
                Request::Log(_) => {}
                Request::JudgeCatalogue(_) => unreachable!("no pool looks for loud names"),
            }
        }
        result
    }

    fn hand_over(&mut self, handover: Handover<Line>) {
        let Handover { worker, io, handed, input } = handover;
        let own = |task: &&mut Task| task.line.is(&io);
        self.tasks.iter_mut().filter(own).for_each(|task| task.over = true);
        let arrival = Arrival { connection: io, handed, input };
        self.peers.tell(worker, Mail::Arrival(Box::new(arrival)));
    }

    /// Serves every connection until none is ready.
    fn settle(&mut self) {
        for _ in 0..ROUNDS {
            let mut idle = true;
            for at in 0..self.tasks.len() {
                idle &= !self.look_at(at);
            }
            self.tasks.retain(|task| !task.over);
            if self.driver.is_unfinished() {
                self.drive(|driver, now| {
                    driver.finish(now, |all: &mut [Piece<'_, Line>]| {
                        all.iter_mut().for_each(Piece::write);
                    });
                });
            } else if idle {
                return;
            }
        }
        panic!("the driver does not come to rest");
    }

    /// Serves a connection if it is ready, or woken. Says whether it was.
    fn look_at(&mut self, at: usize) -> bool {
        let Task { endpoint, ref line, awaited, over } = self.tasks[at];
        let line = line.clone();
        if over || !(line.take_wake() || awaited.read && line.is_readable()) {
            return false;
        }
        let Some(interest) = self.driver.interest(endpoint) else {
            line.let_go();
            self.tasks[at].over = true;
            return true;
        };
        self.tasks[at].awaited = interest;
        if interest.read && line.is_readable() {
            self.drive(|driver, now| driver.readable(now, endpoint));
        }
        true
    }
}

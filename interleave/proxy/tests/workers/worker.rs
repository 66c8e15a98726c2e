//! A worker as in `crates/proxy/src/worker.rs`, without sockets: a thread with a driver, its mail,
//! and the far ends of its connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use pgweir_engine::{Endpoint, Engine, Member, Plan, Time};
use pgweir_proxy_interleaved::{
    Arrival, Driver, Handover, Inbox, Interest, Listeners, Mail, Mailboxes, News, Piece, Renewal,
    Request,
};
use shuttle::rand::{Rng, thread_rng};
use tokio::sync::{mpsc, oneshot};

use crate::line::{Line, Way};

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
    /// The attempt to connect fails before which there are so many less one.
    pub(crate) refused: AtomicUsize,
}

impl Site {
    /// Whether this attempt to connect fails.
    fn refuses(&self) -> bool {
        self.refused.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)) == Ok(1)
    }
}

/// What comes to a worker that is no mail.
pub(crate) enum Outside {
    /// The machine of a client vanishes.
    Broken(Line),
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
    /// What the main thread is told.
    pub(crate) news: mpsc::UnboundedSender<News>,
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
    news: mpsc::UnboundedSender<News>,
    tasks: Vec<Task>,
    /// Clients are let in here.
    open: bool,
    draining: bool,
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
    let Post { member, plan, peers, inbox, outside, site, then, news, ended } = post;
    let index = member.index();
    let (tell, outside) = outside;
    let worker = Worker {
        index,
        driver: Driver::new(Engine::with(member, plan, [7; 32])),
        peers,
        inbox,
        tell,
        outside,
        site,
        then,
        news,
        tasks: Vec::new(),
        open: index == 0,
        draining: false,
    };
    shuttle::future::block_on(worker.run());
    // Nobody may be waiting for it.
    let _ = ended.send(index);
}

impl Worker {
    async fn run(mut self) {
        loop {
            match self.next().await {
                Told::Mail(Mail::Arrival(arrival)) => self.receive(*arrival),
                Told::Mail(Mail::ClientsLeft(asker)) => {
                    let _ = asker.send(self.driver.engine().clients());
                }
                Told::Mail(Mail::Snapshot(asker)) => {
                    let _ = asker.send(self.driver.snapshot(self.now()));
                }
                Told::Mail(Mail::Nudge) => self.drive(|driver, now| driver.nudged(now)),
                Told::Mail(Mail::Reload(renewal)) => {
                    let Renewal { plan, listeners, .. } = *renewal;
                    self.change_door(&listeners);
                    self.drive(|driver, now| driver.reload(now, plan));
                    std::mem::take(&mut self.then).into_iter().for_each(|line| self.accept(line));
                }
                Told::Mail(Mail::Listen(listeners, asker)) => {
                    self.change_door(&listeners);
                    let _ = asker.send(());
                }
                Told::Mail(Mail::ConsoleReply(client, reply)) => {
                    self.drive(|driver, now| driver.console_reply(now, client, &reply));
                }
                Told::Mail(Mail::Catalogue(database, read)) => {
                    self.drive(|driver, now| driver.catalogue_read(now, &database, read));
                }
                Told::Mail(Mail::Drain) => {
                    self.draining = true;
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

    /// Clients are let in from now on if there is anywhere to come in.
    fn change_door(&mut self, listeners: &Listeners) {
        if self.draining {
            return;
        }
        if listeners.is_empty() {
            self.close_door();
        } else {
            self.open = true;
        }
    }

    /// Who has come by now is let in; others find the door closed.
    fn close_door(&mut self) {
        while let Ok(outside) = self.outside.try_recv() {
            self.hear(outside);
        }
        self.open = false;
    }

    fn hear(&mut self, outside: Outside) {
        match outside {
            Outside::Broken(line) => line.breaks(),
            Outside::Client(line) if self.open => self.accept(line),
            Outside::Client(line) => line.let_go(),
            Outside::Connected(endpoint) => {
                if !self.driver.engine().awaits(endpoint) {
                    return;
                }
                if self.site.refuses() {
                    return self.drive(|driver, now| {
                        driver.connect_failed(now, endpoint, "connection refused");
                    });
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
                Request::Console(client, text) => {
                    let number = self.driver.engine().client_number(client);
                    let worker = self.index;
                    let _ = self.news.send(News::Console { worker, client, number, text });
                }
                Request::Log(_) => {}
                Request::JudgeCatalogue(rows) => {
                    let _ = self.news.send(News::Catalogue { worker: self.index, rows });
                }
            }
        }
        result
    }

    fn receive(&mut self, arrival: Arrival<Line>) {
        let Arrival { connection, handed, input } = arrival;
        match connection.goes(Way::On) {
            Ok(()) => {
                let io = connection.clone();
                let endpoint = self.drive(|driver, _| driver.handed_over(io, handed, input));
                self.serve(endpoint, connection);
            }
            Err(_) => self.lose(&connection),
        }
    }

    fn hand_over(&mut self, handover: Handover<Line>) {
        let Handover { worker, io, handed, input } = handover;
        let own = |task: &&mut Task| task.line.is(&io);
        self.tasks.iter_mut().filter(own).for_each(|task| task.over = true);
        match io.goes(Way::Off) {
            Ok(()) => {
                let arrival = Arrival { connection: io, handed, input };
                self.peers.tell(worker, Mail::Arrival(Box::new(arrival)));
            }
            Err(_) => self.lose(&io),
        }
    }

    /// A client has not arrived anywhere: it finds its connection closed.
    fn lose(&mut self, line: &Line) {
        self.drive(|driver, _| driver.lost_on_the_way());
        line.let_go();
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
        let is_ready = awaited.read && line.is_readable() || awaited.reset && line.is_broken();
        if over || !(line.take_wake() || is_ready) {
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
        if interest.reset && line.is_broken() {
            self.drive(|driver, now| driver.reset(now, endpoint, "its machine is gone"));
        }
        true
    }
}

use std::collections::VecDeque;
use std::sync::Arc;

use pgweir_engine::{
    ClientId, Database, Endpoint, Engine, HandedOver, Loud, Member, Placement, Plan, Snapshot, Time,
};
use pgweir_proxy::{Driver, Handover, Interest, Piece, Read, Request};

use crate::network::{Stream, WireId};
use crate::random::Dice;

/// pgweir as a process: a driver for each worker, and the mail between them.
///
/// As in the program, each worker reads its mail in the order in which it was sent, whoever sent
/// it; when it does so is for the world to say.
pub(crate) struct Process {
    drivers: Vec<Driver<Stream>>,
    placement: Placement,
    inboxes: Vec<VecDeque<Letter>>,
    /// Workers that have told their clients that this is the end.
    ended: Vec<bool>,
    /// Something was done to an engine since all were checked.
    touched: bool,
}

/// Where pgweir has a connection, or wants one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) worker: usize,
    pub(crate) endpoint: Endpoint,
}

/// What a worker has read in its mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// A client has come, whose connection is there from now on.
    Arrival(WireId, Place),
    /// A catalogue is read, or could not be.
    Catalogue,
    /// A client of the console is answered.
    ConsoleReply,
    /// The end is near.
    Ending,
    /// It has come: the other workers, from the first one, have got mail.
    Ended,
    /// Another worker lacks connections, or has left some.
    Nudge,
    /// Another configuration.
    Reload,
}

/// What a worker is told by another, or from outside.
enum Letter {
    Arrival(Box<(Stream, HandedOver, Vec<u8>)>),
    Catalogue(Database, Result<Arc<Loud>, String>),
    ConsoleReply(ClientId, Vec<u8>),
    Drain,
    Nudge,
    Reload(Box<Plan>),
    ShutDown,
}

impl Process {
    pub(crate) fn new(workers: usize, mut plan: Plan, dice: &mut Dice) -> Self {
        let mut placement = Placement::new(workers);
        placement.place(&mut plan);
        let engines = Member::all(workers)
            .into_iter()
            .map(|member| Engine::with(member, plan.clone(), dice.seed()));
        Self {
            drivers: engines.map(Driver::new).collect(),
            placement,
            inboxes: (0..workers).map(|_| VecDeque::new()).collect(),
            ended: vec![false; workers],
            touched: true,
        }
    }

    pub(crate) fn workers(&self) -> usize {
        self.drivers.len()
    }

    /// A client connects. The first worker takes clients in.
    pub(crate) fn accept(&mut self, now: Time, stream: Stream) -> Place {
        Place { worker: 0, endpoint: self.touch(0).accept(now, stream, None) }
    }

    /// A connection that was asked for is made. Says whether anybody wants it.
    pub(crate) fn connected(&mut self, now: Time, place: Place, stream: Stream) -> bool {
        self.touch(place.worker).connected(now, place.endpoint, stream).is_ok()
    }

    pub(crate) fn connect_failed(&mut self, now: Time, place: Place, cause: &str) {
        self.touch(place.worker).connect_failed(now, place.endpoint, cause);
    }

    /// Whether a connection that was asked for is still wanted.
    pub(crate) fn awaits(&self, place: Place) -> bool {
        self.drivers[place.worker].engine().awaits(place.endpoint)
    }

    pub(crate) fn interest(&mut self, place: Place) -> Option<Interest> {
        self.drivers[place.worker].interest(place.endpoint)
    }

    pub(crate) fn readable(&mut self, now: Time, place: Place) -> Read {
        self.touch(place.worker).readable(now, place.endpoint)
    }

    pub(crate) fn writable(&mut self, now: Time, place: Place) {
        self.touch(place.worker).writable(now, place.endpoint);
    }

    pub(crate) fn reset(&mut self, now: Time, place: Place) {
        self.touch(place.worker).reset(now, place.endpoint, "connection reset by peer");
    }

    pub(crate) fn tick(&mut self, now: Time, worker: usize) {
        self.touch(worker).tick(now);
    }

    /// A worker's turn ends.
    pub(crate) fn finish(&mut self, now: Time, worker: usize) {
        let write = |pieces: &mut [Piece<'_, Stream>]| pieces.iter_mut().for_each(Piece::write);
        self.touch(worker).finish(now, write);
    }

    pub(crate) fn is_unfinished(&self, worker: usize) -> bool {
        self.drivers[worker].is_unfinished()
    }

    /// Tells a worker what a client of the console is answered. Gives those that have mail now.
    pub(crate) fn tell_console(
        &mut self,
        worker: usize,
        client: ClientId,
        reply: &[u8],
    ) -> Vec<usize> {
        self.tell(vec![worker], || Letter::ConsoleReply(client, reply.to_vec()))
    }

    /// Sends all workers another configuration: the first one last, so that no other is given a
    /// client for a pool that it has not heard of. Gives those that have mail now.
    pub(crate) fn reload(&mut self, mut plan: Plan) -> Vec<usize> {
        self.placement.place(&mut plan);
        let order: Vec<_> = (1..self.workers()).chain([0]).collect();
        self.tell(order, || Letter::Reload(Box::new(plan.clone())))
    }

    /// Asks all clients to leave. Gives the workers that have mail now.
    pub(crate) fn drain(&mut self) -> Vec<usize> {
        self.tell((0..self.workers()).collect(), || Letter::Drain)
    }

    /// Tells all clients that this is the end: the first worker, which tells the others. Gives
    /// those that have mail now.
    pub(crate) fn shut_down(&mut self) -> Vec<usize> {
        self.tell(vec![0], || Letter::ShutDown)
    }

    /// The first worker has told its clients, and tells the others. Gives those that have mail now.
    pub(crate) fn shut_down_others(&mut self) -> Vec<usize> {
        self.tell((1..self.workers()).collect(), || Letter::ShutDown)
    }

    /// Whether a worker reads no more mail.
    pub(crate) fn has_ended(&self, worker: usize) -> bool {
        self.ended[worker]
    }

    /// Nudges all workers but this one. Gives those that have mail now.
    pub(crate) fn nudge_others(&mut self, from: usize) -> Vec<usize> {
        let others = (0..self.workers()).filter(|worker| *worker != from);
        self.tell(others.collect(), || Letter::Nudge)
    }

    /// Sends a client to the worker that it is for.
    pub(crate) fn send_on(&mut self, handover: Handover<Stream>) {
        let Handover { worker, io, handed, input } = handover;
        self.touched = true;
        self.inboxes[worker].push_back(Letter::Arrival(Box::new((io, handed, input))));
    }

    /// Tells a worker what is in a catalogue. Gives those that have mail now.
    pub(crate) fn tell_catalogue(
        &mut self,
        worker: usize,
        database: Database,
        read: Result<Arc<Loud>, String>,
    ) -> Vec<usize> {
        self.tell(vec![worker], || Letter::Catalogue(database.clone(), read.clone()))
    }

    /// A worker reads its oldest mail.
    pub(crate) fn read_mail(&mut self, now: Time, worker: usize) -> Option<News> {
        let letter = self.inboxes[worker].pop_front()?;
        let has_ended = self.ended[worker];
        let driver = self.touch(worker);
        let news = match letter {
            Letter::Arrival(arrival) => {
                let (stream, handed, input) = *arrival;
                let wire = stream.wire();
                let endpoint = driver.handed_over(stream, handed, input);
                News::Arrival(wire, Place { worker, endpoint })
            }
            Letter::Catalogue(database, read) => {
                driver.catalogue_read(now, &database, read);
                News::Catalogue
            }
            Letter::ConsoleReply(client, reply) => {
                // A worker that has ended reads no more of these.
                if !has_ended {
                    driver.console_reply(now, client, &reply);
                }
                News::ConsoleReply
            }
            Letter::Drain => {
                driver.drain(now);
                News::Ending
            }
            Letter::Nudge => {
                driver.nudged(now);
                News::Nudge
            }
            Letter::Reload(plan) => {
                driver.reload(now, *plan);
                News::Reload
            }
            Letter::ShutDown => {
                driver.shut_down(now);
                self.ended[worker] = true;
                News::Ended
            }
        };
        Some(news)
    }

    /// A worker that has something to be done outside.
    pub(crate) fn with_requests(&self) -> Option<usize> {
        self.drivers.iter().position(Driver::has_requests)
    }

    /// What a worker has to be done outside.
    pub(crate) fn take_requests(&mut self, worker: usize) -> Vec<Request<Stream>> {
        self.drivers[worker].take_requests()
    }

    /// Whether anything was done to a driver since this was asked last.
    pub(crate) fn was_touched(&mut self) -> bool {
        std::mem::take(&mut self.touched)
    }

    /// Asserts what must hold in each engine, and in all of them together.
    pub(crate) fn check(&self) {
        let engines: Vec<_> = self.drivers.iter().map(Driver::engine).collect();
        engines.iter().for_each(|engine| engine.check());
        Engine::check_together(&engines, self.under_way());
    }

    /// What some driver keeps that it may not.
    pub(crate) fn excess(&self) -> Option<String> {
        self.drivers.iter().find_map(Driver::excess)
    }

    /// Names of statements that a worker keeps of the client that it keeps most of.
    pub(crate) fn names_most(&self, worker: usize) -> usize {
        self.drivers[worker].engine().names_most()
    }

    /// Asserts that nothing is left in any driver. To be asked when nobody is there any more.
    pub(crate) fn check_empty(&self) {
        self.check();
        self.drivers.iter().for_each(Driver::check_empty);
    }

    pub(crate) fn snapshot(&self, now: Time) -> Option<Snapshot> {
        Snapshot::of_all(self.drivers.iter().map(|driver| driver.engine().snapshot(now)))
    }

    /// Clients that are connected, those between two workers included.
    pub(crate) fn clients(&self) -> usize {
        let here = self.drivers.iter().map(|driver| driver.engine().clients());
        here.sum::<usize>() + self.under_way()
    }

    /// Connections that are open, those between two workers included.
    pub(crate) fn connections(&self) -> usize {
        self.drivers.iter().map(Driver::connections).sum::<usize>() + self.under_way()
    }

    /// Mail that is not read yet.
    pub(crate) fn unread(&self) -> usize {
        self.inboxes.iter().map(VecDeque::len).sum()
    }

    /// A driver, to do something with.
    fn touch(&mut self, worker: usize) -> &mut Driver<Stream> {
        self.touched = true;
        &mut self.drivers[worker]
    }

    fn under_way(&self) -> usize {
        let letters = self.inboxes.iter().flatten();
        letters.filter(|letter| matches!(letter, Letter::Arrival(_))).count()
    }

    fn tell(&mut self, workers: Vec<usize>, letter: impl Fn() -> Letter) -> Vec<usize> {
        workers.iter().for_each(|worker| self.inboxes[*worker].push_back(letter()));
        workers
    }
}

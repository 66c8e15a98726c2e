//! The driver's surroundings: what a worker's runtime is to it.
//!
//! As on a worker, each connection is served only when it was waited for and is ready, or when
//! the driver has woken it: a wake that is forgotten shows as a connection that hangs. Time passes
//! only when the test lets it. The engine is checked after every step.

use std::collections::VecDeque;
use std::sync::Arc;

use pgweir_engine::{CatalogueRows, ClientId, Endpoint, Event, Loud, Time};
use pgweir_proxy::{Driver, Handover, Interest, Piece, Request, Transport};

use crate::line::Line;
use crate::messages::{done, is_names_question, is_room_question, ready, room};

/// More rounds than any test needs to come to rest.
const ROUNDS: usize = 10_000;

/// A driver, and who is at the other end of its connections.
pub(crate) struct World {
    pub(crate) driver: Driver<Line>,
    /// Microseconds.
    pub(crate) now: u64,
    pub(crate) unchecked: bool,
    /// The turn is not ended by itself: something else that is ready comes first.
    pub(crate) turn_goes_on: bool,
    pub(crate) tasks: Vec<Task>,
    pub(crate) attempts: VecDeque<Endpoint>,
    pub(crate) cancels: VecDeque<Endpoint>,
    pub(crate) commands: Vec<(ClientId, Box<[u8]>)>,
    pub(crate) log: Vec<Event>,
    /// The loud names of every database; `None`: the test says them.
    pub(crate) loud: Option<Arc<Loud>>,
    /// What servers have said of their catalogues, and is not judged yet.
    pub(crate) catalogues: VecDeque<CatalogueRows>,
    /// Clients for other workers, that none of them has been given.
    pub(crate) departures: Vec<Handover<Line>>,
    /// Other workers are to be nudged.
    pub(crate) nudges: bool,
    /// The types of the first messages of what the last turn wrote together.
    pub(crate) written_together: Vec<u8>,
    /// Servers that have let us in.
    pub(crate) servers: i32,
    /// Whether servers say by themselves what they have room for.
    pub(crate) tells_room: bool,
    /// Whether servers say by themselves what there is in their catalogues.
    pub(crate) tells_names: bool,
    /// How often one was asked that and has said it by itself.
    pub(crate) rooms_told: usize,
}

/// What happens to a driver, whatever it is.
type Happening<'a> = Box<dyn FnOnce(&mut Driver<Line>, Time) + 'a>;

/// Serves one connection, as a worker's task does.
pub(crate) struct Task {
    pub(crate) endpoint: Endpoint,
    pub(crate) line: Line,
    /// What it waited for when it looked last.
    pub(crate) awaited: Interest,
    /// Another worker serves it now.
    pub(crate) moved: bool,
}

impl World {
    /// Something happens.
    pub(crate) fn step<R>(&mut self, event: impl FnOnce(&mut Driver<Line>, Time) -> R) -> R {
        self.now += 1;
        let result = event(&mut self.driver, Time(self.now));
        if !self.unchecked {
            self.driver.engine().check();
            assert_eq!(self.driver.excess(), None, "memory is bounded");
        }
        for request in self.driver.take_requests() {
            match request {
                Request::Connect(endpoint @ Endpoint::Server(_), _) => {
                    self.attempts.push_back(endpoint);
                }
                Request::Connect(endpoint, _) => self.cancels.push_back(endpoint),
                Request::Console(client, text) => self.commands.push((client, text)),
                Request::Log(event) => self.log.push(event),
                Request::JudgeCatalogue(rows) => self.catalogues.push_back(*rows),
                Request::HandOver(handover) => {
                    let own = |task: &&mut Task| task.line.is(&handover.io);
                    self.tasks.iter_mut().filter(own).for_each(|task| task.moved = true);
                    self.departures.push(*handover);
                }
                Request::Nudge => self.nudges = true,
            }
        }
        if let Some(loud) = self.loud.clone()
            && let Some(rows) = self.catalogues.pop_front()
        {
            self.judge_catalogue(&rows, Ok(loud));
        }
        result
    }

    /// A catalogue is judged, or why it is not.
    pub(crate) fn judge_catalogue(
        &mut self,
        rows: &CatalogueRows,
        read: Result<Arc<Loud>, String>,
    ) {
        let answer = |driver: &mut Driver<Line>, now| {
            driver.catalogue_read(now, rows.database(), read);
        };
        self.step(Box::new(answer) as Happening<'_>);
    }

    /// Serves every connection until none is ready.
    pub(crate) fn settle(&mut self) {
        for _ in 0..ROUNDS {
            let mut idle = true;
            for at in 0..self.tasks.len() {
                idle &= !self.serve(at) && !self.tell_room(at) && !self.tell_names(at);
            }
            self.tasks.retain(|task| !task.moved && !task.line.is_let_go());
            if self.driver.is_unfinished() && !self.turn_goes_on {
                let mut written = Vec::new();
                self.step(|driver, now| {
                    driver.finish(now, |pieces| {
                        written.extend(pieces.iter().map(|piece| piece.bytes[0]));
                        write_each(pieces);
                    });
                });
                if !written.is_empty() {
                    self.written_together = written;
                }
            } else if idle {
                return;
            }
        }
        panic!("the driver does not come to rest");
    }

    /// A server that is asked what it has room for says so. Says whether it was asked.
    fn tell_room(&mut self, at: usize) -> bool {
        let Task { endpoint, ref line, .. } = self.tasks[at];
        let is_server = matches!(endpoint, Endpoint::Server(_));
        let asked = self.tells_room && is_server && line.take_if(is_room_question);
        if asked {
            line.put(&[room(100, 3), done(), ready()].concat());
            self.rooms_told += 1;
        }
        asked
    }

    /// A server that is asked for its catalogue has an empty one. Says whether it was asked.
    fn tell_names(&mut self, at: usize) -> bool {
        let Task { endpoint, ref line, .. } = self.tasks[at];
        let is_server = matches!(endpoint, Endpoint::Server(_));
        let asked = self.tells_names && is_server && line.take_last_if(is_names_question);
        if asked {
            line.put(&[done(), ready()].concat());
        }
        asked
    }

    /// Serves a connection if it is ready for what it waits for, or woken. Says whether it was.
    fn serve(&mut self, at: usize) -> bool {
        let Task { endpoint, ref line, awaited, moved } = self.tasks[at];
        let line = line.clone();
        if moved {
            return false;
        }
        let ready = (awaited.read && line.is_readable())
            || (awaited.write && line.is_writable())
            || (awaited.reset && line.is_broken());
        if !line.take_wake() && !ready {
            return false;
        }
        let Some(interest) = self.driver.interest(endpoint) else {
            line.let_go();
            return true;
        };
        let mut served = false;
        if interest.write && line.is_writable() {
            self.step(|driver, now| driver.writable(now, endpoint));
            served = true;
        }
        if interest.read && line.is_readable() {
            self.step(|driver, now| driver.readable(now, endpoint));
            served = true;
        }
        if interest.reset && line.is_broken() {
            self.step(|driver, now| driver.reset(now, endpoint, "connection reset by peer"));
            served = true;
        }
        if served {
            // As on a worker it looks again before it waits.
            line.wake();
        }
        self.tasks[at].awaited = interest;
        true
    }
}

fn write_each(pieces: &mut [Piece<'_, Line>]) {
    pieces.iter_mut().for_each(Piece::write);
}

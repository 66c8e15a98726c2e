use pgweir_engine::{ClientId, Endpoint, HandedOver, Time};

use crate::driver::{Driver, Request};
use crate::link::Link;
use crate::transport::Transport;

/// A client that goes on at another worker.
#[derive(Debug)]
pub struct Handover<T> {
    /// Which.
    pub worker: usize,
    /// Its connection.
    pub io: T,
    /// What that worker's engine has to know.
    pub handed: HandedOver,
    /// What was read from it and not consumed.
    pub input: Vec<u8>,
}

impl<T: Transport> Driver<T> {
    /// A client comes from another worker.
    pub fn handed_over(&mut self, io: T, handed: HandedOver, input: Vec<u8>) -> Endpoint {
        let id = self.engine.client_handed_over(handed);
        let endpoint = Endpoint::Client(id);
        let mut link = Link::new(io);
        link.retained = input;
        self.clients.insert(endpoint, link);
        self.resumes.push_back(id);
        endpoint
    }

    /// A client that was handed over has not arrived anywhere.
    pub fn lost_on_the_way(&mut self) {
        self.engine.client_lost_on_the_way();
    }

    /// See [`Engine::nudged`].
    pub fn nudged(&mut self, now: Time) {
        self.engine.nudged(now);
        self.settle(now);
    }

    /// A client goes on at another worker, with all of its input that was not consumed.
    pub(super) fn let_go(&mut self, client: ClientId, worker: usize, handed: HandedOver) {
        let Some(mut link) = self.clients.remove(Endpoint::Client(client)) else { return };
        // Its output so far is one byte, the answer to SSLRequest. If there is no room for that,
        // it is no client of PostgreSQL's.
        let flushed = link.flush().is_ok() && link.unsent() == 0;
        link.io.wake();
        if flushed {
            let Link { io, retained: input, .. } = link;
            let handover = Handover { worker, io, handed, input };
            self.requests.push(Request::HandOver(Box::new(handover)));
        } else {
            // No mark: LostOnTheWay says so.
            self.engine.client_lost_on_the_way();
        }
    }
}

use std::time::Duration;

use pgweir_engine::{Endpoint, Mark, Time};

use crate::driver::Driver;
use crate::link::Link;
use crate::transport::Transport;

/// How long a peer may read nothing of our last words.
const LINGER: Duration = Duration::from_secs(10);

/// The same for one whose stream was read up to its end and is owed what it asked for. It has the
/// time that PostgreSQL would give it, until the kernel has given it up: as long as TCP itself
/// would be patient, unless the process is to end. Who has said Terminate is not among them: behind
/// that its stream is not read any more.
const LINGER_READING: Duration = Duration::from_secs(15 * 60);

/// A connection with last words that its peer has not read yet.
pub(super) struct Lingering<T> {
    pub(super) link: Link<T>,
    /// The first tick that found it so, and with nothing read since the one before.
    since: Option<Time>,
}

impl<T: Transport> Driver<T> {
    /// Closes a connection, now or when its peer has read what it was sent.
    pub(super) fn close(&mut self, endpoint: Endpoint) {
        if let Some(mut link) = self.links(endpoint).remove(endpoint) {
            if link.flush().is_ok() && link.unsent() > 0 {
                Mark::Lingers.hit();
                link.io.wake();
                self.lingering.insert(endpoint, Lingering { link, since: None });
                return;
            }
            Mark::LastWordsUnheard.hit_if(link.unsent() > 0);
            finish(&link.io);
        }
        self.engine.closed(endpoint);
    }

    /// Writes to a connection that lingers, if it is one.
    pub(super) fn speak_last(&mut self, endpoint: Endpoint) -> bool {
        let Some(Lingering { link, since }) = self.lingering.get_mut(&endpoint) else {
            return false;
        };
        let before = link.unsent();
        if link.flush().is_err() || link.unsent() == 0 {
            let is_broken = link.unsent() > 0;
            Mark::LingererReadAll.hit_if(!is_broken);
            Mark::LingererBroken.hit_if(is_broken);
            finish(&link.io);
            self.lingering.remove(&endpoint);
            self.engine.closed(endpoint);
        } else if link.unsent() < before {
            Mark::LingererReadSome.hit();
            *since = None;
        }
        true
    }

    /// Closes those that have read nothing for too long.
    pub(super) fn sweep_lingering(&mut self, now: Time) {
        let Self { lingering, engine, draining, .. } = self;
        lingering.retain(|endpoint, Lingering { link, since }| {
            let since = *since.get_or_insert(now);
            let patient = link.ended && !*draining;
            Mark::LingererWaitedFor.hit_if(patient && now - since > LINGER);
            let lingers = now - since <= if patient { LINGER_READING } else { LINGER };
            if !lingers {
                Mark::LingererGivenUp.hit();
                link.io.wake();
                engine.closed(*endpoint);
            }
            lingers
        });
    }
}

fn finish(io: &impl Transport) {
    io.shutdown();
    io.wake();
}

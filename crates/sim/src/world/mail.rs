//! What workers tell each other, and clients that go from one to another.

use std::sync::Arc;

use pgweir_engine::{CatalogueRows, Endpoint, Time};
use pgweir_proxy::{Handover, Request};

use super::wires::Journey;
use super::{Occasion, World};
use crate::invariants::Invariant;
use crate::network::{Stream, WireId};
use crate::process::{News, Place};
use crate::trace::Who;

/// How long mail may be unread.
pub(super) const MAIL_US: u64 = 100_000;

impl World {
    /// Workers have got mail, and will read it.
    pub(super) fn post(&mut self, workers: Vec<usize>) {
        for worker in workers {
            let dice = &mut self.workers[worker];
            let most = if dice.chance(self.site.faults.worker_late) { MAIL_US } else { 50 };
            let delay = dice.magnitude(most);
            self.schedule(self.now() + delay, Occasion::Mail(worker));
        }
    }

    pub(super) fn read_mail(&mut self, worker: usize) {
        let now = self.now();
        let counts = self.server_counts();
        let news = self.process.read_mail(Time(now), worker);
        self.site.trace.note("pgweir", || match news {
            Some(News::Arrival(wire, place)) => {
                format!("worker {worker} takes w{} over as {:?}", wire.0, place.endpoint)
            }
            Some(other) => format!("worker {worker} reads its mail: {other:?}"),
            None => format!("worker {worker} finds none"),
        });
        match news {
            Some(News::Arrival(wire, place)) => self.arrived(wire, place),
            Some(News::Nudge) => self.note_moved(worker),
            Some(News::Reload) => {
                self.site.rules.read_by(worker, now);
                self.reloaded_at = Some(now);
                self.note_unheard(&counts);
            }
            Some(News::Catalogue | News::ConsoleReply | News::Ending) => {}
            Some(News::Ended) if worker == 0 => {
                let others = self.process.shut_down_others();
                self.post(others);
            }
            Some(News::Ended) => {}
            // Letters are the simulator's own here; those between threads are tested as such.
            None => unreachable!("each letter is posted with its occasion"),
        }
    }

    /// A worker has a catalogue judged, and will be told of it.
    pub(super) fn judge_catalogue(&mut self, worker: usize, rows: &CatalogueRows) {
        let database = rows.database().clone();
        let readings = self.readings.entry((worker, database.clone())).or_default();
        *readings += 1;
        // What is known once stays known, where the pool stays.
        let stays = database.name.starts_with("db");
        let fails = *readings > 1 && stays && self.workers[worker].chance(0.2);
        let read = match fails {
            true => {
                self.site.ledger.schema.is_not_read(self.site.trace.now);
                Err("nobody knows why".to_owned())
            }
            false => Ok(Arc::new(rows.loud())),
        };
        let workers = self.process.tell_catalogue(worker, database, read);
        self.post(workers);
    }

    /// A client leaves a worker for another.
    pub(super) fn hand_over(&mut self, handover: Handover<Stream>) {
        let (number, worker) = (handover.io.wire(), handover.worker);
        self.site.trace.note(Who('w', number.0), || format!("goes to worker {worker}"));
        let wire = &mut self.wires[number.0];
        wire.place = None;
        let counts = &mut self.site.ledger.counts;
        match &mut wire.guest {
            Some(guest) if guest.journey == Journey::None => {
                guest.journey = Journey::UnderWay;
                counts.handovers += 1;
            }
            Some(_) => self
                .site
                .ledger
                .fail(Invariant::HandedOverOnce, format!("{number:?} is handed over again")),
            None => self.site.ledger.fail(
                Invariant::HandedOverOnce,
                format!("{number:?} is handed over and no client"),
            ),
        }
        self.process.send_on(handover);
        self.post(vec![worker]);
    }

    /// A worker's turn ends: whoever has come to it was heard.
    pub(super) fn finish(&mut self, worker: usize) {
        self.finishing[worker] = false;
        let mut newcomers = std::mem::take(&mut self.newcomers[worker]);
        // A tick may have sent one away before, because its login takes too long.
        newcomers.retain(|wire| self.is_attended(*wire));
        self.process.finish(Time(self.now()), worker);
        for wire in newcomers {
            self.heard(wire);
        }
    }

    /// What a client had sent before it was handed over, if it was, has been read again.
    pub(super) fn heard(&mut self, wire: WireId) {
        if let Some(guest) = &mut self.wires[wire.0].guest
            && guest.journey == Journey::Arrived
        {
            guest.journey = Journey::Over;
        }
    }

    /// A client goes on at another worker.
    fn arrived(&mut self, wire: WireId, place: Place) {
        let its = &mut self.wires[wire.0];
        its.place = Some(place);
        if let Some(guest) = &mut its.guest {
            guest.journey = Journey::Arrived;
        }
        // Who asks for a cancel has lost nothing.
        let is_client = its.guest.as_ref().is_some_and(|guest| guest.pool.is_some());
        if is_client && self.process.has_ended(place.worker) {
            let text = format!("w{} comes to a worker that has ended", wire.0);
            self.site.ledger.fail(Invariant::EndIsSaid, text);
        }
        self.newcomers[place.worker].push(wire);
        // What has come in the meantime waits.
        self.wake_driver(wire);
    }

    /// What a worker opens when it is nudged another one has left to it.
    fn note_moved(&mut self, worker: usize) {
        for request in self.process.take_requests(worker) {
            let opens = matches!(request, Request::Connect(Endpoint::Server(_), _));
            self.site.ledger.counts.moved += u64::from(opens);
            self.serve(worker, request);
        }
    }
}

//! What a client is told that has waited for a server in vain.

use std::fmt;
use std::time::Duration;

use pgweir_config::Limit;
use pgweir_wire::backend::Report;

use crate::Engine;
use crate::action::{Action, Address, ClientId, Event};
use crate::client::Leg;
use crate::errors::{BUSY, NO_SERVER, UNREACHABLE};
use crate::marks::Mark;
use crate::pool::PoolId;
use crate::refusals::Refusals;
use crate::shares::Of;
use crate::time::Time;

/// What helps where no limit keeps servers away.
const NO_LIMIT: &str = "Shorten transactions, or raise query_wait_timeout.";

impl Engine {
    /// A client has waited for so long, and waits no more: it is told, and so is the operator.
    pub(crate) fn wait_over(&mut self, now: Time, id: PoolId, client: ClientId, waited: Duration) {
        let (lack, report) = self.waited_in_vain(now, id, client, waited);
        // That a login is refused is told of anyway.
        if self.clients[client].phase.is_greeted() {
            let client = self.member.client_number(client);
            let vain = self.pools[id].vain_waits.of(lack);
            vain.last = Some((client, report.cause()));
            let times = vain.refusals.note(now);
            self.tell_vain_waits(id, lack, times);
        }
        self.unit_refused(now, client, report);
    }

    /// Tells the operator of those that were not told of when they were over.
    pub(crate) fn sweep_vain_waits(&mut self, now: Time, id: PoolId) {
        for lack in [Lack::OfRoom, Lack::OfServers] {
            let times = self.pools[id].vain_waits.of(lack).refusals.due(now);
            Mark::WaitsOverTold.hit_if(times.is_some());
            self.tell_vain_waits(id, lack, times);
        }
    }

    fn tell_vain_waits(&mut self, id: PoolId, lack: Lack, times: Option<u64>) {
        let Some(times) = times else { return };
        let pool = &mut self.pools[id];
        if let Some((client, cause)) = pool.vain_waits.of(lack).last.take() {
            let pool = pool.spec.name();
            self.actions.push(Action::Log(Event::WaitOver { client, pool, cause, times }));
        }
    }

    /// Answers the client's next unit with an error instead of running it.
    pub(crate) fn refuse_unit(&mut self, now: Time, id: ClientId, report: Report) {
        self.leave_queue(now, id);
        let its = &mut self.clients[id];
        its.asked = None;
        its.holding = false;
        its.held_since = None;
        its.cancelled = None;
        // What was made again for it is not for the next one.
        its.unnamed_stale = false;
        its.refusal = Some(Box::new(report));
        self.resume(id);
    }

    fn waited_in_vain(
        &self,
        now: Time,
        id: PoolId,
        client: ClientId,
        waited: Duration,
    ) -> (Lack, Report) {
        let pool = &self.pools[id];
        let name = pool.spec.name();
        let seconds = waited.as_secs_f64();
        let others = match self.clients[client].leg {
            Leg::Waiting(_) => pool.waiting - 1,
            // It waits for one that is made or set for it, and is not in the queue.
            Leg::None | Leg::Preparing(_) | Leg::Held(_) | Leg::Granted(_) | Leg::Pipelined(_) => {
                pool.waiting
            }
        };
        let mut detail =
            format!("Waited {seconds:.1} s for a server of pool \"{name}\"; {others} others wait.");
        if let Some(cause) = self.why_none(now, id, waited) {
            Mark::WaitedForNone.hit();
            let report = NO_SERVER.report(&[&name]).detail(format!("{cause} {detail}"));
            return (Lack::OfServers, report);
        }
        let bound = self.bound(id);
        Mark::WaitedForAttempt.hit_if(bound.is_none());
        if let Some(bound) = &bound {
            detail += &format!(" {bound}");
        }
        match &pool.last_failure {
            Some(failure) => {
                detail += &format!(" Another connection was refused: {}", words_of(failure));
            }
            None if pool.opening > 0 => detail += " Another connection is being made.",
            None => {}
        }
        let report = match bound {
            Some(bound) => BUSY.report(&[&name, &bound.setting()]),
            None => BUSY.report(&[&name, &""]).hint(NO_LIMIT),
        };
        (Lack::OfRoom, report.detail(detail))
    }

    /// Why a pool has had no server for so long, if it has none and others do not take its place.
    fn why_none(&self, now: Time, id: PoolId, waited: Duration) -> Option<String> {
        if !self.has_no_server(id) {
            return None;
        }
        let pool = &self.pools[id];
        if let Some(failure) = &pool.last_failure {
            // It may have failed long ago, and what keeps a server away now is that others have
            // all that there may be.
            let others_have_all = pool.opening == 0 && self.bound(id).is_some();
            Mark::WaitedBehindOthers.hit_if(others_have_all);
            return (!others_have_all).then(|| words_of(failure));
        }
        // One that was asked a moment ago is not to blame for the wait.
        let silent = self.openings(id).any(|(_, server)| now - server.since >= waited);
        Mark::WaitedForSilent.hit_if(silent);
        silent.then(|| format!("{} has not answered yet.", pool.spec.address))
    }

    /// What keeps a pool from one server more; `None`: only that an attempt takes its time, or has
    /// failed.
    fn bound(&self, id: PoolId) -> Option<Bound<'_>> {
        let pool = &self.pools[id];
        if pool.total - pool.opening >= pool.most() {
            Mark::WaitedForSize.hit();
            let size = pool.spec.size;
            return Some(match pool.most() - pool.listeners() - size {
                0 => Bound::Size(size),
                reserve => Bound::SizeAndReserve(size, reserve),
            });
        }
        let mut shares = pool.shares.iter().map(|share| &self.shares[*share]);
        let full = shares.find(|share| share.count.room() == 0)?;
        let most = full.count.most()?;
        Mark::WaitedForShare.hit();
        Some(match (&full.of, self.plan.server_limit) {
            (Of::Server(address), Limit::OfRoom { .. }) => Bound::OfRoom(address, most),
            (Of::Server(address), Limit::None | Limit::Set(_)) => Bound::OfServer(address, most),
            (Of::Database(name), _) => Bound::OfDatabase(name, most),
            (Of::User(name), _) => Bound::OfUser(name, most),
        })
    }
}

/// What clients of a pool have waited for in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lack {
    /// One of its servers, which work for others.
    OfRoom,
    /// A server at all.
    OfServers,
}

/// Clients of a pool that have waited in vain, and what the log is still to be told of them.
#[derive(Debug, Default)]
pub(crate) struct VainWaits {
    of_room: Vain,
    of_servers: Vain,
}

impl VainWaits {
    fn of(&mut self, lack: Lack) -> &mut Vain {
        match lack {
            Lack::OfRoom => &mut self.of_room,
            Lack::OfServers => &mut self.of_servers,
        }
    }
}

/// Those for one cause, and the number of the last of them with its words.
#[derive(Debug, Default)]
struct Vain {
    refusals: Refusals,
    last: Option<(i32, String)>,
}

/// Why there is no connection, inside a DETAIL: that the server cannot be reached is said there.
fn words_of(failure: &Report) -> String {
    match &failure.detail {
        Some(detail) if failure.message == UNREACHABLE.report(&[]).message => detail.clone(),
        _ => failure.cause(),
    }
}

/// What keeps a pool from one server more.
enum Bound<'a> {
    Size(usize),
    SizeAndReserve(usize, usize),
    /// `max_server_connections`.
    OfServer(&'a Address, usize),
    /// The same, where it is left to what the server says.
    OfRoom(&'a Address, usize),
    OfDatabase(&'a str, usize),
    OfUser(&'a str, usize),
}

impl Bound<'_> {
    /// The setting that moves it.
    fn setting(&self) -> &'static str {
        match self {
            Self::Size(_) => "pool_size",
            Self::SizeAndReserve(..) => "pool_size or reserve_pool_size",
            Self::OfServer(..) | Self::OfRoom(..) => "max_server_connections",
            Self::OfDatabase(..) => "max_db_connections",
            Self::OfUser(..) => "max_user_connections",
        }
    }
}

/// A sentence for a DETAIL.
impl fmt::Display for Bound<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size(most) => write!(f, "pool_size is {most}."),
            Self::SizeAndReserve(size, reserve) => {
                write!(f, "pool_size is {size}, reserve_pool_size {reserve}.")
            }
            Self::OfServer(address, most) => {
                write!(f, "max_server_connections is {most} for all pools on {address}.")
            }
            Self::OfRoom(address, most) => {
                write!(f, "{address} has room for {most}, by its own max_connections.")
            }
            Self::OfDatabase(name, most) => {
                write!(f, "max_db_connections is {most} for database \"{name}\".")
            }
            Self::OfUser(name, most) => {
                write!(f, "max_user_connections is {most} for user \"{name}\".")
            }
        }
    }
}

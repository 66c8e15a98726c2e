//! What a client is told that has waited for a server in vain.

use std::time::Duration;

use pgweir_wire::backend::Report;

use crate::Engine;
use crate::errors::{BUSY, NO_SERVER};
use crate::pool::{Pool, PoolId};

impl Engine {
    /// The error of a unit that has waited for so long, and waits no more.
    pub(crate) fn waited_in_vain(&self, id: PoolId, waited: Duration) -> Report {
        let pool = &self.pools[id];
        let name = pool.spec.name();
        let seconds = waited.as_secs_f64();
        let others = pool.waiting.saturating_sub(1);
        let wait = format!("Waited {seconds:.1} s; {others} others wait.");
        match why_none(pool) {
            Some(cause) => NO_SERVER.report(&[&name]).detail(format!("{cause} {wait}")),
            None => match &pool.last_failure {
                Some(failure) => BUSY
                    .report(&[&name])
                    .detail(format!("{wait} Another connection was refused: {}", failure.cause()))
                    .hint("Shorten transactions, or raise query_wait_timeout."),
                None => BUSY.report(&[&name]).detail(wait),
            },
        }
    }
}

/// Why a pool has no server at all, if it has none and others do not take its place.
fn why_none(pool: &Pool) -> Option<String> {
    if !pool.has_no_server() {
        return None;
    }
    match &pool.last_failure {
        Some(failure) => Some(failure.cause()),
        None if pool.opening > 0 => Some(format!("{} has not answered yet.", pool.spec.address)),
        None => None,
    }
}

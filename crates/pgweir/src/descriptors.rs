//! File descriptors: every client and every server is one, and the usual soft limit is 1,024.
//!
//! Clients must not take those that servers need: without `max_clients` there are as many clients
//! as leave room for all servers that the configuration can open.

use std::io;

use pgweir_config::{Config, Explained};
use pgweir_engine::{CANCELLERS, NEWCOMERS};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::exporter::READERS;
use crate::run::worker_threads;

/// What the process needs for itself: the runtime, listeners, the log, a file that is read again, a
/// cancel or two of its own; those who read metrics; those who may come beyond `max_clients`; and
/// for each who waits for a cancel the connection that carries it.
const OWN: u64 = 24 + READERS as u64 + NEWCOMERS as u64 + 2 * CANCELLERS as u64;

/// What each worker beyond the first needs: its runtime, its mail, its look at silent peers.
const OF_WORKER: u64 = 5;

/// Most clients where the file says nothing.
const CLIENTS_MAX: u64 = 100_000;

/// Raises the soft limit to the hard one.
pub(crate) fn raise_limit() -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

/// Sets `max_clients` where the file does not; an error with all figures, if the configuration
/// promises more connections than there can be.
pub(crate) fn settle(config: &mut Config, explained: &mut [Explained]) -> Result<(), String> {
    let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let most = most_clients(config, limit)?;
    config.general.max_clients.get_or_insert(most);
    for one in explained.iter_mut().filter(|one| one.key == "general.max_clients") {
        one.value.get_or_insert_with(|| most.to_string());
        one.default = Some(most.to_string());
    }
    Ok(())
}

/// How many clients there may be within so many descriptors.
fn most_clients(config: &Config, limit: u64) -> Result<u32, String> {
    let own = OWN + OF_WORKER * (worker_threads(&config.general) as u64 - 1);
    let servers: Option<u64> =
        config.demands().iter().map(|demand| demand.most(None).connections).sum();
    // Where nothing limits servers they are promised no descriptor but one.
    let promised = servers.unwrap_or(1);
    let clients = u64::from(config.general.max_clients.unwrap_or(1));
    let needed = clients + promised + own;
    if needed <= limit {
        let left = limit - own;
        let most = servers.map_or(left / 2, |servers| left - servers).min(CLIENTS_MAX);
        return Ok(most as u32);
    }
    let of_clients = match config.general.max_clients {
        Some(_) => format!("max_clients ({clients})"),
        None => "one client".to_owned(),
    };
    Err(format!(
        "{of_clients}, up to {promised} server connections and {own} of its own take {needed} \
         file descriptors, and there are {limit}: raise the hard limit (ulimit -Hn, LimitNOFILE), \
         or lower max_clients, pool_size or max_server_connections"
    ))
}

#[cfg(test)]
mod tests;

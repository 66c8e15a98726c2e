//! File descriptors: every client and every server is one, and the usual soft limit is 1,024.

use std::io;

use pgweir_config::Config;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the process needs for itself: the runtime, listeners, the log, a cancel or two.
const OWN: u64 = 16;

/// Raises the soft limit to the hard one.
pub(crate) fn raise_limit() -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}

/// An error with all figures, if a configuration promises more connections than there can be.
/// Without `max_clients` it promises none to clients.
pub(crate) fn check(config: &Config) -> Result<(), String> {
    match getrlimit(Resource::Nofile).maximum {
        Some(limit) => fits(config, limit),
        None => Ok(()),
    }
}

fn fits(config: &Config, limit: u64) -> Result<(), String> {
    let clients = u64::from(config.general.max_clients.unwrap_or(1));
    // Servers that nothing limits are promised no descriptor but one.
    let servers: u64 =
        config.demands().iter().map(|demand| demand.most(None).connections.unwrap_or(1)).sum();
    let needed = clients + servers + OWN;
    if needed <= limit {
        return Ok(());
    }
    let of_clients = match config.general.max_clients {
        Some(_) => format!("max_clients ({clients})"),
        None => "one client".to_owned(),
    };
    Err(format!(
        "{of_clients} and up to {servers} server connections take {needed} file descriptors, and \
         there are {limit}: raise the hard limit (ulimit -Hn, LimitNOFILE), or lower max_clients, \
         pool_size or max_server_connections"
    ))
}

#[cfg(test)]
mod tests;

//! `pgweir check --connect`: whether the servers of a configuration let it in, and whether they
//! have room for all that it may open.

use std::collections::BTreeMap;
use std::io::{self, Write};

use pgweir_auth::{Verifier, VerifierKind};
use pgweir_config::{ANY_DATABASE, Config, Secret, address};
use tokio::runtime::Builder;

use crate::ask::Login;
use crate::demand::in_words;

/// Writes a line about each login and about each server. `true`: all is well.
pub(crate) fn run(config: &Config, out: &mut impl Write) -> io::Result<bool> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut rooms = BTreeMap::new();
    let mut well = true;
    for login in logins(config) {
        let Login { host, port, database, user, password, .. } = login;
        let place = format!("{} {database} as {user}", address(host, port));
        if is_md5_hash(password) {
            writeln!(out, "{place}: not tried, the password is an md5 hash: pgweir can use it")?;
            continue;
        }
        match runtime.block_on(login.ask()) {
            Ok(told) => {
                rooms.entry((host, port)).or_insert(told.room);
                writeln!(out, "{place}: ok, PostgreSQL {}", told.version)?;
            }
            Err(error) => {
                well = false;
                writeln!(out, "{place}: {error}")?;
            }
        }
    }
    for demand in config.demands() {
        let room = rooms.get(&(demand.host.as_str(), demand.port)).copied();
        let fits = room.is_none_or(|room| demand.fits(room));
        let warning = if fits { "" } else { "warning: " };
        well &= fits;
        writeln!(out, "{warning}{}", in_words(&demand, room))?;
    }
    Ok(well)
}

/// Every login that the configuration makes or names, each once, in its order.
fn logins(config: &Config) -> Vec<Login<'_>> {
    let mut logins = Vec::new();
    for pool in &config.pools {
        for (shard, user) in pairs(&pool.shards, &pool.users) {
            for server in &shard.servers {
                let login = Login {
                    host: &server.host,
                    port: server.port,
                    database: match shard.database.as_str() {
                        // Any will do to see whether the server is there.
                        ANY_DATABASE => "postgres",
                        name => name,
                    },
                    user: &user.server_username,
                    password: &user.server_password,
                    time: user.connect_timeout,
                };
                if !logins.contains(&login) {
                    logins.push(login);
                }
            }
        }
    }
    logins
}

fn pairs<'a, A, B>(outer: &'a [A], inner: &'a [B]) -> impl Iterator<Item = (&'a A, &'a B)> {
    outer.iter().flat_map(move |a| inner.iter().map(move |b| (a, b)))
}

/// PostgreSQL's md5 form answers a server that asks for MD5, but only where the protocol's answer
/// is made of it; a client library would take it for the password itself.
fn is_md5_hash(password: &Secret) -> bool {
    Verifier::parse(password.expose()).is_ok_and(|it| it.kind() == VerifierKind::Md5)
}

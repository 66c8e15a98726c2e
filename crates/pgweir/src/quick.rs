//! `pgweir postgres://…`: a server to try pgweir with, and no file.

use std::error::Error;
use std::io::{self, Write};
use std::net::TcpListener;
use std::path::Path;

use pgweir_config::{CONSOLE_DATABASES, Config, Url, address};

use crate::cli::Listen;
use crate::draft;
use crate::file::{self, Loaded};

/// The configuration that a URL stands for: one pool, one user, our own dialect's defaults.
pub(crate) fn config(url: &Url, listen: &Listen) -> Result<Loaded, String> {
    if CONSOLE_DATABASES.contains(&url.database.as_str()) {
        return Err(format!("{url}: this database is the console; expected another one"));
    }
    let pool = draft::pool(url, &url.database, "", "primary");
    let text = format!("config_version = 1\n{}{pool}", draft::general(url, listen));
    let name = url.to_string();
    file::parse(&text, Path::new(&name)).map_err(|errors| {
        let of_trust = errors.problems().iter().any(|problem| problem.key == "general.auth_type");
        match of_trust {
            true => format!(
                "{name} has no password, so everybody who can reach {} would be let in: expected \
                 a password, in the URL or in PGPASSWORD, or --listen with a loopback address",
                listen.host
            ),
            false => errors.to_string(),
        }
    })
}

/// Says how to connect to what is about to start; an error if its port is taken.
pub(crate) fn invite(config: &Config) -> Result<(), Box<dyn Error>> {
    let (host, port) = (config.general.host.as_str(), config.general.port);
    // Only a look: the worker takes the port itself, as with a file. But here nobody has chosen it,
    // so that the error has to say how to choose another.
    if let Err(error) = TcpListener::bind((host, port)) {
        let place = address(host, port);
        let message = format!("cannot listen on {place}: {error}; --listen HOST:PORT says where");
        return Err(message.into());
    }
    let host = match host {
        "0.0.0.0" => "127.0.0.1",
        "::" => "::1",
        host => host,
    };
    let users = config.pools.iter().flat_map(|pool| pool.users.iter().map(move |it| (pool, it)));
    for (pool, user) in users {
        let port = port.to_string();
        let words = ["psql", "-h", host, "-p", &port, "-U", &user.username, &pool.name].map(shell);
        // Nobody has to read it.
        let _ = writeln!(io::stdout(), "To try it:  {}", words.join(" "));
    }
    Ok(())
}

/// A word as a shell has to be given it.
fn shell(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_./:@%+,".contains(&b);
    match !word.is_empty() && word.bytes().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, Subcommand};

/// A PostgreSQL connection pooler.
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// The configuration, a TOML file, or the URL of a server to try without one: runs it in the
    /// foreground
    #[arg(value_name = "CONFIG|URL")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen when started with a URL [default: 127.0.0.1:6432]
    #[arg(long, value_name = "HOST:PORT", requires = "config")]
    pub(crate) listen: Option<Listen>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(Check),
    Init(Init),
}

/// Says whether a configuration can be used, and runs nothing
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct Check {
    /// Print every value that holds, and the line that says so, or that it is a default
    #[arg(long)]
    pub(crate) explain: bool,
    /// Log in to every server, and say whether it has room for the connections of all pools
    #[arg(long)]
    pub(crate) connect: bool,
    /// The configuration, a TOML file
    pub(crate) config: PathBuf,
}

/// Writes a configuration for a server, from what the server says of itself
#[derive(Debug, Args)]
#[command(after_help = INIT_EXAMPLES)]
pub(crate) struct Init {
    /// The server, a database there and its user: postgres://USER[:PASSWORD]@HOST[:PORT]/DATABASE
    ///
    /// PGPASSWORD is the password if the URL has none: other users of the machine can see the
    /// arguments of a command.
    pub(crate) url: String,
    /// Write to this file, with a password for its owner alone, not to standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Replace the file if there is one
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
}

/// A place to listen on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Listen {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Default for Listen {
    fn default() -> Self {
        Self { host: "127.0.0.1".to_owned(), port: 6432 }
    }
}

impl FromStr for Listen {
    type Err = &'static str;

    /// Reads `HOST:PORT`, an IPv6 address in brackets.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected HOST:PORT, such as 127.0.0.1:6432 or [::1]:6432";
        let (host, port) = text.rsplit_once(':').ok_or(EXPECTED)?;
        let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let port = port.parse().ok().filter(|port| *port > 0).ok_or(EXPECTED)?;
        match inner {
            None if host.is_empty() || host.contains(':') => Err(EXPECTED),
            _ => Ok(Self { host: inner.unwrap_or(host).to_owned(), port }),
        }
    }
}

const EXAMPLES: &str = "\
Examples:
  pgweir postgres://app@db.example.com/app    try it without a file; PGPASSWORD is the password
  pgweir init postgres://app@db.example.com/app -o pgweir.toml
  pgweir check --connect pgweir.toml          look for mistakes, and at the servers
  pgweir /etc/pgweir/pgweir.toml              run in the foreground
  kill -HUP PID                               read the file again
  kill -TERM PID                              let clients finish, then end
  kill -QUIT PID                              end at once
  psql -h 127.0.0.1 -p 6432 -U admin pgweir -c 'SHOW POOLS'    the console

A first configuration:
  config_version = 1

  [general]
  host = \"127.0.0.1\"
  port = 6432
  admin_username = \"admin\"
  admin_password = \"change me\"

  [pools.app]
  pool_mode = \"transaction\"

  [pools.app.users.0]
  username = \"app\"
  password = \"secret\"
  pool_size = 10

  [pools.app.shards.0]
  servers = [[\"127.0.0.1\", 5432, \"primary\"]]
  database = \"app\"

It ends with 2 if the configuration or the command line is wrong, and with 1 if something else is.";

const CHECK_EXAMPLES: &str = "\
It ends with 0 if the configuration can be used, with 2 if it is wrong, and with 1 if it promises
more connections than there are file descriptors, or, with --connect, if a server cannot be reached
or has no room for all connections that the pools may open.

Examples:
  pgweir check pgweir.toml
  pgweir check --connect pgweir.toml
  pgweir check --explain pgweir.toml | grep timeout";

const INIT_EXAMPLES: &str = "\
It ends with 1 if the server cannot be asked or the file cannot be written, and with 2 if the URL is
wrong.

Examples:
  pgweir init postgres://app:secret@127.0.0.1:5432/app
  PGPASSWORD=secret pgweir init postgres://app@db.example.com/app -o pgweir.toml
  pgweir init 'postgres://app@[::1]/app?connect_timeout=3' -o pgweir.toml --force";

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use clap::Parser;

/// A PostgreSQL connection pooler.
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// The configuration, a TOML file.
    pub(crate) config: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  pgweir /etc/pgweir/pgweir.toml      run in the foreground
  kill -TERM PID                      let clients finish, then end
  kill -QUIT PID                      end at once
  psql -h 127.0.0.1 -p 6432 -U admin pgweir -c 'SHOW POOLS'

A first configuration:
  [general]
  host = \"127.0.0.1\"
  port = 6432

  [pools.app]
  pool_mode = \"transaction\"

  [pools.app.users.0]
  username = \"app\"
  password = \"secret\"
  pool_size = 10

  [pools.app.shards.0]
  servers = [[\"127.0.0.1\", 5432, \"primary\"]]
  database = \"app\"";

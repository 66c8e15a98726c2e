use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// A PostgreSQL connection pooler.
#[derive(Debug, Parser)]
#[command(version, about, after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// The configuration, a TOML file: runs it in the foreground
    pub(crate) config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Check(Check),
}

/// Says whether a configuration can be used, and runs nothing
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct Check {
    /// Print every value that holds, and the line that says so, or that it is a default
    #[arg(long)]
    pub(crate) explain: bool,
    /// The configuration, a TOML file
    pub(crate) config: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  pgweir /etc/pgweir/pgweir.toml      run in the foreground
  pgweir check pgweir.toml            look for mistakes only
  kill -TERM PID                      let clients finish, then end
  kill -QUIT PID                      end at once
  psql -h 127.0.0.1 -p 6432 -U admin pgweir -c 'SHOW POOLS'

A first configuration:
  config_version = 1

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

const CHECK_EXAMPLES: &str = "\
It ends with 0 if the configuration can be used, with 2 if not.

Examples:
  pgweir check pgweir.toml
  pgweir check --explain pgweir.toml | grep timeout";

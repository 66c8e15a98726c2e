//! `pgweir init postgres://…`: a configuration to start from, with what the server says of itself.

use std::fs::Permissions;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::ExitCode;

use pgweir_config::{CONSOLE_DATABASES, Config, Room, Secret, Url, address};
use tokio::runtime::Builder;

use crate::ask::{Login, Told};
use crate::cli::{Init, Listen};
use crate::{UNUSABLE, draft, quick, url};

/// Asks the server and writes the file.
pub(crate) fn run(init: &Init) -> ExitCode {
    let read = url::read(&init.url).and_then(|url| {
        let config = quick::config(&url, &Listen::default())?.config;
        Ok((url, config))
    });
    let (url, config) = match read {
        Ok(read) => read,
        Err(complaint) => {
            eprintln!("{complaint}");
            return ExitCode::from(UNUSABLE);
        }
    };
    match write(init, &url, &config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(complaint) => {
            eprintln!("{complaint}");
            ExitCode::FAILURE
        }
    }
}

/// `usual` is the configuration with our own dialect's defaults.
fn write(init: &Init, url: &Url, usual: &Config) -> Result<(), String> {
    if let Some(path) = &init.output
        && !init.force
        && path.exists()
    {
        return Err(exists(path));
    }
    let told = ask(url, usual).map_err(|error| format!("{url}: {error}"))?;
    let text = text(url, usual, &told);
    // Nobody shall start from a file that cannot be used.
    let name = init.output.as_deref().unwrap_or_else(|| Path::new("pgweir.toml"));
    Config::parse(&text, name).map_err(|errors| errors.to_string())?;
    match &init.output {
        Some(path) => save(path, &text, url.password.is_some(), init.force),
        None => io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string()),
    }
}

fn ask(url: &Url, usual: &Config) -> Result<Told, String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let none = Secret::default();
    let login = Login {
        host: &url.host,
        port: url.port,
        database: &url.database,
        user: &url.user,
        password: url.password.as_ref().unwrap_or(&none),
        time: usual.general.connect_timeout,
    };
    runtime.map_err(|error| error.to_string())?.block_on(login.ask())
}

const CONSOLE: &str = "
# The console, once both are set: psql -h 127.0.0.1 -p 6432 -U admin pgweir -c 'SHOW POOLS'
# admin_username = \"admin\"
# admin_password = \"change me\"
";

fn text(url: &Url, usual: &Config, told: &Told) -> String {
    let place = draft::quoted(&address(&url.host, url.port));
    let Told { version, room, in_recovery, databases } = told;
    let general = draft::general(url, &Listen::default());
    let role = if *in_recovery { "replica" } else { "primary" };
    let usual = usual_size(usual);
    let size = format!("pool_size = {}\n", (room.free() / 2).clamp(1, usual));
    let why = why(*room, usual);
    let pool = draft::pool(url, &url.database, &format!("\n{why}{size}"), role);
    let others: String = databases
        .iter()
        .filter(|name| **name != url.database && !CONSOLE_DATABASES.contains(&name.as_str()))
        .map(|name| commented_out(&draft::pool(url, name, &size, role)))
        .collect();
    let others = match others.is_empty() {
        true => others,
        false => format!("\n\n{OTHERS}{others}"),
    };
    format!(
        "# Written by pgweir init for the server {place}, which is PostgreSQL {version}.\n\
         {USE}\nconfig_version = 1\n\n\
         # Where clients connect. Other machines reach it with a host of this one's addresses.\n\
         {general}{CONSOLE}\n\n\
         # The database as clients ask for it, who may, and where it is. A client keeps a server\n\
         # connection for a transaction; with pool_mode = \"session\", until it disconnects.\n\
         {pool}{others}"
    )
}

const USE: &str = "\
#
#   pgweir check --connect FILE    whether it can be used, and what the server says
#   pgweir check --explain FILE    all that holds, with every default
#   pgweir FILE                    runs it
#
# docs/settings.md describes every setting.
";

const OTHERS: &str = "\
# Other databases there that the same user may connect to. Each has connections of its own:
# pgweir check --connect adds them up.
";

/// The default of our own dialect.
fn usual_size(usual: &Config) -> u32 {
    let sizes = usual.pools.iter().flat_map(|pool| &pool.users).map(|user| user.pool_size);
    sizes.max().unwrap_or(1)
}

/// Where the size of the pool comes from.
fn why(room: Room, usual: u32) -> String {
    let Room { connections_max, reserved } = room;
    let free = room.free();
    format!(
        "# Most connections to the server at a time. It allows {connections_max} (max_connections) \
         and keeps back {reserved}\n\
         # (superuser_reserved_connections and reserved_connections), which leaves {free}. Half of \
         that is\n\
         # left to others, and no more than {usual} are taken: that many at work keep most servers \
         busy.\n"
    )
}

/// A section that is not in force, as comments.
fn commented_out(section: &str) -> String {
    let line = |line: &str| if line.is_empty() { "#\n".to_owned() } else { format!("# {line}\n") };
    format!("\n{}", section.lines().map(line).collect::<String>())
}

/// Writes the whole file or nothing of it. One with a password is for its owner alone from the
/// first byte on.
fn save(path: &Path, text: &str, secret: bool, force: bool) -> Result<(), String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mode = if secret { 0o600 } else { 0o666 };
    let mut builder = tempfile::Builder::new();
    builder.permissions(Permissions::from_mode(mode));
    let written =
        builder.tempfile_in(folder.unwrap_or_else(|| Path::new("."))).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.as_file().sync_all()?;
            match force {
                true => file.persist(path)?,
                false => file.persist_noclobber(path)?,
            };
            Ok(())
        });
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => format!("{}: cannot be written: {error}", path.display()),
    })?;
    let path = path.display();
    match secret {
        true => eprintln!("{path} is written; it holds the password: mode 0600, for you alone"),
        false => eprintln!("{path} is written"),
    }
    eprintln!("To try it:  pgweir check --connect {path}");
    Ok(())
}

fn exists(path: &Path) -> String {
    format!("{} is there already; --force replaces it", path.display())
}

#[cfg(test)]
mod tests;

//! Logs in to a PostgreSQL server as any client does, and asks what it is and what it has room for.

use std::error::Error;
use std::time::Duration;

use pgweir_config::{Room, Secret, SocketName};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};

use crate::text_fields::OneLine;

/// Where and as whom to log in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Login<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) database: &'a str,
    pub(crate) user: &'a str,
    /// Empty where there is none.
    pub(crate) password: &'a Secret,
    /// How long all of it may take.
    pub(crate) time: Duration,
}

/// What a server says of itself.
#[derive(Debug)]
pub(crate) struct Told {
    /// As `15.18`, in ASCII.
    pub(crate) version: String,
    pub(crate) room: Room,
    /// Whether it is a replica: one that takes no writes.
    pub(crate) in_recovery: bool,
    /// The databases that this user may connect to, templates aside, by name.
    pub(crate) databases: Vec<String>,
}

/// One row. PostgreSQL before 16 has no reserved_connections.
const SERVER: &str = "\
    SELECT current_setting('server_version'), current_setting('max_connections'), \
        current_setting('superuser_reserved_connections')::int \
            + coalesce(current_setting('reserved_connections', true), '0')::int, \
        pg_is_in_recovery()";

const DATABASES: &str = "\
    SELECT datname FROM pg_database \
    WHERE datallowconn AND NOT datistemplate AND has_database_privilege(oid, 'CONNECT') \
    ORDER BY datname";

impl Login<'_> {
    /// Logs in and asks; the error has the server's own words where it has said some.
    pub(crate) async fn ask(self) -> Result<Told, String> {
        match timeout(self.time, self.ask_in_time()).await {
            Ok(told) => told,
            Err(_) => Err(format!("no answer within {:?}", self.time)),
        }
    }

    async fn ask_in_time(self) -> Result<Told, String> {
        let client = self.log_in().await?;
        let server = rows(&client, SERVER).await?.concat();
        let [version, connections_max, reserved, in_recovery] = &server[..] else {
            return Err("its settings were asked for, and it gave no row".to_owned());
        };
        // Who built it may be said behind the number.
        let version = version.split(|letter: char| !letter.is_ascii_graphic()).next();
        Ok(Told {
            version: version.unwrap_or_default().to_owned(),
            room: Room { connections_max: number(connections_max)?, reserved: number(reserved)? },
            in_recovery: in_recovery == "t",
            databases: rows(&client, DATABASES).await?.concat(),
        })
    }

    async fn log_in(self) -> Result<Client, String> {
        let mut config = tokio_postgres::Config::new();
        config.dbname(self.database).user(self.user);
        config.application_name("pgweir").ssl_mode(SslMode::Disable);
        if !self.password.expose().is_empty() {
            config.password(self.password.expose());
        }
        // Each connection ends with its client, whose queries fail of whatever it fails of. The
        // library knows no abstract names.
        if let Some(name) = SocketName::in_folder(self.host, self.port) {
            let stream = UnixStream::connect(name.address()).await;
            let stream = stream.map_err(|error| format!("cannot connect to {name}: {error}"))?;
            let connected = config.connect_raw(stream, NoTls).await;
            let (client, connection) = connected.map_err(|error| said(&error))?;
            tokio::spawn(connection);
            return Ok(client);
        }
        config.host(self.host).port(self.port);
        let (client, connection) = config.connect(NoTls).await.map_err(|error| said(&error))?;
        tokio::spawn(connection);
        Ok(client)
    }
}

/// The values of a simple query; it works through other poolers too.
async fn rows(client: &Client, sql: &str) -> Result<Vec<Vec<String>>, String> {
    let messages = client.simple_query(sql).await.map_err(|error| said(&error))?;
    let row = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => {
            let values = (0..row.len()).map(|n| row.get(n).unwrap_or_default().to_owned());
            Some(values.collect())
        }
        _ => None,
    };
    Ok(messages.iter().filter_map(row).collect())
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("it says {text:?} where a number was expected"))
}

/// The server's message, else what failed and of what.
fn said(error: &tokio_postgres::Error) -> String {
    if error.source().is_some_and(|cause| cause.to_string() == "password missing") {
        return "the server asks for a password: put it into the URL, or into PGPASSWORD"
            .to_owned();
    }
    if let Some(error) = error.as_db_error() {
        let (severity, message) = (OneLine(error.severity()), OneLine(error.message()));
        return format!("{severity}: {message} (SQLSTATE {})", error.code().code());
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let inner = error.to_string();
        if !text.contains(&inner) {
            text += &format!(": {inner}");
        }
        cause = error.source();
    }
    text
}

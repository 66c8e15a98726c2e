use std::fmt::{self, Write};

use crate::Cluster;

/// The configuration file of a pgweir in front of one cluster, with one pool.
///
/// It says nothing that was not asked for, so that defaults are under test too. Sections keep the
/// order of PgCat's example.
///
/// ```no_run
/// # use pgweir_testkit::{Cluster, Pgweir, PoolerConfig};
/// # let cluster = Cluster::start();
/// # let program = "target/debug/pgweir";
/// let config = PoolerConfig::new("postgres", &cluster).user("alice", "secret", 2);
/// let pgweir = Pgweir::start(program, |port| config.text(port));
/// ```
#[derive(Clone)]
#[must_use]
pub struct PoolerConfig {
    database: String,
    server: (String, u16),
    general: Vec<Setting>,
    pool: Vec<Setting>,
    users: Vec<Vec<Setting>>,
}

/// A key and its value in TOML.
type Setting = (String, String);

impl PoolerConfig {
    /// A pool named like the `database` of `cluster` that it leads to.
    pub fn new(database: &str, cluster: &Cluster) -> Self {
        Self {
            database: database.to_owned(),
            server: ("127.0.0.1".to_owned(), cluster.port()),
            general: Vec::new(),
            pool: Vec::new(),
            users: Vec::new(),
        }
    }

    /// Another server on 127.0.0.1 than the cluster.
    pub fn server_port(mut self, port: u16) -> Self {
        self.server.1 = port;
        self
    }

    /// Another way to the server, such as the folder of its unix socket.
    pub fn server_host(mut self, host: &str) -> Self {
        host.clone_into(&mut self.server.0);
        self
    }

    /// A key of `[general]`; `value` as TOML, strings with their quotes.
    pub fn general(mut self, key: &str, value: &str) -> Self {
        self.general.push((key.to_owned(), value.to_owned()));
        self
    }

    /// A key of `[pools.NAME]`; `value` as TOML, strings with their quotes.
    pub fn pool(mut self, key: &str, value: &str) -> Self {
        self.pool.retain(|(known, _)| known != key);
        self.pool.push((key.to_owned(), value.to_owned()));
        self
    }

    /// A user of the pool, with a pool of `pool_size` servers of its own.
    pub fn user(mut self, name: &str, password: &str, pool_size: u32) -> Self {
        self.users.push(vec![
            ("username".to_owned(), quoted(name)),
            ("password".to_owned(), quoted(password)),
            ("pool_size".to_owned(), pool_size.to_string()),
        ]);
        self
    }

    /// A further key of the user added last; `value` as TOML, strings with their quotes.
    pub fn user_setting(mut self, key: &str, value: &str) -> Self {
        if let Some(user) = self.users.last_mut() {
            user.push((key.to_owned(), value.to_owned()));
        }
        self
    }

    /// The file, for a pgweir that shall listen on `port`.
    #[must_use]
    pub fn text(&self, port: u16) -> String {
        let mut text = String::new();
        // A String takes everything.
        let _written = self.write(&mut text, port);
        text
    }

    fn write(&self, text: &mut String, port: u16) -> fmt::Result {
        let database = quoted(&self.database);
        writeln!(text, "[general]\nhost = \"127.0.0.1\"\nport = {port}")?;
        write_settings(text, &self.general)?;
        writeln!(text, "\n[pools.{database}]")?;
        write_settings(text, &self.pool)?;
        for (number, user) in self.users.iter().enumerate() {
            writeln!(text, "\n[pools.{database}.users.{number}]")?;
            write_settings(text, user)?;
        }
        writeln!(text, "\n[pools.{database}.shards.0]\ndatabase = {database}")?;
        let (host, port) = &self.server;
        writeln!(text, "servers = [[{}, {port}, \"primary\"]]", quoted(host))
    }
}

fn write_settings(text: &mut String, settings: &[Setting]) -> fmt::Result {
    settings.iter().try_for_each(|(key, value)| writeln!(text, "{key} = {value}"))
}

/// A TOML basic string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

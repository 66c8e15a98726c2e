use std::{fmt::Write, fs, io, path::Path};

use super::{Cluster, launch, template};
use crate::{fail::OrFail, port::Port, postgres::ServiceUser, scratch::Scratch};

/// Speed over safety: the data of a test is worth nothing after a crash of the machine.
const FAST: &[(&str, &str)] = &[
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    ("autovacuum", "off"),
    ("shared_buffers", "'32MB'"),
    ("max_wal_size", "'256MB'"),
    // Its backends say which of them wrote a line.
    ("log_line_prefix", "'%m [%p] '"),
];

/// How often a start is tried again because a stranger took the port meanwhile.
const STARTS_MAX: usize = 5;

/// How a cluster wants its clients on TCP to log in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostAuth {
    /// Not at all.
    #[default]
    Trust,
    /// With the password in the clear.
    Password,
    /// With the password's MD5; passwords are stored as MD5.
    Md5,
    /// With SCRAM-SHA-256.
    ScramSha256,
}

impl HostAuth {
    /// The method's name in pg_hba.conf.
    fn method(self) -> &'static str {
        match self {
            Self::Trust => "trust",
            Self::Password => "password",
            Self::Md5 => "md5",
            Self::ScramSha256 => "scram-sha-256",
        }
    }

    /// How passwords must be stored for it.
    fn password_encryption(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Trust | Self::Password | Self::ScramSha256 => "'scram-sha-256'",
        }
    }
}

/// What a [`Cluster`] shall be like. Made by [`Cluster::builder`].
#[derive(Debug, Default)]
#[must_use]
pub struct ClusterBuilder {
    auth: HostAuth,
    hba: Vec<String>,
    settings: Vec<(String, String)>,
    users: Vec<(String, String)>,
}

impl ClusterBuilder {
    /// How clients on TCP log in where no line of [`Self::hba`] says otherwise.
    pub fn auth(mut self, auth: HostAuth) -> Self {
        self.auth = auth;
        self
    }

    /// A line of pg_hba.conf for TCP, before the general one: `host all bob 127.0.0.1/32 md5`.
    pub fn hba(mut self, line: &str) -> Self {
        self.hba.push(line.to_owned());
        self
    }

    /// A line of postgresql.conf; `value` is quoted here. It wins over the fast settings.
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), format!("'{}'", value.replace('\'', "''"))));
        self
    }

    /// A role that may log in and create objects in the database `postgres`.
    pub fn user(mut self, name: &str, password: &str) -> Self {
        self.users.push((name.to_owned(), password.to_owned()));
        self
    }

    /// Starts it.
    ///
    /// # Panics
    /// When PostgreSQL is missing or does not come up, with its log.
    #[must_use]
    pub fn start(self) -> Cluster {
        let scratch = Scratch::new(ServiceUser::when_root());
        let data = scratch.join("data");
        template::copy_to(&data);
        self.write_settings(&data).or_fail("write postgresql.conf");
        fs::write(data.join("pg_hba.conf"), self.hba_text()).or_fail("write pg_hba.conf");

        let (server, port) = (0..STARTS_MAX)
            .find_map(|_| {
                let port = Port::take();
                Some((launch(&scratch, &port)?, port))
            })
            .or_fail("find a port that no other program takes");
        let cluster = Cluster { server, port, scratch };
        for (name, password) in &self.users {
            let (name, password) = (name.replace('"', "\"\""), password.replace('\'', "''"));
            cluster.psql(&format!(
                r#"CREATE ROLE "{name}" LOGIN PASSWORD '{password}';
                GRANT CREATE ON SCHEMA public TO "{name}";"#,
            ));
        }
        cluster
    }

    fn write_settings(&self, data: &Path) -> io::Result<()> {
        let path = data.join("postgresql.conf");
        let mut text = fs::read_to_string(&path)?;
        let fast = FAST.iter().copied();
        let encryption = ("password_encryption", self.auth.password_encryption());
        let own = self.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        for (name, value) in fast.chain([encryption]).chain(own) {
            // Infallible for a String. The last line for a name wins.
            let _written = writeln!(text, "{name} = {value}");
        }
        fs::write(path, text)
    }

    /// The unix socket lies in a folder that only this user and root can enter: it is the way of
    /// the tests' own psql, whatever the method on TCP.
    fn hba_text(&self) -> String {
        let own = self.hba.iter().map(|line| format!("{line}\n")).collect::<String>();
        let method = self.auth.method();
        format!(
            "local all,replication all trust\n{own}\
             host all all 127.0.0.1/32 {method}\nhost replication all 127.0.0.1/32 {method}\n"
        )
    }
}

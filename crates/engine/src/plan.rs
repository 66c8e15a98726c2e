use std::time::Duration;

use pgweir_auth::{MockAuth, Verifier, VerifierError};
use pgweir_config::{Admin, AuthMethod, Config, Pool, User};

use crate::action::Address;
use crate::pool::PoolSpec;

/// What a configuration asks of an engine.
pub struct Plan {
    pub(crate) admin: Option<Admin>,
    /// What the console's user is checked against.
    pub(crate) admin_verifier: Option<Verifier>,
    /// How a user that does not exist is asked to prove who it is: as the known ones are.
    pub(crate) auth_of_strangers: AuthMethod,
    pub(crate) client_login_timeout: Option<Duration>,
    pub(crate) max_clients: Option<u32>,
    /// Whether clients that come are news.
    pub(crate) log_connections: bool,
    /// Whether clients that go are news.
    pub(crate) log_disconnections: bool,
    /// The software's version, for the console's clients.
    pub(crate) version: String,
    specs: Vec<PoolSpec>,
}

impl Plan {
    /// The plan that a configuration describes, or which user's secret is unusable.
    pub fn new(config: &Config, version: &str) -> Result<Self, VerifierError> {
        let mut specs = Vec::new();
        for pool in &config.pools {
            for user in &pool.users {
                specs.extend(spec(pool, user)?);
            }
        }
        let admin = config.general.admin.clone();
        Ok(Self {
            // A secret that is unusable lets nobody in.
            admin_verifier: admin
                .as_ref()
                .and_then(|admin| Verifier::parse(admin.password.expose()).ok()),
            admin,
            auth_of_strangers: specs.first().map_or(AuthMethod::ScramSha256, |spec| spec.auth),
            client_login_timeout: config.general.client_login_timeout,
            max_clients: config.general.max_clients,
            log_connections: config.general.log_client_connections,
            log_disconnections: config.general.log_client_disconnections,
            version: version.to_owned(),
            specs,
        })
    }

    /// Turns the secrets that SCRAM needs keys for into keys. It takes a millisecond for each, so
    /// it is done once, and not for everybody who knows a name.
    pub(crate) fn derive_keys(&mut self, mock: &MockAuth) {
        if let (Some(admin), Some(verifier)) = (&self.admin, &mut self.admin_verifier) {
            derive_keys(verifier, admin.auth, &admin.username, mock);
        }
        for spec in &mut self.specs {
            derive_keys(&mut spec.verifier, spec.auth, &spec.user, mock);
        }
    }

    /// The pools.
    pub(crate) fn take_specs(&mut self) -> Vec<PoolSpec> {
        std::mem::take(&mut self.specs)
    }
}

fn derive_keys(verifier: &mut Verifier, auth: AuthMethod, user: &str, mock: &MockAuth) {
    if auth == AuthMethod::ScramSha256
        && let Some(keys) = verifier.scram_keys(user.as_bytes(), mock)
    {
        *verifier = Verifier::Scram(keys);
    }
}

/// A pool for each user of each database; `None` if it names no server.
fn spec(pool: &Pool, user: &User) -> Result<Option<PoolSpec>, VerifierError> {
    let Some((shard, server)) = pool.served() else { return Ok(None) };
    let verifier = match user.auth {
        AuthMethod::Trust => Verifier::Plain(pgweir_auth::Secret::new("")),
        AuthMethod::Md5 | AuthMethod::Password | AuthMethod::ScramSha256 => {
            Verifier::parse(user.password.expose())?
        }
    };
    Ok(Some(PoolSpec {
        database: pool.name.clone(),
        user: user.username.clone(),
        auth: user.auth,
        verifier,
        mode: user.mode,
        size: user.pool_size as usize,
        address: Address { host: server.host.clone(), port: server.port },
        server_database: shard.database.clone(),
        server_user: user.server_username.clone(),
        server_password: user.server_password.clone(),
        reset_query: user.reset_query.clone(),
        connect_timeout: user.connect_timeout,
        query_wait_timeout: user.query_wait_timeout,
        idle_timeout: user.idle_timeout,
        server_lifetime: user.server_lifetime,
    }))
}

#[cfg(test)]
mod tests;

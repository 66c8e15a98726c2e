use std::fmt;
use std::time::Duration;

use pgweir_auth::scram::Iterations;
use pgweir_auth::{MockAuth, Verifier, VerifierError};
use pgweir_config::{ANY_DATABASE, Admin, AuthMethod, Config, Limit, Pool, User};
use pgweir_sql::{PinReason, Pins};

use crate::action::Address;
use crate::pipeline::Joining;
use crate::pool::PoolSpec;

/// What a configuration asks of an engine.
#[derive(Clone)]
pub struct Plan {
    pub(crate) admin: Option<Admin>,
    /// What the console's user is checked against.
    pub(crate) admin_verifier: Option<Verifier>,
    /// Makes up secrets for users that do not exist.
    pub(crate) mock: MockAuth,
    /// How a user that does not exist is asked to prove who it is: as the known ones are.
    pub(crate) auth_of_strangers: AuthMethod,
    pub(crate) client_login_timeout: Option<Duration>,
    pub(crate) max_clients: Option<u32>,
    pub(crate) max_logins: usize,
    pub(crate) max_user_client_connections: Option<usize>,
    pub(crate) server_limit: Limit,
    pub(crate) max_user_connections: Option<usize>,
    pub(crate) connect_parallelism: usize,
    /// Most bytes of replies that are kept until they are over, of all workers together.
    pub(crate) max_buffer_memory: usize,
    /// When units are put under one Sync.
    pub(crate) joining: Joining,
    pub(crate) client_idle_timeout: Option<Duration>,
    pub(crate) shutdown_timeout: Duration,
    /// Whether clients that come are news.
    pub(crate) log_connections: bool,
    /// Whether clients that go are news.
    pub(crate) log_disconnections: bool,
    /// The software's version, for the console's clients.
    pub(crate) version: String,
    specs: Vec<PoolSpec>,
    /// What a pool of a database is like that no pool is named like, one for each user.
    wild: Vec<PoolSpec>,
}

impl Plan {
    /// The plan that a configuration describes, or which user's secret is unusable. `secret` is 32
    /// random bytes that no client may learn and that stay the same for the life of the process.
    ///
    /// Secrets that SCRAM needs keys for are turned into keys, which takes a millisecond each: so
    /// it is done here, once, and not for everybody who knows a name.
    pub fn new(config: &Config, version: &str, secret: [u8; 32]) -> Result<Self, VerifierError> {
        let mock = MockAuth::new(secret, Iterations::DEFAULT);
        let mut specs = Vec::new();
        for pool in &config.pools {
            for user in &pool.users {
                specs.extend(spec(pool, user, &mock)?);
            }
        }
        let is_wild = |spec: &PoolSpec| spec.database == ANY_DATABASE;
        let (wild, mut specs): (Vec<_>, Vec<_>) = specs.into_iter().partition(is_wild);
        specs.iter_mut().enumerate().for_each(|(order, spec)| spec.order = order);
        let general = &config.general;
        let admin = general.admin.clone();
        let admin_verifier = admin.as_ref().and_then(|admin| {
            // A secret that is unusable lets nobody in.
            let verifier = Verifier::parse(admin.password.expose()).ok()?;
            Some(with_keys(verifier, admin.auth, &admin.username, &mock))
        });
        Ok(Self {
            admin_verifier,
            admin,
            mock,
            auth_of_strangers: specs
                .first()
                .or_else(|| wild.first())
                .map_or(AuthMethod::ScramSha256, |spec| spec.auth),
            client_login_timeout: general.client_login_timeout,
            shutdown_timeout: general.shutdown_timeout,
            max_clients: general.max_clients,
            max_logins: general.max_logins as usize,
            max_user_client_connections: count(general.max_user_client_connections),
            server_limit: general.server_limit,
            max_user_connections: count(general.max_user_connections),
            connect_parallelism: general.connect_parallelism as usize,
            max_buffer_memory: usize::try_from(general.max_buffer_memory).unwrap_or(usize::MAX),
            joining: Joining::USUAL,
            client_idle_timeout: general.client_idle_timeout,
            log_connections: general.log_client_connections,
            log_disconnections: general.log_client_disconnections,
            version: version.to_owned(),
            specs,
            wild,
        })
    }

    /// The same, but for when units are put under one Sync. For tests: where that pays is more than
    /// a simulation has.
    pub fn joining(self, joining: Joining) -> Self {
        Self { joining, ..self }
    }

    /// How the pool of a database that has none would let this user in.
    pub(crate) fn wild(&self, user: &str) -> Option<&PoolSpec> {
        self.wild.iter().find(|spec| spec.user == user)
    }

    /// The pool of such a database.
    pub(crate) fn tame(&self, database: &str, user: &str) -> Option<PoolSpec> {
        let wild = self.wild(user)?;
        let server_database = match wild.server_database.as_str() {
            ANY_DATABASE => database,
            name => name,
        };
        Some(PoolSpec {
            database: database.to_owned(),
            server_database: server_database.to_owned(),
            order: usize::MAX,
            // It lasts as long as somebody needs it.
            min_size: 0,
            wild: true,
            ..wild.clone()
        })
    }

    /// The pools.
    pub(crate) fn take_specs(&mut self) -> Vec<PoolSpec> {
        std::mem::take(&mut self.specs)
    }

    /// The pools, to say more of them.
    pub(crate) fn specs_mut(&mut self) -> &mut [PoolSpec] {
        &mut self.specs
    }

    /// Whether there are pools for databases that are not named.
    pub(crate) fn has_wild(&self) -> bool {
        !self.wild.is_empty()
    }
}

/// Without secrets.
impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pools: Vec<_> = self.specs.iter().map(PoolSpec::name).collect();
        f.debug_struct("Plan").field("pools", &pools).finish_non_exhaustive()
    }
}

fn with_keys(verifier: Verifier, auth: AuthMethod, user: &str, mock: &MockAuth) -> Verifier {
    match auth {
        AuthMethod::ScramSha256 => {
            verifier.scram_keys(user.as_bytes(), mock).map_or(verifier, Verifier::Scram)
        }
        AuthMethod::Md5 | AuthMethod::Password | AuthMethod::Trust => verifier,
    }
}

/// A pool for each user of each database; `None` if it names no server.
fn spec(pool: &Pool, user: &User, mock: &MockAuth) -> Result<Option<PoolSpec>, VerifierError> {
    let Some((shard, server)) = pool.served() else { return Ok(None) };
    let verifier = match user.auth {
        AuthMethod::Trust => Verifier::Plain(pgweir_auth::Secret::new("")),
        AuthMethod::Md5 | AuthMethod::Password | AuthMethod::ScramSha256 => {
            let verifier = Verifier::parse(user.password.expose())?;
            with_keys(verifier, user.auth, &user.username, mock)
        }
    };
    Ok(Some(PoolSpec {
        database: pool.name.clone(),
        wild: false,
        user: user.username.clone(),
        home: 0,
        order: 0,
        auth: user.auth,
        verifier,
        mode: user.mode,
        size: user.pool_size as usize,
        min_size: user.min_pool_size as usize,
        server_choice: user.server_choice,
        loud_functions: user.loud_functions,
        quiet_functions: user.quiet_functions.clone(),
        application_name: user.application_name,
        sequence_affinity: user.sequence_affinity,
        pipelining: user.pipelining,
        max_pinned: user.max_pinned.of(user.pool_size).map(|most| most as usize),
        pin_refuse: pins(&user.pin_refuse),
        pin_ignore: pins(&user.pin_ignore),
        prepared_statements: user.prepared_statements as usize,
        reserve: user.reserve_pool_size as usize,
        reserve_timeout: user.reserve_pool_timeout,
        max_db_connections: count(pool.max_connections),
        max_db_client_connections: count(pool.max_client_connections),
        address: Address { host: server.host.clone(), port: server.port },
        server_database: shard.database.clone(),
        server_user: user.server_username.clone(),
        server_password: user.server_password.clone(),
        reset_query: user.reset_query.clone(),
        connect_timeout: user.connect_timeout,
        query_wait_timeout: user.query_wait_timeout,
        idle_timeout: user.idle_timeout,
        server_lifetime: user.server_lifetime,
        idle_in_transaction_timeout: user.idle_in_transaction_timeout,
        pin_idle_timeout: user.pin_idle_timeout,
        statement_timeout: user.statement_timeout,
        transaction_timeout: user.transaction_timeout,
    }))
}

/// The reasons of these names.
fn pins(names: &[&'static str]) -> Pins {
    let named = |reason: &PinReason| names.contains(&reason.name());
    PinReason::ALL.into_iter().filter(named).map(Pins::from).fold(Pins::NONE, Pins::union)
}

fn count(most: Option<u32>) -> Option<usize> {
    most.map(|most| most as usize)
}

// An engine of the second build runs in a test of its threads only.
#[cfg(all(test, not(feature = "interleaved")))]
mod tests;

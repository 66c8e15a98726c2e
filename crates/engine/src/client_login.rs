//! A client's way in: from its startup packet to its first ReadyForQuery.

mod proof;

use std::rc::Rc;

use pgweir_auth::scram::{Mechanism, Nonce, ScramServer};
use pgweir_auth::{Verifier, VerifierKind};
use pgweir_config::{AuthMethod, CONSOLE_DATABASES};
use pgweir_wire::backend::{self, Report};
use pgweir_wire::{
    CancelKey, GSSENC_REQUEST, Initial, Malformed, ProtocolVersion, SSL_REQUEST, Severity,
    SqlState, Startup, TransactionStatus,
};

use crate::Engine;
use crate::action::{Action, ClientId, Endpoint, Event};
use crate::client::{Client, Ends, Leg, Phase, Welcome};
use crate::errors::{
    NO_POOL, NO_USER, SHUTTING_DOWN, TERMINATED, TOO_MANY_CLIENTS, UNSUPPORTED_PROTOCOL, VIOLATION,
};
use crate::marks::Mark;
use crate::parameters::Parameters;
use crate::pool::PoolId;
use crate::replication::{Replication, ReplicationKind};
use crate::time::Time;

use proof::Proof;

/// So many clients more than `max_clients` may be about to hear that there are too many, to ask for
/// a cancel, or be those of the console. The next one hears it before it has said a word: those
/// that say nothing must not take the descriptors that servers need.
pub const NEWCOMERS: usize = 8;

/// A login under way.
pub(crate) struct Login {
    user: String,
    database: String,
    target: Target,
    proof: Proof,
    long_secret: bool,
}

/// What a client will get if it proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Console,
    /// Nothing: there is no such user or database, and the exchange is for show.
    Nowhere,
    /// The pool of a database that is not named in the configuration; it is made for it.
    Wild,
    Pool(PoolId),
}

/// Where a login goes on.
enum Begun {
    Here,
    /// The client was handed over with its startup packet.
    Elsewhere,
}

impl Login {
    /// Whether it leads to the console.
    pub(crate) fn is_for_console(&self) -> bool {
        self.target == Target::Console
    }

    /// What it is for, as `database/user`.
    pub(crate) fn pool_name(&self) -> String {
        pool_name(&self.user, &self.database)
    }
}

impl Engine {
    /// Bytes before a login: the startup packet, and the requests that may come before it.
    pub(crate) fn startup_input(&mut self, now: Time, id: ClientId, input: &[u8]) -> usize {
        let (initial, length) = match Initial::parse(input) {
            Ok(Some(found)) => found,
            Ok(None) => return 0,
            Err(Malformed::CancelRequest) => {
                Mark::CancelMalformed.hit();
                self.close_client(id);
                return input.len();
            }
            Err(malformed) => {
                Mark::StartupMalformed.hit();
                let kind = match malformed {
                    Malformed::UnsupportedVersion(_) => UNSUPPORTED_PROTOCOL,
                    _ => VIOLATION,
                };
                self.expel(now, id, kind.report(&[&malformed]));
                return input.len();
            }
        };
        match initial {
            Initial::SslRequest | Initial::GssEncRequest => {
                if length < input.len() {
                    // Whoever sent more did not wait for our answer, as the protocol demands: in
                    // an encrypted connection those bytes would be an injection (CVE-2021-23214).
                    Mark::EncryptionWithMore.hit();
                    let text = "received unencrypted data after SSL or GSSAPI request";
                    self.expel(now, id, VIOLATION.report(&[&text]));
                    return input.len();
                }
                let client = &mut self.clients[id];
                let (asked, code) = match initial {
                    Initial::SslRequest => (&mut client.asked_tls, SSL_REQUEST),
                    _ => (&mut client.asked_gss, GSSENC_REQUEST),
                };
                if std::mem::replace(asked, true) {
                    // PostgreSQL takes a second request for a version, and knows none such.
                    Mark::EncryptionAskedTwice.hit();
                    let version = Malformed::UnsupportedVersion(code);
                    self.expel(now, id, UNSUPPORTED_PROTOCOL.report(&[&version]));
                    return input.len();
                }
                self.actions.inject(Endpoint::Client(id), |out| out.push(b'N'));
                length
            }
            Initial::CancelRequest(key) => {
                if let Some((worker, _)) = self.member.place_of(key.process_id)
                    && worker != self.member.index()
                    && !self.clients[id].arrived
                {
                    Mark::CancelHandedOver.hit();
                    self.hand_over(id, worker);
                    return 0;
                }
                if self.is_early(&key) {
                    self.resume(id);
                    return 0;
                }
                self.cancel_requested(now, id, &key);
                input.len()
            }
            Initial::Startup(startup) => match self.begin_login(now, id, &startup) {
                Ok(Begun::Here) => length,
                Ok(Begun::Elsewhere) => 0,
                Err(report) => {
                    match asked_for(&startup) {
                        Some((user, database)) => {
                            self.refuse_login(now, id, pool_name(&user, &database), report);
                        }
                        None => self.expel(now, id, report),
                    }
                    length
                }
            },
        }
    }

    fn begin_login(
        &mut self,
        now: Time,
        id: ClientId,
        startup: &Startup<'_>,
    ) -> Result<Begun, Report> {
        if self.draining {
            Mark::LoginWhileDraining.hit();
            return Err(SHUTTING_DOWN.report(&[]));
        }
        let arrived = self.clients[id].arrived;
        let Some((user, database)) = asked_for(startup) else {
            Mark::LoginOfNobody.hit();
            return Err(NO_USER.report(&[]));
        };
        let replication = Replication::of_startup(startup)?;
        let kind = replication.as_ref().map(|replication| replication.kind);
        let for_console = !arrived && self.opens_console(id, &user, &database);
        let clients = self.member.commons().crowd();
        // That there are too many is what somebody may want to look at who asks for the console.
        if let Some(most) = self.plan.max_clients
            && clients > most as usize
            && !arrived
            && !for_console
        {
            Mark::TooManyClients.hit();
            return Err(too_many_clients(most));
        }
        if !arrived
            && !for_console
            && let Some(worker) = self.home_of(&user, &database, kind)
        {
            Mark::ClientHandedOver.hit();
            self.hand_over(id, worker);
            return Ok(Begun::Elsewhere);
        }
        match self.interner.of_startup(startup.parameters()) {
            Ok(wishes) => self.note_startup(id, wishes),
            // The server of its own gets them as they are.
            Err(bad) if replication.is_some() && bad.is_switch() => {
                Mark::SwitchesPassedOn.hit();
            }
            Err(bad) => {
                Mark::LoginWithUnknownSwitch.hit_if(bad.is_switch());
                return Err(bad.report());
            }
        }
        self.clients[id].replication = replication.map(Rc::new);
        self.negotiate(id, startup);
        let long_secret = startup.version.negotiated() >= ProtocolVersion::V3_2;
        let (target, auth) = match (&self.plan.admin, self.clients[id].ends) {
            // Who may end or debug this process, and read its secrets, is not asked for another.
            (_, Some(Ends::Unix { own: true, .. })) if for_console => {
                (Target::Console, AuthMethod::Trust)
            }
            (Some(admin), _) if for_console => (Target::Console, admin.auth),
            (_, _) => self.target(&user, &database, kind),
        };
        self.challenge(now, id, user, database, target, auth, long_secret)?;
        Ok(Begun::Here)
    }

    /// Whether this is the console's user, or whoever runs this process, at the console.
    fn opens_console(&self, id: ClientId, user: &str, database: &str) -> bool {
        let is_admin = self.plan.admin.as_ref().is_some_and(|admin| admin.username == user);
        let is_own = matches!(self.clients[id].ends, Some(Ends::Unix { own: true, .. }));
        CONSOLE_DATABASES.contains(&database) && (is_admin || is_own)
    }

    /// Tells a client that asked for more than we speak what we do speak.
    fn negotiate(&mut self, id: ClientId, startup: &Startup<'_>) {
        let options: Vec<Box<[u8]>> = startup
            .parameters()
            .filter(|(name, _)| name.starts_with(b"_pq_."))
            .map(|(name, _)| name.into())
            .collect();
        let version = startup.version.negotiated();
        if version != startup.version || !options.is_empty() {
            self.actions.inject(Endpoint::Client(id), |out| {
                backend::negotiate_protocol_version(out, version, &options);
            });
        }
    }

    fn target(
        &self,
        user: &str,
        database: &str,
        replication: Option<ReplicationKind>,
    ) -> (Target, AuthMethod) {
        let of_cluster = || match replication {
            Some(ReplicationKind::Physical) => {
                Mark::ClusterReplicated.hit();
                self.pool_of_cluster(user)
            }
            Some(ReplicationKind::Logical) | None => None,
        };
        match self.pool_named(database, user).or_else(of_cluster) {
            // One that was made for somebody else may be gone before this login is over.
            Some(pool) if self.pools[pool].spec.wild => (Target::Wild, self.pools[pool].spec.auth),
            Some(pool) => (Target::Pool(pool), self.pools[pool].spec.auth),
            None => match self.plan.wild(user) {
                Some(spec) if !CONSOLE_DATABASES.contains(&database) => (Target::Wild, spec.auth),
                Some(_) | None => (Target::Nowhere, self.plan.auth_of_strangers),
            },
        }
    }

    /// Asks for the proof that the method demands.
    #[expect(clippy::too_many_arguments, reason = "the parts of a startup packet, taken apart")]
    fn challenge(
        &mut self,
        now: Time,
        id: ClientId,
        user: String,
        database: String,
        target: Target,
        auth: AuthMethod,
        long_secret: bool,
    ) -> Result<(), Report> {
        let to = Endpoint::Client(id);
        let known = match target {
            Target::Console => self.plan.admin_verifier.clone(),
            Target::Nowhere => None,
            Target::Pool(pool) => Some(self.pools[pool].spec.verifier.clone()),
            Target::Wild => self.plan.wild(&user).map(|spec| spec.verifier.clone()),
        };
        let name = user.as_bytes();
        let proof = match auth {
            AuthMethod::Trust => {
                if target == Target::Nowhere {
                    Mark::LoginNowhere.hit();
                    return Err(NO_POOL.report(&[&database, &user]));
                }
                let login = Login {
                    user,
                    database,
                    target,
                    proof: Proof::Password { verifier: Verifier::Plain(no_secret()) },
                    long_secret,
                };
                self.actions.inject(to, backend::authentication_ok);
                self.admit(now, id, login);
                return Ok(());
            }
            AuthMethod::Password => {
                self.actions.inject(to, backend::authentication_cleartext);
                let verifier = self.plan.mock.verifier(known.as_ref(), VerifierKind::Plain, name);
                Proof::Password { verifier }
            }
            AuthMethod::Md5 => {
                let salt = self.random.bytes();
                self.actions.inject(to, |out| backend::authentication_md5(out, salt));
                let verifier = self.plan.mock.verifier(known.as_ref(), VerifierKind::Md5, name);
                Proof::Md5 { salt, verifier }
            }
            AuthMethod::ScramSha256 => {
                let names = Mechanism::OFFERED.map(|mechanism| mechanism.name().as_bytes());
                self.actions.inject(to, |out| backend::authentication_sasl(out, &names));
                let known = known.and_then(|known| match known {
                    Verifier::Scram(keys) => Some(keys),
                    // The plan has turned passwords into keys. No mark: an MD5 hash gives none, and
                    // no configuration has one for SCRAM.
                    Verifier::Md5(_) | Verifier::Plain(_) => None,
                });
                let keys = self.plan.mock.scram_keys(known.as_ref(), name);
                Proof::ScramFirst(Box::new(ScramServer::new(keys, self.nonce())))
            }
        };
        let login = Login { user, database, target, proof, long_secret };
        self.clients[id].phase = Phase::Login(Box::new(login));
        Ok(())
    }

    pub(crate) fn nonce(&mut self) -> Nonce {
        Nonce::new(self.random.bytes())
    }

    /// The client is who it says it is.
    fn admit(&mut self, now: Time, id: ClientId, login: Login) {
        match login.target {
            Target::Console => {
                self.login_over(self.clients[id].since, id);
                self.clients[id].phase = Phase::Console;
                self.greet_console(id);
                self.note_connected(id, |_| (login.database, login.user));
            }
            Target::Pool(_) | Target::Wild => {
                let Some(pool) = self.pool_to_enter(&login) else {
                    Mark::PoolGoneInLogin.hit();
                    let report = TERMINATED.report(&[]).detail(crate::reload::REMOVED);
                    return self.refuse_login(now, id, login.pool_name(), report);
                };
                if let Err(report) = self.count_client(pool) {
                    return self.refuse_login(now, id, login.pool_name(), report);
                }
                self.login_over(self.clients[id].since, id);
                let welcome = Welcome { pool, long_secret: login.long_secret };
                self.clients[id].phase = Phase::Welcome(Box::new(welcome));
                self.pools[pool].stats.logins += 1;
                self.await_welcome(now, id);
            }
            // Refused before: there is no proof of being nobody.
            Target::Nowhere => self.close_client(id),
        }
    }

    /// A client has been greeted.
    fn note_connected(&mut self, id: ClientId, names: impl FnOnce(&Self) -> (String, String)) {
        if self.plan.log_connections {
            let (database, user) = names(self);
            let (client, ends) = (self.member.client_number(id), self.clients[id].ends);
            let event = Event::ClientConnected { client, ends, database, user };
            self.actions.push(Action::Log(event));
        }
    }

    /// The pool that a login leads to, unless a reload has taken it away meanwhile. That of a
    /// database which is not named in the configuration is made only for those who may use it.
    fn pool_to_enter(&mut self, login: &Login) -> Option<PoolId> {
        match login.target {
            Target::Pool(pool) => self.pools.find(pool).filter(|pool| !pool.removed).map(|_| pool),
            Target::Wild => {
                let Login { database, user, .. } = login;
                match self.pool_named(database, user) {
                    // A reload may have given it a name and, perhaps, another password.
                    Some(pool) => Some(pool).filter(|pool| self.pools[*pool].spec.wild),
                    None => {
                        let spec = self.plan.tame(database, user)?;
                        Some(self.add_pool(spec))
                    }
                }
            }
            Target::Console | Target::Nowhere => None,
        }
    }

    /// What servers report under this client's settings is known, or will be once one has been
    /// brought to them: the client waits for one like for any unit, which also shows whether the
    /// settings are valid.
    pub(crate) fn await_welcome(&mut self, now: Time, id: ClientId) {
        let client = &self.clients[id];
        let Phase::Welcome(welcome) = &client.phase else { return };
        let (pool, long_secret) = (welcome.pool, welcome.long_secret);
        if client.leg == Leg::None {
            if let Some(parameters) = self.known_welcome(id, pool) {
                return self.welcome(now, id, pool, long_secret, &parameters);
            }
            self.check_out(now, id, pool);
        }
        // It may have been sent away.
        let Some(server) = self.clients.find(id).and_then(Client::server) else { return };
        let its = &self.servers[server];
        let (parameters, settings) = (Rc::clone(&its.parameters), Rc::clone(&its.settings));
        self.pools[pool].remember_welcome(&settings, &parameters);
        self.give_back(now, server);
        self.welcome(now, id, pool, long_secret, &parameters);
    }

    /// ParameterStatus, BackendKeyData, ReadyForQuery: the session begins.
    pub(crate) fn welcome(
        &mut self,
        now: Time,
        id: ClientId,
        pool: PoolId,
        long_secret: bool,
        known: &Rc<Parameters>,
    ) {
        let secret: Box<[u8]> = match long_secret {
            true => Box::new(self.random.bytes::<32>()),
            false => Box::new(self.random.bytes::<4>()),
        };
        let process_id = self.member.client_number(id);
        let key = CancelKey { process_id, secret: secret.clone() };
        self.actions.inject(Endpoint::Client(id), |out| {
            for (name, value) in known.iter() {
                backend::parameter_status(out, name, value);
            }
            backend::backend_key_data(out, &key);
            backend::ready_for_query(out, TransactionStatus::Idle);
        });
        let client = &mut self.clients[id];
        client.told = Some(Rc::clone(known));
        client.secret = secret;
        client.asked = None;
        client.phase = Phase::Ready(pool);
        self.note_quiet(now, id);
        self.note_connected(id, |its| its.pools[pool].spec.names());
        self.want_names(now, pool);
    }

    /// There is no server for a client's unit, or none that takes its settings. If the unit is its
    /// login, that ends it.
    pub(crate) fn unit_refused(&mut self, now: Time, id: ClientId, report: Report) {
        match self.clients[id].phase {
            Phase::Welcome(_) => {
                Mark::LoginWithoutServer.hit();
                let code = match report.code {
                    SqlState::TOO_MANY_CONNECTIONS => SqlState::CANNOT_CONNECT_NOW,
                    code => code,
                };
                let report = Report { severity: Severity::Fatal, code, ..report };
                self.expel(now, id, report);
            }
            Phase::Startup
            | Phase::Cancelling
            | Phase::Login(_)
            | Phase::Ready(_)
            | Phase::Console => self.refuse_unit(now, id, report),
        }
    }
}

/// The user and the database that a startup packet names.
fn asked_for(startup: &Startup<'_>) -> Option<(String, String)> {
    let text = |name: &[u8]| {
        let value = startup.parameters().filter(|(n, _)| *n == name).last();
        let value = value.map(|(_, value)| String::from_utf8_lossy(value).into_owned());
        value.filter(|value| !value.is_empty())
    };
    let user = text(b"user")?;
    let database = text(b"database").unwrap_or_else(|| user.clone());
    Some((user, database))
}

/// As messages name a pool.
fn pool_name(user: &str, database: &str) -> String {
    format!("{database}/{user}")
}

/// What a client beyond `max_clients` is told.
pub(crate) fn too_many_clients(most: u32) -> Report {
    TOO_MANY_CLIENTS.report(&[]).detail(format!("max_clients is {most}."))
}

fn no_secret() -> pgweir_auth::Secret {
    pgweir_auth::Secret::new("")
}

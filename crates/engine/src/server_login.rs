//! Our way into a server.

use std::net::SocketAddr;
use std::rc::Rc;

use pgweir_auth::scram::{LoginKeys, Mechanism, ScramClient, ScramClientFinal};
use pgweir_auth::{Md5Hash, Verifier};
use pgweir_wire::backend::{self, Authentication, ErrorFields, Report, Tag};
use pgweir_wire::frontend::{self, SaslInitialResponse};
use pgweir_wire::{HEADER_LEN, Header, ProtocolVersion, Severity, SqlState, Startup};

use crate::Engine;
use crate::action::{Action, Address, Endpoint, Event, ServerId};
use crate::client::Leg;
use crate::errors::UNREACHABLE;
use crate::marks::Mark;
use crate::parameters::Parameters;
use crate::pool::{Pool, PoolId};
use crate::server::ServerState;
use crate::time::Time;

/// The longest message of a server's login, its header included, and the longest ParameterStatus at
/// any time: libpq takes none whose body is longer than 30,000 bytes (`MAX_ERRLEN`,
/// `VALID_LONG_MESSAGE_TYPE`). The driver must be able to retain at least this much for a server.
pub const LOGIN_MESSAGE_BYTES: usize = HEADER_LEN + 30_000;

/// A login to a server under way.
pub(crate) struct ServerLogin {
    proof: Proof,
    parameters: Parameters,
    key: Option<pgweir_wire::CancelKey>,
}

/// How far the proof has come that we are who we say.
enum Proof {
    /// Nothing was asked for.
    None,
    /// A password was sent, or a hash that it was part of.
    Sent,
    /// SCRAM has begun.
    First(ScramClient),
    /// We have shown that we know the password.
    Final(ScramClientFinal),
    /// The server has shown that it knows it, too.
    Mutual,
    /// The server has let us in.
    Accepted,
}

impl ServerLogin {
    /// Whether we were let in.
    pub(crate) fn is_accepted(&self) -> bool {
        matches!(self.proof, Proof::Accepted)
    }
}

/// Whether a failed attempt says something about the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retry {
    /// The server is down, or full: it is tried again while clients wait.
    Later,
    /// The login itself is wrong: clients are told at once.
    Pointless,
}

/// Whether an error will come again however often one tries: a wrong name, value or password. A
/// server that starts up, shuts down, is full or was interrupted may answer otherwise next time.
pub(crate) fn is_lasting(code: SqlState) -> bool {
    matches!(code.class(), b"28" | b"3D" | b"42" | b"22" | b"0A")
}

impl Engine {
    /// The connection is made: the login begins.
    pub(crate) fn server_connected(&mut self, now: Time, id: ServerId, local: Option<SocketAddr>) {
        let Some(server) = self.servers.find_mut(id) else { return };
        server.local = local;
        let pool = server.pool;
        server.changed = now;
        server.state = ServerState::Login(Box::new(ServerLogin {
            proof: Proof::None,
            parameters: Parameters::default(),
            key: None,
        }));
        if self.start_dedicated(id) {
            return;
        }
        let spec = &self.pools[pool].spec;
        self.servers[id].statement_timeout = spec.statement_timeout;
        let timeout = spec.statement_timeout.map(|timeout| timeout.as_millis().to_string());
        let timeout = timeout.as_ref().map(|ms| (&b"statement_timeout"[..], ms.as_bytes()));
        let parameters = [
            (&b"user"[..], spec.server_user.as_bytes()),
            (b"database", spec.server_database.as_bytes()),
        ];
        let birth = Rc::clone(&self.servers[id].birth);
        let parameters = parameters.into_iter().chain(birth.pairs()).chain(timeout);
        self.actions.inject(Endpoint::Server(id), |out| {
            Startup::write(out, ProtocolVersion::V3_0, parameters);
        });
    }

    /// Bytes of a server that we log in to.
    pub(crate) fn server_login_input(&mut self, now: Time, id: ServerId, input: &[u8]) -> usize {
        let mut at = 0;
        while let Some(server) = self.servers.find(id) {
            if !matches!(server.state, ServerState::Login(_)) {
                return self.reply_input(now, id, input, at);
            }
            let rest = &input[at..];
            let header = match Header::parse(rest) {
                Ok(None) => return at,
                Ok(Some(header)) if header.message_len() > LOGIN_MESSAGE_BYTES => {
                    Mark::LoginMessageTooLong.hit();
                    self.login_broken(now, id, "it sent a message that is too long");
                    return input.len();
                }
                Ok(Some(header)) => header,
                Err(malformed) => {
                    self.login_broken(now, id, &malformed.to_string());
                    return input.len();
                }
            };
            let length = header.message_len();
            if rest.len() < length {
                return at;
            }
            let step = match Tag::of(header) {
                Ok(tag) => self.login_message(now, id, tag, &rest[HEADER_LEN..length]),
                Err(malformed) => Err(malformed.to_string()),
            };
            if let Err(cause) = step {
                self.login_broken(now, id, &cause);
                return input.len();
            }
            at += length;
        }
        input.len()
    }

    fn login_message(
        &mut self,
        now: Time,
        id: ServerId,
        tag: Tag,
        body: &[u8],
    ) -> Result<(), String> {
        let server = &mut self.servers[id];
        let pool = server.pool;
        let ServerState::Login(login) = &mut server.state else {
            return Ok(());
        };
        let malformed = |malformed: pgweir_wire::Malformed| malformed.to_string();
        match tag {
            Tag::Authentication => self.login_challenged(id, pool, body),
            Tag::ParameterStatus if login.is_accepted() => {
                let (name, value) = backend::parse_parameter_status(body).map_err(malformed)?;
                login.parameters.set(name, value);
                Ok(())
            }
            Tag::BackendKeyData if login.is_accepted() => {
                login.key = Some(backend::parse_backend_key_data(body).map_err(malformed)?);
                Ok(())
            }
            Tag::ReadyForQuery if login.is_accepted() => {
                backend::parse_ready_for_query(body).map_err(malformed)?;
                self.logged_in(now, id, pool);
                Ok(())
            }
            Tag::NoticeResponse | Tag::NegotiateProtocolVersion => Ok(()),
            Tag::ErrorResponse => {
                let fields = ErrorFields::parse(body).map_err(malformed)?;
                let text = String::from_utf8_lossy(fields.message).into_owned();
                let code = fields.code.unwrap_or(SqlState::UNABLE_TO_CONNECT);
                let retry = if is_lasting(code) { Retry::Pointless } else { Retry::Later };
                let full = code == SqlState::TOO_MANY_CONNECTIONS;
                Mark::LoginPointless.hit_if(retry == Retry::Pointless);
                Mark::ServerFull.hit_if(full);
                self.pools[pool].stats.refused_full += u64::from(full);
                let address = &self.pools[pool].spec.address;
                let detail = format!("The server at {address} said this to pgweir.");
                let hint = fields.hint.map(|hint| String::from_utf8_lossy(hint).into_owned());
                let report = Report { hint, ..Report::fatal(code, text).detail(detail) };
                self.login_failed(now, id, report, retry);
                Ok(())
            }
            Tag::BackendKeyData
            | Tag::BindComplete
            | Tag::CloseComplete
            | Tag::CommandComplete
            | Tag::CopyBothResponse
            | Tag::CopyData
            | Tag::CopyDone
            | Tag::CopyInResponse
            | Tag::CopyOutResponse
            | Tag::DataRow
            | Tag::EmptyQueryResponse
            | Tag::FunctionCallResponse
            | Tag::NoData
            | Tag::NotificationResponse
            | Tag::ParameterDescription
            | Tag::ParameterStatus
            | Tag::ParseComplete
            | Tag::PortalSuspended
            | Tag::ReadyForQuery
            | Tag::RowDescription => Err(format!("it sent {tag:?} before the login was over")),
        }
    }

    /// The server asks for a proof, or has accepted one.
    fn login_challenged(&mut self, id: ServerId, pool: PoolId, body: &[u8]) -> Result<(), String> {
        let nonce = self.nonce();
        let ServerState::Login(login) = &mut self.servers[id].state else {
            return Ok(());
        };
        let Pool { spec, login_keys, .. } = &mut self.pools[pool];
        let password = spec.server_password.expose().as_bytes();
        let user = spec.server_user.as_bytes();
        let to = Endpoint::Server(id);
        let asked = Authentication::parse(body).map_err(|malformed| malformed.to_string())?;
        let proof = std::mem::replace(&mut login.proof, Proof::None);
        login.proof = match (asked, proof) {
            // A server that asks for nothing is taken at its word, and so is one that has seen the
            // password. Only SCRAM shows that the server knows it: once begun it must be ended.
            (Authentication::Ok, Proof::None | Proof::Sent | Proof::Mutual) => Proof::Accepted,
            // One that has let us in, or was answered before, is told nothing.
            (Authentication::CleartextPassword, Proof::None) => {
                self.actions.inject(to, |out| frontend::write_password(out, password));
                Proof::Sent
            }
            (Authentication::Md5Password(salt), Proof::None) => {
                let hash = match Verifier::parse(spec.server_password.expose()) {
                    Ok(Verifier::Md5(hash)) => hash,
                    _ => Md5Hash::of(password, user),
                };
                let response = hash.response(salt);
                self.actions.inject(to, |out| frontend::write_password(out, &response));
                Proof::Sent
            }
            (Authentication::Sasl(list), Proof::None) => {
                let mechanism = Mechanism::choose(backend::sasl_mechanisms(list));
                Mark::MechanismMissing.hit_if(mechanism.is_none());
                let mechanism = mechanism.ok_or("it offers no SASL mechanism that we speak")?;
                let client = ScramClient::new(nonce);
                let first = client.client_first();
                self.actions.inject(to, |out| {
                    SaslInitialResponse::write(out, mechanism.name().as_bytes(), &first);
                });
                Proof::First(client)
            }
            (Authentication::SaslContinue(data), Proof::First(client)) => {
                let challenge = client.server_first(data).map_err(|error| {
                    Mark::ChallengeUnfit.hit();
                    error.to_string()
                })?;
                let (salt, iterations) = (challenge.salt(), challenge.iterations());
                let keys = match login_keys {
                    Some(keys) if keys.fit(salt, iterations) => keys,
                    none_or_old => {
                        Mark::LoginKeysOld.hit_if(none_or_old.is_some());
                        none_or_old.insert(LoginKeys::derive(password, salt, iterations))
                    }
                };
                // No mark: they fit.
                let (client, answer) = challenge.answer(keys).map_err(|error| error.to_string())?;
                self.actions.inject(to, |out| frontend::write_sasl_response(out, &answer));
                Proof::Final(client)
            }
            (Authentication::SaslFinal(data), Proof::Final(client)) => {
                client.server_final(data).map_err(|error| {
                    Mark::ServerUnproved.hit();
                    error.to_string()
                })?;
                Proof::Mutual
            }
            (Authentication::Unsupported(code), _) => {
                Mark::MethodNotSpoken.hit();
                return Err(format!("it asks for authentication method {code}, not spoken here"));
            }
            (
                Authentication::Ok
                | Authentication::CleartextPassword
                | Authentication::Md5Password(_)
                | Authentication::Sasl(_)
                | Authentication::SaslContinue(_)
                | Authentication::SaslFinal(_),
                _,
            ) => {
                Mark::ChallengedOutOfOrder.hit();
                return Err("its authentication messages are out of order".to_owned());
            }
        };
        Ok(())
    }

    /// The server takes queries.
    fn logged_in(&mut self, now: Time, id: ServerId, pool: PoolId) {
        let server = &mut self.servers[id];
        let ServerState::Login(login) = std::mem::replace(&mut server.state, ServerState::Idle)
        else {
            return;
        };
        server.since = now;
        server.changed = now;
        server.key = login.key;
        // Until it is offered it is nobody's: as if it had just been cleaned.
        server.state = ServerState::AwaitingCancel;
        let its = &mut self.pools[pool];
        its.attempt_succeeded();
        server.parameters = its.reports.intern(login.parameters);
        server.note_encoding();
        if server.dedicated {
            let counts = server.counts.clone();
            self.count_opened(id);
            self.pass_question_on(id);
            self.dedicated_logged_in(now, id);
            return self.room_made(now, pool, &counts);
        }
        let before = its.at_login.replace(Rc::clone(&server.parameters));
        if before.is_some_and(|before| !Rc::ptr_eq(&before, &server.parameters)) {
            // Another version, or another configuration: what is remembered is out of date.
            Mark::WelcomesForgotten.hit();
            its.welcomes.clear();
        }
        if !self.ask_for_room(now, id) {
            return self.opened(now, id);
        }
        // Whoever waits behind attempts that have failed need not wait for the answer.
        self.refill(now, pool);
    }

    /// A new server can be lent.
    pub(crate) fn opened(&mut self, now: Time, id: ServerId) {
        let server = &self.servers[id];
        let (pool, counts) = (server.pool, server.counts.clone());
        self.count_opened(id);
        self.pass_turn_to_elders(now, pool, &counts);
        self.offer(now, id);
        self.room_made(now, pool, &counts);
    }

    fn login_broken(&mut self, now: Time, id: ServerId, cause: &str) {
        Mark::LoginBroken.hit();
        let Some(server) = self.servers.find(id) else { return };
        let address = &self.pools[server.pool].spec.address;
        let report = unreachable_server(address, cause);
        self.login_failed(now, id, report, Retry::Later);
    }

    /// An attempt has failed. Clients in the queue wait for the next one, or are told.
    pub(crate) fn login_failed(&mut self, now: Time, id: ServerId, report: Report, retry: Retry) {
        let pool = self.servers[id].pool;
        let jitter = u32::from_be_bytes(self.random.bytes());
        let its = &self.pools[pool];
        let event = Event::ServerRefused {
            server: self.member.server_number(id),
            pool: its.spec.name(),
            address: its.spec.address.clone(),
            cause: report.cause(),
        };
        self.actions.push(Action::Log(event));
        if self.servers[id].dedicated {
            return self.dedicated_failed(now, id, report);
        }
        if self.dies_of_birth(id, &report, retry) {
            return self.born_dead(now, id, report);
        }
        self.pools[pool].attempt_failed(now, report.clone(), jitter);
        let hopeless = retry == Retry::Pointless && self.has_no_server(pool);
        // It has its place in no queue.
        let promised = if hopeless { self.servers[id].promised_to.take() } else { None };
        if let Some(client) = promised {
            self.clients[client].leg = Leg::None;
        }
        self.actions.push(Action::Abort(Endpoint::Server(id)));
        self.forget_server(now, id);
        if hopeless {
            self.refuse_waiters(now, pool, &report);
        }
        if let Some(client) = promised {
            Mark::PromiseRefused.hit();
            self.unit_refused(now, client, Report { severity: Severity::Error, ..report });
        }
    }

    /// Whether no server has let us in that whoever waits could be given.
    pub(crate) fn has_no_server(&self, pool: PoolId) -> bool {
        let mut servers = self.servers.iter().map(|(_, server)| server);
        !servers.any(|server| {
            server.pool == pool && !server.is_opening() && !server.doomed && !server.dedicated
        })
    }

    /// Tells everybody in the queue why there will be no server.
    fn refuse_waiters(&mut self, now: Time, pool: PoolId, report: &Report) {
        let waiters: Vec<_> = self.pools[pool].waiters.iter().copied().collect();
        for waiter in waiters {
            let leg = self.clients.find(waiter.client).map(|client| client.leg);
            if leg == Some(Leg::Waiting(waiter.ticket)) {
                Mark::WaiterRefused.hit();
                let mut report = report.clone();
                report.severity = Severity::Error;
                self.unit_refused(now, waiter.client, report);
            }
        }
    }
}

/// The report for a server that gave no usable answer.
pub(crate) fn unreachable_server(address: &Address, cause: &str) -> Report {
    UNREACHABLE.report(&[]).detail(format!("Connecting to {address} failed: {cause}."))
}

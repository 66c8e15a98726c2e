//! A client shows that it is who it says it is.

use pgweir_auth::Verifier;
use pgweir_auth::scram::{Mechanism, ScramServer, ScramServerError, ScramServerFinal};
use pgweir_wire::backend::{self, Report};
use pgweir_wire::frontend::{self, SaslInitialResponse, Tag};
use pgweir_wire::{HEADER_LEN, Header, SqlState};

use super::{Login, Target, no_secret};
use crate::Engine;
use crate::action::{ClientId, Endpoint};
use crate::client::Phase;
use crate::errors::{ErrorKind, SCRAM_UNSUPPORTED, VIOLATION, WRONG_PASSWORD};
use crate::marks::Mark;
use crate::time::Time;

/// The longest `p` message before a login: `PG_MAX_SASL_MESSAGE_LENGTH` and some.
const MAX_SECRET_LEN: usize = 4_096;

/// What a client has to send next.
pub(super) enum Proof {
    Md5 { salt: [u8; 4], verifier: Verifier },
    Password { verifier: Verifier },
    ScramFinal(Box<ScramServerFinal>),
    ScramFirst(Box<ScramServer>),
}

impl Engine {
    /// Bytes of a client that has to prove who it is.
    pub(crate) fn login_input(&mut self, now: Time, id: ClientId, input: &[u8]) -> usize {
        let header = match Header::parse(input) {
            Ok(Some(header)) => header,
            Ok(None) => return 0,
            Err(malformed) => {
                Mark::ProofMalformed.hit();
                self.violated(now, id, malformed);
                return input.len();
            }
        };
        let answers = Tag::of(header) == Ok(Tag::Password);
        if !answers || header.body_len > MAX_SECRET_LEN {
            let text = if answers {
                Mark::ProofTooLong.hit();
                "the answer to the authentication request is too long".to_owned()
            } else {
                Mark::NoProof.hit();
                let tag = header.tag;
                format!("expected an answer to the authentication request, got message type {tag}")
            };
            self.expel(now, id, VIOLATION.report(&[&text]));
            return input.len();
        }
        let length = header.message_len();
        if input.len() < length {
            return 0;
        }
        let phase = std::mem::replace(&mut self.clients[id].phase, Phase::Startup);
        // No mark: in no other phase is input taken for a proof.
        let Phase::Login(login) = phase else {
            return 0;
        };
        if let Err((login, report)) = self.check_answer(now, id, *login, &input[HEADER_LEN..length])
        {
            self.clients[id].phase = Phase::Login(Box::new(login));
            self.expel(now, id, report);
            return input.len();
        }
        length
    }

    /// Checks one answer. A wrong one ends the login.
    #[expect(clippy::result_large_err, reason = "once for each login, and handed straight on")]
    fn check_answer(
        &mut self,
        now: Time,
        id: ClientId,
        login: Login,
        body: &[u8],
    ) -> Result<(), (Login, Report)> {
        let Login { user, database, target, proof, long_secret } = login;
        let again = |proof| Login {
            user: user.clone(),
            database: database.clone(),
            target,
            proof,
            long_secret,
        };
        let nothing = || Proof::Password { verifier: Verifier::Plain(no_secret()) };
        let is_nobody = target == Target::Nowhere;
        let refused = || (again(nothing()), WRONG_PASSWORD.report(&[&user]));
        let broken = |text: String| (again(nothing()), VIOLATION.report(&[&text]));
        let scram_failed = |error| (again(nothing()), scram_error(error).report(&[&error]));
        let password = || {
            frontend::password(body).map_err(|malformed| {
                Mark::PasswordMalformed.hit();
                broken(malformed.to_string())
            })
        };
        let accepted = match proof {
            Proof::Password { verifier } => {
                verifier.accepts_cleartext(user.as_bytes(), password()?)
            }
            Proof::Md5 { salt, verifier } => {
                verifier.accepts_md5(user.as_bytes(), salt, password()?)
            }
            Proof::ScramFirst(scram) => {
                let first = SaslInitialResponse::parse(body).map_err(|malformed| {
                    Mark::SaslMalformed.hit();
                    broken(malformed.to_string())
                })?;
                let data = first.data.unwrap_or_default();
                if Mechanism::parse(first.mechanism).is_none() {
                    Mark::MechanismUnknown.hit();
                    return Err(broken("client selected an invalid SASL mechanism".to_owned()));
                }
                let (next, reply) = scram.client_first(data).map_err(|error| {
                    Mark::ScramNotBegun.hit();
                    scram_failed(error)
                })?;
                self.actions.inject(Endpoint::Client(id), |out| {
                    backend::authentication_sasl_continue(out, &reply);
                });
                let login = again(Proof::ScramFinal(Box::new(next)));
                self.clients[id].phase = Phase::Login(Box::new(login));
                return Ok(());
            }
            Proof::ScramFinal(scram) => match scram.client_final(body) {
                Ok(authenticated) => {
                    // A made-up user has no proof that fits, so this is a known one.
                    self.actions.inject(Endpoint::Client(id), |out| {
                        backend::authentication_sasl_final(out, &authenticated.server_final);
                    });
                    true
                }
                Err(ScramServerError::WrongProof) => {
                    Mark::ScramProofWrong.hit();
                    false
                }
                Err(error) => {
                    Mark::ScramNotEnded.hit();
                    return Err(scram_failed(error));
                }
            },
        };
        if !accepted || is_nobody {
            Mark::ProofWrong.hit_if(!is_nobody);
            Mark::ProofOfNobody.hit_if(is_nobody);
            return Err(refused());
        }
        self.actions.inject(Endpoint::Client(id), backend::authentication_ok);
        self.admit(now, id, again(nothing()));
        Ok(())
    }
}

/// What kind of error ends a SCRAM exchange.
fn scram_error(error: ScramServerError) -> ErrorKind {
    match SqlState::parse(error.sqlstate().as_bytes()) {
        Some(SqlState::FEATURE_NOT_SUPPORTED) => SCRAM_UNSUPPORTED,
        _ => VIOLATION,
    }
}

//! How a server lets somebody in.

use std::sync::LazyLock;

use pgweir_auth::Md5Hash;
use pgweir_auth::scram::{Iterations, Nonce, ScramKeys, ScramServer, ScramServerFinal};
use pgweir_wire::backend;
use pgweir_wire::frontend::{SaslInitialResponse, password};
use pgweir_wire::{CancelKey, HEADER_LEN, Header, Initial, TransactionStatus};

const USER: &[u8] = b"alice";
const PASSWORD: &[u8] = b"pencil";
const SALT: [u8; 4] = [1, 2, 3, 4];

static KEYS: LazyLock<ScramKeys> = LazyLock::new(|| {
    let few = Iterations::new(2).expect("2 is a count");
    ScramKeys::derive(PASSWORD, b"salt", few)
});

/// What a server asks of whoever logs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Login {
    Trust,
    Cleartext,
    Md5,
    Scram,
}

impl Login {
    /// Each way.
    pub(crate) const ALL: [Self; 4] = [Self::Trust, Self::Cleartext, Self::Md5, Self::Scram];
}

/// How far a login has come.
pub(super) enum Progress {
    Startup(Login),
    Cleartext,
    Md5,
    ScramFirst,
    ScramFinal(ScramServerFinal),
    Over,
}

impl Progress {
    pub(super) fn new(login: Login) -> Self {
        Self::Startup(login)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Over)
    }

    /// Takes one message; `None` while there is none. It panics at one that is not right: only
    /// the engine logs in here, and it knows the password.
    pub(super) fn step(
        &mut self,
        input: &[u8],
        key: &CancelKey,
        out: &mut Vec<u8>,
    ) -> Option<usize> {
        let (read, body): (usize, &[u8]) = match self {
            Self::Startup(_) => {
                let (initial, length) = Initial::parse(input).expect("a startup packet")?;
                assert!(matches!(initial, Initial::Startup(_)), "{initial:?}");
                (length, &[])
            }
            _ => {
                let header = Header::parse(input).expect("an answer")?;
                assert_eq!(header.tag, b'p');
                (header.message_len(), input.get(HEADER_LEN..header.message_len())?)
            }
        };
        *self = match std::mem::replace(self, Self::Over) {
            Self::Startup(login) => begin(login, key, out),
            Self::Cleartext => {
                assert_eq!(password(body), Ok(PASSWORD));
                welcome(key, out)
            }
            Self::Md5 => {
                let hash = Md5Hash::of(PASSWORD, USER);
                let given = password(body).expect("a PasswordMessage");
                // The users of this world differ, and so do their hashes.
                assert_eq!(given.len(), hash.response(SALT).len());
                welcome(key, out)
            }
            Self::ScramFirst => {
                let first = SaslInitialResponse::parse(body).expect("a SASLInitialResponse");
                let server = ScramServer::new(KEYS.clone(), Nonce::new([6; Nonce::RANDOM_LEN]));
                let first = first.data.expect("a message of the mechanism");
                let (next, challenge) = server.client_first(first).expect("client-first");
                backend::authentication_sasl_continue(out, &challenge);
                Self::ScramFinal(next)
            }
            Self::ScramFinal(next) => {
                let authenticated = next.client_final(body).expect("the engine has the password");
                backend::authentication_sasl_final(out, &authenticated.server_final);
                welcome(key, out)
            }
            Self::Over => Self::Over,
        };
        Some(read)
    }
}

fn begin(login: Login, key: &CancelKey, out: &mut Vec<u8>) -> Progress {
    match login {
        Login::Trust => welcome(key, out),
        Login::Cleartext => {
            backend::authentication_cleartext(out);
            Progress::Cleartext
        }
        Login::Md5 => {
            backend::authentication_md5(out, SALT);
            Progress::Md5
        }
        Login::Scram => {
            backend::authentication_sasl(out, &[b"SCRAM-SHA-256"]);
            Progress::ScramFirst
        }
    }
}

fn welcome(key: &CancelKey, out: &mut Vec<u8>) -> Progress {
    backend::authentication_ok(out);
    backend::parameter_status(out, b"server_version", b"17.0");
    backend::parameter_status(out, b"client_encoding", b"UTF8");
    backend::backend_key_data(out, key);
    backend::ready_for_query(out, TransactionStatus::Idle);
    Progress::Over
}

//! SCRAM-SHA-256 (RFC 5802, RFC 7677) as PostgreSQL speaks it.
//!
//! One login is four messages:
//!
//! ```text
//! client                                    server
//! client-first   n,,n=,r=CLIENT        →            ScramServer::client_first
//!                                      ←    server-first   r=CLIENTSERVER,s=SALT,i=4096
//! client-final   c=biws,r=…,p=PROOF    →            ScramServerFinal::client_final
//!                                      ←    server-final   v=SIGNATURE
//! ```
//!
//! PostgreSQL's own rules on top of the RFCs (`src/backend/libpq/auth-scram.c`): the user is the
//! one of the startup packet and the `n=` attribute is not looked at; an authorization identity is
//! refused; a password that SASLprep does not accept is taken as it is.
//!
//! Channel binding (SCRAM-SHA-256-PLUS) is not offered. It would be a variant of [`Mechanism`] and
//! one of `ChannelBinding`, and the binding data would be an argument of the two `new` functions.

use base64::{Engine, prelude::BASE64_STANDARD};

mod client;
mod keys;
mod message;
mod saslprep;
mod server;

pub use client::{ScramChallenge, ScramClient, ScramClientError, ScramClientFinal};
pub(crate) use keys::hmac;
pub use keys::{Iterations, LoginKeys, ScramKeys};
pub use message::{
    MAX_CLIENT_MESSAGE_LEN, MAX_CLIENT_NONCE_LEN, MAX_SERVER_MESSAGE_LEN, MessageError,
};
pub use server::{Authenticated, ScramServer, ScramServerError, ScramServerFinal};

/// A SASL mechanism that we speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// `SCRAM-SHA-256`, without channel binding.
    ScramSha256,
}

impl Mechanism {
    /// The mechanisms that a server of ours offers, the one it likes best first.
    pub const OFFERED: [Self; 1] = [Self::ScramSha256];

    /// The mechanism that a SASLInitialResponse names, if we speak it.
    pub fn parse(name: &[u8]) -> Option<Self> {
        Self::OFFERED.into_iter().find(|mechanism| mechanism.name().as_bytes() == name)
    }

    /// The one of the mechanisms in a server's AuthenticationSASL that we use, if we speak any.
    pub fn choose<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        names.into_iter().find_map(Self::parse)
    }

    /// The name in the IANA registry of SASL mechanisms.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ScramSha256 => "SCRAM-SHA-256",
        }
    }
}

/// What a client says about channel binding: the `gs2-cbind-flag` of RFC 5802.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChannelBinding {
    /// `n`: the client does not do it.
    Unsupported,
    /// `y`: the client would, but believes that the server does not. As long as the server does
    /// not, this is true; once it offers the `-PLUS` mechanism, it means that somebody on the way
    /// took the offer away.
    NotOffered,
}

impl ChannelBinding {
    /// The GS2 header with which client-first begins.
    const fn gs2_header(self) -> &'static str {
        match self {
            Self::Unsupported => "n,,",
            Self::NotOffered => "y,,",
        }
    }

    /// The `c=` attribute of client-final, by which the proof covers what was said first.
    fn attribute(self) -> String {
        BASE64_STANDARD.encode(self.gs2_header())
    }
}

/// Our part of the nonce of one exchange, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// How many random bytes PostgreSQL takes for it (`SCRAM_RAW_NONCE_LEN` in
    /// `src/include/common/scram-common.h`).
    pub const RANDOM_LEN: usize = 18;

    /// Makes a nonce of bytes that no one can foresee and that are never used again.
    pub fn new(random: [u8; Self::RANDOM_LEN]) -> Self {
        Self(BASE64_STANDARD.encode(random))
    }

    fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests;

//! The server's side: a client logs in to us.

use std::fmt;

use super::message::{self, ClientFinal, ClientFirst, MessageError, ServerFinal, ServerFirst};
use super::{ChannelBinding, Nonce, ScramKeys};

/// An exchange that waits for the client-first message: the client was told to use SCRAM.
#[derive(Debug)]
pub struct ScramServer {
    keys: ScramKeys,
    nonce: Nonce,
}

impl ScramServer {
    /// Begins an exchange with a user who has `keys`. For a user who has none, or does not exist,
    /// [`MockAuth::scram_keys`](crate::MockAuth::scram_keys) gives some.
    pub const fn new(keys: ScramKeys, nonce: Nonce) -> Self {
        Self { keys, nonce }
    }

    /// Takes the data of the SASLInitialResponse. Gives the data for AuthenticationSASLContinue,
    /// and the state that waits for the answer to it.
    ///
    /// # Errors
    ///
    /// [`ScramServerError::Message`]. The exchange is over then, as after every error.
    pub fn client_first(
        self,
        message: &[u8],
    ) -> Result<(ScramServerFinal, Vec<u8>), ScramServerError> {
        let ClientFirst { binding, nonce, bare } = ClientFirst::parse(message)?;
        let nonce = format!("{nonce}{}", self.nonce.as_str());
        let server_first = ServerFirst::encode(&nonce, &self.keys).into_bytes();
        let next = ScramServerFinal {
            keys: self.keys,
            binding,
            nonce,
            client_first_bare: bare.to_vec(),
            server_first: server_first.clone(),
        };
        Ok((next, server_first))
    }
}

/// An exchange that waits for the client-final message: the client has our challenge.
#[derive(Debug)]
pub struct ScramServerFinal {
    keys: ScramKeys,
    binding: ChannelBinding,
    nonce: String,
    client_first_bare: Vec<u8>,
    server_first: Vec<u8>,
}

impl ScramServerFinal {
    /// Takes the data of the SASLResponse, and lets the client in or not.
    ///
    /// # Errors
    ///
    /// See [`ScramServerError`].
    pub fn client_final(self, message: &[u8]) -> Result<Authenticated, ScramServerError> {
        let client_final = ClientFinal::parse(message)?;
        if client_final.channel_binding != self.binding.attribute().as_bytes() {
            return Err(ScramServerError::ChannelBindingMismatch);
        }
        if client_final.nonce != self.nonce.as_bytes() {
            return Err(ScramServerError::NonceMismatch);
        }
        let auth_message = message::auth_message(
            &self.client_first_bare,
            &self.server_first,
            client_final.without_proof,
        );
        if !self.keys.are_proved(&client_final.proof, &auth_message) {
            return Err(ScramServerError::WrongProof);
        }
        let signature = self.keys.server_signature(&auth_message);
        Ok(Authenticated { server_final: ServerFinal::encode(&signature).into_bytes() })
    }
}

/// The client knows its password.
#[derive(Debug)]
pub struct Authenticated {
    /// The data for AuthenticationSASLFinal, which goes before AuthenticationOk.
    pub server_final: Vec<u8>,
}

/// Why a client is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScramServerError {
    /// It did not send the message that was due.
    Message(MessageError),
    /// What it says about channel binding at the end is not what it said at the beginning.
    ChannelBindingMismatch,
    /// It answers another challenge.
    NonceMismatch,
    /// It has another password, or nobody has its name.
    WrongProof,
}

impl ScramServerError {
    /// The SQLSTATE that PostgreSQL gives for it: 28P01 to a client that did everything right but
    /// for the password, else 08P01 or 0A000.
    pub const fn sqlstate(self) -> &'static str {
        match self {
            Self::Message(
                MessageError::AuthorizationIdentity | MessageError::MandatoryExtension,
            ) => "0A000",
            Self::Message(_) | Self::ChannelBindingMismatch | Self::NonceMismatch => "08P01",
            Self::WrongProof => "28P01",
        }
    }
}

impl From<MessageError> for ScramServerError {
    fn from(error: MessageError) -> Self {
        Self::Message(error)
    }
}

impl fmt::Display for ScramServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(error) => write!(f, "malformed SCRAM message: {error}"),
            Self::ChannelBindingMismatch => {
                f.write_str("the SCRAM channel-binding attribute changed during the exchange")
            }
            Self::NonceMismatch => f.write_str("the SCRAM nonce does not match"),
            Self::WrongProof => f.write_str("the SCRAM proof does not fit"),
        }
    }
}

impl std::error::Error for ScramServerError {}

#[cfg(test)]
mod tests;

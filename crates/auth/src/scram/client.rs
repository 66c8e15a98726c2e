//! The client's side: we log in to a server.

use std::fmt;

use super::keys::Key;
use super::message::{self, ClientFinal, ClientFirst, MessageError, ServerFinal, ServerFirst};
use super::{ChannelBinding, Iterations, LoginKeys, Nonce};

/// An exchange that waits for the server-first message, once client-first is sent.
#[derive(Debug)]
pub struct ScramClient {
    nonce: Nonce,
}

impl ScramClient {
    /// Begins an exchange.
    pub const fn new(nonce: Nonce) -> Self {
        Self { nonce }
    }

    /// The data for the SASLInitialResponse.
    pub fn client_first(&self) -> Vec<u8> {
        ClientFirst::encode(BINDING, &ClientFirst::encode_bare(&self.nonce)).into_bytes()
    }

    /// Takes the data of the AuthenticationSASLContinue.
    ///
    /// # Errors
    ///
    /// [`Message`](ScramClientError::Message), [`NonceMismatch`](ScramClientError::NonceMismatch),
    /// [`TooManyIterations`](ScramClientError::TooManyIterations). The exchange is over then, as
    /// after every error.
    pub fn server_first(self, message: &[u8]) -> Result<ScramChallenge, ScramClientError> {
        let ServerFirst { nonce, salt, iterations } = ServerFirst::parse(message)?;
        let server_part = nonce.strip_prefix(self.nonce.as_str());
        if server_part.is_none_or(str::is_empty) {
            return Err(ScramClientError::NonceMismatch);
        }
        if iterations > Iterations::MAX_FROM_SERVER {
            return Err(ScramClientError::TooManyIterations(iterations));
        }
        Ok(ScramChallenge {
            client_first_bare: ClientFirst::encode_bare(&self.nonce),
            nonce: nonce.to_owned(),
            salt: salt.into(),
            iterations,
            server_first: message.to_vec(),
        })
    }
}

/// A server's challenge, to be answered with keys that fit it: those that are at hand from an
/// earlier login or from the client, or new ones from the password.
#[derive(Debug)]
pub struct ScramChallenge {
    client_first_bare: String,
    nonce: String,
    salt: Box<[u8]>,
    iterations: Iterations,
    server_first: Vec<u8>,
}

impl ScramChallenge {
    /// The salt of the secret that the server stores.
    pub const fn salt(&self) -> &[u8] {
        &self.salt
    }

    /// Its iteration count, at most [`Iterations::MAX_FROM_SERVER`].
    pub const fn iterations(&self) -> Iterations {
        self.iterations
    }

    /// Makes the keys of `password` that fit, to be kept for the next login. Takes PBKDF2's time.
    pub fn derive_keys(&self, password: &[u8]) -> LoginKeys {
        LoginKeys::derive(password, &self.salt, self.iterations)
    }

    /// Gives the data for the SASLResponse, and the state that waits for the server's end of it.
    ///
    /// # Errors
    ///
    /// [`ScramClientError::KeysDoNotFit`]. The challenge is still open then: derive new keys.
    pub fn answer(
        &self,
        keys: &LoginKeys,
    ) -> Result<(ScramClientFinal, Vec<u8>), ScramClientError> {
        if !keys.fit(&self.salt, self.iterations) {
            return Err(ScramClientError::KeysDoNotFit);
        }
        let without_proof = ClientFinal::encode_without_proof(BINDING, &self.nonce);
        let auth_message = message::auth_message(
            self.client_first_bare.as_bytes(),
            &self.server_first,
            without_proof.as_bytes(),
        );
        let client_final = ClientFinal::encode(&without_proof, &keys.prove(&auth_message));
        let next = ScramClientFinal { server_signature: keys.server_signature(&auth_message) };
        Ok((next, client_final.into_bytes()))
    }
}

/// An exchange that waits for the server-final message.
///
/// Only after it do we know that the server has our secret too. One that says AuthenticationOk
/// without it is not the server we are looking for.
#[derive(Debug)]
pub struct ScramClientFinal {
    server_signature: Key,
}

impl ScramClientFinal {
    /// Takes the data of the AuthenticationSASLFinal.
    ///
    /// # Errors
    ///
    /// [`Message`](ScramClientError::Message), [`Refused`](ScramClientError::Refused),
    /// [`WrongServerSignature`](ScramClientError::WrongServerSignature).
    pub fn server_final(self, message: &[u8]) -> Result<(), ScramClientError> {
        match ServerFinal::parse(message)? {
            ServerFinal::Signature(signature) if signature == self.server_signature => Ok(()),
            ServerFinal::Signature(_) => Err(ScramClientError::WrongServerSignature),
            ServerFinal::Refused(reason) => Err(ScramClientError::Refused(reason.to_owned())),
        }
    }
}

/// Why a login to a server failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScramClientError {
    /// The server did not send the message that was due.
    Message(MessageError),
    /// The server's nonce does not continue ours.
    NonceMismatch,
    /// The server asks for more than [`Iterations::MAX_FROM_SERVER`].
    TooManyIterations(Iterations),
    /// The keys were made with another salt or iteration count: the password was changed, or the
    /// server stores another secret than we.
    KeysDoNotFit,
    /// The server refuses us, for this reason in printable ASCII. (PostgreSQL tells a wrong
    /// password by an ErrorResponse.)
    Refused(String),
    /// The server let us in without knowing our secret.
    WrongServerSignature,
}

impl From<MessageError> for ScramClientError {
    fn from(error: MessageError) -> Self {
        Self::Message(error)
    }
}

impl fmt::Display for ScramClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(error) => write!(f, "malformed SCRAM message: {error}"),
            Self::NonceMismatch => f.write_str("the SCRAM nonce does not match"),
            Self::TooManyIterations(iterations) => write!(
                f,
                "the server asks for {} SCRAM iterations, over the limit of {}",
                iterations.count(),
                Iterations::MAX_FROM_SERVER.count()
            ),
            Self::KeysDoNotFit => f.write_str("the SCRAM keys do not fit the server's secret"),
            Self::Refused(reason) => write!(f, "the server refused the SCRAM exchange: {reason}"),
            Self::WrongServerSignature => f.write_str("the SCRAM signature of the server is wrong"),
        }
    }
}

impl std::error::Error for ScramClientError {}

/// What we tell servers about channel binding.
const BINDING: ChannelBinding = ChannelBinding::Unsupported;

#[cfg(test)]
mod tests;

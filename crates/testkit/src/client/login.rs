use std::{
    fmt::{self, Display},
    io::{self, ErrorKind},
};

use postgres_protocol::authentication::{
    md5_hash,
    sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256},
};

use super::WireClient;
use crate::{
    Message,
    frames::{self, PROTOCOL_3_0},
};

/// Who logs in, and with which startup message.
#[derive(Clone)]
#[must_use]
pub struct Login {
    protocol: u32,
    user: String,
    password: String,
    /// In the order in which they are sent, `user` first.
    parameters: Vec<(String, String)>,
}

impl Login {
    /// `user` for the database `postgres` by protocol 3.0.
    pub fn new(user: &str) -> Self {
        Self {
            protocol: PROTOCOL_3_0,
            user: user.to_owned(),
            password: String::new(),
            parameters: Vec::new(),
        }
        .parameter("user", user)
        .parameter("database", "postgres")
    }

    /// The password to prove.
    pub fn password(mut self, password: &str) -> Self {
        password.clone_into(&mut self.password);
        self
    }

    /// Another database.
    pub fn database(self, database: &str) -> Self {
        self.parameter("database", database)
    }

    /// A startup parameter such as `application_name`, `options` or `_pq_.extension`.
    pub fn parameter(mut self, name: &str, value: &str) -> Self {
        match self.parameters.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => value.clone_into(old),
            None => self.parameters.push((name.to_owned(), value.to_owned())),
        }
        self
    }

    /// Another protocol version: major in the upper half, minor in the lower.
    pub fn protocol(mut self, protocol: u32) -> Self {
        self.protocol = protocol;
        self
    }

    /// The StartupMessage.
    #[must_use]
    pub fn startup_message(&self) -> Vec<u8> {
        let parameters: Vec<_> =
            self.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        frames::startup(self.protocol, &parameters)
    }

    /// Sends the startup message and answers until ReadyForQuery.
    pub(super) fn perform(&self, client: &mut WireClient) -> Result<(), LoginError> {
        client.send(&self.startup_message())?;
        loop {
            let message = client.read()?.ok_or(ErrorKind::UnexpectedEof)?;
            match message.tag {
                b'R' => self.authenticate(client, &message)?,
                b'E' => return Err(LoginError::Refused(message)),
                tag => {
                    client.greeting.push(message);
                    if tag == b'Z' {
                        return Ok(());
                    }
                }
            }
        }
    }

    fn authenticate(&self, client: &mut WireClient, request: &Message) -> Result<(), LoginError> {
        let Some((kind, rest)) = request.body.split_first_chunk() else {
            return Err(LoginError::Unexpected(request.clone()));
        };
        match (u32::from_be_bytes(*kind), rest) {
            (0, []) => {}
            (3, []) => {
                client.auth_method = AuthMethod::Password;
                client.send(&frames::password(&self.password))?;
            }
            (5, &[a, b, c, d]) => {
                client.auth_method = AuthMethod::Md5;
                let (user, password) = (self.user.as_bytes(), self.password.as_bytes());
                client.send(&frames::password(&md5_hash(user, password, [a, b, c, d])))?;
            }
            (10, mechanisms) => {
                let mut offered = mechanisms.split(|byte| *byte == 0);
                if !offered.any(|name| name == SCRAM_SHA_256.as_bytes()) {
                    return Err(LoginError::Unexpected(request.clone()));
                }
                client.auth_method = AuthMethod::ScramSha256;
                self.scram(client)?;
            }
            _ => return Err(LoginError::Unexpected(request.clone())),
        }
        Ok(())
    }

    /// Both round trips of SCRAM, by the client of another project: pgweir's own would not notice
    /// its own mistakes.
    fn scram(&self, client: &mut WireClient) -> Result<(), LoginError> {
        let mut scram = ScramSha256::new(self.password.as_bytes(), ChannelBinding::unsupported());
        let first = scram.message();
        let mut body = [SCRAM_SHA_256.as_bytes(), b"\0"].concat();
        // A length of four bytes, as everywhere; the first message has some fifty.
        body.extend((first.len() as u32).to_be_bytes());
        body.extend_from_slice(first);
        client.send(&frames::message(b'p', &body))?;

        scram.update(&sasl_data(client, 11)?)?;
        client.send(&frames::message(b'p', scram.message()))?;
        scram.finish(&sasl_data(client, 12)?)?;
        Ok(())
    }
}

/// Without the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("protocol", &self.protocol)
            .field("parameters", &self.parameters)
            .finish_non_exhaustive()
    }
}

/// How a server had a client prove who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMethod {
    /// It asked for nothing.
    Trust,
    /// AuthenticationCleartextPassword.
    Password,
    /// AuthenticationMD5Password.
    Md5,
    /// AuthenticationSASL with SCRAM-SHA-256.
    ScramSha256,
}

/// Why a login did not work.
#[derive(Debug)]
pub enum LoginError {
    /// The server's ErrorResponse.
    Refused(Message),
    /// An authentication request that this client does not know, or a bad one.
    Unexpected(Message),
    /// The connection failed; `UnexpectedEof` if the server closed it without a word.
    Io(io::Error),
}

impl Display for LoginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(message) => write!(f, "refused: {message}"),
            Self::Unexpected(message) => write!(f, "unexpected: {message}"),
            Self::Io(error) => write!(f, "connection: {error}"),
        }
    }
}

impl std::error::Error for LoginError {}

impl From<io::Error> for LoginError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ErrorKind> for LoginError {
    fn from(kind: ErrorKind) -> Self {
        Self::Io(kind.into())
    }
}

/// The payload of the next message, which must be an authentication request of this kind.
fn sasl_data(client: &mut WireClient, kind: u32) -> Result<Vec<u8>, LoginError> {
    let message = client.read()?.ok_or(ErrorKind::UnexpectedEof)?;
    match (message.tag, message.body.strip_prefix(&kind.to_be_bytes())) {
        (b'R', Some(data)) => Ok(data.to_vec()),
        (b'E', _) => Err(LoginError::Refused(message)),
        _ => Err(LoginError::Unexpected(message)),
    }
}

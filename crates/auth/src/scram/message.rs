//! The grammar of the four SCRAM messages (RFC 5802 §7), both ways.
//!
//! A message is attributes, `x=value`, between commas, in a fixed order. What is read here was
//! written by somebody who has not proved who they are. The readers take any bytes, allocate in
//! proportion to them and keep nothing of them in an error, which may be logged.
//!
//! They are stricter than PostgreSQL where no client differs: a nonce is not empty, and no comma
//! stands at the end.

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};

use super::keys::{Iterations, Key, ScramKeys};
use super::{ChannelBinding, Nonce};

/// The longest message that a client may send, in bytes: PostgreSQL's `PG_MAX_SASL_MESSAGE_LENGTH`
/// (`src/backend/libpq/auth-sasl.c`).
pub const MAX_CLIENT_MESSAGE_LEN: usize = 1024;

/// The longest message that a server may send, in bytes: libpq's limit for authentication messages
/// (`src/interfaces/libpq/fe-connect.c`, `PQconnectPoll`).
pub const MAX_SERVER_MESSAGE_LEN: usize = 2000;

/// The longest nonce of a client, in bytes. Client-final repeats it, together with our part and the
/// proof, and has to stay within [`MAX_CLIENT_MESSAGE_LEN`]. Clients send about 24 bytes.
pub const MAX_CLIENT_NONCE_LEN: usize = 512;

/// `n,,n=user,r=nonce`: a client begins.
#[derive(Debug)]
pub(super) struct ClientFirst<'a> {
    pub(super) binding: ChannelBinding,
    /// The client's part of the nonce.
    pub(super) nonce: &'a str,
    /// The message without its GS2 header, which the proof covers.
    pub(super) bare: &'a [u8],
}

impl<'a> ClientFirst<'a> {
    pub(super) fn parse(message: &'a [u8]) -> Result<Self, MessageError> {
        check_text(message, MAX_CLIENT_MESSAGE_LEN)?;
        let (binding, bare) = split_gs2_header(message)?;
        let mut attributes = attributes(bare)?;
        value(attributes.next(), 'n')?;
        let nonce = nonce(attributes.next())?;
        if nonce.len() > MAX_CLIENT_NONCE_LEN {
            return Err(MessageError::NonceTooLong);
        }
        check_extensions(attributes)?;
        Ok(Self { binding, nonce, bare })
    }

    /// Writes the part that the proof covers. The user name in it is empty, as libpq leaves it: the
    /// server knows it from the startup packet.
    pub(super) fn encode_bare(nonce: &Nonce) -> String {
        format!("n=,r={}", nonce.as_str())
    }

    /// Writes the whole: the GS2 header and that part.
    pub(super) fn encode(binding: ChannelBinding, bare: &str) -> String {
        format!("{}{bare}", binding.gs2_header())
    }
}

/// `r=nonce,s=salt,i=iterations`: a server's challenge.
#[derive(Debug)]
pub(super) struct ServerFirst<'a> {
    /// The client's part of the nonce and the server's, joined.
    pub(super) nonce: &'a str,
    pub(super) salt: Vec<u8>,
    /// Whether the count is too high is not a question of grammar.
    pub(super) iterations: Iterations,
}

impl<'a> ServerFirst<'a> {
    pub(super) fn parse(message: &'a [u8]) -> Result<Self, MessageError> {
        check_text(message, MAX_SERVER_MESSAGE_LEN)?;
        let mut attributes = attributes(message)?;
        let nonce = nonce(attributes.next())?;
        let salt = BASE64_STANDARD
            .decode(value(attributes.next(), 's')?)
            .map_err(|_| MessageError::Base64 { attribute: 's' })?;
        let iterations =
            Iterations::parse(value(attributes.next(), 'i')?).ok_or(MessageError::Iterations)?;
        check_extensions(attributes)?;
        Ok(Self { nonce, salt, iterations })
    }

    /// Writes one for the user of `keys`.
    pub(super) fn encode(nonce: &str, keys: &ScramKeys) -> String {
        let salt = BASE64_STANDARD.encode(keys.salt());
        format!("r={nonce},s={salt},i={}", keys.iterations().count())
    }
}

/// `c=binding,r=nonce,p=proof`: a client's answer.
#[derive(Debug)]
pub(super) struct ClientFinal<'a> {
    /// The GS2 header and the binding data, still in base64: the server knows what it must be.
    pub(super) channel_binding: &'a [u8],
    /// The whole nonce: the server knows what it must be.
    pub(super) nonce: &'a [u8],
    /// The message up to the proof, which the proof covers.
    pub(super) without_proof: &'a [u8],
    pub(super) proof: Key,
}

impl<'a> ClientFinal<'a> {
    pub(super) fn parse(message: &'a [u8]) -> Result<Self, MessageError> {
        check_text(message, MAX_CLIENT_MESSAGE_LEN)?;
        let mut attributes = message.split(is_comma);
        let channel_binding = value(attributes.next(), 'c')?;
        let nonce = value(attributes.next(), 'r')?;
        let proof = value(attributes.next_back(), 'p')?;
        check_extensions(attributes)?;
        // The proof is the last attribute and others stand before it, so `,p=` and the proof are
        // the end of the message.
        let without_proof = &message[..message.len() - ",p=".len() - proof.len()];
        let proof = key(proof, 'p')?;
        Ok(Self { channel_binding, nonce, without_proof, proof })
    }

    /// Writes the part that the proof covers.
    pub(super) fn encode_without_proof(binding: ChannelBinding, nonce: &str) -> String {
        format!("c={},r={nonce}", binding.attribute())
    }

    /// Writes the whole: that part and the proof.
    pub(super) fn encode(without_proof: &str, proof: &Key) -> String {
        format!("{without_proof},p={}", proof.encode())
    }
}

/// `v=signature` or `e=reason`: a server ends the exchange.
#[derive(Debug)]
pub(super) enum ServerFinal<'a> {
    Signature(Key),
    /// In printable ASCII. PostgreSQL sends an ErrorResponse instead.
    Refused(&'a str),
}

impl<'a> ServerFinal<'a> {
    pub(super) fn parse(message: &'a [u8]) -> Result<Self, MessageError> {
        check_text(message, MAX_SERVER_MESSAGE_LEN)?;
        let mut attributes = message.split(is_comma);
        let outcome = attributes.next();
        check_extensions(attributes)?;
        match value(outcome, 'e') {
            Ok(reason) => printable(reason).map(Self::Refused).ok_or(MessageError::Reason),
            Err(_) => Ok(Self::Signature(key(value(outcome, 'v')?, 'v')?)),
        }
    }

    /// Writes one of success.
    pub(super) fn encode(signature: &Key) -> String {
        format!("v={}", signature.encode())
    }
}

/// What the proof and the signature are made over: RFC 5802's `AuthMessage`.
pub(super) fn auth_message(
    client_first_bare: &[u8],
    server_first: &[u8],
    client_final_without_proof: &[u8],
) -> Vec<u8> {
    [client_first_bare, server_first, client_final_without_proof].join(&b',')
}

/// Why bytes are not the SCRAM message that was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageError {
    /// There are none.
    Empty,
    /// More than [`MAX_CLIENT_MESSAGE_LEN`] or [`MAX_SERVER_MESSAGE_LEN`].
    TooLong,
    /// A NUL byte is among them.
    NulByte,
    /// Client-first does not begin with a GS2 header.
    Gs2Header,
    /// The client uses channel binding in a mechanism without it.
    ChannelBinding,
    /// The client names an authorization identity, which PostgreSQL does not support.
    AuthorizationIdentity,
    /// The peer demands an extension (`m=`). There are none.
    MandatoryExtension,
    /// This attribute is missing, misplaced or misspelt.
    Attribute {
        /// Its letter.
        expected: char,
    },
    /// Something that is no attribute stands where extensions may.
    Extension,
    /// The nonce is empty or has a character that is not printable ASCII.
    Nonce,
    /// The nonce is longer than [`MAX_CLIENT_NONCE_LEN`].
    NonceTooLong,
    /// The value of this attribute is not base64, or not of as many bytes as it must be.
    Base64 {
        /// Its letter.
        attribute: char,
    },
    /// The iteration count is no positive number, or over PostgreSQL's `int`.
    Iterations,
    /// The reason of a refusal is empty or not printable ASCII.
    Reason,
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::Empty => "it is empty",
            Self::TooLong => "it is too long",
            Self::NulByte => "it has a NUL byte in it",
            Self::Gs2Header => "it does not begin with a GS2 header",
            Self::ChannelBinding => "it uses channel binding, which was not offered",
            Self::AuthorizationIdentity => "it has an authorization identity",
            Self::MandatoryExtension => "it demands an extension",
            Self::Attribute { expected } => return write!(f, "attribute \"{expected}\" expected"),
            Self::Extension => "what follows the last attribute is not an extension",
            Self::Nonce => "the nonce is empty or not printable",
            Self::NonceTooLong => "the nonce is too long",
            Self::Base64 { attribute } => {
                return write!(f, "the value of attribute \"{attribute}\" is not valid base64");
            }
            Self::Iterations => "the iteration count is not valid",
            Self::Reason => "the reason of the refusal is empty or not printable",
        };
        f.write_str(what)
    }
}

impl std::error::Error for MessageError {}

fn check_text(message: &[u8], max_len: usize) -> Result<(), MessageError> {
    if message.is_empty() {
        Err(MessageError::Empty)
    } else if message.len() > max_len {
        Err(MessageError::TooLong)
    } else if message.contains(&0) {
        Err(MessageError::NulByte)
    } else {
        Ok(())
    }
}

/// Splits `n,,` off a client-first message: the flag for channel binding and the place of an
/// authorization identity.
fn split_gs2_header(message: &[u8]) -> Result<(ChannelBinding, &[u8]), MessageError> {
    let (flag, rest) = split_at_comma(message).ok_or(MessageError::Gs2Header)?;
    let binding = match flag {
        b"n" => ChannelBinding::Unsupported,
        b"y" => ChannelBinding::NotOffered,
        [b'p', ..] => return Err(MessageError::ChannelBinding),
        _ => return Err(MessageError::Gs2Header),
    };
    match split_at_comma(rest).ok_or(MessageError::Gs2Header)? {
        (b"", bare) => Ok((binding, bare)),
        ([b'a', ..], _) => Err(MessageError::AuthorizationIdentity),
        _ => Err(MessageError::Gs2Header),
    }
}

/// The attributes of a message in which a mandatory extension would stand first.
fn attributes(message: &[u8]) -> Result<impl DoubleEndedIterator<Item = &[u8]>, MessageError> {
    if message.starts_with(b"m=") {
        return Err(MessageError::MandatoryExtension);
    }
    Ok(message.split(is_comma))
}

fn value(attribute: Option<&[u8]>, letter: char) -> Result<&[u8], MessageError> {
    match attribute {
        Some([first, b'=', value @ ..]) if char::from(*first) == letter => Ok(value),
        _ => Err(MessageError::Attribute { expected: letter }),
    }
}

fn nonce(attribute: Option<&[u8]>) -> Result<&str, MessageError> {
    printable(value(attribute, 'r')?).ok_or(MessageError::Nonce)
}

fn key(base64: &[u8], attribute: char) -> Result<Key, MessageError> {
    Key::decode(base64).ok_or(MessageError::Base64 { attribute })
}

/// Lets any extensions pass that are optional: we know none.
fn check_extensions<'a>(
    mut attributes: impl Iterator<Item = &'a [u8]>,
) -> Result<(), MessageError> {
    let is_attribute =
        |bytes: &[u8]| matches!(bytes, [letter, b'=', ..] if letter.is_ascii_alphabetic());
    if attributes.all(is_attribute) { Ok(()) } else { Err(MessageError::Extension) }
}

/// RFC 5802's `printable`, at least one character of it. A comma never gets here.
fn printable(value: &[u8]) -> Option<&str> {
    let is_printable = !value.is_empty() && value.iter().all(u8::is_ascii_graphic);
    str::from_utf8(value).ok().filter(|_| is_printable)
}

fn split_at_comma(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let comma = bytes.iter().position(is_comma)?;
    Some((&bytes[..comma], &bytes[comma + 1..]))
}

fn is_comma(byte: &u8) -> bool {
    *byte == b','
}

#[cfg(test)]
mod tests;

use std::fmt;

use crate::Malformed;
use crate::fields::Fields;
use crate::frame::{put_str, untagged};

/// The longest startup packet that PostgreSQL reads: 10,000 bytes (`MAX_STARTUP_PACKET_LENGTH`,
/// pqcomm.h) behind the length field.
pub const MAX_STARTUP_LEN: usize = 10_004;

const CANCEL_REQUEST: u32 = 80_877_102;
/// The code of an SSLRequest, where a startup packet has its version.
pub const SSL_REQUEST: u32 = 80_877_103;
/// The code of a GSSENCRequest.
pub const GSSENC_REQUEST: u32 = 80_877_104;

/// The first packet of a connection: it has no tag, only a length and a code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Initial<'a> {
    /// Another connection's running statement is to be cancelled.
    CancelRequest(CancelKey),
    /// May this connection be encrypted by GSSAPI? Answered with one byte.
    GssEncRequest,
    /// May this connection be encrypted by TLS? Answered with one byte.
    SslRequest,
    /// Who asks for which database.
    Startup(Startup<'a>),
}

impl<'a> Initial<'a> {
    /// The packet at the front of `bytes` and its length, or `None` while it is not whole.
    ///
    /// Limits are PostgreSQL's: 8 to 10,004 bytes (`ProcessStartupPacket`), and a cancel key of
    /// 1 to 256 (`ProcessCancelRequestPacket`), though none of fewer than 4 is ever told.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let Some(length) = bytes.first_chunk::<4>().map(|b| i32::from_be_bytes(*b)) else {
            return Ok(None);
        };
        if length < 8 || length as usize > MAX_STARTUP_LEN {
            return Err(Malformed::Length { tag: 0, length });
        }
        let length = length as usize;
        if bytes.len() < length {
            return Ok(None);
        }
        let mut fields = Fields::new(&bytes[4..length]);
        let code = fields.int32()? as u32;
        let packet = match code {
            CANCEL_REQUEST => {
                let key = CancelKey::read(&mut fields, 1).map_err(|_| Malformed::CancelRequest)?;
                Self::CancelRequest(key)
            }
            GSSENC_REQUEST => Self::GssEncRequest,
            SSL_REQUEST => Self::SslRequest,
            _ => {
                let version = ProtocolVersion(code);
                if version.major() != 3 {
                    return Err(Malformed::UnsupportedVersion(code));
                }
                let parameters = fields.rest();
                check_parameters(parameters)?;
                return Ok(Some((Self::Startup(Startup { version, parameters }), length)));
            }
        };
        fields.end()?;
        Ok(Some((packet, length)))
    }
}

/// A StartupMessage whose parameter list has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Startup<'a> {
    /// What the frontend asked for; it may be newer than what we speak.
    pub version: ProtocolVersion,
    parameters: &'a [u8],
}

impl<'a> Startup<'a> {
    /// The (name, value) pairs in the order sent. A name may come twice: the last one counts.
    pub fn parameters(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut fields = Fields::new(self.parameters);
        std::iter::from_fn(move || {
            let name = fields.string().ok().filter(|name| !name.is_empty())?;
            Some((name, fields.string().ok()?))
        })
    }

    /// Appends a StartupMessage of protocol `version`.
    pub fn write<'p>(
        out: &mut Vec<u8>,
        version: ProtocolVersion,
        parameters: impl IntoIterator<Item = (&'p [u8], &'p [u8])>,
    ) {
        untagged(out, |out| {
            out.extend_from_slice(&version.0.to_be_bytes());
            for (name, value) in parameters {
                put_str(out, name);
                put_str(out, value);
            }
            out.push(0);
        });
    }
}

/// Name and value alternate, each ended by NUL, and an empty name ends the list exactly at the
/// end of the packet (as `ProcessStartupPacket` demands).
fn check_parameters(bytes: &[u8]) -> Result<(), Malformed> {
    let mut fields = Fields::new(bytes);
    while !fields.string()?.is_empty() {
        fields.string()?;
    }
    fields.end()
}

/// A protocol version as the startup packet writes it: major in the upper half, minor below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProtocolVersion(pub u32);

impl ProtocolVersion {
    /// 3.0, of PostgreSQL 7.4 and later.
    pub const V3_0: Self = Self(0x0003_0000);
    /// 3.2, of PostgreSQL 18: cancel keys of any length up to 256 bytes.
    pub const V3_2: Self = Self(0x0003_0002);

    /// The major version; only 3 is spoken.
    pub fn major(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// The version that both sides speak, when this one was asked for. 3.1 does not exist: it
    /// was skipped, because some poolers had claimed it (PostgreSQL 18 release notes).
    pub fn negotiated(self) -> Self {
        if self >= Self::V3_2 { Self::V3_2 } else { Self::V3_0 }
    }
}

/// What names a connection in a CancelRequest: BackendKeyData sent it to that connection's owner.
#[derive(Clone, PartialEq, Eq)]
pub struct CancelKey {
    /// The backend's process id, or what stands for it.
    pub process_id: i32,
    /// 4 bytes in protocol 3.0, up to 256 in 3.2.
    pub secret: Box<[u8]>,
}

impl CancelKey {
    /// The longest secret of protocol 3.2 (`MAX_CANCEL_KEY_LENGTH`).
    pub const MAX_SECRET_LEN: usize = 256;

    /// The shortest secret that a BackendKeyData may tell.
    pub const MIN_SECRET_LEN: usize = 4;

    /// A key with a secret of at least so many bytes.
    pub(crate) fn read(fields: &mut Fields<'_>, least: usize) -> Result<Self, Malformed> {
        let process_id = fields.int32()?;
        let secret = fields.rest();
        if !(least..=Self::MAX_SECRET_LEN).contains(&secret.len()) {
            return Err(Malformed::InvalidField);
        }
        Ok(Self { process_id, secret: secret.into() })
    }

    /// Appends the CancelRequest packet that carries this key.
    pub fn write_request(&self, out: &mut Vec<u8>) {
        untagged(out, |out| {
            out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
            out.extend_from_slice(&self.process_id.to_be_bytes());
            out.extend_from_slice(&self.secret);
        });
    }
}

impl fmt::Debug for CancelKey {
    /// The secret is what a stranger would need: it is never shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelKey").field("process_id", &self.process_id).finish_non_exhaustive()
    }
}

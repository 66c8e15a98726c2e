use std::fmt;

/// Bytes that are no legal message, whoever sent them.
///
/// PostgreSQL answers nearly all of these with SQLSTATE 08P01 and closes, because a stream whose
/// framing is lost cannot be read any further; so do we.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// A length field below the four bytes that it counts itself, or above the limit of its type.
    Length {
        /// The tag, or 0 for a startup packet, which has none.
        tag: u8,
        /// The length field as it was sent.
        length: i32,
    },
    /// A tag that the protocol does not have in this direction.
    UnknownTag(u8),
    /// A field that ends before its message says, or a string without its NUL.
    Truncated,
    /// Bytes behind the last field.
    TrailingBytes,
    /// A field with a value outside its documented set, such as a transaction status.
    InvalidField,
    /// A CancelRequest of a length that none has. PostgreSQL does not answer it.
    CancelRequest,
    /// A startup packet with a major version other than 3 and no request code.
    UnsupportedVersion(u32),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { tag: 0, length } => {
                write!(f, "invalid length of startup packet: {length}")
            }
            Self::Length { tag, length } => {
                write!(f, "invalid message length {length} for type \"{}\"", tag.escape_ascii())
            }
            Self::UnknownTag(tag) => write!(f, "invalid message type {tag}"),
            Self::Truncated => f.write_str("message ends inside a field"),
            Self::TrailingBytes => f.write_str("message has bytes behind its last field"),
            Self::InvalidField => f.write_str("message has a field with an unknown value"),
            Self::CancelRequest => f.write_str("invalid length of cancel request packet"),
            Self::UnsupportedVersion(version) => write!(
                f,
                "unsupported frontend protocol {}.{}: server supports 3.0 to 3.2",
                version >> 16,
                version & 0xffff
            ),
        }
    }
}

impl std::error::Error for Malformed {}

/// A five-character SQLSTATE (PostgreSQL documentation, appendix "Error Codes").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SqlState([u8; 5]);

impl SqlState {
    /// 08001 `sqlclient_unable_to_establish_sqlconnection`.
    pub const UNABLE_TO_CONNECT: Self = Self(*b"08001");
    /// 01000 `warning`.
    pub const WARNING: Self = Self(*b"01000");
    /// 08006 `connection_failure`.
    pub const CONNECTION_FAILURE: Self = Self(*b"08006");
    /// 08007 `transaction_resolution_unknown`.
    pub const RESOLUTION_UNKNOWN: Self = Self(*b"08007");
    /// 08P01 `protocol_violation`.
    pub const PROTOCOL_VIOLATION: Self = Self(*b"08P01");
    /// 0A000 `feature_not_supported`.
    pub const FEATURE_NOT_SUPPORTED: Self = Self(*b"0A000");
    /// 22023 `invalid_parameter_value`.
    pub const INVALID_PARAMETER_VALUE: Self = Self(*b"22023");
    /// 25P03 `idle_in_transaction_session_timeout`.
    pub const IDLE_IN_TRANSACTION: Self = Self(*b"25P03");
    /// 25P04 `transaction_timeout`.
    pub const TRANSACTION_TIMEOUT: Self = Self(*b"25P04");
    /// 28000 `invalid_authorization_specification`.
    pub const INVALID_AUTHORIZATION: Self = Self(*b"28000");
    /// 28P01 `invalid_password`.
    pub const INVALID_PASSWORD: Self = Self(*b"28P01");
    /// 40001 `serialization_failure`: the transaction is worth another try.
    pub const SERIALIZATION_FAILURE: Self = Self(*b"40001");
    /// 42601 `syntax_error`.
    pub const SYNTAX_ERROR: Self = Self(*b"42601");
    /// 53300 `too_many_connections`.
    pub const TOO_MANY_CONNECTIONS: Self = Self(*b"53300");
    /// 54000 `program_limit_exceeded`.
    pub const PROGRAM_LIMIT_EXCEEDED: Self = Self(*b"54000");
    /// 55000 `object_not_in_prerequisite_state`.
    pub const OBJECT_NOT_IN_PREREQUISITE_STATE: Self = Self(*b"55000");
    /// 55P03 `lock_not_available`.
    pub const LOCK_NOT_AVAILABLE: Self = Self(*b"55P03");
    /// 57014 `query_canceled`.
    pub const QUERY_CANCELED: Self = Self(*b"57014");
    /// 57P01 `admin_shutdown`.
    pub const ADMIN_SHUTDOWN: Self = Self(*b"57P01");
    /// 57P02 `crash_shutdown`.
    pub const CRASH_SHUTDOWN: Self = Self(*b"57P02");
    /// 57P03 `cannot_connect_now`.
    pub const CANNOT_CONNECT_NOW: Self = Self(*b"57P03");
    /// 57P05 `idle_session_timeout`.
    pub const IDLE_SESSION: Self = Self(*b"57P05");
    /// F0000 `config_file_error`.
    pub const CONFIG_FILE_ERROR: Self = Self(*b"F0000");
    /// XX000 `internal_error`: the error is ours.
    pub const INTERNAL_ERROR: Self = Self(*b"XX000");

    /// Whether it may be about a statement that was carried out all the same: class 08, of the
    /// connection, and 40003 `statement_completion_unknown`.
    pub fn is_of_doubt(self) -> bool {
        self.class() == b"08" || self.0 == *b"40003"
    }

    /// The code in these bytes, if they are five ASCII letters or digits.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let code: [u8; 5] = bytes.try_into().ok()?;
        code.iter().all(u8::is_ascii_alphanumeric).then_some(Self(code))
    }

    /// The code as it stands in field `C` of an ErrorResponse.
    pub fn as_bytes(&self) -> &[u8; 5] {
        &self.0
    }

    /// The first two characters: class 28 is every refusal of an identity, for example.
    pub fn class(&self) -> &[u8] {
        &self.0[..2]
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.escape_ascii().fmt(f)
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How much of the session an error ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The statement, and with it the transaction.
    Error,
    /// The connection.
    Fatal,
}

impl Severity {
    /// The word in fields `S` and `V`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Fatal => "FATAL",
        }
    }
}

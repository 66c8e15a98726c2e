//! Messages that the backend (the server) sends.

mod build;
mod report;
mod rows;

pub use build::{
    Column, authentication_cleartext, authentication_md5, authentication_ok, authentication_sasl,
    authentication_sasl_continue, authentication_sasl_final, backend_key_data, command_complete,
    data_row, empty_query_response, negotiate_protocol_version, parameter_description,
    parameter_status, ready_for_query, row_description,
};
pub use report::{ErrorFields, Report};
pub use rows::{ColumnType, parse_row_description};

use crate::fields::Fields;
use crate::{CancelKey, Header, Malformed, TransactionStatus};

/// The type of a backend message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    /// `R`: every Authentication message.
    Authentication,
    /// `K`
    BackendKeyData,
    /// `2`
    BindComplete,
    /// `3`
    CloseComplete,
    /// `C`
    CommandComplete,
    /// `W`
    CopyBothResponse,
    /// `d`
    CopyData,
    /// `c`
    CopyDone,
    /// `G`
    CopyInResponse,
    /// `H`
    CopyOutResponse,
    /// `D`
    DataRow,
    /// `I`
    EmptyQueryResponse,
    /// `E`
    ErrorResponse,
    /// `V`
    FunctionCallResponse,
    /// `v`
    NegotiateProtocolVersion,
    /// `n`
    NoData,
    /// `N`
    NoticeResponse,
    /// `A`
    NotificationResponse,
    /// `t`
    ParameterDescription,
    /// `S`
    ParameterStatus,
    /// `1`
    ParseComplete,
    /// `s`
    PortalSuspended,
    /// `Z`
    ReadyForQuery,
    /// `T`
    RowDescription,
}

impl Tag {
    /// The type of the message with this header.
    #[inline]
    pub fn of(header: Header) -> Result<Self, Malformed> {
        Ok(match header.tag {
            b'1' => Self::ParseComplete,
            b'2' => Self::BindComplete,
            b'3' => Self::CloseComplete,
            b'A' => Self::NotificationResponse,
            b'C' => Self::CommandComplete,
            b'D' => Self::DataRow,
            b'E' => Self::ErrorResponse,
            b'G' => Self::CopyInResponse,
            b'H' => Self::CopyOutResponse,
            b'I' => Self::EmptyQueryResponse,
            b'K' => Self::BackendKeyData,
            b'N' => Self::NoticeResponse,
            b'R' => Self::Authentication,
            b'S' => Self::ParameterStatus,
            b'T' => Self::RowDescription,
            b'V' => Self::FunctionCallResponse,
            b'W' => Self::CopyBothResponse,
            b'Z' => Self::ReadyForQuery,
            b'c' => Self::CopyDone,
            b'd' => Self::CopyData,
            b'n' => Self::NoData,
            b's' => Self::PortalSuspended,
            b't' => Self::ParameterDescription,
            b'v' => Self::NegotiateProtocolVersion,
            unknown => return Err(Malformed::UnknownTag(unknown)),
        })
    }
}

/// What the server asks of whoever logs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication<'a> {
    /// 0: the login is done.
    Ok,
    /// 3: send the password as it is.
    CleartextPassword,
    /// 5: send the password hashed with this salt.
    Md5Password([u8; 4]),
    /// 10: choose one of these SASL mechanisms (a list of strings, ended by an empty one).
    Sasl(&'a [u8]),
    /// 11: the mechanism's next message.
    SaslContinue(&'a [u8]),
    /// 12: the mechanism's last message.
    SaslFinal(&'a [u8]),
    /// GSSAPI, SSPI, Kerberos and whatever comes later: not spoken here.
    Unsupported(i32),
}

impl<'a> Authentication<'a> {
    /// Reads the body of an `R` message.
    pub fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Fields::new(body);
        match fields.int32()? {
            0 => fields.end().map(|()| Self::Ok),
            3 => fields.end().map(|()| Self::CleartextPassword),
            5 => {
                let salt = fields.rest().try_into().map_err(|_| Malformed::InvalidField)?;
                Ok(Self::Md5Password(salt))
            }
            10 => Ok(Self::Sasl(fields.rest())),
            11 => Ok(Self::SaslContinue(fields.rest())),
            12 => Ok(Self::SaslFinal(fields.rest())),
            other => Ok(Self::Unsupported(other)),
        }
    }
}

/// The mechanisms that AuthenticationSASL offers.
pub fn sasl_mechanisms(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut fields = Fields::new(list);
    std::iter::from_fn(move || fields.string().ok().filter(|name| !name.is_empty()))
}

/// Name and value of a ParameterStatus.
pub fn parse_parameter_status(body: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let mut fields = Fields::new(body);
    let pair = (fields.string()?, fields.string()?);
    fields.end()?;
    Ok(pair)
}

/// Channel and payload of a NotificationResponse.
pub fn parse_notification(body: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let mut fields = Fields::new(body);
    fields.int32()?;
    let pair = (fields.string()?, fields.string()?);
    fields.end()?;
    Ok(pair)
}

/// The key of a BackendKeyData.
pub fn parse_backend_key_data(body: &[u8]) -> Result<CancelKey, Malformed> {
    CancelKey::read(&mut Fields::new(body), CancelKey::MIN_SECRET_LEN)
}

/// The status of a ReadyForQuery.
pub fn parse_ready_for_query(body: &[u8]) -> Result<TransactionStatus, Malformed> {
    match body {
        [status] => TransactionStatus::parse(*status),
        [] => Err(Malformed::Truncated),
        _ => Err(Malformed::TrailingBytes),
    }
}

#[cfg(test)]
mod tests;

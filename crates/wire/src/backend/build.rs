use crate::frame::{message, put_str};
use crate::{CancelKey, ProtocolVersion, TransactionStatus};

/// Appends AuthenticationOk.
pub fn authentication_ok(out: &mut Vec<u8>) {
    authentication(out, 0, &[]);
}

/// Appends AuthenticationCleartextPassword.
pub fn authentication_cleartext(out: &mut Vec<u8>) {
    authentication(out, 3, &[]);
}

/// Appends AuthenticationMD5Password.
pub fn authentication_md5(out: &mut Vec<u8>, salt: [u8; 4]) {
    authentication(out, 5, &salt);
}

/// Appends AuthenticationSASL with the mechanisms in order of preference.
pub fn authentication_sasl(out: &mut Vec<u8>, mechanisms: &[&[u8]]) {
    message(out, b'R', |out| {
        out.extend_from_slice(&10i32.to_be_bytes());
        for name in mechanisms {
            put_str(out, name);
        }
        out.push(0);
    });
}

/// Appends AuthenticationSASLContinue.
pub fn authentication_sasl_continue(out: &mut Vec<u8>, data: &[u8]) {
    authentication(out, 11, data);
}

/// Appends AuthenticationSASLFinal.
pub fn authentication_sasl_final(out: &mut Vec<u8>, data: &[u8]) {
    authentication(out, 12, data);
}

/// Appends BackendKeyData.
pub fn backend_key_data(out: &mut Vec<u8>, key: &CancelKey) {
    message(out, b'K', |out| {
        out.extend_from_slice(&key.process_id.to_be_bytes());
        out.extend_from_slice(&key.secret);
    });
}

/// Appends NegotiateProtocolVersion: the newest version that is spoken here, and the names of
/// the `_pq_.` options that are not.
pub fn negotiate_protocol_version(
    out: &mut Vec<u8>,
    newest: ProtocolVersion,
    unknown_options: &[Box<[u8]>],
) {
    message(out, b'v', |out| {
        out.extend_from_slice(&newest.0.to_be_bytes());
        out.extend_from_slice(&(unknown_options.len() as i32).to_be_bytes());
        for name in unknown_options {
            put_str(out, name);
        }
    });
}

/// Appends ParameterStatus.
pub fn parameter_status(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    message(out, b'S', |out| {
        put_str(out, name);
        put_str(out, value);
    });
}

/// Appends ReadyForQuery.
pub fn ready_for_query(out: &mut Vec<u8>, status: TransactionStatus) {
    message(out, b'Z', |out| out.push(status.as_byte()));
}

/// Appends ParameterDescription with this body, which a server has sent.
pub fn parameter_description(out: &mut Vec<u8>, body: &[u8]) {
    message(out, b't', |out| out.extend_from_slice(body));
}

/// One column of a RowDescription, in text format and of no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column<'a> {
    /// The column's name.
    pub name: &'a str,
    /// The OID of its type (`pg_type.oid`).
    pub type_oid: u32,
    /// The size of its type (`pg_type.typlen`): -1 for text.
    pub type_len: i16,
}

/// Appends RowDescription.
pub fn row_description(out: &mut Vec<u8>, columns: &[Column<'_>]) {
    message(out, b'T', |out| {
        out.extend_from_slice(&(columns.len() as u16).to_be_bytes());
        for column in columns {
            put_str(out, column.name.as_bytes());
            out.extend_from_slice(&[0; 6]);
            out.extend_from_slice(&column.type_oid.to_be_bytes());
            out.extend_from_slice(&column.type_len.to_be_bytes());
            out.extend_from_slice(&(-1i32).to_be_bytes());
            out.extend_from_slice(&0u16.to_be_bytes());
        }
    });
}

/// Appends DataRow; `None` is NULL.
pub fn data_row<'v>(
    out: &mut Vec<u8>,
    values: impl IntoIterator<Item = Option<&'v [u8]>, IntoIter: ExactSizeIterator>,
) {
    let values = values.into_iter();
    message(out, b'D', |out| {
        out.extend_from_slice(&(values.len() as u16).to_be_bytes());
        for value in values {
            match value {
                None => out.extend_from_slice(&(-1i32).to_be_bytes()),
                Some(value) => {
                    out.extend_from_slice(&(value.len() as i32).to_be_bytes());
                    out.extend_from_slice(value);
                }
            }
        }
    });
}

/// Appends CommandComplete.
pub fn command_complete(out: &mut Vec<u8>, command: &str) {
    message(out, b'C', |out| put_str(out, command.as_bytes()));
}

/// Appends EmptyQueryResponse.
pub fn empty_query_response(out: &mut Vec<u8>) {
    message(out, b'I', |_| {});
}

fn authentication(out: &mut Vec<u8>, code: i32, data: &[u8]) {
    message(out, b'R', |out| {
        out.extend_from_slice(&code.to_be_bytes());
        out.extend_from_slice(data);
    });
}

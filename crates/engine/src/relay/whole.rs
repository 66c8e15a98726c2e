//! How much of a server's message has to be there before it is looked at.

use pgweir_wire::backend::Tag;
use pgweir_wire::{Header, Malformed};

use crate::server_login::LOGIN_MESSAGE_BYTES;

/// A message up to this size is forwarded once it is whole, so that a server that dies leaves
/// its client with whole messages and the error that says so. A longer one is streamed.
const WHOLE_BYTES: usize = 16 * 1024;

/// The same of a message that says what rows and parameters are like, which is read here: with
/// names of ten letters, what more than 1,600 columns are like, and PostgreSQL has no more
/// (`MaxTupleAttributeNumber`, htup_details.h).
pub const DESCRIPTION_BYTES: usize = 48 * 1024;

/// The same of a ParameterStatus, as at a login. PostgreSQL 18 reports `search_path`, of whatever
/// length, and libpq gives a connection up that says more than 30,000 bytes of it
/// (`VALID_LONG_MESSAGE_TYPE`, fe-protocol3.c). What is longer is not streamed, since whoever has
/// the server next is to be told it: it is contained.
const REPORT_BYTES: usize = LOGIN_MESSAGE_BYTES;

/// Whether a message is not looked at before there is more of it than that.
pub(super) fn is_held(tag: Tag, length: usize, there: usize) -> bool {
    // What an error is to be done about stands at its start.
    is_kept_whole(tag, length) || tag == Tag::ErrorResponse && there < WHOLE_BYTES
}

/// Whether a message is passed on whole, however it comes.
pub(super) fn is_kept_whole(tag: Tag, length: usize) -> bool {
    let is_description = matches!(tag, Tag::RowDescription | Tag::ParameterDescription);
    let most = if is_description {
        DESCRIPTION_BYTES
    } else if tag == Tag::ParameterStatus {
        REPORT_BYTES
    } else {
        WHOLE_BYTES
    };
    length <= most
}

/// What is read here must not come in pieces.
pub(super) fn comes_whole(tag: Tag, length: usize) -> Result<(), String> {
    if is_kept_whole(tag, length) { Ok(()) } else { Err(format!("{tag:?} is too long")) }
}

/// What is wrong with one that is none.
pub(super) fn malformed(malformed: Malformed) -> String {
    malformed.to_string()
}

/// Bytes of the whole messages with this tag at the front: rows come by the thousand, and what
/// holds for the first holds for those behind it.
pub(super) fn same_messages(tag: u8, bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Ok(Some(header)) = Header::parse(&bytes[at..]) {
        if header.tag != tag || bytes.len() - at < header.message_len() {
            break;
        }
        at += header.message_len();
    }
    at
}

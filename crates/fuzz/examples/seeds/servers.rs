//! Scripts of what a server sends: their items stand between `|`, see [`script`].

use pgweir_wire::backend::{self, Report};
use pgweir_wire::{CancelKey, ProtocolVersion, SqlState, TransactionStatus};

use crate::messages;
use crate::{Seed, script};

pub(crate) fn scripts() -> Vec<Seed> {
    let replies = replies().into_iter().map(|(name, flight, items)| {
        let scene = [(flight / 4) << 4 | (flight % 4) << 6, 0];
        (name, script(scene, items, message))
    });
    let logins =
        logins().into_iter().map(|(name, items)| (name, script([3 << 2, 0], items, message)));
    let streams =
        streams().into_iter().map(|(name, long, items)| (name, script([0, long], items, message)));
    let shared =
        shared().into_iter().map(|(name, items)| (name, script([0, 1 << 4], items, message)));
    replies.chain(logins).chain(streams).chain(shared).collect()
}

/// Messages.
fn message(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    match text {
        "Idle" => backend::ready_for_query(&mut out, TransactionStatus::Idle),
        "Active" => backend::ready_for_query(&mut out, TransactionStatus::Active),
        "Rows" => messages::rows(&mut out),
        "Error" => messages::error().write(&mut out),
        "Fatal" => Report::fatal(SqlState::ADMIN_SHUTDOWN, "terminating").write(&mut out),
        "Refused" => Report::fatal(SqlState::INVALID_PASSWORD, "no").write(&mut out),
        "Full" => Report::fatal(SqlState::TOO_MANY_CONNECTIONS, "full").write(&mut out),
        "Complete" => backend::command_complete(&mut out, "COPY 1"),
        "Parsed" => out.extend_from_slice(b"1\0\0\0\x04"),
        "Bound" => out.extend_from_slice(b"2\0\0\0\x04"),
        "NoData" => out.extend_from_slice(b"n\0\0\0\x04"),
        "Suspended" => out.extend_from_slice(b"s\0\0\0\x04"),
        "Parameters" => out.extend_from_slice(b"t\0\0\0\x0a\0\x01\0\0\0\x17"),
        "Columns" => backend::row_description(&mut out, &[]),
        "Result" => out.extend_from_slice(b"V\0\0\0\x08\xff\xff\xff\xff"),
        "CopyIn" => out.extend_from_slice(b"G\0\0\0\x09\0\0\x01\0\0"),
        "CopyOut" => out.extend_from_slice(b"H\0\0\0\x09\0\0\x01\0\0d\0\0\0\x061\nc\0\0\0\x04"),
        "CopyBoth" => out.extend_from_slice(b"W\0\0\0\x07\0\0\0d\0\0\0\x05x"),
        "Status" => backend::parameter_status(&mut out, b"TimeZone", b"UTC"),
        "Notice" => out.extend_from_slice(b"N\0\0\0\x14SNOTICE\0C00000\0\0"),
        "Notification" => out.extend_from_slice(b"A\0\0\0\x0c\0\0\0\x01c\0p\0"),
        "HugeRow" => out.extend_from_slice(b"D\0\0\x80\0\0\x01\0\0\x7f\xf6aaaa"),
        "HugeReady" => out.extend_from_slice(b"Z\0\x01\0\x05I"),
        "HugeCopyIn" => out.extend_from_slice(b"G\0\x01\0\0\0"),
        "HugeNotice" => out.extend_from_slice(b"N\0\x01\0\0S"),
        "HugeAuthentication" => out.extend_from_slice(b"R\0\x01\0\x05"),
        "Cleartext" => backend::authentication_cleartext(&mut out),
        "Md5" => backend::authentication_md5(&mut out, [1, 2, 3, 4]),
        "Gss" => out.extend_from_slice(b"R\0\0\0\x08\0\0\0\x07"),
        "Sasl" => backend::authentication_sasl(&mut out, &[b"SCRAM-SHA-256"]),
        "Challenge" => {
            backend::authentication_sasl_continue(&mut out, b"r=x,s=c2FsdA==,i=2");
        }
        "Negotiate" => {
            let options = [Box::from(&b"_pq_.x"[..])];
            backend::negotiate_protocol_version(&mut out, ProtocolVersion::V3_0, &options);
        }
        "Welcome" => {
            let key = CancelKey { process_id: 77, secret: (*b"abcd").into() };
            backend::authentication_ok(&mut out);
            backend::parameter_status(&mut out, b"server_version", b"17.0");
            backend::backend_key_data(&mut out, &key);
            backend::ready_for_query(&mut out, TransactionStatus::Idle);
        }
        _ => panic!("{text:?} is no op and no message"),
    }
    out
}

/// A name, what the client has in flight (`engine_server::in_flight`), and items.
fn replies() -> Vec<(&'static str, u8, &'static str)> {
    vec![
        ("row", 0, "Rows | Idle | Settle | Rows | Idle"),
        ("two_rows", 1, "Rows | Rows | Idle | Rows | Active | Settle | Rows | Idle"),
        ("batch", 2, "Parsed | Bound | Rows | Idle | Settle"),
        ("batch_error", 9, "Parsed | Error | Idle | Settle | Parsed | Error | Idle"),
        ("flushed", 3, "Parsed | Bound | NoData | Settle"),
        ("copy_in", 4, "CopyIn | Complete | Idle | Settle | CopyIn"),
        ("copy_in_open", 5, "CopyIn | Settle | CopyIn"),
        ("copy_in_huge", 5, "End | HugeCopyIn | Settle"),
        ("copy_out", 0, "CopyOut | Complete | Idle | Settle"),
        ("copy_both", 0, "CopyBoth | Settle"),
        ("described", 6, "Parsed | Parameters | Columns | Idle | Settle"),
        ("function", 7, "Result | Idle | Settle"),
        ("block", 8, "Complete | Active | Settle"),
        ("suspended", 12, "Parsed | Bound | NoData | Suspended | Settle"),
        ("asynchronous", 0, "Status | Notice | Notification | Rows | Idle | Settle"),
        ("notified_when_idle", 0, "Rows | Idle | Settle | Notification | Settle"),
        ("fatal", 0, "Fatal | Settle"),
        ("unasked", 13, "Rows | Idle | Idle | Settle | Rows"),
        ("left_in_a_row", 3, "Parsed | Bound | NoData | HugeRow | End | Settle"),
        ("streamed", 0, "HugeRow | Settle"),
        ("ready_huge", 0, "HugeReady | Idle | Settle"),
    ]
}

/// A name and items, from the first message of a login on.
fn logins() -> Vec<(&'static str, &'static str)> {
    vec![
        ("login", "Welcome | Settle"),
        ("login_and_rows", "Welcome | Rows | Idle | Settle"),
        ("login_and_notice", "Welcome | HugeNotice | Settle"),
        ("login_cleartext", "Cleartext | Welcome | Settle"),
        ("login_md5", "Md5 | Welcome | Settle"),
        ("login_scram", "Sasl | Challenge | Settle"),
        ("login_gss", "Gss | Settle"),
        ("login_refused", "Refused | Settle"),
        ("login_full", "Full | LongTick | Settle"),
        ("login_negotiated", "Negotiate | Welcome | Settle"),
        ("login_too_long", "HugeAuthentication | Settle"),
    ]
}

/// A name, what is long and whether it comes at once, and items.
fn streams() -> Vec<(&'static str, u8, &'static str)> {
    vec![
        ("long_row", 0, "Long | Settle | Long | Rows | Idle | Settle"),
        ("long_row_left", 0, "Long | End | Long | Rows | Idle | Settle"),
        ("long_row_whole", 0b100, "Long | Rows | Idle | Settle"),
        ("long_error", 1, "Long | Long | Idle | Settle"),
        ("long_fatal", 2, "Long | Long | LoseServer | Settle"),
        ("long_fatal_whole", 0b110, "Long | LoseServer | Settle"),
        ("long_notice", 3, "Long | End | Long | Settle"),
    ]
}

/// A name and items, where servers are shared: from the answer to the brake on.
fn shared() -> Vec<(&'static str, &'static str)> {
    vec![
        ("shared_rows", "Rows | Idle | Settle | Rows | Idle | Settle | Rows | Idle | Settle"),
        ("shared_error", "Rows | Idle | Settle | Error | Idle | Settle | Rows | Idle"),
        ("shared_brake_refused", "Error | Idle | Settle | Rows | Idle | Settle"),
        ("shared_block", "Rows | Idle | Settle | Rows | Active | Settle"),
        ("shared_fatal", "Rows | Idle | Settle | Fatal | Settle"),
        ("shared_lost", "Rows | Idle | Settle | Rows | LoseServer | Settle"),
        ("shared_left", "Rows | Idle | Settle | End | Rows | Idle | Settle | Rows | Idle"),
        ("shared_huge", "Rows | Idle | Settle | HugeRow | Settle"),
        ("shared_notified", "Rows | Idle | Settle | Notification | Status | Rows | Idle | Settle"),
    ]
}

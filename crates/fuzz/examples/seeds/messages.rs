//! Messages of the protocol, and inputs of the targets that read them.

use pgweir_wire::backend::{self, Column, Report};
use pgweir_wire::frontend::{self, Target};
use pgweir_wire::{CancelKey, ProtocolVersion, SqlState, Startup, TransactionStatus};

use crate::Seed;

pub(crate) fn startup() -> Vec<Seed> {
    let key = |secret: &[u8]| CancelKey { process_id: 77, secret: secret.into() };
    vec![
        ("plain", startup_packet(b"alice", &[])),
        (
            "psql",
            startup_packet(
                b"alice",
                &[(b"application_name", b"psql"), (b"client_encoding", b"UTF8")],
            ),
        ),
        ("options", startup_packet(b"alice", &[(b"options", b"-c geqo=off --work-mem=1\\ MB")])),
        ("replication", startup_packet(b"alice", &[(b"replication", b"database")])),
        build("protocol_3_2", |out| {
            let parameters: [(&[u8], &[u8]); 2] = [(b"user", b"alice"), (b"_pq_.new", b"1")];
            Startup::write(out, ProtocolVersion::V3_2, parameters);
        }),
        build("protocol_3_9999", |out| {
            let parameters: [(&[u8], &[u8]); 1] = [(b"user", b"alice")];
            Startup::write(out, ProtocolVersion(3 << 16 | 9999), parameters);
        }),
        build("cancel", |out| key(b"abcd").write_request(out)),
        build("cancel_long", |out| key(&[7; 256]).write_request(out)),
        ("ssl", b"\0\0\0\x08\x04\xd2\x16\x2f".to_vec()),
        ("gss", b"\0\0\0\x08\x04\xd2\x16\x30".to_vec()),
        (
            "ssl_stuffed",
            [b"\0\0\0\x08\x04\xd2\x16\x2f".to_vec(), startup_packet(b"alice", &[])].concat(),
        ),
        ("protocol_2", b"\0\0\0\x08\0\x02\0\0".to_vec()),
        ("longest_length", b"\0\0\x27\x10\0\x03\0\0user\0".to_vec()),
    ]
}

pub(crate) fn frontend() -> Vec<Seed> {
    vec![
        ("query", simple("SELECT 1")),
        ("batch", batch("SELECT $1")),
        build("bind_values", |out| {
            frontend::write_bind(out, b"p", b"s", &[None, Some(b"1"), Some(b"")]);
        }),
        build("parse_types", |out| frontend::write_parse(out, b"s", b"SELECT $1", &[23, 25])),
        (
            "describe_close",
            [
                describe(Target::Statement(b"s")),
                describe(Target::Portal(b"")),
                close(Target::Statement(b"")),
                close(Target::Portal(b"p")),
            ]
            .concat(),
        ),
        ("copy", [copy_data("1\n2\n"), frontend::COPY_DONE.to_vec(), copy_fail()].concat()),
        ("function_call", function_call()),
        ("flush_terminate", [frontend::FLUSH, frontend::TERMINATE].concat()),
        build("password", |out| frontend::write_password(out, b"pencil")),
        build("sasl", |out| {
            frontend::SaslInitialResponse::write(out, b"SCRAM-SHA-256", b"n,,n=,r=abc");
            frontend::write_sasl_response(out, b"c=biws,r=abc,p=x");
        }),
        ("sasl_body", b"SCRAM-SHA-256\0\0\0\0\x0bn,,n=,r=abc".to_vec()),
        ("sasl_without_data", b"SCRAM-SHA-256\0\xff\xff\xff\xff".to_vec()),
        ("names_body", b"portal\0statement\0\0\0".to_vec()),
        ("target_body", b"Sname\0".to_vec()),
        ("too_long", b"S\0\0\x27\x11".to_vec()),
        ("longest", b"Q\x7f\xff\xff\xff".to_vec()),
    ]
}

pub(crate) fn backend() -> Vec<Seed> {
    let key = CancelKey { process_id: 77, secret: (*b"abcd").into() };
    vec![
        build("login", |out| {
            backend::authentication_ok(out);
            backend::parameter_status(out, b"server_version", b"17.0");
            backend::backend_key_data(out, &key);
            ready(out, TransactionStatus::Idle);
        }),
        build("authentication", |out| {
            backend::authentication_cleartext(out);
            backend::authentication_md5(out, [1, 2, 3, 4]);
            backend::authentication_sasl(out, &[b"SCRAM-SHA-256-PLUS", b"SCRAM-SHA-256"]);
            backend::authentication_sasl_continue(out, b"r=abc,s=c2FsdA==,i=4096");
            backend::authentication_sasl_final(out, b"v=x");
        }),
        ("gss", b"R\0\0\0\x08\0\0\0\x07".to_vec()),
        build("rows", |out| {
            rows(out);
            ready(out, TransactionStatus::Active);
        }),
        build("error", |out| {
            error().write(out);
            ready(out, TransactionStatus::Failed);
        }),
        build("fatal", |out| {
            Report::fatal(SqlState::ADMIN_SHUTDOWN, "terminating connection").write(out);
        }),
        ("error_without_code", b"E\0\0\0\x10SERROR\0Mno\0\0".to_vec()),
        ("error_old", b"E\0\0\0\x14SFEHLER\0C42601\0\0".to_vec()),
        build("negotiate", |out| {
            let options = [Box::from(&b"_pq_.x"[..])];
            backend::negotiate_protocol_version(out, ProtocolVersion::V3_2, &options);
        }),
        ("parameter_body", b"name\0value\0".to_vec()),
        ("key_body", b"\0\0\0\x01abcd".to_vec()),
        ("ready_body", b"I".to_vec()),
        ("error_body", b"SFATAL\0VFATAL\0C57P01\0Mbye\0\0".to_vec()),
    ]
}

pub(crate) fn build(name: &'static str, write: impl FnOnce(&mut Vec<u8>)) -> Seed {
    let mut out = Vec::new();
    write(&mut out);
    (name, out)
}

pub(crate) fn startup_packet(user: &[u8], more: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let own: [(&[u8], &[u8]); 2] = [(b"user", user), (b"database", b"app")];
    Startup::write(&mut out, ProtocolVersion::V3_0, own.into_iter().chain(more.iter().copied()));
    out
}

pub(crate) fn simple(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::write_query(&mut out, text.as_bytes());
    out
}

pub(crate) fn parse(name: &str, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::write_parse(&mut out, name.as_bytes(), text.as_bytes(), &[]);
    out
}

/// Bind and Execute.
pub(crate) fn run(statement: &str, rows: u32) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::write_bind(&mut out, b"", statement.as_bytes(), &[]);
    frontend::write_execute(&mut out, b"", rows);
    out
}

pub(crate) fn batch(text: &str) -> Vec<u8> {
    [parse("", text), run("", 0), frontend::SYNC.to_vec()].concat()
}

pub(crate) fn describe(target: Target<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::write_describe(&mut out, target);
    out
}

pub(crate) fn close(target: Target<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::write_close(&mut out, target);
    out
}

pub(crate) fn copy_data(data: &str) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::write_copy_data(&mut out, data.as_bytes());
    out
}

pub(crate) fn copy_fail() -> Vec<u8> {
    let mut out = Vec::new();
    frontend::write_copy_fail(&mut out, b"enough");
    out
}

pub(crate) fn function_call() -> Vec<u8> {
    b"F\0\0\0\x0e\0\0\0\x01\0\0\0\0\0\0".to_vec()
}

pub(crate) fn rows(out: &mut Vec<u8>) {
    backend::row_description(out, &[Column { name: "a", type_oid: 25, type_len: -1 }]);
    backend::data_row(out, [Some(&b"1"[..]), None]);
    backend::command_complete(out, "SELECT 1");
}

pub(crate) fn ready(out: &mut Vec<u8>, status: TransactionStatus) {
    backend::ready_for_query(out, status);
}

pub(crate) fn error() -> Report {
    let report = Report::error(SqlState::INTERNAL_ERROR, "no").detail("because");
    report.hint("try again")
}

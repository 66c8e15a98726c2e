//! Writes the inputs from which fuzzing starts into `corpus/`: real messages, each under a name
//! that says what it is. Run it after a change: `cargo run -p pgweir-fuzz --example seeds`.

use std::fs;
use std::io;

use pgweir_fuzz::corpus;
use pgweir_fuzz::script::Op;
use pgweir_wire::backend::{self, Column, Report};
use pgweir_wire::frontend::{self, Target};
use pgweir_wire::{CancelKey, ProtocolVersion, SqlState, Startup, TransactionStatus};

fn main() -> io::Result<()> {
    for (target, seeds) in [
        ("backend", backend_messages()),
        ("config", configurations()),
        ("console", commands()),
        ("engine_client", client_scripts()),
        ("engine_server", server_scripts()),
        ("frontend", frontend_messages()),
        ("scram_client", scram_client()),
        ("scram_server", scram_server()),
        ("sql", queries()),
        ("startup", startup_packets()),
    ] {
        let folder = corpus::folder(target);
        fs::create_dir_all(&folder)?;
        for (name, input) in seeds {
            fs::write(folder.join(name), input)?;
        }
    }
    Ok(())
}

/// A name and an input.
type Seed = (&'static str, Vec<u8>);

fn build(name: &'static str, write: impl FnOnce(&mut Vec<u8>)) -> Seed {
    let mut out = Vec::new();
    write(&mut out);
    (name, out)
}

fn startup(user: &[u8], more: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    let own: [(&[u8], &[u8]); 2] = [(b"user", user), (b"database", b"app")];
    Startup::write(&mut out, ProtocolVersion::V3_0, own.into_iter().chain(more.iter().copied()));
    out
}

fn startup_packets() -> Vec<Seed> {
    let key = |secret: &[u8]| CancelKey { process_id: 77, secret: secret.into() };
    vec![
        ("plain", startup(b"alice", &[])),
        (
            "psql",
            startup(b"alice", &[(b"application_name", b"psql"), (b"client_encoding", b"UTF8")]),
        ),
        ("options", startup(b"alice", &[(b"options", b"-c geqo=off --work-mem=1\\ MB")])),
        ("replication", startup(b"alice", &[(b"replication", b"database")])),
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
        ("ssl_stuffed", [b"\0\0\0\x08\x04\xd2\x16\x2f".to_vec(), startup(b"alice", &[])].concat()),
        ("protocol_2", b"\0\0\0\x08\0\x02\0\0".to_vec()),
        ("longest_length", b"\0\0\x27\x10\0\x03\0\0user\0".to_vec()),
    ]
}

fn simple(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::write_query(&mut out, text.as_bytes());
    out
}

fn parse(name: &str, text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::write_parse(&mut out, name.as_bytes(), text.as_bytes(), &[]);
    out
}

/// Bind and Execute.
fn run(statement: &str, rows: u32) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::write_bind(&mut out, b"", statement.as_bytes(), &[]);
    frontend::write_execute(&mut out, b"", rows);
    out
}

fn batch(text: &str) -> Vec<u8> {
    [parse("", text), run("", 0), frontend::SYNC.to_vec()].concat()
}

fn describe(target: Target<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::write_describe(&mut out, target);
    out
}

fn close(target: Target<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::write_close(&mut out, target);
    out
}

fn copy_data(data: &str) -> Vec<u8> {
    let mut out = Vec::new();
    frontend::write_copy_data(&mut out, data.as_bytes());
    out
}

fn copy_fail() -> Vec<u8> {
    let mut out = Vec::new();
    frontend::write_copy_fail(&mut out, b"enough");
    out
}

fn function_call() -> Vec<u8> {
    b"F\0\0\0\x0e\0\0\0\x01\0\0\0\0\0\0".to_vec()
}

fn frontend_messages() -> Vec<Seed> {
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

fn rows(out: &mut Vec<u8>) {
    backend::row_description(out, &[Column { name: "a", type_oid: 25, type_len: -1 }]);
    backend::data_row(out, [Some(&b"1"[..]), None]);
    backend::command_complete(out, "SELECT 1");
}

fn ready(out: &mut Vec<u8>, status: TransactionStatus) {
    backend::ready_for_query(out, status);
}

fn error() -> Report {
    let report = Report::error(SqlState::INTERNAL_ERROR, "no").detail("because");
    report.hint("try again")
}

fn backend_messages() -> Vec<Seed> {
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

fn scram_server() -> Vec<Seed> {
    let nonce = "CQkJCQkJCQkJCQkJCQkJCQkJ";
    let proof = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let text = |text: String| text.into_bytes();
    vec![
        ("wrong_proof", text(format!("n,,n=,r=abc\nc=biws,r=abc{nonce},p={proof}"))),
        ("not_offered", text(format!("y,,n=,r=abc\nc=eSws,r=abc{nonce},p={proof}"))),
        ("binding_mismatch", text(format!("y,,n=,r=abc\nc=biws,r=abc{nonce},p={proof}"))),
        ("extension", text(format!("n,,n=,r=abc,x=1\nc=biws,r=abc{nonce},x=1,p={proof}"))),
        ("short_proof", text(format!("n,,n=,r=abc\nc=biws,r=abc{nonce},p=AAAA"))),
        ("binding", text("p=tls-unique,,n=,r=abc".to_owned())),
        ("identity", text("n,a=bob,n=,r=abc".to_owned())),
        ("mandatory", text("n,,m=x,n=,r=abc".to_owned())),
        ("longest_nonce", text(format!("n,,n=,r={}", "a".repeat(512)))),
    ]
}

fn scram_client() -> Vec<Seed> {
    let nonce = "CQkJCQkJCQkJCQkJCQkJCQkJ";
    let signature = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let text = |text: String| text.into_bytes();
    vec![
        ("wrong_signature", text(format!("r={nonce}xyz,s=c2FsdA==,i=4096\nv={signature}"))),
        ("few_iterations", text(format!("r={nonce}xyz,s=QUFB,i=1\nv={signature}"))),
        ("many_iterations", text(format!("r={nonce}xyz,s=QUFB,i=2147483647"))),
        ("refused", text(format!("r={nonce}xyz,s=c2FsdA==,i=4096\ne=other-error"))),
        ("same_nonce", text(format!("r={nonce},s=c2FsdA==,i=4096"))),
        ("other_nonce", text("r=abc,s=c2FsdA==,i=4096".to_owned())),
        ("mandatory", text(format!("m=x,r={nonce}xyz,s=c2FsdA==,i=4096"))),
        ("empty_salt", text(format!("r={nonce}xyz,s=,i=2\nv={signature},x=1"))),
    ]
}

fn queries() -> Vec<Seed> {
    let text = |name, text: &str| (name, text.as_bytes().to_vec());
    vec![
        text("select", "select abalance from pgbench_accounts where aid = 1"),
        text("set", "set search_path = 'a', b; set local x = 1; set session x.y to 'z'"),
        text("transaction", "begin; set transaction read only; commit and chain"),
        text("temporary", "create temp table t on commit drop as select 1; select 1 into temp u"),
        text("calls", "select pg_catalog.set_config('seed', '1', false), nextval('s'), lastval()"),
        text("locks", "select pg_advisory_lock(1), pg_advisory_xact_lock(2)"),
        text("cursor", "declare c insensitive cursor with hold for select 1"),
        text("prepare", "prepare p as select 1; prepare transaction 'x'; listen c; load 'x'"),
        text(
            "quotes",
            "select 'it''s', E'\\'', \"a\"\"b\", $$ set x = 1 $$, $a$ $b$ $a$, U&'\\0041'",
        ),
        text("backslash", "select 'a\\'; set x = 1 --'"),
        text("comments", "/* a /* b */ */ set -- c\n x = 1; select 1 +-- d\n 2 */*e*/ 3"),
        text("continued", "select 'a'\n  'b' set"),
        text("unicode_name", "select U&\"set\\005fconfig\"('a', 'b', false)"),
        text("atomic", "create function f() returns int begin atomic select 1; select 2; end"),
        text("insert", "insert into t select * from temp on conflict (a) do update set b = 1"),
        ("not_utf8", b"select '\x81\x5c', \x81$a$ \xff $a$".to_vec()),
        ("long_tag", [b"select $", &[b'a'; 70][..], b"$ x"].concat()),
    ]
}

fn configurations() -> Vec<Seed> {
    let file = |name, text: &str| (name, text.as_bytes().to_vec());
    vec![
        file("world", include_str!("../src/world.toml")),
        file(
            "small",
            "[pools.app.users.0]\nusername = \"alice\"\npassword = \"secret\"\n\
             [pools.app.shards.0]\nservers = [[\"10.0.0.1\", 5432, \"primary\"]]\n\
             database = \"app\"\n",
        ),
        file(
            "general",
            "[general]\nhost = \"::1\"\nport = 6432\nworker_threads = 2\nmax_clients = 10\n\
             connect_timeout = 5000\nquery_wait_timeout = 0\nidle_timeout = 1\n\
             server_lifetime = 0\nshutdown_timeout = 0\nauth_type = \"scram-sha-256\"\n\
             admin_username = \"admin\"\nadmin_password = \"adminpw\"\n\
             tcp_keepalives_idle = 0\ntcp_user_timeout = 0\nautoreload = 15000\n",
        ),
        file(
            "wrong",
            "[general]\nhost = 1\nport = 0\nworker_thread = 2\nconnect_timeout = \"5s\"\n\
             [pools.app]\npool_mode = \"transactoin\"\n[pools.app.users.first]\n\
             username = \"\"\n[pools.pgbouncer]\n[pools.\"\".shards.00]\nservers = [[]]\n",
        ),
        file("not_toml", "[general\nhost = \"a\nport = \n"),
        file("inline", "pools = { app = { users = { 0 = { username = 'a' } }, shards = 1 } }\n"),
    ]
}

fn commands() -> Vec<Seed> {
    let text = |name, text: &str| (name, text.as_bytes().to_vec());
    vec![
        text("pools", "SHOW POOLS;"),
        text("stats", "show stats"),
        text("clients", "show clients"),
        text("servers", "show \"servers\""),
        text("version", "/* c */ SHOW VERSION -- d"),
        text("help", "SHOW HELP"),
        text("setting", "SHOW client_encoding"),
        text("set", "SET extra_float_digits = '3'"),
        text("slip", "SHOW POOLZ"),
        text("elsewhere", "PAUSE app"),
        text("nothing", ";"),
        text("select", "SELECT version"),
    ]
}

/// A script of ops and bytes, in a scene.
fn script(scene: [u8; 2], parts: &[&[u8]]) -> Vec<u8> {
    let mut out = scene.to_vec();
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

const SETTLE: [u8; 3] = op(Op::Settle);
const NEXT: [u8; 3] = op(Op::NextClient);
const END: [u8; 3] = op(Op::End);
const WAKE: [u8; 3] = op(Op::Wake);
const BYSTANDER: [u8; 3] = op(Op::BystanderQuery);

const fn op(op: Op) -> [u8; 3] {
    op.bytes()
}

/// Scenes: transaction mode with clients logged in, session mode, statement mode; then clients
/// that log in themselves; then clients that do not wait for an answer.
const TRANSACTION: [u8; 2] = [0b00_00_00_00, 0];
const SESSION: [u8; 2] = [0b00_00_00_01, 0];
const STATEMENT: [u8; 2] = [0b00_00_11_10, 0];
const FROM_THE_START: [u8; 2] = [0b00_01_01_00, 0];
const IMPATIENT: [u8; 2] = [0b11_01_10_00, 0];

fn client_scripts() -> Vec<Seed> {
    let mut seeds = client_sessions();
    seeds.extend(client_logins());
    seeds.extend(client_faults());
    seeds
}

fn client_sessions() -> Vec<Seed> {
    let sync = &frontend::SYNC[..];
    let done = &frontend::COPY_DONE[..];
    vec![
        ("query", script(TRANSACTION, &[&simple("SELECT 1"), &SETTLE])),
        ("strings", script(TRANSACTION, &[&simple("SELECT 1; SELECT 2;"), &simple(""), &SETTLE])),
        (
            "transaction",
            script(
                TRANSACTION,
                &[
                    &simple("BEGIN"),
                    &SETTLE,
                    &BYSTANDER,
                    &simple("ERROR"),
                    &simple("SELECT 1"),
                    &SETTLE,
                    &NEXT,
                    &simple("BEGIN"),
                    &SETTLE,
                    &BYSTANDER,
                    &END,
                ],
            ),
        ),
        ("batch", script(TRANSACTION, &[&batch("SELECT 1"), &batch(""), &SETTLE])),
        (
            "batch_error",
            script(
                TRANSACTION,
                &[
                    &parse("", "ERROR"),
                    &run("", 0),
                    &parse("", "SELECT 1"),
                    &simple("SELECT 2"),
                    sync,
                    &SETTLE,
                    &run("", 0),
                    sync,
                    &SETTLE,
                ],
            ),
        ),
        ("deferred", script(TRANSACTION, &[&batch("DEFER"), &batch("SELECT 1"), &SETTLE])),
        (
            "unnamed_elsewhere",
            script(
                TRANSACTION,
                &[
                    &parse("", "SELECT 7"),
                    sync,
                    &SETTLE,
                    &op(Op::BystanderBatch),
                    &NEXT,
                    &run("", 0),
                    sync,
                    &SETTLE,
                    &NEXT,
                    &NEXT,
                    &run("", 0),
                    sync,
                    &SETTLE,
                ],
            ),
        ),
        (
            "unnamed_after_a_slip",
            script(TRANSACTION, &[&op(Op::BystanderSlip), &SETTLE, &run("", 0), sync, &SETTLE]),
        ),
        (
            "named",
            script(
                TRANSACTION,
                &[
                    &parse("s", "SELECT 1"),
                    &describe(Target::Statement(b"s")),
                    sync,
                    &SETTLE,
                    &run("s", 0),
                    sync,
                    &BYSTANDER,
                    &close(Target::Statement(b"s")),
                    sync,
                    &END,
                    &SETTLE,
                    &BYSTANDER,
                ],
            ),
        ),
        (
            "portals",
            script(
                TRANSACTION,
                &[
                    &parse("", "MANY"),
                    &run("", 1),
                    &run("", 2),
                    &describe(Target::Portal(b"")),
                    &close(Target::Portal(b"")),
                    sync,
                    &SETTLE,
                ],
            ),
        ),
        (
            "flush",
            script(
                TRANSACTION,
                &[
                    &parse("", "SELECT 1"),
                    &frontend::FLUSH,
                    &SETTLE,
                    &run("", 0),
                    &frontend::FLUSH,
                    &SETTLE,
                    sync,
                    &SETTLE,
                ],
            ),
        ),
        ("flush_with_body", script(TRANSACTION, &[&simple("BEGIN"), &SETTLE, b"H\0\0\0\x05x"])),
        (
            "copy_in",
            script(
                TRANSACTION,
                &[&simple("COPY IN"), &copy_data("1\n"), sync, &copy_data("2\n"), done, &SETTLE],
            ),
        ),
        (
            "copy_in_late",
            script(
                TRANSACTION,
                &[
                    &simple("COPY IN; COPY IN; SELECT 1"),
                    &SETTLE,
                    &copy_data("1\n"),
                    done,
                    &SETTLE,
                    &copy_fail(),
                    &SETTLE,
                    done,
                    &simple("SELECT 2"),
                    &SETTLE,
                ],
            ),
        ),
        (
            "copy_in_batch",
            script(
                TRANSACTION,
                &[
                    &parse("", "COPY IN"),
                    &run("", 0),
                    sync,
                    &SETTLE,
                    &copy_data("1\n"),
                    done,
                    sync,
                    &SETTLE,
                ],
            ),
        ),
        (
            "copy_in_broken",
            script(TRANSACTION, &[&simple("COPY IN"), &simple("SELECT 1"), &SETTLE]),
        ),
        ("copy_in_left", script(TRANSACTION, &[&simple("COPY IN"), &SETTLE, &END, &SETTLE])),
        ("copy_out", script(TRANSACTION, &[&simple("COPY OUT; SELECT 1"), &SETTLE])),
        (
            "function_call",
            script(TRANSACTION, &[&function_call(), &parse("", "ERROR"), &function_call(), sync]),
        ),
        (
            "asynchronous",
            script(TRANSACTION, &[&simple("PARAMETER; NOTICE; NOTIFY"), &SETTLE, &BYSTANDER]),
        ),
        (
            "state",
            script(
                TRANSACTION,
                &[
                    &simple("SET x = 1"),
                    &SETTLE,
                    &BYSTANDER,
                    &SETTLE,
                    &END,
                    &BYSTANDER,
                    &SETTLE,
                    &NEXT,
                    &simple("LOAD 'x'"),
                    &END,
                    &SETTLE,
                    &BYSTANDER,
                ],
            ),
        ),
        (
            "session",
            script(
                SESSION,
                &[
                    &simple("SET x = 1"),
                    &batch("SELECT 1"),
                    &SETTLE,
                    &NEXT,
                    &simple("LISTEN c"),
                    &SETTLE,
                    &BYSTANDER,
                    &END,
                    &SETTLE,
                ],
            ),
        ),
        (
            "statement",
            script(STATEMENT, &[&simple("SELECT 1"), &SETTLE, &simple("BEGIN"), &SETTLE]),
        ),
        (
            "pipeline",
            script(
                TRANSACTION,
                &[
                    &simple("SLEEP"),
                    &batch("SELECT 1"),
                    &simple("SELECT 2"),
                    &SETTLE,
                    &NEXT,
                    &simple("SLEEP"),
                    &SETTLE,
                    &BYSTANDER,
                    &SETTLE,
                    &WAKE,
                    &SETTLE,
                ],
            ),
        ),
        (
            "bystander_block",
            script(
                TRANSACTION,
                &[
                    &op(Op::BystanderBlock),
                    &SETTLE,
                    &BYSTANDER,
                    &simple("SELECT 1"),
                    &SETTLE,
                    &op(Op::BystanderBlock),
                    &SETTLE,
                ],
            ),
        ),
    ]
}

fn client_logins() -> Vec<Seed> {
    let ssl = b"\0\0\0\x08\x04\xd2\x16\x2f";
    let password = |password: &[u8]| {
        let mut out = Vec::new();
        frontend::write_password(&mut out, password);
        out
    };
    let mut console = Vec::new();
    let parameters: [(&[u8], &[u8]); 2] = [(b"user", b"admin"), (b"database", b"pgbouncer")];
    Startup::write(&mut console, ProtocolVersion::V3_0, parameters);
    let mut scram = Vec::new();
    frontend::SaslInitialResponse::write(&mut scram, b"SCRAM-SHA-256", b"n,,n=,r=abc");
    vec![
        ("login", script(FROM_THE_START, &[&startup(b"alice", &[]), &simple("SELECT 1"), &SETTLE])),
        (
            "login_encrypted",
            script(FROM_THE_START, &[ssl, &startup(b"alice", &[]), &simple("SELECT 1"), &SETTLE]),
        ),
        ("login_stuffed", script(IMPATIENT, &[ssl, &startup(b"alice", &[]), &SETTLE])),
        (
            "login_settings",
            script(
                FROM_THE_START,
                &[
                    &startup(b"alice", &[(b"application_name", b"a'\\"), (b"options", b"-cx=1")]),
                    &simple("SELECT 1"),
                    &SETTLE,
                    &BYSTANDER,
                    &SETTLE,
                ],
            ),
        ),
        (
            "login_bad_setting",
            script(FROM_THE_START, &[&startup(b"alice", &[(b"bad", b"1")]), &SETTLE, &SETTLE]),
        ),
        (
            "login_password",
            script(
                FROM_THE_START,
                &[&startup(b"bob", &[]), &password(b"bobpw"), &simple("SELECT 1"), &SETTLE],
            ),
        ),
        (
            "login_wrong_password",
            script(FROM_THE_START, &[&startup(b"bob", &[]), &SETTLE, &password(b"no"), &SETTLE]),
        ),
        (
            "login_md5",
            script(
                FROM_THE_START,
                &[
                    &startup(b"carol", &[]),
                    &SETTLE,
                    &password(b"md5d41d8cd98f00b204e9800998ecf8427e"),
                    &SETTLE,
                ],
            ),
        ),
        (
            "login_scram",
            script(
                FROM_THE_START,
                &[&startup(b"dave", &[]), &SETTLE, &scram, &SETTLE, &password(b"c=biws"), &SETTLE],
            ),
        ),
        (
            "login_stranger",
            script(FROM_THE_START, &[&startup(b"mallory", &[]), &SETTLE, &password(b"x")]),
        ),
        (
            "console",
            script(
                FROM_THE_START,
                &[&console, &simple("SHOW POOLS"), &batch("SHOW STATS"), &SETTLE, &END],
            ),
        ),
    ]
}

fn client_faults() -> Vec<Seed> {
    let (lose, refuse) = (op(Op::LoseServer), op(Op::Refuse));
    let long = op(Op::Long);
    vec![
        (
            "cancel",
            script(
                TRANSACTION,
                &[
                    &simple("SLEEP"),
                    &SETTLE,
                    &op(Op::Cancel),
                    &SETTLE,
                    &simple("SELECT 1"),
                    &SETTLE,
                ],
            ),
        ),
        (
            "cancel_waiting",
            script(
                TRANSACTION,
                &[
                    &simple("SLEEP"),
                    &SETTLE,
                    &NEXT,
                    &simple("SLEEP"),
                    &SETTLE,
                    &NEXT,
                    &simple("SELECT 1"),
                    &SETTLE,
                    &op(Op::Cancel),
                    &SETTLE,
                ],
            ),
        ),
        (
            "half_a_message",
            script(TRANSACTION, &[&simple("BEGIN"), &SETTLE, b"Q\0\0\0\x20SELECT ", &SETTLE, &END]),
        ),
        ("left_in_a_batch", script(TRANSACTION, &[&parse("", "SELECT 1"), &END, &SETTLE])),
        (
            "broken_off",
            script(TRANSACTION, &[&simple("SLEEP"), &SETTLE, &op(Op::Break), &SETTLE, &BYSTANDER]),
        ),
        ("terminated", script(TRANSACTION, &[&simple("SELECT 1"), &frontend::TERMINATE, &SETTLE])),
        (
            "server_lost",
            script(TRANSACTION, &[&simple("SLEEP"), &SETTLE, &lose, &SETTLE, &lose, &BYSTANDER]),
        ),
        (
            "server_fatal",
            script(TRANSACTION, &[&simple("FATAL"), &simple("SELECT 1"), &SETTLE, &SETTLE]),
        ),
        (
            "refused",
            script(
                TRANSACTION,
                &[
                    &lose,
                    &refuse,
                    &simple("SELECT 1"),
                    &SETTLE,
                    &op(Op::Tick),
                    &SETTLE,
                    &refuse,
                    &op(Op::LongTick),
                    &SETTLE,
                ],
            ),
        ),
        (
            "congested",
            script(
                TRANSACTION,
                &[
                    &simple("BEGIN"),
                    &SETTLE,
                    &op(Op::CongestServer),
                    &simple("SELECT 1"),
                    &op(Op::CongestClient),
                    &SETTLE,
                    &op(Op::CongestServer),
                    &SETTLE,
                    &op(Op::CongestClient),
                    &SETTLE,
                ],
            ),
        ),
        (
            "long",
            script(TRANSACTION, &[&long, &SETTLE, &long, &SETTLE, &long, &SETTLE, &END, &SETTLE]),
        ),
        ("long_whole", script([0, 0b100], &[&long, &SETTLE, &END, &SETTLE])),
        ("long_parse", script([0, 1], &[&long, &long, &run("", 0), &frontend::SYNC, &SETTLE])),
        (
            "long_copy",
            script([0, 2], &[&simple("COPY IN"), &long, &SETTLE, &long, &frontend::COPY_DONE]),
        ),
        (
            "drained",
            script(TRANSACTION, &[&simple("BEGIN"), &SETTLE, &op(Op::Drain), &simple("COMMIT")]),
        ),
    ]
}

/// A scene of a server's script: the mode, whether it logs in by itself, and what is in flight.
fn flight(mode: u8, from_login: bool, which: u8) -> [u8; 2] {
    let login = if from_login { 3 } else { 0 };
    [mode | login << 2 | (which / 4) << 4 | (which % 4) << 6, 0]
}

fn server_scripts() -> Vec<Seed> {
    let mut seeds = server_replies();
    seeds.extend(server_logins());
    seeds.extend(server_streams());
    seeds
}

fn server_replies() -> Vec<Seed> {
    let idle = |out: &mut Vec<u8>| ready(out, TransactionStatus::Idle);
    let reply = |which, write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = flight(0, false, which).to_vec();
        write(&mut out);
        out.extend_from_slice(&SETTLE);
        write(&mut out);
        out
    };
    vec![
        (
            "row",
            reply(0, &|out| {
                rows(out);
                idle(out);
            }),
        ),
        (
            "two_rows",
            reply(1, &|out| {
                rows(out);
                rows(out);
                idle(out);
                rows(out);
                ready(out, TransactionStatus::Active);
            }),
        ),
        (
            "batch",
            reply(2, &|out| {
                out.extend_from_slice(b"1\0\0\0\x042\0\0\0\x04");
                rows(out);
                idle(out);
            }),
        ),
        (
            "batch_error",
            reply(9, &|out| {
                out.extend_from_slice(b"1\0\0\0\x04");
                error().write(out);
                idle(out);
            }),
        ),
        ("flushed", reply(3, &|out| out.extend_from_slice(b"1\0\0\0\x042\0\0\0\x04n\0\0\0\x04"))),
        (
            "copy_in",
            reply(4, &|out| {
                out.extend_from_slice(b"G\0\0\0\x09\0\0\x01\0\0");
                backend::command_complete(out, "COPY 1");
                idle(out);
            }),
        ),
        ("copy_in_open", reply(5, &|out| out.extend_from_slice(b"G\0\0\0\x09\0\0\x01\0\0"))),
        (
            "copy_out",
            reply(0, &|out| {
                out.extend_from_slice(b"H\0\0\0\x09\0\0\x01\0\0d\0\0\0\x061\nc\0\0\0\x04");
                backend::command_complete(out, "COPY 1");
                idle(out);
            }),
        ),
        ("copy_both", reply(0, &|out| out.extend_from_slice(b"W\0\0\0\x07\0\0\0d\0\0\0\x05x"))),
        (
            "described",
            reply(6, &|out| {
                out.extend_from_slice(b"1\0\0\0\x04t\0\0\0\x0a\0\x01\0\0\0\x17");
                backend::row_description(out, &[]);
                idle(out);
            }),
        ),
        (
            "function",
            reply(7, &|out| {
                out.extend_from_slice(b"V\0\0\0\x08\xff\xff\xff\xff");
                idle(out);
            }),
        ),
        (
            "block",
            reply(8, &|out| {
                backend::command_complete(out, "BEGIN");
                ready(out, TransactionStatus::Active);
            }),
        ),
        (
            "suspended",
            reply(12, &|out| out.extend_from_slice(b"1\0\0\0\x042\0\0\0\x04s\0\0\0\x04")),
        ),
        (
            "asynchronous",
            reply(0, &|out| {
                backend::parameter_status(out, b"TimeZone", b"UTC");
                out.extend_from_slice(b"N\0\0\0\x14SNOTICE\0C00000\0\0A\0\0\0\x0c\0\0\0\x01c\0p\0");
                rows(out);
                idle(out);
            }),
        ),
        (
            "fatal",
            reply(0, &|out| {
                Report::fatal(SqlState::ADMIN_SHUTDOWN, "terminating").write(out);
            }),
        ),
        (
            "unasked",
            reply(13, &|out| {
                rows(out);
                idle(out);
                idle(out);
            }),
        ),
        ("streamed", reply(0, &|out| out.extend_from_slice(b"D\0\0\x80\0\0\x01\0\0\x7f\xf6aaaa"))),
        ("session", [&flight(1, false, 0)[..], b"Z\0\0\0\x05I"].concat()),
    ]
}

/// Messages that are too long to be held back, and the client that leaves in the middle.
fn server_streams() -> Vec<Seed> {
    let long = op(Op::Long);
    let streamed = |which: u8, parts: &[&[u8]]| {
        let mut out = flight(0, false, 0).to_vec();
        out[1] = which;
        out.extend(parts.iter().flat_map(|part| part.iter().copied()));
        out
    };
    let done = b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
    vec![
        ("long_row", streamed(0, &[&long, &SETTLE, &long, done, &SETTLE])),
        ("long_row_whole", streamed(0b100, &[&long, done, &SETTLE])),
        ("long_fatal_whole", streamed(0b110, &[&long, &op(Op::LoseServer), &SETTLE])),
        ("long_row_left", streamed(0, &[&long, &END, &long, done, &SETTLE])),
        ("long_error", streamed(1, &[&long, &long, b"Z\0\0\0\x05I", &SETTLE])),
        ("long_fatal", streamed(2, &[&long, &long, &op(Op::LoseServer), &SETTLE])),
        ("long_notice", streamed(3, &[&long, &END, &long, &SETTLE])),
    ]
}

fn server_logins() -> Vec<Seed> {
    let key = CancelKey { process_id: 77, secret: (*b"abcd").into() };
    let login = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = flight(0, true, 0).to_vec();
        write(&mut out);
        out.extend_from_slice(&SETTLE);
        out
    };
    let welcome = |out: &mut Vec<u8>| {
        backend::authentication_ok(out);
        backend::parameter_status(out, b"server_version", b"17.0");
        backend::backend_key_data(out, &key);
        ready(out, TransactionStatus::Idle);
    };
    vec![
        ("login", login(&welcome)),
        (
            "login_and_rows",
            login(&|out| {
                welcome(out);
                rows(out);
                ready(out, TransactionStatus::Idle);
            }),
        ),
        (
            "login_cleartext",
            login(&|out| {
                backend::authentication_cleartext(out);
                welcome(out);
            }),
        ),
        (
            "login_md5",
            login(&|out| {
                backend::authentication_md5(out, [1, 2, 3, 4]);
                welcome(out);
            }),
        ),
        (
            "login_scram",
            login(&|out| {
                backend::authentication_sasl(out, &[b"SCRAM-SHA-256"]);
                backend::authentication_sasl_continue(out, b"r=x,s=c2FsdA==,i=2");
            }),
        ),
        ("login_gss", login(&|out| out.extend_from_slice(b"R\0\0\0\x08\0\0\0\x07"))),
        (
            "login_refused",
            login(&|out| {
                Report::fatal(SqlState::INVALID_PASSWORD, "no").write(out);
            }),
        ),
        (
            "login_full",
            login(&|out| {
                Report::fatal(SqlState::TOO_MANY_CONNECTIONS, "full").write(out);
                out.extend_from_slice(&op(Op::LongTick));
            }),
        ),
        (
            "login_negotiated",
            login(&|out| {
                let options = [Box::from(&b"_pq_.x"[..])];
                backend::negotiate_protocol_version(out, ProtocolVersion::V3_0, &options);
                welcome(out);
            }),
        ),
        ("login_too_long", login(&|out| out.extend_from_slice(b"R\0\x01\0\x05"))),
    ]
}

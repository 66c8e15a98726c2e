//! Scripts of what clients send: their items stand between `|`, see [`script`].

use pgweir_wire::frontend::{self, Target};
use pgweir_wire::{ProtocolVersion, Startup};

use crate::messages;
use crate::{Seed, script};

/// Scenes: the mode; then how servers are logged in to, whether clients are logged in, and
/// whether they wait for an answer before they go on; then what is long, and whether it comes at
/// once; then whether servers are shared.
const TRANSACTION: [u8; 2] = [0b00_00_00_00, 0];
const SESSION: [u8; 2] = [0b00_00_00_01, 0];
const STATEMENT: [u8; 2] = [0b00_00_11_10, 0];
const FROM_THE_START: [u8; 2] = [0b00_01_01_00, 0];
const IMPATIENT: [u8; 2] = [0b11_01_10_00, 0];
const SHARED: [u8; 2] = [0, 0b01_00_00];
const LONG_QUERY_AT_ONCE: [u8; 2] = [0, 0b100];
const LONG_PARSE: [u8; 2] = [0, 1];
const LONG_DATA: [u8; 2] = [0, 2];

pub(crate) fn scripts() -> Vec<Seed> {
    let lists = [simple(), extended(), copies(), states(), logins(), faults(), long(), shared()];
    let scripts = lists.into_iter().flatten();
    scripts.map(|(name, scene, items)| (name, script(scene, items, message))).collect()
}

/// A message.
fn message(text: &str) -> Vec<u8> {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let mut out = Vec::new();
    match word {
        "Startup" => return messages::startup_packet(rest.as_bytes(), &[]),
        "Query" => return messages::simple(rest),
        "Batch" => return messages::batch(rest),
        "Parse" => return messages::parse("", rest),
        "ParseNamed" => return messages::parse("s", rest),
        "Run" => return messages::run(rest, 0),
        "RunOne" => return messages::run(rest, 1),
        "DescribePortal" => return messages::describe(Target::Portal(rest.as_bytes())),
        "DescribeStatement" => return messages::describe(Target::Statement(rest.as_bytes())),
        "CloseStatement" => return messages::close(Target::Statement(rest.as_bytes())),
        "ClosePortal" => return messages::close(Target::Portal(rest.as_bytes())),
        "FunctionCall" => return messages::function_call(),
        "CopyData" => return messages::copy_data(rest),
        "CopyFail" => return messages::copy_fail(),
        "CopyDone" => out.extend_from_slice(&frontend::COPY_DONE),
        "Sync" => out.extend_from_slice(&frontend::SYNC),
        "Flush" => out.extend_from_slice(&frontend::FLUSH),
        "Terminate" => out.extend_from_slice(&frontend::TERMINATE),
        "Password" => frontend::write_password(&mut out, rest.as_bytes()),
        "Sasl" => frontend::SaslInitialResponse::write(&mut out, b"SCRAM-SHA-256", rest.as_bytes()),
        "SslRequest" => out.extend_from_slice(b"\0\0\0\x08\x04\xd2\x16\x2f"),
        "Settings" => return startup(b"alice", b"app", &[b"options", b"-cx=1", b"a", b"a'\\"]),
        "BadSetting" => return startup(b"alice", b"app", &[b"bad", b"1"]),
        "Console" => return startup(b"admin", b"pgbouncer", &[]),
        "FlushWithBody" => out.extend_from_slice(b"H\0\0\0\x05x"),
        "UnknownTag" => out.extend_from_slice(b"O\0\0\0\x04"),
        "QueryWithoutEnd" => out.extend_from_slice(b"Q\0\0\0\x0dPREPARE S"),
        "HalfAQuery" => out.extend_from_slice(b"Q\0\0\0\x20SELECT "),
        _ => panic!("{word:?} is no op and no message"),
    }
    out
}

fn startup(user: &[u8], database: &[u8], more: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let names = [(&b"user"[..], user), (b"database", database)];
    let more = more.chunks_exact(2).map(|pair| (pair[0], pair[1]));
    Startup::write(&mut out, ProtocolVersion::V3_0, names.into_iter().chain(more));
    out
}

/// A name, a scene, and items.
type Script = (&'static str, [u8; 2], &'static str);

fn simple() -> Vec<Script> {
    vec![
        ("query", TRANSACTION, "Query SELECT 1 | Settle"),
        ("strings", TRANSACTION, "Query SELECT 1; SELECT 2; | Query | Settle"),
        (
            "transaction",
            TRANSACTION,
            "Query BEGIN | Settle | BystanderQuery | Query ERROR | Query SELECT 1 | Settle
            | NextClient | Query BEGIN | Settle | BystanderQuery | End",
        ),
        ("asynchronous", TRANSACTION, "Query PARAMETER; NOTICE; NOTIFY | Settle | BystanderQuery"),
        ("function_call", TRANSACTION, "FunctionCall | Parse ERROR | FunctionCall | Sync"),
        ("statement", STATEMENT, "Query SELECT 1 | Settle | Query BEGIN | Settle"),
        (
            "pipeline",
            TRANSACTION,
            "Query SLEEP | Batch SELECT 1 | Query SELECT 2 | Settle | NextClient | Query SLEEP
            | Settle | BystanderQuery | Settle | Wake | Settle",
        ),
        ("terminated", TRANSACTION, "Query SELECT 1 | Terminate | Settle"),
        ("query_without_end", TRANSACTION, "Query BEGIN | QueryWithoutEnd | Settle"),
    ]
}

fn extended() -> Vec<Script> {
    vec![
        ("batch", TRANSACTION, "Batch SELECT 1 | Batch | Settle"),
        (
            "batch_error",
            TRANSACTION,
            "Parse ERROR | Run | Parse SELECT 1 | Query SELECT 2 | Sync | Settle | Run | Sync
            | Settle",
        ),
        ("left_behind_an_error", TRANSACTION, "Parse ERROR | Run | Query SELECT 1 | End | Settle"),
        ("broken_behind_an_error", TRANSACTION, "Run | Query SELECT 1 | UnknownTag | Settle"),
        ("left_in_a_batch", TRANSACTION, "Parse SELECT 1 | End | Settle"),
        ("deferred", TRANSACTION, "Batch DEFER | Batch SELECT 1 | Settle"),
        (
            "unnamed_elsewhere",
            TRANSACTION,
            "Parse SELECT 7 | Sync | Settle | BystanderBatch | NextClient | Run | Sync | Settle
            | NextClient | NextClient | Run | Sync | Settle",
        ),
        ("unnamed_after_a_slip", TRANSACTION, "BystanderSlip | Settle | Run | Sync | Settle"),
        (
            "named",
            TRANSACTION,
            "ParseNamed SELECT 1 | DescribeStatement s | Sync | Settle | Run s | Sync
            | BystanderQuery | CloseStatement s | Sync | End | Settle | BystanderQuery",
        ),
        (
            "portals",
            TRANSACTION,
            "Parse MANY | RunOne | RunOne | DescribePortal | ClosePortal | Sync | Settle",
        ),
        (
            "flush",
            TRANSACTION,
            "Parse SELECT 1 | Flush | Settle | Run | Flush | Settle | Sync | Settle",
        ),
        ("flush_with_body", TRANSACTION, "Query BEGIN | Settle | FlushWithBody | Settle"),
    ]
}

fn copies() -> Vec<Script> {
    vec![
        (
            "copy_in",
            TRANSACTION,
            "Query COPY IN | CopyData 1 | Sync | CopyData 2 | CopyDone | Settle",
        ),
        (
            "copy_in_late",
            TRANSACTION,
            "Query COPY IN; COPY IN; SELECT 1 | Settle | CopyData 1 | CopyDone | Settle | CopyFail
            | Settle | CopyDone | Query SELECT 2 | Settle",
        ),
        (
            "copy_in_batch",
            TRANSACTION,
            "Parse COPY IN | Run | Sync | Settle | CopyData 1 | CopyDone | Sync | Settle",
        ),
        ("copy_in_broken", TRANSACTION, "Query COPY IN | Query SELECT 1 | Settle"),
        ("copy_in_bound", TRANSACTION, "Query COPY IN | Run | Settle"),
        ("copy_in_held", TRANSACTION, "Query COPY IN | BystanderBatch | Query SELECT 1 | Settle"),
        ("copy_in_left", TRANSACTION, "Query COPY IN | Settle | End | Settle"),
        ("copy_in_statement", STATEMENT, "Query COPY IN | CopyData 1 | Sync | Settle"),
        ("copy_out", TRANSACTION, "Query COPY OUT; SELECT 1 | Settle"),
    ]
}

fn states() -> Vec<Script> {
    vec![
        (
            "state",
            TRANSACTION,
            "Query SET x = 1 | Settle | BystanderQuery | Settle | End | BystanderQuery | Settle
            | NextClient | Query LOAD 'x' | End | Settle | BystanderQuery",
        ),
        (
            "session",
            SESSION,
            "Query SET x = 1 | Batch SELECT 1 | Settle | NextClient | Query LISTEN c | Settle
            | BystanderQuery | End | Settle",
        ),
        (
            "bystander_block",
            TRANSACTION,
            "BystanderBlock | Settle | BystanderQuery | Query SELECT 1 | Settle | BystanderBlock
            | Settle",
        ),
    ]
}

fn logins() -> Vec<Script> {
    vec![
        ("login", FROM_THE_START, "Startup alice | Query SELECT 1 | Settle"),
        ("login_encrypted", FROM_THE_START, "SslRequest | Startup alice | Query SELECT 1 | Settle"),
        ("login_stuffed", IMPATIENT, "SslRequest | Startup alice | Settle"),
        (
            "login_settings",
            FROM_THE_START,
            "Settings | Query SELECT 1 | Settle | BystanderQuery | Settle",
        ),
        ("login_bad_setting", FROM_THE_START, "BadSetting | Settle | Settle"),
        (
            "login_password",
            FROM_THE_START,
            "Startup bob | Password bobpw | Query SELECT 1 | Settle",
        ),
        ("login_wrong_password", FROM_THE_START, "Startup bob | Settle | Password no | Settle"),
        (
            "login_md5",
            FROM_THE_START,
            "Startup carol | Settle | Password md5d41d8cd98f00b204e9800998ecf8427e | Settle",
        ),
        (
            "login_scram",
            FROM_THE_START,
            "Startup dave | Settle | Sasl n,,n=,r=abc | Settle | Password c=biws | Settle",
        ),
        ("login_stranger", FROM_THE_START, "Startup mallory | Settle | Password x"),
        ("console", FROM_THE_START, "Console | Query SHOW POOLS | Batch SHOW STATS | Settle | End"),
    ]
}

fn faults() -> Vec<Script> {
    vec![
        ("cancel", TRANSACTION, "Query SLEEP | Settle | Cancel | Settle | Query SELECT 1 | Settle"),
        (
            "cancel_waiting",
            TRANSACTION,
            "Query SLEEP | Settle | NextClient | Query SLEEP | Settle | NextClient
            | Query SELECT 1 | Settle | Cancel | Settle",
        ),
        ("half_a_message", TRANSACTION, "Query BEGIN | Settle | HalfAQuery | Settle | End"),
        ("broken_off", TRANSACTION, "Query SLEEP | Settle | Break | Settle | BystanderQuery"),
        (
            "server_lost",
            TRANSACTION,
            "Query SLEEP | Settle | LoseServer | Settle | LoseServer | BystanderQuery",
        ),
        ("server_fatal", TRANSACTION, "Query FATAL | Query SELECT 1 | Settle | Settle"),
        (
            "refused",
            TRANSACTION,
            "LoseServer | Refuse | Query SELECT 1 | Settle | Tick | Settle | Refuse | LongTick
            | Settle",
        ),
        (
            "congested",
            TRANSACTION,
            "Query BEGIN | Settle | CongestServer | Query SELECT 1 | CongestClient | Settle
            | CongestServer | Settle | CongestClient | Settle",
        ),
        ("drained", TRANSACTION, "Query BEGIN | Settle | Drain | Query COMMIT"),
    ]
}

fn long() -> Vec<Script> {
    vec![
        ("long", TRANSACTION, "Long | Settle | Long | Settle | Long | Settle | End | Settle"),
        ("long_whole", LONG_QUERY_AT_ONCE, "Long | Settle | End | Settle"),
        ("long_parse", LONG_PARSE, "Long | Long | Run | Sync | Settle"),
        ("long_copy", LONG_DATA, "Query COPY IN | Long | Settle | Long | CopyDone"),
    ]
}

/// Servers are shared: what stands behind each other there, and what needs one alone.
fn shared() -> Vec<Script> {
    vec![
        (
            "shared",
            SHARED,
            "Query SELECT 1 | BystanderQuery | NextClient | Batch SELECT 2 | BystanderBatch
            | Settle | Query UPDATE t SET a = 1 | NextClient | Query SELECT 3 | Settle",
        ),
        (
            "shared_alone",
            SHARED,
            "Query SELECT 1 | NextClient | Query BEGIN | BystanderQuery | NextClient
            | Query SELECT 2 | Settle | Query BEGIN | Settle | BystanderBlock | Settle",
        ),
        (
            "shared_overrun",
            SHARED,
            "Query SELECT SLEEP | NextClient | Query SELECT 1 | BystanderQuery | Settle | Tick
            | Settle | Wake | Settle",
        ),
        (
            "shared_cancel",
            SHARED,
            "Query SELECT SLEEP | Settle | Cancel | Settle | Query SELECT SLEEP | BystanderQuery
            | Settle | Cancel | Settle | Tick | Settle",
        ),
        (
            "shared_lost",
            SHARED,
            "Query SELECT SLEEP | NextClient | Query INSERT INTO t VALUES (1) | BystanderQuery
            | Settle | LoseServer | Settle | LoseServer | Settle",
        ),
        (
            "shared_left",
            SHARED,
            "Query SELECT SLEEP | Settle | Query SELECT 1 | End | BystanderQuery | Settle | Wake",
        ),
        (
            "shared_named",
            SHARED,
            "ParseNamed SELECT 1 | Sync | Settle | Run s | Sync | BystanderBatch | Settle
            | NextClient | Query SELECT SLEEP | NextClient | NextClient | Run s | Sync | Settle",
        ),
        ("shared_error", SHARED, "Batch ERROR | Query SELECT 1 | BystanderQuery | Settle"),
        (
            "shared_drained",
            SHARED,
            "Query SELECT SLEEP | Settle | Query SELECT 1 | Drain | Tick | Settle | Wake | Settle",
        ),
        ("shared_long", SHARED, "Long | Settle | Long | Settle | Query SELECT 1 | Settle"),
    ]
}

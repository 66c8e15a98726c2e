//! The servers that fuzzing puts behind an engine answer as PostgreSQL does, to messages that no
//! driver would send too: what the engine has to count on is known from the real one.

use pgweir_fuzz::postgres::replies;
use pgweir_testkit::frames::{
    bind, close_portal, close_statement, copy_data, copy_done, copy_fail, describe_portal,
    describe_statement, execute, extended, flush, function_call, message, parse, query, sync,
    terminate,
};
use pgweir_testkit::{Cluster, Login, WireClient};

/// The same statements in both languages.
struct Words {
    copy_in: &'static str,
    copy_out: &'static str,
    error: &'static str,
    many: &'static str,
}

const OURS: Words =
    Words { copy_in: "COPY IN", copy_out: "COPY OUT", error: "ERROR", many: "MANY" };

const SQL: Words = Words {
    copy_in: "COPY t FROM STDIN",
    copy_out: "COPY (SELECT 1) TO STDOUT",
    error: "DROP TABLE no_such_table",
    many: "SELECT generate_series(1, 3)",
};

/// `now()`, by its OID in pg_proc.
const NOW: u32 = 1299;

#[test]
fn a_server_of_ours_answers_as_postgresql_does() {
    let cluster = Cluster::start();
    cluster.psql("CREATE TABLE t (a text)");
    let mut differences = Vec::new();
    for (name, conversation) in CONVERSATIONS {
        let ours = tags(&replies(&conversation(&OURS)));
        let theirs = answers(&cluster, &conversation(&SQL));
        if ours != theirs {
            differences.push(format!("{name}: {ours} instead of {theirs}"));
        }
    }
    assert!(differences.is_empty(), "\n{}\n", differences.join("\n"));
}

/// What PostgreSQL answers, up to the end of the connection.
fn answers(cluster: &Cluster, sent: &[u8]) -> String {
    let login = Login::new("postgres");
    let mut client = WireClient::login(cluster.address(), &login).expect("a login");
    client.send(sent).expect("the server reads");
    client.half_close().expect("the socket is open");
    let messages = client.read_to_end().expect("whole messages");
    shown(messages.iter().map(|message| message.tag))
}

/// The tags of messages one behind the other.
fn tags(mut bytes: &[u8]) -> String {
    let mut tags = Vec::new();
    while let [tag, a, b, c, d, ..] = *bytes {
        tags.push(tag);
        bytes = &bytes[1 + u32::from_be_bytes([a, b, c, d]) as usize..];
    }
    shown(tags.into_iter())
}

/// All but what may come at any time.
fn shown(tags: impl Iterator<Item = u8>) -> String {
    tags.filter(|tag| !b"ANS".contains(tag)).map(char::from).collect()
}

type Conversation = fn(&Words) -> Vec<u8>;

/// A query that shows whether the server goes on.
fn probe() -> Vec<u8> {
    query("SELECT 1")
}

/// A batch with the unnamed statement that was made before.
fn run_unnamed() -> Vec<u8> {
    [bind("", "", &[]), execute("", 0), sync()].concat()
}

/// The unnamed statement, made.
fn make_unnamed() -> Vec<u8> {
    [parse("", "SELECT 1", &[]), sync()].concat()
}

const CONVERSATIONS: &[(&str, Conversation)] = &[
    ("query", |_| probe()),
    ("several statements", |_| [query("BEGIN; SELECT 1; COMMIT"), probe()].concat()),
    ("nothing", |_| [query(""), query(" ; "), probe()].concat()),
    ("an error", |w| [query(w.error), probe()].concat()),
    ("a failed block", |w| {
        [
            query("BEGIN"),
            query(w.error),
            probe(),
            parse("", "SELECT 1", &[]),
            sync(),
            parse("", "COMMIT", &[]),
            run_unnamed(),
            probe(),
        ]
        .concat()
    }),
    ("a query without its end", |_| [message(b'Q', b"SELECT 1"), probe()].concat()),
    ("a query with more behind", |_| [message(b'Q', b"SELECT 1\0x"), probe()].concat()),
    ("a query in no encoding", |_| [message(b'Q', b"\xc0\0"), probe()].concat()),
    ("a batch", |_| [extended("SELECT 1", &[]), probe()].concat()),
    ("an empty batch", |_| [extended("", &[]), probe()].concat()),
    ("a batch that fails", |w| {
        let batch = [parse("", w.error, &[]), bind("", "", &[]), execute("", 0)].concat();
        [batch, execute("", 0), query("SELECT 1"), sync(), probe()].concat()
    }),
    ("a query ends a batch", |_| [parse("", "SELECT 1", &[]), probe(), sync(), probe()].concat()),
    ("two commands in one statement", |_| {
        [parse("", "SELECT 1; SELECT 2", &[]), sync(), probe()].concat()
    }),
    ("a name twice", |_| {
        [parse("s", "SELECT 1", &[]), parse("s", "SELECT 1", &[]), sync(), probe()].concat()
    }),
    ("names that are missing", |_| {
        let missing = [bind("", "x", &[]), execute("x", 0), describe_portal("x")];
        missing.map(|message| [message, sync()].concat()).concat()
    }),
    ("close is never wrong", |_| [close_portal("x"), close_statement("x"), sync()].concat()),
    ("descriptions", |_| {
        [
            parse("", "SELECT 1", &[]),
            describe_statement(""),
            bind("", "", &[]),
            describe_portal(""),
            parse("b", "BEGIN", &[]),
            describe_statement("b"),
            parse("e", "", &[]),
            describe_statement("e"),
            sync(),
        ]
        .concat()
    }),
    ("rows by and by", |w| {
        let batch = [parse("", w.many, &[]), bind("", "", &[]), execute("", 1)].concat();
        [batch, execute("", 2), execute("", 2), sync(), probe()].concat()
    }),
    ("rows with a limit above", |w| {
        [parse("", w.many, &[]), bind("", "", &[]), execute("", 9), sync()].concat()
    }),
    ("a portal ends with its transaction", |_| {
        let batch = [parse("", "SELECT 1", &[]), bind("p", "", &[]), sync()].concat();
        [batch, execute("p", 0), sync(), probe()].concat()
    }),
    ("flush", |_| [parse("", "SELECT 1", &[]), flush(), run_unnamed()].concat()),
    ("flush with a body", |_| {
        [query("BEGIN"), message(b'H', b"x"), probe(), sync(), probe()].concat()
    }),
    ("sync alone", |_| [sync(), sync()].concat()),
    ("sync with a body", |_| [message(b'S', b"x"), probe()].concat()),
    ("parse with more behind", |_| {
        [make_unnamed(), message(b'P', b"\0SELECT 2\0\0\0x"), sync(), run_unnamed()].concat()
    }),
    ("parse cut short", |_| {
        [make_unnamed(), message(b'P', b"\0SELECT 2\0\0\x01"), sync(), run_unnamed()].concat()
    }),
    ("parse in no encoding", |_| {
        [make_unnamed(), message(b'P', b"\0\xc0\0\0\0"), sync(), run_unnamed()].concat()
    }),
    ("parse that fails drops the unnamed", |_| {
        let two = parse("", "SELECT 1; SELECT 2", &[]);
        [make_unnamed(), two, sync(), run_unnamed()].concat()
    }),
    ("query drops the unnamed", |_| [make_unnamed(), probe(), run_unnamed()].concat()),
    ("query that fails drops the unnamed", |w| {
        [make_unnamed(), query(w.error), run_unnamed()].concat()
    }),
    ("query in no encoding does not", |_| {
        [make_unnamed(), message(b'Q', b"\xc0\0"), run_unnamed()].concat()
    }),
    ("query without its end does not", |_| {
        [make_unnamed(), message(b'Q', b"SELECT 1"), run_unnamed()].concat()
    }),
    ("bind cut short", |_| {
        let cut = message(b'B', b"\0\0\0\0\0\x01\0\0\0\x09x");
        [parse("", "SELECT $1", &[25]), cut, sync(), probe()].concat()
    }),
    ("describe and close of nothing", |_| {
        [message(b'D', b"x\0"), sync(), message(b'C', b"x\0"), sync(), probe()].concat()
    }),
    ("execute cut short", |_| {
        [extended("SELECT 1", &[]), message(b'E', b"\0\0\0"), sync(), probe()].concat()
    }),
    ("function call", |_| [function_call(NOW, 0, &[]), probe()].concat()),
    ("function call cut short", |_| [message(b'F', b"\0\0"), probe()].concat()),
    ("function call in a failed block", |w| {
        [query("BEGIN"), query(w.error), function_call(NOW, 0, &[]), probe()].concat()
    }),
    ("function call behind an error", |_| {
        let missing = bind("", "x", &[]);
        [missing, function_call(NOW, 0, &[]), sync(), probe()].concat()
    }),
    ("copy in", |w| {
        let data = [copy_data(b"1\n"), flush(), sync(), copy_data(b"2\n"), copy_done()].concat();
        [query(w.copy_in), data, probe()].concat()
    }),
    ("copy in twice", |w| {
        let text = format!("{copy}; {copy}; SELECT 1", copy = w.copy_in);
        let data = [copy_data(b"1\n"), copy_done()].concat();
        [query(&text), data.clone(), data, probe()].concat()
    }),
    ("copy that fails", |w| {
        [query(w.copy_in), copy_fail("no"), copy_data(b"1\n"), copy_done(), probe()].concat()
    }),
    ("copy that fails without a reason", |w| {
        [query(w.copy_in), message(b'f', b"no"), probe()].concat()
    }),
    ("copy in a batch", |w| {
        let batch = [parse("", w.copy_in, &[]), bind("", "", &[]), execute("", 0), sync()].concat();
        [batch, copy_data(b"1\n"), sync(), copy_done(), sync(), probe()].concat()
    }),
    ("copy that fails in a batch", |w| {
        let batch = [parse("", w.copy_in, &[]), bind("", "", &[]), execute("", 0)].concat();
        [batch, copy_fail("no"), copy_done(), probe(), sync(), probe()].concat()
    }),
    ("a query in a copy", |w| [query(w.copy_in), probe(), probe()].concat()),
    ("a batch in a copy", |w| [query(w.copy_in), make_unnamed(), probe()].concat()),
    ("copy out", |w| [query(w.copy_out), probe()].concat()),
    ("copy data out of place", |_| {
        [copy_data(b"1\n"), copy_done(), copy_fail("no"), probe()].concat()
    }),
    ("the end", |_| [bind("", "x", &[]), terminate(), probe()].concat()),
    ("an unknown message", |_| [message(b'O', b""), probe()].concat()),
    ("a password out of place", |_| [message(b'p', b"x\0"), probe()].concat()),
    ("a length below four", |_| [b"Q\0\0\0\x03".to_vec(), probe()].concat()),
    ("a length above the limit", |_| [b"S\0\0\x30\0".to_vec(), probe()].concat()),
];

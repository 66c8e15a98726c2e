//! Clients of many encodings share few servers: each one's words come back as it wrote them, and
//! what they leave on a server is found in whatever encoding they say it.

use std::thread;

use pgweir_testkit::frames::{bind, bind_with_formats, execute, message, parse, query, sync};
use pgweir_testkit::{Login, Pgweir, Script, WireClient};

use crate::stage::{CLUSTER, PROGRAM, Stage, assert_sound, login, superuser, trusting};

/// An encoding, words that PostgreSQL takes in it, and the same in UTF-8. Where later bytes of a
/// character may be ASCII, some are; but none is a backslash, which would keep the server.
const WORDS: [(&str, &[u8], &str); 10] = [
    ("SJIS", b"\x83[\x83|\x81@", "ゼポ　"),
    ("BIG5", b"\xa8|\xa4@", "育一"),
    ("GBK", b"\x81@\x81A", "丂丄"),
    ("GB18030", b"\x81@\x819\xee9", "丂㐀"),
    ("UHC", b"\x8cc\xb9\xe6", "똠방"),
    ("JOHAB", b"\xd9\xa1", "⇒"),
    ("EUC_JP", b"\xc9\xbd\xc7\xbd", "表能"),
    ("LATIN1", b"\xd1and\xfa", "Ñandú"),
    ("SQL_ASCII", "表".as_bytes(), "表"),
    ("UTF8", "表".as_bytes(), "表"),
];

/// A text in which `%` stands for the words, as a Query.
fn asked(words: &[u8], text: &str) -> Vec<u8> {
    let text = text.split('%').map(str::as_bytes).collect::<Vec<_>>().join(words);
    message(b'Q', &[&text[..], b"\0"].concat())
}

/// The same by the unnamed statement.
fn extended(words: &[u8], text: &str) -> Vec<u8> {
    let text = text.split('%').map(str::as_bytes).collect::<Vec<_>>().join(words);
    let parse = message(b'P', &[b"\0", &text[..], b"\0\0\0"].concat());
    [parse, bind("", "", &[]), execute("", 0), sync()].concat()
}

/// The values of the only row of a reply.
#[track_caller]
fn row(client: &mut WireClient, frames: &[u8]) -> Vec<Vec<u8>> {
    client.send(frames).unwrap();
    let reply = client.read_until_ready().unwrap();
    let error = reply.iter().find(|message| message.tag == b'E');
    assert_eq!(error.map(ToString::to_string), None);
    let row = reply.iter().find(|message| message.tag == b'D').unwrap();
    row.values().into_iter().map(Option::unwrap).collect()
}

/// The words come back in the client's encoding, and mean what they mean.
#[track_caller]
fn are_understood(client: &mut WireClient, (encoding, words, meaning): (&str, &[u8], &str)) {
    let text = "SELECT '%', convert_to('%', 'UTF8'), current_setting('client_encoding')";
    let hex: String = meaning.bytes().map(|byte| format!("{byte:02x}")).collect();
    let hex = format!("\\x{hex}");
    let expected = [words, hex.as_bytes(), encoding.as_bytes()];
    assert_eq!(row(client, &asked(words, text)), expected);
    assert_eq!(row(client, &extended(words, text)), expected);
    let bind = bind_with_formats("", "", &[], &[Some(words)], &[]);
    let run = [parse("", "SELECT $1::text", &[]), bind, execute("", 0), sync()].concat();
    assert_eq!(row(client, &run), [words]);
    assert_eq!(row(client, &asked(words, "SELECT '%' -- %")), [words]);
}

/// One client for each encoding, which it chooses at its login, and one that chooses it later.
fn clients(stage: &Stage, encoding: &str) -> [WireClient; 2] {
    let chosen = stage.client_as(&stage.login().parameter("client_encoding", encoding));
    let mut choosing = stage.client();
    choosing.query(&format!("SET NAMES '{encoding}'"));
    [chosen, choosing]
}

#[test]
fn every_client_keeps_its_own() {
    for servers in [1, 3] {
        let stage = Stage::with(&format!("encodings_{servers}"), servers, |config| {
            config.pool("server_choice", "\"never_same\"")
        });
        let mut all: Vec<_> = WORDS
            .into_iter()
            .flat_map(|words| clients(&stage, words.0).map(|client| (words, client)))
            .collect();
        for _ in 0..3 {
            for (words, client) in &mut all {
                are_understood(client, *words);
            }
        }
        thread::scope(|scope| {
            for (words, client) in &mut all {
                scope.spawn(move || (0..20).for_each(|_| are_understood(client, *words)));
            }
        });
        assert!(stage.backends("true") <= servers as usize);
    }
}

/// What stands behind a name shares no server, whatever encoding that is in: a view says with which
/// timeout it runs, which is another one where servers are shared.
#[test]
fn names_are_known_or_their_statements_are_alone() {
    let stage = Stage::new("encodings_names", 2);
    for meaning in WORDS.map(|(_, _, meaning)| meaning) {
        superuser(&CLUSTER, &stage.name).query(&view(&format!("v{meaning}")));
    }
    for (encoding, words, _) in WORDS {
        for mut client in clients(&stage, encoding) {
            let frames = [asked(words, NAMED), extended(words, NAMED)];
            for frames in frames.iter().cycle().take(6) {
                assert_eq!(row(&mut client, frames), [b"0"], "{encoding}");
            }
        }
    }
}

const NAMED: &str = "SELECT a FROM \"v%\"";

/// There a name that is not quoted is folded by the locale.
#[test]
fn names_are_known_in_databases_of_other_encodings_too() {
    let name = "encodings_names_latin1";
    let mut administrator = superuser(&CLUSTER, "postgres");
    administrator.query(&format!("CREATE ROLE {name} LOGIN"));
    administrator.query(&format!(
        "CREATE DATABASE {name} OWNER {name} ENCODING 'LATIN1' TEMPLATE template0"
    ));
    superuser(&CLUSTER, name).query(&view("gerät"));
    let config = trusting(&CLUSTER, name).user(name, "", 2);
    let pgweir = Pgweir::start(PROGRAM, |port| config.text(port));
    let mut client = WireClient::login(pgweir.address(), &login(name)).unwrap();
    for text in ["SELECT a FROM gerät", "SELECT a FROM \"gerät\""].repeat(3) {
        assert_eq!(client.query(text), ["0"], "{text}");
    }
    assert_sound(&pgweir);
}

/// A view that says with which timeout it runs, for everybody.
fn view(name: &str) -> String {
    format!(
        "CREATE OR REPLACE VIEW \"{name}\" AS SELECT current_setting('statement_timeout') AS a; \
         GRANT SELECT ON \"{name}\" TO PUBLIC"
    )
}

/// A lock that is taken if `%` does not end in a backslash.
const HIDDEN: &str = "SELECT E'%', pg_advisory_lock(7) --'";

/// Characters of which HIDDEN has to be read in the client's encoding.
const ENDS: [(&str, &[u8]); 6] = [
    ("SJIS", b"\x95\x5c"),
    ("SHIFT_JIS_2004", b"\x95\x5c"),
    // It becomes a backslash, and so the one behind it ends nothing.
    ("SHIFT_JIS_2004", b"\x81\x5f\\"),
    ("BIG5", b"\xa5\x5c"),
    ("GBK", b"\xd5\x5c"),
    ("GB18030", b"\xd5\x5c"),
];

/// What a client says one after the other takes a lock. Its server stays with it: the lock is its
/// own, and gone when it is.
#[track_caller]
fn lock_is_found(stage: &Stage, mut owner: WireClient, said: &[&[u8]]) {
    let mut other = stage.client();
    for frames in said {
        owner.send(frames).unwrap();
        let reply = owner.read_until_ready().unwrap();
        assert!(reply.iter().all(|message| message.tag != b'E'), "{}", reply[0]);
    }
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND \
                 database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    // The server of the owner may take a moment to end.
    other.send(&query(&format!("{locks} AND pid = pg_backend_pid()"))).unwrap();
    stage.wait_for_waiters(1);
    assert_eq!(stage.value(locks), "1");
    drop(owner);
    let reply = other.read_until_ready().unwrap();
    let count = reply.iter().find(|message| message.tag == b'D').unwrap();
    assert_eq!(count.values(), [Some(b"0".to_vec())]);
}

/// The lock is taken by a text that is a literal to its end in ASCII, and in LATIN1.
#[test]
fn what_another_encoding_would_hide_is_found() {
    let stage = Stage::new("encodings_hidden", 1);
    let [begin, commit] = ["BEGIN", "COMMIT"].map(query);
    for (encoding, end) in ENDS {
        let local = query(&format!("SET LOCAL client_encoding = '{encoding}'"));
        for lock in [asked(end, HIDDEN), extended(end, HIDDEN)] {
            for client in clients(&stage, encoding) {
                lock_is_found(&stage, client, &[&lock]);
            }
            lock_is_found(&stage, stage.client(), &[&begin, &local, &lock, &commit]);
        }
    }
}

/// The encoding is chosen by what stands in front of it and is not answered yet.
#[test]
fn nor_does_one_hide_it_that_is_about_to_be_chosen() {
    let stage = Stage::new("encodings_chosen", 1);
    for (encoding, end) in ENDS {
        let set = format!("SET NAMES '{encoding}'");
        let by_function = format!("SELECT set_config('client_encoding', '{encoding}', false)");
        let unsynced = |text: &str| [parse("", text, &[]), bind("", "", &[]), execute("", 0)];
        for choose in [query(&set), extended(b"", &set), query(&by_function)] {
            for lock in [asked(end, HIDDEN), extended(end, HIDDEN)] {
                in_one_write(&stage, stage.client(), &[&choose, &lock]);
            }
        }
        let batch = unsynced(&set).concat();
        in_one_write(&stage, stage.client(), &[&batch, &extended(end, HIDDEN)]);
        for mut client in clients(&stage, encoding) {
            client.query("BEGIN; SET LOCAL client_encoding = 'UTF8'");
            in_one_write(&stage, client, &[&query("COMMIT"), &asked(end, HIDDEN)]);
        }
    }
}

/// As [`lock_is_found`], of what is not waited for. A batch without its end is no unit.
#[track_caller]
fn in_one_write(stage: &Stage, mut owner: WireClient, said: &[&[u8]]) {
    let mut other = stage.client();
    let batch = said.first().is_some_and(|frames| frames[0] == b'P' && !ends_in_sync(frames));
    owner.send(&said.concat()).unwrap();
    for _ in 0..said.len() - usize::from(batch) {
        let reply = owner.read_until_ready().unwrap();
        assert!(reply.iter().all(|message| message.tag != b'E'), "{}", reply[0]);
    }
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND \
                 pid = pg_backend_pid()";
    other.send(&query(locks)).unwrap();
    stage.wait_for_waiters(1);
    drop(owner);
    let reply = other.read_until_ready().unwrap();
    let count = reply.iter().find(|message| message.tag == b'D').unwrap();
    assert_eq!(count.values(), [Some(b"0".to_vec())]);
}

fn ends_in_sync(frames: &[u8]) -> bool {
    frames.ends_with(&sync())
}

/// What every client of a database of another encoding says, in whatever its own is: bytes that are
/// one character in some encodings, several in others and none in the rest.
fn said_to_a_database(encoding: &str, login: Login) -> Script {
    let set = query(&format!("SET client_encoding = '{encoding}'"));
    let mut script = Script::new(login).ask(&set).ask(&query("SHOW client_encoding"));
    for words in [&b"\x95\x5c"[..], "表".as_bytes(), b"\xe9", b"\xc9\xbd", b"plain", b"\xff"] {
        for text in [
            "SELECT '%', length('%')",
            "SET search_path = '%'",
            "SHOW search_path",
            "SELECT convert_to(current_setting('search_path'), getdatabaseencoding())",
            "SET a.b = '%'; SET a.\"%\" = '%'",
            // Whether it is empty or was never used shows who has had the server before.
            "SELECT coalesce(current_setting('a.b', true), '')",
            "SELECT coalesce(current_setting('a.%', true), '')",
        ] {
            script = script.ask(&asked(words, text)).ask(&extended(words, text));
        }
        script = script.ask(&query("SET NAMES 'UTF8'")).ask(&query("SHOW search_path")).ask(&set);
    }
    script
}

#[test]
fn databases_of_other_encodings() {
    for encoding in ["EUC_JP", "SQL_ASCII", "LATIN1", "WIN1251"] {
        let name = format!("encodings_{}", encoding.to_lowercase());
        let mut superuser = superuser(&CLUSTER, "postgres");
        superuser.query(&format!("CREATE ROLE {name} LOGIN"));
        superuser.query(&format!(
            "CREATE DATABASE {name} OWNER {name} ENCODING '{encoding}' TEMPLATE template0"
        ));
        let config = trusting(&CLUSTER, &name)
            .pool("server_choice", "\"never_same\"")
            .user(&name, "", 3)
            .user_setting("min_pool_size", "3");
        let pgweir = Pgweir::start(PROGRAM, |port| config.text(port));
        for of_client in ["SJIS", "UTF8", "LATIN1", "SQL_ASCII", "EUC_JP", "BIG5", "MULE_INTERNAL"]
        {
            let script = said_to_a_database(of_client, login(&name));
            script.assert_same(CLUSTER.address(), pgweir.address());
        }
        assert_sound(&pgweir);
    }
}

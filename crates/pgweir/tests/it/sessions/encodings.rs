//! Clients that speak in another encoding than their server: every byte of a reply is what they get
//! on a connection of their own, however they say which encoding that is.

use std::sync::LazyLock;

use pgweir_testkit::Script;
use pgweir_testkit::frames::{
    bind_with_formats, copy_done, describe_portal, execute, extended, message, query, sync,
};

use super::{CLUSTER, login, same_script, stage};

/// An encoding and words that it has, in it.
struct Words {
    encoding: &'static str,
    bytes: Vec<u8>,
}

/// By each encoding, words with later bytes that are ASCII where it has such: a backslash in `表` of
/// SJIS, in `功` of BIG5 and in `誠` of GBK, digits in `㐀` of GB18030.
const WORDS: [(&str, &str); 11] = [
    ("SJIS", "表能ソゼポ　"),
    ("SHIFT_JIS_2004", "表能ソゼポ　俱"),
    ("BIG5", "功許蓋育"),
    ("GBK", "誠運丄乗"),
    ("GB18030", "誠運㐀€"),
    ("UHC", "똠방각하 펲시"),
    // Of what it has, PostgreSQL takes little more than signs.
    ("JOHAB", "⇒"),
    ("EUC_JP", "表能ソゼポ　"),
    ("LATIN1", "Zoë Ñandú ÿ"),
    ("SQL_ASCII", "表 Zoë"),
    ("UTF8", "表 Zoë 한국어"),
];

/// The words as PostgreSQL writes them.
static SPOKEN: LazyLock<Vec<Words>> = LazyLock::new(|| {
    let mut client = stage::superuser(&CLUSTER, "postgres");
    let spoken = |(encoding, words): (&'static str, &str)| {
        let hex = client.query(&format!("SELECT convert_to('{words}', '{encoding}')")).concat();
        let digits = hex.strip_prefix("\\x").unwrap().as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        Words { encoding, bytes: digits.chunks(2).map(byte).collect() }
    };
    WORDS.into_iter().map(spoken).collect()
});

/// A text in which `%` stands for the words.
fn with(words: &[u8], text: &str) -> Vec<u8> {
    text.split('%').map(str::as_bytes).collect::<Vec<_>>().join(words)
}

/// A Query of any bytes.
fn asked(text: &[u8]) -> Vec<u8> {
    message(b'Q', &[text, b"\0"].concat())
}

/// A Parse of any bytes.
fn parsed(statement: &str, text: &[u8]) -> Vec<u8> {
    message(b'P', &[statement.as_bytes(), b"\0", text, b"\0\0\0"].concat())
}

/// A statement that was parsed is run with one value.
fn bound(statement: &str, value: &[u8]) -> Vec<u8> {
    let bind = bind_with_formats("", statement, &[], &[Some(value)], &[]);
    [bind, describe_portal(""), execute("", 0), sync()].concat()
}

/// Statements that contain the words everywhere where there may be some, or ask for them.
const TEXTS: [&str; 16] = [
    "SHOW client_encoding",
    "SELECT '%' AS \"%\", length('%'), convert_to('%', 'UTF8')",
    "SELECT E'%', $$%$$, $t$%$t$, U&'%'",
    "SELECT '%'; SELECT '%' -- %\n; /* % */ SELECT 2",
    "SELECT %",
    "SELECT '%'::int",
    "DO $$ BEGIN RAISE NOTICE '%'; END $$",
    "COPY (SELECT '%', '\\') TO STDOUT",
    "SET app.words = '%'",
    "SHOW app.words",
    "SELECT convert_to(current_setting('app.words'), 'UTF8')",
    "SET search_path = \"%\", public",
    "SHOW search_path",
    "SET application_name = '%'",
    "SELECT chr(8364), chr(34920)",
    "RESET app.words; RESET search_path; RESET application_name",
];

/// What is no character in most encodings.
const INVALID: [&[u8]; 4] = [b"\x81", b"\xff\xff", b"\x95\x5c", b"\x81'"];

/// A conversation in the encoding of the words.
fn speak(mut script: Script, words: &[u8]) -> Script {
    for text in TEXTS {
        script = script.ask(&asked(&with(words, text)));
    }
    for text in TEXTS.iter().filter(|text| !text.contains(';')) {
        let run = [describe_portal(""), execute("", 0), sync()].concat();
        let bind = bind_with_formats("", "", &[], &[], &[]);
        script = script.ask(&[parsed("", &with(words, text)), bind, run].concat());
    }
    script = script.ask(&[parsed("s", &with(words, "SELECT '%', $1::text")), sync()].concat());
    for _ in 0..2 {
        script = script.ask(&bound("s", words)).ask(&query("SELECT 'between'"));
    }
    for invalid in INVALID {
        script = script
            .ask(&asked(&with(invalid, "SELECT '%'")))
            .ask(&[parsed("", &with(invalid, "SELECT '%'")), sync()].concat())
            .ask(&bound("s", invalid));
    }
    let row = message(b'd', &with(words, "100\t%\n"));
    script
        .ask(&query("BEGIN"))
        .ask(&[query("COPY kept FROM STDIN"), row, copy_done()].concat())
        .ask(&asked(&with(words, "SELECT * FROM kept WHERE b = '%' OR a = 100")))
        .ask(&query("ROLLBACK"))
}

/// The statements by which an encoding is chosen.
fn choices(encoding: &str) -> [String; 4] {
    [
        format!("SET client_encoding = '{encoding}'"),
        format!("SET NAMES '{}'", encoding.to_lowercase()),
        format!("SELECT set_config('client_encoding', '{encoding}', false)"),
        format!("BEGIN; SET LOCAL client_encoding = UTF8; SET client_encoding TO {encoding}; END"),
    ]
}

#[test]
fn chosen_at_login() {
    for Words { encoding, bytes } in &*SPOKEN {
        let options = format!("-c client_encoding={encoding}");
        same_script(&speak(Script::new(login().parameter("options", &options)), bytes));
        let login = login().parameter("client_encoding", encoding);
        let reset = query("RESET ALL");
        same_script(&speak(Script::new(login), bytes).ask(&reset).ask(&asked(bytes)));
    }
}

#[test]
fn chosen_by_a_statement() {
    for Words { encoding, bytes } in &*SPOKEN {
        for choice in choices(encoding) {
            same_script(&speak(Script::new(login()).ask(&query(&choice)), bytes));
        }
        let chosen = Script::new(login()).ask(&extended(&choices(encoding)[0], &[]));
        same_script(&speak(chosen, bytes).ask(&query("DISCARD ALL")).ask(&asked(bytes)));
    }
}

/// In one string nothing is read in the new encoding, in one batch what stands behind is.
#[test]
fn chosen_in_the_same_unit() {
    let run = [bind_with_formats("", "", &[], &[], &[]), execute("", 0)].concat();
    for Words { encoding, bytes } in &*SPOKEN {
        for choice in &choices(encoding)[..3] {
            let [string, alone] = [format!("{choice}; SELECT '%'"), "SELECT E'%', '%'".to_owned()];
            let [string, alone] = [string, alone].map(|text| with(bytes, &text));
            let batch =
                [parsed("", choice.as_bytes()), run.clone(), parsed("", &alone), run.clone()];
            let pipeline = [query(choice), asked(&alone), asked(&alone)].concat();
            let script = Script::new(login())
                .ask(&asked(&string))
                .ask(&asked(&alone))
                .ask(&query("SET client_encoding = LATIN1"))
                .ask(&[batch.concat(), sync()].concat())
                .ask(&asked(&alone))
                .ask(&query("RESET client_encoding"))
                .send(&pipeline)
                .read_until_ready()
                .read_until_ready()
                .read_until_ready();
            same_script(&script);
        }
    }
}

/// A client takes one encoding after the other, and takes some back.
#[test]
fn chosen_again_and_again() {
    let script = SPOKEN.iter().fold(Script::new(login()), |script, words| {
        let Words { encoding, bytes } = words;
        let select = asked(&with(bytes, "SELECT E'%', '%'"));
        script
            .ask(&query(&format!("SET NAMES '{encoding}'")))
            .ask(&select)
            .ask(&[parsed(encoding, &with(bytes, "SELECT '%', $1::text")), sync()].concat())
            .ask(&bound(encoding, bytes))
            .ask(&query("BEGIN; SET LOCAL NAMES 'UTF8'"))
            .ask(&query("ROLLBACK"))
            .ask(&query("BEGIN; SET NAMES 'LATIN1'"))
            .ask(&bound(encoding, bytes))
            .ask(&query("ROLLBACK"))
            .ask(&select)
            .ask(&bound(encoding, bytes))
    });
    let again =
        SPOKEN.iter().fold(script, |script, words| script.ask(&bound(words.encoding, b"x")));
    same_script(&again);
}

/// What is no encoding, or one that nothing converts to.
#[test]
fn chosen_wrongly() {
    for encoding in ["nonsense", "MULE_INTERNAL", "EUC_TW", "", "UTF-8", "utf8 ", "Shift-JIS"] {
        let set = query(&format!("SET client_encoding = '{encoding}'"));
        same_script(&Script::new(login()).ask(&set).ask(&query("SHOW client_encoding")));
    }
}

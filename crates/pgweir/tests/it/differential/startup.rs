//! From the first byte of a connection to its first ReadyForQuery.

use pgweir_testkit::Script;
use pgweir_testkit::frames::{self, PROTOCOL_3_0, PROTOCOL_3_2, query};

use super::{Difference, NAME, POOLERS, login, same, same_but, script};
use crate::stage::CLUSTER;

fn startup(protocol: u32) -> Vec<u8> {
    frames::startup(protocol, &[("user", NAME), ("database", NAME)])
}

#[test]
fn nothing_but_a_name() {
    same(&script().ask(&query("SELECT 1")).send(&frames::terminate()).read_to_end());
}

#[test]
fn parameters() {
    let login = login()
        .parameter("application_name", "a+b 'c' \"d\" \\")
        .parameter("TimeZone", "Asia/Kathmandu")
        .parameter("DateStyle", "German, DMY")
        .parameter("client_encoding", "LATIN1")
        .parameter("extra_float_digits", "2")
        .parameter("search_path", "pg_catalog, \"$user\", public");
    same(
        &Script::new(login)
            .ask(&query("SHOW application_name; SHOW search_path; SHOW extra_float_digits"))
            .ask(&query("SELECT '2026-02-01 12:00Z'::timestamptz, U&'\\00e4'")),
    );
}

#[test]
fn options() {
    let options = "-c search_path=pg_catalog,\\ public  -c work_mem=3MB --geqo=off \
                   -cstatement-timeout=5min -c application_name=in\\ options -c a.b=c\\\\d";
    let script = |login| {
        Script::new(login)
            .ask(&query("SHOW search_path; SHOW work_mem; SHOW geqo; SHOW statement_timeout"))
            .ask(&query("SHOW a.b; SHOW application_name"))
    };
    same(&script(login().parameter("options", options)));
    same(&script(login().parameter("application_name", "own").parameter("options", options)));
}

/// Each has a letter, and some take an argument.
#[test]
fn switches() {
    let shown = "SELECT name, setting FROM pg_settings WHERE name IN ('work_mem', 'DateStyle', \
                 'ignore_system_indexes', 'post_auth_delay') OR name LIKE 'enable\\_%' ORDER BY 1";
    for options in [
        "-S 100",
        "-eS100",
        "-e -f i -fs -f o -f b -f tid -f n -f m -f h",
        "-c work_mem=1MB -c work_mem=2MB -S 77",
        "-nbjTE -C x -D x -r x -v 3",
        "-P -W 0",
        "-nc work_mem=3MB -n-enable-sort=off",
        "-S 200 --",
    ] {
        same(&Script::new(login().parameter("options", options)).ask(&query(shown)));
    }
    for options in [
        "-B 100",
        "-F",
        "-h x",
        "-i",
        "-k x",
        "-l",
        "-N 5",
        "-O",
        "-p 5",
        "-s",
        "-d 3",
        "-d 0",
        "-d x",
        "-t pa",
        "-t pl",
        "-t e",
        "-t x",
        "-tp",
        "-f",
        "-f z",
        "-fz",
        "-S",
        "-S x",
        "-W x",
        "-A",
        "-xe",
        "-ex",
        "-n -xe -e",
        "-e word -xe",
        "word -e",
        "word -x",
        "word -- -e",
        "a b -e",
        "-e -- word",
        "-e -",
        "-n-",
        "-n-work_mem",
        "-nc",
        "-nc work_mem",
    ] {
        let script = Script::new(login().parameter("options", options));
        same_but(&[Difference::SourcePlace], &script);
    }
}

#[test]
fn values_that_are_refused() {
    for (name, value) in [
        ("TimeZone", "Nowhere/Land"),
        ("work_mem", "a lot"),
        ("client_encoding", "EBCDIC"),
        ("no_such_parameter", "1"),
        ("options", "-c work_mem=a\\ lot"),
        ("options", "-c no_such_parameter=1"),
        ("options", "-c shared_buffers=1GB"),
        ("options", "-c no_such_parameter=1 -c work_mem=1"),
        ("options", "-c client_min_messages=loud"),
        ("options", "--work-mem=1"),
        ("options", "-x"),
        ("options", "-c work_mem=1MB -x"),
        ("options", "-c"),
        ("options", "-c work_mem"),
        ("options", "-cwork_mem"),
        ("options", "--work_mem"),
        ("options", "--Work-mem -x"),
        ("options", "word"),
        ("options", "-"),
        ("no.such-parameter", "1"),
        ("no such.parameter", "1"),
        ("no..parameter", "1"),
        ("1.parameter", "1"),
        ("work_mem", "1kB"),
        ("work_mem", "1 parsec"),
        ("statement_timeout", "-5"),
        ("statement_timeout", "1 parsec"),
        ("extra_float_digits", "9"),
        ("seq_page_cost", "-1"),
        ("client_min_messages", "loud"),
        ("bytea_output", "x"),
        ("default_transaction_isolation", "none"),
        ("DateStyle", "ISO, nonsense"),
        ("DateStyle", "ISO, German"),
        ("search_path", "a,,b"),
        ("geqo", "maybe"),
        ("role", "nobody_knows"),
        ("default_tablespace", "nowhere"),
        ("default_table_access_method", "none"),
        ("default_text_search_config", "none"),
        ("lc_messages", "xx_XX"),
        ("lc_monetary", "xx_XX"),
        ("log_timezone", "UTC"),
        ("timezone_abbreviations", "Nowhere"),
        ("log_statement", "all"),
        ("session_replication_role", "replica"),
        ("wal_level", "minimal"),
        ("server_version", "1"),
        ("transaction_isolation", "none"),
        ("session_preload_libraries", "nowhere"),
        ("ignore_system_indexes", "perhaps"),
        ("post_auth_delay", "1 parsec"),
        ("post_auth_delay", "-1"),
        ("log_connections", "on"),
        ("is_superuser", "on"),
        ("in_hot_standby", "on"),
        ("max_stack_depth", "100GB"),
        ("debug_assertions", "off"),
    ] {
        let script = Script::new(login().parameter(name, value));
        same_but(&[Difference::SourcePlace], &script);
    }
}

#[test]
fn notices_about_parameters() {
    let longest = "n".repeat(9_937);
    let login = login().parameter("application_name", &longest);
    assert_eq!(login.startup_message().len(), 10_004, "the longest packet that PostgreSQL reads");
    same_but(&[Difference::LoginNotices], &Script::new(login));
}

#[test]
fn newer_protocols() {
    same(&Script::new(login().protocol(PROTOCOL_3_0 | 1)));
    same(&Script::new(login().parameter("_pq_.one", "1").parameter("_pq_.two", "")));
    same(&Script::new(login().protocol(PROTOCOL_3_0 | 1).parameter("_pq_.one", "1")));
    for newer in [PROTOCOL_3_2, PROTOCOL_3_2 + 1, PROTOCOL_3_0 | 9_999] {
        let script = Script::new(login().protocol(newer)).ask(&query("SELECT 1"));
        same_but(&[Difference::Protocol32], &script);
        let script = Script::new(login().protocol(newer).parameter("_pq_.one", "1"));
        same_but(&[Difference::Protocol32], &script);
    }
}

#[test]
fn what_protocol_3_2_is_answered_with() {
    let pooled = |login| Script::new(login).run(POOLERS.transaction.address());
    let is_negotiation = |line: &&String| line.starts_with("NegotiateProtocolVersion");
    let transcript = pooled(login().protocol(PROTOCOL_3_2));
    assert!(transcript.contains(&"BackendKeyData pid=<pid> secret=<32 bytes>".to_owned()));
    assert_eq!(transcript.iter().find(is_negotiation), None);
    let transcript = pooled(login().protocol(PROTOCOL_3_2 + 1).parameter("_pq_.one", "1"));
    let negotiation = "NegotiateProtocolVersion newest=0x30002 \"_pq_.one\"";
    assert_eq!(transcript.iter().find(is_negotiation).unwrap(), negotiation);
}

#[test]
fn requests_for_encryption() {
    let ready = |script: Script| script.send(&startup(PROTOCOL_3_0)).read_until_ready();
    same(&ready(Script::raw().send(&frames::ssl_request()).read_byte()));
    let gssenc = Script::raw().send(&frames::gssenc_request()).read_byte();
    // A PostgreSQL that was built without GSSAPI refuses it too.
    let spoken = gssenc.run(CLUSTER.address()) == ["G"];
    same_but(if spoken { &[Difference::Gssapi] } else { &[] }, &gssenc);
}

#[test]
fn a_second_request_for_tls() {
    let ask = frames::ssl_request();
    let twice = Script::raw().send(&ask).read_byte().send(&ask).read_to_end();
    let answer = twice.run(POOLERS.transaction.address());
    let direct = twice.run(CLUSTER.address());
    // The versions that are spoken differ, and so do the words; what happens does not.
    for transcript in [&answer, &direct] {
        let refusal = transcript.iter().find(|line| line.contains("ErrorResponse"));
        assert!(refusal.is_some_and(|line| line.contains("0A000")), "{transcript:?}");
    }
}

#[test]
fn a_startup_without_a_user() {
    let packet = frames::startup(PROTOCOL_3_0, &[("database", NAME)]);
    same_but(&[Difference::SourcePlace], &Script::raw().send(&packet).read_to_end());
}

//! The client and the scripts, against a PostgreSQL that all tests here share.
#![expect(clippy::unwrap_used, reason = "in a test's helper, too, it is the test that fails")]

use std::{sync::LazyLock, time::Duration};

use pgweir_testkit::{
    Cluster, Login, LoginError, Script, WireClient, assert_same_transcript, eventually,
    frames::{self, PROTOCOL_3_2, extended, query},
    python,
};

static CLUSTER: LazyLock<Cluster> = LazyLock::new(Cluster::start);

fn client() -> WireClient {
    WireClient::login(CLUSTER.address(), &Login::new("postgres")).unwrap()
}

fn script() -> Script {
    Script::new(Login::new("postgres").parameter("application_name", "script"))
}

/// The transcript after the login's ReadyForQuery.
fn after_login(transcript: &[String]) -> &[String] {
    let ready = transcript.iter().position(|line| line.starts_with("ReadyForQuery")).unwrap();
    &transcript[ready + 1..]
}

#[test]
fn the_login_reports_parameters_and_a_key() {
    let login = Login::new("postgres").parameter("application_name", "kit").database("template1");
    let mut client = WireClient::login(CLUSTER.address(), &login).unwrap();
    assert_eq!(client.parameter("application_name").as_deref(), Some("kit"));
    assert_eq!(client.parameter("no_such"), None);
    let key = client.cancel_key().unwrap();
    assert_eq!(key.secret.len(), 4);
    assert_eq!(client.query("SELECT pg_backend_pid()"), [key.pid.to_string()]);
    assert_eq!(client.query("SELECT current_database()"), ["template1"]);
}

#[test]
fn an_unknown_database_is_refused() {
    let login = Login::new("postgres").database("no_such");
    let refused = WireClient::login(CLUSTER.address(), &login);
    let Err(LoginError::Refused(error)) = refused else { panic!("{refused:?}") };
    assert_eq!(error.sqlstate(), "3D000");
}

#[test]
fn a_password_is_not_shown() {
    let shown = format!("{:?}", Login::new("alice").password("opensesame"));
    assert!(shown.contains("alice") && !shown.contains("opensesame"));
}

#[test]
fn an_error_of_a_query_is_a_value() {
    let mut client = client();
    let error = client.try_query("SELECT 1/0").unwrap_err();
    assert_eq!((error.sqlstate().as_str(), error.tag), ("22012", b'E'));
    assert_eq!(client.query("SELECT 1, NULL"), ["1|"]);
    assert_eq!(client.try_query("SELECT NULL").unwrap(), [[None]]);
}

#[test]
fn a_read_that_gets_nothing_times_out() {
    let mut client = client();
    client.set_patience(Duration::from_millis(1));
    assert_eq!(client.read().unwrap_err().kind(), std::io::ErrorKind::TimedOut);
}

#[test]
fn a_cancel_hits_its_own_statement() {
    let mut client = client();
    let key = client.cancel_key().unwrap();
    client.send(&query("SELECT pg_sleep(600)")).unwrap();
    let sleeping = format!(
        "SELECT 1 FROM pg_stat_activity WHERE pid = {} AND query LIKE '%pg_sleep%'",
        key.pid
    );
    eventually("the statement to run", || CLUSTER.psql(&sleeping) == "1");
    key.cancel(CLUSTER.address()).unwrap();
    let reply = client.read_until_ready().unwrap();
    assert!(reply.iter().any(|message| message.tag == b'E' && message.sqlstate() == "57014"));
}

#[test]
fn a_half_closed_client_still_reads() {
    let mut client = client();
    client.send(&query("SELECT 'late'")).unwrap();
    client.half_close().unwrap();
    let rest = client.read_to_end().unwrap();
    assert!(rest.iter().any(|message| message.to_string() == "DataRow \"late\""));
}

#[test]
fn a_reset_ends_the_backend() {
    let client = client();
    let pid = client.cancel_key().unwrap().pid;
    client.reset().unwrap();
    let gone = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}");
    eventually("the backend to end", || CLUSTER.psql(&gone) == "0");
    eventually("the reset to be logged", || {
        CLUSTER
            .log()
            .lines()
            .any(|line| line.contains(&format!("[{pid}]")) && line.contains("reset by peer"))
    });
}

#[test]
fn a_request_for_encryption_is_answered_with_a_byte() {
    let transcript = Script::raw()
        .send(&frames::ssl_request())
        .read_byte()
        .send(&frames::startup(PROTOCOL_3_2, &[("user", "postgres"), ("_pq_.no_such", "1")]))
        .read_until_ready()
        .run(CLUSTER.address());
    let negotiation = "NegotiateProtocolVersion newest=0x30000 \"_pq_.no_such\"";
    assert_eq!(transcript[..3], ["N", negotiation, "Authentication 0 \"\""]);
    assert!(transcript.contains(&"BackendKeyData pid=<pid> secret=<4 bytes>".to_owned()));
    assert_eq!(transcript.last().unwrap(), "ReadyForQuery I");
}

#[test]
fn a_transcript_shows_every_message() {
    let copy_in = [query("COPY kept FROM STDIN"), frames::copy_data(b"7"), frames::copy_done()];
    let transcript = script()
        .ask(&query("LISTEN n; NOTIFY n, 'x'"))
        .ask(&query("CREATE TEMP TABLE kept (a int)"))
        .ask(&copy_in.concat())
        .ask(&query("COPY kept TO STDOUT"))
        .ask(&extended("SELECT $1::text AS t, $2::int AS i", &[Some("a\u{1}"), None]))
        .ask(&query("BEGIN; SELECT FROM kept; DO $$ BEGIN RAISE WARNING 'w'; END $$"))
        .ask(&query("SELECT 1 FROM no_such"))
        .ask(&query(""))
        .run(CLUSTER.address());
    let shown: Vec<_> = after_login(&transcript).iter().map(|line| brief(line)).collect();
    assert_eq!(
        shown,
        [
            "CommandComplete \"LISTEN\"",
            "CommandComplete \"NOTIFY\"",
            "NotificationResponse pid=<pid> \"n\" \"x\"",
            "ReadyForQuery I",
            "CommandComplete \"CREATE TABLE\"",
            "ReadyForQuery I",
            "CopyInResponse format=0 0",
            "CommandComplete \"COPY 1\"",
            "ReadyForQuery I",
            "CopyOutResponse format=0 0",
            "CopyData \"7\\n\"",
            "CopyDone",
            "CommandComplete \"COPY 1\"",
            "ReadyForQuery I",
            "ParseComplete",
            "BindComplete",
            "RowDescription \"t\"[0.0 type=25/-1/-1 format=0] \"i\"[0.0 type=23/4/-1 format=0]",
            "DataRow \"a\\x01\" NULL",
            "CommandComplete \"SELECT 1\"",
            "ReadyForQuery I",
            "CommandComplete \"BEGIN\"",
            "RowDescription",
            "DataRow",
            "CommandComplete \"SELECT 1\"",
            "NoticeResponse S=\"WARNING\" V=\"WARNING\" C=\"01000\" M=\"w\"",
            "CommandComplete \"DO\"",
            "ReadyForQuery T",
            "ErrorResponse S=\"ERROR\" V=\"ERROR\" C=\"42P01\" \
             M=\"relation \\\"no_such\\\" does not exist\" P=\"15\"",
            "ReadyForQuery E",
            "EmptyQueryResponse",
            "ReadyForQuery E",
        ]
    );
}

/// A line without the fields of an error that tell where in PostgreSQL's source it arose.
fn brief(line: &str) -> &str {
    let end = [" W=\"", " F=\""].into_iter().filter_map(|field| line.find(field)).min();
    &line[..end.unwrap_or(line.len())]
}

#[test]
fn splitting_what_is_sent_changes_nothing() {
    let script = script()
        .ask(&[query("SELECT 1"), extended("SELECT $1::int", &[Some("7")])].concat())
        .read_until_ready();
    let whole = script.run(CLUSTER.address());
    for chunk in [1, 2, 3, 5, 7] {
        assert_same_transcript(&whole, &script.run_split(CLUSTER.address(), chunk));
    }
    script.assert_same(CLUSTER.address(), CLUSTER.address());
}

#[test]
fn the_end_of_a_connection_is_a_line() {
    let transcript = script()
        .send(&frames::terminate())
        .read_to_end()
        .send(&query("SELECT 1"))
        .run(CLUSTER.address());
    assert_eq!(after_login(&transcript), ["(connection ended)"]);
}

#[test]
fn a_refused_login_is_a_transcript() {
    let transcript = Script::new(Login::new("nobody_here")).run(CLUSTER.address());
    let [line] = &transcript[..] else { panic!("{transcript:?}") };
    assert!(line.starts_with("ErrorResponse S=\"FATAL\" V=\"FATAL\" C=\"28000\""), "{line}");
}

#[test]
#[should_panic(expected = "-DataRow \"1\"\n+DataRow \"2\"")]
fn a_difference_is_shown_as_a_diff() {
    let run = |sql| script().ask(&query(sql)).run(CLUSTER.address());
    assert_same_transcript(&run("SELECT 1 AS x"), &run("SELECT 2 AS x"));
}

#[test]
fn psycopg_talks_to_the_cluster() {
    let program = format!(
        "import psycopg\n\
         with psycopg.connect(host='127.0.0.1', port={}, user='postgres') as connection:\n\
         \x20   print(connection.execute('SELECT %s::int + 1', [41]).fetchone()[0])",
        CLUSTER.port(),
    );
    let output = python().args(["-c", &program]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "42\n", "{output:?}");
}

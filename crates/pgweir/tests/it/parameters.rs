//! Clients know how their servers are set, also when that changes behind their backs.

use pgweir_testkit::frames::query;
use pgweir_testkit::{Cluster, PoolerConfig, WireClient, eventually};

use crate::stage::Stage;

/// The reply to a query: what was reported in front of the row, the row, and what was reported
/// behind it.
fn reply(client: &mut WireClient, sql: &str) -> (Vec<String>, String, Vec<String>) {
    client.send(&query(sql)).unwrap();
    let messages = client.read_until_ready().unwrap();
    let row = messages.iter().position(|message| message.tag == b'D').unwrap();
    let value = messages[row].values().remove(0).unwrap();
    let reports = |messages: &[pgweir_testkit::Message]| {
        let reports = messages.iter().filter(|message| message.tag == b'S');
        reports.map(|report| report.to_string()).collect()
    };
    let value = String::from_utf8(value).unwrap();
    (reports(&messages[..row]), value, reports(&messages[row..]))
}

#[track_caller]
fn told_before(client: &mut WireClient, sql: &str, reports: &[&str], row: &str) {
    let none = Vec::new();
    let reports = reports.iter().map(|report| format!("ParameterStatus {report}")).collect();
    assert_eq!(reply(client, sql), (reports, row.to_owned(), none));
}

/// PostgreSQL reports a configuration that it has read again behind the next query. A pooled server
/// says so once, to whoever runs that query.
#[test]
fn a_new_configuration_is_told_to_every_client() {
    let cluster = Cluster::builder().setting("timezone", "UTC").start();
    let stage = Stage::on(&cluster, "reload", 1, |config| config);
    let mut alice = stage.client();
    let mut bob = stage.client();
    let mut named = stage.client_as(&stage.login().parameter("application_name", "it"));
    for client in [&alice, &bob, &named] {
        assert_eq!(client.parameter("TimeZone").as_deref(), Some("UTC"));
    }
    stage.ask("ALTER SYSTEM SET timezone = 'Asia/Tokyo'");
    stage.ask("SELECT pg_reload_conf()");
    let mut reports = Vec::new();
    eventually("the server to read its configuration", || {
        let (before, zone, behind) = reply(&mut alice, "SHOW TimeZone");
        reports.extend(before);
        reports.extend(behind);
        zone == "Asia/Tokyo"
    });
    let report = r#""TimeZone" "Asia/Tokyo""#;
    assert_eq!(reports, [format!("ParameterStatus {report}")]);
    let mut carol = stage.client();
    assert_eq!(carol.parameter("TimeZone").as_deref(), Some("Asia/Tokyo"));
    for client in [&mut bob, &mut named] {
        told_before(client, "SHOW TimeZone", &[report], "Asia/Tokyo");
    }
    for client in [&mut alice, &mut bob, &mut carol, &mut named] {
        told_before(client, "SHOW TimeZone", &[], "Asia/Tokyo");
    }
    let dora = stage.client_as(&stage.login().parameter("application_name", "it"));
    assert_eq!(dora.parameter("TimeZone").as_deref(), Some("Asia/Tokyo"));
}

/// ALTER DATABASE counts for new connections: for a while a client goes from servers that are set
/// one way to servers that are set another, and back.
#[test]
fn a_client_knows_how_the_server_is_set_that_it_is_on() {
    let stage = Stage::alone("alter_database", 2);
    let mut alice = stage.client();
    let mut bob = stage.client();
    alice.query("BEGIN");
    stage.ask("ALTER DATABASE alter_database SET datestyle = 'SQL, DMY'");
    let date = "SELECT date '2001-02-03'";
    told_before(&mut bob, date, &[r#""DateStyle" "SQL, DMY""#], "03/02/2001");
    told_before(&mut bob, date, &[], "03/02/2001");
    alice.query("COMMIT");
    // The server that came back last is lent first.
    told_before(&mut bob, date, &[r#""DateStyle" "ISO, MDY""#], "2001-02-03");
    assert_eq!(stage.backends("true"), 2);
    let carol = stage.client();
    assert!(carol.parameter("DateStyle").is_some());
}

/// Where servers keep their own name, what a client calls itself by SET is true for as long as it
/// is told so.
#[test]
fn a_name_that_goes_with_its_transaction() {
    let own = |config: PoolerConfig| config.pool("application_name", "\"pool\"");
    let stage = Stage::with("own_name", 1, own);
    let mut alice = stage.client_as(&stage.login().parameter("application_name", "alice"));
    let mut bob = stage.client();
    let seen = "SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()";
    let set =
        ["SET application_name = 'mine'", "SELECT set_config('application_name', 'mine', false)"];
    let (mine, pools) = (r#""application_name" "mine""#, r#""application_name" """#);
    for set in set {
        alice.query("BEGIN");
        alice.send(&query(set)).unwrap();
        let told = alice.read_until_ready().unwrap();
        assert!(
            told.iter().any(|message| message.to_string() == format!("ParameterStatus {mine}"))
        );
        told_before(&mut alice, seen, &[], "mine");
        alice.query("COMMIT");
        told_before(&mut bob, seen, &[], "");
        told_before(&mut alice, seen, &[pools], "");
        // What is rolled back was told, and is told again.
        alice.query("BEGIN");
        alice.query(set);
        alice.send(&query("ROLLBACK")).unwrap();
        let told = alice.read_until_ready().unwrap();
        assert!(
            told.iter().any(|message| message.to_string() == format!("ParameterStatus {pools}"))
        );
        // And behind a RESET there is no name to go back to.
        alice.query("BEGIN");
        alice.query(set);
        alice.send(&query("RESET ALL")).unwrap();
        let told = alice.read_until_ready().unwrap();
        assert!(
            told.iter().any(|message| message.to_string() == format!("ParameterStatus {pools}"))
        );
        told_before(&mut alice, seen, &[], "");
        alice.query("COMMIT");
        told_before(&mut alice, seen, &[], "");
    }
}

//! How long a client keeps its server, and what it leaves there.

use pgweir_testkit::PoolerConfig;
use pgweir_testkit::frames::query;

use crate::stage::{CLUSTER, Stage, superuser};

const STATE: &str = "SELECT current_setting('work_mem'), to_regclass('pg_temp.t'), \
    (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_listening_channels()), \
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())";

#[test]
fn a_session_leaves_nothing_behind() {
    let stage = Stage::session("mode_session", 1);
    let mut first = stage.client();
    first.query(
        "SET work_mem = '77MB'; CREATE TEMP TABLE t (a int); PREPARE p AS SELECT 1; LISTEN c; \
         SELECT pg_advisory_lock(1)",
    );
    assert_eq!(first.query(STATE), ["77MB|t|1|1|1"]);
    let pid = first.query("SELECT pg_backend_pid()");

    let mut second = stage.client();
    second.send(&query(STATE)).unwrap();
    stage.wait_for_waiters(1);
    drop(first);
    let reply = second.read_until_ready().unwrap();
    assert_eq!(reply[1].to_string(), "DataRow \"4MB\" NULL \"0\" \"0\" \"0\"");
    assert_eq!(second.query("SELECT pg_backend_pid()"), pid, "the same server, cleaned");
}

/// What the text of its statements shows is removed behind every session, what a function has done
/// unseen by the reset query.
#[test]
fn a_pool_says_how_sessions_are_cleaned() {
    for (n, (reset_query, unseen)) in
        [("DISCARD ALL", "4MB"), ("SELECT 1; RESET ALL", "4MB"), ("", "77MB")].iter().enumerate()
    {
        let stage = Stage::with(&format!("mode_reset_{n}"), 1, |config| {
            config
                .pool("pool_mode", "\"session\"")
                .pool("server_reset_query", &format!("\"{reset_query}\""))
        });
        stage.client().query(
            "CREATE FUNCTION hide() RETURNS int LANGUAGE sql AS \
             $$ SELECT length(set_config('work_mem', '77MB', false)) $$",
        );
        let mut first = stage.client();
        let pid = first.query("SELECT pg_backend_pid(), hide() > 0");
        drop(first);
        let mut second = stage.client();
        assert_eq!(second.query("SHOW work_mem"), [*unseen], "{reset_query:?}");
        second.query("SET work_mem = '99MB'");
        drop(second);
        let mut third = stage.client();
        assert_eq!(third.query("SHOW work_mem"), ["4MB"], "{reset_query:?}");
        assert_eq!(third.query("SELECT pg_backend_pid(), true"), pid, "the same server");
    }
}

#[test]
fn a_server_that_cannot_be_cleaned_is_not_used_again() {
    let stage = Stage::with("mode_reset_fails", 1, |config| {
        config.pool("pool_mode", "\"session\"").pool("server_reset_query", "\"RESET ALL, CLOSE\"")
    });
    let pid = stage.client().query("SELECT pg_backend_pid()");
    assert_ne!(stage.client().query("SELECT pg_backend_pid()"), pid);
}

#[test]
fn a_session_keeps_its_server() {
    let stage = Stage::session("mode_session_keeps", 2);
    let (mut one, mut other) = (stage.client(), stage.client());
    let pids = [one.query("SELECT pg_backend_pid()"), other.query("SELECT pg_backend_pid()")];
    assert_ne!(pids[0], pids[1]);
    for _ in 0..5 {
        assert_eq!(one.query("SELECT pg_backend_pid()"), pids[0]);
        assert_eq!(other.query("SELECT pg_backend_pid()"), pids[1]);
    }
}

#[test]
fn transactions_share_a_server() {
    let stage = Stage::new("mode_transaction", 1);
    let mut clients: Vec<_> = (0..5).map(|_| stage.client()).collect();
    let pid = clients[0].query("SELECT pg_backend_pid()");
    for _ in 0..3 {
        for client in &mut clients {
            assert_eq!(client.query("SELECT pg_backend_pid()"), pid);
            client.query("BEGIN");
            assert_eq!(client.query("SELECT pg_backend_pid()"), pid);
            client.query("COMMIT");
        }
    }
}

/// PostgreSQL keeps the name of a custom setting that it has heard once.
#[test]
fn a_custom_setting_stays_known_as_an_empty_text() {
    let stage = Stage::new("mode_custom", 1);
    let (mut one, mut other) = (stage.client(), stage.client());
    let (set, show) = (
        "BEGIN; SET LOCAL app.tenant = 'one'; COMMIT",
        "SELECT current_setting('app.tenant', true)",
    );
    other.send(&query(show)).unwrap();
    assert_eq!(other.read_until_ready().unwrap()[1].to_string(), "DataRow NULL");
    one.query(set);
    let mut direct = superuser(&CLUSTER, "mode_custom");
    direct.query(set);
    for client in [&mut other, &mut direct] {
        client.send(&query(show)).unwrap();
        assert_eq!(client.read_until_ready().unwrap()[1].to_string(), "DataRow \"\"");
    }
}

#[test]
fn statement_mode_has_no_transactions() {
    let stage =
        Stage::with("mode_statement", 1, |config| config.pool("pool_mode", "\"statement\""));
    stage.ask("CREATE TABLE t (a int); ALTER TABLE t OWNER TO mode_statement");
    let mut client = stage.client();
    client.query("INSERT INTO t VALUES (1)");
    client.send(&query("BEGIN; INSERT INTO t VALUES (2)")).unwrap();
    let reply = client.read_to_end().unwrap();
    let error = reply.last().unwrap();
    assert_eq!((error.tag, error.sqlstate().as_str()), (b'E', "0A000"));
    assert_eq!(stage.client().query("SELECT a FROM t"), ["1"]);
}

#[test]
fn everybody_has_the_settings_of_its_own_login() {
    let stage = Stage::new("mode_settings", 1);
    let zones = ["Asia/Kathmandu", "America/New_York", "UTC"];
    let mut clients = zones.map(|zone| {
        let login = stage.login().parameter("TimeZone", zone);
        stage.client_as(&login.parameter("application_name", &format!("in {zone}")))
    });
    let mut plain = stage.client();
    for _ in 0..20 {
        for (client, zone) in clients.iter_mut().zip(zones) {
            let own = "SELECT current_setting('TimeZone'), current_setting('application_name')";
            assert_eq!(client.query(own), [format!("{zone}|in {zone}")]);
        }
        assert_eq!(plain.query("SHOW application_name"), [""]);
    }
    assert_eq!(stage.backends("true"), 1);
}

/// A pool that keeps its own name: what a client calls itself costs nobody a statement.
#[test]
fn servers_that_keep_their_own_name() {
    let own = |config: PoolerConfig| config.pool("application_name", "\"pool\"");
    let stage = Stage::with("mode_own_name", 1, own);
    let names = ["one", "two", "it's\\\u{1}"];
    let mut clients =
        names.map(|name| stage.client_as(&stage.login().parameter("application_name", name)));
    let seen = "SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()";
    let queries = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%set_config%' \
                   AND pid = pg_backend_pid()";
    for client in clients.iter_mut().chain([&mut stage.client()]) {
        assert_eq!(client.parameter("application_name").as_deref(), Some(""));
        assert_eq!(client.query(seen), [""]);
    }
    assert_eq!(stage.ask(&format!("{queries} AND usename = '{}'", stage.name)), ["0"]);
    let shown = stage.console("SHOW CLIENTS");
    assert!(shown.iter().any(|row| row.contains("|two|")), "{shown:?}");
    assert_eq!(stage.backends("true"), 1);
}

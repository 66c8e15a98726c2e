//! Who shares servers: what a client says of that itself, and what the console does.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pgweir_testkit::frames::extended;
use pgweir_testkit::{Login, WireClient, eventually};

use crate::stage::Stage;

/// A stage whose servers are shared, and one function that tells whether the server is that it is
/// called on.
fn stage(name: &str, pool_size: u32, pipelining: &str) -> Stage {
    let stage = Stage::with(name, pool_size, |config| {
        let config = config.general("pipelining", &format!("\"{pipelining}\""));
        config.pool("quiet_functions", "\"brake\"")
    });
    stage.ask(&format!(
        "CREATE TABLE seen (brake text); INSERT INTO seen VALUES (NULL);
         CREATE FUNCTION brake() RETURNS text LANGUAGE sql AS
             $$ SELECT current_setting('statement_timeout') $$;
         ALTER TABLE seen OWNER TO {name}"
    ));
    stage
}

/// Whether a client's statement was run on a server that others may share.
fn shares(stage: &Stage, client: &mut WireClient) -> bool {
    client.query("UPDATE seen SET brake = brake()");
    match stage.value("SELECT brake FROM seen").as_str() {
        "50ms" => true,
        "0" => false,
        other => panic!("{other}"),
    }
}

fn says(stage: &Stage, name: &str, value: &str) -> Login {
    stage.login().parameter(name, value)
}

#[test]
fn a_client_says_at_its_login_that_it_shares_no_server() {
    let stage = stage("choice_login", 1, "auto");
    let mut plain = stage.client();
    let mut off = stage.client_as(&says(&stage, "pgweir.pipelining", "off"));
    let mut auto = stage.client_as(&says(&stage, "PgWeir.Pipelining", "AUTO"));
    let options = "-c pgweir.pipelining=off -c work_mem=1MB";
    let mut of_options = stage.client_as(&says(&stage, "options", options));
    for _ in 0..3 {
        assert!(shares(&stage, &mut plain));
        assert!(!shares(&stage, &mut off));
        assert!(shares(&stage, &mut auto));
        assert!(!shares(&stage, &mut of_options));
    }
    assert_eq!(of_options.query("SHOW work_mem"), ["1MB"]);
    // It is no setting of PostgreSQL's, and none that anybody has made.
    let unknown = off.try_query("SHOW pgweir.pipelining").unwrap_err();
    assert_eq!(unknown.sqlstate(), "42704");
    for (name, value) in [("pgweir.pipelining", "on"), ("options", "-c pgweir.pipelining=3x8")] {
        let refused = WireClient::login(stage.address(), &says(&stage, name, value));
        let refused = refused.expect_err(value).to_string();
        assert!(refused.contains("22023"), "{refused}");
    }
}

/// A custom setting for PostgreSQL, with all that holds for such.
#[test]
fn a_client_says_by_set_that_it_shares_no_server() {
    let stage = stage("choice_set", 1, "auto");
    let mut other = stage.client();
    let mut client = stage.client();
    for (text, shown, then) in [
        ("SET pgweir.pipelining = 'off'", "off", false),
        ("BEGIN; SET pgweir.pipelining = 'auto'; ROLLBACK", "off", false),
        ("RESET pgweir.pipelining", "", true),
        ("BEGIN; SET LOCAL pgweir.pipelining = 'off'; COMMIT", "", true),
        ("SELECT set_config('pgweir.pipelining', 'OFF', false)", "OFF", false),
        ("SET pgweir.pipelining = 'auto'", "auto", true),
        ("SET pgweir.pipelining = 'no word for it'", "no word for it", true),
        ("BEGIN; SET pgweir.pipelining = 'off'; COMMIT", "off", false),
        ("DISCARD ALL", "", true),
    ] {
        client.query(text);
        // What comes before it is known what was set shares no server in any case.
        client.query("SELECT 1");
        assert_eq!(shares(&stage, &mut client), then, "{text}");
        assert!(shares(&stage, &mut other), "{text}");
        if shown.is_empty() {
            continue;
        }
        assert_eq!(client.query("SHOW pgweir.pipelining"), [shown], "{text}");
    }
    let mut loner = stage.client_as(&says(&stage, "pgweir.pipelining", "off"));
    assert!(!shares(&stage, &mut loner));
    loner.query("SET pgweir.pipelining = 'auto'");
    loner.query("SELECT 1");
    assert!(shares(&stage, &mut loner));
    loner.query("RESET ALL");
    loner.query("SELECT 1");
    assert!(!shares(&stage, &mut loner), "as at its login");
}

/// Sets pipelining at the console. All workers go on with it before this is over.
fn set(stage: &Stage, key: &str, value: &str) {
    stage.console(&format!("SET {key} = '{value}'"));
    stage.console("SHOW VERSION");
}

#[test]
fn the_console_changes_it_at_once_and_a_reload_takes_that_back() {
    let stage = stage("choice_console", 2, "off");
    let mut client = stage.client();
    let mut sees = |shared| {
        client.query("SELECT 1");
        assert_eq!(shares(&stage, &mut client), shared);
    };
    let pool = format!("pools.{}.pipelining", stage.name);
    let user = format!("pools.{}.users.0.pipelining", stage.name);
    let holds = |key: &str, value: &str| {
        let config = stage.console("SHOW CONFIG");
        let row = config.iter().find(|row| row.starts_with(&format!("{key}|"))).unwrap();
        assert_eq!(*row, format!("{key}|\"{value}\"|\"auto\"|yes"));
    };
    sees(false);
    set(&stage, "pipelining", "auto");
    sees(true);
    holds(&user, "auto");
    set(&stage, &pool, "off");
    sees(false);
    set(&stage, &user, "4");
    sees(true);
    for (key, value) in [("general.pipelining", "auto"), (&pool, "off"), (&user, "2x4")] {
        holds(key, value);
    }
    let admin = Login::new("admin").password("admin").database("pgweir");
    let mut admin = stage.client_as(&admin);
    for (request, code) in [
        ("SET pipelining = 'on'", "22023"),
        ("SET pools.nobody.pipelining = 'off'", "08P01"),
        ("SET default_pool_size = 5", "0A000"),
    ] {
        assert_eq!(admin.try_query(request).unwrap_err().sqlstate(), code, "{request}");
    }
    sees(true);
    stage.console("RELOAD");
    stage.console("SHOW VERSION");
    sees(false);
    holds(&pool, "off");
}

/// So often it is changed, at least.
const FLIPS: usize = 60;

/// One client's work, until it has seen enough changes: what it counts is there, and once.
fn count(stage: &Stage, id: usize, flips: &AtomicUsize) -> usize {
    let mut client = stage.client();
    let (mut n, mut round) = (0, id);
    let add = format!("UPDATE counters SET n = n + 1 WHERE id = {id}");
    let read = format!("SELECT id, n FROM counters WHERE id = {id}");
    while flips.load(Ordering::Relaxed) < FLIPS {
        round += 1;
        match round % 4 {
            0 => {
                client.query(&add);
                n += 1;
            }
            1 => {
                client.send(&extended(&add, &[])).unwrap();
                let reply = client.read_until_ready().unwrap();
                assert!(reply.iter().any(|message| message.tag == b'C'), "{reply:?}");
                n += 1;
            }
            2 => {
                client.query("BEGIN");
                client.query(&add);
                client.query(&add);
                client.query("COMMIT");
                n += 2;
            }
            _ => {}
        }
        assert_eq!(client.query(&read), [format!("{id}|{n}")]);
    }
    n
}

/// Whoever waits for a place, or has one, goes on.
#[test]
fn it_is_changed_while_clients_work() {
    let stage = stage("choice_flips", 3, "1x2");
    stage.ask(&format!(
        "CREATE TABLE counters (id int PRIMARY KEY, n int NOT NULL);
         INSERT INTO counters SELECT id, 0 FROM generate_series(0, 15) AS id;
         ALTER TABLE counters OWNER TO {}",
        stage.name
    ));
    let flips = AtomicUsize::new(0);
    let counted: Vec<usize> = thread::scope(|scope| {
        let start = |id| {
            let (stage, flips) = (&stage, &flips);
            scope.spawn(move || count(stage, id, flips))
        };
        let clients: Vec<_> = (0..16).map(start).collect();
        let done = || stage.value("SELECT sum(n) FROM counters").parse::<usize>().unwrap();
        let values = ["off", "1x1", "3x16", "auto", "off", "1x8", "2x1"];
        for value in values.iter().cycle().take(FLIPS) {
            set(&stage, "pipelining", value);
            let before = done();
            eventually("something to be done", || done() > before);
            flips.fetch_add(1, Ordering::Relaxed);
        }
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    for (id, n) in counted.into_iter().enumerate() {
        assert_eq!(stage.value(&format!("SELECT n FROM counters WHERE id = {id}")), n.to_string());
    }
}

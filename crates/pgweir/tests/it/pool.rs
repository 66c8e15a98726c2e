//! The queue for servers, and the limit on their number.

use pgweir_testkit::frames::{bind, execute, parse, query, sync};
use pgweir_testkit::{Cluster, WireClient, eventually};

use crate::stage::{self, Stage, patient};
use crate::stopped::Stopped;

#[test]
fn a_cold_burst_is_served_within_the_limit() {
    let cluster = Cluster::builder().setting("max_connections", "70").start();
    // The second crowd is let in by two at a time.
    for (name, servers, parallelism, clients) in
        [("pool_burst", 50, 64, 500), ("pool_parallel", 10, 2, 50)]
    {
        let stage = Stage::on(&cluster, name, servers as u32, |config| {
            let config = config.general("connect_parallelism", &parallelism.to_string());
            config.pool("query_wait_timeout", "60000")
        });
        // One server too many would be refused, and that would be logged.
        stage.ask(&format!("ALTER ROLE {name} CONNECTION LIMIT {servers}"));
        let startup = stage.login().startup_message();
        let first = [startup, query("SELECT 'served', pg_sleep(0.02)")].concat();

        // No login comes to its end before all of them are under way.
        let mut doorkeeper = stage::superuser(&cluster, "postgres");
        doorkeeper.query("BEGIN; LOCK TABLE pg_authid");
        let mut clients: Vec<_> = (0..clients)
            .map(|_| {
                let mut client = WireClient::open(stage.address()).unwrap();
                client.send(&first).unwrap();
                client
            })
            .collect();
        stage.wait_for_waiters(clients.len());
        let at_a_time = servers.min(parallelism);
        stage.wait_for_logins(at_a_time);
        doorkeeper.query("COMMIT");
        for client in &mut clients {
            client.read_until_ready().unwrap();
            let reply = client.read_until_ready().unwrap();
            assert_eq!(reply[1].to_string(), "DataRow \"served\" \"\"");
        }
        assert!((at_a_time..=servers).contains(&stage.backends("true")));
        let log = stage.pgweir.log();
        assert!(!log.contains("no connection to"), "{log}");
    }
}

#[test]
fn first_come_first_served() {
    let stage = Stage::new("pool_fifo", 1);
    stage.ask("CREATE TABLE turns (turn serial, who int); ALTER TABLE turns OWNER TO pool_fifo");
    let mut holder = stage.client();
    let mut clients: Vec<_> = (0..10).map(|_| stage.client()).collect();
    holder.query("BEGIN");
    for (n, client) in clients.iter_mut().enumerate() {
        client.send(&query(&format!("INSERT INTO turns (who) VALUES ({n})"))).unwrap();
        stage.wait_for_waiters(n + 1);
    }
    holder.query("COMMIT");
    for client in &mut clients {
        client.read_until_ready().unwrap();
    }
    let turns = stage.value("SELECT string_agg(who::text, ' ' ORDER BY turn) FROM turns");
    assert_eq!(turns, "0 1 2 3 4 5 6 7 8 9");
}

#[test]
fn a_wait_has_an_end() {
    let stage = Stage::with("pool_timeout", 1, |config| patient(config).pool("idle_timeout", "0"));
    let (mut holder, mut client) = (stage.client(), stage.client());
    stage.limit_waits(600);
    holder.query("BEGIN");
    let error = client.try_query("SELECT 1").unwrap_err();
    assert_eq!(
        (error.sqlstate().as_str(), error.field(b'S').unwrap().as_str()),
        ("53300", "ERROR")
    );
    let detail = error.field(b'D').unwrap();
    assert!(detail.starts_with("Waited 0."), "{detail}");
    let pool = " s for a server of pool \"pool_timeout/pool_timeout\"; ";
    assert!(detail.ends_with(&format!("{pool}0 others wait. pool_size is 1.")), "{detail}");
    let hint = error.field(b'H').unwrap();
    assert_eq!(hint, "Shorten transactions, or raise pool_size or query_wait_timeout.");
    let message = "all servers of pool \"pool_timeout/pool_timeout\" are busy";
    assert_eq!(error.field(b'M').unwrap(), message);

    // A batch is skipped up to its Sync.
    let batch = [parse("", "SELECT 1", &[]), bind("", "", &[]), execute("", 0), sync()].concat();
    client.send(&batch).unwrap();
    let reply = client.read_until_ready().unwrap();
    assert_eq!(reply.iter().map(|message| message.tag).collect::<Vec<_>>(), *b"EZ");
    assert_eq!(reply[0].sqlstate(), "53300");

    // So does a login whose settings no server has been asked about yet, but that is final.
    let login = stage.login().parameter("application_name", "new");
    let refused = WireClient::login(stage.address(), &login).unwrap_err().to_string();
    assert!(refused.contains("C=\"57P03\""), "{refused}");

    holder.query("COMMIT");
    assert_eq!(client.query("SELECT 'usable'"), ["usable"]);
}

/// What stood behind a BEGIN that was refused was run on its own, and committed.
#[test]
fn a_wait_for_a_begin_ends_what_was_sent_behind_it() {
    let name = "pool_begin";
    let stage = Stage::with(name, 1, patient);
    stage.ask(&format!("CREATE TABLE t (a int); ALTER TABLE t OWNER TO {name}"));
    let (mut holder, mut client) = (stage.client(), stage.client());
    stage.limit_waits(300);
    holder.query("BEGIN");
    let all = ["BEGIN", "INSERT INTO t VALUES (1)", "SELECT 1 / 0", "COMMIT"];
    client.send(&all.map(query).concat()).unwrap();
    let last_words = client.read_to_end().unwrap();
    assert_eq!(last_words.iter().map(|message| message.tag).collect::<Vec<_>>(), *b"E");
    let [severity, code] = [b'S', b'C'].map(|field| last_words[0].field(field).unwrap());
    assert_eq!((severity.as_str(), code.as_str()), ("FATAL", "53300"));
    holder.query("COMMIT");
    assert_eq!(stage.client().query("SELECT count(*) FROM t"), ["0"]);
}

/// Nor does it end when there is a server, but when the statement is written to it: before that the
/// server may have to be set as its client needs it.
#[test]
fn a_wait_ends_with_a_statement_that_is_written() {
    let stage = Stage::with("pool_written", 1, patient);
    let mut client = stage.client_as(&stage.login().parameter("application_name", "other"));
    let pid = stage.client().query("SELECT pg_backend_pid()").concat();
    stage.limit_waits(300);
    let stopped = Stopped::process(&pid);
    assert_eq!(client.try_query("SELECT 1").unwrap_err().sqlstate(), "53300");
    drop(stopped);
    eventually("the server to go on", || client.try_query("SELECT 1").is_ok());
    assert_eq!(client.query("SELECT pg_backend_pid() FROM pg_sleep(0.4)"), [pid]);
}

#[test]
fn who_leaves_the_queue_is_not_run() {
    let stage = Stage::new("pool_leave", 1);
    stage.ask("CREATE TABLE done (who text); ALTER TABLE done OWNER TO pool_leave");
    let mut holder = stage.client();
    let [mut reset, mut closed, mut stayed] = [stage.client(), stage.client(), stage.client()];
    let [mut ended, mut ahead] = [stage.client(), stage.client()];
    holder.query("BEGIN");
    let insert = |who: &str| query(&format!("INSERT INTO done VALUES ('{who}')"));
    reset.send(&insert("reset")).unwrap();
    stage.wait_for_waiters(1);
    closed.send(&insert("closed")).unwrap();
    stage.wait_for_waiters(2);
    stayed.send(&insert("stayed")).unwrap();
    stage.wait_for_waiters(3);
    // One that has nothing more to say, and one that has said so much that it is not read now.
    ended.send(&insert("ended")).unwrap();
    ended.half_close().unwrap();
    stage.wait_for_waiters(4);
    ahead.send(&[insert("ahead"), insert(&"x".repeat(100_000))].concat()).unwrap();
    stage.wait_for_waiters(5);

    // A reset says that nobody reads the reply; the end of what is sent does not.
    reset.reset().unwrap();
    stage.wait_for_waiters(4);
    ended.reset().unwrap();
    stage.wait_for_waiters(3);
    ahead.reset().unwrap();
    stage.wait_for_waiters(2);
    closed.half_close().unwrap();
    holder.query("COMMIT");
    let reply = closed.read_to_end().unwrap();
    assert_eq!(reply.last().unwrap().to_string(), "ReadyForQuery I");
    stayed.read_until_ready().unwrap();
    assert_eq!(stage.value("SELECT string_agg(who, ' ' ORDER BY who) FROM done"), "closed stayed");
}

#[test]
fn a_wrong_database_or_role_of_the_server_is_told_to_every_client() {
    let stage = Stage::with("pool_refused", 1, |config| config);
    stage.ask("ALTER ROLE pool_refused NOLOGIN");
    for _ in 0..2 {
        let refused = WireClient::login(stage.address(), &stage.login()).unwrap_err().to_string();
        let expected = "M=\"role \\\"pool_refused\\\" is not permitted to log in\"";
        assert!(refused.contains("C=\"28000\"") && refused.contains(expected), "{refused}");
    }
    stage.ask("ALTER ROLE pool_refused LOGIN");
    assert_eq!(stage.client().query("SELECT 1"), ["1"]);
}

#[test]
fn servers_age() {
    let stage = Stage::with("pool_idle", 2, |config| config.pool("idle_timeout", "100"));
    let mut client = stage.client();
    assert_eq!(client.query("SELECT 1"), ["1"]);
    stage.wait_for_backends(0, "true");
    assert_eq!(client.query("SELECT 2"), ["2"]);

    // The age of a server that is never idle for long.
    let stage = Stage::with("pool_lifetime", 1, |config| config.pool("server_lifetime", "300"));
    let mut client = stage.client();
    client.query("BEGIN");
    let first = client.query("SELECT pg_backend_pid()");
    stage.wait_for_backends(1, "now() - backend_start > '0.5 s'");
    assert_eq!(client.query("SELECT pg_backend_pid()"), first, "not in a transaction");
    client.query("COMMIT");
    assert_ne!(client.query("SELECT pg_backend_pid()"), first);
}

/// A client may ask for more the instant that it has read ReadyForQuery: the server that it had is
/// free by then, and nobody needs another one.
#[test]
fn a_server_is_free_when_its_client_knows() {
    let stage = Stage::new("free_at_once", 2);
    let (mut one, mut other) = (stage.client(), stage.client());
    let pid = one.query("SELECT pg_backend_pid()");
    for _ in 0..2_000 {
        for client in [&mut other, &mut one] {
            assert_eq!(client.query("SELECT pg_backend_pid()"), pid);
        }
    }
    assert_eq!(stage.backends("true"), 1);
}

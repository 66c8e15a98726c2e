//! Servers that end, while they work and while they do not.

use std::io::ErrorKind;

use pgweir_testkit::frames::{flush, parse, query};
use pgweir_testkit::{
    Cluster, Login, Message, Pgweir, PoolerConfig, WireClient, eventually, eventually_some,
};
use rustix::process::Signal;

use crate::stage::{PROGRAM, Stage, create_database, login, patient, trusting};
use crate::stopped::{Stopped, postmaster, signal};

/// Ends the one session of the stage's role and waits until it is gone. Beside it, one that was
/// there before may be about to end by itself.
fn terminate_backend(stage: &Stage) {
    let of_role = format!("FROM pg_stat_activity WHERE usename = '{}'", stage.name);
    let own = format!("SELECT max(pid) {of_role} HAVING count(*) = 1");
    let pid = eventually_some("a session to be ended", || {
        let pid = stage.value(&own);
        let ended = format!("SELECT pg_terminate_backend(nullif('{pid}', '')::int)");
        (stage.value(&ended) == "t").then_some(pid)
    });
    stage.wait_for_backends(0, &format!("pid = {pid}"));
}

/// The errors that the connection still brings before it ends.
fn last_words(client: &mut WireClient) -> Vec<String> {
    codes(&client.read_to_end().unwrap())
}

/// The errors of a reply, and the status that it ends with.
fn ended(client: &mut WireClient) -> (Vec<String>, String) {
    let reply = client.read_until_ready().unwrap();
    (codes(&reply), reply.last().unwrap().to_string())
}

fn codes(messages: &[Message]) -> Vec<String> {
    messages.iter().filter(|message| message.tag == b'E').map(Message::sqlstate).collect()
}

#[test]
fn an_idle_server_is_replaced() {
    let stage = Stage::new("loss_idle", 1);
    let mut client = stage.client();
    for _ in 0..3 {
        assert_eq!(client.query("SELECT 1"), ["1"]);
        terminate_backend(&stage);
    }
    assert_eq!(client.query("SELECT 2"), ["2"]);
}

#[test]
fn a_client_hears_how_its_query_ended() {
    let stage = Stage::new("loss_query", 1);
    let mut client = stage.client();
    client.send(&query("SELECT pg_sleep(600)")).unwrap();
    stage.wait_for_backends(1, "query LIKE '%sleep%' AND state = 'active'");
    terminate_backend(&stage);
    let reply = client.read_until_ready().unwrap();
    assert_eq!(codes(&reply), ["08007"]);
    let error = reply.iter().find(|message| message.tag == b'E').unwrap();
    let detail = error.field(b'D').unwrap();
    assert!(detail.ends_with("The statement may or may not have been committed."), "{detail}");
    let hint = error.field(b'H').unwrap();
    assert_eq!(hint, "Look whether it was carried out before it is run again.");
    assert_eq!(client.query("SELECT 2"), ["2"]);
}

/// PostgreSQL looks whether it was idle for too long before it begins what it was sent just then.
#[test]
fn a_server_that_was_idle_for_too_long_has_begun_nothing() {
    let name = "loss_idled_out";
    let stage = Stage::alone(name, 1);
    stage.ask(&format!("CREATE TABLE t (a int); ALTER TABLE t OWNER TO {name}"));
    stage.ask(&format!("ALTER ROLE {name} SET idle_session_timeout = '2s'"));
    let mut client = stage.client();
    let pid = client.query("SELECT pg_backend_pid()").concat();
    let stopped = Stopped::process(&pid);
    // PostgreSQL does not take an alarm back that it has set for the statement before.
    let over = format!("pid = {pid} AND clock_timestamp() - state_change > '2.1s'");
    stage.wait_for_backends(1, &over);
    eventually("its alarm", || stopped.has_an_alarm());
    client.send(&query("INSERT INTO t VALUES (1)")).unwrap();
    stage.wait_for_servers_in_use(1);
    drop(stopped);
    let reply = client.read_until_ready().unwrap();
    assert_eq!(codes(&reply), ["40001"]);
    assert_eq!(reply.last().unwrap().to_string(), "ReadyForQuery I");
    let detail = reply[0].field(b'D').unwrap();
    assert!(detail.contains("idle-session timeout. The statement was not begun."), "{detail}");
    assert_eq!(client.query("SELECT count(*) FROM t"), ["0"]);
}

/// The statement behind a COMMIT that was not answered may be asked about by the next one.
#[test]
fn a_commit_that_is_not_answered_may_have_been_carried_out() {
    let stage = Stage::new("loss_commit", 1);
    let mut maker = stage.client();
    // A deferred trigger makes the COMMIT last as long as the test needs.
    maker.query("CREATE TABLE t (a int)");
    maker.query(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql
         AS $$ BEGIN PERFORM pg_sleep(600); RETURN NULL; END $$",
    );
    maker.query(
        "CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON t
         DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow()",
    );
    drop(maker);
    let mut client = stage.client();
    client.query("BEGIN");
    client.query("INSERT INTO t VALUES (1)");
    client.send(&query("COMMIT")).unwrap();
    stage.wait_for_backends(1, "query = 'COMMIT' AND state = 'active'");
    terminate_backend(&stage);
    assert_eq!(ended(&mut client), (vec!["08007".to_owned()], "ReadyForQuery I".to_owned()));
    assert_eq!(client.query("SELECT count(*) FROM t"), ["0"]);
}

/// A transaction is worth another try, in the way that applications know of serialization
/// failures. Until the client ends it PostgreSQL itself refuses whatever comes.
#[test]
fn a_client_hears_how_its_transaction_ended() {
    let failed = |code: &str| (vec![code.to_owned()], "ReadyForQuery E".to_owned());
    let stage = Stage::new("loss_transaction", 1);
    let mut client = stage.client();
    for running in [true, false] {
        client.query("BEGIN");
        client.query("CREATE TABLE t (a int)");
        let pause = query("SELECT pg_sleep(600)");
        if running {
            client.send(&pause).unwrap();
            stage.wait_for_backends(1, "query LIKE '%sleep%' AND state = 'active'");
        }
        terminate_backend(&stage);
        if !running {
            client.send(&pause).unwrap();
        }
        assert_eq!(ended(&mut client), failed("40001"), "{running}");
        for refused in ["SELECT 1", "SAVEPOINT a"] {
            client.send(&query(refused)).unwrap();
            assert_eq!(ended(&mut client), failed("25P02"), "{refused}");
        }
        client.send(&query("ROLLBACK TO a")).unwrap();
        assert_eq!(ended(&mut client), failed("3B001"));
        assert_eq!(client.query("ROLLBACK"), Vec::<String>::new());
        assert_eq!(client.query("SELECT to_regclass('t') IS NULL"), ["t"]);
    }
}

/// Whoever gives a transaction up need not know that it was lost before.
#[test]
fn a_rollback_gives_a_lost_transaction_up() {
    let stage = Stage::new("loss_rollback", 1);
    let mut client = stage.client();
    for rollback in ["ROLLBACK", "/* why */ abort work; SELECT 1"] {
        client.query("BEGIN");
        client.query("CREATE TABLE t (a int)");
        terminate_backend(&stage);
        client.send(&query(rollback)).unwrap();
        assert_eq!(ended(&mut client), (vec![], "ReadyForQuery I".to_owned()), "{rollback}");
        assert_eq!(client.query("SELECT to_regclass('t') IS NULL"), ["t"]);
    }
}

/// AND CHAIN would begin another one like it, and what it was like is lost with it.
#[test]
fn a_lost_transaction_cannot_be_chained() {
    let stage = Stage::new("loss_chain", 1);
    let in_lost_transaction = || {
        let mut client = stage.client();
        client.query("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY");
        terminate_backend(&stage);
        client.send(&query("SELECT 1")).unwrap();
        let failed = (vec!["40001".to_owned()], "ReadyForQuery E".to_owned());
        assert_eq!(ended(&mut client), failed);
        client
    };
    for chain in ["ROLLBACK AND CHAIN", "/* why */ COMMIT AND CHAIN"] {
        let mut client = in_lost_transaction();
        client.send(&query(chain)).unwrap();
        assert_eq!(last_words(&mut client), ["57P01"], "{chain}");
    }
    let mut client = in_lost_transaction();
    client.query("ROLLBACK AND NO CHAIN");
    client.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
    client.query("ROLLBACK AND CHAIN");
    assert_eq!(client.query("SHOW transaction_isolation"), ["repeatable read"]);
}

/// Settings, temporary tables and whatever else lives in one server are gone with it. In session
/// mode nobody looks what there was. Who listens keeps its server where there is no room for one
/// that listens for all.
#[test]
fn a_client_hears_that_its_session_has_ended() {
    let one = |config: PoolerConfig| config.pool("max_db_connections", "1");
    let stateful = Stage::with("loss_state", 1, one);
    let sessions = Stage::session("loss_session", 1);
    for (stage, last) in [
        (&stateful, "DECLARE c CURSOR WITH HOLD FOR SELECT 1"),
        (&stateful, "CREATE TEMP TABLE t ()"),
        (&stateful, "LISTEN a"),
        (&sessions, "SELECT 1"),
    ] {
        let mut client = stage.client();
        client.query(last);
        terminate_backend(stage);
        assert_eq!(last_words(&mut client), ["57P01"], "{last}");
        assert_eq!(stage.client().query("SELECT 2"), ["2"]);
    }
}

/// What is known of a session goes on with its client.
#[test]
fn settings_outlive_their_server() {
    let stage = Stage::new("loss_settings", 1);
    let mut client = stage.client();
    client.query("SET work_mem = '5MB'");
    client.query("SET app.tenant = '7'");
    stage.wait_for_idle_servers(1);
    terminate_backend(&stage);
    assert_eq!(client.query("SHOW work_mem; SHOW app.tenant"), ["5MB", "7"]);
}

#[test]
fn who_waits_gets_the_next_server() {
    let stage = Stage::new("loss_waiters", 1);
    let (mut holder, mut waiter) = (stage.client(), stage.client());
    holder.query("BEGIN");
    waiter.send(&query("SELECT 'served'")).unwrap();
    stage.wait_for_waiters(1);
    terminate_backend(&stage);
    let reply = waiter.read_until_ready().unwrap();
    assert_eq!(reply[1].to_string(), "DataRow \"served\"");
}

/// A statement is held back until its server is as the client's settings ask for: nothing of it
/// was sent, and nobody need know.
#[test]
fn a_server_lost_before_a_statement_was_sent_is_replaced() {
    let stage = Stage::new("loss_unsent", 1);
    let mut client = stage.client_as(&stage.login().parameter("application_name", "other"));
    stage.client().query("SELECT 1");
    let pid = stage.value("SELECT pid FROM pg_stat_activity WHERE usename = 'loss_unsent'");
    let stopped = Stopped::process(&pid);
    client.send(&query("SHOW application_name")).unwrap();
    stage.wait_for_servers_in_use(1);
    // Once it goes on, it looks at this before it looks at what it was sent.
    assert_eq!(stage.value(&format!("SELECT pg_terminate_backend({pid})")), "t");
    drop(stopped);
    let reply = client.read_until_ready().unwrap();
    assert_eq!(reply[1].to_string(), "DataRow \"other\"");
}

/// What has come of a reply cannot be taken back, so its client can only be ended. So can one that
/// has lost more than a statement whose outcome is not known.
#[test]
fn a_crash_in_the_middle_of_replies() {
    let mut cluster = Cluster::start();
    let name = "loss_replies";
    let stage = Stage::on(&cluster, name, 5, |config| {
        let config = config.user("session", "", 1).user_setting("pool_mode", "\"session\"");
        config.user_setting("server_username", &format!("{name:?}"))
    });
    let [mut in_rows, mut in_row, mut in_pipeline] =
        [stage.client(), stage.client(), stage.client()];
    let rows = "SELECT CASE WHEN i < 100 THEN repeat('x', 1000) ELSE pg_sleep(600)::text END \
                FROM generate_series(1, 100) i";
    in_rows.send(&query(rows)).unwrap();
    assert_eq!(in_rows.read().unwrap().unwrap().tag, b'T');
    in_row.send(&query("SELECT repeat('x', 100000000)")).unwrap();
    let sleep = query("SELECT pg_sleep(600)");
    in_pipeline.send(&[&sleep[..], &query("SELECT 2")].concat()).unwrap();
    // While others wait for a server it would be sent one unit only.
    stage.wait_for_backends(2, "wait_event = 'PgSleep'");

    // The server's own error is a reply too, which ends with the Sync.
    let mut behind_an_error = stage.client();
    behind_an_error.send(&[parse("", "nonsense", &[]), flush()].concat()).unwrap();
    assert_eq!(behind_an_error.read().unwrap().unwrap().sqlstate(), "42601");

    let mut with_state = stage.client();
    with_state.query("LISTEN c");
    with_state.send(&sleep).unwrap();
    let mut in_session = stage.client_as(&Login::new("session").database(name));
    in_session.send(&sleep).unwrap();
    stage.wait_for_backends(4, "wait_event = 'PgSleep'");
    stage.wait_for_backends(1, "wait_event = 'ClientWrite'");
    cluster.kill();
    assert_eq!(last_words(&mut in_rows), ["57P01"]);
    assert_eq!(last_words(&mut behind_an_error), ["57P01"]);
    for client in [&mut in_pipeline, &mut with_state, &mut in_session] {
        assert_eq!(last_words(client), ["08007"]);
    }
    assert_eq!(in_row.read_to_end().unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[test]
fn a_crash_of_the_cluster() {
    let mut cluster = Cluster::start();
    let stage = Stage::on(&cluster, "loss_crash", 3, |config| config);
    let [mut idle, mut in_query, mut in_transaction, mut in_rollback] =
        [stage.client(), stage.client(), stage.client(), stage.client()];
    idle.query("SELECT 1");
    in_transaction.query("BEGIN");
    in_query.send(&query("SELECT pg_sleep(600)")).unwrap();
    // What stands behind its ROLLBACK is a transaction of its own.
    in_rollback.query("BEGIN");
    in_rollback.send(&query("ROLLBACK; SELECT pg_sleep(600)")).unwrap();
    stage.wait_for_backends(2, "query LIKE '%sleep%' AND state = 'active'");
    cluster.kill();
    for client in [&mut in_query, &mut in_rollback] {
        assert_eq!(ended(client), (vec!["08007".to_owned()], "ReadyForQuery I".to_owned()));
    }

    // Comes while PostgreSQL is down, and is served when it is up.
    let mut early = WireClient::open(stage.address()).unwrap();
    let startup = stage.login().parameter("application_name", "early").startup_message();
    early.send(&startup).unwrap();
    eventually("an attempt to connect", || stage.pgweir.log().contains("no connection to"));
    cluster.restart();
    let greeting = early.read_until_ready().unwrap();
    assert_eq!(greeting.last().unwrap().to_string(), "ReadyForQuery I");
    assert_eq!(idle.query("SELECT 'same session'"), ["same session"]);
    assert_eq!(in_query.query("SELECT 'same session'"), ["same session"]);
    assert_eq!(in_rollback.query("SELECT 'same session'"), ["same session"]);
    in_transaction.send(&query("SELECT 1")).unwrap();
    let failed = (vec!["40001".to_owned()], "ReadyForQuery E".to_owned());
    assert_eq!(ended(&mut in_transaction), failed);
    in_transaction.query("ROLLBACK");
    assert_eq!(in_transaction.query("SELECT 'same session'"), ["same session"]);
    assert_eq!(stage.client().query("SELECT 2"), ["2"]);
}

/// A role that may have no connection: PostgreSQL says 53300 to each attempt.
#[test]
fn a_server_that_stays_full_is_quoted_when_the_wait_is_over() {
    let stage = Stage::with("loss_full", 2, |config| config.pool("query_wait_timeout", "1500"));
    let mut client = stage.client();
    stage.ask("ALTER ROLE loss_full CONNECTION LIMIT 0");
    terminate_backend(&stage);
    let error = client.try_query("SELECT 1").unwrap_err();
    let field = |name| error.field(name).unwrap();
    assert_eq!((field(b'C').as_str(), field(b'S').as_str()), ("53300", "ERROR"));
    assert!(field(b'M').contains("can be reached"), "{}", field(b'M'));
    let detail = field(b'D');
    assert!(detail.starts_with("too many connections for role \"loss_full\": "), "{detail}");
    assert!(field(b'H').contains("--connect"), "{}", field(b'H'));
    stage.ask("ALTER ROLE loss_full CONNECTION LIMIT 1");
    // The next attempt may be due later than its client waits.
    eventually("a server", || client.try_query("SELECT 1").is_ok());
    assert_eq!(client.query("SELECT 'same session'"), ["same session"]);

    // Now there is one, and it is busy.
    client.query("BEGIN");
    let error = stage.client().try_query("SELECT 1").unwrap_err();
    assert_eq!(error.sqlstate(), "53300");
    let message = "all servers of pool \"loss_full/loss_full\" are busy";
    assert_eq!(error.field(b'M').unwrap(), message);
    let detail = error.field(b'D').unwrap();
    let why = "Another connection was refused: too many connections for role \"loss_full\": ";
    assert!(detail.contains(why), "{detail}");
}

/// PostgreSQL waits for its last client, and says 57P03 to all others meanwhile.
#[test]
fn a_server_that_shuts_down_is_quoted_when_the_wait_is_over() {
    let cluster = Cluster::start();
    let stage =
        Stage::on(&cluster, "loss_smart", 1, |config| config.pool("query_wait_timeout", "300"));
    signal(Signal::TERM, &postmaster(&cluster));
    let direct = Login::new("postgres");
    eventually("PostgreSQL to refuse", || WireClient::login(cluster.address(), &direct).is_err());
    let refused = WireClient::login(stage.address(), &stage.login()).err().unwrap().to_string();
    assert!(refused.contains("C=\"57P03\"") && refused.contains("S=\"FATAL\""), "{refused}");
    let cause = "D=\"the database system is shutting down: The server at 127.0.0.1:";
    assert!(refused.contains(cause), "{refused}");
}

/// Who has waited in vain is told of whom, and why, and may ask again.
#[test]
fn a_server_that_is_down_is_named() {
    let mut cluster = Cluster::start();
    let stage = Stage::on(&cluster, "loss_named", 1, patient);
    let mut client = stage.client();
    stage.limit_waits(300);
    cluster.stop();
    stage.wait_for_idle_servers(0);
    let expected = format!("Connecting to 127.0.0.1:{} failed: Connection refused", cluster.port());
    let error = client.try_query("SELECT 1").unwrap_err();
    let [severity, code, detail] = [b'S', b'C', b'D'].map(|field| error.field(field).unwrap());
    assert_eq!((severity.as_str(), code.as_str()), ("ERROR", "53300"));
    assert!(detail.contains(&expected), "{detail}");
    // What servers are set to for this one is not known, so its login takes one.
    let mut newcomer = WireClient::open(stage.address()).unwrap();
    let login = stage.login().parameter("application_name", "new");
    newcomer.send(&login.startup_message()).unwrap();
    let refusal = newcomer.read_to_end().unwrap().pop().unwrap();
    assert_eq!(refusal.sqlstate(), "57P03");
    assert!(refusal.field(b'D').unwrap().contains(&expected), "{refusal}");
    cluster.restart();
    // The next attempt may be due later than the client waits.
    eventually("a server", || client.try_query("SELECT 'same session'").is_ok());
}

#[test]
fn it_may_be_started_before_its_server() {
    let mut cluster = Cluster::start();
    create_database(&cluster, "loss_early");
    cluster.stop();
    let config = trusting(&cluster, "loss_early").user("loss_early", "", 1);
    let pgweir = Pgweir::start(PROGRAM, |port| config.text(port));
    let mut client = WireClient::open(pgweir.address()).unwrap();
    client.send(&login("loss_early").startup_message()).unwrap();
    eventually("an attempt to connect", || pgweir.log().contains("no connection to"));
    cluster.restart();
    let greeting = client.read_until_ready().unwrap();
    assert_eq!(greeting.last().unwrap().to_string(), "ReadyForQuery I");
    assert_eq!(client.query("SELECT 'served'"), ["served"]);
}

//! Clients that vanish in the middle of something: the only server comes back every time, clean,
//! and nothing that was not finished is done.

use pgweir_testkit::frames::{
    bind, copy_data, copy_done, execute, flush, message, parse, query, sync, terminate,
};
use pgweir_testkit::{WireClient, eventually};

use crate::stage::{self, CLUSTER, Stage};

const INSERT: &str = "INSERT INTO t VALUES (1)";

/// How a client goes.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Its host vanished.
    Reset,
    /// Its process ended.
    Close,
    /// It said goodbye before.
    Terminate,
}

/// For every way to go: a client does what `middle` says and goes; then the table is empty and
/// the only server serves the next client.
#[track_caller]
fn leaves_nothing(name: &str, middle: impl Fn(&Stage, &mut WireClient)) {
    let stage = Stage::new(name, 1);
    stage.ask(&format!("CREATE TABLE t (a int); ALTER TABLE t OWNER TO {name}"));
    for end in [End::Reset, End::Close, End::Terminate] {
        let mut client = stage.client();
        middle(&stage, &mut client);
        match end {
            End::Reset => client.reset().unwrap(),
            End::Close => drop(client),
            End::Terminate => {
                // In the middle of a message it is part of that message.
                client.send(&terminate()).unwrap();
                drop(client);
            }
        }
        let mut next = stage.client();
        assert_eq!(next.query("SELECT count(*), 'own' FROM t"), ["0|own"], "after {end:?}");
        next.query("BEGIN");
        assert_eq!(next.query("SELECT current_setting('work_mem')"), ["4MB"], "after {end:?}");
        next.query("ROLLBACK");
        stage.wait_for_backends(0, "state <> 'idle'");
    }
}

/// Somebody may want what it does, and nothing says how long it may take.
#[test]
fn a_statement_runs_on_behind_its_client() {
    let name = "gone_runs_on";
    let stage = Stage::with(name, 1, |config| config.general("log_client_disconnections", "true"));
    stage.ask(&format!("CREATE TABLE t (a int); ALTER TABLE t OWNER TO {name}"));
    let mut lock = stage::superuser(&CLUSTER, name);
    lock.query("SELECT pg_advisory_lock(1)");
    let mut client = stage.client();
    let pid = client.query("SELECT pg_backend_pid()").concat();
    client.send(&query("INSERT INTO t SELECT 1 FROM pg_advisory_lock(1)")).unwrap();
    let runs = format!("pid = {pid} AND wait_event = 'advisory'");
    stage.wait_for_backends(1, &runs);
    client.reset().unwrap();
    eventually("it to be known", || stage.pgweir.log().contains(" left: "));

    let mut next = stage.client();
    next.send(&query("SELECT count(*), pg_backend_pid() FROM t")).unwrap();
    stage.wait_for_waiters(1);
    assert_eq!((stage.backends("true"), stage.backends(&runs)), (1, 1));
    lock.query("SELECT pg_advisory_unlock(1)");
    let reply = next.read_until_ready().unwrap();
    assert_eq!(reply[1].to_string(), format!("DataRow \"1\" \"{pid}\""));
}

/// Nobody reads what it says, and it would say it for hours.
#[test]
fn an_endless_result_is_cancelled_behind_its_client() {
    let stage = Stage::new("gone_endless", 1);
    let mut client = stage.client();
    let pid = client.query("SELECT pg_backend_pid()").concat();
    let endless = "SELECT repeat('x', 1000), generate_series(1, 1000000000)";
    client.send(&query(endless)).unwrap();
    for _ in 0..10 {
        client.read().unwrap().unwrap();
    }
    client.reset().unwrap();
    let its = |line: &str| line.contains(&format!("[{pid}]"));
    let cancelled = "canceling statement due to user request";
    eventually("it to be cancelled", || {
        CLUSTER.log().lines().any(|line| its(line) && line.contains(cancelled))
    });
    assert_eq!(stage.client().query("SELECT 'served'"), ["served"]);
    stage.wait_for_backends(0, &format!("pid = {pid}"));
}

#[test]
fn in_an_open_transaction() {
    leaves_nothing("gone_transaction", |_, client| {
        client.query("BEGIN; SET LOCAL work_mem = '77MB'");
        client.query(INSERT);
    });
}

#[test]
fn in_a_failed_transaction() {
    leaves_nothing("gone_failed", |_, client| {
        client.query("BEGIN");
        client.query(INSERT);
        client.try_query("SELECT 1/0").unwrap_err();
    });
}

#[test]
fn in_a_transaction_with_a_query_under_way() {
    leaves_nothing("gone_query", |stage, client| {
        client.query("BEGIN");
        client.query(INSERT);
        client.send(&query("SELECT pg_sleep(0.2)")).unwrap();
        stage.wait_for_backends(1, "query LIKE '%sleep%' AND state = 'active'");
    });
}

#[test]
fn in_an_open_batch() {
    leaves_nothing("gone_batch", |_, client| {
        let batch = [parse("", INSERT, &[]), bind("", "", &[]), execute("", 0), flush()];
        client.send(&batch.concat()).unwrap();
        for _ in 0..3 {
            client.read().unwrap().unwrap();
        }
    });
}

#[test]
fn in_a_batch_that_was_not_flushed() {
    leaves_nothing("gone_unflushed", |_, client| {
        let batch = [parse("", INSERT, &[]), bind("", "", &[]), execute("", 0)];
        client.send(&batch.concat()).unwrap();
    });
}

#[test]
fn in_copy_in() {
    leaves_nothing("gone_copy_in", |_, client| {
        client.send(&query("COPY t FROM STDIN")).unwrap();
        assert_eq!(client.read().unwrap().unwrap().tag, b'G');
        client.send(&copy_data(b"1\n2\n")).unwrap();
    });
}

#[test]
fn in_copy_in_before_it_began() {
    leaves_nothing("gone_copy_early", |_, client| {
        let copy = [query("SELECT pg_sleep(0.05); COPY t FROM STDIN"), copy_data(b"1\n")];
        client.send(&copy.concat()).unwrap();
    });
}

#[test]
fn in_the_second_of_two_copies() {
    leaves_nothing("gone_copy_second", |_, client| {
        client.send(&query("COPY t FROM STDIN; COPY t FROM STDIN")).unwrap();
        client.send(&[copy_data(b"1\n"), copy_done(), copy_data(b"2\n")].concat()).unwrap();
    });
}

#[test]
fn in_copy_in_of_a_batch() {
    leaves_nothing("gone_copy_batch", |_, client| {
        let copy = [parse("", "COPY t FROM STDIN", &[]), bind("", "", &[]), execute("", 0), sync()];
        client.send(&copy.concat()).unwrap();
        for _ in 0..3 {
            client.read().unwrap().unwrap();
        }
        client.send(&copy_data(b"1\n2\n")).unwrap();
    });
}

#[test]
fn in_copy_out() {
    leaves_nothing("gone_copy_out", |_, client| {
        let copy = "COPY (SELECT repeat('x', 1000) FROM generate_series(1, 50000)) TO STDOUT";
        client.send(&query(copy)).unwrap();
        for _ in 0..10 {
            client.read().unwrap().unwrap();
        }
    });
}

#[test]
fn in_a_long_result() {
    leaves_nothing("gone_result", |_, client| {
        let select = "SELECT repeat('x', 1000) FROM generate_series(1, 50000)";
        client.send(&query(select)).unwrap();
        for _ in 0..10 {
            client.read().unwrap().unwrap();
        }
    });
}

#[test]
fn in_a_long_row() {
    leaves_nothing("gone_row", |stage, client| {
        client.send(&query("SELECT repeat('x', 50000000)")).unwrap();
        stage.wait_for_backends(1, "wait_event = 'ClientWrite'");
    });
}

#[test]
fn in_a_short_message() {
    leaves_nothing("gone_short_message", |_, client| {
        let insert = query(INSERT);
        client.send(&insert[..insert.len() - 3]).unwrap();
    });
}

#[test]
fn in_a_header() {
    leaves_nothing("gone_header", |_, client| client.send(b"Q\0\0").unwrap());
}

#[test]
fn in_a_long_message() {
    leaves_nothing("gone_long_message", |stage, client| {
        // Long enough to be sent on before its end has come.
        let insert = query(&format!("{INSERT} /* {} */", "x".repeat(300_000)));
        client.send(&insert[..200_000]).unwrap();
        stage.wait_for_backends(1, "true");
    });
}

#[test]
fn in_a_message_of_a_transaction() {
    leaves_nothing("gone_message_in_transaction", |_, client| {
        client.query("BEGIN");
        client.query(INSERT);
        let bind = bind("", "", &[Some(&"x".repeat(100_000))]);
        client.send(&[parse("", "SELECT $1", &[]), bind[..50_000].to_vec()].concat()).unwrap();
    });
}

#[test]
fn behind_what_cannot_be_read() {
    leaves_nothing("gone_violation", |_, client| {
        client.query("BEGIN");
        client.query(INSERT);
        client.send(&message(b'y', b"")).unwrap();
    });
}

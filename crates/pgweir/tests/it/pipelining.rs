//! Clients that share servers get their own rows, and what they have changed is done once.

use std::thread;

use pgweir_testkit::frames::{bind, execute, parse, query, sync};
use pgweir_testkit::{WireClient, eventually, eventually_some};

use crate::course::{self, CLIENTS, Course, LOST_TWICE, Read, losses, read};
use crate::stage::{CLUSTER, Stage};

/// A stage whose clients share servers.
fn shared(name: &str, pool_size: u32) -> Stage {
    let stage = Stage::with(name, pool_size, |config| config.general("pipelining", "\"2x8\""));
    stage.ask(&format!(
        "CREATE TABLE counters (id int PRIMARY KEY, n int NOT NULL);
         INSERT INTO counters SELECT id, 0 FROM generate_series(0, 99) AS id;
         CREATE FUNCTION slow(n int) RETURNS int LANGUAGE sql AS
             'SELECT n + 0 * count(*)::int FROM generate_series(1, 1000000)';
         ALTER TABLE counters OWNER TO {name}; ALTER FUNCTION slow OWNER TO {name}"
    ));
    stage
}

/// How often a server is ended.
const KILLS: usize = 12;

/// What a client knows of its counter.
#[derive(Default)]
struct Account {
    /// So often it was told that it has counted.
    counted: usize,
    /// So often nobody knows.
    unknown: usize,
    /// So often its server was lost in the middle of a reply to what only reads.
    read_in_part: usize,
}

/// One client's work: some reads, some writes of each kind, in its own order.
fn work(stage: &Stage, id: usize, course: &Course) -> Account {
    let mut account = Account::default();
    let mut client = stage.client();
    let update = format!("UPDATE counters SET n = n + 1 WHERE id = {id}");
    for round in (0..).take_while(|_| !course.is_over()) {
        let done = match (id + round) % 5 {
            0 | 1 => reads(stage, &mut client, id, round),
            2 => ends(&mut client, &query(&update)),
            3 => {
                let batch = [parse("", &update, &[]), bind("", "", &[]), execute("", 0), sync()];
                ends(&mut client, &batch.concat())
            }
            _ => block(&mut client, &update),
        };
        match done {
            Done::Read => {}
            Done::Counted => account.counted += 1,
            Done::Unknown => account.unknown += 1,
            Done::Not => {}
            Done::ReadInPart => account.read_in_part += 1,
            // Whether what it has sent last was done is not known then.
            Done::Cut => {
                account.unknown += 1;
                client = stage.client();
            }
        }
        course.did_one(id);
    }
    account
}

/// What became of a unit.
enum Done {
    Read,
    ReadInPart,
    Counted,
    Not,
    Unknown,
    /// The connection has ended.
    Cut,
}

/// One server is lost at a time, so that nobody's is twice.
fn reads(stage: &Stage, client: &mut WireClient, id: usize, round: usize) -> Done {
    let text = format!("SELECT id, {round} FROM counters WHERE id = {id}");
    match read(client, &text, LOST_TWICE, || stage.client()) {
        Read::Done(rows) => {
            let own = [id, round].map(|value| Some(value.to_string().into_bytes()));
            assert_eq!(rows, [own], "somebody else's row");
            Done::Read
        }
        Read::InPart => Done::ReadInPart,
        Read::Lost => panic!("a read was not run again"),
    }
}

fn ends(client: &mut WireClient, unit: &[u8]) -> Done {
    let Ok(reply) = client.send(unit).and_then(|()| client.read_until_ready()) else {
        return Done::Cut;
    };
    match reply.iter().find(|message| message.tag == b'E').map(|error| error.sqlstate()) {
        None => Done::Counted,
        Some(code) if code == "08007" => Done::Unknown,
        Some(_) => Done::Not,
    }
}

fn block(client: &mut WireClient, update: &str) -> Done {
    for text in ["BEGIN", update, "COMMIT"] {
        match ends(client, &query(text)) {
            Done::Counted => {}
            Done::Unknown if text == "COMMIT" => return Done::Unknown,
            Done::Cut => return Done::Cut,
            // It was lost before its COMMIT was sent.
            Done::Read | Done::ReadInPart | Done::Not | Done::Unknown => {
                return match ends(client, &query("ROLLBACK")) {
                    Done::Cut => Done::Cut,
                    _ => Done::Not,
                };
            }
        }
    }
    Done::Counted
}

/// Servers are ended all the while, one at a time, in the middle of a statement. What was
/// acknowledged is there, once; a server leaves one client at most that does not know, since it
/// says why it ends; and what only reads is run again.
#[test]
fn what_is_acknowledged_is_done_once_while_servers_end() {
    let stage = shared("pipelining_kills", 4);
    let course = Course::new(LOST_TWICE);
    let accounts: Vec<Account> = thread::scope(|scope| {
        let start = |id| {
            let (stage, course) = (&stage, &course);
            scope.spawn(move || work(stage, id, course))
        };
        let clients: Vec<_> = (0..CLIENTS).map(start).collect();
        course.runs(KILLS, |kill| {
            let begins = ["SELECT id", "UPDATE"][kill % 2];
            let sql = format!(
                "SELECT pid FROM (SELECT pid FROM pg_stat_activity WHERE usename = '{}' \
                 AND state = 'active' AND query LIKE '{begins}%' LIMIT 1) AS one \
                 WHERE pg_terminate_backend(pid)",
                stage.name
            );
            let pid = eventually_some("a server to run it", || stage.ask(&sql).pop());
            stage.wait_for_backends(0, &format!("pid = {pid}"));
        });
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    for (id, account) in accounts.iter().enumerate() {
        let Account { counted, unknown, .. } = *account;
        let sql = format!("SELECT n FROM counters WHERE id = {id}");
        let there: usize = stage.value(&sql).parse().unwrap();
        let most = counted + unknown;
        assert!((counted..=most).contains(&there), "c{id}: {there}, not {counted} to {most}");
    }
    let sum = |of: fn(&Account) -> usize| accounts.iter().map(of).sum::<usize>();
    let in_doubt = sum(|its| its.unknown + its.read_in_part);
    assert!(in_doubt <= KILLS, "{in_doubt} clients do not know");
    assert!(sum(|its| its.counted) > course.done() / 3);
    // One that has ended just behind its statement is none that was lost.
    let losses = losses(&stage);
    assert!((KILLS / 2..=KILLS).contains(&losses), "{losses} servers were lost");
    // What takes longer than the brake, as on a busy machine, has a server alone.
    let shared = course::shared(&stage);
    assert!(shared > course.done() / 4, "{shared} of {} were shared", course.done());
}

/// What takes too long beside others has a server alone. That is lost, and nobody hears of it.
#[test]
fn a_read_whose_server_is_lost_is_run_again() {
    let stage = shared("pipelining_again", 2);
    stage.ask("CREATE TABLE t (a int); INSERT INTO t VALUES (1); GRANT ALL ON t TO PUBLIC");
    let mut locker = WireClient::login(stage.address(), &stage.login()).unwrap();
    locker.query("BEGIN; LOCK TABLE t");
    let mut client = stage.client();
    client.send(&query("SELECT a FROM t")).unwrap();
    // For longer than a shared server lets it.
    let waits = "FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FROM t' \
                 AND query_start < clock_timestamp() - interval '0.2 s'";
    let waiter = || stage.value(&format!("SELECT coalesce(min(pid), 0) {waits}"));
    eventually("it to wait alone", || waiter() != "0");
    let first = waiter();
    stage.ask(&format!("SELECT pg_terminate_backend({first})"));
    eventually("another server to have it", || ![first.as_str(), "0"].contains(&&*waiter()));
    locker.query("COMMIT");
    let reply = client.read_until_ready().unwrap();
    assert_eq!(reply[1].to_string(), "DataRow \"1\"");
}

/// What takes too long beside others runs alone, under no timeout of ours.
#[test]
fn long_statements_come_to_their_end() {
    let stage = shared("pipelining_long", 3);
    thread::scope(|scope| {
        for id in 0..6 {
            let stage = &stage;
            scope.spawn(move || {
                let mut client = stage.client();
                for round in 0..4 {
                    assert_eq!(
                        client.query(&format!("SELECT slow({id}), {round}")),
                        [format!("{id}|{round}")]
                    );
                    assert_eq!(client.query(&format!("SELECT {id}")), [id.to_string()]);
                    assert_eq!(client.query("SHOW statement_timeout"), ["0"]);
                }
            });
        }
    });
}

/// An open transaction has a server of its own, whatever others do meanwhile.
#[test]
fn a_transaction_is_its_clients_own() {
    let stage = shared("pipelining_block", 2);
    let mut alice = stage.client();
    alice.query("BEGIN");
    alice.query("UPDATE counters SET n = 7 WHERE id = 1");
    let mut others: Vec<_> = (0..8).map(|_| stage.client()).collect();
    for other in &mut others {
        other.send(&query("SELECT n FROM counters WHERE id = 1")).unwrap();
    }
    for other in &mut others {
        let reply = other.read_until_ready().unwrap();
        let row = reply.iter().find(|message| message.tag == b'D').unwrap();
        assert_eq!(row.values(), [Some(b"0".to_vec())]);
    }
    // Bob's waits for Alice's lock, and holds nobody up for longer than the brake.
    let mut bob = stage.client();
    bob.send(&query("UPDATE counters SET n = n + 1 WHERE id = 1")).unwrap();
    eventually("bob to wait for a lock", || stage.backends("wait_event_type = 'Lock'") == 1);
    alice.query("COMMIT");
    bob.read_until_ready().unwrap();
    assert_eq!(alice.query("SELECT n FROM counters WHERE id = 1"), ["8"]);
}

/// Two clients, of whom Alice has several connections.
struct Circle {
    stage: Stage,
    alice: WireClient,
    others_of_alice: Vec<WireClient>,
    bob: WireClient,
}

impl Circle {
    /// There are more of Alice's connections than servers, so that some stand behind Bob.
    fn new(name: &str, pipelining: &str) -> Self {
        let stage = Stage::with(name, 3, |config| {
            config.general("pipelining", &format!("\"{pipelining}\""))
        });
        stage.ask(&format!(
            "CREATE TABLE kept (id int PRIMARY KEY, n int NOT NULL);
             INSERT INTO kept SELECT id, 0 FROM generate_series(0, 9) AS id;
             CREATE TABLE referenced (id int PRIMARY KEY);
             INSERT INTO referenced VALUES (0);
             CREATE TABLE late (id int REFERENCES referenced DEFERRABLE INITIALLY DEFERRED);
             GRANT ALL ON kept, referenced, late TO {name}"
        ));
        let [alice, bob] = [stage.client(), stage.client()];
        let others_of_alice = (1..7).map(|_| stage.client()).collect();
        Self { stage, alice, others_of_alice, bob }
    }

    /// Bob waits for Alice's transaction, and she for the answers to what she says on her other
    /// connections. Says whether one of these has stood behind Bob's for most of the brake.
    fn closes(&mut self, waits: &str) -> bool {
        let Self { stage, alice, others_of_alice, bob } = self;
        let before = long_delays(stage);
        alice.query(
            "BEGIN; UPDATE kept SET n = 0 WHERE id = 0; UPDATE referenced SET id = 1 WHERE id = 0",
        );
        bob.send(&query(waits)).unwrap();
        for (id, other) in (1..).zip(&mut *others_of_alice) {
            other.send(&query(&format!("UPDATE kept SET n = n + 1 WHERE id = {id}"))).unwrap();
        }
        for other in others_of_alice {
            let reply = other.read_until_ready().unwrap();
            assert_eq!(reply[0].tag, b'C', "{waits}: {reply:?}");
        }
        eventually("bob to wait", || stage.backends("wait_event_type = 'Lock'") == 1);
        alice.query("ROLLBACK");
        let reply = bob.read_until_ready().unwrap();
        assert_eq!(reply[0].tag, b'C', "{waits}: {reply:?}");
        long_delays(stage) > before
    }
}

/// So many statements have stood behind others for more than 16 ms.
fn long_delays(stage: &Stage) -> u64 {
    let rows = stage.console("SHOW PIPELINING");
    let long = rows.iter().filter_map(|row| {
        let [_, _, delay, statements, _] = row.split('|').collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        // That of the longest ones is NULL.
        let is_long = delay.parse::<u64>().is_ok_and(|longest| longest <= 16_384);
        (!is_long).then(|| statements.parse::<u64>().unwrap())
    });
    long.sum()
}

/// What a client waits for may be its own: it has two connections, and what it says on one stands
/// behind somebody else's statement that waits for the other one's transaction. Nobody but the
/// brake sees that, for PostgreSQL finds no circle there.
#[test]
fn who_waits_for_a_transaction_does_not_hold_up_its_owner() {
    for (name, pipelining) in [("pipelining_circle", "1x8"), ("pipelining_circle_auto", "auto")] {
        let mut circle = Circle::new(name, pipelining);
        let mut closed = 0;
        // What overruns is not put in front of others again, so each time it is another one.
        for letters in ('a'..='z').flat_map(|a| ('a'..='z').map(move |b| format!("{a}{b}"))) {
            let update = |id: usize| {
                format!("UPDATE kept AS _{letters} SET n = n + 1 WHERE _{letters}.id = {id}")
            };
            // Two runs show that it is short.
            for id in [8, 9] {
                circle.bob.query(&update(id));
            }
            if circle.closes(&update(0)) {
                closed += 1;
                let ended = format!("STATEMENT:  {}", update(0));
                eventually("the brake to end it", || CLUSTER.log().contains(&ended));
            }
            // A busy machine may be too late, or take the two in the other order.
            if closed == 4 {
                break;
            }
        }
        assert_eq!(closed, 4, "with {pipelining} nobody stood behind who waits");
        // What comes with the commit would wait there, under no brake: whoever stood behind it
        // would have no answer before Alice has one.
        let late = "INSERT INTO late VALUES (0)";
        for _ in 0..2 {
            circle.closes(late);
        }
        let route = circle.stage.console(&format!("EXPLAIN ROUTE {late}")).concat();
        let why = "or a constraint that waits for the end of the transaction";
        assert!(route.contains("|no|") && route.contains(why), "{route}");
    }
}

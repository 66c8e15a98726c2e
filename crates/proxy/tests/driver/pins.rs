//! Servers that clients keep: how many of them may be, and for what.

use pgweir_engine::{Mark, PinPolicy, PinView, ServerActivity};

use crate::messages::{
    bind, bind_complete, bind_to, done, error, execute, flush, in_block, in_failed_block, left,
    no_data, no_parameters, one_row, parameter_status, parse, parse_as, parse_complete, query,
    ready, set_to, sync, terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

/// What a server is sent in place of a statement that is not to be run.
const FAILS: &str =
    "SELECT CAST('pgweir refuses a statement that would keep this server' AS pg_catalog.int4)";

/// Alice has a lock on one of two servers, the only one that may be kept; Bob has the other, within
/// a transaction if `in_transaction`.
struct Scene {
    stage: Stage,
    alice: Peer,
    first: Peer,
    bob: Peer,
    second: Peer,
}

impl Scene {
    fn new() -> Self {
        let (stage, first, alice) = Stage::ready(&Setup::of_size(2));
        alice.says([query("SELECT pg_advisory_lock(1)")]);
        assert_eq!(first.heard(), "Q(SELECT pg_advisory_lock(1))");
        first.says([done(), ready()]);
        assert_eq!(first.heard(), "Q(left?)");
        first.says([left("a")]);
        assert_eq!(alice.heard(), "C Z");
        let bob = stage.client();
        bob.says([query("SELECT 1")]);
        let second = stage.server();
        assert_eq!(second.heard(), "Q(SELECT 1)");
        second.says([done(), ready()]);
        assert_eq!(bob.heard(), "C Z");
        Self { stage, alice, first, bob, second }
    }

    /// What is counted for a reason.
    fn pins(&self, kind: &str) -> PinView {
        let snapshot = self.stage.snapshot();
        let mut pins = snapshot.pools.iter().flat_map(|pool| &pool.pins);
        *pins.find(|pin| pin.kind == kind).expect("it is listed")
    }
}

/// The whole error that a client has heard.
fn words(heard: &[u8]) -> String {
    String::from_utf8_lossy(heard).replace('\0', "|")
}

#[test]
fn one_more_than_may_be_kept_is_refused() {
    let scene = Scene::new();
    scene.bob.says([query("SELECT pg_advisory_lock(2)")]);
    assert_eq!(scene.second.heard(), format!("Q({FAILS})"));
    scene.second.says([error("22P02"), ready()]);
    let heard = words(&scene.bob.heard_bytes());
    for part in [
        "C53300|Mtoo many servers of pool \"db/user\" are kept by their clients|",
        "D1 of 2 servers are kept: advisory lock 1. \
         This statement would keep one more: advisory lock.|",
        "|HRaise max_pinned, ",
    ] {
        assert!(heard.contains(part), "{part}: {heard}");
    }
    assert_eq!(scene.second.heard(), "", "nothing is left there");
    let states = scene.stage.servers();
    assert_eq!(states.iter().filter(|it| **it == ServerActivity::Idle).count(), 1);
    let locks = scene.pins("advisory lock");
    assert_eq!((locks.servers, locks.begun, locks.refused), (1, 1, 1));
    assert_eq!(locks.policy, PinPolicy::Pin);
}

/// Nobody listens for a client of another encoding, which keeps its server.
#[test]
fn who_listens_in_another_encoding_counts() {
    let scene = Scene::new();
    let odd = scene.stage.newcomer(&[("client_encoding", "LATIN1")]);
    assert!(!odd.is_greeted());
    scene.second.heard();
    scene.second.says([parameter_status("client_encoding", "LATIN1"), one_row("LATIN1")]);
    assert!(odd.is_greeted());
    odd.says([query("LISTEN a")]);
    assert_eq!(scene.second.heard(), format!("Q({FAILS})"));
    let plain = Scene::new();
    plain.bob.says([query("LISTEN a")]);
    assert_eq!(plain.second.heard(), "Q(LISTEN a)");
}

/// To forget what was prepared keeps nothing, though it is shown what its client has prepared.
#[test]
fn who_forgets_is_not_refused() {
    for text in ["DEALLOCATE ALL", "DISCARD ALL"] {
        let scene = Scene::new();
        scene.bob.says([parse_as("s", "SELECT 1"), sync()]);
        scene.second.heard();
        scene.second.says([parse_complete(), no_parameters(), no_data(), ready()]);
        assert_eq!(scene.bob.heard(), "1 Z");
        scene.bob.says([query(text)]);
        assert_eq!(scene.second.heard(), format!("Q({text})"));
        scene.second.says([done(), ready()]);
        assert_eq!(scene.bob.heard(), "C Z");
    }
}

/// What does not keep a server is run, and so is what is said by a client that keeps one already.
#[test]
fn nothing_else_is_refused() {
    let scene = Scene::new();
    scene.alice.says([query("CREATE TEMP TABLE t (a int)")]);
    assert_eq!(scene.first.heard(), "Q(CREATE TEMP TABLE t (a int))");
    scene.bob.says([query("SELECT pg_advisory_xact_lock(1)")]);
    assert_eq!(scene.second.heard(), "Q(SELECT pg_advisory_xact_lock(1))");
}

#[test]
fn where_one_has_let_go_another_may_keep_its_own() {
    let scene = Scene::new();
    scene.alice.says([terminate()]);
    assert_eq!(scene.first.heard(), "Q(DISCARD ALL)");
    scene.bob.says([query("SELECT pg_advisory_lock(2)")]);
    assert_eq!(scene.second.heard(), "Q(SELECT pg_advisory_lock(2))");
}

/// What is asked for just now is waited for, in whatever way it is sent: nobody is refused what
/// comes free.
#[test]
fn the_answer_of_a_server_is_waited_for() {
    const LOCK: &str = "SELECT pg_advisory_lock(2)";
    let locks: [&[Vec<u8>]; 2] = [&[query(LOCK)], &[parse(LOCK), bind(), execute(), sync()]];
    for (batch, sent) in locks.into_iter().zip(["Q(LOCK)", "P(LOCK) B E S"]) {
        let sent = |text: &str| sent.replace("LOCK", text);
        for left_there in ["", "a"] {
            let scene = Scene::new();
            scene.alice.says([query("SELECT pg_advisory_unlock(1)")]);
            scene.first.says([done(), ready()]);
            assert_eq!(scene.first.heard(), "Q(SELECT pg_advisory_unlock(1)) Q(left?)");
            scene.bob.says(batch);
            assert_eq!(scene.second.heard(), "");
            scene.first.says([left(left_there)]);
            if left_there.is_empty() {
                assert_eq!(scene.second.heard(), sent(LOCK));
            } else {
                assert_eq!(scene.second.heard(), sent(FAILS));
            }
        }
    }
}

/// The client that is waited for leaves, and with it what it keeps its server for; or the server is
/// lost.
#[test]
fn an_answer_that_does_not_come_is_not_waited_for() {
    for is_lost in [false, true] {
        let scene = Scene::new();
        scene.alice.says([query("SELECT pg_advisory_unlock(1)")]);
        scene.first.says([done(), ready()]);
        assert_eq!(scene.first.heard(), "Q(SELECT pg_advisory_unlock(1)) Q(left?)");
        scene.bob.says([query("SELECT pg_advisory_lock(2)")]);
        assert_eq!(scene.second.heard(), "");
        if is_lost {
            scene.first.breaks();
        } else {
            scene.alice.says([terminate()]);
        }
        assert_eq!(scene.second.heard(), "Q(SELECT pg_advisory_lock(2))", "{is_lost}");
    }
}

#[test]
fn a_transaction_fails_with_its_statement() {
    let scene = Scene::new();
    scene.bob.says([query("BEGIN")]);
    assert_eq!(scene.second.heard(), "Q(BEGIN)");
    scene.second.says([done(), in_block()]);
    scene.bob.says([query("CREATE TEMP TABLE t (a int)"), query("COMMIT")]);
    assert_eq!(scene.second.heard(), format!("Q({FAILS}) Q(COMMIT)"));
    scene.second.says([error("22P02"), in_failed_block(), done(), ready()]);
    assert_eq!(scene.bob.heard(), "C Z(T) E(53300) Z(E) C Z");
    assert_eq!(scene.second.heard(), "", "nothing is left there");
}

#[test]
fn a_batch_fails_with_its_statement() {
    let scene = Scene::new();
    scene.bob.says([parse("SELECT pg_advisory_lock(2)"), bind(), execute(), sync()]);
    assert_eq!(scene.second.heard(), format!("P({FAILS}) B E S"));
    scene.second.says([error("22P02"), ready()]);
    assert_eq!(scene.bob.heard(), "E(53300) Z");
    assert_eq!(scene.second.heard(), "", "nothing is left there");
    // As on a connection of its own, there is no unnamed statement behind that.
    scene.bob.says([bind(), execute(), sync()]);
    assert!(!scene.second.heard().contains("SELECT pg_advisory_lock(3)"));
}

/// What was prepared by name may be prepared, and fails where it is run.
#[test]
fn a_prepared_statement_fails_where_it_is_run() {
    let scene = Scene::new();
    scene.bob.says([parse_as("s", "SELECT pg_advisory_lock(2)"), sync()]);
    assert_eq!(scene.second.heard(), "P(pgweir_1=SELECT pg_advisory_lock(2)) D(pgweir_1) S");
    scene.second.says([parse_complete(), no_parameters(), no_data(), ready()]);
    assert_eq!(scene.bob.heard(), "1 Z");
    scene.bob.says([bind_to("s"), execute(), sync()]);
    assert_eq!(scene.second.heard(), "B(pgweir_) E S");
    scene.second.says([error("26000"), ready()]);
    assert_eq!(scene.bob.heard(), "E(53300) Z");
}

/// The statement of an earlier batch is run again, where another client has begun to keep a server
/// in between.
#[test]
fn an_unnamed_statement_fails_where_it_is_run() {
    let (stage, first, bob) = Stage::ready(&Setup::of_size(2));
    bob.says([parse("SELECT pg_advisory_lock(2)"), sync()]);
    assert_eq!(first.heard(), "P(SELECT pg_advisory_lock(2)) S");
    first.says([parse_complete(), ready()]);
    assert_eq!(first.heard(), "Q(left?)");
    first.says([left("")]);
    let alice = stage.client();
    alice.says([query("SELECT pg_advisory_lock(1)")]);
    assert_eq!(first.heard(), "Q(SELECT pg_advisory_lock(1))");
    first.says([done(), ready()]);
    assert_eq!(first.heard(), "Q(left?)");
    first.says([left("a")]);
    bob.says([bind(), execute(), sync()]);
    let second = stage.server();
    assert_eq!(second.heard(), "B(pgweir_) E S");
    second.says([error("26000"), ready()]);
    assert_eq!(bob.heard(), "1 Z E(53300) Z");
}

/// Each is told in its own place.
#[test]
fn one_that_is_refused_behind_another_is_told_why() {
    let setup = Setup { pool: "pin_refuse = 'temp table'", ..Setup::default() };
    let (_stage, server, alice) = Stage::ready(&setup);
    let [one, two] = ["CREATE TEMP TABLE a (a int)", "CREATE TEMP TABLE b (a int)"].map(query);
    alice.says([one, two]);
    assert_eq!(server.heard(), format!("Q({FAILS}) Q({FAILS})"));
    server.says([error("22P02"), ready(), error("22P02"), ready()]);
    assert_eq!(alice.heard(), "E(0A000) Z E(0A000) Z");
}

/// Only the first error of a batch is told, whosever it is.
#[test]
fn an_error_in_front_is_told_as_it_is() {
    let scene = Scene::new();
    let wrong = [parse("wrong"), bind(), execute(), flush()];
    scene.bob.says(wrong.into_iter().chain([parse("SELECT pg_advisory_lock(2)"), sync()]));
    assert_eq!(scene.second.heard(), format!("P(wrong) B E H P({FAILS}) S"));
    scene.second.says([error("42601"), ready()]);
    assert_eq!(scene.bob.heard(), "E(42601) Z");
    scene.bob.says([query("wrong")]);
    scene.second.says([error("42601"), ready()]);
    assert_eq!(scene.bob.heard(), "E(42601) Z");
}

#[test]
fn what_is_refused_by_its_kind_is_refused_to_everybody() {
    let setup = Setup { pool: "pin_refuse = 'temp table'", ..Setup::default() };
    let (stage, server, alice) = Stage::ready(&setup);
    alice.says([query("CREATE TEMP TABLE t (a int)")]);
    assert_eq!(server.heard(), format!("Q({FAILS})"));
    server.says([error("22P02"), ready()]);
    let heard = words(&alice.heard_bytes());
    assert!(heard.contains("C0A000|Mpool \"db/user\" refuses what keeps a server: temp table|"));
    alice.says([query("SELECT pg_advisory_lock(1)")]);
    assert_eq!(server.heard(), "Q(SELECT pg_advisory_lock(1))", "other kinds are not");
    server.says([done(), ready()]);
    let snapshot = stage.snapshot();
    let pins = &snapshot.pools[0].pins;
    let counted = pins.iter().filter(|pin| pin.begun + pin.refused > 0);
    let counted: Vec<_> = counted.map(|pin| (pin.kind, pin.begun, pin.refused)).collect();
    assert_eq!(counted, [("advisory lock", 1, 0), ("temp table", 0, 1)]);
}

#[test]
fn what_is_ignored_keeps_no_server() {
    let setup = Setup { pool: "pin_ignore = 'temp table, advisory lock'", ..Setup::default() };
    let (stage, server, alice) = Stage::ready(&setup);
    for text in ["CREATE TEMP TABLE t (a int)", "SELECT pg_advisory_lock(1)"] {
        alice.says([query(text)]);
        assert_eq!(server.heard(), format!("Q({text})"));
        server.says([done(), ready()]);
        assert_eq!(stage.servers(), [ServerActivity::Idle]);
    }
    alice.says([terminate()]);
    assert_eq!(server.heard(), "", "nothing is removed");
}

/// A session has its server anyway, and what it leaves is removed behind it.
#[test]
fn sessions_are_not_limited() {
    let setup = Setup {
        pool: "pin_refuse = 'temp table'\npin_ignore = 'advisory lock'",
        ..Setup::of_mode("session")
    };
    let (stage, server, alice) = Stage::ready(&setup);
    for text in ["CREATE TEMP TABLE t (a int)", "SELECT pg_advisory_lock(1)"] {
        alice.says([query(text)]);
        assert_eq!(server.heard(), format!("Q({text})"));
        server.says([done(), ready()]);
    }
    assert!(stage.snapshot().pools[0].pins.is_empty());
    alice.says([terminate()]);
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
}

#[test]
fn without_a_limit_all_servers_may_be_kept() {
    let setup = Setup { user: "max_pinned = 'off'", ..Setup::of_size(2) };
    let (stage, first, alice) = Stage::ready(&setup);
    alice.says([query("SELECT pg_advisory_lock(1)")]);
    assert_eq!(first.heard(), "Q(SELECT pg_advisory_lock(1))");
    let bob = stage.client();
    bob.says([query("SELECT pg_advisory_lock(2)")]);
    let second = stage.server();
    assert_eq!(second.heard(), "Q(SELECT pg_advisory_lock(2))");
    assert_eq!(stage.snapshot().pools[0].max_pinned, None);
}

/// What was prepared on a kept server takes settings back when it is run: that keeps it no longer
/// than what it was kept for.
#[test]
fn to_take_settings_back_keeps_no_server() {
    let scene = Scene::new();
    let (alice, first) = (&scene.alice, &scene.first);
    alice.says([parse_as("s", "RESET ALL"), bind_to("s"), execute(), sync()]);
    assert_eq!(first.heard(), "P(s=RESET ALL) B(s) E S");
    first.says([parse_complete(), bind_complete(), done(), ready()]);
    assert_eq!(alice.heard(), "1 2 C Z");
    alice.says([query("SELECT pg_advisory_unlock(1); DEALLOCATE s")]);
    first.heard();
    first.says([done(), done(), ready()]);
    assert_eq!(first.heard(), "Q(left?)");
    first.says([left("")]);
    assert_eq!(first.heard(), "Q(set to?)");
    first.says([set_to(&[])]);
    let states = scene.stage.servers();
    assert_eq!(states.iter().filter(|it| **it == ServerActivity::Idle).count(), 2);
}

/// A value that is sent by itself may be `pg_temp`: what is created under it is looked for.
#[test]
fn what_is_created_under_a_path_that_no_text_shows_may_be_temporary() {
    for (text, asks) in [("CREATE TABLE t ()", true), ("INSERT INTO t VALUES (1)", false)] {
        let (_stage, server, alice) = Stage::ready(&Setup::default());
        let run = |text, status| {
            alice.says([query(text)]);
            server.says([done(), status]);
        };
        run("BEGIN", in_block());
        alice.says([
            parse("SELECT set_config('search_path', $1, true)"),
            bind(),
            execute(),
            sync(),
        ]);
        server.says([parse_complete(), bind_complete(), done(), in_block()]);
        run(text, in_block());
        took(Mark::StateAsked);
        run("COMMIT", ready());
        assert_eq!(took(Mark::StateAsked), asks, "{text}");
    }
}

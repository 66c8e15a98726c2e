//! A server is lost, at any point: its client hears what is known of its unit, and nothing at all
//! if nothing of it was sent (docs/failures.md).

use std::time::Duration;

use pgweir_engine::{ClientState, Event, Mark, ServerActivity};

use crate::messages::{
    bind, bind_complete, bind_to, columns, copy_data, copy_done, copy_fail, copy_in,
    describe_statement, done, error, execute, fatal, flush, in_block, in_failed_block, long_row,
    one_row, parse, parse_as, parse_complete, query, ready, row, sync, terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

/// The ways to be lost.
const WAYS: [fn(&Peer); 2] = [Peer::ends, Peer::breaks];

fn lost(stage: &Stage) -> bool {
    stage.log().iter().any(|event| matches!(event, Event::ServerLost { .. }))
}

/// The end of an idle server was never read: its connection leaked, and its place in the pool.
#[test]
fn an_idle_server_that_is_lost_is_replaced_when_it_is_needed() {
    for lose in WAYS {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        lose(&server);
        assert!(lost(&stage));
        assert!(server.is_aborted());
        assert_eq!((stage.servers(), stage.connections()), (vec![], 1));
        alice.says([query("SELECT")]);
        let next = stage.server();
        assert_eq!(next.heard(), "Q(SELECT)");
        next.says([one_row("1")]);
        assert_eq!(alice.heard(), "T D(1) C Z");
    }
}

/// Nobody knows whether the statement was carried out: it must not be run again.
#[test]
fn a_server_lost_with_a_unit_leaves_its_outcome_open() {
    for lose in WAYS {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([query("INSERT")]);
        lose(&server);
        assert_eq!(alice.heard(), "E(08007) Z");
        assert_eq!((stage.servers(), stage.attempts()), (vec![], 0));
        alice.says([query("SELECT")]);
        let next = stage.server();
        assert_eq!(next.heard(), "Q(SELECT)");
        next.says([one_row("1")]);
        assert_eq!(alice.heard(), "T D(1) C Z");
    }
}

/// The same for a batch whose end has not come: what is still to come of it is passed over.
#[test]
fn a_server_lost_with_a_part_of_a_batch_passes_over_the_rest() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("INSERT"), bind(), execute(), flush()]);
    server.ends();
    assert_eq!(alice.heard(), "E(08007)");
    alice.says([bind(), execute(), sync()]);
    assert_eq!(alice.heard(), "Z");
    assert_eq!(stage.attempts(), 0);
}

/// Whoever has sent more than a unit of which the server had a part has not waited for its answer:
/// what stood behind a BEGIN ran on its own, and was committed.
#[test]
fn who_has_sent_more_behind_a_unit_that_is_lost_on_its_way_is_ended() {
    let cases = [
        (vec![query("INSERT")], "E(FATAL 57P01)"),
        (vec![flush(), flush(), query("INSERT")], "E(FATAL 57P01)"),
        (vec![flush()], "Z"),
        (vec![flush()[..3].to_vec()], "Z"),
        (vec![flush(), terminate()], "Z"),
        (vec![terminate()], "Z"),
        // What PostgreSQL passes over: the unit may have been a COPY.
        (vec![copy_data(b"1"), copy_done()], "Z"),
        (vec![copy_fail(), flush()[..2].to_vec()], "Z"),
        (vec![copy_data(b"1")[..3].to_vec()], "Z"),
        (vec![copy_data(b"1"), copy_done(), query("INSERT")], "E(FATAL 57P01)"),
        (vec![], "Z"),
    ];
    for (behind, told) in cases {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([parse("BEGIN"), bind(), execute(), flush()]);
        server.ends();
        assert_eq!(alice.heard(), "E(08007)");
        alice.says([sync()].into_iter().chain(behind.clone()));
        assert_eq!((alice.heard().as_str(), stage.attempts()), (told, 0));

        let (stage, server, alice) = Stage::ready(&Setup::default());
        let begin = query(&["BEGIN; ", &"INSERT; ".repeat(20_000)].concat());
        alice.sends(&begin[..100_000]);
        server.ends();
        assert_eq!(alice.heard(), "E(08007)");
        alice.sends(&begin[100_000..150_000]);
        assert_eq!(alice.heard(), "");
        alice.says([begin[150_000..].to_vec()].into_iter().chain(behind));
        assert_eq!((alice.heard().as_str(), stage.attempts()), (told, 0));
    }
}

/// Data of a COPY belong to no answer: its unit is over, however many of them are still to come.
#[test]
fn a_server_lost_with_a_part_of_copy_data_is_told_at_once() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let data = copy_data(&[b'x'; 50_000]);
    alice.says([parse("COPY t FROM STDIN"), bind(), execute(), sync()]);
    alice.sends(&data[..30_000]);
    server.ends();
    assert_eq!(alice.heard(), "E(08007) Z");
    alice.says([data[30_000..].to_vec(), copy_done(), sync(), query("SELECT")]);
    assert_eq!(stage.server().heard(), "S Q(SELECT)");
}

/// What is still to come of such data behind an error asks for nothing: its client has lost neither
/// a statement nor a transaction, and must not be told so.
#[test]
fn a_server_lost_with_a_part_of_copy_data_behind_its_answer_is_no_news() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let data = copy_data(&[b'x'; 50_000]);
    alice.says([query("COPY t FROM STDIN")]);
    server.says([copy_in()]);
    alice.sends(&data[..30_000]);
    server.says([error("22P04"), ready()]);
    server.ends();
    alice.says([data[30_000..].to_vec(), query("SELECT")]);
    assert_eq!(stage.server().heard(), "Q(SELECT)");
    assert_eq!(alice.heard(), "G E(22P04) Z");
}

/// What was forwarded cannot be taken back.
#[test]
fn a_server_lost_inside_a_reply_ends_its_client() {
    for lose in WAYS {
        let (_stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([query("SELECT")]);
        server.says([columns(), row(b"1")]);
        lose(&server);
        assert_eq!(alice.heard(), "T D(1) E(FATAL 57P01)");
        assert!(alice.is_closed());
    }
}

/// A client that has said that it leaves was waiting for nothing but this.
#[test]
fn a_server_lost_with_the_last_unit_of_a_client_lets_it_go() {
    for mode in ["session", "transaction", "statement"] {
        let (stage, server, alice) = Stage::ready(&Setup::of_mode(mode));
        alice.says([query("INSERT"), terminate()]);
        server.ends();
        let told = if mode == "session" { "E(FATAL 08007)" } else { "E(08007) Z" };
        assert_eq!((alice.heard().as_str(), alice.is_closed()), (told, true), "{mode}");
        assert_eq!(stage.connections(), 0);
    }
}

/// Of several units some may have been carried out, and some not.
#[test]
fn a_server_lost_with_a_pipeline_ends_its_client() {
    let mixed = [parse("INSERT 1"), bind(), execute(), query("INSERT 2")].concat();
    for units in [[query("INSERT 1"), query("INSERT 2")].concat(), mixed] {
        let (_stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([units]);
        server.ends();
        assert_eq!(alice.heard(), "E(FATAL 08007)");
        assert!(alice.is_closed());
    }
}

/// What stood behind a lost BEGIN ran on its own on another server, and was committed.
#[test]
fn a_server_lost_with_a_pipeline_that_is_held_back_ends_its_client() {
    for farewell in [None, Some("57P05")] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        let bob = stage.client();
        alice.says([query("BEGIN")]);
        bob.says([query("bob")]);
        alice.says([query("INSERT"), query("COMMIT")]);
        assert_eq!(server.heard(), "Q(BEGIN)");
        farewell.into_iter().for_each(|code| server.says([fatal(code)]));
        server.ends();
        let told = farewell.unwrap_or("08007");
        assert_eq!((alice.heard(), alice.is_closed()), (format!("E(FATAL {told})"), true));
        assert_eq!(stage.server().heard(), "Q(bob)");
    }
}

/// What a session has on its server is gone with it: a client that goes on would miss it.
#[test]
fn a_server_lost_with_a_session_ends_its_client() {
    for text in ["SET a = 1", "LISTEN a"] {
        let (_stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([query(text)]);
        server.says([done(), ready()]);
        assert_eq!(alice.heard(), "C Z");
        server.ends();
        assert_eq!(alice.heard(), "E(FATAL 57P01)");
        assert!(alice.is_closed());
    }
    let (_stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    alice.says([query("INSERT")]);
    server.ends();
    assert_eq!(alice.heard(), "E(FATAL 08007)");
    assert!(alice.is_closed());
    // A transaction is undone, unless a COMMIT was sent.
    for (text, code) in [("INSERT", "57P01"), ("COMMIT", "08007")] {
        let (_stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
        alice.says([query("BEGIN")]);
        server.says([done(), in_block()]);
        alice.says([query(text)]);
        server.ends();
        assert_eq!(alice.heard(), format!("C Z(T) E(FATAL {code})"));
    }
}

/// A Query in the place of a Sync makes it unclear what a loss costs, but only as long as it is
/// under way.
#[test]
fn what_was_mixed_is_forgotten_when_it_is_answered() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("INSERT 1"), bind(), execute(), query("INSERT 2")]);
    server.says([parse_complete(), bind_complete(), done(), done(), ready()]);
    assert_eq!(alice.heard(), "1 2 C C Z");
    alice.says([query("INSERT 3")]);
    server.ends();
    assert_eq!(alice.heard(), "E(08007) Z");
}

/// A portal that commits lasts as long as its transaction.
#[test]
fn what_may_commit_is_forgotten_with_its_transaction() {
    let (_stage, server, alice) = in_transaction();
    alice.says([parse("COMMIT"), bind(), execute(), sync()]);
    server.says([parse_complete(), bind_complete(), done(), ready()]);
    assert_eq!(alice.heard(), "1 2 C Z");
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    assert_eq!(alice.heard(), "C Z(T)");
    alice.says([parse("SELECT"), bind(), execute(), sync()]);
    server.ends();
    assert_eq!(alice.heard(), "E(40001) Z(E)");
}

/// A client in a transaction, and its server.
fn in_transaction() -> (Stage, Peer, Peer) {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    assert_eq!((server.heard().as_str(), alice.heard().as_str()), ("Q(BEGIN)", "C Z(T)"));
    (stage, server, alice)
}

/// The client's transaction fails on another server as it has failed on the one that is lost.
fn fails_transaction(server: &Peer) {
    let heard = server.heard();
    assert!(heard.starts_with("Q(BEGIN; SELECT CAST("), "{heard}");
    server.says([done(), error("22P02"), in_failed_block()]);
}

/// A transaction of which no COMMIT was sent is rolled back: it can be run again, and whatever the
/// client says before it ends it is answered by a server.
#[test]
fn a_server_lost_inside_a_transaction_is_a_serialization_failure() {
    let (stage, server, alice) = in_transaction();
    alice.says([query("INSERT")]);
    server.ends();
    assert_eq!(alice.heard(), "E(40001) Z(E)");
    alice.says([query("SELECT")]);
    let next = stage.server();
    fails_transaction(&next);
    assert_eq!(next.heard(), "Q(SELECT)");
    next.says([error("25P02"), in_failed_block()]);
    assert_eq!(alice.heard(), "E(25P02) Z(E)");
    alice.says([query("ROLLBACK")]);
    assert_eq!(next.heard(), "Q(ROLLBACK)");
    next.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// The same with a part of a Query, which PostgreSQL begins when it has all of it: a COMMIT in the
/// rest was sent to nobody. What stands behind is refused by a server, and ended its client.
#[test]
fn a_server_lost_with_a_part_of_a_query_in_a_transaction_is_a_serialization_failure() {
    let (stage, server, alice) = in_transaction();
    let long = query(&["INSERT; ".repeat(5_000).as_str(), "COMMIT"].concat());
    alice.sends(&long[..30_000]);
    server.ends();
    assert_eq!(alice.heard(), "E(40001)");
    alice.says([long[30_000..].to_vec(), query("INSERT")]);
    let next = stage.server();
    fails_transaction(&next);
    assert_eq!((next.heard().as_str(), alice.heard().as_str()), ("Q(INSERT)", "Z(E)"));
}

/// Its client is not between transactions before it has ended the one that it has lost: neither is
/// it idle outside of one, nor has it come to where it can be asked to leave.
#[test]
fn a_lost_transaction_is_not_over() {
    for told in [false, true] {
        let (stage, server, alice) = Stage::ready(&Setup::with("client_idle_timeout = 5000"));
        alice.says([query("BEGIN")]);
        server.says([done(), in_block()]);
        if told {
            alice.says([query("INSERT")]);
        }
        server.ends();
        let _lost = alice.heard();
        stage.wait(Duration::from_millis(5_100));
        stage.drain();
        assert_eq!((alice.heard().as_str(), alice.is_open()), ("", true));
        alice.says([query("ROLLBACK")]);
        let next = stage.server();
        fails_transaction(&next);
        next.says([done(), ready()]);
        assert_eq!(alice.heard(), "C Z E(FATAL 57P01)");
    }
}

/// From its next statement on it has a server, which it keeps from others.
#[test]
fn a_client_that_goes_on_in_a_lost_transaction_is_not_silent_in_it_for_ever() {
    let setup = Setup::with("idle_client_in_transaction_timeout = 5000");
    let (stage, server, alice) = Stage::ready(&setup);
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    alice.says([query("INSERT")]);
    server.ends();
    stage.wait(Duration::from_millis(5_100));
    assert_eq!(alice.heard(), "C Z(T) E(40001) Z(E)");
    alice.says([query("SELECT")]);
    let next = stage.server();
    fails_transaction(&next);
    next.says([error("25P02"), in_failed_block()]);
    stage.wait(Duration::from_millis(5_100));
    assert_eq!(alice.heard(), "E(25P02) Z(E) E(FATAL 25P03)");
    assert_eq!(next.heard(), "Q(SELECT) Q(ROLLBACK)");
}

/// A client between two statements hears of it with the next one, even if that is COMMIT.
#[test]
fn a_server_lost_between_statements_is_told_with_the_next_one() {
    for next in ["SELECT", "COMMIT"] {
        let (stage, server, alice) = in_transaction();
        server.ends();
        assert_eq!((alice.heard().as_str(), stage.attempts()), ("", 0));
        alice.says([query(next)]);
        assert_eq!((alice.heard().as_str(), stage.attempts()), ("E(40001) Z(E)", 0));
    }
    let (_stage, server, alice) = in_transaction();
    server.ends();
    alice.says([parse("SELECT"), bind(), execute(), sync()]);
    assert_eq!(alice.heard(), "E(40001) Z(E)");
    let (_stage, server, alice) = in_transaction();
    server.ends();
    alice.says([sync()]);
    assert_eq!(alice.heard(), "E(40001) Z(E)");
}

/// A cancel finds a unit that waits for a server, also in a transaction that was lost.
#[test]
fn a_unit_in_a_lost_transaction_can_be_cancelled() {
    let (stage, server, alice) = in_transaction();
    alice.says([query("INSERT")]);
    server.ends();
    alice.says([query("SELECT")]);
    assert_eq!(alice.heard(), "E(40001) Z(E)");
    assert!(stage.cancel(&alice).is_closed());
    assert_eq!(alice.heard(), "E(57014) Z(E)");
}

/// Whoever gives the transaction up has lost nothing.
#[test]
fn a_server_lost_between_statements_is_no_news_for_a_rollback() {
    let rollbacks = [
        query("ROLLBACK; SELECT"),
        [parse("abort"), bind(), execute(), sync()].concat(),
        [parse("abort"), describe_statement(""), bind(), execute(), parse("SELECT"), sync()]
            .concat(),
    ];
    for rollback in rollbacks {
        let (stage, server, alice) = in_transaction();
        server.ends();
        alice.says([rollback]);
        let next = stage.server();
        fails_transaction(&next);
        assert_eq!(alice.heard(), "");
        let heard = next.heard();
        assert!(
            heard.starts_with("Q(ROLLBACK; SELECT)") || heard.starts_with("P(abort)"),
            "{heard}"
        );
    }
}

/// Its client must hear why its transaction is gone, and not just that it is.
#[test]
fn a_rollback_that_gives_nothing_up_hears_of_the_loss() {
    let units = [
        query("ROLLBACK TO SAVEPOINT a"),
        query("ROLLBACK PREPARED 'a'"),
        // Prepared, and not carried out; or another one is.
        [parse("rollback"), sync()].concat(),
        [parse("rollback"), describe_statement(""), sync()].concat(),
        [parse("rollback"), bind(), sync()].concat(),
        [parse("rollback"), parse("INSERT"), bind(), execute(), sync()].concat(),
        [parse("rollback"), bind_to("other"), execute(), sync()].concat(),
        [parse_as("other", "rollback"), bind(), execute(), sync()].concat(),
    ];
    for unit in units {
        let (_stage, server, alice) = in_transaction();
        server.ends();
        alice.says([unit]);
        assert_eq!(alice.heard(), "E(40001) Z(E)");
    }
}

/// A client in a lost transaction whose next server has one that fails; its turn is not over.
fn about_to_go_on() -> (Stage, Peer, Peer) {
    let (stage, server, alice) = in_transaction();
    alice.says([query("INSERT")]);
    server.ends();
    assert_eq!(alice.heard(), "E(40001) Z(E)");
    alice.says([query("INSERT")]);
    let next = stage.server();
    stage.keep_turn_open();
    fails_transaction(&next);
    (stage, next, alice)
}

/// The next statement ran on its own, and was committed, though the client was in a transaction.
#[test]
fn a_lost_transaction_stays_lost_when_the_next_server_is_lost() {
    for lose in WAYS {
        let (stage, next, alice) = about_to_go_on();
        lose(&next);
        stage.end_turn();
        let last = stage.server();
        fails_transaction(&last);
        assert_eq!((last.heard().as_str(), alice.heard().as_str()), ("Q(INSERT)", ""));
    }
}

/// What its client says next would be carried out there, and committed.
#[test]
fn a_server_without_the_transaction_that_is_to_fail_is_given_up() {
    for answer in [[error("57014"), ready()], [done(), in_block()]] {
        let (stage, server, alice) = in_transaction();
        alice.says([query("INSERT")]);
        server.ends();
        alice.says([query("INSERT")]);
        let next = stage.server();
        next.says(answer);
        assert!(took(Mark::StandInFails));
        assert!(next.is_aborted());
        let last = stage.server();
        fails_transaction(&last);
        assert_eq!((last.heard(), alice.heard()), ("Q(INSERT)".into(), "E(40001) Z(E)".into()));
    }
}

/// A stranger got the server with the transaction that has failed.
#[test]
fn a_failed_transaction_is_nobody_elses() {
    let (stage, next, alice) = about_to_go_on();
    let bob = stage.newcomer(&[]);
    assert!(bob.is_greeted());
    bob.says([query("bob")]);
    assert!(stage.cancel(&alice).is_closed());
    stage.end_turn();
    assert_eq!((alice.heard().as_str(), next.heard().as_str()), ("E(57014) Z(E)", "Q(ROLLBACK)"));
    next.says([done(), ready()]);
    assert_eq!(next.heard(), "Q(bob)");
}

/// A client in a lost transaction, of which it was told, and a server where one has failed instead.
fn goes_on_in_a_lost_transaction() -> (Stage, Peer, Peer) {
    let (stage, server, alice) = in_transaction();
    server.ends();
    alice.says([query("SELECT")]);
    alice.says([query("SELECT")]);
    let next = stage.server();
    fails_transaction(&next);
    assert_eq!(next.heard(), "Q(SELECT)");
    next.says([error("25P02"), in_failed_block()]);
    assert_eq!(alice.heard(), "E(40001) Z(E) E(25P02) Z(E)");
    (stage, next, alice)
}

/// AND CHAIN begins a transaction like the one that it ends. That would be one like ours, whose
/// isolation level may be weaker than that of the one that was lost.
#[test]
fn a_lost_transaction_cannot_be_chained() {
    let batch = [parse("END AND CHAIN"), bind(), execute(), sync()].concat();
    // One that is too long to wait for all of it may say so in the rest.
    let long = query(&["ROLLBACK /*", " ".repeat(20_000).as_str(), "*/ AND CHAIN"].concat());
    let short = [query("ROLLBACK AND CHAIN"), query("/* */ commit and chain; SELECT"), batch];
    for chain in short.into_iter().chain([long]) {
        let (stage, next, alice) = goes_on_in_a_lost_transaction();
        alice.sends(&chain[..12]);
        assert_eq!((next.heard().as_str(), alice.heard().as_str()), ("", ""));
        alice.sends(&chain[12..chain.len().min(17_000)]);
        assert_eq!((alice.heard().as_str(), alice.is_closed()), ("E(FATAL 57P01)", true));
        assert_eq!(next.heard(), "Q(ROLLBACK)");
        next.says([done(), ready()]);
        assert_eq!(stage.servers(), [ServerActivity::Idle]);
    }
    // A statement that was made before is not there any more.
    let (stage, server, alice) = in_transaction();
    alice.says([parse("ROLLBACK AND CHAIN"), sync()]);
    server.says([parse_complete(), in_block()]);
    server.ends();
    alice.says([sync()]);
    assert_eq!(alice.heard(), "1 Z(T) E(40001) Z(E)");
    alice.says([bind(), execute(), sync()]);
    let next = stage.server();
    fails_transaction(&next);
    assert_eq!(next.heard(), "C B E S");
}

/// Behind its end the lost transaction is no reason to refuse anything.
#[test]
fn another_transaction_than_a_lost_one_can_be_chained() {
    for end in ["ROLLBACK", "ROLLBACK AND NO CHAIN", "commit; -- and chain"] {
        let (_stage, next, alice) = goes_on_in_a_lost_transaction();
        alice.says([query(end)]);
        next.says([done(), ready()]);
        alice.says([query("BEGIN")]);
        next.says([done(), in_block()]);
        alice.says([query("COMMIT AND CHAIN")]);
        next.says([done(), in_block()]);
        assert_eq!(alice.heard(), "C Z C Z(T) C Z(T)");
        assert_eq!(next.heard(), format!("Q({end}) Q(BEGIN) Q(COMMIT AND CHAIN)"));
    }
}

/// What stands behind a ROLLBACK is a transaction of its own, and may be committed.
#[test]
fn a_server_lost_with_more_than_a_rollback_leaves_its_outcome_open() {
    let batch = [parse("ROLLBACK"), bind(), execute(), parse("INSERT"), bind(), execute(), sync()];
    for unit in [query("ROLLBACK; INSERT"), query("abort;INSERT"), batch.concat()] {
        let (_stage, server, alice) = in_transaction();
        alice.says([unit]);
        server.ends();
        assert_eq!(alice.heard(), "E(08007) Z");
    }
}

/// A COMMIT that was answered commits nothing more: AND CHAIN has begun another transaction.
#[test]
fn a_server_lost_behind_a_chained_commit_is_a_serialization_failure() {
    let (_stage, server, alice) = in_transaction();
    alice.says([query("COMMIT AND CHAIN")]);
    server.says([done(), in_block()]);
    alice.says([query("INSERT")]);
    server.ends();
    assert_eq!(alice.heard(), "C Z(T) E(40001) Z(E)");
    // Nor does a Query execute a portal.
    let (_stage, server, alice) = in_transaction();
    alice.says([parse("COMMIT"), bind(), sync()]);
    server.says([parse_complete(), bind_complete(), in_block()]);
    alice.says([query("INSERT")]);
    server.ends();
    assert_eq!(alice.heard(), "1 2 Z(T) E(40001) Z(E)");
}

/// What has come of the next unit, and was not sent, says nothing of the one in flight: a COMMIT
/// was called undone. What waits here may rest on it, so its client ends.
#[test]
fn a_part_of_the_next_unit_does_not_hide_a_commit() {
    let parts =
        [parse("SELECT")[..8].to_vec(), describe_statement(""), query("SELECT")[..3].to_vec()];
    for part in parts {
        let (_stage, server, alice) = in_transaction();
        alice.says([query("COMMIT")]);
        alice.sends(&part);
        server.ends();
        assert_eq!(alice.heard(), "E(FATAL 08007)", "{part:?}");
    }
    // Outside of a transaction, too, and of a BEGIN.
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("BEGIN")]);
    alice.sends(&query("INSERT")[..3]);
    server.ends();
    assert_eq!(alice.heard(), "E(FATAL 08007)");
    assert_eq!(stage.connections(), 0);
}

/// A statement that was to make way for one that is lost was run once more in its place.
#[test]
fn behind_a_parse_that_is_lost_there_is_no_unnamed_statement() {
    for unit in [vec![parse("DELETE"), sync()], vec![query("DELETE")]] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([parse("INSERT"), bind(), execute(), sync()]);
        server.says([parse_complete(), bind_complete(), done(), ready()]);
        assert_eq!(alice.heard(), "1 2 C Z");
        alice.says(unit);
        server.ends();
        assert_eq!(alice.heard(), "E(08007) Z");
        alice.says([bind(), execute(), sync()]);
        assert_eq!(stage.server().heard(), "B E S");
    }
}

/// The same where the next unit was sent before that COMMIT was answered.
#[test]
fn a_server_lost_behind_a_commit_of_the_same_pipeline_is_a_serialization_failure() {
    let (_stage, server, alice) = in_transaction();
    alice.says([query("COMMIT AND CHAIN"), query("INSERT")]);
    server.says([done(), in_block()]);
    server.ends();
    assert_eq!(alice.heard(), "C Z(T) E(40001) Z(E)");
    // What a batch binds may be a COMMIT, too.
    let (_stage, server, alice) = in_transaction();
    alice.says([bind(), execute(), sync(), query("INSERT")]);
    server.says([bind_complete(), done(), in_block()]);
    server.ends();
    assert_eq!(alice.heard(), "2 C Z(T) E(40001) Z(E)");
    // The last one may, whatever the one before did.
    let (_stage, server, alice) = in_transaction();
    alice.says([query("INSERT"), query("COMMIT")]);
    server.says([done(), in_block()]);
    server.ends();
    assert_eq!(alice.heard(), "C Z(T) E(08007) Z");
}

/// A portal of an earlier unit may be a COMMIT.
#[test]
fn a_server_lost_with_a_portal_leaves_its_outcome_open() {
    let (_stage, server, alice) = in_transaction();
    alice.says([parse("COMMIT"), bind(), sync()]);
    server.says([parse_complete(), bind_complete(), in_block()]);
    assert_eq!(alice.heard(), "1 2 Z(T)");
    alice.says([execute(), sync()]);
    server.ends();
    assert_eq!(alice.heard(), "E(08007) Z");
}

/// An error was the answer: another one behind it would say that nobody knows.
#[test]
fn a_server_lost_behind_an_error_ends_its_client() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT")]);
    server.says([error("42601")]);
    server.ends();
    assert_eq!(alice.heard(), "E(42601) E(FATAL 57P01)");
    // A batch that has failed is skipped up to its Sync.
    for lose in WAYS {
        let (_stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([parse("SELECT"), flush()]);
        server.says([error("42601")]);
        lose(&server);
        assert_eq!(alice.heard(), "E(42601) E(FATAL 57P01)");
        assert!(alice.is_closed());
    }
}

/// A COMMIT that is not answered may have been carried out, however it was sent.
#[test]
fn a_server_lost_with_a_commit_leaves_its_outcome_open() {
    let batch = [parse("END"), bind(), execute(), sync()].concat();
    let more = [parse("COMMIT"), bind(), execute(), parse("SELECT"), sync()].concat();
    for commit in [query("COMMIT"), query("SELECT 1; /* */ commit"), batch, more] {
        let (_stage, server, alice) = in_transaction();
        alice.says([commit]);
        server.ends();
        assert_eq!(alice.heard(), "E(08007) Z");
    }
    let (_stage, server, alice) = in_transaction();
    alice.says([parse("COMMIT"), sync()]);
    server.says([parse_complete(), in_block()]);
    assert_eq!(alice.heard(), "1 Z(T)");
    alice.says([bind(), execute(), sync()]);
    server.ends();
    assert_eq!(alice.heard(), "E(08007) Z");
}

/// There is no place for an error inside of a message.
#[test]
fn a_server_lost_inside_a_message_ends_its_client() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT")]);
    server.sends(&long_row(100_000)[..50_000]);
    server.ends();
    assert_eq!(alice.heard_bytes().len(), 50_000);
    assert!(alice.is_closed());
}

/// The server has said why it goes: a second reason would only confuse.
#[test]
fn a_server_that_says_goodbye_speaks_for_itself() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT")]);
    server.says([fatal("25P03")]);
    server.ends();
    assert_eq!(alice.heard(), "E(FATAL 25P03)");
    assert!(alice.is_closed());
}

/// It is the server that is shut down, not its client.
#[test]
fn a_server_that_is_shut_down_leaves_its_client_connected() {
    for code in ["57P01", "57P02"] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([query("SELECT")]);
        server.says([fatal(code)]);
        assert_eq!((alice.heard().as_str(), server.is_aborted()), ("E(08007) Z", true));
        assert!(lost(&stage));
        let (_stage, server, alice) = in_transaction();
        server.says([fatal(code)]);
        alice.says([query("SELECT")]);
        assert_eq!(alice.heard(), "E(40001) Z(E)");
    }
}

/// PostgreSQL ends a session that was idle for too long before it begins what it was sent just
/// then. Its client, which was anything but idle, was ended with it.
#[test]
fn a_server_that_was_idle_for_too_long_leaves_its_client_connected() {
    let batch = [parse("INSERT"), bind(), execute(), sync()].concat();
    for unit in [query("INSERT"), batch] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([unit]);
        server.says([fatal("57P05")]);
        assert_eq!((alice.heard().as_str(), server.is_aborted()), ("E(40001) Z", true));
        assert!(lost(&stage) && alice.is_open());
        alice.says([query("SELECT")]);
        assert_eq!(stage.server().heard(), "Q(SELECT)");
    }
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("INSERT"), bind(), execute(), flush()]);
    server.says([fatal("57P05")]);
    assert_eq!(alice.heard(), "E(40001)");
    alice.says([bind(), execute(), sync()]);
    assert_eq!((alice.heard().as_str(), stage.attempts()), ("Z", 0));
    // A part of COPY data is none of another unit.
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("COPY t FROM STDIN"), copy_data(b"1\n")[..3].to_vec()]);
    server.says([fatal("57P05")]);
    assert_eq!(alice.heard(), "E(40001) Z");
}

/// Where more is lost than a statement its own words say enough: who is idle has begun nothing.
#[test]
fn a_server_that_says_why_it_ends_speaks_for_itself_where_more_is_lost() {
    let cases = [
        ("session", vec![query("INSERT")]),
        ("transaction", vec![query("SET a = 1")]),
        ("transaction", vec![query("INSERT 1"), query("INSERT 2")]),
    ];
    for code in ["57P01", "57P02", "57P05"] {
        for (mode, units) in cases.clone() {
            let (_stage, server, alice) = Stage::ready(&Setup::of_mode(mode));
            alice.says(units);
            server.says([fatal(code)]);
            assert_eq!(alice.heard(), format!("E(FATAL {code})"));
            server.ends();
            assert!(alice.is_closed());
        }
        let (_stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([query("SELECT")]);
        server.says([columns(), row(b"1"), fatal(code)]);
        assert_eq!(alice.heard(), format!("T D(1) E(FATAL {code})"));
    }
}

/// Its own last words are the client's, too: before its stream had ended, the client was told
/// something else behind them when a timeout was over, when it was asked to leave, or when it sent
/// what is no message.
#[test]
fn nothing_follows_the_last_words_of_a_server() {
    let ends: [fn(&Stage, &Peer); 3] = [
        |stage, _| stage.wait(Duration::from_millis(5_100)),
        |stage, _| stage.shut_down(),
        |_, alice| alice.says([b"\0\0\0\0\0".to_vec()]),
    ];
    for end in ends {
        let general = "transaction_timeout = 5000";
        let setup = Setup { general, ..Setup::of_mode("session") };
        let (stage, server, alice) = Stage::ready(&setup);
        alice.says([query("BEGIN")]);
        server.says([done(), in_block(), fatal("57P01")]);
        assert_eq!((alice.heard().as_str(), alice.is_open()), ("C Z(T) E(FATAL 57P01)", true));
        end(&stage, &alice);
        assert_eq!((alice.heard().as_str(), alice.is_closed()), ("", true));
        server.ends();
        assert_eq!(stage.servers(), []);
    }
}

/// Only outside a transaction is anybody idle in this sense, so it proves nothing of a COMMIT.
#[test]
fn a_server_that_claims_to_be_idle_inside_a_transaction_proves_nothing() {
    let (_stage, server, alice) = in_transaction();
    alice.says([query("COMMIT")]);
    server.says([fatal("57P05")]);
    assert_eq!(alice.heard(), "E(08007) Z");
}

/// What we put in front of a client's own messages is nothing that it loses: a farewell that came
/// in place of the answer to that was forwarded, and ended the client.
#[test]
fn a_server_that_goes_before_a_statement_is_made_again_leaves_its_client_connected() {
    let cases = [
        (true, "P(alice)", "57P01", "E(08007) Z"),
        (false, "C", "57P01", "E(08007) Z"),
        (true, "P(alice)", "57P05", "E(40001) Z"),
        (false, "C", "57P05", "E(40001) Z"),
    ];
    for (has_one, injected, code, told) in cases {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        let bob = stage.client();
        let makers = [(&alice, parse("alice")), (&bob, parse("bob"))];
        for (maker, parse) in makers.into_iter().skip(usize::from(!has_one)) {
            maker.says([parse, sync()]);
            server.says([parse_complete(), ready()]);
            assert_eq!(maker.heard(), "1 Z");
        }
        server.heard();
        alice.says([bind(), execute(), sync()]);
        assert_eq!(server.heard(), format!("{injected} B E S"));
        server.says([fatal(code)]);
        assert_eq!((alice.heard().as_str(), server.is_aborted()), (told, true));
        assert!(lost(&stage) && alice.is_open());
    }
}

/// A server says why and closes; the next write to it failed before its words were read, and they
/// were lost.
#[test]
fn last_words_are_read_although_writing_has_failed() {
    let (_stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    alice.says([query("a")]);
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z");
    server.deafens();
    server.has_sent(&fatal("57P01"));
    server.has_ended();
    alice.says([query("b")]);
    assert_eq!(alice.heard(), "E(FATAL 57P01)");
    assert!(alice.is_closed());
}

/// The same, when it was not read because its client was slow.
#[test]
fn last_words_are_read_although_the_server_was_paused() {
    let (_stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    alice.takes(0);
    alice.says([query("a")]);
    server.says([long_row(100_000)]);
    assert!(!server.is_read());
    server.deafens();
    server.has_sent(&fatal("57P01"));
    server.has_ended();
    alice.says([query("b")]);
    assert!(server.is_aborted());
    alice.takes_all();
    let heard = alice.heard();
    assert!(heard.ends_with("E(FATAL 57P01)"), "{heard}");
    assert!(alice.is_closed());
}

/// A server that is lost while it is cleaned is nobody's loss.
#[test]
fn a_server_lost_while_it_is_cleaned_is_replaced() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    bob.says([query("bob")]);
    alice.says([terminate()]);
    assert_eq!(server.heard(), "Q(BEGIN) Q(ROLLBACK)");
    server.ends();
    assert_eq!(stage.clients(), [ClientState::Waiting]);
    assert_eq!(stage.server().heard(), "Q(bob)");
}

/// Losing the server inside of a COPY ends the client, whatever it sends on.
#[test]
fn a_server_lost_inside_a_copy_ends_its_client() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("COPY t FROM STDIN")]);
    server.says([copy_in()]);
    alice.says([copy_data(b"1\n")]);
    server.ends();
    alice.says([copy_data(b"2\n")]);
    assert_eq!(alice.heard(), "G E(FATAL 57P01)");
    assert!(alice.is_closed());
}

/// The next query after a loss gets a new server, and others in the queue do too.
#[test]
fn who_waits_gets_another_server_than_the_one_that_is_lost() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("slow")]);
    bob.says([query("bob")]);
    server.ends();
    assert_eq!(alice.heard(), "E(08007) Z");
    assert_eq!(stage.attempts(), 1);
    assert_eq!(stage.server().heard(), "Q(bob)");
}

/// A server that is lost during its login is an attempt that has failed.
#[test]
fn a_server_lost_during_its_login_is_tried_again() {
    for lose in WAYS {
        let stage = Stage::new(&Setup::default());
        let newcomer = stage.newcomer(&[]);
        let server = stage.bare_server();
        lose(&server);
        assert!(server.is_aborted());
        assert!(!lost(&stage));
        stage.wait(Duration::from_millis(51));
        stage.server();
        assert!(newcomer.is_greeted());
    }
}

/// A server that said FATAL right behind its greeting had been lent by then: its client, which
/// had sent nothing to it, was ended, with bytes that were taken from the wrong place.
#[test]
fn a_server_lost_right_behind_its_login_is_replaced() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    server.ends();
    alice.says([query("SELECT")]);
    let next = stage.bare_server();
    next.says([stage.welcome(&next), fatal("57P01")]);
    assert!(next.is_aborted());
    let last = stage.server();
    assert_eq!((last.heard().as_str(), alice.heard().as_str()), ("Q(SELECT)", ""));
}

/// The same, when it went to the next client in the call in which it was given back.
#[test]
fn a_server_lost_right_behind_a_unit_is_replaced_for_the_next_client() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("a")]);
    bob.says([query("b")]);
    server.says([done(), ready(), fatal("57P01")]);
    assert_eq!((alice.heard().as_str(), bob.heard().as_str()), ("C Z", ""));
    assert!(server.is_aborted());
    assert_eq!(stage.server().heard(), "Q(b)");
}

//! A unit is run again whose server was lost, though its client had that alone.

use std::time::Duration;

use pgweir_engine::Mark;

use crate::messages::{
    bind, bind_complete, bind_to, columns, copy_data, crash_warning, done, error, execute, fatal,
    flush, in_block, notice, one_row, parameter_status, parse, parse_as, parse_complete, query,
    ready, row, sync, terminate,
};
use crate::named::{prepare, rows};
use crate::peer::Peer;
use crate::pipelining::{FREED, braked, shared};
use crate::stage::{Stage, took};

/// The ways to be lost.
const WAYS: [fn(&Peer); 3] = [Peer::ends, Peer::breaks, |server| {
    server.says([fatal("57P01")]);
    server.ends();
}];

const READ: &str = "SELECT a FROM t";
const WRITE: &str = "UPDATE t SET a = b";
/// Perhaps it writes.
const UNKNOWN: &str = "SELECT nobody_knows(a) FROM t";

/// A client of whose units these have taken too long, so that for a while they share no server; and
/// the one that it has had.
fn alone() -> (Stage, Peer, Peer) {
    let (stage, server, mut clients) = braked(&shared(1), 1);
    let alice = clients.remove(0);
    for text in [READ, WRITE] {
        let asked = format!("Q({text})");
        alice.says([query(text)]);
        assert!(server.heard().ends_with(&asked));
        stage.wait(Duration::from_millis(60));
        server.says([error("57014"), ready()]);
        assert_eq!(server.heard(), FREED);
        server.says([one_row("")]);
        assert_eq!(server.heard(), asked);
        server.says([one_row("")]);
        assert_eq!(alice.heard(), "T D() C Z");
        if text == READ {
            // With a brake again.
            alice.says([query("SELECT 0")]);
            server.heard();
            server.says([one_row("")]);
            server.heard();
            server.says([one_row("")]);
            assert_eq!(alice.heard(), "T D() C Z");
        }
    }
    (stage, server, alice)
}

/// But once only: perhaps servers die of it.
#[test]
fn what_only_reads_is_run_again() {
    for lose in WAYS {
        let (stage, server, alice) = alone();
        alice.says([query(READ)]);
        assert_eq!(server.heard(), format!("Q({READ})"));
        lose(&server);
        assert_eq!(alice.heard(), "");
        let next = stage.server();
        assert_eq!(next.heard(), format!("Q({READ})"));
        next.says([one_row("1")]);
        assert_eq!(alice.heard(), "T D(1) C Z");
        alice.says([query(READ)]);
        assert_eq!(next.heard(), format!("Q({READ})"));
        lose(&next);
        let last = stage.server();
        assert_eq!(last.heard(), format!("Q({READ})"));
        lose(&last);
        assert_eq!(alice.heard(), "E(40001) Z");
        assert_eq!(stage.attempts(), 0);
        stage.check();
    }
}

/// Its server warns of a crash, which belongs to no reply: the client hears that, and its own.
#[test]
fn behind_a_warning_of_a_crash_too() {
    let (stage, server, alice) = alone();
    alice.says([query(READ)]);
    server.says([crash_warning()]);
    server.ends();
    let next = stage.server();
    assert_eq!(next.heard(), format!("Q({READ})"));
    next.says([one_row("1")]);
    assert_eq!(alice.heard(), "N T D(1) C Z");
}

/// Nor does it that a setting is another one now.
#[test]
fn behind_a_report_of_a_setting_too() {
    let (stage, server, alice) = alone();
    alice.says([query(READ)]);
    server.says([parameter_status("DateStyle", "German")]);
    server.breaks();
    let next = stage.server();
    assert_eq!(next.heard(), format!("Q({READ})"));
    next.says([one_row("1")]);
    assert_eq!(alice.heard(), "S(DateStyle=German) T D(1) C Z");
}

/// Any other notice its client may not hear twice.
#[test]
fn behind_a_notice_it_is_not() {
    let (stage, server, alice) = alone();
    alice.says([query(READ)]);
    server.says([notice()]);
    server.ends();
    assert_eq!(alice.heard(), "N E(40001) Z");
    assert_eq!(stage.attempts(), 0);
}

/// With all that the next server lacks for it.
#[test]
fn so_is_a_batch_with_a_prepared_statement() {
    let (stage, server, alice) = alone();
    prepare(&alice, &server, "s", READ, rows());
    alice.says([bind_to("s"), execute(), sync()]);
    assert_eq!(server.heard(), "B(pgweir_1) E S");
    server.breaks();
    assert_eq!(alice.heard(), "");
    let next = stage.server();
    assert_eq!(next.heard(), "P(pgweir_1=SELECT a FROM t) D(pgweir_1) H");
    next.says([parse_complete(), rows()]);
    assert_eq!(next.heard(), "B(pgweir_1) E S");
    next.says([bind_complete(), done(), ready()]);
    assert_eq!(alice.heard(), "2 C Z");
}

/// What has come behind it by then waits as before.
#[test]
fn what_came_behind_it_comes_behind_it_again() {
    let (stage, server, alice) = alone();
    alice.says([query(READ)]);
    alice.sends(&query(WRITE)[..3]);
    server.breaks();
    let next = stage.server();
    assert_eq!(next.heard(), format!("Q({READ})"));
    next.says([one_row("1")]);
    assert_eq!(alice.heard(), "T D(1) C Z");
    alice.sends(&query(WRITE)[3..]);
    assert_eq!(next.heard(), format!("Q({WRITE})"));
}

#[test]
fn what_has_changed_rows_perhaps_is_not() {
    for lose in WAYS {
        let (stage, server, alice) = alone();
        alice.says([query(WRITE)]);
        assert_eq!(server.heard(), format!("Q({WRITE})"));
        lose(&server);
        assert_eq!(alice.heard(), "E(08007) Z");
        assert_eq!(stage.attempts(), 0);
    }
}

/// Unless it is known not to have been begun.
#[test]
fn what_was_not_begun_is_run_again() {
    let (stage, server, alice) = alone();
    alice.says([query(WRITE)]);
    server.says([fatal("57P05")]);
    server.ends();
    assert_eq!(alice.heard(), "");
    assert_eq!(stage.server().heard(), format!("Q({WRITE})"));
}

/// A portal says nothing of what is in it.
#[test]
fn what_commits_perhaps_is_not_run_again() {
    let (stage, server, alice) = alone();
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    alice.says([parse("COMMIT"), bind(), sync()]);
    server.says([parse_complete(), bind_complete(), in_block()]);
    assert_eq!(alice.heard(), "C Z(T) 1 2 Z(T)");
    alice.says([execute(), sync()]);
    server.breaks();
    assert_eq!(alice.heard(), "E(08007) Z");
    assert_eq!(stage.attempts(), 0);
}

/// Its client would be answered twice. But nobody needs to know what has become of it.
#[test]
fn what_is_answered_in_part_is_not_run_again() {
    for (text, says, hears) in [
        (READ, vec![columns()], "T E(40001) Z"),
        (READ, vec![columns(), row(b"1")], "T D(1) E(FATAL 57P01)"),
        (UNKNOWN, vec![columns()], "T E(08007) Z"),
    ] {
        let (stage, server, alice) = alone();
        alice.says([query(text)]);
        server.says(says);
        server.breaks();
        assert_eq!(alice.heard(), hears);
        assert_eq!(stage.attempts(), 0);
    }
}

/// What stands behind it rests on nothing that it does: its client goes on with that.
#[test]
fn behind_what_only_reads_its_client_goes_on() {
    for more in [query(WRITE), query(WRITE)[..9].to_vec()] {
        let (stage, server, alice) = alone();
        let bob = stage.client();
        alice.says([query(READ)]);
        server.says([columns()]);
        assert_eq!(alice.heard(), "T");
        bob.says([query("bob")]);
        alice.sends(&more);
        assert_eq!(server.heard(), format!("Q({READ})"));
        server.breaks();
        assert_eq!(alice.heard(), "E(40001) Z");
        let next = stage.server();
        assert_eq!(next.heard(), "Q(bob)");
        next.says([one_row("")]);
        alice.sends(&query(WRITE)[more.len()..]);
        assert_eq!(next.heard(), format!("Q({WRITE})"));
        stage.check();
    }
}

/// Of several that only read nothing is in doubt, but where the answers end.
#[test]
fn several_that_only_read_leave_nothing_in_doubt() {
    for (units, hears) in [
        (vec![query(READ), query(READ)], "E(FATAL 57P01)"),
        (vec![query(READ), parse(READ), bind(), execute(), sync(), query(READ)], "E(FATAL 57P01)"),
        (vec![query(READ), query(WRITE), query(READ)], "E(FATAL 08007)"),
        (vec![query(WRITE), query(READ)], "E(FATAL 08007)"),
        (vec![query(UNKNOWN), query(READ)], "E(FATAL 08007)"),
        (vec![query(READ), query(UNKNOWN)], "E(FATAL 08007)"),
        (vec![query(READ), parse(READ), bind(), execute(), flush()], "E(FATAL 08007)"),
    ] {
        let (stage, server, alice) = alone();
        alice.says(units);
        server.breaks();
        assert_eq!((alice.heard().as_str(), alice.is_closed()), (hears, true));
        assert_eq!(stage.attempts(), 0);
        stage.check();
    }
}

/// What waits here is not among them: it may change what it likes.
#[test]
fn what_waits_behind_them_does_not_put_them_in_doubt() {
    for (answered, hears) in [(0, "E(FATAL 57P01)"), (1, "T D() C Z E(40001) Z")] {
        let (stage, server, alice) = alone();
        alice.says([query(READ), query(READ)]);
        let bob = stage.client();
        bob.says([query("bob")]);
        alice.says([query(WRITE)]);
        assert_eq!(server.heard(), format!("Q({READ}) Q({READ})"));
        server.says(vec![one_row(""); answered]);
        server.breaks();
        assert_eq!(alice.heard(), hears);
        assert_eq!(stage.server().heard(), "Q(bob)");
        stage.check();
    }
}

/// What is left of them when the others are answered. Behind what is not closed nobody knows what
/// a name stands for.
#[test]
fn so_it_is_with_the_last_of_several() {
    for (first, last, hears) in [
        (READ, READ, "T D() C Z E(40001) Z"),
        (WRITE, READ, "T D() C Z E(40001) Z"),
        (UNKNOWN, READ, "T D() C Z E(08007) Z"),
        (READ, WRITE, "T D() C Z E(08007) Z"),
    ] {
        let (stage, server, alice) = alone();
        alice.says([query(first), query(last)]);
        server.says([one_row("")]);
        server.breaks();
        assert_eq!(alice.heard(), hears);
        assert_eq!(stage.attempts(), 0);
        alice.says([query(READ)]);
        assert_eq!(stage.server().heard(), format!("Q({READ})"));
        stage.check();
    }
}

/// What was noted of the one before says nothing of what comes in its place.
#[test]
fn what_was_noted_is_forgotten_with_its_unit() {
    let (stage, server, alice) = alone();
    alice.says([query(READ), query(READ)]);
    server.says([one_row(""), one_row("")]);
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    assert_eq!(alice.heard(), "T D() C Z T D() C Z C Z(T)");
    alice.says([query("COMMIT"), query(READ)]);
    server.breaks();
    assert_eq!(alice.heard(), "E(FATAL 08007)");
    stage.check();
}

/// A Flush makes it more than one of which all is known.
#[test]
fn what_is_not_whole_is_not_run_again() {
    let (stage, server, alice) = alone();
    alice.says([parse(READ), bind(), execute(), flush()]);
    server.breaks();
    assert_eq!(alice.heard(), "E(08007)");
    assert_eq!(stage.attempts(), 0);
}

/// What comes next is the rest of what was sent behind it, and nothing else.
#[test]
fn what_is_followed_by_a_part_of_data_is_not_run_again() {
    let (stage, server, alice) = alone();
    let data = copy_data(&[b'x'; 100]);
    alice.says([query(READ)]);
    alice.sends(&data[..20]);
    server.breaks();
    assert_eq!(alice.heard(), "E(08007) Z");
    alice.sends(&data[20..]);
    alice.says([query(READ)]);
    assert_eq!(stage.server().heard(), format!("Q({READ})"));
}

/// Of the rest of it nobody has heard. (Whoever has such a limit shares no server.)
#[test]
fn what_was_sent_in_part_is_not_run_again() {
    let (stage, server, _) = braked(&shared(1), 1);
    let alice = stage.newcomer(&[("statement_timeout", "10")]);
    alice.says([parse_as("s", READ), sync()]);
    server.heard();
    server.says([one_row("")]);
    server.heard();
    server.says([parse_complete(), rows(), ready()]);
    alice.heard();
    server.ends();
    alice.says([parse(READ), bind_to("s"), execute(), sync()]);
    let next = stage.server();
    next.heard();
    next.says([one_row("")]);
    assert_eq!(next.heard(), "P(SELECT a FROM t) P(pgweir_1=SELECT a FROM t) D(pgweir_1) H");
    next.breaks();
    assert_eq!(alice.heard(), "E(FATAL 08007)");
    assert_eq!(stage.attempts(), 0);
}

#[test]
fn what_its_client_has_cancelled_is_not_run_again() {
    let (stage, server, alice) = alone();
    alice.says([query(READ)]);
    stage.cancel(&alice);
    server.breaks();
    assert_eq!(alice.heard(), "E(57014) Z");
    assert_eq!(stage.attempts(), 0);
    assert!(took(Mark::LossOfCancelled));
}

/// Nor is it asked to try again.
#[test]
fn so_it_is_with_the_second_loss() {
    let (stage, server, alice) = alone();
    alice.says([query(READ)]);
    server.breaks();
    let next = stage.server();
    assert_eq!(next.heard(), format!("Q({READ})"));
    stage.cancel(&alice);
    next.breaks();
    assert_eq!(alice.heard(), "E(57014) Z");
    assert_eq!(stage.attempts(), 0);
}

/// It has said that it wants no answer.
#[test]
fn nobody_runs_again_what_a_client_that_leaves_has_sent() {
    let (stage, server, alice) = alone();
    alice.says([query(READ), terminate()]);
    server.breaks();
    assert_eq!(stage.attempts(), 0);
    stage.check();
}

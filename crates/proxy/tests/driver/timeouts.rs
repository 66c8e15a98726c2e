//! What ends because it takes too long.

use std::time::Duration;

use pgweir_engine::{ServerActivity, TICK};

use crate::messages::{
    bind, bind_complete, bind_value, columns, copy_data, copy_done, copy_in, done, error, execute,
    flush, in_block, long_row, one_row, parse, parse_complete, query, ready, row, sync, terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage};

/// Somewhat more than the limits below.
const LONG: Duration = Duration::from_millis(5_100);

fn in_transaction(setup: &Setup) -> (Stage, Peer, Peer) {
    let (stage, server, alice) = Stage::ready(setup);
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    assert_eq!((server.heard().as_str(), alice.heard().as_str()), ("Q(BEGIN)", "C Z(T)"));
    (stage, server, alice)
}

/// An open transaction holds locks, and its server.
#[test]
fn a_client_that_is_silent_inside_a_transaction_is_ended() {
    let setup = Setup::with("idle_client_in_transaction_timeout = 5000");
    let (stage, server, alice) = in_transaction(&setup);
    stage.wait(Duration::from_secs(4));
    alice.says([query("SELECT")]);
    stage.wait(LONG);
    assert_eq!(alice.heard(), "", "a statement that runs is no silence");
    server.says([done(), in_block()]);
    assert_eq!((server.heard().as_str(), alice.heard().as_str()), ("Q(SELECT)", "C Z(T)"));
    stage.wait(Duration::from_secs(4));
    assert!(alice.is_open());
    stage.wait(LONG);
    assert_eq!(alice.heard(), "E(FATAL 25P03)");
    assert!(alice.is_closed());
    assert_eq!(server.heard(), "Q(ROLLBACK)");
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// Outside of one nobody else is kept from anything: the limit is for connections that are
/// forgotten.
#[test]
fn a_client_that_is_silent_outside_a_transaction_is_ended() {
    let setup = Setup::with("client_idle_timeout = 5000");
    let (stage, server, alice) = Stage::ready(&setup);
    let bob = stage.client();
    stage.wait(Duration::from_secs(4));
    bob.says([query("SELECT")]);
    server.says([one_row("1")]);
    assert_eq!(bob.heard(), "T D(1) C Z");
    stage.wait(Duration::from_secs(2));
    assert_eq!((alice.heard().as_str(), bob.is_open()), ("E(FATAL 57P05)", true));
    bob.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    stage.wait(LONG);
    assert!(bob.is_open(), "inside a transaction another limit holds");
    bob.says([query("COMMIT")]);
    server.says([done(), ready()]);
    stage.wait(LONG);
    stage.wait(LONG);
    assert_eq!(bob.heard(), "C Z(T) C Z E(FATAL 57P05)");
}

/// Whoever was told that there is no server for it has been silent since then only.
#[test]
fn a_client_that_was_refused_was_not_silent_before() {
    let limits = "client_idle_timeout = 5000\nquery_wait_timeout = 4000";
    let (stage, _server, _alice) = in_transaction(&Setup::with(limits));
    let bob = stage.client();
    stage.wait(Duration::from_millis(500));
    bob.says([query("SELECT")]);
    stage.wait(Duration::from_millis(4_200));
    assert_eq!(bob.heard(), "E(53300) Z");
    stage.wait(Duration::from_secs(4));
    assert!(bob.is_open());
    stage.wait(Duration::from_secs(2));
    assert_eq!(bob.heard(), "E(FATAL 57P05)");
}

/// A transaction that takes too long is rolled back; what runs in it is cancelled.
#[test]
fn a_transaction_that_takes_too_long_is_ended() {
    let setup = Setup::with("transaction_timeout = 5000");
    let (stage, server, alice) = in_transaction(&setup);
    alice.says([query("slow")]);
    stage.wait(LONG);
    assert_eq!(alice.heard(), "E(FATAL 25P04)");
    let cancel = stage.cancel_line().expect("the statement is cancelled");
    assert!(!cancel.heard_bytes().is_empty());
    cancel.ends();
    server.says([error("57014"), in_block()]);
    assert_eq!(server.heard(), "Q(slow) Q(ROLLBACK)");
    let (stage, server, alice) = in_transaction(&setup);
    stage.wait(LONG);
    assert_eq!((alice.heard().as_str(), stage.cancels()), ("E(FATAL 25P04)", 0));
    assert_eq!(server.heard(), "Q(ROLLBACK)");
}

/// The same in a batch without its end. A cancel that was dropped left the locks of the transaction
/// to a statement that nobody waits for.
#[test]
fn an_open_batch_that_takes_too_long_is_cancelled() {
    let setup = Setup::with("transaction_timeout = 5000\nconnect_timeout = 2000");
    for heeds in [true, false] {
        let (stage, server, alice) = in_transaction(&setup);
        alice.says([parse("slow"), bind(), execute(), flush()]);
        stage.wait(LONG);
        assert_eq!(alice.heard(), "E(FATAL 25P04)");
        assert!(server.is_half_closed(), "nothing of it is committed");
        let cancel = stage.cancel_line().expect("the statement is cancelled");
        assert!(!cancel.heard_bytes().is_empty());
        cancel.ends();
        assert_eq!(stage.servers(), [ServerActivity::Tested]);
        if heeds {
            server.says([parse_complete(), bind_complete(), error("57014")]);
            server.ends();
        } else {
            stage.wait(Duration::from_millis(1_800));
            assert!(server.is_open());
            stage.wait(Duration::from_millis(300));
        }
        assert_eq!((server.is_open(), stage.servers()), (false, vec![]));
        assert_eq!(server.heard(), "P(slow) B E H");
    }
}

/// A part of a message that no server was sent when its client's time is over goes to none: what
/// the next client asks is heard from its beginning, and what it is answered is its own.
#[test]
fn half_a_message_is_forgotten_with_its_client() {
    let insert = query(&"x".repeat(10_000));
    // Inside a transaction a message is passed on as soon as its header says what it is.
    for (limit, code, begins, cuts) in [
        ("client_idle_timeout = 5000", "57P05", false, [1, 4, 5_000]),
        ("idle_client_in_transaction_timeout = 5000", "25P03", true, [1, 2, 4]),
        ("transaction_timeout = 5000", "25P04", true, [1, 2, 4]),
    ] {
        for cut in cuts {
            let setup = Setup::with(limit);
            let start = if begins { in_transaction } else { Stage::ready };
            let (stage, server, alice) = start(&setup);
            alice.sends(&insert[..cut]);
            stage.wait(LONG);
            assert_eq!(alice.heard(), format!("E(FATAL {code})"), "cut at {cut}");
            assert!(alice.is_closed());
            alice.sends(&insert[cut..]);
            if begins {
                assert_eq!(server.heard(), "Q(ROLLBACK)");
                server.says([done(), ready()]);
            }
            let bob = stage.client();
            bob.says([query("bob")]);
            assert_eq!(server.heard(), "Q(bob)");
            server.says([one_row("bob")]);
            assert_eq!(bob.heard(), "T D(bob) C Z", "{code}, cut at {cut}");
        }
    }
}

/// Who stops in the middle of a message is silent too, though its server has a part of it; who is
/// slow is not.
#[test]
fn a_client_that_is_silent_inside_a_message_is_idle() {
    let limits = "client_idle_timeout = 5000\nidle_client_in_transaction_timeout = 5000";
    let long = &[b'x'; 50_000];
    let units = [query(&"x".repeat(50_000)), [parse("INSERT"), bind_value(long)].concat()];
    for (begins, code) in [(false, "57P05"), (true, "25P03")] {
        for message in &units {
            let start = if begins { in_transaction } else { Stage::ready };
            let (stage, server, alice) = start(&Setup::with(limits));
            for part in message[..40_000].chunks(10_000) {
                alice.sends(part);
                stage.wait(Duration::from_secs(3));
                assert!(alice.is_open());
            }
            assert!(server.heard_bytes() == message[..40_000]);
            stage.wait(LONG);
            assert_eq!(alice.heard(), format!("E(FATAL {code})"));
            assert!(alice.is_closed() && server.sees_its_client_vanish());
        }
    }
}

/// Data of a COPY come when they are made, and a client cuts them wherever its buffer is full.
#[test]
fn a_copy_that_rests_inside_its_data_is_not_idle() {
    let limits = "client_idle_timeout = 5000\nidle_client_in_transaction_timeout = 5000";
    for start in [Stage::ready, in_transaction] {
        let (stage, server, alice) = start(&Setup::with(limits));
        alice.says([query("COPY t FROM STDIN")]);
        server.says([copy_in()]);
        alice.sends(&copy_data(&[b'x'; 10_000])[..8_192]);
        stage.wait(LONG);
        assert_eq!(alice.heard(), "G");
        assert!(alice.is_open());
    }
}

/// A part of a message that is to be dropped keeps nobody from being idle.
#[test]
fn a_client_that_is_silent_inside_what_is_dropped_is_idle() {
    let setup = Setup::with("client_idle_timeout = 5000");
    let (stage, server, alice) = Stage::ready(&setup);
    let message = query(&"x".repeat(100_000));
    alice.sends(&message[..40_000]);
    server.ends();
    assert_eq!(alice.heard(), "E(08007)");
    for part in message[40_000..80_000].chunks(10_000) {
        stage.wait(Duration::from_secs(3));
        alice.sends(part);
        assert!(alice.is_open());
    }
    stage.wait(LONG);
    assert_eq!(alice.heard(), "E(FATAL 57P05)");
    assert!(alice.is_closed());
}

/// A server that has heard a part waits for the rest, which does not come: it serves nobody else,
/// and sees its client go.
#[test]
fn a_server_that_has_heard_half_a_message_goes_with_its_client() {
    let limits = "query_wait_timeout = 60000\ntransaction_timeout = 5000";
    let bind = [parse("INSERT"), bind_value(&[b'x'; 50_000])].concat();
    let insert = query(&format!("INSERT {}", "x".repeat(50_000)));
    for (message, cut) in [(&insert, 16_384), (&insert, 40_000), (&bind, 20_000)] {
        let (stage, server, alice) = in_transaction(&Setup::with(limits));
        let bob = stage.client();
        bob.says([query("bob")]);
        alice.sends(&message[..cut]);
        stage.wait(LONG);
        assert_eq!(alice.heard(), "E(FATAL 25P04)");
        assert!(alice.is_closed());
        alice.sends(&message[cut..]);
        assert!(server.heard_bytes() == message[..cut], "nothing behind it, whosever");
        // It may be executing what came before.
        stage.cancel_line().expect("that is cancelled").ends();
        assert_eq!(stage.servers(), [ServerActivity::Tested]);
        assert!(server.sees_its_client_vanish());
        let next = stage.server();
        assert_eq!(next.heard(), "Q(bob)");
        next.says([one_row("bob")]);
        assert_eq!(bob.heard(), "T D(bob) C Z");
    }
}

/// PostgreSQL knows best when a statement began. It is told at the login, and only if it does not
/// answer then, for a while, it is given up.
#[test]
fn a_server_that_does_not_end_a_statement_in_time_is_given_up() {
    let setup = Setup::with("statement_timeout = 5000");
    let stage = Stage::new(&setup);
    let alice = stage.newcomer(&[]);
    let (server, asked) = stage.bare_server_asked();
    assert!(asked.contains(&("statement_timeout".to_owned(), "5000".to_owned())), "{asked:?}");
    server.says([stage.welcome(&server)]);
    assert!(alice.is_greeted());
    alice.says([query("slow")]);
    stage.wait(LONG);
    assert_eq!(alice.heard(), "", "the server's own error is awaited");
    stage.wait(Duration::from_secs(1));
    assert_eq!((alice.heard().as_str(), server.is_aborted()), ("E(08007) Z", true));
}

/// The second that it has for that holds whenever in it pgweir looks.
#[test]
fn a_server_that_hangs_in_a_statement_is_given_up_within_a_second() {
    let (stage, server, alice) = Stage::ready(&Setup::with("statement_timeout = 5000"));
    alice.says([query("slow")]);
    stage.wait(TICK / 2);
    for _ in 0..58 {
        stage.wait(TICK);
    }
    assert!(server.is_open(), "its own error may be on its way");
    stage.wait(TICK);
    assert_eq!((alice.heard().as_str(), server.is_aborted()), ("E(08007) Z", true));
}

/// The simulator's: where it stops in the middle of a message it is not its client that is awaited.
#[test]
fn a_server_that_reads_no_more_of_a_message_is_given_up() {
    let (stage, server, alice) = Stage::ready(&Setup::with("statement_timeout = 5000"));
    server.takes(0);
    alice.says([query("COPY t FROM STDIN"), copy_data(&[b'a'; 1_000_000])]);
    stage.wait(LONG + Duration::from_secs(1));
    assert!(server.is_aborted());
    assert_eq!(alice.heard(), "E(08007) Z");
}

/// Where pgweir itself has stood still what has come meanwhile is still unread, and nobody is given
/// up before that was looked at.
#[test]
fn who_has_answered_while_pgweir_stood_still_is_not_given_up() {
    let (stage, server, alice) = Stage::ready(&Setup::with("statement_timeout = 5000"));
    alice.says([query("slow")]);
    stage.wait(TICK);
    stage.stand_still(2 * LONG);
    assert!(server.is_open(), "its answer may lie there");
    server.says([one_row("alice")]);
    assert_eq!(alice.heard(), "T D(alice) C Z");
    alice.says([query("slow")]);
    stage.stand_still(2 * LONG);
    stage.stand_still(2 * LONG);
    assert!(server.is_aborted(), "of two ticks in a row one counts, however late");
}

/// PostgreSQL gives each statement of a batch that time, and says nothing until it has enough.
#[test]
fn a_batch_has_the_time_of_all_its_statements() {
    let (stage, server, alice) = Stage::ready(&Setup::with("statement_timeout = 5000"));
    let statement = [bind(), execute()].concat();
    alice.says([parse("INSERT"), statement.clone(), statement, sync()]);
    stage.wait(LONG * 5);
    assert!(server.is_open());
    stage.wait(LONG * 2);
    assert!(server.is_aborted());
}

/// The same holds for a query string, since version 13.
#[test]
fn a_query_string_has_the_time_of_all_its_statements() {
    let long = format!("INSERT; SELECT ';{}'; INSERT;", "x".repeat(40_000));
    for text in ["INSERT; SELECT ';'; INSERT;", &long] {
        let (stage, server, alice) = Stage::ready(&Setup::with("statement_timeout = 5000"));
        alice.says([query(text)]);
        stage.wait(LONG * 3);
        assert!(server.is_open());
        stage.wait(Duration::from_secs(1));
        assert!(server.is_aborted());
    }
}

/// PostgreSQL keeps the replies of a batch back until a Sync or a Flush: that none comes is its
/// client's doing.
#[test]
fn a_server_that_waits_for_the_end_of_a_batch_is_not_given_up() {
    for end in [sync(), flush()] {
        let (stage, server, alice) = Stage::ready(&Setup::with("statement_timeout = 5000"));
        alice.says([parse("INSERT"), bind(), execute()]);
        stage.wait(LONG);
        assert_eq!(server.heard(), "P(INSERT) B E");
        stage.wait(LONG * 5);
        alice.says([execute()]);
        stage.wait(LONG * 5);
        assert!(server.is_open() && alice.is_open());
        alice.says([end]);
        stage.wait(LONG * 4);
        assert!(server.is_open(), "its time begins when it is asked");
        stage.wait(LONG * 2);
        assert!(server.is_aborted());
    }
}

/// PostgreSQL takes no interrupt while it reads COPY data, and the time that its client takes is
/// not its own.
#[test]
fn a_server_that_waits_for_copy_data_is_not_given_up() {
    for copy in [vec![query("COPY")], vec![parse("COPY"), bind(), execute(), sync()]] {
        let (stage, server, alice) = Stage::ready(&Setup::with("statement_timeout = 5000"));
        let replies =
            if copy.len() == 1 { vec![] } else { vec![parse_complete(), bind_complete()] };
        alice.says(copy);
        server.says(replies.into_iter().chain([copy_in()]));
        stage.wait(LONG * 3);
        alice.says([copy_data(b"row")]);
        stage.wait(LONG * 3);
        assert!(server.is_open() && alice.is_open());
        alice.says([copy_done(), sync()]);
        stage.wait(LONG);
        assert!(server.is_open(), "its time begins when it has all");
        stage.wait(LONG * 2);
        assert!(server.is_aborted());
    }
}

/// One that does not even read is not waiting for its client.
#[test]
fn a_server_that_takes_no_copy_data_is_given_up() {
    let (stage, server, alice) = Stage::ready(&Setup::with("statement_timeout = 5000"));
    alice.says([query("COPY")]);
    server.says([copy_in()]);
    server.takes(0);
    for _ in 0..10 {
        alice.says([copy_data(&[b'x'; 10_000])]);
    }
    stage.wait(LONG);
    assert!(server.is_open());
    stage.wait(Duration::from_secs(1));
    assert!(server.is_aborted());
}

/// PostgreSQL begins to count when it has a statement to its end.
#[test]
fn a_statement_that_is_still_being_sent_is_not_given_up() {
    let (stage, server, alice) = Stage::ready(&Setup::with("statement_timeout = 5000"));
    let long = query(&"x".repeat(50_000));
    for piece in long.chunks(20_000) {
        stage.wait(LONG * 2);
        assert!(server.is_open() && alice.is_open());
        alice.sends(piece);
    }
    stage.wait(LONG);
    assert!(server.is_open());
    stage.wait(Duration::from_secs(1));
    assert_eq!((alice.heard().as_str(), server.is_aborted()), ("E(08007) Z", true));
}

/// A server may be silent because its client does not read: that is not the server's fault.
#[test]
fn a_server_that_waits_for_its_client_is_not_given_up() {
    let (stage, server, alice) = Stage::ready(&Setup::with("statement_timeout = 5000"));
    alice.takes(0);
    alice.says([query("SELECT")]);
    server.says([long_row(100_000)]);
    stage.wait(LONG * 2);
    assert!(server.is_open() && alice.is_open());
}

/// The same holds for what it says to us, behind a long reply.
#[test]
fn a_server_whose_answer_to_us_waits_for_its_client_is_not_given_up() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.takes(0);
    alice.says([query("SET a = b; SELECT")]);
    server.says([done(), columns(), long_row(100_000), done(), ready()]);
    stage.wait(Duration::from_secs(12));
    assert!(server.is_open() && alice.is_open());
}

/// What it has said meanwhile is there to be read when its client reads again; pgweir looked at
/// how long it was silent before it had come to that.
#[test]
fn a_server_that_is_read_again_is_not_given_up() {
    let (stage, server, alice) = Stage::ready(&Setup::with("statement_timeout = 5000"));
    alice.takes(0);
    alice.says([query("SELECT")]);
    server.says([long_row(100_000)]);
    assert!(!server.is_read());
    stage.wait(LONG * 2);
    alice.takes_all();
    assert!(server.is_read());
    stage.wait(TICK);
    assert!(server.is_open() && alice.is_open());
    stage.wait(LONG);
    assert!(server.is_open(), "its time begins when it is read");
    stage.wait(Duration::from_secs(1));
    assert!(server.is_aborted());
}

/// A client waits for its server until its unit is written, also while that server is brought to
/// its settings.
#[test]
fn the_wait_for_a_server_ends_when_the_unit_is_written() {
    let setup = Setup::with("query_wait_timeout = 2000");
    let (stage, server, _alice) = Stage::ready(&setup);
    let bob = stage.newcomer(&[("application_name", "bob")]);
    assert!(server.heard().starts_with("Q(SELECT ARRAY["));
    stage.wait(Duration::from_millis(2_100));
    assert_eq!(bob.heard(), "R E(FATAL 57P03)");
    assert!(server.is_open());
}

/// Who gives a hung server up and leaves took the place of it along: after as many as the pool has,
/// nobody was served any more.
#[test]
fn a_server_that_hangs_behind_its_client_is_given_up() {
    let (stage, server, alice) = Stage::ready(&Setup::with("statement_timeout = 5000"));
    let bob = stage.client();
    alice.says([query("slow")]);
    bob.says([query("next")]);
    stage.wait(Duration::from_secs(3));
    alice.breaks();
    stage.wait(Duration::from_millis(2_100));
    assert!(server.is_open(), "its own error is awaited");
    assert_eq!(stage.servers(), [ServerActivity::Tested]);
    stage.wait(Duration::from_secs(1));
    assert!(server.is_aborted());
    assert_eq!(bob.heard(), "E(53300) Z", "query_wait_timeout is shorter here");
    bob.says([query("again")]);
    assert_eq!(stage.server().heard(), "Q(again)");
}

/// What its client did not read kept it silent.
#[test]
fn a_server_that_waited_for_a_client_that_left_is_not_given_up() {
    let (stage, server, alice) = Stage::ready(&Setup::with("statement_timeout = 5000"));
    alice.takes(0);
    alice.says([query("SELECT")]);
    server.says([columns(), row(&[b'x'; 100_000])]);
    stage.wait(LONG * 2);
    alice.breaks();
    stage.wait(Duration::from_millis(100));
    assert!(server.is_open());
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// Nothing says how long a statement may take: somebody may want what it does, as with
/// PostgreSQL, where it runs on behind a client that has vanished.
#[test]
fn a_statement_without_a_limit_runs_on_behind_its_client() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("CREATE INDEX")]);
    alice.breaks();
    stage.wait(Duration::from_secs(2_000));
    assert_eq!((server.is_open(), stage.cancels()), (true, 0));
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// It has had its time, and the cancel did not help.
#[test]
fn a_server_that_does_not_heed_the_cancel_of_a_long_transaction_is_given_up() {
    let setup = Setup::with("transaction_timeout = 5000\nconnect_timeout = 2000");
    let (stage, server, alice) = in_transaction(&setup);
    alice.says([query("slow")]);
    stage.wait(LONG);
    assert_eq!(alice.heard(), "E(FATAL 25P04)");
    stage.cancel_line().expect("the statement is cancelled").ends();
    stage.wait(Duration::from_millis(1_800));
    assert!(server.is_open());
    stage.wait(Duration::from_millis(200));
    assert!(server.is_aborted());
}

/// PostgreSQL's own limit would hold for it, too.
#[test]
fn a_long_transaction_is_cancelled_behind_its_client() {
    let setup = Setup::with("transaction_timeout = 5000\nconnect_timeout = 2000");
    for heeds in [true, false] {
        let (stage, server, alice) = in_transaction(&setup);
        alice.says([query("slow")]);
        stage.wait(Duration::from_secs(3));
        alice.breaks();
        stage.wait(Duration::from_secs(1));
        assert_eq!(stage.cancels(), 0);
        stage.wait(Duration::from_millis(1_100));
        stage.cancel_line().expect("the statement is cancelled").ends();
        if heeds {
            server.says([error("57014"), in_block()]);
            assert_eq!(server.heard(), "Q(slow) Q(ROLLBACK)");
        } else {
            stage.wait(Duration::from_millis(2_100));
            assert_eq!((server.is_aborted(), stage.cancels()), (true, 0));
        }
    }
}

/// Those who have left long before the limit leave nothing behind that grows with each of them: the
/// engine asserts it.
#[test]
fn who_has_left_is_not_watched_any_more() {
    let (stage, _server, alice) = Stage::ready(&Setup::with("client_idle_timeout = 5000"));
    for _ in 0..3 {
        let bob = stage.client();
        stage.wait(Duration::from_millis(10));
        bob.says([terminate()]);
        assert!(bob.is_closed());
    }
    stage.wait(Duration::from_millis(5_100));
    assert_eq!(alice.heard(), "E(FATAL 57P05)");
}

/// What a server is asked for by ourselves gets no more time because a client has gone.
#[test]
fn a_server_that_hangs_while_it_is_prepared_for_a_client_that_left_is_given_up() {
    let setup = Setup::with("connect_timeout = 2000");
    let (stage, server, _alice) = Stage::ready(&setup);
    let bob = stage.newcomer(&[("application_name", "bob")]);
    assert!(server.heard().starts_with("Q(SELECT ARRAY["));
    stage.wait(Duration::from_secs(1));
    bob.breaks();
    stage.wait(Duration::from_millis(1_100));
    assert!(server.is_aborted());
}

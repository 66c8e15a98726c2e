//! A client leaves, at any point: what it had asked for is answered or undone, and its server
//! serves others.

use std::time::Duration;

use pgweir_engine::{Event, ServerActivity};

use crate::messages::{
    bind, bind_complete, columns, copy_in, done, error, execute, fatal, flush, in_block, long_row,
    message, one_row, parse, parse_complete, query, ready, row, sync, terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage};

/// The ways to leave.
const WAYS: [fn(&Peer); 3] = [|client| client.says([terminate()]), Peer::ends, Peer::breaks];

/// PostgreSQL does not answer a Terminate; nor does a pooled server need to know.
#[test]
fn who_leaves_idle_leaves_no_trace() {
    for leave in WAYS {
        let (stage, server, alice) = Stage::ready(&Setup::with("log_client_disconnections = true"));
        leave(&alice);
        assert!(!alice.is_open());
        assert_eq!((alice.heard(), server.heard()), (String::new(), String::new()));
        assert_eq!(stage.servers(), [ServerActivity::Idle]);
        assert!(matches!(stage.log().last(), Some(Event::ClientLeft { .. })));
    }
}

/// A client may send its last query and its end together: the query counts.
#[test]
fn a_query_just_before_the_end_is_run_and_answered() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says_and_ends([query("INSERT")]);
    assert_eq!(server.heard(), "Q(INSERT)");
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z");
    assert!(alice.is_closed());
    assert_eq!(stage.servers(), [ServerActivity::Idle]);

    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("INSERT"), query("COMMIT"), terminate()]);
    assert_eq!(server.heard(), "Q(INSERT) Q(COMMIT)");
    server.says([done(), ready()]);
    assert!(alice.is_open());
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z C Z");
    assert!(alice.is_closed());
}

/// Nothing counts behind a Terminate.
#[test]
fn a_query_behind_the_end_is_not_run() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("INSERT"), terminate(), query("behind")]);
    alice.says([query("later")]);
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(INSERT)");
    assert!(alice.is_closed());
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// The same for one that waits in the queue when its end is read.
#[test]
fn a_query_that_waits_is_run_although_its_client_has_ended() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("slow")]);
    bob.says_and_ends([query("INSERT"), query("COMMIT")]);
    assert!(bob.is_open());
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(slow) Q(INSERT) Q(COMMIT)");
    server.says([done(), ready(), done(), ready()]);
    assert_eq!(bob.heard(), "C Z C Z");
    assert!(bob.is_closed());
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// Half a message will never be whole.
#[test]
fn half_a_message_before_the_end_is_forgotten() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.sends(&query("INSERT")[..9]);
    alice.ends();
    assert!(alice.is_closed());
    assert_eq!((server.heard().as_str(), stage.servers()), ("", vec![ServerActivity::Idle]));
}

/// What a client has left running takes the time that it takes: to break it off would undo it.
#[test]
fn a_query_of_who_is_gone_is_not_timed() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("slow")]);
    alice.breaks();
    stage.wait(Duration::from_secs(600));
    assert!(server.is_open());
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// The reply of a client that is gone is read to its end: the server is good for others.
#[test]
fn a_reply_that_nobody_reads_does_not_reach_the_next_client() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("a"), query("b")]);
    bob.says([query("bob")]);
    server.says([columns(), row(b"alice")]);
    alice.breaks();
    server.says([row(b"alice"), done(), ready()]);
    assert_eq!(server.heard(), "Q(a) Q(b)");
    server.says([error("22012"), ready()]);
    assert_eq!(server.heard(), "Q(bob)");
    server.says([one_row("bob")]);
    assert_eq!(bob.heard(), "T D(bob) C Z");
}

/// Inside of a long message of the server, too.
#[test]
fn the_rest_of_a_message_that_nobody_reads_does_not_reach_the_next_client() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("a")]);
    bob.says([query("bob")]);
    let long = long_row(100_000);
    server.sends(&long[..50_000]);
    alice.breaks();
    server.sends(&long[50_000..]);
    server.says([done(), ready()]);
    server.says([one_row("bob")]);
    assert_eq!(bob.heard(), "T D(bob) C Z");
}

/// What a client leaves in a transaction is undone, when its replies are read.
#[test]
fn a_transaction_is_rolled_back_behind_the_replies() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("BEGIN"), query("INSERT")]);
    server.says([done(), in_block()]);
    alice.breaks();
    assert_eq!(server.heard(), "Q(BEGIN) Q(INSERT)");
    server.says([done(), in_block()]);
    assert_eq!(server.heard(), "Q(ROLLBACK)");
}

/// A Terminate inside of a transaction is no COMMIT, nor is one behind its replies.
#[test]
fn who_says_goodbye_with_a_transaction_open_has_it_rolled_back() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("BEGIN"), query("INSERT"), terminate()]);
    server.says([done(), in_block(), done(), in_block()]);
    assert_eq!(alice.heard(), "C Z(T) C Z(T)");
    assert!(alice.is_closed());
    assert_eq!(server.heard(), "Q(BEGIN) Q(INSERT) Q(ROLLBACK)");
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// The server waits for the rest of a message that will never come.
#[test]
fn who_leaves_inside_a_message_takes_the_server_with_it() {
    let call = [b"F", &100_004_u32.to_be_bytes()[..], &[0; 100_000]].concat();
    let messages = [(query(&"x".repeat(100_000)), 50_000), (call, 50_000)];
    for (leave, (long, part)) in [Peer::ends, Peer::breaks]
        .iter()
        .flat_map(|leave| messages.iter().map(move |its| (leave, its)))
    {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        alice.sends(&long[..*part]);
        assert_eq!(stage.servers(), [ServerActivity::Active]);
        leave(&alice);
        assert!(server.sees_its_client_vanish() && !alice.is_open());
        assert_eq!((stage.servers(), stage.connections()), (vec![], 0));
    }
}

/// A batch without its Sync is not committed: its backend must see its client vanish.
#[test]
fn who_leaves_before_the_sync_takes_the_server_with_it() {
    for leave in WAYS {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([parse("INSERT"), bind(), execute(), flush()]);
        server.says([parse_complete(), bind_complete(), done()]);
        assert_eq!(alice.heard(), "1 2 C");
        leave(&alice);
        assert_eq!(server.heard(), "P(INSERT) B E H");
        assert!(server.sees_its_client_vanish() && !alice.is_open());
        assert_eq!(stage.servers(), []);
    }
}

/// PostgreSQL does not look at its socket while it executes: what runs goes on behind the end of
/// its client, and counts there for so long. So it does here.
#[test]
fn a_batch_that_runs_on_behind_its_client_is_counted() {
    for limit in ["", "max_server_connections = 1"] {
        for leave in WAYS {
            let (stage, server, alice) = Stage::ready(&Setup::with(limit));
            let bob = stage.client();
            alice.says([parse("slow"), bind(), execute(), flush()]);
            leave(&alice);
            assert!(!alice.is_open() && server.is_half_closed());
            bob.says([query("next")]);
            stage.wait(Duration::from_secs(2));
            assert_eq!((stage.attempts(), stage.cancels()), (0, 0));
            assert_eq!(stage.servers(), [ServerActivity::Tested]);
            server.says([parse_complete(), bind_complete(), done()]);
            assert!(server.is_open());
            server.ends();
            assert_eq!(server.heard(), "P(slow) B E H", "least of all a Sync");
            assert_eq!(stage.server().heard(), "Q(next)");
        }
    }
}

/// It is no server that anybody could wait for: who is refused another one is told so.
#[test]
fn a_batch_that_runs_on_does_not_hide_that_a_login_is_refused() {
    let (stage, _server, alice) = Stage::ready(&Setup::of_size(2));
    let bob = stage.client();
    alice.says([parse("slow"), bind(), execute(), flush()]);
    alice.breaks();
    bob.says([query("next")]);
    stage.bare_server().says([fatal("28P01")]);
    assert_eq!(bob.heard(), "E(28P01) Z");
}

/// Whoever asks for a cancel and leaves wants it all the more.
#[test]
fn a_cancel_reaches_a_batch_whose_client_has_left() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("slow"), bind(), execute(), flush()]);
    let canceller = stage.cancel(&alice);
    alice.breaks();
    let cancel = stage.cancel_line().expect("it is wanted");
    assert!(!cancel.heard_bytes().is_empty());
    assert!(canceller.is_open() && server.is_half_closed());
    cancel.ends();
    assert!(canceller.is_closed());
    server.says([parse_complete(), bind_complete(), error("57014")]);
    server.ends();
    assert_eq!((stage.servers(), stage.connections()), (vec![], 0));
}

/// A cancel is for what its client ran when it was asked for. What that sent behind it runs on when
/// its connection breaks: a COMMIT was cancelled.
#[test]
fn a_cancel_does_not_reach_what_its_client_has_sent_since() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    alice.says([query("slow")]);
    stage.cancel(&alice);
    server.says([done(), in_block()]);
    alice.says([query("COMMIT")]);
    alice.breaks();
    let cancel = stage.cancel_line().expect("it is asked whether it is wanted");
    assert!(cancel.heard_bytes().is_empty() && cancel.is_aborted(), "it comes too late");
    server.says([done(), ready()]);
    assert_eq!(
        (server.heard().as_str(), stage.servers()),
        ("Q(BEGIN) Q(slow) Q(COMMIT)", vec![ServerActivity::Idle])
    );
}

/// A backend whose client is gone ends at its next write; one that is read on must be told.
#[test]
fn what_says_too_much_behind_its_client_is_cancelled() {
    let setup = Setup::with("connect_timeout = 2000");
    for unit in [vec![query("SELECT")], vec![parse("SELECT"), bind(), execute()]] {
        for heeds in [true, false] {
            let (stage, server, alice) = Stage::ready(&setup);
            alice.says(unit.iter().chain([&flush()]));
            server.says([parse_complete(), bind_complete()].iter().skip(3 - unit.len().min(3)));
            alice.breaks();
            for _ in 0..30 {
                server.says([long_row(50_000)]);
            }
            assert!(server.is_half_closed());
            stage.cancel_line().expect("it is cancelled").ends();
            if heeds {
                server.says([error("57014")]);
                server.ends();
            } else {
                stage.wait(Duration::from_millis(2_100));
            }
            assert_eq!((server.is_open(), stage.servers()), (false, vec![]));
        }
    }
}

/// It has nothing to do but to see its client go.
#[test]
fn a_server_that_does_not_see_its_client_go_is_given_up() {
    let batch = [parse("INSERT"), bind(), execute(), flush()];
    let copy = [query("COPY t FROM STDIN")];
    for (asked, answer, early) in [
        (&batch[..], [parse_complete(), bind_complete(), done()].concat(), false),
        (&copy[..], copy_in(), false),
        (&copy[..], copy_in(), true),
    ] {
        let (stage, server, alice) = Stage::ready(&Setup::with("connect_timeout = 2000"));
        alice.says(asked);
        if early {
            alice.breaks();
            server.sends(&answer);
        } else {
            server.sends(&answer);
            alice.breaks();
        }
        assert!(server.is_half_closed());
        stage.wait(Duration::from_millis(1_900));
        assert!(server.is_open());
        stage.wait(Duration::from_millis(300));
        assert_eq!((server.is_open(), stage.servers()), (false, vec![]));
    }
}

/// An error in front of a Terminate: the server skips everything up to a Sync that never comes.
#[test]
fn who_leaves_while_the_server_skips_takes_it_with_it() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("bad"), query("SELECT"), terminate()]);
    server.says([error("42601")]);
    alice.ends();
    assert!(server.sees_its_client_vanish() && !alice.is_open());
    assert_eq!((stage.servers(), stage.connections()), (vec![], 0));
}

/// It goes when it has heard all of the error.
#[test]
fn who_leaves_while_the_server_skips_hears_the_error() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("bad"), query("SELECT"), terminate()]);
    let long = [b"VERROR\0C42601\0M", &[b'x'; 50_000][..], b"\0\0"].concat();
    let long = message(b'E', &long);
    server.sends(&long[..20_000]);
    assert!(alice.is_open());
    server.sends(&long[20_000..]);
    assert!(alice.heard_bytes() == long);
    assert!(alice.is_closed() && server.sees_its_client_vanish());
}

/// The same, when it was gone before the error came.
#[test]
fn a_server_that_skips_for_who_is_gone_is_closed() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("bad"), query("SELECT")]);
    alice.breaks();
    assert_eq!(stage.servers(), [ServerActivity::Tested]);
    server.says([error("42601")]);
    assert!(server.sees_its_client_vanish());
    assert_eq!((stage.servers(), stage.connections()), (vec![], 0));
}

/// A client that has said that it says no more hears what its server has said so far, and not the
/// rest: its server sees no more of it either.
#[test]
fn who_leaves_inside_a_reply_is_cut_off() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("SELECT"), bind(), execute(), flush()]);
    server.says([parse_complete(), bind_complete()]);
    assert_eq!(alice.heard(), "1 2");
    server.sends(&row(&[b'x'; 100_000])[..50_000]);
    alice.ends();
    assert_eq!(alice.heard_bytes().len(), 50_000);
    assert!(alice.is_closed() && server.sees_its_client_vanish());
}

/// A batch that waits in the queue and is not whole is none.
#[test]
fn half_a_batch_before_the_end_is_forgotten() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says_and_ends([parse("INSERT"), bind(), execute()]);
    assert!(alice.is_closed());
    assert_eq!((server.heard().as_str(), stage.servers()), ("", vec![ServerActivity::Idle]));
}

/// Who cannot be written to is gone: what it has sent since is not run.
#[test]
fn who_cannot_be_written_to_is_gone() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("a")]);
    assert_eq!(server.heard(), "Q(a)");
    alice.deafens();
    server.says([columns(), row(b"1")]);
    assert!(alice.is_aborted());
    server.says([done(), ready()]);
    assert_eq!((server.heard().as_str(), stage.servers()), ("", vec![ServerActivity::Idle]));
}

/// A client that leaves while it logs in, at each step.
#[test]
fn who_leaves_during_its_login_leaves_no_trace() {
    for leave in [Peer::ends, Peer::breaks] {
        let stage = Stage::new(&Setup { auth: "md5", ..Setup::default() });
        let stranger = stage.stranger();
        leave(&stranger);
        assert!(!stranger.is_open());
        let halfway = stage.newcomer(&[]);
        leave(&halfway);
        assert!(!halfway.is_open());
        assert_eq!((stage.connections(), stage.attempts()), (0, 0));
    }
    let stage = Stage::new(&Setup::default());
    let waiting = stage.newcomer(&[]);
    waiting.breaks();
    assert!(waiting.is_aborted());
    stage.server();
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A client that logs in and ends its stream may still read its greeting.
#[test]
fn who_ends_before_its_greeting_is_greeted_and_goes() {
    let stage = Stage::new(&Setup::default());
    let newcomer = stage.newcomer(&[]);
    newcomer.ends();
    stage.server();
    assert!(newcomer.is_greeted());
    assert!(newcomer.is_closed());
    assert_eq!(stage.clients(), []);
}

/// A Sync that settles the batch lets its client go.
#[test]
fn a_batch_before_the_end_is_run_and_answered() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("INSERT"), bind(), execute(), sync(), terminate()]);
    server.says([parse_complete(), bind_complete(), done(), ready()]);
    assert_eq!(alice.heard(), "1 2 C Z");
    assert!(alice.is_closed());
}

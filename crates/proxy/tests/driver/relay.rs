//! From a server's bytes to the clients that are owed them, and to nobody else.

use std::time::Duration;

use pgweir_engine::{Event, Mark, ServerActivity};

use crate::messages::{
    columns, copy_data, copy_done, copy_out, done, error, fatal, in_block, long_row, message,
    notice, notification, one_row, parameter_status, parse, parse_complete, query, ready, row,
    sync, terminate,
};
use crate::stage::{Setup, Stage, took};

/// Promise one: whatever two clients do at the same time, each gets its own rows.
#[test]
fn each_client_gets_its_own_rows() {
    let (stage, first, alice) = Stage::ready(&Setup::of_size(2));
    let bob = stage.client();
    alice.says([query("a")]);
    bob.says([query("b")]);
    let second = stage.server();
    let [for_alice, for_bob] = [one_row("alice"), one_row("bobby")];
    for (a, b) in for_alice.chunks(3).zip(for_bob.chunks(3)) {
        second.sends(b);
        first.sends(a);
    }
    assert_eq!(alice.heard(), "T D(alice) C Z");
    assert_eq!(bob.heard(), "T D(bobby) C Z");
}

/// A row that is too long to be waited for goes on from its first bytes, an error once what is to
/// be done about it stands in what has come.
#[test]
fn a_long_row_is_passed_on_from_its_first_bytes() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT")]);
    server.says([columns()]);
    assert_eq!(alice.heard(), "T");
    let row = row(&[b'x'; 50_000]);
    for piece in [&row[..100], &row[100..]] {
        server.sends(piece);
        assert_eq!(alice.heard_bytes(), piece);
    }

    let start = b"SERROR\0VERROR\0C22012\0M";
    let error = message(b'E', &[&start[..], &[b'x'; 50_000], b"\0\0"].concat());
    server.sends(&error[..16_383]);
    assert_eq!(alice.heard_bytes(), b"");
    server.sends(&error[16_383..16_384]);
    assert_eq!(alice.heard_bytes(), error[..16_384]);
    server.sends(&error[16_384..]);
    server.says([ready()]);
    assert_eq!(alice.heard_bytes(), [&error[16_384..], &ready()].concat());
}

/// A report of so many bytes of what a server is set to.
fn report(length: usize) -> Vec<u8> {
    let start = b"search_path\0";
    let value = vec![b'x'; length - 5 - start.len() - 1];
    message(b'S', &[&start[..], &value, b"\0"].concat())
}

/// PostgreSQL 18 reports `search_path`, and libpq takes 30,001 bytes of it: above 16 KB a report
/// ended its client as if the server had miscounted.
#[test]
fn a_long_report_is_passed_on_once_it_is_whole() {
    for length in [16_384, 16_385, 30_001, 30_005] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        let bob = stage.client();
        alice.says([query("SELECT")]);
        let report = report(length);
        server.sends(&report[..length - 1]);
        assert_eq!(alice.heard_bytes(), b"");
        server.sends(&report[length - 1..]);
        server.says([done(), ready()]);
        assert!(alice.heard_bytes() == [&report[..], &done(), &ready()].concat());
        // Whoever has the server next is told it, too.
        bob.says([query("SELECT")]);
        server.says([done(), ready()]);
        assert!(bob.heard_bytes() == [&report[..], &done(), &ready()].concat());
        assert_eq!(stage.contained(), None);
    }
}

/// What pgweir itself has to read must come whole, and PostgreSQL's is short.
#[test]
fn what_is_read_is_not_too_long() {
    let unread = message(b'Z', &[b'I'; 20_000]);
    for (said, cause) in [
        (&report(30_006)[..], "ParameterStatus is too long"),
        (&report(30_006)[..6], "ParameterStatus is too long"),
        (&unread[..6], "ReadyForQuery is too long"),
        (&unread[..], "ReadyForQuery is too long"),
        (&message(b'Z', b"I!")[..], "bytes behind its last field"),
    ] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([query("SELECT")]);
        server.sends(said);
        let told = stage.contained().expect("nothing of it can be trusted");
        assert!(told.contains(cause), "{told}");
        assert!(server.is_aborted());
        assert_eq!(alice.heard(), "E(FATAL XX000)");
    }
}

/// A server that dies inside a message would leave its client no place for the error.
#[test]
fn a_short_message_is_passed_on_once_it_is_whole() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT")]);
    let row = row(&[b'x'; 10_000]);
    server.says([columns()]);
    server.sends(&row[..9_000]);
    assert_eq!(alice.heard(), "T");
    server.ends();
    assert_eq!(alice.heard(), "E(08007) Z");
}

/// A row of a gigabyte must not be gathered in memory.
#[test]
fn a_long_message_is_passed_on_as_it_comes() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT")]);
    let long = long_row(3_000_000);
    let mut came = Vec::new();
    for piece in long.chunks(50_000) {
        server.sends(piece);
        let new = alice.heard_bytes();
        assert!(!new.is_empty());
        came.extend(new);
    }
    assert!(came == long, "{} bytes of {}", came.len(), long.len());
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A message that no unit is owed means that we have miscounted: nobody must see a byte of it.
#[test]
fn a_message_that_nobody_is_owed_closes_its_server() {
    let rows = [row(b"a stranger's"), done(), ready(), parse_complete(), message(b'y', b"")];
    for unasked in rows {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        server.says([unasked]);
        assert!(stage.contained().is_some());
        assert!(server.is_aborted());
        assert_eq!((alice.heard(), stage.servers()), (String::new(), vec![]));
        assert!(alice.is_open());
    }
    assert!(took(Mark::Contained));
}

/// No message has such a length: whatever follows is not what it seems.
#[test]
fn an_impossible_length_ends_its_server() {
    for length in [0, 3, -1, i32::MIN] {
        for (asks, told) in [(false, ""), (true, "E(FATAL XX000)")] {
            let (stage, server, alice) = Stage::ready(&Setup::default());
            if asks {
                alice.says([query("SELECT")]);
            }
            server.sends(&[&b"T"[..], &length.to_be_bytes(), b"\0\0"].concat());
            assert!(stage.contained().is_some() && server.is_aborted(), "{length}");
            assert_eq!(alice.heard(), told, "{length}");
        }
    }
}

/// The client whose server has gone mad is told, and gets nothing more of it.
#[test]
fn a_message_that_does_not_fit_the_unit_ends_its_client() {
    for wrong in [parse_complete(), copy_data(b"data"), copy_done(), message(b'V', &[0xff; 4])] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([query("SELECT")]);
        server.says([columns(), wrong, row(b"a stranger's"), done(), ready()]);
        assert_eq!(alice.heard(), "T E(FATAL XX000)");
        assert!(alice.is_closed());
        assert!(server.is_aborted());
        assert!(stage.contained().is_some_and(|cause| cause.contains("Query")));
    }
}

/// One reply too many, right behind one that was due, must not reach the next client, whose the
/// server is by then. It has sent nothing yet, and gets another.
#[test]
fn a_reply_too_many_does_not_reach_the_next_client() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("a")]);
    bob.says([parse("b"), sync()]);
    server.says([done(), ready(), row(b"alice"), done(), ready()]);
    assert_eq!(alice.heard(), "C Z");
    assert_eq!(bob.heard(), "");
    assert!(stage.contained().is_some());
    assert!(!server.is_open());
    assert_eq!(server.heard(), "Q(a)");
    assert_eq!(stage.server().heard(), "P(b) S");
}

/// The same, when the next client has sent its own by then: what comes is not taken for the answer
/// to it, or every reply from then on would go to the wrong client.
#[test]
fn a_reply_too_many_is_not_the_answer_to_what_was_sent_since() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let (bob, carol) = (stage.client(), stage.client());
    alice.says([query("a")]);
    bob.says([query("b")]);
    carol.says([query("c")]);
    server.says([done(), ready()]);
    assert_eq!((alice.heard().as_str(), server.heard().as_str()), ("C Z", "Q(a) Q(b)"));
    server.says([ready(), columns(), row(b"bob"), done(), ready()]);
    assert!(stage.contained().is_some());
    assert!(!server.is_open());
    assert!(!bob.heard().contains('Z') && bob.heard_bytes().is_empty());
    assert_eq!(carol.heard(), "");
    assert_eq!(stage.server().heard(), "Q(c)");
}

/// Notices belong to whoever is running something.
#[test]
fn a_notice_goes_to_who_holds_the_server() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("a")]);
    server.says([notice(), done(), ready(), notice()]);
    assert_eq!((alice.heard(), bob.heard()), ("N C Z".to_owned(), String::new()));
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A notice that our own statement caused is nobody's.
#[test]
fn a_notice_of_our_own_statement_goes_to_nobody() {
    let stage = Stage::new(&Setup::default());
    let client = stage.newcomer(&[("application_name", "it")]);
    let server = stage.server();
    server.says([notice(), one_row("it")]);
    assert_eq!(client.heard(), "R S(server_version=15.1) K Z");
}

/// A function may LISTEN, which no text shows: what comes of it was given to whoever held the
/// server by then.
#[test]
fn a_notification_goes_to_nobody_who_did_not_listen() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("SELECT listens_inside()")]);
    server.says([done(), ready()]);
    bob.says([query("BEGIN")]);
    server.says([done(), in_block(), notification()]);
    assert_eq!(bob.heard(), "C Z(T)");
    bob.says([query("COMMIT")]);
    server.says([done(), ready()]);
    assert_eq!(bob.heard(), "C Z");
    // It listens to something that none of the others asked for.
    assert!(server.is_closed());
    assert_eq!((alice.heard(), stage.servers()), ("C Z".to_owned(), vec![]));
}

/// The same, while nobody holds the server: its next client would hear the next one.
#[test]
fn an_idle_server_that_notifies_is_closed() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    server.says([notification()]);
    assert!(server.is_closed());
    assert_eq!((alice.heard(), stage.servers()), (String::new(), vec![]));
    assert!(took(Mark::NotifiedWhileFree));
}

/// A message that began when nobody held the server goes on when somebody does.
#[test]
fn the_rest_of_a_message_that_was_nobodys_is_nobodys() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let long = message(b'N', &[b'x'; 50_000]);
    server.sends(&long[..20_000]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    alice.says([query("SELECT")]);
    server.sends(&long[20_000..]);
    server.says([one_row("1")]);
    assert_eq!(alice.heard(), "T D(1) C Z");
}

/// Who listens is told, also between its transactions.
#[test]
fn a_notification_goes_to_who_listens() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("LISTEN channel")]);
    server.says([done(), ready(), notification()]);
    assert_eq!(alice.heard(), "C Z A");
    assert!(server.is_open());

    let (_stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    alice.says([query("SELECT listens_inside()")]);
    server.says([done(), ready(), notification()]);
    assert_eq!(alice.heard(), "C Z A");
    assert!(server.is_open());
}

/// Drivers follow settings by ParameterStatus, and newcomers are told what is true then.
#[test]
fn a_parameter_status_goes_to_who_holds_the_server() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SET TimeZone = 'UTC'")]);
    server.says([parameter_status("TimeZone", "UTC"), done(), ready()]);
    assert_eq!(alice.heard(), "S(TimeZone=UTC) C Z");
}

/// An idle server that says goodbye was lent once more before its end was seen.
#[test]
fn a_server_that_says_goodbye_while_idle_is_not_lent() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    server.says([fatal("57P01")]);
    assert!(server.is_aborted());
    assert_eq!(stage.servers(), []);
    alice.says([query("SELECT")]);
    assert_eq!(stage.server().heard(), "Q(SELECT)");
    assert_eq!(alice.heard(), "");
    let lost = stage.log().into_iter().any(|event| matches!(event, Event::ServerLost { .. }));
    assert!(lost);
}

/// A FATAL between two units of a session is its client's to see.
#[test]
fn a_goodbye_between_units_goes_to_who_holds_the_server() {
    let (_stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    alice.says([query("SELECT")]);
    server.says([done(), ready(), fatal("57P05")]);
    assert_eq!(alice.heard(), "C Z E(FATAL 57P05)");
    server.ends();
    assert_eq!(alice.heard(), "");
    assert!(alice.is_closed());
}

/// A FATAL is the last that a client hears: before the end of its server's stream was seen, a limit
/// of ours, or our end, added another one.
#[test]
fn nothing_is_said_behind_the_goodbye_of_a_server() {
    let general = "transaction_timeout = 5000";
    let setup = Setup { general, ..Setup::of_mode("session") };
    let ends: [fn(&Stage); 2] =
        [|stage| stage.wait(Duration::from_millis(5_100)), |stage| stage.shut_down()];
    for end in ends {
        let (stage, server, alice) = Stage::ready(&setup);
        alice.says([query("BEGIN")]);
        server.says([done(), in_block(), fatal("57P05")]);
        end(&stage);
        assert_eq!(alice.heard(), "C Z(T) E(FATAL 57P05)");
        assert!(alice.is_closed());
    }
}

/// A server that has said goodbye is not lent again, whatever it says behind it.
#[test]
fn a_server_that_has_said_goodbye_in_a_reply_is_not_lent() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT")]);
    server.says([fatal("XX000"), ready()]);
    assert_eq!(alice.heard(), "E(FATAL XX000) Z");
    assert!(server.is_closed());
    assert_eq!(stage.servers(), []);
}

/// The same, when its client leaves before it is gone.
#[test]
fn a_server_that_has_said_goodbye_between_units_is_not_lent() {
    let (stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    alice.says([query("SELECT")]);
    server.says([done(), ready(), fatal("57P05")]);
    alice.says([terminate()]);
    assert_eq!(server.heard(), "Q(SELECT) Q(DISCARD ALL)");
    server.says([done(), ready()]);
    assert!(server.is_closed());
    assert_eq!(stage.servers(), []);
}

/// An error that is none of a batch's and no FATAL either: the count is wrong.
#[test]
fn an_error_that_nobody_is_owed_closes_its_server() {
    let (stage, server, _alice) = Stage::ready(&Setup::default());
    assert_eq!(stage.snapshot().pools[0].stats.contained, 0);
    server.says([error("XX000")]);
    assert!(stage.contained().is_some());
    assert_eq!(stage.snapshot().pools[0].stats.contained, 1);
    assert!(server.is_aborted());
    assert!(took(Mark::ContainedBeforeUse));
}

/// Rows by the thousand are forwarded in one piece, and none is lost at the seams.
#[test]
fn many_rows_arrive_in_order() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SELECT")]);
    let rows: Vec<u8> = (0..5_000).flat_map(|n: u32| row(n.to_string().as_bytes())).collect();
    let reply = [columns(), rows, done(), ready()].concat();
    for piece in reply.chunks(777) {
        server.sends(piece);
    }
    assert!(alice.heard_bytes() == reply);
}

/// COPY OUT is many CopyData, then CopyDone.
#[test]
fn copied_data_arrives_as_it_was_sent() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("COPY t TO STDOUT")]);
    server.says([copy_out(), copy_data(b"1\n"), copy_data(b"2\n"), copy_done(), done(), ready()]);
    assert_eq!(alice.heard(), "H d d c C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

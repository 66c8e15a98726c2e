//! Clients of the console: one command at a time, answered from elsewhere.

use std::time::Duration;

use pgweir_engine::{Ends, Mark};

use crate::messages::{
    bind, done, execute, flush, from_backend, in_block, message, parse, password, query, ready,
    row, startup, sync, terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

/// A client that has sent its startup packet to the console, and this behind it.
fn caller(stage: &Stage, behind: Vec<u8>) -> Peer {
    let caller = stage.stranger();
    caller.says([startup(&[("user", "admin"), ("database", "pgweir")]), behind]);
    caller
}

/// A client of the console that has logged in.
fn admitted() -> (Stage, Peer) {
    let stage = Stage::new(&Setup::default());
    let admin = caller(&stage, vec![]);
    admin.says([password("secret")]);
    assert!(admin.is_greeted());
    (stage, admin)
}

/// Too many clients are what somebody wants to look at who asks for the console.
#[test]
fn the_console_is_open_when_there_are_too_many_clients() {
    let (stage, _server, _alice) = Stage::ready(&Setup::with("max_clients = 1"));
    let admin = caller(&stage, vec![]);
    admin.says([password("secret")]);
    assert!(admin.is_greeted());
    let own = stage.stranger_from(Some(Ends::Unix { port: 6000, own: true }));
    own.says([startup(&[("user", "whoever"), ("database", "pgbouncer")])]);
    assert!(own.is_greeted());
    for (user, database) in [("user", "pgweir"), ("admin", "db")] {
        let other = stage.stranger();
        other.says([startup(&[("user", user), ("database", database)])]);
        assert_eq!(other.heard(), "E(FATAL 53300)", "{user} {database}");
    }
}

/// Commands go out as text, and what is answered goes to who asked.
#[test]
fn a_command_is_answered() {
    let (stage, admin) = admitted();
    admin.says([query("SHOW POOLS")]);
    assert_eq!(stage.commands(), ["SHOW POOLS"]);
    assert_eq!(admin.heard(), "");
    stage.console_says(&admin, &[done(), ready()].concat());
    assert_eq!(admin.heard(), "C Z");
}

/// Answers come in the order of the questions.
#[test]
fn commands_are_given_one_at_a_time() {
    let (stage, admin) = admitted();
    admin.says([query("SHOW POOLS"), query("SHOW STATS")]);
    assert_eq!(stage.commands(), ["SHOW POOLS"]);
    stage.console_says(&admin, &[done(), ready()].concat());
    assert_eq!(stage.commands(), ["SHOW STATS"]);
}

/// The end of a console's stream was never noticed: its client leaked.
#[test]
fn who_ends_its_stream_is_let_go() {
    let (stage, admin) = admitted();
    admin.ends();
    assert!(admin.is_closed());
    assert_eq!((stage.clients_left(), stage.connections()), (0, 0));
}

/// A script sends its command and its end together, and reads the answer.
#[test]
fn a_command_just_before_the_end_is_answered() {
    for end in [vec![], terminate(), query("half")[..7].to_vec()] {
        let (stage, admin) = admitted();
        admin.says_and_ends([query("SHOW POOLS"), end]);
        assert_eq!(stage.commands(), ["SHOW POOLS"]);
        assert!(admin.is_open());
        stage.console_says(&admin, &[done(), ready()].concat());
        assert_eq!(admin.heard(), "C Z");
        assert!(admin.is_closed());
    }
}

/// A client that knows what it will be asked sends its password along: the second half was not
/// looked at before more came.
#[test]
fn a_password_that_comes_with_the_startup_packet_is_read() {
    let stage = Stage::new(&Setup::default());
    let admin = caller(&stage, password("secret"));
    assert!(admin.is_greeted());
    let early = caller(&stage, [password("secret"), query("SHOW POOLS")].concat());
    assert!(early.is_greeted());
    assert_eq!(stage.commands(), ["SHOW POOLS"]);
}

/// The console shows secrets of operation: a wrong password opens nothing.
#[test]
fn a_wrong_password_is_refused() {
    let stage = Stage::new(&Setup::default());
    let stranger = caller(&stage, password("guess"));
    assert_eq!(stranger.heard(), "R E(FATAL 28P01)");
    assert!(stranger.is_closed());
}

/// The extended protocol is refused with one error for each batch, as after any error.
#[test]
fn the_extended_protocol_is_refused() {
    let (stage, admin) = admitted();
    admin.says([parse("SHOW POOLS"), bind(), execute(), sync(), query("SHOW POOLS")]);
    assert_eq!(admin.heard(), "E(0A000) Z");
    assert_eq!(stage.commands(), ["SHOW POOLS"]);
}

/// A command in a batch that was refused was carried out.
#[test]
fn behind_a_refusal_nothing_is_carried_out_before_the_sync() {
    let (stage, admin) = admitted();
    admin.says([parse("SHOW POOLS"), query("SHUTDOWN"), flush(), query("RELOAD"), sync()]);
    assert_eq!(admin.heard(), "E(0A000) Z");
    assert_eq!(stage.commands(), [""; 0]);
    admin.says([query("SHOW POOLS")]);
    assert_eq!(stage.commands(), ["SHOW POOLS"]);
}

/// Whoever called a function waited for ever: no Sync follows that.
#[test]
fn a_function_call_is_refused_and_over() {
    let (stage, admin) = admitted();
    admin.says([message(b'F', b"\0\0\0\x01\0\0\0\0\0\0"), query("SHOW POOLS")]);
    assert_eq!(admin.heard(), "E(0A000) Z");
    assert_eq!(stage.commands(), ["SHOW POOLS"]);
}

/// A Flush, and what is left of a COPY that has failed, mean nothing to PostgreSQL, and were
/// refused here.
#[test]
fn what_means_nothing_is_passed_over() {
    let (stage, admin) = admitted();
    let copy = [message(b'd', b"data"), message(b'c', b""), message(b'f', b"why\0")];
    admin.says([flush(), copy.concat(), query("SHOW POOLS")]);
    assert_eq!(admin.heard(), "");
    assert_eq!(stage.commands(), ["SHOW POOLS"]);
}

/// What is no command ends the connection, with a word why.
#[test]
fn what_cannot_be_read_ends_the_connection() {
    let length = 40_000u32.to_be_bytes();
    let (too_long, too_short) = ([&b"Q"[..], &length].concat(), b"Q\0\0\0\x03".to_vec());
    let late = [parse("SHOW POOLS"), password("secret")].concat();
    let alone = [message(b'y', b""), too_long, too_short, password("secret")];
    for wrong in alone.into_iter().chain([late]) {
        let (stage, admin) = admitted();
        admin.says([wrong]);
        assert!(admin.heard().ends_with("E(FATAL 08P01)"));
        assert!(admin.is_closed());
        assert_eq!(stage.connections(), 0);
    }
}

/// A session of the console is in no transaction.
#[test]
fn a_drain_ends_it() {
    let (stage, admin) = admitted();
    stage.drain();
    assert_eq!(admin.heard(), "E(FATAL 57P01)");
    assert!(admin.is_closed());
}

/// An operator may look on, and end it, until there is nothing left to look at.
#[test]
fn a_drain_leaves_it_until_the_others_are_gone() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let admin = caller(&stage, password("secret"));
    assert!(admin.is_greeted());
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    stage.drain();
    stage.wait(Duration::from_secs(30));
    admin.says([query("SHOW CLIENTS")]);
    assert_eq!(stage.commands(), ["SHOW CLIENTS"]);
    stage.console_says(&admin, &[done(), ready()].concat());
    stage.wait(Duration::from_millis(100));
    assert_eq!(admin.heard(), "C Z");
    alice.says([query("COMMIT")]);
    server.says([done(), ready()]);
    assert!(alice.is_closed() && admin.is_open());
    stage.wait(Duration::from_millis(100));
    assert_eq!(admin.heard(), "E(FATAL 57P01)");
    assert!(admin.is_closed());
    assert_eq!(stage.clients_left(), 0);
}

/// An answer for a client that is gone is nobody's, even if its place is taken again.
#[test]
fn an_answer_for_who_is_gone_goes_nowhere() {
    let (stage, admin) = admitted();
    admin.says([query("SHOW POOLS")]);
    admin.breaks();
    assert!(admin.is_aborted());
    let next = caller(&stage, password("secret"));
    assert!(next.is_greeted());
    stage.console_says(&admin, &[done(), ready()].concat());
    assert_eq!(next.heard(), "");
}

/// The answers to whoever does not read them piled up without limit.
#[test]
fn who_does_not_read_its_answers_is_not_read() {
    let (stage, admin) = admitted();
    admin.takes(0);
    let commands = 40;
    admin.says([query("SHOW CLIENTS").repeat(commands)]);
    let reply = [row(&[b'x'; 10_000]), done(), ready()].concat();
    let mut asked = 0;
    while !stage.commands().is_empty() {
        asked += 1;
        stage.console_says(&admin, &reply);
    }
    assert!((6..10).contains(&asked), "{asked} answers of 10 KB lie there");
    // So do ends of batches, which we answer ourselves.
    admin.says([sync().repeat(200_000)]);
    assert!(!admin.is_read());
    admin.takes_all();
    while !stage.commands().is_empty() {
        asked += 1;
        stage.console_says(&admin, &reply);
    }
    assert_eq!(asked, commands);
    let syncs = [reply.repeat(commands), ready().repeat(200_000)].concat();
    assert!(admin.heard_bytes() == syncs, "all of it is answered");
}

/// Nor do refusals pile up, of which five bytes ask for one, and which come thousands at once.
#[test]
fn who_is_refused_many_times_at_once_is_not_read_on() {
    for reads in [true, false] {
        let (_stage, admin) = admitted();
        if !reads {
            admin.takes(0);
        }
        let calls = 50_000;
        let [call, sync_alone] = [message(b'F', b""), sync()];
        admin.says_and_ends([[&call[..], &sync_alone].concat().repeat(calls)]);
        assert_eq!(admin.is_closed(), reads);
        admin.takes_all();
        let heard = from_backend(&admin.heard_bytes());
        assert!(heard == vec!["E(0A000) Z Z"; calls].join(" "), "all of it is answered");
        assert!(admin.is_closed());
        assert!(took(Mark::ConsoleSaysMuch));
    }
}

/// Who runs the process can read its secrets anyway, and is known by the kernel's word.
#[test]
fn who_runs_the_process_needs_no_password() {
    let stage = Stage::new(&Setup::default());
    for (own, user, heard) in
        [(true, "anybody", "R"), (false, "admin", "R"), (false, "anybody", "E(FATAL 28000)")]
    {
        let caller = stage.stranger_from(Some(Ends::Unix { port: 6432, own }));
        caller.says([startup(&[("user", user), ("database", "pgbouncer")])]);
        let said = caller.heard_bytes();
        assert!(from_backend(&said).starts_with(heard), "{user}: {}", from_backend(&said));
        assert_eq!(said.ends_with(&ready()), own, "{user}");
    }
    // Elsewhere it is a client like any other.
    let caller = stage.stranger_from(Some(Ends::Unix { port: 6432, own: true }));
    caller.says([startup(&[("user", "anybody"), ("database", "db")])]);
    assert_eq!(caller.heard(), "E(FATAL 28000)");
}

/// Whoever is at the console, or about to be, may not be its user any more.
#[test]
fn another_name_of_its_user_closes_the_console() {
    let (stage, admin) = admitted();
    let late = caller(&stage, vec![]);
    assert_eq!(late.heard(), "R");
    let alice = stage.newcomer(&[]);
    stage.server();
    assert!(alice.is_greeted());
    stage.reload(&Setup::of_size(2));
    assert!(admin.is_open() && late.is_open());
    admin.says([query("RELOAD")]);
    stage.reload(&Setup { admin: "other", ..Setup::default() });
    stage.console_says(&admin, &[done(), ready()].concat());
    for caller in [&admin, &late] {
        assert_eq!(caller.heard(), "E(FATAL 57P01)");
        assert!(caller.is_closed());
    }
    assert!(alice.is_open());
    assert_eq!(caller(&stage, vec![]).heard(), "E(FATAL 28000)");
    let other = stage.stranger();
    other.says([startup(&[("user", "other"), ("database", "pgweir")]), password("secret")]);
    assert!(other.is_greeted());
    assert!(took(Mark::ConsoleClosed));
}

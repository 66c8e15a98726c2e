//! Units of several clients stand one behind the other on one server.

use std::time::Duration;

use pgweir_engine::{ClientState, Mark, ServerActivity, TICK};

use crate::messages::{
    bind, bind_complete, bind_to, cancel_request, close_complete, close_portal, columns, copy_in,
    describe_statement, done, error, execute, fatal, fatal_of_another, in_block, long_error,
    long_row, no_data, no_parameters, notice, one_row, parameter_status, parse, parse_as,
    parse_complete, query, ready, row, sync, terminate,
};
use crate::named::wide;
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

pub(crate) const BRAKED: &str =
    "Q(SELECT ARRAY[pg_catalog.set_config('statement_timeout', '50', false)] IS NULL)";
pub(crate) const FREED: &str =
    "Q(SELECT ARRAY[pg_catalog.set_config('statement_timeout', NULL, false)] IS NULL)";

/// A setup whose servers are shared.
pub(crate) fn shared(size: usize) -> Setup {
    Setup { size, general: "pipelining = 8", ..Setup::default() }
}

/// A stage with a server that is shared by `clients`, and idle. SELECT of a number is known to be
/// short.
pub(crate) fn braked(setup: &Setup, clients: usize) -> (Stage, Peer, Vec<Peer>) {
    let (stage, server, first) = Stage::ready(setup);
    first.says([query("SELECT 0")]);
    assert_eq!(server.heard(), BRAKED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    server.says([one_row("0")]);
    assert_eq!(first.heard(), "T D(0) C Z");
    first.says([query("SELECT 1")]);
    assert_eq!(server.heard(), "Q(SELECT 1)");
    server.says([one_row("1")]);
    assert_eq!(first.heard(), "T D(1) C Z");
    let others = (1..clients).map(|_| stage.client());
    let clients = std::iter::once(first).chain(others).collect();
    (stage, server, clients)
}

/// The same, and from then on `auto` says how servers are shared.
pub(crate) fn braked_automatically(size: usize, clients: usize) -> (Stage, Peer, Vec<Peer>) {
    let (stage, server, clients) = braked(&shared(size), clients);
    stage.reload(&Setup { size, general: "pipelining = 'auto'", ..Setup::default() });
    (stage, server, clients)
}

/// An UPDATE is known to be short.
pub(crate) fn updated(server: &Peer, client: &Peer) {
    for _ in 0..2 {
        client.says([query("UPDATE t SET a = 0")]);
        assert_eq!(server.heard(), "Q(UPDATE t SET a = 0)");
        server.says([done(), ready()]);
        assert_eq!(client.heard(), "C Z");
    }
}

/// Each sends a query by its number.
pub(crate) fn ask(clients: &[Peer]) {
    for (number, client) in clients.iter().enumerate() {
        client.says([query(&format!("SELECT {number}"))]);
    }
}

#[test]
fn units_of_many_clients_go_to_a_server_at_once() {
    let (stage, server, clients) = braked(&shared(1), 3);
    ask(&clients);
    assert_eq!(server.heard(), "Q(SELECT 0) Q(SELECT 1) Q(SELECT 2)");
    server.says([one_row("a"), one_row("b")]);
    assert_eq!(clients[0].heard(), "T D(a) C Z");
    assert_eq!(clients[1].heard(), "T D(b) C Z");
    assert_eq!(clients[2].heard(), "");
    server.says([one_row("c")]);
    assert_eq!(clients[2].heard(), "T D(c) C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

#[test]
fn nothing_of_a_reply_goes_out_before_it_is_over() {
    let (_stage, server, clients) = braked(&shared(1), 2);
    ask(&clients);
    server.says([columns(), row(b"a")]);
    server.says([row(b"b")]);
    assert_eq!(clients[0].heard(), "");
    server.says([done(), ready(), columns()]);
    assert_eq!(clients[0].heard(), "T D(a) D(b) C Z");
    server.says([notice(), row(b"c"), done(), ready()]);
    assert_eq!(clients[1].heard(), "T N D(c) C Z");
}

/// Not only whole messages: the reply is put together from whatever comes.
#[test]
fn a_reply_may_come_in_bytes() {
    let (_stage, server, clients) = braked(&shared(1), 2);
    ask(&clients);
    for byte in [one_row("a"), one_row("b")].concat() {
        server.says([[byte]]);
    }
    assert_eq!(clients[0].heard(), "T D(a) C Z");
    assert_eq!(clients[1].heard(), "T D(b) C Z");
}

#[test]
fn errors_are_those_of_their_own_units() {
    let (_stage, server, clients) = braked(&shared(1), 3);
    ask(&clients[1..]);
    clients[0].says([parse("SELECT x"), bind(), execute(), sync()]);
    assert_eq!(server.heard(), "Q(SELECT 0) Q(SELECT 1) P(SELECT x) B E S");
    server.says([error("22012"), ready(), one_row("b")]);
    assert_eq!(clients[1].heard(), "E(22012) Z");
    assert_eq!(clients[2].heard(), "T D(b) C Z");
    server.says([error("42703"), ready()]);
    assert_eq!(clients[0].heard(), "E(42703) Z");
}

#[test]
fn no_more_units_than_allowed_stand_on_a_server() {
    let setup = Setup { general: "pipelining = '1x2'", ..Setup::default() };
    let (stage, server, clients) = braked(&setup, 5);
    ask(&clients);
    assert_eq!(server.heard(), "Q(SELECT 0) Q(SELECT 1)");
    assert_eq!(stage.clients().iter().filter(|its| **its == ClientState::Waiting).count(), 3);
    server.says([one_row("a")]);
    assert_eq!(server.heard(), "Q(SELECT 2)");
    server.says([one_row("b"), one_row("c")]);
    assert_eq!(server.heard(), "Q(SELECT 3) Q(SELECT 4)");
    clients[3].breaks();
    server.says([one_row("d"), one_row("e")]);
    assert_eq!(clients[4].heard(), "T D(e) C Z");
}

#[test]
fn a_server_that_is_lent_alone_has_no_brake() {
    let (_stage, server, clients) = braked(&shared(1), 2);
    clients[0].says([query("BEGIN")]);
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(BEGIN)");
    server.says([done(), in_block()]);
    clients[1].says([query("SELECT 1")]);
    clients[0].says([query("COMMIT")]);
    assert_eq!(server.heard(), "Q(COMMIT)");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), BRAKED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 1)");
}

/// Else whoever needs a server alone would wait for ever.
#[test]
fn who_needs_a_server_alone_gets_the_next_that_runs_dry() {
    let (_stage, server, clients) = braked(&shared(1), 4);
    ask(&clients[..2]);
    clients[2].says([query("BEGIN")]);
    clients[3].says([query("SELECT 3")]);
    assert_eq!(server.heard(), "Q(SELECT 0) Q(SELECT 1)");
    server.says([one_row("a"), one_row("b")]);
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(BEGIN)");
    server.says([done(), in_block()]);
    clients[2].says([query("COMMIT")]);
    server.heard();
    server.says([done(), ready()]);
    assert_eq!(server.heard(), BRAKED);
}

#[test]
fn a_read_does_not_stand_behind_a_write() {
    let (stage, server, clients) = braked(&shared(2), 3);
    updated(&server, &clients[0]);
    clients[0].says([query("UPDATE t SET a = 1")]);
    assert_eq!(server.heard(), "Q(UPDATE t SET a = 1)");
    clients[1].says([query("SELECT 1")]);
    clients[2].says([query("UPDATE t SET a = 2")]);
    assert_eq!(server.heard(), "", "who comes later waits behind who waits");
    let other = stage.server();
    assert_eq!(other.heard(), BRAKED);
    other.says([one_row("")]);
    assert_eq!(other.heard(), "Q(SELECT 1)");
}

/// Until it is known how long a statement takes nobody stands behind it, though it stands behind
/// others; then they do.
#[test]
fn what_is_not_known_stands_last() {
    let (_stage, server, clients) = braked(&shared(1), 3);
    let new = |client: &Peer| client.says([query("SELECT a FROM t")]);
    for _ in 0..2 {
        clients[0].says([query("SELECT 0")]);
        new(&clients[1]);
        clients[2].says([query("SELECT 2")]);
        assert_eq!(server.heard(), "Q(SELECT 0) Q(SELECT a FROM t)");
        server.says([one_row("")]);
        assert_eq!(server.heard(), "");
        server.says([one_row("")]);
        assert_eq!(server.heard(), "Q(SELECT 2)");
        server.says([one_row("")]);
    }
    new(&clients[0]);
    new(&clients[1]);
    clients[2].says([query("SELECT 2")]);
    assert_eq!(server.heard(), "Q(SELECT a FROM t) Q(SELECT a FROM t) Q(SELECT 2)");
}

/// It does not overrun, but those behind it would wait for too long.
#[test]
fn what_is_not_short_stands_last_however_often_it_is_run() {
    let (stage, server, clients) = braked(&shared(1), 2);
    for _ in 0..3 {
        clients[0].says([query("SELECT a FROM t")]);
        clients[1].says([query("SELECT 1")]);
        assert_eq!(server.heard(), "Q(SELECT a FROM t)");
        stage.wait(Duration::from_millis(30));
        server.says([one_row("")]);
        assert_eq!(server.heard(), "Q(SELECT 1)");
        server.says([one_row("")]);
    }
}

/// It ran for as long, though all that was answered meanwhile is read at once, on a busy machine.
#[test]
fn what_overruns_while_nobody_looks_is_run_again_too() {
    let (stage, server, clients) = braked(&shared(1), 2);
    ask(&clients);
    assert_eq!(server.heard(), "Q(SELECT 0) Q(SELECT 1)");
    stage.wait(Duration::from_millis(60));
    server.says([one_row("a"), error("57014"), ready()]);
    assert_eq!(clients[0].heard(), "T D(a) C Z");
    assert_eq!(clients[1].heard(), "");
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 1)");
    server.says([one_row("b")]);
    assert_eq!(clients[1].heard(), "T D(b) C Z");
}

/// What has overrun is not put in front of others again for a while.
#[test]
fn what_overruns_shares_nothing_for_a_while() {
    let (stage, server, clients) = braked(&shared(1), 2);
    let slow = |server: &Peer| {
        clients[0].says([query("SELECT a FROM slow")]);
        server.heard()
    };
    assert_eq!(slow(&server), "Q(SELECT a FROM slow)");
    stage.wait(Duration::from_millis(60));
    server.says([error("57014"), ready()]);
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    server.says([one_row("a")]);
    assert_eq!(clients[0].heard(), "T D(a) C Z");
    server.heard();
    assert_eq!(slow(&server), "Q(SELECT a FROM slow)", "it is alone: the brake is off");
    server.says([one_row("a")]);
    stage.wait(Duration::from_secs(5));
    assert_eq!(slow(&server), BRAKED);
}

/// Of so many statements only those are remembered that are kept from others: each of the rest is
/// tried again, as if it were new.
#[test]
fn what_is_known_of_too_many_statements_is_forgotten() {
    let (stage, server, clients) = braked(&Setup { unchecked: true, ..shared(1) }, 2);
    let run = |text: &str| {
        clients[0].says([query(text)]);
        let heard = server.heard();
        server.says([one_row("")]);
        heard
    };
    clients[0].says([query("SELECT a FROM slow")]);
    stage.wait(Duration::from_millis(60));
    server.says([error("57014"), ready()]);
    for _ in 0..2 {
        server.says([one_row("")]);
    }
    server.heard();
    assert_eq!(run("SELECT 0"), BRAKED);
    server.says([one_row("")]);
    server.heard();
    ask(&clients);
    assert_eq!(server.heard(), "Q(SELECT 0) Q(SELECT 1)");
    server.says([one_row(""), one_row("")]);
    for number in 0..4_096 {
        // Digits do not tell one statement from another.
        let letter = |of: usize| char::from(b"abcdefghijklmnop"[number / of % 16]);
        let text = format!("SELECT x{}{}{} FROM t", letter(256), letter(16), letter(1));
        assert_eq!(run(&text), format!("Q({text})"));
    }
    ask(&clients);
    assert_eq!(server.heard(), "Q(SELECT 0)", "nobody stands behind it");
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 1)");
    server.says([one_row("")]);
    assert_eq!(run("SELECT a FROM slow"), FREED);
    stage.check();
    assert!(took(Mark::StandingsForgotten));
}

#[test]
fn what_overruns_is_run_again_alone() {
    let (stage, server, clients) = braked(&shared(1), 2);
    ask(&clients);
    assert_eq!(server.heard(), "Q(SELECT 0) Q(SELECT 1)");
    stage.wait(Duration::from_millis(60));
    server.says([columns(), row(b"half"), error("57014"), ready()]);
    assert_eq!(clients[0].heard(), "", "it hears nothing of that");
    server.says([one_row("b")]);
    assert_eq!(clients[1].heard(), "T D(b) C Z");
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    stage.wait(Duration::from_millis(500));
    server.says([one_row("late")]);
    assert_eq!(clients[0].heard(), "T D(late) C Z");
    assert!(took(Mark::OverranByTime));
}

#[test]
fn somebody_elses_cancel_is_no_overrun() {
    let (_stage, server, clients) = braked(&shared(1), 2);
    ask(&clients);
    server.says([error("57014"), ready()]);
    assert_eq!(clients[0].heard(), "E(57014) Z");
}

#[test]
fn a_long_reply_is_thrown_away_and_run_again_alone() {
    let (_stage, server, clients) = braked(&shared(1), 2);
    ask(&clients);
    server.heard();
    // In whatever pieces.
    server.says([notice()]);
    server.says([long_row(400_000), done(), ready(), one_row("b")]);
    assert_eq!(clients[0].heard(), "");
    assert_eq!(clients[1].heard(), "T D(b) C Z");
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    server.says([one_row("again")]);
    assert_eq!(clients[0].heard(), "T D(again) C Z");
}

/// It changes nothing, whatever it locks meanwhile.
#[test]
fn so_is_that_of_a_read_that_locks_rows() {
    let (_stage, server, clients) = braked(&shared(1), 1);
    let text = "SELECT a FROM t FOR UPDATE";
    clients[0].says([query(text)]);
    assert_eq!(server.heard(), format!("Q({text})"));
    server.says([long_row(400_000), done(), ready()]);
    assert_eq!((clients[0].heard().as_str(), server.heard().as_str()), ("", FREED));
    server.says([one_row("")]);
    assert_eq!(server.heard(), format!("Q({text})"));
    server.says([one_row("again")]);
    assert_eq!(clients[0].heard(), "T D(again) C Z");
}

/// What is kept is given back with the reply, or with its client.
#[test]
fn a_reply_that_finds_no_room_is_run_again_alone() {
    let general = "pipelining = '2x8'\nmax_buffer_memory = 20000";
    let (stage, server, clients) = braked(&Setup { size: 1, general, ..Setup::default() }, 2);
    let half = || long_row(15_000);
    for _ in 0..3 {
        clients[0].says([query("SELECT 0")]);
        server.heard();
        server.says([half()]);
        assert_eq!(clients[0].heard(), "");
        server.says([done(), ready()]);
        assert!(clients[0].heard().ends_with(" C Z"));
    }
    clients[0].says([query("SELECT 0")]);
    server.heard();
    server.says([half()]);
    server.says([row(&[b'x'; 15_000])]);
    server.says([done(), ready()]);
    assert_eq!(clients[0].heard(), "");
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    server.says([one_row("a")]);
    assert_eq!(clients[0].heard(), "T D(a) C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// It is handed on, and piles up: as many clients as there are could have one each.
#[test]
fn a_reply_that_its_client_does_not_read_takes_its_room_still() {
    let general = "pipelining = '2x8'\nmax_buffer_memory = 150000";
    let (stage, server, clients) = braked(&Setup { size: 1, general, ..Setup::default() }, 2);
    let says_much = || {
        assert_eq!(server.heard(), "Q(SELECT 0)");
        server.says([long_row(100_000)]);
        server.says([done(), ready()]);
    };
    clients[0].takes(0);
    clients[0].says([query("SELECT 0")]);
    says_much();
    assert!(took(Mark::ReplyPilesUp));
    clients[1].says([query("SELECT 0")]);
    says_much();
    assert_eq!(server.heard(), FREED, "it finds no room");
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    server.says([one_row("a")]);
    assert_eq!(clients[1].heard(), "T D(a) C Z");
    clients[0].takes_all();
    stage.wait(Duration::from_secs(6));
    clients[1].says([query("SELECT 0")]);
    assert_eq!(server.heard(), BRAKED);
    server.says([one_row("")]);
    says_much();
    assert!(clients[1].heard().ends_with(" C Z"));
}

#[test]
fn what_a_client_sends_behind_its_unit_comes_behind_its_reply() {
    let (_stage, server, clients) = braked(&shared(1), 2);
    clients[0].says([query("SELECT 1"), query("SELECT 2"), terminate()]);
    clients[1].says([query("SELECT 3")]);
    assert_eq!(server.heard(), "Q(SELECT 1) Q(SELECT 3)");
    server.says([one_row("a"), one_row("b")]);
    assert_eq!(clients[0].heard(), "T D(a) C Z");
    assert_eq!(server.heard(), "Q(SELECT 2)");
    server.says([one_row("c")]);
    assert_eq!(clients[0].heard(), "T D(c) C Z");
    assert!(clients[0].is_closed());
}

/// What has failed has done nothing, so it can be run again where its error is not kept.
#[test]
fn an_error_that_is_too_long_is_asked_for_again_alone() {
    let (_stage, server, clients) = braked(&shared(1), 2);
    updated(&server, &clients[0]);
    for client in &clients {
        client.says([query("UPDATE t SET a = 1")]);
    }
    assert_eq!(server.heard(), "Q(UPDATE t SET a = 1) Q(UPDATE t SET a = 1)");
    server.says([long_error(400_000), ready(), done(), ready()]);
    assert!(took(Mark::SharedReplyTooLong));
    assert_eq!(clients[0].heard(), "");
    assert_eq!(clients[1].heard(), "C Z");
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(UPDATE t SET a = 1)");
    server.says([long_error(400_000), ready()]);
    assert_eq!(clients[0].heard(), "E(22P02) Z");
}

/// What has written cannot be run again for a reply that is too long.
#[test]
fn what_reads_and_writes_shares_no_server() {
    let (_stage, server, clients) = braked(&shared(1), 1);
    let (read, write) = (parse("SELECT 1"), parse("UPDATE t SET a = 1"));
    clients[0].says([read, bind(), write, bind(), execute(), sync()]);
    assert_eq!(server.heard(), FREED);
}

/// PostgreSQL would give each of its statements as long as the brake leaves one.
#[test]
fn what_runs_several_statements_shares_no_server() {
    let (_stage, server, clients) = braked(&shared(1), 1);
    clients[0].says([parse("SELECT 1"), bind(), execute(), bind(), execute(), sync()]);
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "P(SELECT 1) B E B E S");
}

#[test]
fn what_comes_later_is_not_forgotten() {
    let (_stage, server, clients) = braked(&shared(1), 1);
    clients[0].says([query("SELECT 1")]);
    clients[0].says([terminate()]);
    server.says([one_row("a")]);
    assert_eq!(clients[0].heard(), "T D(a) C Z");
    assert!(clients[0].is_closed());
}

/// The reply is for nobody, and those behind it get theirs.
#[test]
fn a_client_may_go() {
    let (stage, server, clients) = braked(&shared(1), 3);
    ask(&clients);
    clients[0].breaks();
    clients[1].breaks();
    server.says([long_row(300_000), done(), ready(), error("22012"), ready(), one_row("c")]);
    assert_eq!(clients[2].heard(), "T D(c) C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

#[test]
fn a_cancel_of_one_among_others_waits_for_the_brake() {
    let (stage, server, clients) = braked(&shared(1), 2);
    let counted = stage.snapshot().pools[0].stats;
    let counted = (counted.shared, counted.transactions);
    ask(&clients);
    let requester = stage.cancel(&clients[1]);
    assert!(requester.is_closed());
    assert_eq!(stage.cancels(), 0, "it would hit whoever is at the head");
    stage.wait(Duration::from_millis(60));
    server.says([one_row("a")]);
    stage.wait(Duration::from_millis(60));
    server.says([error("57014"), ready()]);
    assert_eq!(clients[1].heard(), "E(57014) Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle], "it is not run again");
    let stats = stage.snapshot().pools[0].stats;
    assert_eq!((stats.shared, stats.transactions), (counted.0 + 2, counted.1 + 2));
}

/// To be run again alone, with nobody to end it, is the contrary of what its client has asked for.
#[test]
fn a_cancelled_unit_whose_reply_is_too_long_is_not_run_again() {
    let (stage, server, clients) = braked(&shared(1), 2);
    ask(&clients);
    server.heard();
    stage.cancel(&clients[1]);
    server.says([one_row("a"), long_row(400_000), done(), ready()]);
    assert_eq!(clients[1].heard(), "E(57014) Z");
    assert_eq!((server.heard().as_str(), stage.cancels()), ("", 0));
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// To wait for a commit is under no timeout, and who has asked for its end would wait for ever.
#[test]
fn a_cancel_beside_others_goes_out_when_they_are_answered() {
    let (stage, server, clients) = braked(&shared(1), 3);
    updated(&server, &clients[0]);
    for client in &clients[..2] {
        client.says([query("UPDATE t SET a = 1")]);
    }
    stage.cancel(&clients[1]);
    assert_eq!(stage.cancels(), 0, "it would hit whoever is at the head");
    server.says([done(), ready()]);
    assert_eq!(clients[0].heard(), "C Z");
    assert!(took(Mark::CancelledAsLast));
    stage.wait(Duration::from_millis(200));
    let line = stage.cancel_line().expect("it is wanted");
    clients[2].says([query("UPDATE t SET a = 2")]);
    assert_eq!(server.heard(), ["Q(UPDATE t SET a = 1)"; 2].join(" "), "nobody stands behind it");
    line.ends();
    stage.wait(TICK);
    assert_eq!(server.heard(), "", "its end alone does not say that the signal has come");
    server.says([error("57014"), ready()]);
    assert_eq!(clients[1].heard(), "E(57014) Z");
    stage.wait(TICK);
    assert_eq!(server.heard(), "Q(UPDATE t SET a = 2)");
}

/// It was free for longer than a statement may take. What counts is since when it has something to
/// do, which is ours here.
#[test]
fn a_server_that_was_free_for_long_is_not_silent() {
    let general = "pipelining = 8\nstatement_timeout = 1000";
    let (stage, server, alice) = Stage::ready(&Setup::with(general));
    stage.wait(Duration::from_secs(5));
    alice.says([query("SELECT 0")]);
    assert_eq!(server.heard(), BRAKED);
    stage.wait(TICK);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    server.says([one_row("0")]);
    assert_eq!(alice.heard(), "T D(0) C Z");
}

/// The same of a statement that is made there ahead.
#[test]
fn a_server_that_was_free_for_long_is_not_silent_when_it_makes_a_statement() {
    let general = "pipelining = 8\nstatement_timeout = 1000";
    let (stage, first, clients) = braked(&Setup::with(general), 1);
    let [alice] = &clients[..] else { unreachable!() };
    alice.says([parse_as("n", "SELECT 1"), sync()]);
    assert_eq!(first.heard(), FREED);
    first.says([one_row("")]);
    first.says([parse_complete(), no_parameters(), no_data(), ready()]);
    first.ends();
    alice.says([query("SELECT 0")]);
    let server = stage.server();
    assert_eq!(server.heard(), BRAKED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    server.says([one_row("0")]);
    stage.wait(Duration::from_secs(5));
    alice.says([bind_to("n"), execute(), sync()]);
    assert_eq!(server.heard(), "P(pgweir_1=SELECT 1) D(pgweir_1) S");
    stage.wait(TICK);
    assert!(server.is_open());
    server.says([parse_complete(), no_parameters(), no_data(), ready()]);
    assert_eq!(server.heard(), "B(pgweir_1) E S");
}

/// What it has sent already is served, as where its server is its own.
#[test]
fn who_has_sent_more_is_not_drained_in_between() {
    let (stage, server, clients) = braked(&shared(1), 1);
    clients[0].says([query("SELECT 1"), query("SELECT 2")]);
    stage.drain();
    server.says([one_row("a")]);
    assert_eq!(clients[0].heard(), "T D(a) C Z");
    assert_eq!(server.heard(), "Q(SELECT 1) Q(SELECT 2)");
    server.says([one_row("b")]);
    assert_eq!(clients[0].heard(), "T D(b) C Z E(FATAL 57P01)");
}

/// A transaction keeps the one server on which the first client's statement `s` is. What a server
/// says of that statement.
fn made_elsewhere() -> (Stage, Peer, Vec<Peer>, Vec<u8>) {
    let (stage, first, clients) = braked(&shared(2), 3);
    clients[0].says([parse_as("s", "SELECT 1"), describe_statement("s"), sync()]);
    first.heard();
    first.says([one_row("")]);
    first.heard();
    let described = [no_parameters(), columns()].concat();
    first.says([parse_complete(), described.clone(), described.clone(), ready()]);
    clients[0].heard();
    clients[1].says([query("BEGIN")]);
    first.heard();
    first.says([done(), in_block()]);
    (stage, first, clients, described)
}

/// A Query ends it, whatever stands behind on its server.
#[test]
fn the_unnamed_statement_goes_though_one_of_ours_is_next() {
    let (stage, _first, clients, described) = made_elsewhere();
    let unnamed = [parse("SELECT 2"), bind(), execute(), sync()].concat();
    clients[2].says([&unnamed]);
    let second = stage.server();
    second.heard();
    second.says([one_row("")]);
    assert_eq!(second.heard(), "P(SELECT 2) B E S");
    second.says([parse_complete(), bind_complete(), row(b"b"), done(), ready()]);
    clients[2].says([query("SELECT 2")]);
    clients[0].says([bind_to("s"), execute(), sync()]);
    assert_eq!(second.heard(), "Q(SELECT 2) P(pgweir_1=SELECT 1) D(pgweir_1) S");
    second.says([one_row("b")]);
    second.says([parse_complete(), described, ready()]);
    second.heard();
    second.says([bind_complete(), row(b"1"), done(), ready()]);
    clients[2].says([bind(), execute(), sync()]);
    second.heard();
    second.says([one_row("")]);
    assert_eq!(second.heard(), "B E S", "there is no statement, as on a server of its own");
}

/// The kernel tells of a reset once: to a write, and what is read then looks like an end. So does
/// what stands between and is stopped, with statements behind it that PostgreSQL has read.
#[test]
fn an_end_without_a_word_leaves_writes_in_doubt() {
    for write_fails in [false, true] {
        let (stage, server, clients) = braked(&shared(1), 3);
        updated(&server, &clients[0]);
        for client in &clients[..2] {
            client.says([query("UPDATE t SET a = 1")]);
        }
        if write_fails {
            server.deafens();
            clients[2].says([query("SELECT 2")]);
        }
        server.ends();
        assert_eq!(clients[0].heard(), "E(08007) Z");
        assert_eq!(clients[1].heard(), "E(08007) Z");
        assert_eq!((clients[2].heard().as_str(), stage.attempts() > 0), ("", write_fails));
    }
}

/// What stands between says FATAL of its own; PostgreSQL goes on with what it has read.
#[test]
fn a_farewell_of_somebody_else_leaves_writes_in_doubt() {
    for code in ["08P01", "08007", "57P01", "25P04", "57P05"] {
        let (stage, server, clients) = braked(&shared(1), 2);
        updated(&server, &clients[0]);
        for client in &clients {
            client.says([query("UPDATE t SET a = 1")]);
        }
        server.says_and_ends([fatal_of_another(code)]);
        assert!(took(Mark::FarewellOfAnother));
        for client in &clients {
            assert_eq!(client.heard(), "E(08007) Z", "{code}");
        }
        assert_eq!(stage.attempts(), 0);
    }
}

/// Nor does an error say that its statement is undone that says that nobody knows.
#[test]
fn an_error_that_nobody_knows_undoes_nothing() {
    let (stage, server, clients) = braked(&shared(1), 1);
    updated(&server, &clients[0]);
    clients[0].says([query("UPDATE t SET a = 1")]);
    server.says([error("08007")]);
    server.ends();
    assert_eq!(clients[0].heard(), "E(08007) Z");
    assert_eq!(stage.attempts(), 0);
}

/// It waited for its place, and its client does not know how long ago it was sent.
/// It is nobody's until the cancel is over, and who has waited for a place on it needs another,
/// which is not the one that is made for somebody else.
#[test]
fn who_waits_for_a_place_on_a_server_that_awaits_a_cancel_gets_another() {
    let setup = Setup { size: 3, general: "pipelining = '1x8'", ..Setup::default() };
    let (stage, server, clients) = braked(&setup, 3);
    clients[0].says([query("SELECT new FROM t")]);
    assert_eq!(server.heard(), "Q(SELECT new FROM t)");
    clients[1].says([query("SELECT 1")]);
    clients[2].says([query("BEGIN")]);
    assert_eq!(stage.attempts(), 1, "for the transaction");
    stage.cancel(&clients[0]);
    let cancel = stage.cancel_line().expect("nobody else is there");
    assert_eq!(cancel.heard_bytes(), cancel_request(&server.key()));
    server.says([error("57014"), ready()]);
    assert_eq!(stage.servers()[0], ServerActivity::BeingCanceled);
    assert_eq!(stage.attempts(), 2);
}

#[test]
fn a_cancel_of_a_shared_unit_that_has_waited_is_held_back() {
    let setup = Setup { general: "pipelining = '1x1'", ..Setup::default() };
    let (stage, server, clients) = braked(&setup, 2);
    updated(&server, &clients[0]);
    for client in &clients {
        client.says([query("UPDATE t SET a = 1")]);
    }
    stage.wait(Duration::from_secs(1));
    server.says([done(), ready()]);
    stage.cancel(&clients[1]);
    assert_eq!(stage.cancels(), 0, "it may not have been begun");
    stage.wait(Duration::from_millis(200));
    assert!(stage.cancel_line().is_some());
}

/// It was sent behind a commit that has waited for long.
#[test]
fn a_statement_made_ahead_has_its_own_time() {
    let (stage, _first, clients, _) = made_elsewhere();
    clients[2].says([query("SELECT 2")]);
    let second = stage.server();
    second.heard();
    second.says([one_row("")]);
    clients[0].says([bind_to("s"), execute(), sync()]);
    assert!(second.heard().contains("P(pgweir_1=SELECT 1)"));
    stage.wait(Duration::from_secs(6));
    second.says([one_row("b")]);
    stage.wait(TICK);
    assert!(second.is_open());
}

/// Nor is one whose server is lost.
#[test]
fn a_cancelled_unit_whose_server_is_lost_is_not_run_again() {
    for head in [0, 1] {
        let (stage, server, clients) = braked(&shared(1), 2);
        clients[0].says([query("SELECT 0")]);
        clients[1].says([parse("SELECT 1"), bind(), execute(), sync()]);
        stage.cancel(&clients[head]);
        server.says([fatal("57P01")]);
        server.ends();
        assert!(took(Mark::SharedLostCancelled));
        assert_eq!(clients[head].heard(), "E(57014) Z");
        let other = ["P(SELECT 1) B E S", "Q(SELECT 0)"][head];
        assert_eq!(stage.server().heard(), other);
    }
}

/// Where it cannot be run again its client is told as much.
#[test]
fn of_a_cancelled_write_whose_server_is_lost_nobody_knows() {
    let (stage, server, clients) = braked(&shared(1), 2);
    updated(&server, &clients[0]);
    for client in &clients {
        client.says([query("UPDATE t SET a = 1")]);
        stage.cancel(client);
    }
    server.says([fatal("57P01")]);
    server.ends();
    assert_eq!(clients[0].heard(), "E(08007) Z");
    assert_eq!(clients[1].heard(), "E(57014) Z");
    assert_eq!(stage.attempts(), 0);
}

/// It hears nothing of the statement that its unit has made: there is none then.
#[test]
fn who_cancels_one_among_others_has_no_unnamed_statement() {
    // Its Parse need not come first.
    for (before, answer) in [(Vec::new(), Vec::new()), (close_portal(), close_complete())] {
        let (stage, server, clients) = braked(&shared(1), 3);
        clients[0].says([query("SELECT 0")]);
        clients[1].says([before, parse("SELECT 1"), bind(), execute(), sync()]);
        clients[2].says([query("SELECT 2")]);
        stage.cancel(&clients[1]);
        server.says([one_row("a")]);
        stage.wait(Duration::from_millis(60));
        let made = [answer, parse_complete(), bind_complete()].concat();
        server.says([made, error("57014"), ready(), one_row("c")]);
        assert_eq!(clients[1].heard(), "E(57014) Z");
        clients[1].says([bind(), execute(), sync()]);
        server.heard();
        server.says([one_row("")]);
        assert_eq!(server.heard(), "B E S", "a Query of ours has ended what was there");
    }
}

#[test]
fn a_cancel_of_one_that_is_alone_goes_out() {
    let (stage, server, clients) = braked(&shared(1), 2);
    clients[0].says([query("SELECT 0")]);
    let requester = stage.cancel(&clients[0]);
    let line = stage.cancel_line().expect("it is wanted");
    clients[1].says([query("SELECT 1")]);
    assert_eq!(server.heard(), "Q(SELECT 0)", "nothing goes to a server that a cancel may reach");
    server.says([error("57014"), ready()]);
    assert_eq!(clients[0].heard(), "E(57014) Z");
    assert_eq!(server.heard(), "");
    line.ends();
    assert!(requester.is_closed());
    assert_eq!(server.heard(), "Q(SELECT 1)");
}

/// The end of its connection alone says that the signal has come only where PostgreSQL is at the
/// other end of it.
#[test]
fn nobody_stands_behind_one_that_a_cancel_may_hit() {
    let (stage, server, clients) = braked(&shared(1), 2);
    clients[0].says([query("SELECT 0")]);
    stage.cancel(&clients[0]);
    let line = stage.cancel_line().expect("it is wanted");
    clients[1].says([query("SELECT 1")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    line.ends();
    stage.wait(TICK);
    assert_eq!(server.heard(), "");
    server.says([error("57014"), ready()]);
    assert_eq!(clients[0].heard(), "E(57014) Z");
    stage.wait(TICK);
    assert_eq!(server.heard(), "Q(SELECT 1)");
}

/// All that stand on a server may hear of it, and nobody else.
#[test]
fn a_full_server_that_breaks_leaves_as_many_in_doubt_as_it_may_hold() {
    let depth = 5;
    let setup = Setup { general: "pipelining = '1x5'", ..Setup::default() };
    let (stage, server, clients) = braked(&setup, depth + 3);
    updated(&server, &clients[0]);
    for (n, client) in clients.iter().enumerate() {
        client.says([query(&format!("UPDATE t SET a = {n}"))]);
    }
    server.heard();
    server.breaks();
    let heard: Vec<_> = clients.iter().map(Peer::heard).collect();
    assert_eq!(heard[..depth], ["E(08007) Z"; 5]);
    assert_eq!(heard[depth..], [""; 3]);
    let another = stage.server();
    assert_eq!(another.heard(), BRAKED);
    another.says([one_row("")]);
    let sent = (depth..depth + 3).map(|n| format!("Q(UPDATE t SET a = {n})"));
    assert_eq!(another.heard(), sent.collect::<Vec<_>>().join(" "));
}

/// Its client has asked for the end of it, so it is not run again, however long it has run.
#[test]
fn a_cancel_that_hits_one_alone_is_no_overrun() {
    let (stage, server, clients) = braked(&shared(1), 1);
    clients[0].says([query("SELECT 0")]);
    stage.wait(Duration::from_millis(40));
    let _requester = stage.cancel(&clients[0]);
    let line = stage.cancel_line().expect("it is wanted");
    assert_eq!(server.heard(), "Q(SELECT 0)");
    server.says([error("57014"), ready()]);
    assert_eq!(clients[0].heard(), "E(57014) Z");
    line.ends();
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// What PostgreSQL has not begun is run again; so is a read that it may have.
#[test]
fn a_server_that_says_why_it_goes_loses_one_unit_at_most() {
    let (stage, server, clients) = braked(&shared(1), 2);
    updated(&server, &clients[0]);
    clients[0].says([query("UPDATE t SET a = 1")]);
    clients[1].says([query("UPDATE t SET a = 2")]);
    server.says([fatal("57P01")]);
    server.ends();
    assert_eq!(clients[0].heard(), "E(08007) Z");
    assert_eq!(clients[1].heard(), "");
    let another = stage.server();
    assert_eq!(another.heard(), "Q(UPDATE t SET a = 2)");
    another.says([done(), ready()]);
    assert_eq!(clients[1].heard(), "C Z");
}

#[test]
fn a_server_whose_connection_breaks_leaves_writes_in_doubt() {
    let (stage, server, clients) = braked(&shared(1), 3);
    updated(&server, &clients[0]);
    ask(&clients[..1]);
    clients[1].says([query("UPDATE t SET a = 1")]);
    clients[2].says([query("UPDATE t SET a = 2")]);
    server.breaks();
    assert_eq!(clients[1].heard(), "E(08007) Z");
    assert_eq!(clients[2].heard(), "E(08007) Z");
    let another = stage.server();
    assert_eq!(another.heard(), "Q(SELECT 0)");
}

/// It was ended for being idle, so it has begun nothing.
#[test]
fn a_server_that_was_idle_for_too_long_has_begun_nothing() {
    let (stage, server, clients) = braked(&shared(1), 1);
    clients[0].says([query("UPDATE t SET a = 1")]);
    server.says([fatal("57P05")]);
    server.ends();
    assert_eq!(clients[0].heard(), "");
    assert_eq!(stage.server().heard(), "Q(UPDATE t SET a = 1)");
}

#[test]
fn a_unit_that_leaves_a_transaction_open_was_no_unit_to_share() {
    let (stage, server, clients) = braked(&shared(1), 2);
    ask(&clients);
    server.says([done(), in_block()]);
    assert!(stage.contained().is_some());
    let another = stage.server();
    assert_eq!(another.heard(), "Q(SELECT 0)");
    assert_eq!(clients[0].heard(), "");
    assert_eq!(clients[1].heard(), "");
    // Neither it nor its like is shared again.
    assert!(took(Mark::Misbehaved));
    another.says([one_row("a")]);
    assert_eq!(another.heard(), "Q(SELECT 1)");
    another.says([one_row("b")]);
    stage.wait(Duration::from_secs(300));
    ask(&clients);
    assert_eq!(another.heard(), "Q(SELECT 0)");
}

#[test]
fn a_unit_that_wants_data_was_no_unit_to_share() {
    let (stage, server, clients) = braked(&shared(1), 1);
    ask(&clients);
    server.says([copy_in()]);
    assert!(stage.contained().is_some());
}

/// It is made there once, ahead of all that need it.
#[test]
fn statements_are_made_on_shared_servers() {
    let (_stage, server, clients) = braked(&shared(1), 2);
    for client in &clients {
        client.says([parse_as("s", "SELECT 1"), describe_statement("s"), sync()]);
        if server.heard() != FREED {
            panic!("a named statement is prepared alone");
        }
        server.says([one_row("")]);
        let heard = server.heard();
        assert!(heard.ends_with("P(pgweir_1=SELECT 1) D(pgweir_1) D(pgweir_1) S"), "{heard}");
        let closes = if heard.starts_with('C') { "\x33\0\0\0\x04".as_bytes() } else { b"" };
        let described = [no_parameters(), columns()].concat();
        server.says([closes, &parse_complete(), &described, &described, &ready()]);
        assert_eq!(client.heard(), "1 t T Z");
        client.says([query("SELECT 0")]);
        assert_eq!(server.heard(), BRAKED);
        server.says([one_row("")]);
        assert_eq!(server.heard(), "Q(SELECT 0)");
        server.says([one_row("")]);
        client.heard();
    }
    for client in &clients {
        client.says([bind_to("s"), execute(), sync()]);
    }
    assert_eq!(server.heard(), "B(pgweir_1) E S B(pgweir_1) E S");
    let reply = [bind_complete(), row(b"1"), done(), ready()].concat();
    server.says([reply.clone(), reply]);
    assert_eq!(clients[0].heard(), "2 D(1) C Z");
    assert_eq!(clients[1].heard(), "2 D(1) C Z");
}

#[test]
fn a_statement_that_a_shared_server_lacks_is_made_there_first() {
    let (stage, _first, clients, described) = made_elsewhere();
    clients[0].says([bind_to("s"), execute(), sync()]);
    let second = stage.server();
    assert_eq!(second.heard(), BRAKED);
    second.says([one_row("")]);
    assert_eq!(second.heard(), "P(pgweir_1=SELECT 1) D(pgweir_1) S");
    clients[2].says([query("SELECT 2")]);
    second.says([parse_complete(), described, ready()]);
    assert_eq!(second.heard(), "B(pgweir_1) E S Q(SELECT 2)");
}

/// What stands behind it on that server has nothing to do with it: its rows are changed.
#[test]
fn a_statement_that_cannot_be_made_is_no_affair_of_those_behind() {
    let (stage, _first, clients, _) = made_elsewhere();
    clients[2].says([query("SELECT a FROM t")]);
    let second = stage.server();
    assert_eq!(second.heard(), BRAKED);
    second.says([one_row("")]);
    assert_eq!(second.heard(), "Q(SELECT a FROM t)");
    let writer = stage.client();
    writer.says([query("UPDATE t SET a = 0")]);
    clients[0].says([bind_to("s"), execute(), sync()]);
    assert_eq!(second.heard(), "", "how long that takes is not known");
    second.says([one_row("a")]);
    let made = "P(pgweir_1=SELECT 1) D(pgweir_1) S";
    assert_eq!(second.heard(), format!("{made} Q(UPDATE t SET a = 0)"));
    second.says([error("42P01"), ready(), done(), ready()]);
    assert_eq!(writer.heard(), "C Z");
}

/// Behind more units, too, rather than to be made on a server that has less to do.
#[test]
fn a_server_that_has_the_statement_is_preferred() {
    let (stage, first, clients, _) = made_elsewhere();
    clients[2].says([query("SELECT 2")]);
    let second = stage.server();
    assert_eq!(second.heard(), BRAKED);
    second.says([one_row("")]);
    assert_eq!(second.heard(), "Q(SELECT 2)");
    clients[1].says([query("COMMIT")]);
    assert_eq!(first.heard(), "Q(COMMIT)");
    first.says([done(), ready()]);
    clients[1].says([query("SELECT 1")]);
    assert_eq!(first.heard(), BRAKED);
    first.says([one_row("")]);
    assert_eq!(second.heard(), "Q(SELECT 1)", "it is not waited for");
    second.says([one_row("2"), one_row("1")]);
    let more = [stage.client(), stage.client()];
    ask(&clients[1..]);
    ask(&more);
    assert_eq!(second.heard(), "Q(SELECT 0) Q(SELECT 0)");
    assert_eq!(first.heard(), "Q(SELECT 1) Q(SELECT 1)");
    second.says([one_row("0")]);
    clients[0].says([bind_to("s"), execute(), sync()]);
    assert_eq!(first.heard(), "B(pgweir_1) E S");
    assert_eq!(second.heard(), "");
}

/// What is thrown away for a client that has left is no reason to close a server for others.
#[test]
fn a_shared_server_stays_behind_a_long_reply_to_one_who_has_left() {
    let (_stage, server, clients) = braked(&shared(1), 2);
    clients[0].says([query("SELECT 0")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    clients[0].breaks();
    server.says([long_row(1_500_000), done(), ready()]);
    assert_eq!(server.heard(), "");
    assert!(server.is_open());
    clients[1].says([query("SELECT 1")]);
    assert_eq!(server.heard(), "Q(SELECT 1)");
}

/// Two that need what there is no room for at a time do not take it from each other.
#[test]
fn what_is_about_to_be_used_makes_no_way_for_the_next() {
    let setup = Setup { pool: "prepared_statements_cache_size = 1", ..shared(1) };
    let (_stage, server, clients) = braked(&setup, 3);
    let [alice, bob, carol] = &clients[..] else { unreachable!() };
    let made = [parse_complete(), no_parameters(), no_data(), ready()].concat();
    for (client, text) in [(alice, "SELECT 1"), (bob, "SELECT 2")] {
        client.says([parse_as("s", text), sync()]);
        if server.heard() == FREED {
            server.says([one_row("")]);
            server.heard();
        }
        let closed = if text == "SELECT 2" { close_complete() } else { Vec::new() };
        server.says([closed, made.clone()]);
        assert_eq!(client.heard(), "1 Z");
    }
    carol.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    for client in [alice, bob] {
        client.says([bind_to("s"), execute(), sync()]);
    }
    carol.says([query("COMMIT")]);
    server.heard();
    server.says([done(), ready()]);
    assert_eq!(server.heard(), BRAKED);
    server.says([one_row("")]);
    let first = "C(pgweir_2) P(pgweir_1=SELECT 1) D(pgweir_1) S";
    assert_eq!(server.heard(), first);
    server.says([close_complete(), made.clone()]);
    assert_eq!(server.heard(), "B(pgweir_1) E S", "it is used before it makes way");
    server.says([bind_complete(), done(), ready()]);
    assert_eq!(server.heard(), "C(pgweir_1) P(pgweir_2=SELECT 2) D(pgweir_2) S");
    server.says([close_complete(), made]);
    assert_eq!(server.heard(), "B(pgweir_2) E S");
}

/// Of a unit that needs more statements than a server keeps all are made.
#[test]
fn what_one_unit_needs_makes_no_way_for_more_of_it() {
    let setup = Setup { pool: "prepared_statements_cache_size = 1", ..shared(2) };
    let (stage, first, clients) = braked(&setup, 2);
    for (name, text) in [("s", "SELECT 1"), ("t", "SELECT 2")] {
        clients[0].says([parse_as(name, text), sync()]);
        if name == "s" {
            first.heard();
            first.says([one_row("")]);
        }
        first.heard();
        let closed = if name == "t" { close_complete() } else { Vec::new() };
        first.says([closed, parse_complete(), no_parameters(), no_data(), ready()]);
        clients[0].heard();
    }
    clients[1].says([query("BEGIN")]);
    first.heard();
    first.says([done(), in_block()]);
    clients[0].says([bind_to("s"), bind_to("t"), execute(), sync()]);
    let second = stage.server();
    assert_eq!(second.heard(), BRAKED);
    second.says([one_row("")]);
    let made = [parse_complete(), no_parameters(), no_data(), ready()].concat();
    assert_eq!(second.heard(), "P(pgweir_1=SELECT 1) D(pgweir_1) S");
    second.says([made.clone()]);
    assert_eq!(second.heard(), "P(pgweir_2=SELECT 2) D(pgweir_2) S");
    second.says([made]);
    assert_eq!(second.heard(), "B(pgweir_1) B(pgweir_2) E S");
}

/// A client was told of other rows under another name of the same statement: what it hears of each
/// it hears of a server that it has alone.
#[test]
fn one_statement_that_a_client_knows_as_two_is_not_shared() {
    let (_stage, server, clients) = braked(&shared(1), 1);
    let alice = &clients[0];
    for (name, rows) in [("s", columns()), ("t", wide(2))] {
        alice.says([parse_as(name, "SELECT 1"), describe_statement(name), sync()]);
        if server.heard() == FREED {
            server.says([one_row("")]);
            server.heard();
        }
        let closes = if name == "t" { close_complete() } else { Vec::new() };
        let described = [no_parameters(), rows].concat();
        server.says([closes, parse_complete(), described.clone(), described, ready()]);
        assert_eq!(alice.heard(), "1 t T Z");
    }
    alice.says([describe_statement("t"), bind_to("s"), execute(), sync()]);
    assert!(took(Mark::UnsharedForTold));
    assert!(server.heard().starts_with("D(pgweir_1) "));
}

/// A client is told of other rows, where it has asked for them, by a server that it has alone.
#[test]
fn rows_that_have_changed_are_no_matter_of_shared_servers() {
    let (stage, first, clients) = braked(&shared(2), 2);
    clients[0].says([parse_as("s", "SELECT 1"), describe_statement("s"), sync()]);
    first.heard();
    first.says([one_row("")]);
    first.heard();
    let described = [no_parameters(), columns()].concat();
    first.says([parse_complete(), described.clone(), described, ready()]);
    clients[0].heard();
    clients[1].says([query("BEGIN")]);
    first.heard();
    first.says([done(), in_block()]);
    clients[0].says([bind_to("s"), execute(), sync()]);
    let second = stage.server();
    second.heard();
    second.says([one_row("")]);
    second.heard();
    second.says([parse_complete(), no_parameters(), no_data(), ready()]);
    assert_eq!(second.heard(), FREED);
}

/// Whoever is told by a server of its own why its settings are wrong waits for one.
#[test]
fn settings_that_are_refused_are_no_matter_of_shared_servers() {
    let (stage, server, clients) = braked(&shared(1), 1);
    let named = stage.newcomer(&[("search_path", "x")]);
    let heard = server.heard();
    assert!(heard.contains("search_path"), "{heard}");
    server.says([one_row("")]);
    assert!(named.is_greeted());
    named.says([query("SELECT 1")]);
    let heard = server.heard();
    assert!(heard.contains("'50'"), "{heard}");
    server.says([error("22023"), ready()]);
    assert_eq!(server.heard(), "Q(SELECT 1)", "it has been set to them alone before");
    server.says([one_row("1")]);
    // Nor is it believed to have a brake.
    clients[0].says([query("BEGIN")]);
    let heard = server.heard();
    assert!(heard.contains("search_path") && !heard.contains("statement_timeout"), "{heard}");
}

/// One that has refused somebody's settings has no brake, and is not shared by others without.
#[test]
fn nobody_shares_a_server_without_a_brake() {
    let (stage, server, clients) = braked(&shared(2), 2);
    let named = stage.newcomer(&[("search_path", "x")]);
    server.heard();
    server.says([one_row("")]);
    assert!(named.is_greeted());
    clients[0].says([query("BEGIN")]);
    server.heard();
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(BEGIN)");
    server.says([done(), in_block()]);
    named.says([query("SELECT 1")]);
    clients[1].says([query("SELECT 2")]);
    clients[0].says([query("COMMIT")]);
    assert_eq!(server.heard(), "Q(COMMIT)");
    server.says([done(), ready()]);
    let heard = server.heard();
    assert!(heard.contains("search_path") && heard.contains("statement_time"), "{heard}");
    server.says([error("22023"), ready()]);
    assert_eq!(stage.attempts(), 1, "that is for whoever asks for its own settings");
    let mut heard = server.heard();
    while !heard.contains("SELECT 2") {
        server.says([one_row("")]);
        heard = format!("{heard} {}", server.heard());
    }
    let (before, _) = heard.split_once("Q(SELECT 2)").expect("it is run");
    assert!(before.contains("set_config('statement_tim"), "{heard}");
    assert!(took(Mark::SharedOwnFailed));
}

/// The statement that takes the brake off is under it: that it took too long refuses nothing.
#[test]
fn a_brake_that_ends_what_takes_it_off_is_taken_off_first() {
    let (_stage, server, clients) = braked(&shared(1), 1);
    clients[0].says([query("BEGIN")]);
    for _ in 0..2 {
        assert_eq!(server.heard(), FREED);
        server.says([error("57014"), ready()]);
        assert!(took(Mark::SettingsBraked));
    }
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(BEGIN)");
}

/// Then come the settings that its client has.
#[test]
fn settings_come_behind_a_brake_that_is_taken_off_first() {
    let (stage, server, _) = braked(&shared(1), 1);
    let named = stage.newcomer(&[("search_path", "x")]);
    assert!(server.heard().contains("search_path"));
    server.says([error("57014"), ready()]);
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    let heard = server.heard();
    assert!(heard.contains("search_path") && !heard.contains("statement_timeout"), "{heard}");
    server.says([one_row("")]);
    assert!(named.is_greeted());
    assert_eq!(stage.attempts(), 0);
}

/// The same settings make another encoding where that of a role or a database has changed.
#[test]
fn who_was_told_another_encoding_is_told_by_a_server_alone() {
    let (stage, server, clients) = braked(&shared(1), 2);
    ask(&clients[..1]);
    server.says([columns(), row(b"a"), done(), parameter_status("client_encoding", "SJIS")]);
    server.says([ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    clients[1].says([query("SELECT 1")]);
    assert!(took(Mark::UnsharedForEncoding));
    assert_eq!(server.heard(), format!("Q(SELECT 0) {FREED}"));
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 1)");
    server.says([one_row("b")]);
    assert_eq!(clients[1].heard(), "S(client_encoding=SJIS) T D(b) C Z");
    clients[1].says([query("SELECT 1")]);
    assert_eq!(server.heard(), BRAKED);
}

/// All that PostgreSQL says of a statement is kept until that is over.
#[test]
fn who_debugs_shares_no_server() {
    let (stage, server, _) = braked(&shared(1), 1);
    let named = stage.newcomer(&[("client_min_messages", "DEBUG2")]);
    server.heard();
    server.says([one_row("")]);
    assert!(named.is_greeted());
    named.says([query("SELECT 1")]);
    assert!(took(Mark::UnsharedForDebugging));
    assert_eq!(server.heard(), "Q(SELECT 1)");
}

/// What a server is set to now is told each of those who share it with its next unit.
#[test]
fn what_a_server_reports_is_told_once_to_each() {
    let (_stage, server, clients) = braked(&shared(1), 2);
    ask(&clients);
    server.says([columns(), row(b"a"), done(), parameter_status("TimeZone", "UTC"), ready()]);
    server.says([one_row("b")]);
    assert_eq!(clients[0].heard(), "S(TimeZone=UTC) T D(a) C Z", "its rows may say so already");
    assert_eq!(clients[1].heard(), "S(TimeZone=UTC) T D(b) C Z");
    ask(&clients);
    server.says([one_row("a"), one_row("b")]);
    assert_eq!(clients[0].heard(), "T D(a) C Z");
    assert_eq!(clients[1].heard(), "T D(b) C Z");
    assert!(took(Mark::ReportsTold));
}

/// Names are brought to servers that clients have alone; else each would share with nobody.
#[test]
fn clients_of_different_names_share() {
    let (stage, server, clients) = braked(&shared(1), 1);
    let named = stage.newcomer(&[("application_name", "it")]);
    server.heard();
    server.says([parameter_status("application_name", "it"), one_row("it")]);
    assert!(named.is_greeted());
    clients[0].says([query("SELECT 0")]);
    assert!(server.heard().starts_with("Q(SELECT ARRAY["));
    server.says([parameter_status("application_name", ""), one_row("")]);
    named.says([query("SELECT 1")]);
    assert_eq!(server.heard(), "Q(SELECT 0) Q(SELECT 1)");
    server.says([one_row("a"), one_row("b")]);
    assert_eq!(named.heard(), "T D(b) C Z", "its name is still its own");
    let always = Setup { pool: "application_name = 'always'", ..shared(1) };
    let (stage, server, _) = braked(&always, 1);
    let named = stage.newcomer(&[("application_name", "it")]);
    server.heard();
    server.says([parameter_status("application_name", "it"), one_row("it")]);
    assert!(named.is_greeted());
    named.says([query("SELECT 1")]);
    assert!(server.heard().starts_with("Q(SELECT ARRAY["));
}

#[test]
fn a_server_that_is_to_go_takes_no_more_units() {
    let setup = shared(1);
    let (stage, server, clients) = braked(&setup, 2);
    clients[0].says([query("SELECT 0")]);
    stage.reload(&Setup { port: 5433, ..shared(1) });
    clients[1].says([query("SELECT 1")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    server.says([one_row("a")]);
    assert_eq!(clients[0].heard(), "T D(a) C Z");
    assert_eq!(stage.server().heard(), "Q(SELECT 1)", "its names are not known yet");
}

/// Nobody shares a server that was opened for somebody.
#[test]
fn who_was_promised_a_server_gets_it_before_those_who_share() {
    let (stage, server, clients) = braked(&shared(1), 1);
    let odd = stage.newcomer(&[("timezone", "Mars")]);
    assert!(server.heard().contains("'Mars'"));
    server.says([error("22023"), ready()]);
    assert_eq!(server.heard(), "X");
    clients[0].says([query("SELECT 0")]);
    server.breaks();
    let next = stage.server();
    assert!(next.heard().contains("'Mars'"));
    next.says([parameter_status("TimeZone", "Mars"), one_row("")]);
    assert!(odd.is_greeted());
    assert!(next.heard().starts_with("Q(SELECT ARRAY["), "it is shared now");
}

/// Though what its servers' names are is to be read first.
#[test]
fn who_waits_to_share_is_served_alone_where_a_reload_has_ended_that() {
    let (stage, server, clients) = braked(&shared(1), 2);
    clients[0].says([query("BEGIN")]);
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(BEGIN)");
    server.says([done(), in_block()]);
    clients[1].says([query("SELECT 1")]);
    stage.reload(&Setup { port: 5433, ..Setup::of_size(2) });
    assert_eq!(stage.server().heard(), "Q(SELECT 1)");
}

#[test]
fn a_place_that_was_given_in_vain_is_given_to_another() {
    let setup = Setup { general: "pipelining = '1x1'", ..Setup::default() };
    let (stage, server, clients) = braked(&setup, 3);
    ask(&clients);
    stage.keep_turn_open();
    server.says([one_row("a")]);
    clients[1].breaks();
    stage.end_turn();
    assert_eq!(server.heard(), "Q(SELECT 0) Q(SELECT 2)");
}

#[test]
fn auto_shares_servers() {
    let (_stage, server, clients) = braked_automatically(1, 3);
    ask(&clients);
    assert_eq!(server.heard(), "Q(SELECT 0) Q(SELECT 1) Q(SELECT 2)");
}

/// Perhaps fewer on a server are better. That is tried for a moment, and who waits for a place
/// meanwhile waits no longer than that.
#[test]
fn auto_tries_what_may_be_better() {
    let (stage, server, clients) = braked_automatically(1, 40);
    let all: Vec<_> = (0..40).map(|number| format!("Q(SELECT {number})")).collect();
    stage.wait(TICK);
    for _ in 0..10 {
        ask(&clients);
        assert_eq!(server.heard(), all.join(" "));
        stage.wait(TICK / 5);
        server.says(vec![one_row(""); 40]);
    }
    ask(&clients);
    assert_eq!(server.heard(), all[..32].join(" "));
    stage.wait(Duration::from_millis(1_200));
    assert_eq!(server.heard(), all[32..].join(" "));
    server.says(vec![one_row("a"); 40]);
    for client in &clients {
        assert!(client.heard().ends_with("T D(a) C Z"));
    }
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    assert!(took(Mark::SharedOtherwise));
}

/// Who has met nobody for a while has a server alone, and its replies are not held back; who comes
/// meanwhile shares.
#[test]
fn auto_leaves_who_is_alone_alone() {
    let (stage, server, clients) = braked_automatically(2, 2);
    let [alice, bob] = &clients[..] else { unreachable!() };
    for _ in 0..16 {
        alice.says([query("SELECT 0")]);
        assert_eq!(server.heard(), "Q(SELECT 0)");
        server.says([one_row("")]);
        assert_eq!(alice.heard(), "T D() C Z");
    }
    alice.says([query("SELECT 0")]);
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    server.says([columns(), row(b"a")]);
    assert_eq!(alice.heard(), "T D(a)");
    bob.says([query("SELECT 1")]);
    let other = stage.server();
    assert_eq!(other.heard(), BRAKED);
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z");
    other.says([one_row("")]);
    assert_eq!(other.heard(), "Q(SELECT 1)");
    other.says([one_row("b")]);
    assert_eq!(bob.heard(), "T D(b) C Z");
    alice.says([query("SELECT 0")]);
    assert_eq!(other.heard(), "Q(SELECT 0)", "somebody was there");
}

/// Commits wait for the disk, and many do so together.
#[test]
fn auto_gives_writes_all_servers() {
    let (stage, server, clients) = braked_automatically(5, 13);
    updated(&server, &clients[0]);
    let update = |number: usize| {
        clients[number].says([query(&format!("UPDATE t SET a = {number}"))]);
        format!("Q(UPDATE t SET a = {number})")
    };
    let mut last = server;
    let first = update(0);
    assert_eq!(last.heard(), first);
    for number in 1..5 {
        let behind = update(3 * number - 2);
        assert_eq!(last.heard(), behind, "until there is one more");
        let next = stage.server();
        let behind = update(3 * number - 1);
        assert_eq!(last.heard(), behind, "until that is ready");
        assert_eq!(next.heard(), BRAKED);
        next.says([one_row("")]);
        last = next;
        let first = update(3 * number);
        assert_eq!(last.heard(), first);
    }
    assert!(took(Mark::HeatedInFront));
}

/// A read finds a server without writes, and writes go to it only if there is no other.
#[test]
fn auto_keeps_reads_and_writes_apart() {
    let (stage, server, clients) = braked_automatically(2, 5);
    updated(&server, &clients[0]);
    clients[0].says([query("SELECT 0")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    clients[1].says([query("UPDATE t SET a = 1")]);
    assert_eq!(server.heard(), "Q(UPDATE t SET a = 1)", "there is no other");
    let other = stage.server();
    clients[2].says([query("SELECT 2")]);
    assert_eq!(other.heard(), BRAKED);
    other.says([one_row("")]);
    assert_eq!(other.heard(), "Q(SELECT 2)");
    clients[3].says([query("UPDATE t SET a = 3")]);
    assert_eq!(server.heard(), "Q(UPDATE t SET a = 3)");
    clients[4].says([query("SELECT 4")]);
    assert_eq!(other.heard(), "Q(SELECT 4)");
}

/// Who has been sent is answered, and who waits for a place gets a server alone, each in turn.
#[test]
fn it_may_end_while_clients_wait_for_a_place() {
    let setup = Setup { general: "pipelining = '1x2'", ..Setup::default() };
    let (stage, server, clients) = braked(&setup, 4);
    ask(&clients);
    assert_eq!(server.heard(), "Q(SELECT 0) Q(SELECT 1)");
    stage.reload(&Setup::default());
    assert_eq!(server.heard(), "");
    server.says([one_row("a")]);
    assert_eq!(clients[0].heard(), "T D(a) C Z");
    clients[0].says([query("SELECT 4")]);
    assert_eq!(server.heard(), "", "its next one does not stand behind the other");
    server.says([one_row("b")]);
    assert_eq!(clients[1].heard(), "T D(b) C Z");
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    for (number, client) in [(2, &clients[2]), (3, &clients[3]), (4, &clients[0])] {
        assert_eq!(server.heard(), format!("Q(SELECT {number})"));
        server.says([one_row("c")]);
        assert_eq!(client.heard(), "T D(c) C Z");
    }
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// The place that a client was given just now is none any more.
#[test]
fn it_may_end_when_a_place_was_given() {
    let setup = Setup { general: "pipelining = '1x1'", ..Setup::default() };
    let (stage, server, clients) = braked(&setup, 3);
    ask(&clients);
    stage.keep_turn_open();
    server.says([one_row("a")]);
    stage.reload(&Setup::default());
    stage.end_turn();
    assert_eq!(server.heard(), format!("Q(SELECT 0) {FREED}"));
    server.says([one_row("")]);
    for (number, client) in clients.iter().enumerate().skip(1) {
        assert_eq!(server.heard(), format!("Q(SELECT {number})"));
        server.says([one_row("b")]);
        assert_eq!(client.heard(), "T D(b) C Z");
    }
}

/// Clients that have queued for a server alone get it so, and share it from their next unit on.
#[test]
fn it_may_begin_while_clients_wait_for_a_server() {
    let (stage, server, first) = Stage::ready(&Setup::default());
    let clients = [first, stage.client(), stage.client()];
    ask(&clients);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    stage.reload(&shared(1));
    server.says([one_row("a")]);
    for number in 1..3 {
        assert_eq!(server.heard(), format!("Q(SELECT {number})"));
        server.says([one_row("b")]);
    }
    assert_eq!(clients[0].heard(), "T D(a) C Z");
    for client in &clients[1..] {
        assert_eq!(client.heard(), "T D(b) C Z");
    }
    ask(&clients);
    assert_eq!(server.heard(), BRAKED);
    server.says([one_row("")]);
    for number in 0..2 {
        assert_eq!(server.heard(), format!("Q(SELECT {number})"), "it is not known yet");
        server.says([one_row("")]);
    }
    ask(&clients[..2]);
    assert_eq!(server.heard(), "Q(SELECT 2) Q(SELECT 0) Q(SELECT 1)");
}

/// It is deeper, or less deep, from the next unit on; what was sent stays.
#[test]
fn it_may_become_more_or_less() {
    let of = |general| Setup { general, ..Setup::default() };
    let (stage, server, clients) = braked(&of("pipelining = '1x1'"), 4);
    ask(&clients);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    stage.reload(&of("pipelining = '1x3'"));
    assert_eq!(server.heard(), "Q(SELECT 1) Q(SELECT 2)");
    stage.reload(&of("pipelining = '1x2'"));
    server.says([one_row("a")]);
    assert_eq!(server.heard(), "");
    server.says([one_row("b")]);
    assert_eq!(server.heard(), "Q(SELECT 3)");
    server.says([one_row("c"), one_row("d")]);
    for (client, value) in clients.iter().zip(["a", "b", "c", "d"]) {
        assert_eq!(client.heard(), format!("T D({value}) C Z"));
    }
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

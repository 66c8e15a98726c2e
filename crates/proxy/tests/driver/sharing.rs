//! What may share a server and what may not, and what is left of it when something goes wrong.

use std::time::Duration;

use pgweir_engine::{Mark, ServerActivity, Stats};
use pgweir_wire::frontend;

use crate::messages::{
    bind, bind_complete, columns, describe_statement, done, error, execute, fatal, flush, in_block,
    no_parameters, notice, one_row, parameter_status, parse, parse_as, parse_complete, query,
    ready, row, set_to, sync,
};
use crate::peer::Peer;
use crate::pipelining::{BRAKED, FREED, ask, braked, shared, updated};
use crate::stage::{Setup, Stage, took};

/// A shared server has been sent a query, and another is about to be: its client has been given the
/// place.
fn granted() -> (Stage, Peer, Vec<Peer>) {
    let setup = Setup { general: "pipelining = '1x1'", ..Setup::default() };
    let (stage, server, clients) = braked(&setup, 2);
    ask(&clients);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    stage.keep_turn_open();
    server.says([one_row("a")]);
    assert_eq!(server.heard(), "");
    (stage, server, clients)
}

/// `client` prepares a statement on the server, which is shared before and behind that.
fn prepare(server: &Peer, client: &Peer, name: &str, number: u32, text: &str) {
    client.says([parse_as(name, text), describe_statement(name), sync()]);
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    let statement = format!("pgweir_{number}");
    let heard = server.heard();
    assert_eq!(heard, format!("P({statement}={text}) D({statement}) D({statement}) S"));
    let described = [no_parameters(), columns()].concat();
    server.says([parse_complete(), described.clone(), described, ready()]);
    assert_eq!(client.heard(), "1 t T Z");
    client.says([query("SELECT 0")]);
    assert_eq!(server.heard(), BRAKED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    server.says([one_row("")]);
    client.heard();
}

/// What comes in between is not part of it, and what stands beside it is.
#[test]
fn a_reply_is_what_its_client_is_to_hear_of_it() {
    let (_stage, server, clients) = braked(&shared(1), 1);
    ask(&clients);
    let news = parameter_status("TimeZone", "UTC");
    server.says([columns(), news.clone(), row(b"a"), row(b"b"), news, done(), ready()]);
    assert_eq!(clients[0].heard(), "S(TimeZone=UTC) T D(a) D(b) C Z");
    assert!(took(Mark::HeldInParts));
}

/// The first half of a reply is kept for its client, and is nothing of the next one.
#[test]
fn nothing_is_left_of_a_reply_that_overran() {
    let (stage, server, clients) = braked(&shared(1), 1);
    ask(&clients);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    server.says([columns()]);
    server.says([row(b"half")]);
    stage.wait(Duration::from_millis(60));
    server.says([error("57014"), ready()]);
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    server.says([one_row("whole")]);
    assert_eq!(clients[0].heard(), "T D(whole) C Z");
    ask(&clients);
    assert_eq!(server.heard(), BRAKED);
    server.says([one_row("")]);
    server.says([columns()]);
    server.says([row(b"next"), done(), ready()]);
    assert_eq!(clients[0].heard(), "T D(next) C Z");
}

/// Nor is it of one that is lost with its server.
#[test]
fn nothing_is_left_of_a_reply_that_is_lost() {
    let (stage, server, clients) = braked(&shared(1), 1);
    ask(&clients);
    server.says([columns()]);
    server.says([row(b"half")]);
    server.breaks();
    assert_eq!(clients[0].heard(), "");
    let another = stage.server();
    assert_eq!(another.heard(), "Q(SELECT 0)");
    another.says([one_row("whole")]);
    assert_eq!(clients[0].heard(), "T D(whole) C Z");
}

/// A batch that goes on behind what is closed, or leaves something, is no unit to share.
#[test]
fn what_is_more_than_closed_goes_alone() {
    let limited = {
        let mut out = Vec::new();
        frontend::write_execute(&mut out, b"", 1);
        out
    };
    let read = || [parse("SELECT 1"), bind()];
    let batches = [
        [read().concat(), limited, sync()].concat(),
        [read().concat(), execute(), query("SELECT 2"), sync()].concat(),
        // The brake is over, and begins anew.
        [read().concat(), execute(), parse("SELECT 2"), sync()].concat(),
        [read().concat(), execute(), bind(), sync()].concat(),
        [read().concat(), execute(), describe_statement(""), sync()].concat(),
        [bind(), execute(), sync()].concat(),
        [describe_statement(""), sync()].concat(),
        [read().concat(), flush(), execute(), sync()].concat(),
        [parse_as("s", "SELECT 1"), bind(), execute(), sync()].concat(),
        query(&format!("SELECT '{}'", "x".repeat(16 << 10))),
        query("COPY t TO STDOUT"),
    ];
    for batch in batches {
        let (_stage, server, clients) = braked(&shared(1), 1);
        clients[0].says([&batch]);
        assert_eq!(server.heard(), FREED, "{}", batch.escape_ascii());
    }
    let (_stage, server, clients) = braked(&shared(1), 1);
    clients[0].says([parse("SELECT 1"), describe_statement(""), bind(), execute(), sync()]);
    assert_eq!(server.heard(), "P(SELECT 1) D B E S");
}

/// Its names stand where they stood, whatever stands in front of them.
#[test]
fn names_are_found_behind_a_portals() {
    let (_stage, server, clients) = braked(&shared(1), 1);
    prepare(&server, &clients[0], "s", 1, "SELECT 1");
    let mut batch = Vec::new();
    frontend::write_bind(&mut batch, b"portal", b"s", &[Some(b"57")]);
    frontend::write_describe(&mut batch, frontend::Target::Statement(b"s"));
    frontend::write_execute(&mut batch, b"portal", 0);
    batch.extend(sync());
    clients[0].says([&batch]);
    let mut sent = Vec::new();
    frontend::write_bind(&mut sent, b"portal", b"pgweir_1", &[Some(b"57")]);
    frontend::write_describe(&mut sent, frontend::Target::Statement(b"pgweir_1"));
    frontend::write_execute(&mut sent, b"portal", 0);
    sent.extend(sync());
    let heard = server.heard_bytes();
    assert_eq!(heard.escape_ascii().to_string(), sent.escape_ascii().to_string());
}

/// A transaction that is lost is not over before its client has ended it.
#[test]
fn who_has_lost_a_transaction_shares_nothing_before_it_is_over() {
    let (stage, server, clients) = braked(&shared(1), 1);
    clients[0].says([query("BEGIN")]);
    server.says([one_row("")]);
    server.says([done(), in_block()]);
    server.breaks();
    clients[0].says([query("SELECT 1")]);
    let heard = clients[0].heard();
    assert!(heard.starts_with("C Z(T) E(40"), "{heard}");
    clients[0].says([query("SELECT 2")]);
    let another = stage.server();
    let heard = another.heard();
    assert!(heard != BRAKED && !heard.contains("SELECT 2"), "{heard}");
}

/// What has a time of its own is not ended by ours in its place.
#[test]
fn who_has_a_short_timeout_shares_no_server() {
    for (limit, alone) in [("statement_timeout = 20", true), ("statement_timeout = 1000", false)] {
        let general: String = format!("pipelining = 8\n{limit}");
        let (stage, server, client) =
            Stage::ready(&Setup { general: general.leak(), ..Setup::default() });
        client.says([query("SELECT 1")]);
        let heard = server.heard();
        assert_eq!(heard == "Q(SELECT 1)", alone, "{heard}");
        drop(stage);
    }
}

/// No more of them than are to be, though others are free.
#[test]
fn so_many_servers_are_shared() {
    let setup = Setup { general: "pipelining = '1x1'", ..Setup::of_size(2) };
    let (stage, first, clients) = braked(&setup, 4);
    for client in &clients[2..] {
        client.says([query("BEGIN")]);
    }
    first.says([one_row("")]);
    let second = stage.server();
    for (server, client) in [&first, &second].into_iter().zip(&clients[2..]) {
        assert!(server.heard().ends_with("Q(BEGIN)"));
        server.says([done(), in_block()]);
        client.says([query("COMMIT")]);
        server.says([done(), ready()]);
        server.heard();
    }
    assert_eq!(stage.servers(), [ServerActivity::Idle; 2]);
    ask(&clients[..2]);
    let (shared, other) = match first.heard().as_str() {
        "" => (&second, &first),
        heard => {
            assert_eq!(heard, BRAKED);
            (&first, &second)
        }
    };
    shared.heard();
    shared.says([one_row("")]);
    assert_eq!((shared.heard().as_str(), other.heard().as_str()), ("Q(SELECT 0)", ""));
    // Who needs one alone does not wait behind those who wait for a place.
    clients[2].says([query("BEGIN")]);
    assert_eq!(other.heard(), "Q(BEGIN)");
    other.says([done(), in_block()]);
    clients[3].says([query("BEGIN")]);
    clients[2].says([query("COMMIT")]);
    assert_eq!(other.heard(), "Q(COMMIT)");
    other.says([done(), ready()]);
    assert_eq!(other.heard(), "Q(BEGIN)");
    assert_eq!(stage.attempts(), 0);
}

/// No connection is made for those who only wait for a place.
#[test]
fn who_waits_for_a_place_needs_no_server() {
    let setup = Setup { general: "pipelining = '1x1'", ..Setup::of_size(3) };
    let (stage, server, clients) = braked(&setup, 3);
    ask(&clients);
    assert_eq!((server.heard().as_str(), stage.attempts()), ("Q(SELECT 0)", 0));
    clients[1].breaks();
    clients[2].breaks();
    server.says([one_row("a")]);
    assert_eq!(clients[0].heard(), "T D(a) C Z");
    clients[0].says([query("SELECT 1")]);
    assert_eq!(server.heard(), "Q(SELECT 1)", "nobody has asked before");
}

/// Their clients have sent nothing to it, and hear nothing of it.
#[test]
fn a_server_that_is_lost_before_a_unit_is_sent_is_nobodys_loss() {
    for says_so in [false, true] {
        let (stage, server, clients) = granted();
        if says_so {
            server.says([fatal("57P01")]);
        }
        server.ends();
        stage.end_turn();
        assert_eq!(stage.contained(), None);
        let another = stage.server();
        let heard = another.heard();
        assert!([BRAKED, "Q(SELECT 1)"].contains(&heard.as_str()), "{heard}");
        if heard == BRAKED {
            another.says([one_row("")]);
            assert_eq!(another.heard(), "Q(SELECT 1)");
        }
        another.says([one_row("b")]);
        assert_eq!(clients[1].heard(), "T D(b) C Z");
    }
}

#[test]
fn an_error_that_answers_nothing_is_contained() {
    let (stage, server, _clients) = granted();
    server.says([error("22012")]);
    stage.end_turn();
    assert!(stage.contained().is_some());
}

/// Where it has said why it ends all that it has said has come, however its connection ends.
#[test]
fn what_is_known_of_units_that_are_lost() {
    for ends in [true, false] {
        let (stage, server, clients) = braked(&shared(1), 2);
        updated(&server, &clients[0]);
        clients[0].says([query("UPDATE t SET a = 1")]);
        clients[1].says([query("UPDATE t SET a = 2")]);
        server.says([fatal("57P01")]);
        if ends {
            server.ends();
        } else {
            server.breaks();
        }
        assert_eq!(clients[0].heard(), "E(08007) Z");
        assert_eq!(clients[1].heard(), "");
        assert_eq!(stage.server().heard(), "Q(UPDATE t SET a = 2)");
    }
}

/// Whoever has a longer timeout shares under the brake, and has it where it is run again.
#[test]
fn a_timeout_of_ones_own_is_the_brake_or_shorter() {
    let (stage, server, clients) = braked(&shared(1), 1);
    let long = stage.newcomer(&[("statement_timeout", "30s")]);
    assert!(!long.is_greeted());
    server.heard();
    server.says([one_row("30s")]);
    assert!(long.is_greeted());
    ask(&clients);
    let heard = server.heard();
    assert!(heard.starts_with("Q(SELECT ARRAY[pg_catalog.set_config('statement_timeout', NULL"));
    server.says([one_row("")]);
    long.says([query("SELECT 1")]);
    assert_eq!(server.heard(), "Q(SELECT 0) Q(SELECT 1)");
    server.says([one_row("")]);
    stage.wait(Duration::from_millis(60));
    server.says([error("57014"), ready()]);
    assert!(server.heard().contains("set_config('statement_timeout', '30s', false)"));
    server.says([one_row("30s")]);
    assert_eq!(server.heard(), "Q(SELECT 1)");
    let short = stage.newcomer(&[("statement_timeout", "20")]);
    server.says([one_row("")]);
    server.heard();
    server.says([one_row("20")]);
    assert!(short.is_greeted());
    short.says([query("SELECT 1")]);
    assert_eq!(server.heard(), "Q(SELECT 1)", "it is alone");
}

/// One that does not answer us gets as much time as a login.
#[test]
fn a_server_that_does_not_take_its_brake_is_lost() {
    let general = "pipelining = 8\nconnect_timeout = 2000\nquery_wait_timeout = 60000";
    let setup = Setup { general, ..Setup::default() };
    let (stage, server, client) = Stage::ready(&setup);
    client.says([query("SELECT 1")]);
    assert_eq!(server.heard(), BRAKED);
    stage.wait(Duration::from_millis(1500));
    assert!(server.is_open());
    stage.wait(Duration::from_millis(1500));
    assert!(!server.is_open());
    assert_eq!(stage.server().heard(), BRAKED);
}

#[test]
fn a_shared_server_has_as_long_as_a_transaction() {
    let general = "pipelining = 8\nconnect_timeout = 1000\ntransaction_timeout = 5000";
    let setup = Setup { general, ..Setup::default() };
    let (stage, server, clients) = braked(&setup, 1);
    stage.wait(Duration::from_secs(9));
    ask(&clients);
    stage.wait(Duration::from_secs(4));
    assert_eq!((server.heard().as_str(), server.is_open()), ("Q(SELECT 0)", true));
    stage.wait(Duration::from_secs(2));
    assert!(!server.is_open());
}

/// One that ends before the brake does would end others' writes too.
#[test]
fn nobody_shares_where_a_transaction_may_take_no_longer_than_the_brake() {
    for limit in ["statement_timeout = 50", "transaction_timeout = 50"] {
        let general = format!("pipelining = 8\n{limit}").leak();
        let (_stage, server, client) = Stage::ready(&Setup { general, ..Setup::default() });
        client.says([query("SELECT 0")]);
        assert_eq!(server.heard(), "Q(SELECT 0)");
    }
}

/// A client that is asked to leave does so behind its reply.
#[test]
fn a_unit_is_answered_before_its_client_is_asked_to_leave() {
    let (stage, server, clients) = braked(&shared(1), 1);
    ask(&clients);
    stage.drain();
    assert_eq!(clients[0].heard(), "");
    server.says([one_row("a")]);
    assert_eq!(clients[0].heard(), "T D(a) C Z E(FATAL 57P01)");
}

/// What is shared is counted as what is not.
#[test]
fn units_that_share_are_counted() {
    let (stage, server, clients) = braked(&shared(1), 2);
    let stats = || -> Stats { stage.snapshot().pools[0].stats };
    let before = stats();
    let batch = [parse("SELECT 1"), bind(), execute(), sync()].concat();
    for client in &clients {
        client.says([&batch]);
    }
    for _ in &clients {
        server.says([parse_complete(), bind_complete(), notice(), done(), ready()]);
    }
    let after = stats();
    assert_eq!(after.received - before.received, 2 * batch.len() as u64);
    assert_eq!((after.parses, after.binds, after.own_parses), (2, 2, 0));
    assert_eq!(after.queries - before.queries, 2);
    assert_eq!(after.assignments - before.assignments, 2, "each has a place");
}

/// It has its own way, and all else in common with the others.
#[test]
fn who_says_so_shares_no_server() {
    for (name, value) in
        [("pgweir.pipelining", "off"), ("options", "-c pgweir.pipelining=off -c work_mem=1024")]
    {
        let (stage, server, clients) = braked(&shared(1), 2);
        let loner = stage.newcomer(&[(name, value)]);
        if name == "options" {
            assert!(server.heard().contains("'1024'"), "it is not known what that looks like");
            server.says([one_row("")]);
        }
        assert!(loner.is_greeted());
        loner.says([query("SELECT 'alone'")]);
        if name == "pgweir.pipelining" {
            assert_eq!(server.heard(), FREED);
            server.says([one_row("")]);
        }
        assert_eq!(server.heard(), "Q(SELECT 'alone')");
        ask(&clients);
        assert_eq!(server.heard(), "");
        server.says([one_row("a")]);
        assert_eq!(loner.heard(), "T D(a) C Z");
        assert!(server.heard().starts_with("Q(SELECT ARRAY["));
        server.says([one_row("")]);
        assert_eq!(server.heard(), "Q(SELECT 0) Q(SELECT 1)");
    }
    let (stage, server, _clients) = braked(&shared(1), 1);
    let sociable = stage.newcomer(&[("pgweir.pipelining", "auto")]);
    assert!(sociable.is_greeted());
    sociable.says([query("SELECT 1")]);
    assert_eq!(server.heard(), "Q(SELECT 1)");
}

#[test]
fn who_shares_no_server_shares_statements() {
    let (stage, server, clients) = braked(&shared(1), 1);
    prepare(&server, &clients[0], "s", 1, "SELECT 1");
    let loner = stage.newcomer(&[("pgweir.pipelining", "off")]);
    assert!(loner.is_greeted());
    loner.says([parse_as("t", "SELECT 1"), sync()]);
    assert_eq!(server.heard(), FREED);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "C(pgweir_1) P(pgweir_1=SELECT 1) D(pgweir_1) S");
}

/// A SET is one of a custom setting, and holds for sharing too, until it is taken back.
#[test]
fn a_set_says_from_then_on_who_shares_no_server() {
    const OFF: (&str, &str) = ("pgweir.pipelining", "off");
    let says = |client: &Peer, server: &Peer, text: &str, then: &[(&str, &str)]| {
        client.says([query(text)]);
        let heard = server.heard();
        if !heard.contains(text) {
            server.says([one_row("")]);
            assert_eq!(server.heard(), format!("Q({text})"));
        }
        server.says([done(), ready()]);
        assert_eq!(server.heard(), "Q(set to?)");
        server.says([set_to(then)]);
        assert_eq!(client.heard(), "C Z");
    };
    for (at_login, then) in [("auto", BRAKED), ("off", "Q(SELECT 1)")] {
        let (stage, server, _clients) = braked(&shared(1), 1);
        let client = stage.newcomer(&[("pgweir.pipelining", at_login)]);
        assert!(client.is_greeted());
        says(&client, &server, "SET pgweir.pipelining = 'off'", &[OFF]);
        client.says([query("SELECT 1")]);
        assert_eq!(server.heard(), "Q(SELECT 1)", "alone, and nothing is to be set");
        server.says([one_row("a")]);
        client.heard();
        says(&client, &server, "RESET pgweir.pipelining", &[(OFF.0, "")]);
        client.says([query("SELECT 1")]);
        assert_eq!(server.heard(), then, "as at its login");
    }
    let (stage, server, _clients) = braked(&shared(1), 1);
    let client = stage.newcomer(&[OFF]);
    assert!(client.is_greeted());
    says(&client, &server, "SET pgweir.pipelining = 'auto'", &[(OFF.0, "auto")]);
    client.says([query("SELECT 1")]);
    assert_eq!(server.heard(), BRAKED);
}

/// Where several settings are about, a server that runs dry for a moment is not set anew for others
/// who have one: with 64 clients and 4 sets of settings that would be done for nearly every unit.
#[test]
fn who_has_a_server_to_share_takes_none_that_others_will_miss() {
    let setup = Setup { general: "pipelining = '2x8'", size: 2, ..Setup::default() };
    let (stage, server, clients) = braked(&setup, 3);
    let named = stage.newcomer(&[("row_security", "off")]);
    assert!(server.heard().contains("row_security"));
    server.says([one_row("")]);
    assert!(named.is_greeted());
    clients[0].says([query("SELECT 0")]);
    assert!(server.heard().starts_with("Q(SELECT ARRAY["));
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    named.says([query("SELECT 5")]);
    let other = stage.server();
    assert!(other.heard().contains("row_security"));
    other.says([one_row("")]);
    assert_eq!(other.heard(), "Q(SELECT 5)");
    other.says([one_row("5")]);
    assert_eq!(named.heard(), "T D(5) C Z");
    clients[1].says([query("SELECT 1")]);
    assert_eq!((server.heard().as_str(), other.heard().as_str()), ("Q(SELECT 1)", ""));
    // Nobody has come for it for a while.
    stage.wait(Duration::from_millis(60));
    clients[2].says([query("SELECT 2")]);
    assert!(other.heard().starts_with("Q(SELECT ARRAY["));
    assert_eq!(server.heard(), "Q(SELECT 2)", "until that is set");
}

/// A client that has met nobody for a while is given a place on a server that is lost at once: it
/// asks again, for a server alone, and is in the queue as one who does.
#[test]
fn who_meets_nobody_asks_again_for_a_server_alone() {
    let mut times_lost = 0;
    for units in 13..17 {
        let setup = Setup { general: "pipelining = 'auto'", ..Setup::default() };
        let (stage, server, clients) = braked(&setup, 1);
        let client = &clients[0];
        for _ in 2..units {
            client.says([query("SELECT 0")]);
            assert_eq!(server.heard(), "Q(SELECT 0)");
            server.says([one_row("0")]);
        }
        client.says([query("VACUUM")]);
        assert_eq!(server.heard(), FREED);
        server.says([one_row("")]);
        assert_eq!(server.heard(), "Q(VACUUM)");
        server.says([done(), ready()]);
        client.heard();
        client.says([query("SELECT 1")]);
        if server.heard() != BRAKED {
            continue;
        }
        times_lost += 1;
        stage.keep_turn_open();
        server.says([one_row("")]);
        assert_eq!(server.heard(), "");
        server.ends();
        stage.end_turn();
        let another = stage.server();
        let mut heard = another.heard();
        if heard == BRAKED {
            another.says([one_row("")]);
            heard = another.heard();
        }
        assert_eq!(heard, "Q(SELECT 1)", "behind {units} units");
        another.says([one_row("1")]);
        assert_eq!(client.heard(), "T D(1) C Z");
        client.ends();
    }
    assert!(times_lost > 0);
}

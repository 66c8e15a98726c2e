//! A shared server is set to what others have set behind the units that it has.

use std::time::Duration;

use pgweir_engine::Mark;

use crate::messages::{
    bind_to, columns, describe_statement, error, execute, no_parameters, one_row, parameter_status,
    parse_as, parse_complete, query, ready, sync,
};
use crate::peer::Peer;
use crate::pipelining::braked;
use crate::stage::{Setup, Stage, took};

/// How a statement begins that sets a server.
const SETS: &str = "Q(SELECT ARRAY[pg_catalog.set_config(";

/// One server that takes many units.
fn one() -> Setup {
    Setup { general: "pipelining = '1x8'", ..Setup::default() }
}

/// A server hears a statement that sets it, and then these.
fn is_set(server: &Peer, units: &str) {
    let heard = server.heard();
    let first = heard.strip_prefix(SETS).unwrap_or_else(|| panic!("{heard}"));
    let (_, behind) = first.split_once(") Q(").expect("something is behind it");
    assert_eq!(format!("Q({behind}"), units);
}

/// What a server reports that is set to this: of most settings nothing.
fn report(name: &str, value: &str) -> Vec<u8> {
    if name == "TimeZone" { parameter_status(name, value) } else { Vec::new() }
}

/// A client without settings, whose unit is on a shared server, and others with a setting each.
fn with_settings(setup: &Setup, settings: &[(&str, &str)]) -> (Stage, Peer, Peer, Vec<Peer>) {
    let (stage, server, mut clients) = braked(setup, 1);
    let with = |&(name, value): &(&str, &str)| {
        let client = stage.newcomer(&[(name, value)]);
        if !client.is_greeted() {
            assert!(server.heard().contains(&name.to_ascii_lowercase()));
            server.says([report(name, value), one_row("")]);
            assert!(client.is_greeted());
        }
        client
    };
    let others = settings.iter().map(with).collect();
    let plain = clients.remove(0);
    plain.says([query("SELECT 0")]);
    assert!(server.heard().starts_with("Q(SELECT ARRAY["));
    let default = |(name, _): &(&str, &str)| report(name, "");
    server.says(settings.iter().map(default).chain([one_row("")]));
    assert_eq!(server.heard(), "Q(SELECT 0)");
    (stage, server, plain, others)
}

fn with_paths(setup: &Setup, paths: &[&str]) -> (Stage, Peer, Peer, Vec<Peer>) {
    let settings: Vec<_> = paths.iter().map(|path| ("search_path", *path)).collect();
    with_settings(setup, &settings)
}

/// It does not stand idle until it is set, and whoever waited then has a place there; others have
/// their turn before who comes later.
#[test]
fn those_of_other_settings_stand_behind_a_statement_that_sets_them() {
    let (_stage, server, plain, others) = with_paths(&one(), &["x", "y", "x", "y"]);
    others[0].says([query("SELECT 1")]);
    is_set(&server, "Q(SELECT 1)");
    assert!(took(Mark::SetAnewBehind));
    for (number, client) in others.iter().enumerate().skip(1) {
        client.says([query(&format!("SELECT {}", number + 1))]);
    }
    server.says([one_row("0")]);
    assert_eq!(plain.heard(), "T D(0) C Z");
    plain.says([query("SELECT 5")]);
    assert_eq!(server.heard(), "", "it is not known yet whether it could be set");
    server.says([one_row("")]);
    is_set(&server, "Q(SELECT 2) Q(SELECT 4)");
    server.says([one_row("1"), one_row("")]);
    assert_eq!(others[0].heard(), "T D(1) C Z");
    others[0].says([query("SELECT 6")]);
    is_set(&server, "Q(SELECT 3)");
    server.says([one_row("2"), one_row("4"), one_row("")]);
    is_set(&server, "Q(SELECT 5)");
    server.says([one_row("3"), one_row("")]);
    is_set(&server, "Q(SELECT 6)");
    server.says([one_row("5"), one_row(""), one_row("6")]);
    assert_eq!(plain.heard(), "T D(5) C Z");
    assert_eq!(others[0].heard(), "T D(6) C Z");
    for (number, client) in others.iter().enumerate().skip(1) {
        assert_eq!(client.heard(), format!("T D({}) C Z", number + 1));
    }
}

/// Of what a server reported while it was set for others nobody hears.
#[test]
fn each_is_told_what_holds_for_its_own_rows() {
    let (_stage, server, plain, others) = with_settings(&one(), &[("TimeZone", "UTC")]);
    for round in 0..3 {
        others[0].says([query("SELECT 1")]);
        is_set(&server, "Q(SELECT 1)");
        server.says([one_row("0"), parameter_status("TimeZone", "UTC"), one_row("")]);
        plain.says([query("SELECT 0")]);
        is_set(&server, "Q(SELECT 0)");
        server.says([one_row("1"), parameter_status("TimeZone", ""), one_row("")]);
        let news = if round == 0 { "S(TimeZone=) " } else { "" };
        assert_eq!(plain.heard(), format!("{news}T D(0) C Z"), "this server is its first");
        assert_eq!(others[0].heard(), "T D(1) C Z");
    }
}

/// A reader's rows would be those of another's tenant.
#[test]
fn what_stood_behind_a_statement_that_failed_is_run_again() {
    for reply in [one_row("wrong"), [error("57014"), ready()].concat()] {
        let (_stage, server, plain, others) = with_paths(&one(), &["x"]);
        others[0].says([query("SELECT 1")]);
        server.heard();
        server.says([one_row("0"), error("57014"), ready()]);
        assert!(took(Mark::ForeseenInVain));
        server.says([reply]);
        assert_eq!(plain.heard(), "T D(0) C Z");
        assert_eq!(others[0].heard(), "");
        assert!(server.heard().starts_with(SETS));
        server.says([one_row("")]);
        assert_eq!(server.heard(), "Q(SELECT 1)");
        server.says([one_row("right")]);
        assert_eq!(others[0].heard(), "T D(right) C Z");
    }
}

/// What is prepared there may have been read anew under the settings of before.
#[test]
fn what_is_prepared_is_made_again_behind_a_statement_that_failed() {
    let (_stage, server, plain, others) = with_settings(&one(), &[("TimeZone", "UTC")]);
    server.says([one_row("0")]);
    plain.says([parse_as("s", "SELECT '1'"), describe_statement("s"), sync()]);
    server.heard();
    server.says([one_row("")]);
    assert!(server.heard().starts_with("P(pgweir_1=SELECT '1') "));
    let described = [no_parameters(), columns()].concat();
    server.says([parse_complete(), described.clone(), described, ready()]);
    plain.says([query("SELECT 0")]);
    server.heard();
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    others[0].says([query("SELECT 1")]);
    is_set(&server, "Q(SELECT 1)");
    server.says([one_row("0"), error("57014"), ready(), one_row("wrong")]);
    assert!(server.heard().starts_with(SETS));
    server.says([parameter_status("TimeZone", "UTC"), one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT 1)");
    server.says([one_row("1")]);
    plain.says([bind_to("s"), execute(), sync()]);
    let mut heard = server.heard();
    server.says([parameter_status("TimeZone", ""), one_row("")]);
    heard += &server.heard();
    assert!(heard.contains("C(pgweir_1) P(pgweir_1=SELECT '1') "), "{heard}");
}

/// The others would each have a server alone in vain, and nobody one to share meanwhile.
#[test]
fn what_has_only_taken_too_long_is_tried_again_for_those_who_wait() {
    for (code, is_refused) in [("57014", false), ("53200", true)] {
        let (_stage, server, _plain, others) = with_paths(&one(), &["x", "y", "x"]);
        for (number, client) in others.iter().enumerate() {
            client.says([query(&format!("SELECT {}", number + 1))]);
        }
        is_set(&server, "Q(SELECT 1)");
        server.says([one_row("0"), error(code), ready()]);
        assert_eq!(took(Mark::HeatingRefused), is_refused, "{code}");
        is_set(&server, "Q(SELECT 2)");
    }
}

/// What stands behind it has to go on elsewhere.
#[test]
fn a_server_that_hangs_while_it_is_set_is_given_up() {
    let setup =
        Setup { general: "pipelining = '1x8'\nconnect_timeout = 2000", ..Setup::of_size(2) };
    let (stage, server, plain, others) = with_paths(&setup, &["x"]);
    others[0].says([query("SELECT 1")]);
    is_set(&server, "Q(SELECT 1)");
    server.says([one_row("0")]);
    assert_eq!(plain.heard(), "T D(0) C Z");
    stage.wait(Duration::from_secs(3));
    assert!(took(Mark::SharedInVain));
    let other = stage.server();
    assert!(other.heard().starts_with(SETS));
    other.says([one_row("")]);
    assert_eq!(other.heard(), "Q(SELECT 1)");
    other.says([one_row("1")]);
    assert_eq!(others[0].heard(), "T D(1) C Z");
}

/// Nobody has a use for its reply.
#[test]
fn it_is_not_run_again_when_its_client_has_asked_for_its_end() {
    let (stage, server, _plain, others) = with_paths(&one(), &["x"]);
    others[0].says([query("SELECT 1")]);
    server.heard();
    stage.cancel(&others[0]);
    assert_eq!(stage.cancels(), 0);
    server.says([one_row("0"), error("57014"), ready(), one_row("wrong")]);
    assert_eq!(others[0].heard(), "E(57014) Z");
    assert_eq!(server.heard(), "");
}

/// What it did under the wrong settings would stay.
#[test]
fn what_changes_rows_waits_until_its_server_is_set() {
    let (_stage, server, _plain, others) = with_paths(&one(), &["x"]);
    others[0].says([query("UPDATE t SET a = 0")]);
    assert_eq!(server.heard(), "");
    server.says([one_row("0")]);
    assert!(server.heard().starts_with(SETS));
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(UPDATE t SET a = 0)");
}

/// Under the wrong ones a text is another, or may do more.
#[test]
fn so_does_everything_under_settings_that_say_what_may_be_done() {
    for setting in [
        ("row_security", "off"),
        ("role", "low"),
        ("standard_conforming_strings", "off"),
        ("backslash_quote", "on"),
    ] {
        let (_stage, server, _plain, others) = with_settings(&one(), &[setting]);
        others[0].says([query("SELECT 1")]);
        assert_eq!(server.heard(), "", "{setting:?}");
        server.says([one_row("0")]);
        assert!(server.heard().starts_with(SETS));
        server.says([one_row("")]);
        assert_eq!(server.heard(), "Q(SELECT 1)");
    }
}

/// There is to be another: until it has come one is not in vain.
#[test]
fn the_server_that_is_there_is_set_anew_until_another_comes() {
    let setup = Setup { general: "pipelining = '2x8'", size: 2, ..Setup::default() };
    let (stage, server, _plain, others) = with_paths(&setup, &["x", "x"]);
    others[0].says([query("SELECT 1")]);
    is_set(&server, "Q(SELECT 1)");
    assert!(took(Mark::SetAnewForNow));
    others[1].says([query("SELECT 2")]);
    let other = stage.server();
    assert_eq!((server.heard().as_str(), other.heard().as_str()), ("Q(SELECT 2)", ""));
}

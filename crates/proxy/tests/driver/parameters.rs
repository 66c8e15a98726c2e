//! A client that has a server was told what that server reports, whoever had it before.

use crate::messages::{done, error, in_block, one_row, parameter_status, query, ready};
use crate::peer::Peer;
use crate::stage::{Setup, Stage};

const UTC: (&str, &str) = ("TimeZone", "UTC");
const TOKYO: (&str, &str) = ("TimeZone", "Asia/Tokyo");

fn reported((name, value): (&str, &str)) -> Vec<u8> {
    parameter_status(name, value)
}

/// The client runs a query on this server. Says what it was told in front of the reply.
fn told(client: &Peer, server: &Peer) -> String {
    client.says([query("SELECT")]);
    let told = client.heard();
    assert!(server.heard().ends_with("Q(SELECT)"));
    server.says([done(), ready()]);
    assert_eq!(client.heard(), "C Z");
    told
}

/// What a server says while nobody has it was heard by nobody.
#[test]
fn what_an_idle_server_reports_is_told_to_whoever_has_it_next() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    server.says([reported(UTC)]);
    assert_eq!((alice.heard(), bob.heard()), (String::new(), String::new()));
    for client in [&alice, &bob] {
        assert_eq!(told(client, &server), "S(TimeZone=UTC)");
        assert_eq!(told(client, &server), "");
    }
}

/// What one client was told by its server the next one was not, also one that waited for it.
#[test]
fn what_a_server_reports_to_one_client_is_told_to_the_next() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("SELECT")]);
    bob.says([query("SELECT")]);
    server.says([done(), reported(UTC), ready()]);
    assert_eq!(alice.heard(), "C S(TimeZone=UTC) Z");
    assert_eq!(bob.heard(), "S(TimeZone=UTC)");
    server.says([one_row("1")]);
    assert_eq!(bob.heard(), "T D(1) C Z");
    assert_eq!(told(&alice, &server), "");
}

/// Between the servers of a pool that are set differently a client would read one's rows by the
/// other's settings.
#[test]
fn a_client_is_told_of_each_change_of_servers() {
    let stage = Stage::new(&Setup::of_size(2));
    let alice = stage.newcomer(&[]);
    let first = stage.server_set_to(&[UTC]);
    assert_eq!(alice.heard(), "R S(TimeZone=UTC) S(server_version=15.1) K Z");
    let bob = stage.newcomer(&[]);
    assert_eq!(bob.heard(), "R S(TimeZone=UTC) S(server_version=15.1) K Z");
    alice.says([query("BEGIN")]);
    first.says([done(), in_block()]);
    bob.says([query("SELECT")]);
    let second = stage.server_set_to(&[TOKYO]);
    assert_eq!(bob.heard(), "S(TimeZone=Asia/Tokyo)");
    second.says([done(), ready()]);
    bob.heard();
    alice.says([query("COMMIT")]);
    first.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z(T) C Z");
    first.heard();
    assert_eq!(told(&bob, &first), "S(TimeZone=UTC)");
    assert_eq!(told(&alice, &first), "");
}

/// What the client of [`named`] asks for at login.
const IT: (&str, &str) = ("application_name", "it");

/// A server, and a client that has a name on it which servers do not have by themselves.
fn named() -> (Stage, Peer, Peer) {
    let stage = Stage::new(&Setup::default());
    let named = stage.newcomer(&[IT]);
    let server = stage.server_set_to(&[("application_name", "")]);
    server.says([reported(IT), one_row("it")]);
    assert!(named.is_greeted());
    (stage, server, named)
}

/// What a client asked for it was told at login: that others had its server in between is no news.
#[test]
fn settings_that_come_and_go_with_clients_are_no_news() {
    let (stage, server, named) = named();
    let plain = stage.newcomer(&[]);
    server.says([reported(("application_name", "")), one_row("")]);
    assert!(plain.is_greeted());
    for _ in 0..3 {
        for (client, name) in [(&named, "it"), (&plain, "")] {
            server.heard();
            client.says([query("SELECT")]);
            // One more query than the client's is in flight: that of its settings.
            if server.heard().contains("set_config") {
                server.says([parameter_status("application_name", name), one_row(name)]);
            }
            server.says([done(), ready()]);
            assert_eq!(client.heard(), "C Z");
            // Nor do they make what is remembered out of date.
            assert!(stage.newcomer(&[IT]).is_greeted() && stage.newcomer(&[]).is_greeted());
        }
    }
}

/// SET LOCAL is over with its transaction: nobody else hears of it, and no newcomer is told so.
#[test]
fn what_a_transaction_sets_for_itself_is_nobody_elses() {
    let stage = Stage::new(&Setup::default());
    let alice = stage.newcomer(&[]);
    let server = stage.server_set_to(&[UTC]);
    assert!(alice.is_greeted());
    let bob = stage.newcomer(&[]);
    assert!(bob.is_greeted());
    for end in ["COMMIT", "ROLLBACK"] {
        alice.says([query("BEGIN; SET LOCAL TimeZone = 'Asia/Tokyo'")]);
        server.says([done(), done(), reported(TOKYO), in_block()]);
        assert_eq!(alice.heard(), "C C S(TimeZone=Asia/Tokyo) Z(T)");
        let carol = stage.newcomer(&[]);
        assert_eq!(carol.heard(), "R S(TimeZone=UTC) S(server_version=15.1) K Z");
        alice.says([query(end)]);
        server.says([done(), reported(UTC), ready()]);
        assert_eq!(alice.heard(), "C S(TimeZone=UTC) Z");
        server.heard();
        assert_eq!(told(&bob, &server), "");
    }
    // A client that breaks off takes its setting with it.
    alice.says([query("BEGIN; SET LOCAL TimeZone = 'Asia/Tokyo'")]);
    server.says([done(), done(), reported(TOKYO), in_block()]);
    alice.breaks();
    server.says([done(), reported(UTC), ready()]);
    server.heard();
    assert_eq!(told(&bob, &server), "");
}

/// A greeting that was remembered told newcomers of a configuration that was gone.
#[test]
fn newcomers_are_told_what_servers_report_by_now() {
    let now = "R S(TimeZone=Asia/Tokyo) S(server_version=15.1) K Z";
    let begun = || {
        let stage = Stage::new(&Setup::default());
        let alice = stage.newcomer(&[]);
        let server = stage.server_set_to(&[UTC]);
        assert!(alice.is_greeted());
        (stage, server, alice)
    };
    // The configuration was read again by a server that nobody has.
    let (stage, server, _alice) = begun();
    server.says([reported(TOKYO)]);
    assert_eq!(stage.newcomer(&[]).heard(), now);

    // By one that runs a query.
    let (stage, server, alice) = begun();
    alice.says([query("SELECT")]);
    server.says([done(), reported(TOKYO), ready()]);
    assert_eq!(stage.newcomer(&[]).heard(), now);

    // By one whose query has failed.
    let (stage, server, alice) = begun();
    alice.says([query("SELECT")]);
    server.says([error("22012"), reported(TOKYO), ready()]);
    assert_eq!(stage.newcomer(&[]).heard(), now);

    // It counts for new connections only.
    let (stage, server, alice) = begun();
    server.ends();
    alice.says([query("SELECT")]);
    let server = stage.server_set_to(&[TOKYO]);
    assert_eq!(alice.heard(), "S(TimeZone=Asia/Tokyo)");
    server.says([done(), ready()]);
    assert_eq!(stage.newcomer(&[]).heard(), now);
}

/// What is remembered for other settings was made of the same configuration.
#[test]
fn greetings_with_other_settings_are_forgotten_too() {
    let stage = Stage::new(&Setup::default());
    let alice = stage.newcomer(&[]);
    let server = stage.server_set_to(&[UTC]);
    assert!(alice.is_greeted());
    let named = stage.newcomer(&[IT]);
    server.says([reported(IT), one_row("it")]);
    assert!(named.is_greeted());
    server.says([reported(TOKYO)]);
    let plain = stage.newcomer(&[]);
    server.says([reported(("application_name", "")), one_row("")]);
    let now = "R S(TimeZone=Asia/Tokyo) S(server_version=15.1) S(application_name=) K Z";
    assert_eq!(plain.heard(), now);

    // A new server is set otherwise.
    let stage = Stage::new(&Setup::of_size(2));
    let named = stage.newcomer(&[IT]);
    let server = stage.server_set_to(&[UTC]);
    server.says([reported(IT), one_row("it")]);
    assert!(named.is_greeted());
    named.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    let plain = stage.newcomer(&[]);
    let newer = stage.server_set_to(&[TOKYO]);
    assert!(plain.is_greeted());
    let late = stage.newcomer(&[IT]);
    assert_eq!(late.heard(), "R");
    newer.says([reported(IT), one_row("it")]);
    let now = "S(TimeZone=Asia/Tokyo) S(server_version=15.1) S(application_name=it) K Z";
    assert_eq!(late.heard(), now);
}

/// A session keeps its server, whose words it hears itself; at its end they are the next one's.
#[test]
fn sessions_are_told_too() {
    let (stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    let bob = stage.client();
    assert_eq!(told(&alice, &server), "");
    server.says([reported(UTC)]);
    assert_eq!(alice.heard(), "S(TimeZone=UTC)");
    assert_eq!(told(&alice, &server), "");
    alice.ends();
    server.says([done(), ready()]);
    server.heard();
    assert_eq!(told(&bob, &server), "S(TimeZone=UTC)");
}

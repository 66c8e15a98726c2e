//! How many statements a client may have under names of its own before its server stays with it.

use pgweir_engine::{Mark, ServerActivity};
use pgweir_wire::frontend;

use crate::messages::{
    bind_complete, bind_to, built, close_complete, close_statement, done, execute, in_block, left,
    no_data, no_parameters, parse_as, parse_complete, query, ready, sync, terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

/// So many.
const MOST: usize = 10_000;

/// The client prepares the statement of this number, which is shared; what the server hears.
fn prepare(client: &Peer, server: &Peer, number: usize) -> String {
    client.says([parse_as(&format!("s{number}"), &format!("SELECT {number}")), sync()]);
    let heard = server.heard();
    let closed = if heard.starts_with('C') { close_complete() } else { Vec::new() };
    server.says([closed, parse_complete(), no_parameters(), no_data(), ready()]);
    assert_eq!(client.heard(), "1 Z");
    heard
}

/// It runs the one of this number; what is said before its Bind is answered by this.
fn run(client: &Peer, server: &Peer, number: usize, hears: &str, before: &[Vec<u8>]) {
    client.says([bind_to(&format!("s{number}")), execute(), sync()]);
    assert_eq!(server.heard(), hears);
    server.says([before.concat(), bind_complete(), done(), ready()]);
    assert_eq!(client.heard(), "2 C Z");
}

/// A client that has as many as it may have, on a stage of two servers, and the first of these.
fn full() -> (Stage, Peer, Peer) {
    let (stage, server, alice) = Stage::ready(&Setup { unchecked: true, ..Setup::of_size(2) });
    for number in 0..MOST {
        prepare(&alice, &server, number);
    }
    stage.check();
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    (stage, server, alice)
}

#[test]
fn all_of_them_are_found_on_another_server() {
    let (stage, first, alice) = full();
    let bob = stage.client();
    bob.says([query("BEGIN")]);
    first.says([done(), in_block()]);
    alice.says([bind_to("s0"), execute(), sync()]);
    let second = stage.server();
    assert_eq!(second.heard(), "P(pgweir_1=SELECT 0) D(pgweir_1) B(pgweir_1) E S");
    let made = [parse_complete(), no_parameters(), no_data()];
    second.says([made.concat(), bind_complete(), done(), ready()]);
    assert_eq!(alice.heard(), "2 C Z");
    let hears = "P(pgweir_10000=SELECT 9999) D(pgweir_10000) B(pgweir_10000) E S";
    run(&alice, &second, MOST - 1, hears, &made);
    stage.check();
}

/// It is made for this client alone, and where it is, the others are brought.
#[test]
fn with_one_more_the_server_stays() {
    let (stage, first, alice) = full();
    alice.says([parse_as("s10000", "SELECT 10000"), sync()]);
    assert_eq!(first.heard(), "P(s10000=SELECT 10000) S");
    first.says([parse_complete(), ready()]);
    assert_eq!(alice.heard(), "1 Z");
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    let bob = stage.client();
    bob.says([query("bob")]);
    let second = stage.server();
    assert_eq!(second.heard(), "Q(bob)");
    second.says([done(), ready()]);
    run(&alice, &first, MOST, "B(s10000) E S", &[]);
    let number = |heard: &str| heard[2..].split(')').next().map(str::to_owned);
    alice.says([bind_to("s0"), execute(), sync()]);
    let heard = first.heard();
    let surplus = number(&heard).expect("one that makes room");
    let made = "P(pgweir_1=SELECT 0) D(pgweir_1) B(pgweir_1) E S";
    assert_eq!(heard, format!("C({surplus}) {made}"));
    first.says([close_complete(), parse_complete(), no_parameters(), no_data()]);
    first.says([bind_complete(), done(), ready()]);
    assert_eq!(alice.heard(), "2 C Z");
    run(&alice, &first, MOST - 1, "B(pgweir_10000) E S", &[]);
    // What is prepared now is of this server, too.
    alice.says([parse_as("more", "SELECT"), sync()]);
    assert_eq!(first.heard(), "P(more=SELECT) S");
    first.says([parse_complete(), ready()]);
    // Without these nothing keeps it.
    alice.says([close_statement("s10000"), close_statement("more"), sync()]);
    assert_eq!(first.heard(), "C(s10000) C(more) S");
    first.says([close_complete(), close_complete(), ready()]);
    assert_eq!((alice.heard().as_str(), first.heard().as_str()), ("1 Z 3 3 Z", "Q(left?)"));
    first.says([left("")]);
    assert_eq!(stage.servers(), [ServerActivity::Idle, ServerActivity::Idle]);
    stage.check();
    assert!(took(Mark::TooManyNames));
}

#[test]
fn a_close_makes_room() {
    let (stage, server, alice) = full();
    for round in 0..3 {
        let name = format!("s{round}");
        alice.says([close_statement(&name), sync()]);
        assert_eq!(server.heard(), format!("C({name}) S"));
        server.says([close_complete(), ready()]);
        assert_eq!(alice.heard(), "3 Z");
        let heard = prepare(&alice, &server, MOST + round);
        let own = 10_001 + round;
        assert!(heard.contains(&format!(" P(pgweir_{own}=SELECT {}) ", MOST + round)), "{heard}");
        assert_eq!(stage.servers(), [ServerActivity::Idle]);
    }
    alice.says([parse_as("more", "SELECT"), sync()]);
    assert_eq!(server.heard(), "P(more=SELECT) S");
    server.says([parse_complete(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    stage.check();
}

/// Nor have all clients together more than there is room for: what is made beyond that is its
/// client's alone.
#[test]
fn what_finds_no_room_keeps_its_server() {
    let (stage, server, alice) = Stage::ready(&Setup { unchecked: true, ..Setup::default() });
    let bob = stage.client();
    // Says whether it is shared. The types of its parameters are a part of a statement.
    let prepare = |client: &Peer, number: usize| {
        let (name, text) = (format!("s{number}"), format!("SELECT {number}"));
        client.says([
            built(|out| {
                frontend::write_parse(out, name.as_bytes(), text.as_bytes(), &[0; 4_000]);
            }),
            sync(),
        ]);
        let heard = server.heard();
        let closed = if heard.starts_with('C') { close_complete() } else { Vec::new() };
        let is_shared = heard.contains("P(pgweir_");
        let is = if is_shared { [no_parameters(), no_data()].concat() } else { Vec::new() };
        server.says([closed, parse_complete(), is, ready()]);
        assert_eq!(client.heard(), "1 Z");
        is_shared
    };
    let close = |client: &Peer, number: usize| {
        client.says([close_statement(&format!("s{number}")), sync()]);
        assert_eq!(server.heard(), format!("C(s{number}) S"));
        server.says([close_complete(), ready()]);
        assert_eq!((client.heard().as_str(), server.heard().as_str()), ("3 Z", "Q(left?)"));
        server.says([left("")]);
    };
    let surplus = (0..).find(|number| !prepare(&alice, *number)).expect("there is an end");
    assert!((4_000..5_000).contains(&surplus), "{surplus} are 64 MiB");
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    close(&alice, surplus);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    // There is room for what is there already, and in the place of what nobody has any more.
    assert!(prepare(&bob, 0) && !prepare(&bob, surplus));
    alice.says([terminate()]);
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    close(&bob, surplus);
    assert!(prepare(&bob, surplus));
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    stage.check();
    assert!(took(Mark::TooManyStatements));
}

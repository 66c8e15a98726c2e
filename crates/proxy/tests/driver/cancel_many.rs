//! Many cancels at a time: each finds its own client's server.

use std::time::Duration;

use pgweir_engine::{CANCELLERS, ServerActivity};

use crate::messages::{cancel_request, done, error, query, ready, terminate};
use crate::peer::Peer;
use crate::stage::{Setup, Stage};

const CLIENTS: usize = 20;

/// A stage on which every server runs a client's query.
fn all_running() -> (Stage, Vec<(Peer, Peer)>) {
    let stage = Stage::new(&Setup::of_size(CLIENTS));
    let newcomers: Vec<_> = (0..CLIENTS).map(|_| stage.newcomer(&[])).collect();
    let mut idle: Vec<_> = (0..stage.attempts()).map(|_| stage.server()).collect();
    assert!(newcomers.iter().all(Peer::is_greeted));
    let mut pairs = Vec::new();
    for (number, client) in newcomers.into_iter().enumerate() {
        client.says([query(&number.to_string())]);
        while stage.attempts() > 0 {
            idle.push(stage.server());
        }
        let asked = format!("Q({number})");
        let lent = idle.iter().position(|server| server.heard() == asked).expect("it is sent");
        pairs.push((client, idle.swap_remove(lent)));
    }
    (stage, pairs)
}

/// A cancel that went to the server of another client would end a stranger's statement.
#[test]
fn each_cancel_goes_to_the_server_of_its_client() {
    let (stage, pairs) = all_running();
    let requesters: Vec<_> = pairs.iter().rev().map(|(client, _)| stage.cancel(client)).collect();
    assert_eq!(stage.cancels(), CLIENTS);
    let lines: Vec<_> = (0..CLIENTS).map(|_| stage.cancel_line().expect("it is wanted")).collect();
    for ((_, server), line) in pairs.iter().rev().zip(&lines) {
        assert_eq!(line.heard_bytes(), cancel_request(&server.key()));
    }
    for (_, server) in &pairs {
        server.says([error("57014"), ready()]);
    }
    assert_eq!(stage.servers(), [ServerActivity::BeingCanceled; CLIENTS]);
    lines.iter().for_each(Peer::ends);
    assert!(requesters.iter().all(Peer::is_closed));
    assert!(pairs.iter().all(|(client, _)| client.heard() == "E(57014) Z"));
    assert_eq!(stage.servers(), [ServerActivity::Idle; CLIENTS]);
}

/// Statements that end while their cancels are on the way must not be hit, nor those behind them.
#[test]
fn cancels_that_come_too_late_are_dropped_together() {
    let (stage, pairs) = all_running();
    let requesters: Vec<_> = pairs.iter().map(|(client, _)| stage.cancel(client)).collect();
    for (_, server) in &pairs {
        server.says([done(), ready()]);
    }
    assert!(requesters.iter().all(Peer::is_closed));
    for _ in 0..CLIENTS {
        assert!(stage.cancel_line().is_none(), "nobody wants it any more");
    }
    assert!(pairs.iter().all(|(client, _)| client.heard() == "C Z"));
    assert_eq!(stage.servers(), [ServerActivity::Idle; CLIENTS]);
}

/// Those who wait for their cancels take no place of a client, nor of whoever else wants to cancel.
#[test]
fn a_storm_takes_no_place_of_a_client() {
    let (stage, server, alice) =
        Stage::ready(&Setup { general: "max_clients = 3", ..Setup::of_size(2) });
    let bob = stage.client();
    alice.says([query("alice")]);
    bob.says([query("bob")]);
    let second = stage.server();
    // Until then it may not have begun.
    stage.wait(Duration::from_millis(100));
    let _storm: Vec<_> = (0..40).map(|_| stage.cancel(&alice)).collect();
    assert!(stage.newcomer(&[]).is_greeted(), "there is a place left");
    let canceller = stage.cancel(&bob);
    assert_eq!(stage.cancels(), 2);
    stage.cancel_line().expect("it is wanted");
    let line = stage.cancel_line().expect("it is wanted");
    assert_eq!(line.heard_bytes(), cancel_request(&second.key()));
    assert!(canceller.is_open());
    drop(server);
}

/// That room has an end too: descriptors do.
#[test]
fn cancels_have_room_of_their_own_as_far_as_it_goes() {
    let setup = Setup { general: "max_clients = 5", ..Setup::of_size(3) };
    let (stage, first, alice) = Stage::ready(&setup);
    let clients = [alice, stage.client(), stage.client()];
    clients.iter().for_each(|client| client.says([query("slow")]));
    let _servers = [first, stage.server(), stage.server()];
    stage.wait(Duration::from_millis(100));
    let mut storm = Vec::new();
    for client in &clients[..2] {
        storm.extend((0..CANCELLERS / 2).map(|_| stage.cancel(client)));
    }
    let newcomer = stage.newcomer(&[]);
    assert!(newcomer.is_greeted() && storm.iter().all(Peer::is_open));
    newcomer.says([terminate()]);
    storm.extend((0..CANCELLERS / 2).map(|_| stage.cancel(&clients[2])));
    assert_eq!(stage.newcomer(&[]).heard(), "E(FATAL 53300)");
}

/// However many ask for the end of one statement, its server is asked once, and a stranger's
/// guesses change nothing.
#[test]
fn a_storm_on_one_statement_is_one_cancel() {
    let (stage, pairs) = all_running();
    let (client, server) = &pairs[0];
    let requesters: Vec<_> = (0..200).map(|_| stage.cancel(client)).collect();
    for guess in 0..200_u8 {
        let mut key = client.key();
        key.secret = Box::new([guess; 4]);
        let stranger = stage.stranger();
        stranger.says([cancel_request(&key)]);
        assert!(stranger.is_closed());
    }
    assert_eq!(stage.cancels(), 1);
    let waits = requesters.iter().filter(|requester| requester.is_open()).count();
    assert_eq!(waits, 16, "those who ask again and again keep no descriptors");
    let line = stage.cancel_line().expect("it is wanted");
    assert_eq!(line.heard_bytes(), cancel_request(&server.key()));
    line.ends();
    assert!(requesters.iter().all(Peer::is_closed));
    server.says([error("57014"), ready()]);
    assert_eq!(client.heard(), "E(57014) Z");
    let others = &pairs[1..];
    assert!(others.iter().all(|(client, _)| client.heard().is_empty()));
    assert_eq!(stage.connections(), 2 * CLIENTS);
}

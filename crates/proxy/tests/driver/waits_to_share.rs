//! Who waits for a place on a shared server waits for none that is no use to it, where there is
//! another, or room for one.

use std::time::Duration;

use pgweir_engine::Mark;

use crate::birth::{BORN, server_born};
use crate::messages::{done, error, in_block, one_row, query, ready};
use crate::peer::Peer;
use crate::pipelining::{BRAKED, FREED, braked, braked_automatically, updated};
use crate::stage::{Setup, Stage, took};

/// A server that was shared is left to its like for less than this.
const A_WHILE: Duration = Duration::from_millis(200);

fn update(client: &Peer) {
    client.says([query("UPDATE t SET a = 0")]);
}

/// `auto`, a pool of so many, clients, and a server on which an UPDATE waits for its commit.
fn committing(size: usize, clients: usize) -> (Stage, Peer, Vec<Peer>) {
    let (stage, server, clients) = braked_automatically(size, clients);
    updated(&server, &clients[0]);
    update(&clients[0]);
    assert_eq!(server.heard(), "Q(UPDATE t SET a = 0)");
    (stage, server, clients)
}

/// The one of these servers that has heard something, which it answers with a row; and what it was.
fn set<'a>(servers: &[&'a Peer]) -> (&'a Peer, String) {
    let mut heard = servers.iter().map(|server| (*server, server.heard()));
    let (server, heard) = heard.find(|(_, heard)| !heard.is_empty()).expect("one heard");
    server.says([one_row("")]);
    (server, heard)
}

/// A client of other settings than those of the stage.
fn of_other_settings(stage: &Stage, servers: &[&Peer]) -> Peer {
    let client = stage.newcomer(&[("row_security", "off")]);
    let (_, heard) = set(servers);
    assert!(heard.contains("row_security"), "{heard}");
    assert!(client.is_greeted());
    client
}

/// The only shared server of its settings is one on which others change rows, and of those that are
/// shared by reads there are as many as there may be: there is a free one all the same.
#[test]
fn a_read_is_given_a_free_server_and_waits_for_no_commit() {
    let (stage, first, clients) = braked_automatically(3, 3);
    clients.iter().for_each(|client| client.says([query("BEGIN")]));
    assert_eq!(first.heard(), FREED);
    first.says([one_row("")]);
    let servers = [first, stage.server(), stage.server()];
    for (text, status, heard) in [("BEGIN", in_block(), "C Z(T)"), ("COMMIT", ready(), "C Z")] {
        if text == "COMMIT" {
            clients.iter().for_each(|client| client.says([query(text)]));
        }
        for server in servers.iter().rev() {
            assert_eq!(server.heard(), format!("Q({text})"));
            server.says([done(), status.clone()]);
        }
        clients.iter().for_each(|client| assert_eq!(client.heard(), heard));
    }
    let all = servers.each_ref();
    update(&clients[0]);
    let (server, _) = set(&all);
    assert_eq!(server.heard(), "Q(UPDATE t SET a = 0)");
    server.says([done(), ready()]);
    assert_eq!(clients[0].heard(), "C Z");
    updated(server, &clients[0]);
    let writer = of_other_settings(&stage, &all);
    let reader = stage.newcomer(&[("row_security", "off")]);
    assert!(reader.is_greeted());
    stage.wait(A_WHILE);
    update(&writer);
    let (writes, _) = set(&all);
    assert_eq!(writes.heard(), "Q(UPDATE t SET a = 0)");
    clients[0].says([query("SELECT 0")]);
    let (reads, _) = set(&all);
    assert_eq!(reads.heard(), "Q(SELECT 0)");
    reader.says([query("SELECT 1")]);
    let (third, heard) = set(&all);
    assert!(heard.contains("row_security"), "{heard}");
    assert_eq!(third.heard(), "Q(SELECT 1)");
}

/// The one that it has waited for is too old, and goes on with nothing but a commit.
#[test]
fn a_read_is_given_a_free_server_when_its_own_takes_no_more() {
    let general = "pipelining = '1x8'\nserver_lifetime = 60000\nquery_wait_timeout = 60000";
    let (stage, first, clients) = braked(&Setup { general, ..Setup::of_size(2) }, 3);
    updated(&first, &clients[0]);
    update(&clients[0]);
    assert_eq!(first.heard(), "Q(UPDATE t SET a = 0)");
    stage.wait(Duration::from_secs(40));
    clients[1].says([query("BEGIN")]);
    let second = stage.server();
    second.says([done(), in_block()]);
    clients[1].says([query("COMMIT")]);
    second.says([done(), ready()]);
    assert_eq!(second.heard(), "Q(BEGIN) Q(COMMIT)");
    stage.wait(Duration::from_secs(7));
    clients[2].says([query("SELECT 2")]);
    assert_eq!(second.heard(), "", "one is shared, as is asked for");
    stage.wait(Duration::from_secs(27));
    assert!(took(Mark::GrantedFree));
    assert_eq!(second.heard(), BRAKED);
    second.says([one_row("")]);
    assert_eq!(second.heard(), "Q(SELECT 2)");
}

/// A connection is made for a read whose settings no server has but one that it cannot stand on.
#[test]
fn a_read_of_other_settings_has_a_connection_made() {
    let (stage, first, clients) = braked_automatically(2, 1);
    updated(&first, &clients[0]);
    let other = of_other_settings(&stage, &[&first]);
    update(&clients[0]);
    first.heard();
    first.says([one_row("")]);
    assert_eq!(first.heard(), "Q(UPDATE t SET a = 0)");
    other.says([query("SELECT 1")]);
    assert_eq!(stage.attempts(), 1);
}

/// It is tried again when it has failed.
#[test]
fn a_connection_for_reads_is_tried_again() {
    let (stage, _server, clients) = committing(2, 2);
    clients[1].says([query("SELECT 1")]);
    assert_eq!(stage.attempts(), 1);
    stage.refuse_server();
    stage.wait(Duration::from_secs(5));
    assert_eq!(stage.attempts(), 1);
}

/// One that is being made for another is not theirs.
#[test]
fn a_connection_for_reads_is_made_beside_one_for_another() {
    let (stage, _server, clients) = committing(3, 3);
    clients[1].says([query("BEGIN")]);
    assert_eq!(stage.attempts(), 1);
    clients[2].says([query("SELECT 2")]);
    assert_eq!(stage.attempts(), 2);
}

/// Whoever stood in front of it waited for a commit, and has left: it does not.
#[test]
fn a_write_behind_one_that_has_left_has_a_connection_made() {
    let setup = Setup { general: "pipelining = '1x1'", ..Setup::of_size(2) };
    let (stage, server, clients) = braked(&setup, 2);
    updated(&server, &clients[0]);
    let other = of_other_settings(&stage, &[&server]);
    update(&clients[0]);
    set(&[&server]);
    assert_eq!(server.heard(), "Q(UPDATE t SET a = 0)");
    update(&clients[1]);
    update(&other);
    assert_eq!(stage.attempts(), 0);
    clients[1].breaks();
    assert_eq!(stage.attempts(), 1);
}

/// What waited for who shares is lent to another one, whose it is by its startup.
#[test]
fn a_connection_is_made_for_a_read_when_what_was_free_goes() {
    let (stage, first, clients) = committing(3, 3);
    let born = stage.newcomer(&[BORN]);
    let own = server_born(&stage, &[BORN]);
    assert!(born.is_greeted());
    for client in [&born, &clients[2]] {
        client.says([query("BEGIN")]);
    }
    let third = stage.server();
    for server in [&own, &third] {
        assert_eq!(server.heard(), "Q(BEGIN)");
        server.says([done(), in_block()]);
    }
    clients[1].says([query("SELECT 1")]);
    born.says([query("COMMIT")]);
    own.says([done(), ready()]);
    third.breaks();
    born.says([query("BEGIN")]);
    assert_eq!(stage.attempts(), 1);
    assert_eq!(first.heard(), "");
}

/// It has been on a server meanwhile, and waits for another one only now.
#[test]
fn what_is_run_again_has_its_time_to_wait_anew() {
    let general = "pipelining = 8\nquery_wait_timeout = 2000";
    let (stage, server, clients) = braked(&Setup { general, ..Setup::of_size(1) }, 3);
    clients[0].says([query("SELECT 0")]);
    clients[1].says([query("SELECT 1")]);
    assert_eq!(server.heard(), "Q(SELECT 0) Q(SELECT 1)");
    stage.wait(Duration::from_secs(3));
    server.says([error("57014"), ready()]);
    stage.wait(Duration::from_secs(1));
    assert_eq!(clients[0].heard(), "");
    server.says([one_row("1")]);
    assert_eq!(server.heard(), FREED);
    stage.wait(Duration::from_secs(2));
    assert_eq!(clients[0].heard(), "E(53300) Z", "it has its end all the same");
}

//! Names behind which sessions are changed unseen, and when they are known.

use std::sync::Arc;

use pgweir_engine::{Event, Loud, ServerActivity};
use pgweir_sql::{Catalogue, Kind, Object, Source};

use crate::messages::{done, left, query, ready};
use crate::stage::{Setup, Stage};

/// Functions of these names, each of which takes a lock of the session.
fn locking(names: &[&str]) -> Arc<Loud> {
    let object = |(oid, name): (u32, &&str)| Object {
        id: (Kind::Function, oid),
        name: (*name).to_owned(),
        source: Source::Sql("SELECT pg_advisory_lock(1)".to_owned()),
        is_quiet: false,
    };
    let objects = (1..).zip(names).map(object).collect();
    Arc::new(Catalogue { objects, uses: Vec::new() }.loud())
}

/// A stage on which the test says when names are known, a server, and a client.
fn unread() -> (Stage, crate::peer::Peer, crate::peer::Peer) {
    let stage = Stage::new(&Setup::default());
    stage.set_loud(None);
    let client = stage.newcomer(&[]);
    let server = stage.server();
    assert!(client.is_greeted());
    (stage, server, client)
}

#[test]
fn units_wait_for_the_names_in_the_order_in_which_they_came() {
    let (stage, server, alice) = unread();
    let bob = stage.client();
    bob.says([query("SELECT 'bob'")]);
    alice.says([query("SELECT 'alice'")]);
    assert_eq!(server.heard(), "");
    assert_eq!(stage.read_catalogue(Ok(Arc::default())), 1, "one for both");
    assert_eq!(server.heard(), "Q(SELECT 'bob')");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(SELECT 'alice')");
}

#[test]
fn a_catalogue_that_cannot_be_read_holds_nobody_up() {
    let (stage, server, alice) = unread();
    alice.says([query("SELECT take()")]);
    stage.read_catalogue(Err("it is not there".to_owned()));
    let told = |event: &Event| matches!(event, Event::CatalogueUnread { .. });
    assert!(stage.log().iter().any(told));
    assert_eq!(server.heard(), "Q(SELECT take())");
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

#[test]
fn a_name_counts_as_what_stands_behind_it() {
    let (stage, server, alice) = unread();
    stage.read_catalogue(Ok(locking(&["take"])));
    alice.says([query("SELECT take()")]);
    assert_eq!(server.heard(), "Q(SELECT take())");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(left?)");
    server.says([left("a")]);
    assert_eq!(stage.servers(), [ServerActivity::Active]);
}

/// What a client calls between its change of the schema and the next list may be in that only.
#[test]
fn what_is_new_behind_a_change_of_the_schema_counts_as_done_by_its_client() {
    let (stage, server, alice) = unread();
    stage.read_catalogue(Ok(Arc::default()));
    for text in ["CREATE FUNCTION take()", "SELECT take()"] {
        alice.says([query(text)]);
        assert_eq!(server.heard(), format!("Q({text})"));
        server.says([done(), ready()]);
    }
    assert_eq!(stage.servers(), [ServerActivity::Active], "it is kept until that is known");
    stage.wait(std::time::Duration::from_secs(1));
    assert_eq!(stage.read_catalogue(Ok(locking(&["take"]))), 1);
    assert_eq!(server.heard(), "Q(left?)");
    server.says([left("a")]);
    assert_eq!(stage.servers(), [ServerActivity::Active]);
}

#[test]
fn a_change_of_the_schema_that_makes_nothing_loud_keeps_no_server() {
    let (stage, server, alice) = unread();
    stage.read_catalogue(Ok(locking(&["take"])));
    alice.says([query("CREATE TABLE t (a int)")]);
    assert_eq!(server.heard(), "Q(CREATE TABLE t (a int))");
    server.says([done(), ready()]);
    stage.wait(std::time::Duration::from_secs(1));
    stage.read_catalogue(Ok(locking(&["take"])));
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

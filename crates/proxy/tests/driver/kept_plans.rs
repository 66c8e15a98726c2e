//! What functions have planned for one client is no other's.

use std::sync::Arc;

use pgweir_engine::{Loud, Mark};
use pgweir_sql::{Catalogue, Kind, Object, Source};

use crate::messages::{columns, done, in_block, one_row, query, ready, row};
use crate::peer::Peer;
use crate::pipelining::{BRAKED, FREED};
use crate::stage::{Setup, Stage, took};

/// A database in which a function keeps in its plan what another one tells of a setting.
fn keeping() -> Arc<Loud> {
    let function = |oid, name: &str, source, is_immutable| Object {
        id: (Kind::Function, oid),
        name: name.to_owned(),
        source,
        is_quiet: false,
        is_immutable,
    };
    let tells = Source::Sql("SELECT current_setting('app.tenant')".to_owned());
    let keeps = Source::Plpgsql("BEGIN RETURN tells(); END".to_owned());
    let objects = vec![function(1, "tells", tells, true), function(2, "keeps", keeps, false)];
    Arc::new(Catalogue { objects, uses: Vec::new() }.loud())
}

/// A stage with such a database, a server, and two clients.
fn two(setup: &Setup) -> (Stage, Peer, Peer, Peer) {
    let stage = Stage::new(setup);
    stage.set_loud(Some(keeping()));
    let alice = stage.newcomer(&[]);
    let server = stage.server();
    assert!(alice.is_greeted());
    let bob = stage.client();
    (stage, server, alice, bob)
}

/// A client runs a query, in front of which its server hears no more than that.
fn run(client: &Peer, server: &Peer, text: &str, status: Vec<u8>) {
    client.says([query(text)]);
    assert_eq!(server.heard(), format!("Q({text})"));
    server.says([done(), status]);
    assert!(client.heard().starts_with("C Z"));
}

/// A client runs a query, in front of which its server is to forget, whether it is set or not.
fn run_forgetting(client: &Peer, server: &Peer, text: &str) {
    client.says([query(text)]);
    forgets(server);
    assert_eq!(server.heard(), format!("Q({text})"));
    server.says([done(), ready()]);
    assert_eq!(client.heard(), "C Z");
}

/// A server is to forget, and perhaps to be set to something. It does.
fn forgets(server: &Peer) {
    let heard = server.heard_bytes();
    let text = heard.get(5..).unwrap_or_default();
    assert!(text.starts_with(b"DISCARD PLANS"), "{}", heard.escape_ascii());
    let is_set = text.starts_with(b"DISCARD PLANS; SELECT ARRAY[");
    assert_eq!(is_set, text != b"DISCARD PLANS\0");
    let rows = if is_set { [columns(), row(b""), done()].concat() } else { Vec::new() };
    server.says([done(), rows, ready()]);
}

/// A row-level policy showed the rows of whoever had called a function first.
#[test]
fn they_are_forgotten_for_another_client() {
    let (_stage, server, alice, bob) = two(&Setup::default());
    run(&alice, &server, "SELECT keeps()", ready());
    run(&alice, &server, "SELECT keeps()", ready());
    run_forgetting(&bob, &server, "SELECT keeps()");
    assert!(took(Mark::PlansAloneForgotten));
    // What was prepared may have been read anew under that.
    run(&bob, &server, "BEGIN; SET LOCAL work_mem = '1MB'", in_block());
    run(&bob, &server, "COMMIT", ready());
    run_forgetting(&bob, &server, "SELECT keeps()");
    run_forgetting(&alice, &server, "SELECT keeps()");
}

#[test]
fn they_are_forgotten_with_the_settings() {
    let (stage, server, alice, _bob) = two(&Setup::default());
    run(&alice, &server, "SELECT keeps()", ready());
    let carol = stage.newcomer(&[("app.tenant", "c")]);
    forgets(&server);
    assert!(carol.is_greeted());
    run(&carol, &server, "SELECT keeps()", ready());
    run_forgetting(&alice, &server, "SELECT keeps()");
    assert!(!took(Mark::PlansAloneForgotten));
}

/// No statement reaches such a function there; but what was prepared may have been read anew under
/// what somebody had set.
#[test]
fn where_servers_are_shared_only_what_was_read_under_others_is_forgotten() {
    let general = "pipelining = '1x8'";
    let (_stage, server, alice, bob) = two(&Setup { general, ..Setup::default() });
    let heat = |client: &Peer, text: &str, sets: &dyn Fn()| {
        client.says([query(text)]);
        sets();
        assert_eq!(server.heard(), format!("Q({text})"));
        server.says([one_row("0")]);
        assert_eq!(client.heard(), "T D(0) C Z");
    };
    let is_set = |text: &str| {
        assert_eq!(server.heard(), text);
        server.says([one_row("")]);
    };
    run(&alice, &server, "SELECT keeps()", ready());
    heat(&bob, "SELECT 0", &|| is_set(BRAKED));
    heat(&alice, "SELECT 1", &|| ());
    // It has planned nothing for anybody else.
    alice.says([query("BEGIN; SET LOCAL work_mem = '1MB'")]);
    is_set(FREED);
    assert_eq!(server.heard(), "Q(BEGIN; SET LOCAL work_mem = '1MB')");
    server.says([done(), done(), in_block()]);
    assert_eq!(alice.heard(), "C C Z(T)");
    run(&alice, &server, "COMMIT", ready());
    heat(&bob, "SELECT 2", &|| forgets(&server));
    // Whoever has it alone may call one.
    bob.says([query("SELECT keeps()")]);
    is_set(FREED);
    assert_eq!(server.heard(), "Q(SELECT keeps())");
    server.says([done(), ready()]);
    run_forgetting(&alice, &server, "SELECT keeps()");
}

#[test]
fn elsewhere_nothing_is_forgotten() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    run(&alice, &server, "BEGIN; SET LOCAL work_mem = '1MB'", in_block());
    run(&alice, &server, "COMMIT", ready());
    run(&bob, &server, "SELECT keeps()", ready());
    assert!(!took(Mark::PlansForgotten));
}

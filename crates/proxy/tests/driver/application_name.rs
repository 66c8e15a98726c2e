//! `application_name = "pool"`: servers keep their own name, whatever clients call themselves.

use pgweir_engine::ServerActivity;

use crate::messages::{done, in_block, one_row, parameter_status, query, ready, set_to};
use crate::peer::Peer;
use crate::stage::{Setup, Stage};

const NAME: &str = "application_name";
const QUESTION: &str = "Q(set to?)";
const SET: &str = "Q(SELECT ARRAY[pg_catalog.set_config('application_name', 'it', false)] IS NULL)";
const UNSET: &str =
    "Q(SELECT ARRAY[pg_catalog.set_config('application_name', NULL, false)] IS NULL)";

fn of_pool() -> Setup {
    Setup { pool: "application_name = 'pool'", ..Setup::default() }
}

/// A pool whose server has a name of its own, and a client that calls itself something else.
fn named(setup: &Setup) -> (Stage, Peer, Peer) {
    let stage = Stage::new(setup);
    let client = stage.newcomer(&[(NAME, "it")]);
    let server = stage.server_set_to(&[(NAME, "pool")]);
    (stage, server, client)
}

fn run(client: &Peer, server: &Peer, text: &str, status: Vec<u8>) {
    client.says([query(text)]);
    assert_eq!(server.heard(), format!("Q({text})"));
    server.says([done(), status]);
}

/// The console says what its clients call themselves.
fn shown(stage: &Stage) -> Vec<String> {
    let snapshot = stage.snapshot();
    snapshot.clients.into_iter().map(|client| client.application_name).collect()
}

#[test]
fn a_name_of_the_startup_packet_is_not_set() {
    let (stage, server, named) = named(&of_pool());
    assert_eq!(server.heard(), "");
    assert_eq!(named.heard(), "R S(application_name=pool) S(server_version=15.1) K Z");
    assert!(stage.newcomer(&[(NAME, "other")]).is_greeted());
    let plain = stage.client();
    for client in [&named, &plain, &named] {
        client.heard();
        run(client, &server, "SELECT", ready());
        assert_eq!(client.heard(), "C Z");
    }
    assert_eq!(shown(&stage), ["it", "other", ""]);
}

/// Other settings of the same packet are.
#[test]
fn all_else_of_the_startup_packet_is_set() {
    let stage = Stage::new(&of_pool());
    let client = stage.newcomer(&[(NAME, "it"), ("work_mem", "1024")]);
    let server = stage.server();
    let brought = "Q(SELECT ARRAY[pg_catalog.set_config('work_mem', '1024', false)] IS NULL)";
    assert_eq!(server.heard(), brought);
    server.says([one_row("")]);
    assert!(client.is_greeted());
    client.says([query("SELECT")]);
    assert_eq!(server.heard(), "Q(SELECT)");
}

/// What a client calls itself by SET holds for that transaction, and is taken back before the next.
#[test]
fn a_name_that_is_set_goes_with_the_transaction() {
    let (stage, server, named) = named(&of_pool());
    named.heard();
    run(&named, &server, "BEGIN", in_block());
    named.says([query("SET application_name = 'mine'")]);
    server.heard();
    server.says([parameter_status(NAME, "mine"), done(), in_block()]);
    assert_eq!(named.heard(), "C Z(T) S(application_name=mine) C Z(T)");
    run(&named, &server, "COMMIT", ready());
    assert_eq!(server.heard(), QUESTION);
    server.says([set_to(&[(NAME, "mine")])]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    assert_eq!(shown(&stage), ["it"]);
    named.heard();
    named.says([query("SELECT")]);
    assert_eq!(server.heard(), UNSET);
    server.says([parameter_status(NAME, "pool"), one_row("")]);
    assert_eq!(named.heard(), "S(application_name=pool)");
    assert_eq!(server.heard(), "Q(SELECT)");
    server.says([done(), ready()]);
    assert_eq!(named.heard(), "C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// Behind a RESET there is nothing to be put back, and what it has changed is told.
#[test]
fn nothing_is_put_back_behind_a_reset() {
    let (stage, server, named) = named(&of_pool());
    named.heard();
    run(&named, &server, "BEGIN", in_block());
    named.says([query("SET application_name = 'mine'")]);
    server.heard();
    server.says([parameter_status(NAME, "mine"), done(), in_block()]);
    named.heard();
    named.says([query("RESET application_name"), query("COMMIT")]);
    assert_eq!(server.heard(), "Q(RESET application_name) Q(COMMIT)");
    server.says([done(), parameter_status(NAME, "pool"), in_block()]);
    assert_eq!(named.heard(), "C S(application_name=pool) Z(T)");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), QUESTION);
    server.says([set_to(&[])]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A session has its server for itself.
#[test]
fn in_session_mode_a_name_is_its_clients() {
    let setup = Setup { mode: "session", ..of_pool() };
    let (_stage, server, named) = named(&setup);
    assert_eq!(server.heard(), SET);
    server.says([parameter_status(NAME, "it"), one_row("it")]);
    assert_eq!(named.heard(), "R S(application_name=it) S(server_version=15.1) K Z");
    named.says([query("DISCARD ALL")]);
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
    server.says([done(), ready()]);
    assert!(server.heard().starts_with("P(pgweir_back="));
}

/// Who is there when that changes is served as the newcomers are, from its next transaction on.
#[test]
fn it_may_change_while_clients_are_there() {
    let (stage, server, named) = named(&of_pool());
    named.heard();
    stage.reload(&Setup::default());
    named.says([query("SELECT")]);
    assert_eq!(server.heard(), SET);
    server.says([parameter_status(NAME, "it"), one_row("it")]);
    assert_eq!(named.heard(), "S(application_name=it)");
    assert_eq!(server.heard(), "Q(SELECT)");
    server.says([done(), ready()]);
    run(&named, &server, "SELECT", ready());
}

#[test]
fn a_name_is_taken_back_when_that_changes() {
    let (stage, server, named) = named(&Setup::default());
    server.says([parameter_status(NAME, "it"), one_row("it")]);
    named.heard();
    server.heard();
    named.says([query("RESET ALL")]);
    server.says([parameter_status(NAME, "pool")]);
    stage.reload(&of_pool());
    server.says([done(), ready()]);
    assert_eq!(named.heard(), "C S(application_name=pool) Z");
    assert_eq!(server.heard(), format!("Q(RESET ALL) {QUESTION}"));
    server.says([set_to(&[])]);
    run(&named, &server, "SELECT", ready());
    assert_eq!(shown(&stage), ["it"]);
}

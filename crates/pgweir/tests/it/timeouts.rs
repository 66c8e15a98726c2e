//! What ends because it takes too long, in front of real PostgreSQL.

use pgweir_testkit::frames::query;
use pgweir_testkit::{Message, WireClient};

use crate::stage::Stage;

fn codes(messages: &[Message]) -> Vec<String> {
    messages.iter().filter(|message| message.tag == b'E').map(Message::sqlstate).collect()
}

fn last_words(client: &mut WireClient) -> Vec<String> {
    codes(&client.read_to_end().unwrap())
}

/// PostgreSQL itself ends the statement, and a client that wants another limit can have it.
#[test]
fn a_statement_that_takes_too_long() {
    let stage =
        Stage::with("slow_statement", 1, |config| config.general("statement_timeout", "300"));
    let mut client = stage.client();
    assert_eq!(client.query("SHOW statement_timeout"), ["300ms"]);
    client.send(&query("SELECT pg_sleep(600)")).unwrap();
    assert_eq!(codes(&client.read_until_ready().unwrap()), ["57014"]);
    assert_eq!(client.query("SELECT 'goes on'"), ["goes on"]);
    let own = stage.login().parameter("statement_timeout", "250");
    assert_eq!(stage.client_as(&own).query("SHOW statement_timeout"), ["250ms"]);
}

#[test]
fn a_transaction_that_takes_too_long() {
    let stage =
        Stage::with("slow_transaction", 1, |config| config.general("transaction_timeout", "500"));
    let mut client = stage.client();
    client.query("BEGIN");
    client.send(&query("SELECT pg_sleep(600)")).unwrap();
    assert_eq!(last_words(&mut client), ["25P04"]);
    // What ran was cancelled, so that the one server is free.
    assert_eq!(stage.client().query("SELECT 'served'"), ["served"]);
    stage.wait_for_backends(0, "query LIKE '%sleep%' AND state = 'active'");
}

#[test]
fn a_client_that_is_silent_inside_a_transaction() {
    let stage = Stage::with("silent_inside", 1, |config| {
        config.general("idle_client_in_transaction_timeout", "500")
    });
    let mut client = stage.client();
    client.query("BEGIN");
    client.query("CREATE TABLE t ()");
    assert_eq!(last_words(&mut client), ["25P03"]);
    assert_eq!(stage.client().query("SELECT to_regclass('t') IS NULL"), ["t"]);
}

#[test]
fn a_client_that_is_silent_outside_a_transaction() {
    let stage =
        Stage::with("silent_outside", 1, |config| config.general("client_idle_timeout", "500"));
    let mut client = stage.client();
    client.query("SELECT 1");
    assert_eq!(last_words(&mut client), ["57P05"]);
}

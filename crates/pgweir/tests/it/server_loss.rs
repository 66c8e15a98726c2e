//! Servers that end, while they work and while they do not.

use pgweir_testkit::frames::query;
use pgweir_testkit::{Cluster, Message, WireClient, eventually};

use crate::stage::Stage;

/// Ends the one session of the stage's role and waits until it is gone.
fn terminate_backend(stage: &Stage) {
    let own = format!("SELECT pid FROM pg_stat_activity WHERE usename = '{}'", stage.name);
    let pid = stage.value(&own);
    assert_eq!(stage.value(&format!("SELECT pg_terminate_backend({pid})")), "t");
    stage.wait_for_backends(0, &format!("pid = {pid}"));
}

/// The errors that the connection still brings before it ends.
fn last_words(client: &mut WireClient) -> Vec<String> {
    let messages = client.read_to_end().unwrap();
    messages.iter().filter(|message| message.tag == b'E').map(Message::sqlstate).collect()
}

#[test]
fn an_idle_server_is_replaced() {
    let stage = Stage::new("loss_idle", 1);
    let mut client = stage.client();
    for _ in 0..3 {
        assert_eq!(client.query("SELECT 1"), ["1"]);
        terminate_backend(&stage);
    }
    assert_eq!(client.query("SELECT 2"), ["2"]);
}

#[test]
fn a_client_hears_how_its_query_ended() {
    let stage = Stage::new("loss_query", 1);
    let mut client = stage.client();
    client.send(&query("SELECT pg_sleep(600)")).unwrap();
    stage.wait_for_backends(1, "query LIKE '%sleep%' AND state = 'active'");
    terminate_backend(&stage);
    assert_eq!(last_words(&mut client), ["57P01"]);
    assert_eq!(stage.client().query("SELECT 2"), ["2"]);
}

#[test]
fn a_client_hears_how_its_transaction_ended() {
    let stage = Stage::new("loss_transaction", 1);
    let mut client = stage.client();
    client.query("BEGIN");
    terminate_backend(&stage);
    assert_eq!(last_words(&mut client), ["57P01"]);
    assert_eq!(stage.client().query("SELECT 2"), ["2"]);
}

#[test]
fn who_waits_gets_the_next_server() {
    let stage = Stage::new("loss_waiters", 1);
    let (mut holder, mut waiter) = (stage.client(), stage.client());
    holder.query("BEGIN");
    waiter.send(&query("SELECT 'served'")).unwrap();
    stage.wait_for_waiters(1);
    terminate_backend(&stage);
    let reply = waiter.read_until_ready().unwrap();
    assert_eq!(reply[1].to_string(), "DataRow \"served\"");
}

#[test]
fn a_crash_of_the_cluster() {
    let mut cluster = Cluster::start();
    let stage = Stage::on(&cluster, "loss_crash", 2, |config| config);
    let [mut idle, mut in_query, mut in_transaction] =
        [stage.client(), stage.client(), stage.client()];
    idle.query("SELECT 1");
    in_transaction.query("BEGIN");
    in_query.send(&query("SELECT pg_sleep(600)")).unwrap();
    stage.wait_for_backends(1, "query LIKE '%sleep%' AND state = 'active'");
    cluster.kill();
    for lost in [&mut in_query, &mut in_transaction] {
        assert_eq!(last_words(lost), ["08006"]);
    }

    // Comes while PostgreSQL is down, and is served when it is up.
    let mut early = WireClient::open(stage.address()).unwrap();
    let startup = stage.login().parameter("application_name", "early").startup_message();
    early.send(&startup).unwrap();
    eventually("an attempt to connect", || stage.pgweir.log().contains("no connection to"));
    cluster.restart();
    let greeting = early.read_until_ready().unwrap();
    assert_eq!(greeting.last().unwrap().to_string(), "ReadyForQuery I");
    assert_eq!(idle.query("SELECT 'same session'"), ["same session"]);
    assert_eq!(stage.client().query("SELECT 2"), ["2"]);
}

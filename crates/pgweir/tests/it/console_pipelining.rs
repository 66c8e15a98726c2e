//! What the console says of servers that are shared, and of who works on which backend.

use pgweir_testkit::eventually;
use pgweir_testkit::frames::query;

use crate::console::{cell, psql, show};
use crate::stage::Stage;

/// A stage whose clients share servers.
fn shared(name: &str) -> Stage {
    Stage::with(name, 2, |config| config.general("pipelining", "\"2x8\""))
}

#[test]
fn whose_statement_a_backend_runs() {
    let stage = shared("console_client_of");
    let (mut alice, mut bob) = (stage.client(), stage.client());
    bob.query("SELECT 1");
    alice.send(&query("SELECT pg_sleep(600)")).unwrap();
    let sleeper = "SELECT pid FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(600)'";
    eventually("alice to be served", || stage.ask(sleeper).len() == 1);
    let found = show(&stage, &format!("CLIENT OF {}", stage.value(sleeper)));
    assert_eq!(found.len(), 1);
    let own = alice.cancel_key().unwrap().pid.to_string();
    assert_eq!(cell(&found[0], "id"), own, "what a cancel names");

    let watcher = stage.value("SELECT pg_backend_pid()");
    let none = psql(&stage, "pgweir", "admin", &format!("SHOW CLIENT OF {watcher}"));
    assert!(String::from_utf8_lossy(&none.stderr).contains("has the process id"), "{none:?}");
}

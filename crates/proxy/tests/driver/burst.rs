//! Whoever waits is connected for as soon as it may be: nobody waits for an attempt that is not
//! made.

use std::time::Duration;

use crate::birth::BORN;
use crate::messages::{done, error, one_row, query, ready, room};
use crate::pipelining::braked;
use crate::stage::{Setup, Stage};

/// A stage on which servers do not say by themselves what is in their catalogues.
fn unread(setup: &Setup) -> Stage {
    let stage = Stage::new(setup);
    stage.tell_no_names();
    stage.set_loud(None);
    stage
}

/// Behind attempts that have failed there is one at a time, until a server lets us in. What it is
/// asked then is no matter of the others: they waited for the answer, and so for the time of a
/// login if it did not come.
#[test]
fn who_waits_behind_failures_does_not_wait_for_an_answer() {
    let stage = Stage::new(&Setup::of_size(5));
    stage.keep_rooms_untold();
    let clients: Vec<_> = (0..3).map(|_| stage.newcomer(&[])).collect();
    (0..3).for_each(|_| stage.refuse_server());
    stage.wait(Duration::from_secs(1));
    assert_eq!(stage.attempts(), 1);
    let server = stage.server();
    assert!(server.heard().contains("max_connections"));
    assert_eq!(stage.attempts(), 2);
    server.says([error("42704"), ready()]);
    assert!(clients[0].is_greeted());
}

/// Nor does anybody wait for the end of an answer that says how many connections there may be.
#[test]
fn who_waits_for_room_does_not_wait_for_the_end_of_the_answer() {
    let stage = Stage::new(&Setup { general: "instances = 1", ..Setup::of_size(5) });
    let _clients: Vec<_> = (0..3).map(|_| stage.newcomer(&[])).collect();
    assert_eq!(stage.attempts(), 1);
    let server = stage.server();
    server.says([room(100, 3)]);
    assert_eq!(stage.attempts(), 2);
    server.says([done(), ready()]);
    assert_eq!(stage.attempts(), 2);
}

/// A server that is promised to one client, and asked for its catalogue, was counted as one for the
/// next in the queue, who waited until somebody looked.
#[test]
fn who_waits_beside_a_promise_is_connected_for() {
    let stage = unread(&Setup::of_size(2));
    let _born = stage.newcomer(&[BORN]);
    let server = stage.server();
    assert_eq!(server.heard(), "Q(names?)");
    let _plain = stage.newcomer(&[]);
    assert_eq!(stage.attempts(), 1);
}

/// One that could not be asked keeps its place until it has gone, and there is another.
#[test]
fn who_has_waited_for_a_server_that_goes_is_connected_for() {
    let limited = || Setup { general: "max_server_connections = 5", ..Setup::of_size(2) };
    let stage = unread(&limited());
    let alice = stage.newcomer(&[]);
    let server = stage.server();
    server.heard();
    server.says([done(), ready()]);
    stage.judge_catalogue(Ok(Default::default()));
    assert!(alice.is_greeted());
    stage.newcomer(&[("statement_timeout", "1")]);
    server.heard();
    server.says([done(), ready()]);
    stage.reload(&Setup { pool: "quiet_functions = 'quiet'", ..limited() });
    alice.says([query("SELECT 1")]);
    server.heard();
    assert_eq!(stage.attempts(), 0);
    server.says([error("57014"), ready()]);
    assert_eq!(server.heard(), "X");
    assert_eq!(stage.attempts(), 1);
}

/// Who has waited to share a server, and then needs one alone, is one more that waits for that.
#[test]
fn who_waits_to_share_in_vain_is_connected_for() {
    let setup = Setup { general: "pipelining = '1x8'", ..Setup::of_size(2) };
    let (stage, server, _clients) = braked(&setup, 1);
    let named = || stage.newcomer(&[("search_path", "x")]);
    let first = named();
    server.heard();
    server.says([one_row("")]);
    let clients = [first, named()];
    for client in &clients {
        assert!(client.is_greeted());
        client.says([query("SELECT 1")]);
    }
    assert!(server.heard().contains("'50'"));
    assert_eq!(stage.attempts(), 0);
    server.says([error("22023"), ready()]);
    assert_eq!(server.heard(), "Q(SELECT 1)");
    assert_eq!(stage.attempts(), 1);
}

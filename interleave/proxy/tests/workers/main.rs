//! Several workers, whose threads take their steps in any order.
//!
//! The engine, the driver and the mailboxes are those of the product; what they count together, and
//! each letter that is sent or read, is a step before which another thread may go on. Far ends
//! answer at once. So what is tried here is what threads do to each other, and nothing else: what
//! happens within one is the simulator's, whose workers take turns event by event.
//!
//! A thread that waits for what never comes fails a test as a deadlock. A failure shows a schedule;
//! `PGWEIR_SCHEDULE=… cargo test -p pgweir-proxy-interleaved TEST` runs that one again.

mod control;
mod letters;
mod line;
mod lost;
mod process;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use pgweir_engine::{Mark, Marks, Plan};
use pgweir_proxy_interleaved::Mail;
use shuttle::future::block_on;
use shuttle::scheduler::{PctScheduler, RandomScheduler, ReplayScheduler};
use shuttle::{Config, Runner};

use line::Heard;
use process::{Client, Plans, Process};

/// How many schedules are drawn, of each kind.
const SCHEDULES: usize = 1_000;

/// In so many places a schedule of the second kind interrupts who would go on.
const INTERRUPTIONS: usize = 3;

/// Runs a test under many schedules: such as let any thread go on at any step, and such as let one
/// go on until it waits, but for a few steps.
fn in_many_orders(test: impl Fn() + Send + Sync + Clone + 'static) {
    // What another test has counted is none of this one's.
    Marks::take();
    let mut config = Config::new();
    // An engine needs more than the default.
    config.stack_size = 512 * 1024;
    if let Ok(schedule) = std::env::var("PGWEIR_SCHEDULE") {
        Runner::new(ReplayScheduler::new_from_encoded(&schedule), config).run(test);
        return;
    }
    Runner::new(RandomScheduler::new(SCHEDULES), config.clone()).run(test.clone());
    Runner::new(PctScheduler::new(INTERRUPTIONS, SCHEDULES), config).run(test);
}

/// Whether a rare path was taken in any order that was tried since this was asked last: the threads
/// of a schedule are all on the thread of its test.
fn took(mark: Mark) -> bool {
    Marks::take().times(mark) > 0
}

fn answered() -> Heard {
    answers(1)
}

fn answers(answers: usize) -> Heard {
    Heard { answers, error: None }
}

/// Starts with a pool for each of the databases, on the workers in turn.
fn plan(general: &str, databases: &[&str]) -> Plan {
    Plans::new().next(general, databases)
}

/// Nothing is lost on the way: neither clients, nor what they have sent, nor what is counted. No
/// tick helps.
#[test]
fn every_client_is_served_wherever_its_pool_is() {
    let plan = plan("", &["db", "east"]);
    in_many_orders(move || {
        let process = Process::start(&plan, 2, Vec::new());
        let clients = [("east", "a"), ("db", "b"), ("east", "c")];
        let clients = clients.map(|(database, name)| process.client(database, name, true));
        for client in clients {
            assert_eq!(client.heard(), answered());
        }
        process.stop();
    });
}

/// Two workers share one connection: there is never another, and whoever lacks it gets it when the
/// other needs it no more. That this is so is seen at a tick, if not before.
#[test]
fn a_connection_goes_to_the_worker_that_lacks_it() {
    connections_go_round(plan("max_server_connections = 1", &["db", "east"]), 1, 2);
}

/// Whoever may not connect before a server of another worker has said what it has room for goes on
/// when it has, and is told.
#[test]
fn what_a_server_has_room_for_is_heard_by_all() {
    connections_go_round(plan("instances = 1", &["db", "east"]), 2, 0);
}

/// Where there may be `most` connections all clients are served, in so many ticks.
fn connections_go_round(plan: Plan, most: usize, ticks: usize) {
    in_many_orders(move || {
        let process = Process::start(&plan, most, Vec::new());
        let clients = [("east", "a"), ("db", "b"), ("east", "c")];
        let mut clients = clients.map(|(database, name)| process.client(database, name, true));
        process.see_off(&mut clients, ticks);
        for client in clients {
            assert_eq!(client.heard(), answered());
        }
        process.stop();
    });
    assert!(took(Mark::RoomOfQueueTaken), "no worker has taken another's room");
}

/// A server that somebody has had does not take what a client asks for, and another one is to be
/// asked. Where the other worker takes the room for that, the first one makes way.
#[test]
fn whoever_needs_another_server_is_served_though_its_place_is_taken() {
    let taken = Arc::new(AtomicBool::new(false));
    let was_taken = Arc::clone(&taken);
    let plan = Plans::new().growing("max_server_connections = 2", &["db", "east"]);
    in_many_orders(move || {
        let process = Process::start(&plan, 2, Vec::new());
        // The second one cannot be had, and is asked for again when somebody needs it.
        process.refuse_second();
        assert_eq!(process.client("db", "a", true).heard(), answered());
        process.rest();
        process.pass(Duration::from_millis(50));
        let mut clients = [process.client("east", "c", true), process.demanding("db", "b")];
        process.see_off(&mut clients, 30);
        let [other, demanding] = clients;
        assert_eq!(other.heard(), answered());
        let heard = demanding.heard();
        let is_taken = took(Mark::RoomForAnotherTaken);
        // Where there was no room to begin with it hears why the last attempt has failed.
        let is_told = !is_taken && heard.error.as_deref() == Some("57P03");
        assert!(is_told || heard == answered(), "{heard:?}");
        was_taken.fetch_or(is_taken, SeqCst);
        process.stop();
    });
    assert!(taken.load(SeqCst), "no worker has taken another's room");
}

/// The first worker hears of a pool last, so whoever comes behind that is served, wherever the pool
/// is.
#[test]
fn a_new_pool_is_known_where_its_clients_arrive() {
    let mut plans = Plans::new();
    let (before, after) = (plans.next("", &["db"]), plans.next("", &["db", "east"]));
    in_many_orders(move || {
        let (line, newcomer) = Client::later("east", "b");
        let process = Process::start(&before, 2, vec![line]);
        let client = process.client("db", "a", true);
        process.reload(after.clone());
        assert_eq!(newcomer.heard(), answered());
        assert_eq!(client.heard(), answered());
        process.stop();
    });
}

/// When nobody is left by the count, nobody is left: not between two workers either. Whoever was
/// there has its answer or is told why not.
#[test]
fn nobody_is_left_when_all_are_said_to_have_gone() {
    let plan = plan("", &["db", "east"]);
    in_many_orders(move || {
        let process = Process::start(&plan, 2, Vec::new());
        let mut clients = [("east", "a", true), ("db", "b", false), ("east", "c", false)]
            .map(|(database, name, leaves)| process.client(database, name, leaves));
        process.mailboxes.tell_all(|| Mail::Drain);
        process.empties();
        for client in &mut clients {
            assert!(client.is_gone(), "it is still there");
        }
        for client in clients {
            client.assert_told();
        }
        process.stop();
    });
}

/// At the end no client is given to a worker that has ended, nor does one end before it has told
/// its clients because another has ended.
#[test]
fn whoever_is_there_at_the_end_is_told() {
    let plan = Plans::among(3).next("", &["db", "east", "west"]);
    in_many_orders(move || {
        let process = Process::among(3, &plan, 3, Vec::new());
        let clients = [("east", "a", true), ("db", "b", false), ("west", "c", false)]
            .map(|(database, name, leaves)| process.client(database, name, leaves));
        process.shut_down();
        for client in clients {
            client.assert_told();
        }
    });
}

/// Whoever asks workers what they do gets an answer, or that there is none.
#[test]
fn a_question_to_a_worker_that_ends_is_not_waited_for() {
    let plan = plan("", &["db", "east"]);
    in_many_orders(move || {
        let process = Process::start(&plan, 2, Vec::new());
        let mailboxes = process.mailboxes.clone();
        let asker = shuttle::thread::spawn(move || {
            let pools = block_on(mailboxes.snapshot()).map(|all| all.pools.len());
            let clients = block_on(mailboxes.clients_left());
            (pools, clients)
        });
        process.stop();
        let (pools, clients) = asker.join().expect("it gets an answer");
        assert!(pools.is_none_or(|pools| pools == 2), "{pools:?} of two pools");
        assert_eq!(clients, 0);
    });
}

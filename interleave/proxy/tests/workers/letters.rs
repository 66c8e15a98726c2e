//! Letters that answer what a worker has asked of the main thread, or ask something of it, and come
//! among all others.

use pgweir_engine::Mark;
use pgweir_proxy_interleaved::{Listeners, Mail};
use shuttle::future::block_on;
use shuttle::thread::{self, JoinHandle};

use crate::line::Heard;
use crate::process::{Plans, Process, door};
use crate::{answered, answers, in_many_orders, plan, took};

fn error(code: &str) -> Option<String> {
    Some(code.to_owned())
}

/// Each client of the console hears the answers to its own commands, in their order. One that is
/// gone hears none, and neither does whoever comes into its place.
#[test]
fn each_command_is_answered_to_whoever_has_given_it() {
    let mut plans = Plans::new();
    let (before, after) =
        (plans.next("", &["db", "east"]), plans.next("", &["db", "east", "west"]));
    in_many_orders(move || {
        let process = Process::start(&before, 2, Vec::new());
        let gone = process.console(&["gone"], false);
        let stays = process.console(&["first", "second"], true);
        process.breaks(&gone);
        let next = process.console(&["next"], true);
        let client = process.client("east", "a", true);
        process.reload(after.clone());
        assert_eq!(stays.heard(), answers(2));
        assert_eq!(next.heard(), answered());
        assert_eq!(client.heard(), answered());
        let heard = gone.heard();
        assert!(heard.answers <= 1 && heard.error.is_none(), "{heard:?}");
        process.stop();
    });
    assert!(took(Mark::ConsoleLeft), "nobody was gone before its answer");
}

/// What a command has said is said before the end that it brings about.
#[test]
fn who_ends_all_by_a_command_is_answered_first() {
    let plan = plan("", &["db", "east"]);
    in_many_orders(move || {
        let process = Process::start(&plan, 2, Vec::new());
        let console = process.console(&["SHUTDOWN"], false);
        let clients = [("east", "a"), ("db", "b")]
            .map(|(database, name)| process.client(database, name, false));
        process.ends();
        assert_eq!(console.heard(), Heard { answers: 1, error: error("57P01") });
        clients.into_iter().for_each(|client| client.assert_told());
    });
}

/// A client of the console is the last to leave, on whatever workers the others are.
#[test]
fn who_asks_all_to_leave_is_answered_and_leaves_behind_them() {
    let plan = plan("", &["db", "east"]);
    in_many_orders(move || {
        let process = Process::start(&plan, 2, Vec::new());
        let mut console = process.console(&["DRAIN"], false);
        let clients = [("east", "a"), ("db", "b")]
            .map(|(database, name)| process.client(database, name, false));
        // No time passes before they have gone.
        clients.into_iter().for_each(|client| client.assert_told());
        assert!(!console.is_gone() || block_on(process.mailboxes.clients_left()) == 0);
        process.rest();
        process.empties();
        assert_eq!(console.heard(), Heard { answers: 1, error: error("57P01") });
        process.stop();
    });
}

/// Nobody waits for ever until a catalogue is judged, whatever comes before that; and it is the one
/// that this worker has asked for.
#[test]
fn a_catalogue_comes_back_to_the_worker_that_has_asked() {
    let mut plans = Plans::new();
    let databases = ["db", "east"];
    let (before, after) = (plans.reading("", &databases), plans.reading("quiet", &databases));
    in_many_orders(move || {
        let process = Process::start(&before, 2, Vec::new());
        let clients = [("east", "a"), ("db", "b"), ("east", "c")]
            .map(|(database, name)| process.client(database, name, true));
        process.reload(after.clone());
        for client in clients {
            assert_eq!(client.heard(), answered());
        }
        assert_eq!(names_known(&process), databases);
        process.stop();
    });
    assert!(took(Mark::OtherCatalogue), "no catalogue was read when another one was to be");
}

/// The same where its pool is gone by then, and there again, on this worker or on the other.
#[test]
fn a_catalogue_of_a_pool_that_has_gone_is_in_nobody_s_way() {
    for last in [&["db", "east"][..], &["db", "west", "east"]] {
        let mut plans = Plans::new();
        let plans = [&["db", "east"][..], &["db"], last].map(|its| plans.reading("", its));
        in_many_orders(move || {
            let process = Process::start(&plans[0], 3, Vec::new());
            let clients = ["a", "b"].map(|name| process.client("east", name, true));
            process.reload(plans[1].clone());
            process.reload(plans[2].clone());
            for client in clients {
                let heard = client.heard();
                let is_refused = [error("57P01"), error("28000")].contains(&heard.error);
                assert!(heard == answered() || is_refused, "{heard:?}");
            }
            process.rest();
            assert_eq!(process.client("east", "c", true).heard(), answered());
            assert!(names_known(&process).contains(&"east".to_owned()));
            process.stop();
        });
    }
}

/// The databases whose loud names are known: there is one of the database's own in each.
fn names_known(process: &Process) -> Vec<String> {
    let snapshot = block_on(process.mailboxes.snapshot()).expect("no worker has ended");
    let known = snapshot.louds.into_iter().filter(|view| view.loud.is_known());
    let mut databases: Vec<_> = known
        .map(|view| {
            let names: Vec<_> = view.loud.iter().map(|(name, _)| name.to_vec()).collect();
            assert_eq!(names, [view.database.name.as_bytes()], "another's names");
            view.database.name
        })
        .collect();
    databases.sort();
    databases.dedup();
    databases
}

/// When it is said that a door is closed, whoever came before is in, and nobody comes in any more.
#[test]
fn nobody_comes_in_by_a_door_that_is_said_to_be_closed() {
    let plan = plan("", &["db", "east"]);
    in_many_orders(move || {
        let process = Process::start(&plan, 2, Vec::new());
        let early = process.client("east", "a", true);
        process.mailboxes.tell_all(|| Mail::Nudge);
        block_on(process.mailboxes.listen(Listeners::new()));
        let at_the_door = process.client("db", "b", true);
        assert_eq!(at_the_door.heard(), Heard::default());
        block_on(process.mailboxes.listen(door()));
        let late = process.client("db", "c", true);
        assert_eq!((early.heard(), late.heard()), (answered(), answered()));
        process.stop();
    });
}

/// Closes the door and opens it, whatever becomes of the workers.
fn changes_doors(process: &Process) -> JoinHandle<()> {
    let mailboxes = process.mailboxes.clone();
    thread::spawn(move || {
        block_on(mailboxes.listen(Listeners::new()));
        block_on(mailboxes.listen(door()));
    })
}

/// Whoever changes a door while the workers end is not kept waiting.
#[test]
fn who_changes_a_door_at_the_end_is_answered() {
    let plan = plan("", &["db", "east"]);
    in_many_orders(move || {
        let process = Process::start(&plan, 2, Vec::new());
        let client = process.client("east", "a", false);
        block_on(process.mailboxes.clients_left());
        let asker = changes_doors(&process);
        process.shut_down();
        asker.join().expect("it is answered");
        let heard = client.heard();
        assert!(heard == Heard::default() || heard.error == error("57P01"), "{heard:?}");
    });
}

/// And where nobody is let in any more, that door stays closed.
#[test]
fn a_door_stays_closed_when_all_are_asked_to_leave() {
    let plan = plan("", &["db", "east"]);
    in_many_orders(move || {
        let process = Process::start(&plan, 2, Vec::new());
        let asker = changes_doors(&process);
        process.mailboxes.tell_all(|| Mail::Drain);
        asker.join().expect("it is answered");
        process.rest();
        assert_eq!(process.client("db", "b", true).heard(), Heard::default());
        process.empties();
        process.stop();
    });
}

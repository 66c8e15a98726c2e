//! Clients that get lost between two workers: one cannot give them away, or the other cannot take
//! them, as where a process has no descriptor left.

use pgweir_engine::Mark;
use pgweir_proxy_interleaved::Mail;

use crate::line::{Heard, Way};
use crate::process::Process;
use crate::{answered, in_many_orders, plan, took};

const WAYS: [Way; 2] = [Way::Off, Way::On];

/// Who is lost finds its connection closed, and its place is another's.
#[test]
fn the_place_of_who_is_lost_on_the_way_is_free() {
    let plan = plan("max_clients = 2\nmax_logins = 2", &["db", "east"]);
    for way in WAYS {
        let plan = plan.clone();
        in_many_orders(move || {
            let process = Process::start(&plan, 1, Vec::new());
            let lost = process.lost("east", "a", way);
            let client = process.client("east", "b", true);
            assert_eq!((lost.heard(), client.heard()), (Heard::default(), answered()));
            process.rest();
            let next = ["c", "d"].map(|name| process.client("east", name, true));
            assert_eq!(next.map(|client| client.heard()), [(); 2].map(|()| answered()));
            process.stop();
        });
        assert!(took(Mark::LostOnTheWay), "nobody was lost: {way:?}");
    }
}

/// When all are asked to leave nobody waits for one who is lost: a client of the console, which
/// leaves behind all others, would.
#[test]
fn nobody_waits_for_who_is_lost_on_the_way() {
    let plan = plan("", &["db", "east"]);
    for way in WAYS {
        let plan = plan.clone();
        in_many_orders(move || {
            let process = Process::start(&plan, 2, Vec::new());
            let lost = process.lost("east", "a", way);
            let clients = [process.console(&[], false), process.client("db", "b", false)];
            process.mailboxes.tell_all(|| Mail::Drain);
            process.empties();
            for client in clients {
                client.assert_told();
            }
            let heard = lost.heard();
            // Unless it was asked to leave before it was on its way.
            let is_told = heard.error.as_deref() == Some("57P03");
            assert!(is_told || heard == Heard::default(), "{heard:?}");
            process.stop();
        });
        assert!(took(Mark::LostOnTheWay), "nobody was lost: {way:?}");
    }
}

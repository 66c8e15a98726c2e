use std::collections::BTreeMap;

use super::{Ear, Ledger, Notices};
use crate::language::Tag;
use crate::rows::Row;
use crate::session::{Again, Home, State, Witness};

fn ledger() -> Ledger {
    let mut ledger = Ledger::new();
    for zone in ["GMT", "UTC"] {
        ledger.enrol(BTreeMap::from([("timezone".to_owned(), zone.to_owned())]), home("db"));
    }
    ledger
}

fn home(database: &str) -> Home {
    Home { database: database.to_owned(), user: "app".to_owned() }
}

fn tag(client: u32) -> Tag {
    Tag { client, number: 1 }
}

fn state() -> State {
    State::new(BTreeMap::new())
}

#[test]
fn a_statement_is_carried_out_once() {
    let mut ledger = ledger();
    ledger.executes(tag(0), Again::MayNot);
    assert_eq!(ledger.failure(), None);
    ledger.executes(tag(0), Again::MayNot);
    assert!(ledger.failure().is_some());
}

#[test]
fn a_refused_statement_is_not_carried_out() {
    let mut ledger = ledger();
    ledger.refused(&[tag(0)]);
    assert_eq!(ledger.failure(), None);
    ledger.executes(tag(0), Again::MayNot);
    assert!(ledger.failure().is_some());
}

#[test]
fn what_is_acknowledged_is_committed() {
    let mut ledger = ledger();
    ledger.committed(&[tag(0)]);
    ledger.acknowledged(&[tag(0)], &[tag(1)]);
    assert_eq!(ledger.failure(), None);
    ledger.acknowledged(&[], &[tag(0)]);
    assert!(ledger.failure().is_some());
    ledger.acknowledged(&[tag(1)], &[]);
    assert!(ledger.failure().is_some());
}

#[test]
fn what_was_reported_as_undone_is_not_committed_later() {
    let mut ledger = ledger();
    ledger.undone_for_good(&[tag(0)]);
    ledger.committed(&[tag(1)]);
    assert_eq!(ledger.failure(), None);
    ledger.committed(&[tag(0)]);
    assert!(ledger.failure().is_some());
}

#[test]
fn a_session_is_its_clients_own() {
    let mut ledger = ledger();
    let mut state = state();
    ledger.meets(tag(0), &state);
    assert_eq!(ledger.failure(), None);
    state.owner = Some(1);
    ledger.meets(tag(0), &state);
    assert!(ledger.failure().is_some(), "a transaction of another");
    state.owner = None;
    state.stain(1, "a temporary table");
    ledger.meets(tag(0), &state);
    assert!(ledger.failure().is_some(), "a table of another");
}

#[test]
fn servers_go_on_behind_clients_that_have_left() {
    let mut ledger = ledger();
    let mut state = state();
    state.served = Some(tag(1));
    ledger.leaves(1, false);
    ledger.meets(tag(0), &state);
    ledger.committed(&[tag(0)]);
    let times =
        |ledger: &Ledger| [Row::Left, Row::LeftStatement].map(|row| ledger.counts.rows.times(row));
    assert_eq!(times(&ledger), [0, 0]);
    ledger.committed(&[tag(1)]);
    ledger.leaves(1, true);
    ledger.meets(tag(0), &state);
    assert_eq!((times(&ledger), ledger.failure()), ([1, 1], None));
}

#[test]
fn a_statement_comes_to_its_own_database() {
    let mut ledger = ledger();
    let mut state = state();
    state.home = Some(home("db"));
    ledger.meets(tag(0), &state);
    assert_eq!(ledger.failure(), None);
    state.home = Some(home("other"));
    ledger.meets(tag(0), &state);
    assert!(ledger.failure().is_some());
}

#[test]
fn settings_are_those_of_the_startup_packet() {
    let mut ledger = ledger();
    ledger.meets(tag(1), &state());
    assert!(ledger.failure().is_some());
}

#[test]
fn a_cancel_hits_who_asked_for_it_and_once() {
    let mut ledger = ledger();
    ledger.cancel_asked(0);
    ledger.cancel_hit(0, None);
    assert_eq!(ledger.failure(), None);
    ledger.cancel_hit(0, None);
    assert!(ledger.failure().is_some());
}

/// What is sent behind the end of a request is not what it was for.
#[test]
fn a_cancel_that_is_over_hits_nothing_later() {
    let mut ledger = ledger();
    let request = ledger.cancel_asked(0);
    ledger.cancel_over(request, 3);
    ledger.cancel_hit(0, Some(Tag { number: 4, ..tag(0) }));
    assert!(ledger.failure().is_some());
}

/// Which request has hit what nobody sees: any that could have.
#[test]
fn of_two_cancels_each_may_have_been_the_one() {
    for last in [3, 5] {
        let mut ledger = ledger();
        let [first, _] = [ledger.cancel_asked(0), ledger.cancel_asked(0)];
        ledger.cancel_hit(0, Some(Tag { number: 3, ..tag(0) }));
        ledger.cancel_over(first, last);
        ledger.cancel_hit(0, Some(Tag { number: 4, ..tag(0) }));
        assert_eq!(ledger.failure(), None);
        ledger.cancel_hit(0, Some(Tag { number: 5, ..tag(0) }));
        assert!(ledger.failure().is_some());
    }
}

/// pgweir looks after a request for five seconds, and after those that join it for no longer.
#[test]
fn a_cancel_that_nobody_looks_after_may_come_late() {
    let mut ledger = ledger();
    let [first, second] = [0, 4_000_000].map(|now| {
        ledger.now = now;
        ledger.cancel_asked(0)
    });
    ledger.now = 5_000_000;
    ledger.cancel_over(first, 3);
    ledger.cancel_over(second, 3);
    ledger.cancel_hit(0, Some(Tag { number: 4, ..tag(0) }));
    assert_eq!(ledger.failure(), None);
}

/// Where its reply is not kept pgweir says what its server has said.
#[test]
fn who_is_told_of_a_cancel_in_a_servers_place_was_hit_once() {
    let mut ledger = ledger();
    ledger.cancel_asked(0);
    ledger.cancel_ends(tag(0));
    ledger.cancel_told(0, &[tag(0)]);
    assert_eq!(ledger.failure(), None);
    ledger.cancel_told(0, &[Tag { number: 2, ..tag(0) }]);
    assert!(ledger.failure().is_some());
}

/// A server that was given up is hit by the request of which its client has heard from pgweir.
#[test]
fn who_is_told_of_a_cancel_before_its_server_is_hit_was_hit_once() {
    let mut ledger = ledger();
    ledger.cancel_asked(0);
    ledger.cancel_told(0, &[tag(0)]);
    ledger.cancel_ends(tag(0));
    assert_eq!(ledger.failure(), None);
    ledger.cancel_ends(tag(0));
    assert!(ledger.failure().is_some());
}

#[test]
fn a_lost_server_costs_one_client() {
    let mut ledger = ledger();
    ledger.kill();
    ledger.lost(0, "closed");
    assert_eq!(ledger.failure(), None);
    ledger.lost(1, "closed");
    assert!(ledger.failure().is_some());
}

#[test]
fn copy_data_have_their_reader() {
    let mut ledger = ledger();
    ledger.copies(tag(0), b"c0s1  ");
    assert_eq!(ledger.failure(), None);
    ledger.copies(tag(0), b"c1s1");
    assert!(ledger.failure().is_some());
}

#[test]
fn statements_begin_in_the_order_in_which_they_were_sent() {
    let mut ledger = ledger();
    ledger.executes(tag(0), Again::MayNot);
    ledger.executes(Tag { number: 3, ..tag(0) }, Again::MayNot);
    assert_eq!(ledger.failure(), None);
    ledger.executes(Tag { number: 2, ..tag(0) }, Again::MayNot);
    assert!(ledger.failure().is_some_and(|failure| failure.starts_with("OwnOrder")));
}

/// A client that listens on two channels, and what was said behind that, at these times.
fn notices(said: &[(&str, &str, u64)]) -> (Notices, Ear) {
    let (mut notices, mut ear) = (Notices::default(), Ear::default());
    notices.announce(0, "db", ("a".to_owned(), "c1s1".to_owned()), 5);
    notices.listens(&mut ear, "db", ["a", "b"].map(str::to_owned).into_iter(), 10);
    for (channel, text, at) in said {
        notices.announce(0, "db", ((*channel).to_owned(), (*text).to_owned()), *at);
    }
    (notices, ear)
}

/// What it has not heard of that, by a time.
fn unheard(notices: &Notices, ear: &Ear, by: u64) -> Option<String> {
    let unheard = notices.unheard(ear, &home("db"), 0, |_, at| at < by);
    unheard.map(|(_, text)| text.clone())
}

#[test]
fn who_listens_has_heard_all_by_some_time() {
    let (notices, mut ear) = notices(&[("c", "c1s2", 20), ("a", "c1s3", 20), ("b", "c1s4", 30)]);
    assert_eq!(unheard(&notices, &ear, 20), None, "it need not have come yet");
    assert_eq!(unheard(&notices, &ear, 21).as_deref(), Some("c1s3"));
    let own = notices.unheard(&ear, &home("db"), 0, |text, _| text == "c1s4");
    assert!(own.is_some(), "its own is due at once");
    assert!(notices.unheard(&ear, &home("db"), 1, |_, _| true).is_none(), "on another server");
    assert_eq!(notices.heard(&mut ear, "db", ("a".to_owned(), "c1s3".to_owned())), Ok(()));
    assert_eq!(unheard(&notices, &ear, 99).as_deref(), Some("c1s4"));
    ear.listens_still(|channel| channel != "b");
    assert_eq!(unheard(&notices, &ear, 99), None, "it listens no more");
}

#[test]
fn what_was_said_to_a_lost_server_need_not_be_heard() {
    let (mut notices, ear) = notices(&[("a", "c1s2", 20)]);
    notices.ends(&home("other"), 25, 0);
    assert!(unheard(&notices, &ear, 99).is_some());
    notices.ends(&home("db"), 25, 0);
    assert_eq!(unheard(&notices, &ear, 99), None);
}

/// Its client says on what it listens only behind its next unit, though it was told before.
#[test]
fn whoever_listens_next_may_be_lost_before_its_client_says_anything() {
    let (mut notices, mut ear) = notices(&[]);
    notices.ends(&home("db"), 25, 0);
    notices.warns(&mut ear, &home("db"), 0, 30);
    notices.ends(&home("db"), 40, 0);
    notices.listens(&mut ear, "db", ["a", "b"].map(str::to_owned).into_iter(), 50);
    notices.announce(0, "db", ("a".to_owned(), "c1s2".to_owned()), 60);
    assert_eq!(unheard(&notices, &ear, 99), None);
    notices.warns(&mut ear, &home("db"), 0, 70);
    notices.listens(&mut ear, "db", ["a"].map(str::to_owned).into_iter(), 80);
    notices.announce(0, "db", ("a".to_owned(), "c1s3".to_owned()), 85);
    assert_eq!(unheard(&notices, &ear, 99).as_deref(), Some("c1s3"));
}

#[test]
fn who_was_busy_is_warned_of_each_end() {
    let (mut notices, mut ear) = notices(&[("a", "c1s2", 20)]);
    notices.ends(&home("db"), 25, 0);
    notices.ends(&home("db"), 26, 0);
    notices.warns(&mut ear, &home("db"), 0, 30);
    notices.warns(&mut ear, &home("db"), 0, 30);
    assert_eq!(notices.warned_in_vain(), None);
    notices.warns(&mut ear, &home("db"), 0, 30);
    assert_eq!(notices.warned_in_vain(), Some((0, 30)));
}

#[test]
fn a_warning_has_a_cause_each() {
    let (mut notices, mut ear) = notices(&[("a", "c1s2", 20)]);
    notices.ends(&home("db"), 25, 0);
    notices.warns(&mut ear, &home("db"), 0, 30);
    assert_eq!(unheard(&notices, &ear, 99), None, "it knows");
    assert_eq!(notices.warned_in_vain(), None);
    notices.warns(&mut ear, &home("db"), 0, 40);
    assert_eq!(notices.warned_in_vain(), Some((0, 40)));
    notices.ends(&home("db"), 41, 0);
    assert_eq!(notices.warned_in_vain(), None, "that was closed by pgweir, and has seen it");
    notices.warns(&mut ear, &home("db"), 0, 50);
    notices.warns(&mut ear, &home("db"), 0, 60);
    notices.ends(&home("db"), 100_000_000, 0);
    assert_eq!(notices.warned_in_vain(), Some((0, 60)), "too late");
    notices.ends(&home("db"), 100_000_000, 99_000_000);
    assert_eq!(notices.warned_in_vain(), None, "that has stood still");
}

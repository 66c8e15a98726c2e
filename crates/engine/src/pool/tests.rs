use std::path::Path;

use pgweir_config::Config;
use pgweir_wire::SqlState;

use super::*;
use crate::marks::tests::took;
use crate::plan::Plan;
use crate::settings::Interner;

/// A pool that may have two servers.
fn pool() -> Pool {
    let text = "
        [general]
        host = '127.0.0.1'
        port = 6000
        auth_type = 'trust'
        admin_auth_type = 'trust'
        admin_username = 'admin'
        [pools.db]
        pool_mode = 'transaction'
        [pools.db.users.0]
        username = 'user'
        pool_size = 2
        [pools.db.shards.0]
        servers = [['127.0.0.1', 5432, 'primary']]
        database = 'db'
    ";
    let config = Config::parse(text, Path::new("pool.toml")).expect("a configuration");
    let mut plan = Plan::new(&config, "0.1.0", [6; 32]).expect("a plan");
    Pool::new(plan.take_specs().remove(0))
}

fn report() -> Report {
    Report::error(SqlState::CANNOT_CONNECT_NOW, "not now")
}

fn after(ms: u64) -> Time {
    Time::default() + Duration::from_millis(ms)
}

fn settings(interner: &mut Interner, name: &str) -> Rc<Settings> {
    let pair = (&b"application_name"[..], name.as_bytes());
    interner.of_startup(std::iter::once(pair)).expect("a setting").settings
}

/// Behind an attempt that has failed there is one at a time, in its own time, where there is room.
#[test]
fn attempts_behind_one_that_failed_have_conditions() {
    let (early, late, much_later) = (after(1), after(20_000), after(21_000));
    let mut pool = pool();
    assert!(pool.no_attempt(late, 0).is_none(), "nothing has failed");
    pool.attempt_failed(after(0), report(), 0);
    assert!(pool.no_attempt(early, 1).is_some(), "too early");
    assert!(pool.no_attempt(late, 1).is_none());
    assert!(pool.no_attempt(late, 0).is_some(), "no room");
    assert!(pool.no_attempt(much_later, 0).is_none(), "it is not known how the server is now");
    pool.opening = 1;
    assert!(pool.no_attempt(late, 1).is_some(), "one is under way");
    assert!(pool.no_attempt(much_later, 1).is_some(), "one is under way");
    pool.opening = 0;
    pool.total = 2;
    assert!(pool.no_attempt(late, 1).is_some(), "it has all that it may have");
    assert!(pool.no_attempt(much_later, 1).is_none(), "it is not known how the server is now");
}

/// Refusals are remembered for a while, each by itself.
#[test]
fn refusals_are_remembered_one_by_one() {
    let mut interner = Interner::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| settings(&mut interner, name));
    let mut pool = pool();
    pool.remember_refusal(after(0), &a, &report());
    pool.remember_refusal(after(1_000), &b, &report());
    pool.remember_refusal(after(5_500), &c, &report());
    let known = |pool: &Pool, ms: u64| {
        [&a, &b, &c].map(|settings| pool.refusal(after(ms), settings).is_some())
    };
    assert_eq!(known(&pool, 5_500), [false, true, true]);
    assert_eq!(pool.refusals.len(), 2, "that of `a` is forgotten");
    pool.forget_refusal(&b);
    assert_eq!(known(&pool, 5_500), [false, false, true]);
}

/// Few void places cost nothing, many of them memory.
#[test]
fn a_queue_is_not_much_longer_than_what_waits_in_it() {
    let mut pool = pool();
    assert_eq!(pool.most_places(), 16);
    pool.waiting = 100;
    assert_eq!(pool.most_places(), 216);
}

/// However many settings clients ask for, not more than a few of those that were refused are known.
#[test]
fn the_oldest_refusal_is_forgotten_first() {
    let (mut pool, mut interner) = (pool(), Interner::new());
    let names = |number: usize| format!("name {number}");
    let all: Vec<_> = (0..=REFUSALS).map(|n| settings(&mut interner, &names(n))).collect();
    for settings in &all {
        pool.remember_refusal(after(1), settings, &report());
    }
    assert!(took(Mark::RefusalForgotten));
    let known = |settings: &Rc<Settings>| pool.refusal(after(2), settings).is_some();
    assert!(!known(&all[0]) && all[1..].iter().all(known));
}

/// Nor of what servers have reported under those that were taken.
#[test]
fn the_oldest_welcome_is_forgotten_first() {
    let (mut pool, mut interner) = (pool(), Interner::new());
    let names = |number: usize| format!("name {number}");
    let all: Vec<_> = (0..=WELCOMES).map(|n| settings(&mut interner, &names(n))).collect();
    for settings in &all {
        pool.remember_welcome(settings, &Rc::default());
    }
    assert!(took(Mark::WelcomeForgotten));
    let known = |settings: &Rc<Settings>| pool.welcome(settings).is_some();
    assert!(!known(&all[0]) && all[1..].iter().all(known));
}

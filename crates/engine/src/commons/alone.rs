//! What is counted in common, one thread at a time.

use super::{Member, Want, lock};
use crate::shares::Of;
use crate::time::Time;

/// Databases and users come and go as clients ask for them: what nobody counts any more would pile
/// up.
#[test]
fn what_nobody_counts_any_more_is_forgotten() {
    let member = Member::alone();
    let commons = member.commons();
    let of = |name: &str| commons.count(&Of::User(name.to_owned()), || None);
    let _kept = of("kept");
    for name in ["a", "b", "c"] {
        drop(of(name));
    }
    let users: Vec<_> = lock(&commons.counts).keys().cloned().collect();
    assert_eq!(users, ["c", "kept"].map(|name| Of::User(name.to_owned())));
}

/// Others are nudged for it, and look at what they lack themselves: if that were news each time
/// they would nudge each other for ever.
#[test]
fn it_is_news_once_that_something_is_lacking() {
    let member = Member::alone();
    let count = member.commons().count(&Of::User("user".to_owned()), || Some(1));
    let want = || vec![Want { since: Time(1), own: 0, besides: Vec::new() }];
    let wants = [Vec::new(), want(), want(), Vec::new(), want()];
    let news = wants.map(|wants| count.post(&member, wants, 0));
    assert_eq!(news, [false, true, false, false, true]);
}

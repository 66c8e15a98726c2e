use pgweir_sql::{Fingerprint, Loud, hear};

use super::*;
use crate::marks::tests::took;

const SHORT: Duration = Duration::from_millis(1);

fn print(text: &str) -> Fingerprint {
    hear(text.as_bytes(), pgweir_sql::Encoding::Superset, &std::sync::Arc::new(Loud::default()))
        .fingerprint
}

/// A name of its own for each number.
fn letters(number: usize) -> String {
    number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
}

fn at(seconds: u64) -> Time {
    Time(seconds * 1_000_000)
}

#[test]
fn what_has_run_in_time_may_lead() {
    let mut repute = Repute::default();
    let (one, other) = (print("SELECT a"), print("SELECT b"));
    for _ in 0..TRIALS {
        assert_eq!(repute.of(at(0), one), May::Trail);
        repute.ran(at(0), one, SHORT);
    }
    assert_eq!(repute.of(at(0), one), May::Lead);
    assert_eq!(repute.of(at(0), other), May::Trail);
    for _ in 0..10 {
        repute.ran(at(0), other, BRAKE / 2);
    }
    assert_eq!(repute.of(at(0), other), May::Trail, "it is nearly too long");
}

#[test]
fn what_overruns_is_banned_for_longer_each_time() {
    let mut repute = Repute::default();
    let one = print("SELECT a");
    let mut now = at(0);
    let mut times = Vec::new();
    for _ in 0..9 {
        repute.overran(now, one);
        repute.overran(now, one);
        let end = (0..).find(|s| repute.of(now + Duration::from_secs(*s), one) == May::Trail);
        let end = end.unwrap();
        times.push(end);
        now = now + Duration::from_secs(end);
        repute.ran(now, one, SHORT);
    }
    assert_eq!(times, [5, 10, 20, 40, 80, 160, 320, 320, 320]);
    repute.ran(now, one, SHORT);
    assert_eq!(repute.of(now, one), May::Lead);
}

/// Several of one kind are under way, of which one overruns.
#[test]
fn what_was_under_way_with_it_ends_no_ban() {
    let mut repute = Repute::default();
    let (one, other) = (print("SELECT a"), print("SELECT b"));
    repute.overran(at(0), one);
    repute.misbehaved(at(0), other);
    for time in [SHORT, BRAKE / 2] {
        for print in [one, other] {
            repute.ran(at(4), print, time);
            assert_eq!(repute.of(at(4), print), May::NotShare);
        }
    }
    repute.ran(at(5), one, SHORT);
    assert_eq!(repute.of(at(5), one), May::Trail);
    repute.overran(at(5), one);
    assert_eq!(repute.of(at(14), one), May::NotShare, "it was banned before");
}

#[test]
fn a_slow_moment_is_forgiven_and_two_are_not() {
    let mut repute = Repute::default();
    let one = print("SELECT a");
    (0..TRIALS).for_each(|_| repute.ran(at(0), one, SHORT));
    repute.overran(at(0), one);
    assert_eq!(repute.of(at(0), one), May::Lead);
    (0..FORGIVEN).for_each(|_| repute.ran(at(0), one, SHORT));
    repute.overran(at(0), one);
    assert_eq!(repute.of(at(0), one), May::Lead);
    repute.ran(at(0), one, SHORT);
    repute.overran(at(0), one);
    assert_eq!(repute.of(at(0), one), May::NotShare);
}

#[test]
fn no_more_are_known_than_that() {
    let mut repute = Repute::default();
    let banned = print("SELECT banned");
    repute.overran(at(0), banned);
    for number in 0..2 * KNOWN {
        repute.ran(at(0), print(&format!("SELECT {}", letters(number))), SHORT);
        assert!(repute.known.len() <= KNOWN);
    }
    assert_eq!(repute.of(at(0), banned), May::NotShare);
}

/// Where all that is known is banned, there is room all the same: who was banned is tried again.
#[test]
fn a_crowd_of_banned_statements_is_forgotten() {
    let mut repute = Repute::default();
    let all: Vec<_> = (0..=KNOWN).map(|n| print(&format!("SELECT {}", letters(n)))).collect();
    for one in &all {
        repute.overran(at(0), *one);
        repute.overran(at(0), *one);
    }
    assert!(took(Mark::BansForgotten));
    assert_eq!(repute.of(at(0), all[0]), May::Trail);
    assert_eq!(repute.of(at(0), all[KNOWN]), May::NotShare);
}

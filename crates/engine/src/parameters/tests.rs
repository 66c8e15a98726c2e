use std::rc::Rc;

use super::{PRUNE_ABOVE, Parameters, Reports};

fn parameters(pairs: &[(&str, &str)]) -> Parameters {
    let mut parameters = Parameters::default();
    for (name, value) in pairs {
        parameters.set(name.as_bytes(), value.as_bytes());
    }
    parameters
}

/// What equal reports are shared for: whether a client knows all is a comparison of pointers.
#[test]
fn equal_reports_are_one() {
    let mut reports = Reports::new();
    let first = reports.intern(parameters(&[("a", "1"), ("b", "2")]));
    let other = reports.intern(parameters(&[("a", "1"), ("b", "3")]));
    assert!(!Rc::ptr_eq(&first, &other));
    let there = reports.changed(&first, b"b", b"3");
    assert!(Rc::ptr_eq(&there, &other));
    let back = reports.changed(&there, b"b", b"2");
    assert!(Rc::ptr_eq(&back, &first));
    assert!(Rc::ptr_eq(&reports.changed(&back, b"a", b"1"), &first));
}

#[test]
fn news_are_what_is_not_known() {
    let told = parameters(&[("a", "1"), ("b", "2"), ("gone", "0")]);
    let reported = parameters(&[("a", "1"), ("b", "3"), ("c", "4")]);
    let news: Vec<_> = reported.news(&told).collect();
    assert_eq!(news, [(&b"b"[..], &b"3"[..]), (b"c", b"4")]);
}

/// What was reported once is not kept for ever, and what is in use is kept.
#[test]
fn reports_that_nobody_uses_are_dropped() {
    let mut reports = Reports::new();
    let base = reports.intern(parameters(&[("a", "base")]));
    for round in 0..10 * PRUNE_ABOVE {
        reports.changed(&base, b"a", round.to_string().as_bytes());
    }
    assert!(reports.known.len() <= PRUNE_ABOVE, "{}", reports.known.len());
    assert!(Rc::ptr_eq(&reports.intern(parameters(&[("a", "base")])), &base));

    let used: Vec<_> = (0..10 * PRUNE_ABOVE)
        .map(|round| reports.changed(&base, b"b", round.to_string().as_bytes()))
        .collect();
    for parameters in &used {
        assert!(Rc::ptr_eq(&reports.intern(Parameters::clone(parameters)), parameters));
    }
}

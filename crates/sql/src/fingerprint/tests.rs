use std::collections::BTreeSet;

use super::Fingerprint;
use crate::Classifier;

fn of(text: &str) -> Fingerprint {
    let mut classifier = Classifier::new();
    classifier.feed(text.as_bytes());
    classifier.finish_hearing().fingerprint
}

#[test]
fn values_spaces_and_comments_do_not_count() {
    let alike = [
        "SELECT abalance FROM pgbench_accounts WHERE aid = 1",
        "select  abalance\nFROM pgbench_accounts -- whose\nWHERE aid = 123456;",
        "SELECT abalance FROM pgbench_accounts WHERE aid = 'x'",
        "SELECT abalance FROM pgbench_accounts WHERE aid =/* $1 */$1",
    ];
    let prints: BTreeSet<_> = alike.map(of).into_iter().collect();
    assert_eq!(prints.len(), 1);
    assert_eq!(of("SELECT 1 WHERE a IN (1, 2, 3)"), of("SELECT 1 WHERE a IN ($1,'b')"));
    assert_eq!(of("VALUES (1, 'a')"), of("VALUES (25)"));
    assert_eq!(of("SELECT a FROM orders_2024_07"), of("SELECT a FROM orders_2025_11"));
}

#[test]
fn names_and_their_order_count() {
    let texts = [
        "SELECT a FROM t",
        "SELECT b FROM t",
        "SELECT a FROM u",
        "SELECT a, b FROM t",
        "SELECT b, a FROM t",
        "SELECT a FROM t WHERE b = 1",
        "SELECT a FROM t WHERE b = 1 AND c = 2",
        "SELECT a FROM t, u",
        "SELECT f(a) FROM t",
        "SELECT a.b FROM t",
        "SELECT a FROM a_name_of_more_than_eight",
        "SELECT a FROM a_name_of_more_than_eighs",
        "UPDATE t SET a = 1",
        "UPDATE t SET a = 1, b = 2",
        "UPDATE t SET b = 2, a = 1",
        "",
    ];
    let prints: BTreeSet<_> = texts.into_iter().map(of).collect();
    assert_eq!(prints.len(), texts.len());
}

#[test]
fn a_batch_is_all_of_its_texts() {
    let (one, other) = (of("SELECT a"), of("SELECT b"));
    assert_ne!(one.and(other), one);
    assert_ne!(one.and(other), other.and(one));
    assert_eq!(one.and(other), one.and(other));
}

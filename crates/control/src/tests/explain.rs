//! EXPLAIN ROUTE: what of a request is the statement, and how it is told where that goes.

use pgweir_engine::Unshared;

use super::{says, says_with, snapshot};
use crate::explain::statement;
use crate::{Rates, order};

#[test]
fn the_statement_is_all_that_stands_behind() {
    for (request, expected) in [
        ("EXPLAIN ROUTE SELECT 1", Some(" SELECT 1")),
        (" \n explain\trOUTE\nselect 'it''s; -- ' ;\0", Some("\nselect 'it''s; -- ' ;")),
        ("EXPLAIN ROUTE/* x */ SELECT \"a\"", Some("/* x */ SELECT \"a\"")),
        ("EXPLAIN ROUTE ;", Some(" ;")),
        ("EXPLAIN ROUTE", None),
        ("EXPLAIN ROUTE \n\0", None),
        ("EXPLAIN ROUTES SELECT 1", None),
        ("EXPLAIN SELECT 1", None),
        ("EXPLAINROUTE SELECT 1", None),
        ("-- EXPLAIN ROUTE SELECT 1", None),
    ] {
        assert_eq!(statement(request.as_bytes()), expected.map(str::as_bytes), "{request}");
    }
    assert_eq!(statement(b"EXPLAIN ROUTE \xff'"), Some(&b" \xff'"[..]), "in any encoding");
}

#[test]
fn it_is_not_carried_out() {
    assert_eq!(order(b"EXPLAIN ROUTE SHUTDOWN", &[]), None);
    assert!(says(b"EXPLAIN ROUTE SHUTDOWN").ends_with("\nC EXPLAIN\nZ I\n"));
    for request in ["EXPLAIN ROUTE", "EXPLAIN", "EXPLAIN SELECT 1"] {
        assert!(says(request.as_bytes()).starts_with("E ERROR 08P01 invalid"), "{request}");
    }
}

#[test]
fn each_pool_has_its_own_answer() {
    let mut snapshot = snapshot();
    snapshot.pools[0].rules.unshared = Some(Unshared::Off);
    let told = |text: &str| says_with(text.as_bytes(), &snapshot, &Rates::new());
    let unknown = "What stands behind the names of the database is not known; or a name in the \
                   text goes beyond ASCII, and client and database are not both in UTF-8.";
    assert_eq!(
        told("EXPLAIN ROUTE SELECT 1"),
        format!(
            "T database/s user/s shared/s rule/s pins/s policy/s because/s\n\
             D app|bob|no|pipelining is off. {unknown}|NULL|NULL|NULL\n\
             D app|alice|no|{unknown}|NULL|NULL|NULL\nC EXPLAIN\nZ I\n"
        )
    );
}

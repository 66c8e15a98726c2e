//! The lists of PostgreSQL's own functions, against a server.
//!
//! What a newer PostgreSQL has besides is not shared until it stands on one of the lists: the
//! message of this test says which names those are.

use std::collections::BTreeSet;

use pgweir_sql::{EXCEPTIONS, Exception, quiet_functions};

use crate::stage::{CLUSTER, superuser};

/// Functions that a text can call: types' own ones and those of `internal` arguments are not looked
/// at, and so not shared.
const CALLED: &str = "
    FROM pg_proc p WHERE p.oid < 16384
    AND pronamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
    AND 'internal'::regtype <> ALL (proargtypes::oid[])
    AND (SELECT typname !~ '(internal|trigger|_handler)$' FROM pg_type t WHERE t.oid = prorettype)
    AND NOT EXISTS (SELECT FROM pg_type WHERE p.oid IN
        (typinput, typoutput, typsend, typreceive, typmodin, typmodout))";

#[test]
fn each_function_stands_on_one_list() {
    let mut session = superuser(&CLUSTER, "postgres");
    let quiet: BTreeSet<_> = quiet_functions().map(str::to_owned).collect();
    let exceptions: BTreeSet<_> =
        EXCEPTIONS.iter().flat_map(Exception::names).map(str::to_owned).collect();
    let known: BTreeSet<_> = quiet.union(&exceptions).cloned().collect();
    let called = session.query(&format!("SELECT DISTINCT proname::text {CALLED}"));
    let missing: Vec<_> = called.into_iter().filter(|name| !known.contains(name)).collect();
    assert!(missing.is_empty(), "on neither list: {}", missing.join(" "));
}

/// What is volatile does more than compute, unless somebody has looked at it.
#[test]
fn quiet_functions_that_are_volatile_are_known() {
    let mut session = superuser(&CLUSTER, "postgres");
    let quiet: BTreeSet<_> = quiet_functions().collect();
    let volatile = session.query(&format!(
        "SELECT DISTINCT proname::text {CALLED} AND provolatile = 'v'
         AND proname !~ '^pg_|^(clock_timestamp|gen_random_uuid|random|timeofday|txid_status)$'"
    ));
    let both: Vec<_> = volatile.iter().filter(|name| quiet.contains(name.as_str())).collect();
    assert!(both.is_empty(), "{both:?}");
}

/// A view of PostgreSQL's that calls an exception is one itself, unless it hides other sessions'
/// temporary tables by that.
#[test]
fn views_are_what_their_functions_are() {
    let mut session = superuser(&CLUSTER, "postgres");
    let exceptions: BTreeSet<_> = EXCEPTIONS.iter().flat_map(Exception::names).collect();
    let views = session.query(
        "WITH RECURSIVE calls(view, of) AS (
            SELECT ev_class, m[2]::oid::regproc::text FROM pg_rewrite,
                LATERAL regexp_matches(ev_action::text, ':(funcid) ([0-9]+)', 'g') AS m
            WHERE ev_class < 16384
         UNION SELECT r.ev_class, of FROM calls, pg_rewrite r
            WHERE r.ev_class < 16384 AND r.ev_class <> view
            AND r.ev_action::text ~ (':relid ' || view || ' '))
         SELECT DISTINCT relname || ' ' || of FROM calls JOIN pg_class c ON c.oid = view
         WHERE of NOT IN ('pg_is_other_temp_schema', 'pg_my_temp_schema')",
    );
    for row in views {
        let (view, function) = row.split_once(' ').unwrap();
        let is_exception = exceptions.contains(function);
        assert!(!is_exception || exceptions.contains(view), "{view} calls {function}");
    }
}

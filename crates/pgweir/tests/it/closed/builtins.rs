//! The lists of PostgreSQL's own functions, against a server.
//!
//! What a newer PostgreSQL has besides is not shared until it stands on one of the lists: the
//! message of this test says which names those are.

use std::collections::BTreeSet;

use pgweir_sql::{EXCEPTIONS, Exception, Sharing, quiet_functions};

use super::{begun, change_within, sharing, state};
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

/// Each is called with something for each argument, and neither its session nor its transaction is
/// changed by that.
#[test]
fn quiet_functions_change_nothing() {
    let quiet: BTreeSet<_> = quiet_functions().collect();
    let mut session = superuser(&CLUSTER, "postgres");
    let functions = session.query(&format!(
        "SELECT concat_ws('|', pronamespace::regnamespace, proname, prokind,
            (SELECT string_agg(format_type(type, NULL), ',' ORDER BY n)
             FROM unnest(proargtypes::oid[]) WITH ORDINALITY AS argument(type, n)))
         {CALLED} AND prokind <> 'p' AND NOT EXISTS
            (SELECT FROM pg_aggregate WHERE aggfnoid = p.oid AND aggkind <> 'n')
         ORDER BY proname, 1"
    ));
    let calls: Vec<String> = functions
        .iter()
        .map(|function| function.split('|').collect::<Vec<_>>())
        .filter(|parts| quiet.contains(parts[1]))
        .map(|parts| call(parts[0], parts[1], parts[2], parts.get(3).copied().unwrap_or_default()))
        .collect();
    let mut carried_out = 0;
    let mut before = state(&mut session);
    // To look at all of a session takes longer than a call.
    for some in calls.chunks(20) {
        carried_out += some.iter().filter(|call| session.try_query(call).is_ok()).count();
        if state(&mut session) != before {
            some.iter().for_each(|call| changes_nothing(call));
            panic!("together these change a session: {some:?}");
        }
        before = state(&mut session);
    }
    let mut within = begun("postgres", "");
    for call in &calls {
        if sharing("UTF8", call.as_bytes()) == Sharing::Read {
            let (change, _) = change_within(&mut within, call.as_bytes());
            assert_eq!(change, None, "{call}");
        }
    }
    assert!(carried_out > calls.len() / 2, "only {carried_out} of {}", calls.len());
}

fn changes_nothing(call: &str) {
    let mut session = begun("postgres", "");
    let before = state(&mut session);
    let _refused_or_not = session.try_query(call);
    assert_eq!(state(&mut session), before, "{call}");
}

fn call(schema: &str, name: &str, kind: &str, types: &str) -> String {
    let arguments: Vec<_> = types.split(',').filter(|it| !it.is_empty()).map(sample).collect();
    let over = if kind == "w" { " OVER ()" } else { "" };
    format!("SELECT {schema}.\"{name}\"({}){over}", arguments.join(", "))
}

/// A value of a type, by which most functions find something to do.
fn sample(of: &str) -> String {
    let text = match of {
        "\"any\"" | "anyelement" | "anynonarray" | "anycompatible" => return "1".to_owned(),
        "anycompatiblenonarray" => return "1".to_owned(),
        "anyarray" | "anycompatiblearray" => return "ARRAY[1, 2]".to_owned(),
        "anyrange" | "anycompatiblerange" => return "int4range(1, 5)".to_owned(),
        "anymultirange" | "anycompatiblemultirange" => "{[1,5)}",
        "record" => return "ROW(1, 'a')".to_owned(),
        "boolean" => "true",
        "smallint" | "integer" | "bigint" | "xid" | "xid8" | "cid" | "money" => "1",
        "real" | "double precision" | "numeric" => "0.5",
        "oid" | "regclass" => "1259",
        "regtype" => "23",
        "regproc" => "abs",
        "regprocedure" => "lower(text)",
        "regnamespace" => "pg_catalog",
        "regconfig" => "english",
        "regdictionary" => "simple",
        "bytea" => "\\x0102",
        "bit" | "bit varying" => "1",
        "date" | "timestamp without time zone" | "timestamp with time zone" => "2024-02-29",
        "time without time zone" | "time with time zone" => "12:00",
        "interval" => "1 day",
        "inet" | "cidr" => "10.0.0.0/8",
        "macaddr" => "08:00:2b:01:02:03",
        "macaddr8" => "08:00:2b:01:02:03:04:05",
        "json" | "jsonb" => "{\"a\": [1]}",
        "jsonpath" => "$.a",
        "uuid" => "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "xml" => "<a/>",
        "point" => "(1,2)",
        "box" | "lseg" => "((0,0),(1,1))",
        "path" | "polygon" => "((0,0),(1,1),(2,0))",
        "line" => "{1,2,3}",
        "circle" => "<(0,0),1>",
        "tid" => "(0,1)",
        "pg_lsn" => "0/10",
        "pg_snapshot" | "txid_snapshot" => "10:20:",
        "int4range" | "int8range" | "numrange" => "[1,5)",
        "int4multirange" | "int8multirange" | "nummultirange" => "{[1,5)}",
        "oidvector" | "int2vector" => "23",
        "text[]" | "integer[]" | "bigint[]" | "oid[]" => "{1}",
        // Of most other types this is one: text, names, words to be searched for.
        _ => "a",
    };
    format!("'{text}'::{}", if of.starts_with("any") { "int4multirange" } else { of })
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

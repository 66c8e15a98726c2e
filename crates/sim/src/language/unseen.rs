//! Functions of the made-up language, of which no text shows what they do.

use std::sync::Arc;

use pgweir_engine::Loud;
use pgweir_sql::{Catalogue, Kind, Object, Source};

/// A function that takes a lock of the session.
pub(super) const TAKES_LOCK: &str = "take_lock";

/// A function that creates a temporary table.
pub(super) const MAKES_TABLE: &str = "make_table";

/// What is in the catalogue of every database when it is read for the how-manieth time: the
/// functions that clients call, and one that is new.
pub(crate) fn loud(reading: u64) -> Arc<Loud> {
    let news = format!("news_{reading}");
    let functions = [
        (TAKES_LOCK, "SELECT pg_advisory_lock(1)"),
        (MAKES_TABLE, "CREATE TEMP TABLE t ()"),
        (&news, "SELECT pg_advisory_lock(1)"),
    ];
    let object = |(oid, (name, body)): (u32, (&str, &str))| Object {
        id: (Kind::Function, oid),
        name: name.to_owned(),
        source: Source::Sql(body.to_owned()),
        is_quiet: false,
    };
    let objects = (1..).zip(functions).map(object).collect();
    Arc::new(Catalogue { objects, uses: Vec::new() }.loud())
}

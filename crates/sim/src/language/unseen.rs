//! Functions of the made-up language, of which no text shows what they do.

/// A function that takes a lock of the session.
pub(super) const TAKES_LOCK: &str = "take_lock";

/// A function that creates a temporary table.
pub(super) const MAKES_TABLE: &str = "make_table";

/// What is in the catalogue of every database when it is read for the how-manieth time: the
/// functions that clients call, and one that is new. Each is a row of what pgweir asks for.
pub(crate) fn catalogue(reading: u64) -> Vec<[String; 7]> {
    let news = format!("news_{reading}");
    let functions = [
        (TAKES_LOCK, "SELECT pg_advisory_lock(1)"),
        (MAKES_TABLE, "CREATE TEMP TABLE t ()"),
        (&news, "SELECT pg_advisory_lock(1)"),
    ];
    let row = |(oid, (name, body)): (u32, (&str, &str))| {
        ["f", &oid.to_string(), "public", name, "sql", "0", body].map(str::to_owned)
    };
    (16_384..).zip(functions).map(row).collect()
}

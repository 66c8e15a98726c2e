//! Functions of the made-up language, of which no text shows what they do.

/// A function that takes a lock of the session.
pub(super) const TAKES_LOCK: &str = "take_lock";

/// A function that creates a temporary table.
pub(super) const MAKES_TABLE: &str = "make_table";

/// What is in the catalogue of every database when it is read for the how-manieth time: the
/// functions that clients call, and one that is new. `keeps_plans`: and one that keeps in its plan
/// what another one tells of a setting. Each is a row of what pgweir asks for.
pub(crate) fn catalogue(reading: u64, keeps_plans: bool) -> Vec<[String; 7]> {
    let news = format!("news_{reading}");
    let functions = [
        ("f", TAKES_LOCK, "sql", "SELECT pg_advisory_lock(1)"),
        ("f", MAKES_TABLE, "sql", "CREATE TEMP TABLE t ()"),
        ("f", &news, "sql", "SELECT pg_advisory_lock(1)"),
    ];
    let planned = [
        ("i", "tells", "sql", "SELECT current_setting('a.b')"),
        ("f", "keeps", "plpgsql", "BEGIN RETURN tells(); END"),
    ];
    let planned = planned.into_iter().filter(|_| keeps_plans);
    let row = |(oid, (kind, name, language, body)): (u32, (&str, &str, &str, &str))| {
        [kind, &oid.to_string(), "public", name, language, "0", body].map(str::to_owned)
    };
    (16_384..).zip(functions.into_iter().chain(planned)).map(row).collect()
}

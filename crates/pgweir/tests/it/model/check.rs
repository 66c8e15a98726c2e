//! What a session shows of itself.

use super::clauses::{CUSTOM, SETTINGS};
use super::pair::UNSEEN;

/// What a session has for which a pooled one keeps its server, as its twin says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Has {
    /// Locks, cursors, temporary tables, statements prepared in SQL.
    pub(super) state: u32,
    /// Statements, however prepared.
    pub(super) statements: u32,
    pub(super) channels: u32,
    /// Its encoding is not the one that new connections have.
    pub(super) encoding: bool,
}

/// A SELECT with a row for each thing that a session has or may have.
pub(super) fn question() -> String {
    let settings = SETTINGS.iter().map(|(name, _)| *name);
    let settings = settings.chain(["role", "session_authorization", "transaction_isolation"]);
    let mut rows: Vec<_> =
        settings.map(|name| format!("('{name}', current_setting('{name}'))")).collect();
    rows.extend(
        CUSTOM.map(|name| format!("('{name}', coalesce(current_setting('{name}', true), ''))")),
    );
    rows.push("('user', current_user || ' ' || session_user)".to_owned());
    rows.push(format!("('has', {STATE})"));
    rows.push(format!("('unseen', {OTHERS})"));
    format!("SELECT * FROM (VALUES {}) AS v(a, b)", rows.join(", "))
}

const STATE: &str = "concat_ws(' ', \
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()), \
    (SELECT count(*) FROM pg_cursors WHERE is_holdable), \
    (SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema()), \
    (SELECT count(*) FROM pg_prepared_statements WHERE from_sql))";

const OTHERS: &str = "concat_ws(' ', \
    (SELECT count(*) FROM pg_prepared_statements), \
    (SELECT count(*) FROM pg_listening_channels()), \
    (current_setting('client_encoding') <> 'UTF8')::int)";

/// Reads the answer of the twin; `None`: it was an error.
pub(super) fn has(lines: &[String]) -> Option<Has> {
    let numbers = |start: &str| -> Option<Vec<u32>> {
        let line = lines.iter().find_map(|line| line.strip_prefix(start))?;
        let line = line.trim().trim_matches('"');
        Some(line.split(' ').map(|number| number.parse().unwrap()).collect())
    };
    let state = numbers("DataRow \"has\"")?.iter().sum();
    let others = numbers(UNSEEN)?;
    let [statements, channels, encoding] = others[..] else { unreachable!() };
    Some(Has { state, statements, channels, encoding: encoding > 0 })
}

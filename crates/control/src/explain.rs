//! EXPLAIN ROUTE: what would become of a statement in each pool. PgBouncer has nothing like it.

use pgweir_engine::Snapshot;
use pgweir_wire::backend::Column;

use crate::table::{Table, text};

/// The statement of a request that is EXPLAIN ROUTE, as it stands there: it is SQL, and no word of
/// the console's.
pub(crate) fn statement(request: &[u8]) -> Option<&[u8]> {
    let rest = behind(behind(request, b"explain")?, b"route")?;
    let end = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let statement = &rest[..end];
    (!statement.trim_ascii().is_empty()).then_some(statement)
}

const ROUTES: [Column<'_>; 7] = [
    text("database"),
    text("user"),
    text("shared"),
    text("rule"),
    text("pins"),
    text("policy"),
    text("because"),
];

/// Appends RowDescription and a DataRow for each pool: what a text means depends on the names of
/// its database.
pub(crate) fn routes(statement: &[u8], snapshot: &Snapshot, out: &mut Vec<u8>) {
    let mut table = Table::new(out, &ROUTES);
    for pool in &snapshot.pools {
        let route = pool.rules.route(statement);
        let (kinds, policies): (Vec<_>, Vec<_>) =
            route.pins.iter().map(|(kind, policy)| (*kind, policy.name())).unzip();
        let joined = |words: &[&str]| (!words.is_empty()).then(|| words.join(", "));
        table.cell(&pool.database).cell(&pool.user);
        table.cell(route.sharing.as_ref().map_or("no", |access| access.name()));
        table.nullable(route.sharing.as_ref().err());
        table.nullable(joined(&kinds)).nullable(joined(&policies)).nullable(route.because);
        table.end_row();
    }
}

/// What stands behind a word at the front.
fn behind<'a>(request: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let (front, rest) = request.trim_ascii_start().split_at_checked(word.len())?;
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    let is_it = front.eq_ignore_ascii_case(word) && !rest.first().is_some_and(goes_on);
    is_it.then_some(rest)
}

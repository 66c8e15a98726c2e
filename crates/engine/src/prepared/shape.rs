//! What the rows of a statement are like.

use pgweir_wire::Malformed;
use pgweir_wire::backend::parse_row_description;

/// The names and types of a statement's columns, or that it has none.
///
/// PostgreSQL refuses to run a prepared statement whose rows are not what they were when it was
/// prepared (0A000, `RevalidateCachedQuery`, plancache.c), and compares just these: not from which
/// column of which table a value is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shape(Box<[u8]>);

impl Shape {
    /// Of a statement that returns no rows.
    pub(crate) fn of_none() -> Self {
        Self(Box::default())
    }

    /// As a RowDescription says it.
    pub(crate) fn of_rows(body: &[u8]) -> Result<Self, Malformed> {
        let mut columns = Vec::with_capacity(body.len());
        // A row without columns is not no row.
        columns.push(b'T');
        for column in parse_row_description(body)? {
            columns.extend_from_slice(column.name);
            columns.push(0);
            columns.extend_from_slice(&column.type_oid.to_be_bytes());
            columns.extend_from_slice(&column.type_modifier.to_be_bytes());
        }
        Ok(Self(columns.into()))
    }

    /// Whether a statement returns rows of which it makes a difference what they are like.
    pub(crate) fn has_rows(&self) -> bool {
        !self.0.is_empty()
    }
}

//! What the parameters and the rows of a statement are like.

use pgweir_wire::Malformed;
use pgweir_wire::backend::parse_row_description;

/// The types of a statement's parameters, and the names and types of its columns, or that it has
/// none.
///
/// PostgreSQL refuses to run a prepared statement whose rows are not what they were when it was
/// prepared (0A000, `RevalidateCachedQuery`, plancache.c), and compares just these: not from which
/// column of which table a value is. Its parameters stay what they were, whatever they would be
/// taken for by now: clients send values as what they were told that they are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    parameters: Box<[u8]>,
    columns: Box<[u8]>,
}

impl Shape {
    /// Of a statement that returns no rows. `parameters`: the body of its ParameterDescription.
    pub(crate) fn of_none(parameters: Box<[u8]>) -> Self {
        Self { parameters, columns: Box::default() }
    }

    /// As a RowDescription says it.
    pub(crate) fn of_rows(parameters: Box<[u8]>, body: &[u8]) -> Result<Self, Malformed> {
        let mut columns = Vec::with_capacity(body.len());
        // A row without columns is not no row.
        columns.push(b'T');
        for column in parse_row_description(body)? {
            columns.extend_from_slice(column.name);
            columns.push(0);
            columns.extend_from_slice(&column.type_oid.to_be_bytes());
            columns.extend_from_slice(&column.type_modifier.to_be_bytes());
        }
        Ok(Self { parameters, columns: columns.into() })
    }

    /// Whether a statement returns rows of which it makes a difference what they are like.
    pub(crate) fn has_rows(&self) -> bool {
        !self.columns.is_empty()
    }

    /// Whether there is anything about a statement that could be otherwise than it was.
    pub(crate) fn is_something(&self) -> bool {
        self.has_rows() || self.parameters.iter().any(|&byte| byte != 0)
    }

    /// Whether a client that was told this may use a statement that is like the other.
    pub(crate) fn allows(&self, other: &Self) -> bool {
        self.parameters == other.parameters && (!self.has_rows() || self.columns == other.columns)
    }

    /// The types of its parameters, as a Parse ends in them.
    pub(crate) fn parameters(&self) -> &[u8] {
        &self.parameters
    }
}

/// What stands behind the name in a Parse, with these types for its parameters.
pub(crate) fn with_parameters(definition: &[u8], parameters: &[u8]) -> Vec<u8> {
    let end = definition.iter().position(|&byte| byte == 0).unwrap_or(definition.len());
    [&definition[..end], b"\0", parameters].concat()
}

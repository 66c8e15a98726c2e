//! What a RowDescription says.

use crate::Malformed;
use crate::fields::Fields;

/// A column of the rows that a statement returns, as far as it is part of what the statement is:
/// which column of which table it comes from, and in which format, is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnType<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// The OID of its type.
    pub type_oid: u32,
    /// The type's modifier, such as the length of a `varchar`; -1 for none.
    pub type_modifier: i32,
}

/// Reads the body of a RowDescription: its columns, in order.
pub fn parse_row_description(body: &[u8]) -> Result<Vec<ColumnType<'_>>, Malformed> {
    let mut fields = Fields::new(body);
    let columns = fields.int16()?;
    // The bytes of each are there, so a wrong number takes no memory.
    let mut parsed = Vec::new();
    for _ in 0..columns {
        let name = fields.string()?;
        let (_table, _column) = (fields.int32()?, fields.int16()?);
        let type_oid = fields.int32()? as u32;
        let _length = fields.int16()?;
        let type_modifier = fields.int32()?;
        let _format = fields.int16()?;
        parsed.push(ColumnType { name, type_oid, type_modifier });
    }
    fields.end()?;
    Ok(parsed)
}

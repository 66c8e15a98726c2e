//! Results as messages.

use std::fmt::{Display, Write};
use std::ops::Range;

use pgweir_wire::backend::{Column, data_row, row_description};

/// A result that is being written: its columns are there, its rows follow.
pub(crate) struct Table<'a> {
    out: &'a mut Vec<u8>,
    columns: usize,
    /// The text of the row under way, cell behind cell.
    text: String,
    cells: Vec<Option<Range<usize>>>,
}

impl<'a> Table<'a> {
    /// Appends the RowDescription.
    pub(crate) fn new(out: &'a mut Vec<u8>, columns: &[Column<'_>]) -> Self {
        row_description(out, columns);
        Self { out, columns: columns.len(), text: String::new(), cells: Vec::new() }
    }

    /// Adds a value to the row under way.
    pub(crate) fn cell(&mut self, value: impl Display) -> &mut Self {
        let start = self.text.len();
        // Writing to a String fails only if the value's Display does, and none here does.
        let _ = write!(self.text, "{value}");
        self.cells.push(Some(start..self.text.len()));
        self
    }

    /// Adds several values.
    pub(crate) fn cells(&mut self, values: impl IntoIterator<Item: Display>) -> &mut Self {
        for value in values {
            self.cell(value);
        }
        self
    }

    /// Adds a value, or NULL for `None`.
    pub(crate) fn nullable(&mut self, value: Option<impl Display>) -> &mut Self {
        match value {
            Some(value) => self.cell(value),
            None => {
                self.cells.push(None);
                self
            }
        }
    }

    /// Appends the row.
    pub(crate) fn end_row(&mut self) {
        debug_assert_eq!(self.cells.len(), self.columns, "a row has every column");
        let text = &self.text;
        let cells = self.cells.iter();
        data_row(self.out, cells.map(|cell| cell.clone().map(|range| text[range].as_bytes())));
        self.cells.clear();
        self.text.clear();
    }
}

/// A column of type text.
pub(crate) const fn text(name: &str) -> Column<'_> {
    Column { name, type_oid: 25, type_len: -1 }
}

/// A column of type int4.
pub(crate) const fn int4(name: &str) -> Column<'_> {
    Column { name, type_oid: 23, type_len: 4 }
}

/// A column of type int8.
pub(crate) const fn int8(name: &str) -> Column<'_> {
    Column { name, type_oid: 20, type_len: 8 }
}

/// A column of type numeric.
pub(crate) const fn numeric(name: &str) -> Column<'_> {
    Column { name, type_oid: 1700, type_len: -1 }
}

/// Appends a NoticeResponse of severity NOTICE.
pub(crate) fn notice(out: &mut Vec<u8>, message: &str) {
    out.push(b'N');
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    for (field, value) in [(b'S', "NOTICE"), (b'V', "NOTICE"), (b'C', "00000"), (b'M', message)] {
        out.push(field);
        out.extend_from_slice(value.as_bytes());
        out.push(0);
    }
    out.push(0);
    // A notice of ours is a line long, so its length fits.
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

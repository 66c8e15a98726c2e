//! Literals of prepared statements, and the settings by which they are read.
//!
//! PostgreSQL reads a literal when it analyses a statement, and it analyses a prepared one again
//! whenever something has changed about its tables: an ANALYZE is enough (`RevalidateCachedQuery`,
//! plancache.c). It does so under the settings of then, and what it has read stays for whoever uses
//! the statement next. So one that was used where a client had changed such a setting for its
//! transaction is made anew for others. (That it was read under another `search_path`, or for
//! another role, PostgreSQL sees itself.)

/// What stands in the names of those settings, and of no other that a text is likely to name:
/// `TimeZone` and TIME ZONE, `timezone_abbreviations`, `DateStyle`, `IntervalStyle`,
/// `array_nulls`, `lc_monetary`, `xmloption`, XML OPTION and `xmlbinary`, `transform_null_equals`.
/// Others decide what a constant is that PostgreSQL computes of a literal when it plans
/// (`'\xff'::bytea::text`): `bytea_output`, `extra_float_digits`, `quote_all_identifiers`. And
/// there is what a name may be written with, or behind, so that it cannot be seen.
const SETTINGS: [&[u8]; 12] = [
    b"zone",
    b"style",
    b"array_nulls",
    b"lc_monetary",
    b"xml",
    b"transform_null_equals",
    b"bytea_output",
    b"extra_float_digits",
    b"quote_all_identifiers",
    b"pg_settings",
    b"u&",
    b"\\",
];

/// Whether a text that changes settings may change by which literals are read.
pub(crate) fn may_change_reading(text: &[u8]) -> bool {
    SETTINGS.iter().any(|part| contains(text, part))
}

/// Whether a statement may have a literal that is read by one of them. `= NULL` is one to
/// `transform_null_equals`, and a fraction to `extra_float_digits`.
pub(crate) fn has_literals(statement: &[u8]) -> bool {
    let is_literal = |pair: &[u8]| match (pair[0], pair[1]) {
        (b'$', behind) => !behind.is_ascii_digit(),
        (b'.', digit) | (digit, b'.') => digit.is_ascii_digit(),
        _ => false,
    };
    let is_there = statement.windows(2).any(is_literal);
    is_there || statement.contains(&b'\'') || contains(statement, b"null")
}

/// `part` is in lower case.
fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|piece| piece.eq_ignore_ascii_case(part))
}

#[cfg(test)]
mod tests;

//! SASLprep (RFC 4013) with the deviations of PostgreSQL's `pg_saslprep`.
//!
//! The function of this name in `stringprep` follows the RFC, which prepares about a thousand
//! characters in another way than PostgreSQL does (squared letters, subscripts, Hebrew presentation
//! forms, …): whoever has one of them in a password could log in directly but not through us. So
//! only the tables are from there, and the steps are here.

use std::borrow::Cow;

use stringprep::tables;
use unicode_normalization::UnicodeNormalization;

/// The bytes of which SCRAM keys are made: `password` prepared, or as it is if it is ASCII, no
/// UTF-8 or not allowed by SASLprep (`src/common/saslprep.c` and its callers).
pub(super) fn prepare(password: &[u8]) -> Cow<'_, [u8]> {
    match str::from_utf8(password) {
        Ok(text) if !text.is_ascii() => match normalize(text) {
            Some(prepared) => Cow::Owned(prepared.into_bytes()),
            None => Cow::Borrowed(password),
        },
        _ => Cow::Borrowed(password),
    }
}

/// `None` if SASLprep does not allow `password`. PostgreSQL looks at the characters before they are
/// normalized, where the RFC looks at those that come out.
fn normalize(password: &str) -> Option<String> {
    let mapped: Vec<char> = password
        .chars()
        .map(|c| if tables::non_ascii_space_character(c) { ' ' } else { c })
        .filter(|&c| !tables::commonly_mapped_to_nothing(c))
        .collect();
    let allowed = !mapped.iter().copied().any(is_prohibited) && is_one_direction(&mapped);
    (allowed && !mapped.is_empty()).then(|| mapped.into_iter().nfkc().collect())
}

/// RFC 4013 §2.3 and §2.5. Surrogates are no `char`s, and spaces were mapped before.
fn is_prohibited(c: char) -> bool {
    tables::ascii_control_character(c)
        || tables::non_ascii_control_character(c)
        || tables::private_use(c)
        || tables::non_character_code_point(c)
        || tables::inappropriate_for_plain_text(c)
        || tables::inappropriate_for_canonical_representation(c)
        || tables::change_display_properties_or_deprecated(c)
        || tables::tagging_character(c)
        || tables::unassigned_code_point(c)
}

/// RFC 3454 §6: text with a right-to-left character has no left-to-right one, and it begins and
/// ends with a right-to-left one.
fn is_one_direction(text: &[char]) -> bool {
    let is_right_to_left = |c: &char| tables::bidi_r_or_al(*c);
    !text.iter().any(is_right_to_left)
        || !text.iter().any(|c| tables::bidi_l(*c))
            && text.first().is_some_and(is_right_to_left)
            && text.last().is_some_and(is_right_to_left)
}

#[cfg(test)]
mod tests;

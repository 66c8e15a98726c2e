//! Whether a client's encoding lets its text be read byte by byte.

use memchr::memchr;

#[cfg(test)]
mod tests;

/// How the bytes of a client's text relate to ASCII.
///
/// PostgreSQL converts a query to the database's encoding before it looks for quotes. In every
/// encoding that a database may have, a byte below 0x80 is that ASCII character, and no other
/// character becomes one. Not so in the encodings that only clients may have. (PostgreSQL's
/// manual, "Character Set Support"; `PG_ENCODING_BE_LAST` in `pg_wchar.h`.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8 in a database that is in UTF-8 too: names are those that the catalogue has been read
    /// with, byte for byte.
    Exact,
    /// Every byte below 0x80 is that ASCII character.
    #[default]
    Superset,
    /// The later bytes of a character may be digits, letters or some of the signs above them, `\`
    /// and `[` among them, but no quote, `$`, `;`, `(`, `/`, `*` or `-`. So the text can be read
    /// as if it were ASCII, but for two things that make it unclear: a backslash may be none, and
    /// a `$tag$` may belong to the name before it.
    Overlapping,
    /// Nothing is known but that ASCII alone is ASCII: any other byte makes the text unclear.
    /// SHIFT_JIS_2004 is such an encoding, since 0x81 0x5f of it becomes a backslash in UTF-8.
    Opaque,
}

impl Encoding {
    /// The kind of an encoding by the name that the server reports in the ParameterStatus of
    /// `client_encoding`. A name that is not known counts as [`Encoding::Opaque`].
    pub fn named(name: &[u8]) -> Self {
        match name {
            b"UTF8" => Self::Exact,
            b"SQL_ASCII" | b"MULE_INTERNAL" | b"KOI8R" | b"KOI8U" => Self::Superset,
            b"EUC_CN" | b"EUC_JIS_2004" | b"EUC_JP" | b"EUC_KR" | b"EUC_TW" => Self::Superset,
            b"BIG5" | b"GB18030" | b"GBK" | b"JOHAB" | b"SJIS" | b"UHC" => Self::Overlapping,
            _ if is_numbered(name) => Self::Superset,
            _ => Self::Opaque,
        }
    }

    /// The same for a client of a database in this encoding. In encodings of one byte a character
    /// names that are not quoted are folded by the locale, not in ASCII alone
    /// (`downcase_identifier`, scansup.c); of SQL_ASCII nobody knows what its names mean.
    pub fn within(self, database: &[u8]) -> Self {
        match self {
            Self::Exact if database != b"UTF8" => Self::Superset,
            Self::Exact | Self::Superset | Self::Overlapping | Self::Opaque => self,
        }
    }

    /// Whether a piece of text must not be read as if its bytes were ASCII characters.
    pub(crate) fn obscures(self, text: &[u8]) -> bool {
        match self {
            Self::Exact | Self::Superset => false,
            Self::Overlapping => memchr(b'\\', text).is_some(),
            Self::Opaque => !text.is_ascii(),
        }
    }
}

/// What a name beyond ASCII may become in a database in an encoding of one byte a character, if
/// that is another one: the small letter of `İ` is `i`. No such encoding has another character
/// whose small letter is in ASCII. In LATIN5 and WIN1254 it is 0xdd, in LATIN3 0xa9, and a client
/// may write it in UTF-8.
pub(crate) fn folded(name: &[u8]) -> Option<Vec<u8>> {
    let mut folded = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&byte, behind)) = rest.split_first() {
        let in_utf_8 = rest.strip_prefix("\u{130}".as_bytes());
        let in_one_byte = matches!(byte, 0xa9 | 0xdd).then_some(behind);
        let is_one = in_utf_8.or(in_one_byte);
        folded.push(if is_one.is_some() { b'i' } else { byte });
        rest = is_one.unwrap_or(behind);
    }
    (folded != name).then_some(folded)
}

/// The families of one-byte encodings: LATIN1 to LATIN10, ISO_8859_5 to 8, WIN866 to WIN1258.
fn is_numbered(name: &[u8]) -> bool {
    [b"LATIN".as_slice(), b"ISO_8859_", b"WIN"].into_iter().any(|family| {
        name.strip_prefix(family)
            .is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
    })
}

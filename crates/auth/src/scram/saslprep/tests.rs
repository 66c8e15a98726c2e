use super::*;

/// What `pg_saslprep` of PostgreSQL 15 makes of these passwords. `None` is "prohibited", where its
/// callers take the password as it is.
const POSTGRESQL: [(&str, Option<&str>); 31] = [
    // The examples of RFC 4013 §3, of which PostgreSQL does not look at the one in ASCII.
    ("I\u{ad}X", Some("IX")),
    ("user", Some("user")),
    ("USER", Some("USER")),
    ("\u{aa}", Some("a")),
    ("\u{2168}", Some("IX")),
    ("\u{7}", Some("\u{7}")),
    ("\u{627}\u{31}\u{ad}", None),
    // Mapped to nothing, to a space, and to nothing at all.
    ("\u{ad}pw", Some("pw")),
    ("pass\u{a0}word", Some("pass word")),
    ("\u{200b}x", Some(" x")),
    ("\u{ad}", None),
    // Normalized.
    ("e\u{301}", Some("\u{e9}")),
    ("\u{212b}", Some("\u{c5}")),
    ("\u{fb01}", Some("fi")),
    // Prohibited, so that the soft hyphen stays: each kind, and what Unicode 3.2 did not have.
    ("\u{7}\u{ad}", None),
    ("\u{85}\u{ad}", None),
    ("\u{e000}\u{ad}", None),
    ("\u{fdd0}\u{ad}", None),
    ("\u{fffd}\u{ad}", None),
    ("\u{2ff0}\u{ad}", None),
    ("\u{e0041}\u{ad}", None),
    ("\u{1f600}\u{ad}", None),
    // Right to left.
    ("\u{5d0} \u{5d1}\u{ad}", Some("\u{5d0} \u{5d1}")),
    ("\u{627}\u{31}\u{628}\u{ad}", Some("\u{627}\u{31}\u{628}")),
    ("\u{5d0}a\u{5d0}\u{ad}", None),
    ("\u{5d0}\u{31}\u{ad}", None),
    ("\u{31}\u{5d0}\u{ad}", None),
    // Where looking at what comes out of the normalization, as the RFC does, ends otherwise.
    ("a\u{340}", None),
    ("\u{1f130}bc", None),
    ("\u{1d62}", None),
    ("\u{fb49}", Some("\u{5e9}\u{5bc}")),
];

#[test]
fn passwords_are_prepared_as_postgresql_does() {
    for (password, expected) in POSTGRESQL {
        let prepared = prepare(password.as_bytes());
        let expected = expected.unwrap_or(password);
        assert_eq!(prepared, expected.as_bytes(), "{}", password.escape_unicode());
    }
}

#[test]
fn what_is_no_utf_8_stays_as_it_is() {
    for password in [&b"caf\xe9"[..], b"\xff\xfe", b"\xc2\xad\xc2", b"\xed\xa0\x80"] {
        assert_eq!(prepare(password), password);
    }
}

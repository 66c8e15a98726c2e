//! What encodings make unclear.

use crate::classify::Classifier;
use crate::encoding::Encoding;
use crate::pins::{PinReason, Pins};

#[test]
fn characters_that_contain_ascii_are_unclear() {
    let pins = |encoding: &str, text: &[u8]| {
        let mut classifier = Classifier::in_encoding(Encoding::named(encoding.as_bytes()));
        classifier.feed(text);
        classifier.finish()
    };
    for (encoding, text) in [
        // One character, 0x95 0x5c, whose second byte looks like a backslash.
        ("SJIS", b"SELECT E'\x95\x5c'; SET x = 1; --'".as_slice()),
        // One name, 0x81 0x5b $a$, which opens no literal.
        ("SJIS", b"SELECT 1 \x81\x5b$a$; SET x = 1"),
        // One character, 0x81 0x5f, that becomes a backslash.
        ("SHIFT_JIS_2004", b"SELECT E'\x81\x5f', ' ; SET x = 1; --'"),
    ] {
        assert_eq!(pins("UTF8", text), Pins::NONE, "{text:?}");
        assert!(pins(encoding, text).contains(PinReason::Unclear), "{text:?}");
    }
    assert_eq!(pins("SJIS", b"SELECT '\x95\x41', $1"), Pins::NONE);
    assert_eq!(pins("SHIFT_JIS_2004", b"SELECT '\\', $1"), Pins::NONE);
}

/// In Turkish, in a database of one byte a character.
#[test]
fn a_name_may_be_folded_to_ascii() {
    let pins = |text: &[u8], encoding| {
        let mut classifier = Classifier::in_encoding(encoding);
        classifier.feed(text);
        classifier.finish().to_string()
    };
    for (text, expected) in [
        (b"SELECT SET_CONF\xddG('a', 'b', false)".as_slice(), "unclear"),
        (b"select set_conf\xa9g('a', 'b', false)", "unclear"),
        ("SELECT pg_adv\u{130}sory_lock(1)".as_bytes(), "unclear"),
        ("SELECT \"set_conf\u{130}g\"('a')".as_bytes(), ""),
        ("SELECT '\u{130}', \u{130}sim, ger\u{e4}t FROM \u{130}l".as_bytes(), ""),
    ] {
        assert_eq!(pins(text, Encoding::Superset), expected, "{text:?}");
        assert_eq!(pins(text, Encoding::Exact), "", "{text:?}");
    }
}

//! What stands in the input of a client, before and behind a unit: where a unit ends, what more
//! there is, what may rest on one that is not run; and how what clients say is put into our SQL.
//!
//! What holds: bytes that come later do not take back what was told from those in front of them;
//! what was looked at is not looked at again, and nothing else comes of that; and a text in SQL of
//! ours ends where it ends, and is what it was.

use pgweir_engine::readers;

use crate::cut::Cut;

/// Messages, one behind the other.
pub(crate) fn run(data: &[u8]) {
    let whole = is_whole(data);
    let (more, front) = (readers::more_follows(data), readers::front(data));
    let asks = readers::asks_for_more(data);
    let mut scanned = 0;
    let mut end = 0;
    for piece in Cut::random(data).pieces(data) {
        end += piece.len();
        let prefix = &data[..end];
        let is_whole_now = readers::unit_is_whole(prefix, &mut scanned);
        assert_eq!(is_whole_now, is_whole(prefix), "{end} bytes, read on");
        assert!(whole || !is_whole_now, "the unit of {end} bytes is longer than that");
        assert!(more || !readers::more_follows(prefix), "less follows than {end} bytes have");
        assert!(asks || !readers::asks_for_more(prefix), "less is asked for than in {end} bytes");
        let now = readers::front(prefix);
        let (Some(now), Some(front)) = (now, &front) else {
            assert!(now.is_none() || front.is_some(), "a message of {end} bytes is none");
            continue;
        };
        // Where too little has come to tell it is taken to be so.
        assert!(!front.chains || now.chains, "{end} bytes are said to chain nothing");
        assert!(!front.bears || now.bears, "nothing is said to rest on {end} bytes");
    }
    assert!(scanned <= data.len());
    quoted(data);
}

fn is_whole(bytes: &[u8]) -> bool {
    readers::unit_is_whole(bytes, &mut 0)
}

/// A text without zero bytes, as they all are, in SQL of ours.
fn quoted(data: &[u8]) {
    let text: Vec<u8> = data.iter().copied().filter(|byte| *byte != 0).collect();
    let literal = readers::literal(&text);
    assert!(literal.is_ascii());
    assert_eq!(unquoted(&literal).as_deref(), Some(&text[..]), "{}", literal.escape_ascii());
    let name = readers::name(&text);
    let inner = name.strip_prefix(b"\"").and_then(|name| name.strip_suffix(b"\""));
    let inner = inner.expect("it stands in quotes");
    assert_eq!(undoubled(inner, b'"').as_deref(), Some(&text[..]), "{}", name.escape_ascii());
}

/// What a literal says, where backslashes mean something and where they do not alike; `None`: not
/// the same, or more than a literal.
fn unquoted(literal: &[u8]) -> Option<Vec<u8>> {
    if let Some(inner) = literal.strip_prefix(b"E'") {
        return undoubled(&undoubled(inner.strip_suffix(b"'")?, b'\'')?, b'\\');
    }
    if let Some(inner) = literal.strip_prefix(b"'") {
        let inner = undoubled(inner.strip_suffix(b"'")?, b'\'')?;
        return (!inner.contains(&b'\\')).then_some(inner);
    }
    let hex = literal.strip_prefix(b"pg_catalog.convert_from(pg_catalog.decode('")?;
    let hex = hex.strip_suffix(b"', 'hex'), pg_catalog.getdatabaseencoding())")?;
    let digits = std::str::from_utf8(hex).ok()?;
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok())
        .collect()
}

/// Takes one of each two such bytes away; `None`: there is one by itself.
fn undoubled(bytes: &[u8], doubled: u8) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut bytes = bytes.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte == doubled && bytes.next() != Some(doubled) {
            return None;
        }
        out.push(byte);
    }
    Some(out)
}

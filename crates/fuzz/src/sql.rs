//! The text of a query, which decides whether a server may be lent to somebody else.

use std::sync::{Arc, LazyLock};

use pgweir_sql::{
    Catalogue, Classifier, Encoding, Loud, PinReason, Pins, Sharing, begins, chains, classify,
    rolls_back, search_path,
};

use crate::cut::Cut;

const ENCODINGS: [Encoding; 3] = [Encoding::Superset, Encoding::Overlapping, Encoding::Opaque];

/// Any text, in any encoding.
pub(crate) fn run(text: &[u8]) {
    for encoding in ENCODINGS {
        let whole = in_pieces(encoding, text, Cut::Whole);
        assert_eq!(in_pieces(encoding, text, Cut::Bytes), whole, "byte by byte, {encoding:?}");
        let cut = Cut::random(text);
        assert_eq!(in_pieces(encoding, text, cut), whole, "cut at random, {encoding:?}");
        for at in 0..text.len().min(32) {
            let mut classifier = Classifier::in_encoding(encoding).knowing(&EMPTY);
            classifier.feed(&text[..at]);
            classifier.feed(&text[at..]);
            assert_eq!(said(classifier), whole, "cut at {at}, {encoding:?}");
        }
    }
    let plain = in_pieces(Encoding::Superset, text, Cut::Whole);
    assert_eq!(classify(text), plain.0);
    if text.is_ascii() && !text.contains(&b'\\') {
        // Whatever the client's encoding, such a text is what it looks like, or it is unclear.
        for encoding in ENCODINGS {
            let said = in_pieces(encoding, text, Cut::Whole);
            let unclear = said.0.contains(PinReason::Unclear);
            assert!(unclear || said == plain, "{said:?} in {encoding:?}, {plain:?} as it looks");
        }
    }
    let chained = chains(text, true);
    assert!(chained.is_some());
    assert!(!(rolls_back(text) && chained == Some(true)));
    for at in 0..text.len().min(32) {
        let early = chains(&text[..at], false);
        assert!(early.is_none() || early == chained, "cut at {at}");
    }
    assert_eq!(begins(&[b"/**/", text].concat()), begins(text), "behind a comment");
    let said = |name: &[u8]| text.to_ascii_lowercase().windows(name.len()).any(|its| its == name);
    assert!(!begins(text) || said(b"begin") || said(b"start") || text.contains(&b'\\'));
    // As the value of a setting, and as the name of an encoding.
    assert!(search_path(text) == Pins::NONE || said(b"pg_temp"));
    let ascii = b"SELECT 'abc', $1 -- plain";
    assert_eq!(in_pieces(Encoding::named(text), ascii, Cut::Whole).0, classify(ascii));
}

/// The catalogue of a database in which there is nothing.
static EMPTY: LazyLock<Arc<Loud>> = LazyLock::new(|| Arc::new(Catalogue::default().loud()));

fn in_pieces(encoding: Encoding, text: &[u8], cut: Cut) -> (Pins, Sharing) {
    let mut classifier = Classifier::in_encoding(encoding).knowing(&EMPTY);
    for piece in cut.pieces(text) {
        classifier.feed(piece);
    }
    said(classifier)
}

fn said(classifier: Classifier) -> (Pins, Sharing) {
    let heard = classifier.finish_hearing();
    let is_alone = matches!(heard.sharing, Sharing::Alone(_));
    assert!(is_alone || heard.pins.is_empty() && heard.statements == 1, "{:?}", heard.sharing);
    (heard.pins, heard.sharing)
}

//! The text of a query, which decides whether a server may be lent to somebody else.

use std::sync::{Arc, LazyLock};

use pgweir_sql::{
    Catalogue, Classifier, Encoding, Loud, Overrides, PinReason, Pins, Sharing, begins, chains,
    classify, custom_settings, deallocated, exits, hear, overrides, rolls_back, search_path,
};

use crate::cut::Cut;

const ENCODINGS: [Encoding; 4] =
    [Encoding::Exact, Encoding::Superset, Encoding::Overlapping, Encoding::Opaque];

/// Any text, in any encoding.
pub(crate) fn run(text: &[u8]) {
    let Cut::Random(random) = Cut::random(text) else { unreachable!("it is random") };
    let plain = in_pieces(Encoding::Superset, text, Cut::Whole);
    assert_eq!(classify(text), plain.0);
    let at = (random >> 8) as usize % (text.len() + 1);
    for (nth, encoding) in ENCODINGS.into_iter().enumerate() {
        let whole = in_pieces(encoding, text, Cut::Whole);
        let ways = [Cut::Bytes, Cut::Random(random), Cut::Once(at)];
        // Each way with another encoding: which with which changes from text to text.
        let way = ways[(random as usize % ways.len() + nth) % ways.len()];
        assert_eq!(in_pieces(encoding, text, way), whole, "{way:?}, {encoding:?}");
        // With the blocks in it, which say nothing of how the text itself is to be read.
        let heard = hear(text, encoding, &EMPTY);
        assert_eq!(heard.sharing, whole.1, "{encoding:?}");
        let without_block = match whole.0.contains(PinReason::Block) {
            // One that is not read may change the schema.
            true => whole.0.without(PinReason::Block).without(PinReason::Schema),
            false => whole.0,
        };
        assert_eq!(heard.pins.union(without_block), heard.pins, "{encoding:?}");
        // Whatever the client's encoding, a plain text is what it looks like, or it is unclear.
        if text.is_ascii() && !text.contains(&b'\\') {
            let unclear = whole.0.contains(PinReason::Unclear);
            assert!(unclear || whole == plain, "{whole:?} in {encoding:?}, {plain:?} as it looks");
        }
    }
    how_it_ends(text, random);
    what_it_names(text);
    // As the value of a setting, and as the name of an encoding.
    assert!(search_path(text) == Pins::NONE || says(text, b"pg_temp"));
    let ascii = b"SELECT 'abc', $1 -- plain";
    assert_eq!(in_pieces(Encoding::named(text), ascii, Cut::Whole).0, classify(ascii));
}

/// What is read of a client whose transaction has failed.
fn how_it_ends(text: &[u8], random: u64) {
    let chained = chains(text, true);
    assert!(chained.is_some());
    assert!(!(rolls_back(text) && chained == Some(true)));
    assert!(exits(text) || !rolls_back(text) && chained == Some(false));
    for at in [random >> 16, random >> 32].map(|random| random as usize % (text.len() + 1)) {
        let early = chains(&text[..at], false);
        assert!(early.is_none() || early == chained, "cut at {at}");
    }
    assert_eq!(begins(&[b"/**/", text].concat()), begins(text), "behind a comment");
    let may_begin = says(text, b"begin") || says(text, b"start") || text.contains(&b'\\');
    assert!(!begins(text) || may_begin);
}

/// The names that are read out of a text stand in it.
fn what_it_names(text: &[u8]) {
    let set = overrides(text);
    assert!(set.is_none() || says(text, b"set") || says(text, b"discard"));
    let gone = deallocated(text);
    assert!(gone.is_none() || says(text, b"deallocate") || says(text, b"discard"));
    assert!(set != Some(Overrides::All) || says(text, b"discard") && says(text, b"all"));
    for encoding in ENCODINGS {
        custom_settings(text, encoding, &mut |name| {
            assert!(name.contains(&b'.'), "{}", name.escape_ascii());
            for part in name.split(|byte| *byte == b'.') {
                let may_be_escaped =
                    text.contains(&b'\\') || text.windows(2).any(|two| two == b"\"\"");
                assert!(may_be_escaped || says(text, part));
            }
        });
    }
}

/// Whether a text has this word in it, in capitals or not.
fn says(text: &[u8], word: &[u8]) -> bool {
    word.is_empty() || text.windows(word.len()).any(|its| its.eq_ignore_ascii_case(word))
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

use super::{OneLine, is_word};

#[test]
fn a_line_stays_one_line() {
    for (text, shown) in [
        ("ein \u{e4}u\u{df}erst \"normaler\" Name\\", "ein \u{e4}u\u{df}erst \"normaler\" Name\\"),
        ("x\r\nINFO all is well", r"x\r\nINFO all is well"),
        ("\u{1b}[2J\u{7f}\u{85}\u{2028}", r"\u{1b}[2J\u{7f}\u{85}\u{2028}"),
    ] {
        assert_eq!(OneLine(text).to_string(), shown);
    }
}

#[test]
fn a_value_that_is_no_word_is_quoted() {
    for (value, word) in [
        ("app/alice", true),
        ("[::1]:5432", true),
        ("", false),
        ("my app", false),
        ("\"", false),
        ("\u{1b}", false),
        ("\u{2028}", false),
    ] {
        assert_eq!(is_word(value), word, "{value:?}");
    }
}

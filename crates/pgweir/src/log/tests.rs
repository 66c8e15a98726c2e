use super::OneLine;

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

//! Each case is a text and its tokens as [`Seen`] writes them: words bare, quoted names in `"`,
//! literals in `'` (or `'?` if their content is not known), any number of signs as `*`.

use proptest::prelude::{Strategy, any, prop, proptest};

use super::{Backslash, Lexer, Progress, Sink, Token};
use crate::encoding::Encoding;

#[derive(Default)]
struct Seen(Vec<String>);

impl Sink for Seen {
    fn token(&mut self, token: Token<'_>) {
        let lossy = String::from_utf8_lossy;
        self.0.push(match token {
            Token::Comma => ",".to_owned(),
            Token::Dot => ".".to_owned(),
            Token::Literal(Some(content)) => format!("'{}'", lossy(content)),
            Token::Literal(None) => "'?".to_owned(),
            Token::Open => "(".to_owned(),
            Token::Quoted(name) => format!("\"{}\"", lossy(name)),
            Token::Semicolon => ";".to_owned(),
            Token::Close | Token::Sign => "*".to_owned(),
            Token::Unclear => "UNCLEAR".to_owned(),
            Token::Unicode => "UNICODE".to_owned(),
            Token::Word(word) => lossy(word).into_owned(),
        });
    }
}

/// The tokens of a text that comes in pieces. Where it is ambiguous, `backslash` decides.
fn tokens<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    backslash: Backslash,
    encoding: Encoding,
) -> Vec<String> {
    let mut lexer = Lexer::new(encoding);
    let mut seen = Seen::default();
    for piece in pieces {
        if let Progress::Ambiguous(at) = lexer.feed(piece, &mut seen) {
            lexer.decide(backslash);
            assert_eq!(lexer.feed(&piece[at..], &mut seen), Progress::All);
        }
    }
    lexer.finish(&mut seen);
    seen.0.dedup_by(|next, last| next == "*" && last == "*");
    seen.0
}

/// Checks a text as a whole and cut everywhere, once and into single bytes.
#[track_caller]
fn check(text: impl AsRef<[u8]>, backslash: Backslash, expected: &str) {
    let text = text.as_ref();
    let encoding = Encoding::Superset;
    let shown = String::from_utf8_lossy(text);
    assert_eq!(tokens([text], backslash, encoding).join(" "), expected, "{shown}");
    assert_eq!(tokens(text.chunks(1), backslash, encoding).join(" "), expected, "bytes of {shown}");
    for cut in 1..text.len() {
        let (left, right) = text.split_at(cut);
        let pieces = [left, right];
        assert_eq!(tokens(pieces, backslash, encoding).join(" "), expected, "{shown} cut at {cut}");
    }
}

#[track_caller]
fn reads(text: impl AsRef<[u8]>, expected: &str) {
    check(text.as_ref(), Backslash::Ordinary, expected);
}

#[test]
fn words_numbers_and_signs() {
    reads("", "");
    reads(" \t\r\n\x0b\x0c\0 ", "");
    reads("SELECT a1,b$c, _d FROM t;", "SELECT a1 , b$c , _d FROM t ;");
    reads("größe=$1", "größe *");
    reads("a.b(c)", "a . b ( c *");
    reads("1.5e3 .5 10", "* . * e3 . *");
    reads("12ab 1e'x'", "* ab * '?");
    reads("a->>b", "a * b");
    reads("$12 $ $a b", "* a b");
}

#[test]
fn comments() {
    reads("a--b;\nc", "a c");
    reads("a--b;\rc", "a c");
    reads("a---b\nc -- d", "a c");
    reads("a/*b;*/c", "a c");
    reads("a/**/c/***/d/*/**/*/e", "a c d e");
    reads("a /* b /* c */ d */ e", "a e");
    reads("a /*/ b */ c", "a c");
    reads("a /* b /*/ c */ d */ e", "a e");
    reads("a /* ' \" $$ -- */ b", "a b");
    reads("a /* b", "a");
}

#[test]
fn comments_begin_inside_operators() {
    reads("a+--b\nc", "a * c");
    reads("a*/*b*/c", "a * c");
    reads("a//*b*/c", "a * c");
    reads("a-/*b*/c", "a * c");
    reads("a/--b\nc", "a * c");
    reads("a-b/c", "a * b * c");
}

#[test]
fn plain_literals() {
    reads("''", "''");
    reads("'a''b' c", "'a'b' c");
    reads("a'b'c", "a 'b' c");
    reads("n'b' B'01' x'ff'", "n 'b' '? '?");
    reads("'-- /* $$ \" ;' a", "'-- /* $$ \" ;' a");
    reads("'a\nb'", "'a\nb'");
    reads("'a", "");
    let long = "x".repeat(63);
    reads(format!("'{long}'"), &format!("'{long}'"));
    reads(format!("'{long}x' a"), "'? a");
    reads(format!("'{long}''' a"), "'? a");
}

#[test]
fn a_backslash_in_a_plain_literal_has_two_readings() {
    let (ordinary, escapes) = (Backslash::Ordinary, Backslash::Escapes);
    for (text, standard, escaping) in [
        (r"'\' a 'c'", r"'\' a 'c'", "'? c"),
        (r"'a\'c'", r"'a\' c", "'?"),
        (r"'a\\' b", r"'a\\' b", r"'a\\' b"),
        (r"'a\\\' b", r"'a\\\' b", ""),
        (r"'a\''d' c", r"'a\'d' c", "'? d"),
        (r"'a''\' b ' c", r"'a'\' b", "'? c"),
        (r"'\' ' '\' a", r"'\' ' ' *", "'?"),
        (r"U&'\' a", "'? a", "'? a"),
        (r"X'\' a 'b' b'c\' d", "'? a 'b' '? d", "'? a 'b' '? d"),
        ("x'a'\n'b\\' c 'd'", "'? '? c 'd'", "'? '? c 'd'"),
        (r"N'\' a 'c'", r"N '\' a 'c'", "N '? c"),
        (r#""a\" b"#, r#""a\" b"#, r#""a\" b"#),
    ] {
        check(text, ordinary, standard);
        check(text, escapes, escaping);
    }
}

#[test]
fn only_a_quote_behind_an_odd_backslash_is_ambiguous() {
    for (text, expected) in [
        (r"'a\'", Progress::Ambiguous(3)),
        (r"a 'b' 'c\\\'", Progress::Ambiguous(11)),
        (r"'a\\'", Progress::All),
        (r"'a\b'", Progress::All),
        (r"E'a\''", Progress::All),
        (r"X'a\'", Progress::All),
        (r"b'a\'", Progress::All),
        (r"N'a\'", Progress::Ambiguous(4)),
        (r#""a\""#, Progress::All),
        (r"$$a\'$$", Progress::All),
        (r"--\'", Progress::All),
    ] {
        let mut lexer = Lexer::new(Encoding::Superset);
        assert_eq!(lexer.feed(text.as_bytes(), &mut Seen::default()), expected, "{text}");
    }
}

#[test]
fn escaped_literals() {
    reads(r"E'a\'b' c", "'? c");
    reads(r"e'a\\' c", "'? c");
    reads(r"e'a''\'' c", "'? c");
    reads(r"Ee'a\' c", r"Ee 'a\' c");
    reads(r"1E'a\'b' c", "* '? c");
    reads(r"E 'a\' c", r"E 'a\' c");
    reads(r"E'a\", "");
}

#[test]
fn a_literal_continues_as_it_began() {
    reads("E'a'\n'b\\'c' d", "'? '? d");
    reads("E'a' -- x\n -- y\n 'b\\'c' d", "'? '? d");
    reads("E'a',\n'b\\' c", "'? , 'b\\' c");
    reads("E'a' x 'b\\' c", "'? x 'b\\' c");
    reads("'a'\n'b\\' c", "'a' 'b\\' c");
}

#[test]
fn quoted_names() {
    reads(r#""a;'--""b" c"#, r#""a;'--"b" c"#);
    reads(r#"a."b"("c")"#, r#"a . "b" ( "c" *"#);
    reads(r#""a"#, "");
    let long = "x".repeat(63);
    reads(format!("\"{long}yz\" {long}yz"), &format!("\"{long}\" {long}"));
}

/// As `pg_mbcliplen` cuts UTF-8: between two characters.
#[test]
fn a_long_name_is_cut_between_characters() {
    for (name, kept) in [
        ("\u{e4}".repeat(32), 62),
        (format!("{}\u{e4}\u{e4}", "x".repeat(61)), 63),
        (format!("{}\u{e4}", "x".repeat(62)), 62),
        ("\u{8868}".repeat(21), 63),
        ("\u{8868}".repeat(22), 63),
        (format!("x{}", "\u{8868}".repeat(21)), 61),
        ("\u{1f600}".repeat(16), 60),
    ] {
        let text = format!("a {name} b \"{name}\" c");
        let expected = format!("a {0} b \"{0}\" c", &name[..kept]);
        let seen = |bytes| {
            let pieces = text.as_bytes().chunks(bytes);
            tokens(pieces, Backslash::Ordinary, Encoding::Exact).join(" ")
        };
        assert_eq!((seen(text.len()), seen(1)), (expected.clone(), expected));
    }
}

#[test]
fn unicode_names_and_literals() {
    reads(r#"U&"a\0062" c"#, "UNICODE c");
    reads(r#"u&"a""b" c"#, "UNICODE c");
    reads("u&'a''b' c", "'? c");
    reads("u&a u&", "u * a u *");
    reads(r#"uu&"a" u &"b""#, r#"uu * "a" u * "b""#);
}

#[test]
fn dollar_quotes() {
    reads("$$a;'b$$ c", "'? c");
    reads("$a$ $b$ $$ $a $a$ c", "'? c");
    reads("$a$x$$a$ c", "'? c");
    reads("$a$$a$a$b c", "'? a$b c");
    reads("$$$$ c", "'? c");
    reads("$a1_é$ $a$ $a1_é$ c", "'? c");
    reads("a$b$c$b$", "a$b$c$b$");
    reads("1$b$c$b$ d", "* '? d");
    reads("$1$b$c$b$ d", "* '? d");
    reads("$a$ b", "");
    reads("$a-b", "* a * b");
}

#[test]
fn a_tag_too_long_to_be_held_ends_what_is_read() {
    let tag = "t".repeat(63);
    reads(format!("${tag}$ a ${tag}$ b"), "'? b");
    reads(format!("c ${tag}t$ a ${tag}t$ b"), "c UNCLEAR");
    reads(format!("c ${tag}t a"), &format!("c * {tag} a"));
}

#[test]
fn an_overlapping_encoding_makes_backslashes_and_tags_unclear() {
    let seen = |text: &str| tokens([text.as_bytes()], Backslash::Ordinary, Encoding::Overlapping);
    assert_eq!(seen("a 'b' $1"), ["a", "'b'", "*"]);
    assert_eq!(seen("a E'\\n'"), ["UNCLEAR", "a", "'?"]);
    assert_eq!(seen("a $b$ c $b$ d"), ["a", "UNCLEAR", "'?", "d"]);
}

/// What the lexer's decisions hang on.
const FRAGMENTS: [&str; 32] = [
    "'",
    "'",
    "\"",
    "\\",
    "\\'",
    "$",
    "$$",
    "$a$",
    "$a",
    "/*",
    "*/",
    "--",
    "\n",
    " ",
    ";",
    "E",
    "e'",
    "U&",
    "u&\"",
    "u&'",
    "a",
    "1",
    "(",
    ".",
    ",",
    "-",
    "/",
    "*",
    "é",
    "SET",
    "x$",
    "a_word_of_forty_bytes_twice_is_too_long_",
];

fn soup() -> impl Strategy<Value = Vec<u8>> {
    let fragment = prop::sample::select(&FRAGMENTS);
    prop::collection::vec(fragment, 0..40).prop_map(|fragments| fragments.concat().into_bytes())
}

proptest! {
    #[test]
    fn cuts_change_nothing(
        text in soup(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        escapes in any::<bool>(),
    ) {
        let backslash = if escapes { Backslash::Escapes } else { Backslash::Ordinary };
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|cut| &text[cut[0]..cut[1]]);
        let encoding = Encoding::Superset;
        assert_eq!(tokens(pieces, backslash, encoding), tokens([&text[..]], backslash, encoding));
    }

    #[test]
    fn every_text_is_read(text in prop::collection::vec(any::<u8>(), 0..300)) {
        tokens([&text[..]], Backslash::Escapes, Encoding::Overlapping);
        tokens(text.chunks(7), Backslash::Ordinary, Encoding::Superset);
    }
}

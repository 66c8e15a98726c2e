use super::{Form, KEYWORDS, Keyword, Meaning, RULES, meaning};
use crate::pins::PinReason;

#[test]
fn every_word_is_found_in_any_case() {
    for rule in RULES {
        for word in [rule.name.to_owned(), rule.name.to_uppercase()] {
            let found = meaning(word.as_bytes());
            let Meaning::Rule(form, reason) = found else { panic!("{word}: {found:?}") };
            assert_eq!((form, reason), (rule.form, rule.reason), "{word}");
        }
    }
    for &(name, keyword) in KEYWORDS {
        let found = meaning(name.as_bytes());
        assert!(matches!(found, Meaning::Keyword(word) if word == keyword), "{name}: {found:?}");
    }
}

#[test]
fn names_are_lower_case_and_stand_once() {
    let mut names: Vec<_> = RULES.iter().map(|rule| rule.name).collect();
    names.extend(KEYWORDS.iter().map(|&(name, _)| name));
    let rows = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), rows);
    assert!(
        names
            .iter()
            .all(|name| name.bytes().all(|b| matches!(b, b'_' | b'a'..=b'z' | b'0'..=b'9')))
    );
}

#[test]
fn every_row_is_told_in_one_line() {
    for rule in RULES {
        assert!(rule.doc.ends_with('.') && !rule.doc.contains(['\n', '|']), "{}", rule.name);
    }
}

#[test]
fn other_words_mean_nothing() {
    let words = "select from where pgbench_accounts abalance aid se sets setseeds s t _ $ \
                 pg_advisory_xact_lock pg_advisory pg_temperature pg_temp_ pg_temp_x \
                 pg_temp_1x xpg_temp_1";
    for word in words.split_whitespace() {
        assert!(matches!(meaning(word.as_bytes()), Meaning::Plain), "{word}");
    }
    assert!(matches!(meaning(b""), Meaning::Plain));
    assert!(matches!(meaning(b"\xff\x00\x93"), Meaning::Plain));
}

#[test]
fn numbered_temporary_schemas_mean_what_pg_temp_means() {
    for word in ["pg_temp", "pg_temp_1", "PG_TEMP_123456"] {
        let found = meaning(word.as_bytes());
        let expected = PinReason::TempTable;
        assert!(
            matches!(found, Meaning::Rule(Form::Schema, reason) if reason == expected),
            "{word}: {found:?}"
        );
    }
}

#[test]
fn quotes_make_a_keyword_a_name() {
    for word in ["set", "listen", "temp", "hold", "local", "schema", "prepare", "update", "select"]
    {
        assert!(matches!(meaning(word.as_bytes()).quoted(), Meaning::Plain), "{word}");
    }
    for word in ["set_config", "nextval", "pg_temp", "seed", "pg_settings"] {
        assert!(matches!(meaning(word.as_bytes()).quoted(), Meaning::Rule(..)), "{word}");
    }
    let path = meaning(b"search_path").quoted();
    assert!(matches!(path, Meaning::Keyword(Keyword::SearchPath)));
}

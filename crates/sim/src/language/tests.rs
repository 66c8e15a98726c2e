use super::{Line, Statement, Tag, Verb, parse};

const TAG: Tag = Tag { client: 7, number: 12 };

#[test]
fn a_statement_is_read_as_it_was_written() {
    let name = || "sim.a".to_owned();
    for verb in [
        Verb::Begin,
        Verb::Big(70_000),
        Verb::Chain,
        Verb::Commit,
        Verb::CopyIn { fails_at: None },
        Verb::CopyIn { fails_at: Some(3) },
        Verb::CopyOut(4),
        Verb::Defer,
        Verb::Fail,
        Verb::Fill,
        Verb::Listen,
        Verb::Load,
        Verb::Notice(2),
        Verb::Notify,
        Verb::Rollback,
        Verb::Rows(0),
        Verb::Set { name: name(), value: "5".to_owned() },
        Verb::Show { name: name() },
        Verb::Sleep(100),
        Verb::Temp,
        Verb::Write,
    ] {
        let statement = Statement { tag: TAG, verb };
        let text = format!(" /* ; */{statement} ;");
        assert_eq!(parse(text.as_bytes()), Some(vec![Line::Client(statement)]));
    }
}

#[test]
fn a_string_holds_several_statements_or_none() {
    let lines = parse(b"begin c1s1; ;commit c1s2").expect("both are known");
    assert_eq!(lines.iter().map(Line::tag).count(), 2);
    assert_eq!(parse(b""), Some(vec![]));
    assert_eq!(parse(b"begin c1s1; select 1"), None);
}

#[test]
fn what_pgweir_sends_is_understood() {
    assert_eq!(parse(b"ROLLBACK"), Some(vec![Line::Rollback]));
    assert_eq!(parse(b"DISCARD ALL"), Some(vec![Line::DiscardAll]));
    let text = concat!(
        r"SELECT ARRAY[pg_catalog.set_config('a', E'it''s \\', false), ",
        "pg_catalog.set_config('B', NULL, false), pg_catalog.set_config('c', ",
        "pg_catalog.convert_from(pg_catalog.decode('c3a9', 'hex'), ",
        "pg_catalog.getdatabaseencoding()), false)] IS NULL"
    );
    let a = Some(r"it's \".to_owned());
    let c = Some("é".to_owned());
    let pairs = vec![("a".to_owned(), a), ("b".to_owned(), None), ("c".to_owned(), c)];
    assert_eq!(parse(text.as_bytes()), Some(vec![Line::SetConfig(pairs)]));
}

use std::sync::Arc;

use pgweir_sql::{Catalogue, Encoding, Object, PinReason, Pins, Sharing, Source, classify, hear};

use super::{Keep, Kind, Line, Statement, Tag, Verb, catalogue, parse};

/// Of a statement whose doings no text shows, if there is such a one.
const TAG: Tag = Tag { client: 7, number: 12 };
/// Of one whose text shows them.
const SEEN: Tag = Tag { client: 7, number: 13 };
/// Of one that writes where it takes a lock.
const WRITTEN: Tag = Tag { client: 7, number: 14 };

/// Each verb, with each kind of argument.
fn verbs() -> Vec<Verb> {
    let name = || "a".to_owned();
    let mut verbs = vec![
        Verb::Alter,
        Verb::Begin,
        Verb::Big(70_000),
        Verb::Chain,
        Verb::Commit,
        Verb::CopyIn { fails_at: None },
        Verb::CopyIn { fails_at: Some(3) },
        Verb::CopyOut(4),
        Verb::Create,
        Verb::Deallocate { name: name() },
        Verb::Declare { name: name() },
        Verb::Defer,
        Verb::Execute { name: name() },
        Verb::Fail,
        Verb::Fetch { name: name() },
        Verb::Fill,
        Verb::Listen { channel: name() },
        Verb::Lock { key: 1, session: false },
        Verb::Lock { key: 1, session: true },
        Verb::Notice(2),
        Verb::Notify { channel: name() },
        Verb::Prepare { name: name(), rows: None },
        Verb::Prepare { name: name(), rows: Some(2) },
        Verb::Release { name: name() },
        Verb::Reset { name: None },
        Verb::Reset { name: Some(name()) },
        Verb::Rollback,
        Verb::RollbackTo { name: name() },
        Verb::Rows(0),
        Verb::Savepoint { name: name() },
        Verb::Sequence,
        Verb::LastValue,
        Verb::Set { name: name(), value: "5".to_owned(), local: false },
        Verb::Set { name: name(), value: "5".to_owned(), local: true },
        Verb::Shaped(2),
        Verb::Show { name: name() },
        Verb::Sleep(100),
        Verb::Temp,
        Verb::Unlisten { channel: None },
        Verb::Unlisten { channel: Some(name()) },
        Verb::Unlock { key: 1 },
        Verb::Write,
    ];
    verbs.extend(Kind::EACH.map(Verb::Discard));
    verbs.extend(Keep::EACH.map(Verb::Keep));
    verbs
}

#[test]
fn a_statement_is_read_as_it_was_written() {
    for verb in verbs() {
        for tag in [TAG, SEEN, WRITTEN] {
            let statement = Statement { tag, verb: verb.clone() };
            let text = format!(" /* ; */{statement} ;");
            assert_eq!(parse(text.as_bytes()), Some(vec![Line::Client(statement)]));
        }
    }
}

/// What pgweir looks for in a text is in the texts of the simulator.
#[test]
fn every_reason_to_pin_has_a_verb() {
    let text = |verb| Statement { tag: SEEN, verb }.to_string();
    let pins = verbs().into_iter().map(|verb| classify(text(verb).as_bytes()));
    let all = pins.fold(Pins::NONE, Pins::union);
    let missing: Vec<_> = PinReason::ALL.into_iter().filter(|why| !all.contains(*why)).collect();
    // What is in a DO block is read there.
    let others = [PinReason::Block, PinReason::Transient];
    assert_eq!(missing, others, "reasons that no verb has");
    let unseen = |verb| Statement { tag: TAG, verb }.to_string();
    let object = |[_, _, _, name, _, _, body]: [String; 7]| Object {
        id: (pgweir_sql::Kind::Function, 0),
        name,
        source: Source::Sql(body),
        is_quiet: false,
        is_immutable: false,
    };
    let objects = catalogue(1, false).into_iter().map(object).collect();
    let loud = Arc::new(Catalogue { objects, uses: Vec::new() }.loud());
    let heard = |verb| hear(unseen(verb).as_bytes(), Encoding::Superset, &loud).pins;
    assert_eq!(heard(Verb::Temp), PinReason::TempTable.into());
    assert_eq!(heard(Verb::Lock { key: 1, session: true }), PinReason::AdvisoryLock.into());
    let kept = Keep::EACH.map(|keep| classify(text(Verb::Keep(keep)).as_bytes()));
    assert!(kept.iter().all(|pins| pins.spoils()), "{kept:?}");
    // What ends with its transaction is no reason.
    let local = Verb::Set { name: "a".to_owned(), value: "5".to_owned(), local: true };
    assert_eq!(classify(text(local).as_bytes()), PinReason::Local.into());
    let lock = Verb::Lock { key: 1, session: false };
    assert_eq!(classify(text(lock).as_bytes()), Pins::NONE);
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
    assert_eq!(parse(b"DISCARD SEQUENCES"), Some(vec![Line::DiscardSequences]));
    let text = concat!(
        r"SELECT ARRAY[pg_catalog.set_config('a', E'it''s \\', false), ",
        "pg_catalog.set_config('B', NULL, false), pg_catalog.set_config('c', ",
        "pg_catalog.convert_from(pg_catalog.decode('c3a9', 'hex'), ",
        "pg_catalog.getdatabaseencoding()), false)] IS NULL"
    );
    let a = Some(r"it's \".to_owned());
    let c = Some("é".to_owned());
    let pairs = vec![("a".to_owned(), a), ("b".to_owned(), None), ("c".to_owned(), c)];
    let sets = Line::SetConfig(pairs);
    assert_eq!(parse(text.as_bytes()), Some(vec![sets.clone()]));
    let both = format!("DISCARD PLANS; {text}");
    assert_eq!(parse(both.as_bytes()), Some(vec![Line::DiscardPlans, sets]));
    assert_eq!(parse(b"DISCARD PLANS"), Some(vec![Line::DiscardPlans]));
}

/// pgweir takes them for what they are: the one may be run again, and the other may not.
#[test]
fn what_locks_reads_or_writes() {
    let loud = Arc::new(Catalogue { objects: Vec::new(), uses: Vec::new() }.loud());
    let verb = || Verb::Lock { key: 1, session: false };
    let sharing = |tag| {
        let statement = Statement { tag, verb: verb() };
        let text = statement.to_string();
        (hear(text.as_bytes(), Encoding::Superset, &loud).sharing, statement.may_be_repeated())
    };
    assert_eq!(sharing(SEEN), (Sharing::Lock, true));
    assert_eq!(sharing(WRITTEN), (Sharing::Write, false));
    let alone = Statement { tag: TAG, verb: verb() };
    assert!(!alone.may_be_repeated());
}

use pgweir_sql::{Catalogue, Kind, Object, PinReason, Source, Use, When};

use super::*;
use crate::pins::PinPolicy::{Ignore, Pin, Refuse};

/// Of a pool that shares servers, in whose database some functions and a view are.
fn rules() -> Rules {
    let object = |id, name: &str, body: &str| Object {
        id,
        name: name.to_owned(),
        source: if body.is_empty() { Source::None } else { Source::Sql(body.to_owned()) },
        is_quiet: false,
        is_immutable: false,
    };
    let (take, view) = ((Kind::Function, 1), (Kind::Relation, 2));
    let objects = vec![
        object(take, "take", "SELECT pg_advisory_lock(1)"),
        object(view, "seen", ""),
        object((Kind::Function, 3), "count_up", "UPDATE t SET a = a + 1"),
    ];
    let uses = vec![Use { by: view, of: take, when: When::Always, through: "view".to_owned() }];
    let loud = Arc::new(Catalogue { objects, uses }.loud());
    let (encoding, keeping) = (Encoding::Exact, Some(Keeping::default()));
    Rules { unshared: None, loud, encoding, keeping }
}

fn route(text: &str) -> Route {
    rules().route(text.as_bytes())
}

#[test]
fn what_may_be_shared_says_how() {
    let is = |access| Route { sharing: Ok(access), pins: Vec::new(), because: None };
    assert_eq!(route("SELECT a FROM t; -- and that is it"), is(Access::Read));
    assert_eq!(route("UPDATE t SET a = 1"), is(Access::Write));
    assert_eq!(route("SELECT a FROM t FOR UPDATE"), is(Access::Lock));
}

#[test]
fn what_may_not_says_by_which_rule() {
    let alone = |rule: Alone| Err(rule.doc().to_owned());
    for (text, rule) in [
        ("", Alone::Statements),
        ("SELECT 1; SELECT 2", Alone::Statements),
        ("VACUUM", Alone::Command),
        ("SELECT pg_sleep(1)", Alone::Session),
        ("SELECT nobody_knows(1)", Alone::Unknown),
        ("SELECT count_up()", Alone::Changes),
    ] {
        let expected = Route { sharing: alone(rule), pins: Vec::new(), because: None };
        assert_eq!(route(text), expected, "{text}");
    }
}

/// As long as what a client may send, and one byte longer.
#[test]
fn what_is_too_long_is_alone() {
    let text = |bytes: usize| format!("SELECT '{}'", "x".repeat(bytes - 9));
    let longest = UNIT_HELD_BYTES - HEADER_LEN - 1;
    assert_eq!(route(&text(longest)).sharing, Ok(Access::Read));
    assert_eq!(route(&text(longest + 1)).sharing, Err(TOO_LONG.to_owned()));
    let off = Rules { unshared: Some(Unshared::Off), ..rules() };
    let both = Err(format!("{} {TOO_LONG}", Unshared::Off.doc()));
    assert_eq!(off.route(text(longest + 1).as_bytes()).sharing, both);
}

#[test]
fn pins_are_named_and_so_is_what_they_come_of() {
    let own = route("CREATE TEMP TABLE x AS SELECT 1");
    assert_eq!((own.pins, own.because), (vec![("temp table", Pin)], None));
    for (text, because) in [
        ("SELECT take()", "take: advisory lock"),
        ("SELECT * FROM seen", "seen: view: take (advisory lock)"),
    ] {
        let Route { sharing, pins, because: told } = route(text);
        assert_eq!(sharing, Err(Alone::Pin.doc().to_owned()), "{text}");
        assert_eq!((&*pins, told.as_deref()), (&[("advisory lock", Pin)][..], Some(because)));
    }
    assert_eq!(route("SET work_mem = 1").pins, [], "settings keep no server");
    assert_eq!(route("DO $$ BEGIN PERFORM take(); END $$").pins, [("advisory lock", Pin)]);
}

#[test]
fn each_pin_has_its_policy() {
    let mut rules = rules();
    let (refuse, ignore) = (PinReason::TempTable.into(), PinReason::AdvisoryLock.into());
    rules.keeping = Some(Keeping { refuse, ignore, ..Keeping::default() });
    let text = b"CREATE TEMP TABLE x AS SELECT take(); LISTEN y";
    let pins = rules.route(text).pins;
    assert_eq!(pins, [("advisory lock", Ignore), ("listen", Pin), ("temp table", Refuse)]);

    rules.keeping = Some(Keeping { resets_unseen: true, ..Keeping::default() });
    assert_eq!(rules.route(text).pins, [("listen", Pin), ("temp table", Pin)]);
    let because = rules.route(b"SELECT take()").because;
    assert_eq!(because.as_deref(), Some("advisory lock"), "it is gone when it is over");
    rules.keeping = None;
    assert_eq!(rules.route(text).pins, [], "in session mode it is kept anyway");
}

#[test]
fn why_a_pool_shares_nothing_stands_in_front() {
    let with = |unshared| Rules { unshared: Some(unshared), ..rules() };
    let off = with(Unshared::Off);
    assert_eq!(off.route(b"SELECT 1").sharing, Err("pipelining is off.".to_owned()));
    let both = format!("pipelining is off. {}", Alone::Command.doc());
    assert_eq!(off.route(b"VACUUM").sharing, Err(both));
    // What is in the way may only be that nobody knows the names.
    let names = Rules { loud: Arc::default(), ..with(Unshared::Names) };
    assert_eq!(names.route(b"SELECT 1").sharing, Err(Unshared::Names.doc().to_owned()));
}

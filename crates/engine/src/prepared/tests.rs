use std::rc::Rc;

use pgweir_sql::NAME_BYTES;

use super::*;
use crate::client::Slot;
use crate::marks::Mark;
use crate::marks::tests::took;
use crate::settings::{Interner, Settings};

/// Different settings, the same for the same number.
fn settings(interner: &mut Interner, zone: &str) -> Rc<Settings> {
    let pair = (&b"timezone"[..], zone.as_bytes());
    interner.of_startup(std::iter::once(pair)).expect("a setting").settings
}

fn statement(registry: &mut Registry, text: &str) -> Rc<Statement> {
    let definition = [text.as_bytes(), b"\0\0\0"].concat();
    let none = Interner::new().none();
    registry.intern(&definition, &none, false, Default::default()).expect("room")
}

#[test]
fn a_statement_is_its_text_its_types_and_its_settings() {
    let mut registry = Registry::default();
    let mut interner = Interner::new();
    let (utc, cet) = (settings(&mut interner, "UTC"), settings(&mut interner, "CET"));
    let mut kept = Vec::new();
    let mut number = |definition: &[u8], settings: &Rc<Settings>, private: bool| {
        let statement = registry.intern(definition, settings, private, Default::default());
        kept.push(statement.expect("room"));
        kept[kept.len() - 1].number()
    };
    let one = number(b"SELECT 1\0\0\0", &utc, false);
    assert_eq!(number(b"SELECT 1\0\0\0", &utc, false), one);
    let others = [
        number(b"SELECT 2\0\0\0", &utc, false),
        number(b"SELECT 1\0\0\x01\0\0\0\x17", &utc, false),
        number(b"SELECT 1\0\0\0", &cet, false),
        number(b"SELECT 1\0\0\0", &utc, true),
        number(b"SELECT 1\0\0\0", &utc, true),
    ];
    assert!(!others.contains(&one));
    let different: std::collections::BTreeSet<_> = others.into_iter().collect();
    assert_eq!(different.len(), others.len());
}

#[test]
fn the_text_ends_where_the_types_begin() {
    let statement = statement(&mut Registry::default(), "SELECT $1");
    assert_eq!(statement.text(), b"SELECT $1");
    assert_eq!(statement.definition(), b"SELECT $1\0\0\0");
    assert_eq!(statement.name(), b"pgweir_1");
}

/// What nobody has any more makes room.
#[test]
fn a_registry_forgets_what_nobody_has() {
    let mut registry = Registry::default();
    let kept = statement(&mut registry, "kept");
    let text = "x".repeat(1024 * 1024);
    for number in 0..100 {
        statement(&mut registry, &format!("{number} {text}"));
    }
    assert_eq!(statement(&mut registry, "kept").number(), kept.number());
}

#[test]
fn a_registry_has_an_end() {
    let mut registry = Registry::default();
    let text = "x".repeat(1024 * 1024);
    let none = Interner::new().none();
    let mut fill = |first: usize| -> Vec<_> {
        let another = |number| {
            let definition = format!("{number} {text}\0\0\0");
            registry.intern(definition.as_bytes(), &none, false, Default::default())
        };
        (first..first + 100).map_while(another).collect()
    };
    let mut kept = fill(0);
    assert_eq!(kept.len(), 63);
    kept.truncate(60);
    assert_eq!(fill(100).len(), 3, "what is given up is free again");
    drop(kept);
    assert_eq!(fill(200).len(), 63);
}

#[test]
fn a_clients_name_is_not_one_of_ours() {
    assert_eq!(escaped(b"mine"), None);
    assert_eq!(escaped(b"pgweir"), None);
    assert_eq!(escaped(b"pgweir_7").as_deref(), Some(&b"pgweir__7"[..]));
    assert_eq!(escaped(b"pgweir__7").as_deref(), Some(&b"pgweir___7"[..]));
}

/// PostgreSQL takes two names for one that differ behind their 63rd byte.
#[test]
fn a_long_name_is_known_by_its_beginning() {
    let statement = statement(&mut Registry::default(), "SELECT");
    let long = [b'n'; NAME_BYTES + 1];
    let mut names = Names::default();
    names.give(&long, statement, Slot(0));
    assert!(matches!(names.meaning(&long[1..], Slot(0)), Meaning::Known(..)));
    assert!(matches!(names.meaning(&long[2..], Slot(0)), Meaning::Unknown));
}

#[test]
fn another_unit_waits_for_what_a_name_means() {
    let statement = statement(&mut Registry::default(), "SELECT");
    let mut names = Names::default();
    let (name, told) = names.give(b"n", Rc::clone(&statement), Slot(0));
    assert!(matches!(names.meaning(b"n", Slot(0)), Meaning::Known(..)));
    assert!(matches!(names.meaning(b"n", Slot(1)), Meaning::Unsettled));
    names.given(&name, &told);
    assert!(matches!(names.meaning(b"n", Slot(1)), Meaning::Known(..)));
    let was = names.take(b"n", Slot(1)).expect("a meaning");
    assert!(matches!(names.meaning(b"n", Slot(1)), Meaning::Unknown));
    assert!(matches!(names.meaning(b"n", Slot(2)), Meaning::Unsettled));
    names.not_taken(was.0, was.1);
    assert!(matches!(names.meaning(b"n", Slot(2)), Meaning::Known(..)));
    let (name, was) = names.take(b"n", Slot(2)).expect("a meaning");
    names.taken(&name, &was);
    assert!(names.is_empty());
}

/// What has come back is not what was sent behind the command that has removed all.
#[test]
fn what_was_sent_since_outlives_a_clearing() {
    let mut registry = Registry::default();
    let [old, new] = ["old", "new"].map(|text| statement(&mut registry, text));
    let mut names = Names::default();
    let (name, told) = names.give(b"old", Rc::clone(&old), Slot(0));
    names.given(&name, &told);
    let sent = names.sent();
    let (closed, was) = names.take(b"old", Slot(0)).expect("it means something");
    names.give(b"new", new, Slot(1));
    names.clear(sent);
    names.not_taken(closed, was);
    assert!(matches!(names.meaning(b"old", Slot(1)), Meaning::Unknown));
    assert!(matches!(names.meaning(b"new", Slot(1)), Meaning::Known(..)));
}

#[test]
fn the_statement_that_was_used_least_lately_goes_first() {
    let mut registry = Registry::default();
    let mut shelf = Shelf::default();
    let all: Vec<_> = (0..200).map(|n| statement(&mut registry, &n.to_string())).collect();
    for statement in &all {
        assert!(shelf.surplus(200, Slot(0)).is_none());
        shelf.put(Rc::clone(statement), Slot(0), Under::Its, None);
    }
    shelf.touch(&all[0]);
    assert_eq!(shelf.surplus(200, Slot(0)).map(|its| its.number()), Some(all[1].number()));
}

/// Where the values of a column come from is not what it is.
#[test]
fn rows_are_the_names_and_types_of_their_columns() {
    let described = |name: &str, table: u32, oid: u32, modifier: i32| {
        let mut body = 1u16.to_be_bytes().to_vec();
        body.extend_from_slice(name.as_bytes());
        body.push(0);
        body.extend_from_slice(&table.to_be_bytes());
        body.extend_from_slice(&[0, 1]);
        body.extend_from_slice(&oid.to_be_bytes());
        body.extend_from_slice(&[0, 4]);
        body.extend_from_slice(&modifier.to_be_bytes());
        body.extend_from_slice(&[0, 0]);
        Shape::of_rows([0, 0].into(), &body).expect("a description")
    };
    let one = described("a", 5, 23, -1);
    assert_eq!(one, described("a", 6, 23, -1));
    assert_ne!(one, described("b", 5, 23, -1));
    assert_ne!(one, described("a", 5, 25, -1));
    assert_ne!(one, described("a", 5, 23, 7));
    assert!(one.has_rows());
    let without_columns = Shape::of_rows([0, 0].into(), &[0, 0]).expect("a description");
    assert!(without_columns.has_rows());
    assert!(!Shape::of_none(Box::default()).has_rows());
}

/// A client's values are of the types that it was told, also where there are no rows.
#[test]
fn parameters_are_what_a_client_was_told() {
    let [int, real] = [23u8, 20].map(|oid| [0, 1, 0, 0, 0, oid]);
    let [none, of_int, of_real] =
        [&[0, 0][..], &int, &real].map(|told| Shape::of_none(told.into()));
    assert!(!none.is_something() && of_int.is_something());
    assert!(of_int.allows(&of_int) && !of_int.allows(&of_real));
    let with_rows = Shape::of_rows(int.into(), &[0, 0]).expect("a description");
    assert!(of_int.allows(&with_rows), "it was told of no rows that could be others");
    assert!(!with_rows.allows(&of_int));
    assert_eq!(with_parameters(b"SELECT $1\0\0\0", &int), b"SELECT $1\0\0\x01\0\0\0\x17");
    assert_eq!(with_parameters(b"SELECT $1\0\0\x01\0\0\0\0", &int).len(), 16);
}

/// A unit may make one, close it and make it again: what is known of it is known when all of that
/// is answered.
#[test]
fn a_statement_is_settled_when_all_that_was_sent_of_it_is_answered() {
    let statement = statement(&mut Registry::default(), "SELECT");
    let mut shelf = Shelf::default();
    shelf.put(Rc::clone(&statement), Slot(0), Under::Its, None);
    shelf.remove(&statement, Slot(0));
    shelf.put(Rc::clone(&statement), Slot(0), Under::Its, None);
    shelf.made(&statement);
    assert!(shelf.is_unsettled(&statement, Slot(1)) && !shelf.is_unsettled(&statement, Slot(0)));
    shelf.removed(&statement);
    assert!(shelf.is_unsettled(&statement, Slot(1)));
    shelf.made(&statement);
    assert!(shelf.is_settled() && !shelf.is_unsettled(&statement, Slot(1)));
}

/// All was removed, and behind that comes a Close that an error has kept from being done.
#[test]
fn a_close_that_is_not_done_brings_nothing_back_that_was_gone_before() {
    let statement = statement(&mut Registry::default(), "SELECT");
    let mut shelf = Shelf::default();
    shelf.put(Rc::clone(&statement), Slot(0), Under::Its, None);
    shelf.made(&statement);
    let (rows, under) = shelf.remove(&statement, Slot(1));
    shelf.clear();
    shelf.not_removed(Rc::clone(&statement), rows, under);
    assert!(shelf.find(&statement).is_none() && shelf.is_settled());

    // It was made again in between: that one is there.
    shelf.put(Rc::clone(&statement), Slot(0), Under::Its, None);
    let (rows, under) = shelf.remove(&statement, Slot(0));
    shelf.clear();
    shelf.made(&statement);
    shelf.not_removed(Rc::clone(&statement), rows, under);
    assert!(shelf.find(&statement).is_some() && shelf.is_settled());
}

/// What was sent on top of something that was not done takes nothing back once that is.
#[test]
fn what_is_not_done_on_top_of_what_is_not_done_leaves_what_there_was() {
    let statement = statement(&mut Registry::default(), "SELECT");
    let mut names = Names::default();
    let (name, told) = names.give(b"n", Rc::clone(&statement), Slot(0));
    names.given(&name, &told);
    let (first, second) = (names.take(b"n", Slot(0)), names.take(b"n", Slot(1)));
    for (name, was) in [first, second].into_iter().flatten() {
        names.not_taken(name, was);
    }
    assert!(matches!(names.meaning(b"n", Slot(2)), Meaning::Known(..)));
    assert!(took(Mark::TakenBackBefore));
}

/// A name that is closed, given and closed in one unit is in doubt until all of that is done.
#[test]
fn who_closes_twice_is_not_done_with_the_first() {
    let statement = statement(&mut Registry::default(), "SELECT");
    let mut names = Names::default();
    let (name, told) = names.give(b"n", Rc::clone(&statement), Slot(0));
    names.given(&name, &told);
    let (_, first) = names.take(b"n", Slot(1)).expect("a meaning");
    let (_, again) = names.give(b"n", Rc::clone(&statement), Slot(1));
    let (_, second) = names.take(b"n", Slot(1)).expect("a meaning");
    let unsettled = |names: &Names| matches!(names.meaning(b"n", Slot(2)), Meaning::Unsettled);
    names.taken(&name, &first);
    assert!(unsettled(&names));
    names.given(&name, &again);
    assert!(unsettled(&names));
    names.taken(&name, &second);
    assert!(names.is_empty());
}

/// Nor is the first Parse the second, though both give the name to the same statement.
#[test]
fn who_gives_twice_is_not_done_with_the_first() {
    let statement = statement(&mut Registry::default(), "SELECT");
    let mut names = Names::default();
    let (name, first) = names.give(b"n", Rc::clone(&statement), Slot(1));
    let (_, was) = names.take(b"n", Slot(1)).expect("a meaning");
    let (_, second) = names.give(b"n", statement, Slot(1));
    names.given(&name, &first);
    names.taken(&name, &was);
    assert!(matches!(names.meaning(b"n", Slot(2)), Meaning::Unsettled));
    names.not_given(&name, &first);
    assert!(matches!(names.meaning(b"n", Slot(2)), Meaning::Unsettled));
    names.given(&name, &second);
    assert!(matches!(names.meaning(b"n", Slot(2)), Meaning::Known(..)));
}

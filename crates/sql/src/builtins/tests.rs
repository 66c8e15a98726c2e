use std::collections::BTreeSet;

use super::{Builtin, EXCEPTIONS, Exception, GRAMMAR, INDEX, NUMBERS, builtin, quiet_functions};
use crate::rules::{Form, RULES};

#[test]
fn each_name_is_what_its_list_says() {
    let numbers: BTreeSet<_> = NUMBERS.split_ascii_whitespace().collect();
    for name in quiet_functions() {
        let is = if numbers.contains(name) { Builtin::Numbers } else { Builtin::Quiet };
        assert_eq!(builtin(name.as_bytes()), Some(is), "{name}");
        assert_eq!(builtin(name.to_uppercase().as_bytes()), Some(is), "{name}");
    }
    assert!(numbers.is_subset(&quiet_functions().collect()));
    for name in EXCEPTIONS.iter().flat_map(Exception::names) {
        assert_eq!(builtin(name.as_bytes()), Some(Builtin::Exception), "{name}");
    }
    for word in GRAMMAR.split_ascii_whitespace() {
        assert!(builtin(word.as_bytes()).is_some(), "{word}");
    }
    for name in ["", "x", "no_such_function", "dblink", "domain_out"] {
        assert_eq!(builtin(name.as_bytes()), None, "{name}");
    }
}

/// What leaves something in the session is no quiet function.
#[test]
fn the_lists_do_not_contradict_the_rules() {
    let quiet: BTreeSet<_> = quiet_functions().collect();
    assert!(quiet.iter().is_sorted());
    for name in EXCEPTIONS.iter().flat_map(Exception::names) {
        assert!(!quiet.contains(name), "{name} is on both lists");
    }
    for rule in RULES.iter().filter(|rule| matches!(rule.form, Form::Call | Form::SettingCall)) {
        assert!(!quiet.contains(rule.name), "{} is not quiet", rule.name);
    }
}

#[test]
fn most_names_are_found_at_once() {
    let far = INDEX.words.iter().filter(|(word, _)| {
        let slot = super::slot(word.as_bytes());
        let at = INDEX.words.get(usize::from(INDEX.slots[slot]));
        at.is_none_or(|(first, _)| first != word)
    });
    let (far, all) = (far.count(), INDEX.words.len());
    assert!(far * 4 < all, "{far} of {all} names are not where they are looked for first");
}

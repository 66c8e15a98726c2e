use std::collections::BTreeSet;

use super::{Reached, Row};

#[test]
fn each_row_has_a_place_and_a_name_of_its_own() {
    for (place, row) in Row::ALL.into_iter().enumerate() {
        assert_eq!(row as usize, place, "{row:?}");
    }
    let names: BTreeSet<_> = Row::ALL.map(Row::name).into();
    assert_eq!(names.len(), Row::ALL.len());
}

#[test]
fn what_is_reached_is_counted() {
    let mut sum = Reached::default();
    let mut one = Reached::default();
    one.note(Row::Full);
    sum.add(&one);
    sum.add(&one);
    assert_eq!((sum.times(Row::Full), sum.times(Row::Idle)), (2, 0));
}

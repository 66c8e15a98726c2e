use super::*;
use crate::results::tests::result;

#[test]
fn pictures_come_with_their_cases() {
    assert!(draw(&[]).is_empty());
    let results = [result("simple-64", &[[9.0, 4.0, 5.0, 6.0]])];
    let drawn = draw(&results);
    let files: Vec<&str> = drawn.iter().map(|picture| picture.file).collect();
    assert_eq!(files, ["tps-clients.svg", "tps-simple.svg"]);
    assert!(drawn[0].svg.contains("pgweir, pipelining off 5<"));
    assert!(drawn[1].svg.contains("pgweir 1.25"));
}

#[test]
fn who_was_not_measured_has_no_line() {
    let mut old = result("simple-64", &[[9.0, 4.0, 5.0, 6.0]]);
    old.rounds[0].samples.remove(&Contender::Pgweir);
    let drawn = draw(&[old]);
    assert!(!drawn[0].svg.contains(">pgweir 5<"));
    assert_eq!(drawn[0].svg.matches("<polyline").count(), 3);
}

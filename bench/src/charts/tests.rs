use super::*;
use crate::results::tests::result;

#[test]
fn pictures_come_with_their_cases() {
    assert!(draw(&[]).is_empty());
    let results = [result("simple-64", &[[9.0, 4.0, 5.0, 6.0]])];
    let drawn = draw(&results);
    assert_eq!(drawn.iter().map(|p| p.file).collect::<Vec<_>>(), ["tps-simple.svg"]);
    assert!(drawn[0].svg.contains("pgweir 1.25"));
}

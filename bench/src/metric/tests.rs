use super::*;

#[test]
fn thousands_are_grouped() {
    assert_eq!(grouped(999.4), "999");
    assert_eq!(grouped(12_345.6), "12,346");
    assert_eq!(grouped(1_000_000.0), "1,000,000");
    assert_eq!(grouped(-1_234.0), "-1,234");
    assert_eq!(grouped(-0.2), "0");
}

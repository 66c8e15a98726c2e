use super::may_be_sooner;

#[test]
fn a_timeout_that_is_longer_than_the_brake_does_not_matter() {
    for long in ["0", "51", "30000", "30s", "1min", "1 h", "1d", "4294967295d"] {
        assert!(!may_be_sooner(long.as_bytes()), "{long}");
    }
    for short in [
        "1",
        "50",
        "50ms",
        "50 ms",
        "40000us",
        "1e4",
        "060",
        "0.01s",
        "-1",
        "",
        "0x100",
        "99999999999",
    ] {
        assert!(may_be_sooner(short.as_bytes()), "{short}");
    }
}

use super::*;

#[test]
fn a_name_may_hold_what_separates_fields() {
    let stat = "7 (a) b) S 1 7 7 0 -1 4194560 99 0 0 0 120 30 5 6 20 0 1 0 33";
    assert_eq!(ticks_in(stat), Some(150));
}

#[test]
fn pss_is_not_one_of_its_parts() {
    let rollup = "55d0-7ffc ---p 00000000 00:00 0 [rollup]\nRss:   5000 kB\nPss:  4100 kB\n\
                  Pss_Dirty:  900 kB\nAnonymous:   800 kB\n";
    let memory = Memory { rss_kb: 5000, pss_kb: 4100, anonymous_kb: 800 };
    assert_eq!(memory_in(rollup), Some(memory));
}

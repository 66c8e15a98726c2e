use super::*;

#[test]
fn reads_what_pgbench_says() {
    let said = "number of transactions actually processed: 88113\n\
                number of failed transactions: 0 (0.000%)\n\
                tps = 29373.812 (without initial connection time)\n";
    assert_eq!(number_after(said, "tps = "), Some(29_373.812));
    assert_eq!(number_after(said, "actually processed: "), Some(88_113.0));
    assert_eq!(number_after(said, "no such label"), None);
}

#[test]
fn reads_times_of_transactions_that_did_not_fail() {
    assert_eq!(time_us_in("3 118 2011 0 1700000000 482190"), Some(2011));
    assert_eq!(time_us_in("3 118 2011 0 1700000000 482190 17"), Some(2011));
    assert_eq!(time_us_in("3 118 failed 0 1700000000 482190"), None);
}

use super::*;

#[test]
fn a_reply_ends_with_the_whole_of_its_ready_for_query() {
    let complete = b"C\0\0\0\x0dSELECT 1\0";
    let one = [&complete[..], b"Z\0\0\0\x05I"].concat();
    let two = [&one[..], &one].concat();
    assert_eq!(reply_in(&two), Some(one.len()));
    assert_eq!(reply_in(&one), Some(one.len()));
    for length in 0..one.len() {
        assert_eq!(reply_in(&one[..length]), None, "{length}");
    }
    // A `Z` in a row is none.
    let row = [b"D\0\0\0\x0aZ\0\0\0\x05I", &one[..]].concat();
    assert_eq!(reply_in(&row), Some(row.len()));
}

use super::*;

#[test]
fn reads_the_tag_before_the_last_ready() {
    let tail = b"rows\0C\0\0\0\x11COPY 1000000\0Z\0\0\0\x05I";
    assert_eq!(tag_of(tail).as_deref(), Some("COPY 1000000"));
}

#[test]
fn an_error_is_no_tag() {
    assert_eq!(tag_of(b"E\0\0\0\x0fMno such\0\0Z\0\0\0\x05I"), None);
    assert_eq!(tag_of(b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05T"), None);
}

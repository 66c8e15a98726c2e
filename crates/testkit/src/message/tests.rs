use super::Message;

fn shown(tag: u8, body: &[u8]) -> String {
    Message { tag, body: body.to_vec() }.to_string()
}

#[test]
fn what_differs_between_connections_is_masked_and_nothing_more() {
    assert_eq!(shown(b'K', b"\0\0\0\x05secret"), "BackendKeyData pid=<pid> secret=<6 bytes>");
    assert_eq!(
        shown(b'A', b"\0\0\0\x05chan\0load\0"),
        "NotificationResponse pid=<pid> \"chan\" \"load\""
    );
}

#[test]
fn a_bad_body_is_shown_whole() {
    let cases: [(u8, &[u8], &str); 7] = [
        (b'1', b"x", "ParseComplete (malformed) \"x\""),
        (b'C', b"SELECT 1", "CommandComplete (malformed) \"SELECT 1\""),
        (b'D', b"\0\x01\0\0\0\x02a", "DataRow (malformed) \"\\x00\\x01\\x00\\x00\\x00\\x02a\""),
        (b'D', b"\0\0?", "DataRow (malformed) \"\\x00\\x00?\""),
        (b'E', b"Mtext\0", "ErrorResponse (malformed) \"Mtext\\x00\""),
        (b'K', b"\0\0", "BackendKeyData (malformed) \"\\x00\\x00\""),
        (b'Z', b"", "ReadyForQuery (malformed) \"\""),
    ];
    for (tag, body, expected) in cases {
        assert_eq!(shown(tag, body), expected);
    }
}

#[test]
fn a_value_of_length_minus_two_is_bad_and_minus_one_is_null() {
    assert_eq!(shown(b'D', b"\0\x01\xff\xff\xff\xff"), "DataRow NULL");
    assert!(shown(b'D', b"\0\x01\xff\xff\xff\xfe").contains("malformed"));
}

#[test]
fn an_unknown_type_is_shown_as_it_is() {
    assert_eq!(shown(b'?', b"\xff\n"), "'?' \"\\xff\\n\"");
}

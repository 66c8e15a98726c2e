use super::*;

/// PostgreSQL 15: `SET password_encryption = md5; CREATE ROLE md5user PASSWORD 'pencil'`.
const STORED: &str = "md50098e7fab7b4d8d091067152a80b3f12";

#[test]
fn the_hash_is_the_one_that_postgresql_stores() {
    assert_eq!(Md5Hash::parse(STORED), Some(Md5Hash::of(b"pencil", b"md5user")));
    assert_ne!(Md5Hash::parse(STORED), Some(Md5Hash::of(b"pencil", b"md5user2")));
    assert_ne!(Md5Hash::parse(STORED), Some(Md5Hash::of(b"pen", b"md5user")));
}

#[test]
fn the_response_is_the_one_that_was_computed_by_other_means() {
    let hash = Md5Hash::of(b"pencil", b"md5user");
    assert_eq!(&hash.response([1, 2, 3, 4]), b"md5d8952cad425cbeb4f00aba7f8e35ff33");
}

#[test]
fn only_the_response_to_this_salt_is_accepted() {
    let hash = Md5Hash::of(b"pencil", b"md5user");
    let salt = [0, 255, 10, 13];
    let response = hash.response(salt);
    assert!(hash.accepts(salt, &response));
    assert!(!hash.accepts([0, 255, 10, 14], &response));
    assert!(!Md5Hash::of(b"Pencil", b"md5user").accepts(salt, &response));
    for len in 0..response.len() {
        assert!(!hash.accepts(salt, &response[..len]), "{len} bytes of it");
    }
    assert!(!hash.accepts(salt, &[&response[..], b"\0"].concat()));
    assert!(!hash.accepts(salt, response.to_ascii_uppercase().as_slice()));
}

#[test]
fn only_the_stored_form_is_read() {
    for text in [
        "",
        "md5",
        "MD50098e7fab7b4d8d091067152a80b3f12",
        "md50098E7FAB7B4D8D091067152A80B3F12",
        "md50098e7fab7b4d8d091067152a80b3f1",
        "md50098e7fab7b4d8d091067152a80b3f120",
        "md50098e7fab7b4d8d091067152a80b3f1g",
        " md50098e7fab7b4d8d091067152a80b3f12",
        "0098e7fab7b4d8d091067152a80b3f12",
    ] {
        assert_eq!(Md5Hash::parse(text), None, "{text:?}");
    }
}

#[test]
fn debug_shows_nothing() {
    assert_eq!(format!("{:?}", Md5Hash::parse(STORED)), "Some(Md5Hash(..))");
}

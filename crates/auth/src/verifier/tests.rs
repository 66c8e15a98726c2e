use super::*;
use crate::scram::{Iterations, LoginKeys};

/// PostgreSQL 15: `CREATE ROLE ascii PASSWORD 'pencil'`.
const SCRAM: &str = "SCRAM-SHA-256$4096:vwzgbNz3TExDYK1DJZwDPQ==\
    $88jkHtxoidxhTPXjzWfKWbGgyPojXF2U376GqeqwdPk=:5J4X+NUNqUt4DhxFW2+A79HpSO20X9jx7H+2LVlFZkU=";

/// The same with `password_encryption = md5`, for a role of the name `md5user`.
const MD5: &str = "md50098e7fab7b4d8d091067152a80b3f12";

const SALT: [u8; 4] = [9, 8, 7, 6];

fn parse(stored: &str) -> Verifier {
    Verifier::parse(stored).unwrap()
}

fn mock() -> MockAuth {
    MockAuth::new([7; 32], Iterations::new(2).unwrap())
}

#[test]
fn each_form_is_told_by_its_look() {
    assert_eq!(parse("pencil").kind(), VerifierKind::Plain);
    assert_eq!(parse(MD5).kind(), VerifierKind::Md5);
    assert_eq!(parse(SCRAM).kind(), VerifierKind::Scram);
}

#[test]
fn what_is_almost_a_hash_is_a_password() {
    for stored in [&MD5[..34], &SCRAM[..SCRAM.len() - 1], "md5", "SCRAM-SHA-256$", "scram", " "] {
        assert_eq!(parse(stored), Verifier::Plain(Secret::new(stored)), "{stored:?}");
    }
}

#[test]
fn what_nobody_can_type_is_refused() {
    assert_eq!(Verifier::parse(""), Err(VerifierError::Empty));
    assert_eq!(Verifier::parse("pen\0cil"), Err(VerifierError::NulByte));
}

#[test]
fn every_form_accepts_its_password_in_clear_and_no_other() {
    for stored in ["pencil", MD5, SCRAM] {
        let verifier = parse(stored);
        assert!(verifier.accepts_cleartext(b"md5user", b"pencil"), "{stored}");
        for wrong in ["", "pen", "pencil "] {
            assert!(!verifier.accepts_cleartext(b"md5user", wrong.as_bytes()), "{stored} {wrong}");
        }
    }
}

#[test]
fn a_stored_hash_is_not_a_password() {
    for stored in [MD5, SCRAM] {
        assert!(!parse(stored).accepts_cleartext(b"md5user", stored.as_bytes()), "{stored}");
    }
}

#[test]
fn an_empty_password_is_refused_even_if_its_hash_is_stored() {
    let hashes = [
        Verifier::Md5(Md5Hash::of(b"", b"user")),
        Verifier::Scram(ScramKeys::derive(b"", b"salt", Iterations::new(1).unwrap())),
        Verifier::Plain(Secret::new("")),
    ];
    for verifier in hashes {
        assert!(!verifier.accepts_cleartext(b"user", b""), "{verifier:?}");
    }
}

#[test]
fn md5_works_with_a_password_and_with_an_md5_hash() {
    let response = Md5Hash::of(b"pencil", b"md5user").response(SALT);
    assert!(parse("pencil").accepts_md5(b"md5user", SALT, &response));
    assert!(parse(MD5).accepts_md5(b"md5user", SALT, &response));
    assert!(!parse(SCRAM).accepts_md5(b"md5user", SALT, &response));
    assert!(!parse("Pencil").accepts_md5(b"md5user", SALT, &response));
    assert!(!parse("pencil").accepts_md5(b"another", SALT, &response));
    assert!(!parse(MD5).accepts_md5(b"md5user", [0; 4], &response));
}

#[test]
fn a_hash_that_is_known_logs_in_to_a_server() {
    let hash = Md5Hash::of(b"pencil", b"md5user");
    assert_eq!(parse("pencil").md5_hash(b"md5user"), Some(hash.clone()));
    assert_eq!(parse(MD5).md5_hash(b"md5user"), Some(hash));
    assert_eq!(parse(SCRAM).md5_hash(b"md5user"), None);
}

#[test]
fn scram_works_with_a_password_and_with_scram_keys() {
    let keys = parse("pencil").scram_keys(b"user", &mock()).unwrap();
    assert_eq!(keys.iterations(), mock().iterations());
    let derived = LoginKeys::derive(b"pencil", keys.salt(), keys.iterations());
    assert_eq!(keys, derived.scram_keys());
    assert_eq!(parse(SCRAM).scram_keys(b"user", &mock()), ScramKeys::parse(SCRAM));
    assert_eq!(parse(MD5).scram_keys(b"user", &mock()), None);
}

#[test]
fn debug_and_errors_show_no_secret() {
    for stored in ["pencil", MD5, SCRAM] {
        let shown = format!("{:?}", parse(stored));
        assert!(!shown.contains("pencil"), "{shown}");
        assert!(!shown.contains("0098e7"), "{shown}");
        // StoredKey and ServerKey as the bytes that a derived `Debug` would print.
        assert!(!shown.contains("243, 200, 228"), "{shown}");
        assert!(!shown.contains("228, 158, 23"), "{shown}");
    }
    let error = Verifier::parse("pen\0cil").unwrap_err();
    assert!(!format!("{error} {error:?}").contains("pen"));
}

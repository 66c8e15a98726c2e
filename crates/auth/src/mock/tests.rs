use super::*;
use crate::scram::{Nonce, ScramClient, ScramServer, ScramServerError};

const FEW: u32 = 3;

fn mock() -> MockAuth {
    MockAuth::new([42; 32], Iterations::new(FEW).unwrap())
}

#[test]
fn a_name_has_one_salt_for_ever() {
    assert_eq!(mock().salt(b"nobody"), mock().salt(b"nobody"));
    assert_ne!(mock().salt(b"nobody"), mock().salt(b"nobodx"));
    let other = MockAuth::new([43; 32], Iterations::new(FEW).unwrap());
    assert_ne!(mock().salt(b"nobody"), other.salt(b"nobody"));
    assert_eq!(mock().scram_keys(None, b"nobody"), mock().scram_keys(None, b"nobody"));
}

#[test]
fn what_is_made_up_for_one_purpose_tells_nothing_of_another() {
    assert_ne!(mock().digest("salt", b"nobody"), mock().digest("server key", b"nobody"));
    assert_ne!(mock().digest("salt", b"nobody"), mock().digest("sal", b"t\0nobody"));
}

#[test]
fn a_user_shows_the_same_salt_before_and_after_being_created() {
    let before = mock().scram_keys(None, b"alice");
    let created = Verifier::parse("pencil").unwrap();
    let after = created.scram_keys(b"alice", &mock()).unwrap();
    assert_eq!(before.salt(), after.salt());
    assert_eq!(before.iterations(), after.iterations());
}

#[test]
fn a_known_user_keeps_what_it_has() {
    let keys = ScramKeys::derive(b"pencil", b"salt", Iterations::new(FEW).unwrap());
    assert_eq!(mock().scram_keys(Some(&keys), b"alice"), keys);
    let verifier = Verifier::Scram(keys);
    assert_eq!(mock().verifier(Some(&verifier), VerifierKind::Plain, b"alice"), verifier);
}

#[test]
fn what_is_made_up_has_the_kind_asked_for_and_lets_nobody_in() {
    for kind in [VerifierKind::Plain, VerifierKind::Md5, VerifierKind::Scram] {
        let verifier = mock().verifier(None, kind, b"nobody");
        assert_eq!(verifier.kind(), kind);
        for password in [&b""[..], b"nobody", b"pencil", &[42; 32]] {
            assert!(!verifier.accepts_cleartext(b"nobody", password), "{kind:?}");
            let response = Md5Hash::of(password, b"nobody").response([1, 2, 3, 4]);
            assert!(!verifier.accepts_md5(b"nobody", [1, 2, 3, 4], &response), "{kind:?}");
        }
    }
}

/// What the server sends, and how it ends, when `alice` logs in with the password `guess`.
fn login(known: Option<&ScramKeys>, guess: &[u8]) -> (Vec<u8>, Result<(), ScramServerError>) {
    let server = ScramServer::new(mock().scram_keys(known, b"alice"), Nonce::new([1; 18]));
    let client = ScramClient::new(Nonce::new([2; 18]));
    let (server, server_first) = server.client_first(&client.client_first()).unwrap();
    let challenge = client.server_first(&server_first).unwrap();
    let (_, client_final) = challenge.answer(&challenge.derive_keys(guess)).unwrap();
    (server_first, server.client_final(&client_final).map(drop))
}

#[test]
fn an_unknown_user_and_a_wrong_password_look_the_same() {
    let alice = Verifier::parse("pencil").unwrap().scram_keys(b"alice", &mock()).unwrap();
    let unknown = login(None, b"guess");
    assert_eq!(unknown, login(Some(&alice), b"guess"));
    assert_eq!(unknown.1, Err(ScramServerError::WrongProof));
    assert_eq!(login(Some(&alice), b"pencil"), (unknown.0, Ok(())));
}

#[test]
fn debug_does_not_show_the_secret() {
    assert_eq!(format!("{:?}", mock()), "MockAuth { iterations: Iterations(3), .. }");
}

//! Both sides against each other.

use proptest::prelude::*;

use super::*;

const FEW: u32 = 2;

/// One login. Gives the server's error, if it has one.
fn login(
    keys: &ScramKeys,
    answer: impl FnOnce(&ScramChallenge) -> LoginKeys,
) -> Result<(), ScramServerError> {
    let server = ScramServer::new(keys.clone(), Nonce::new([3; 18]));
    let client = ScramClient::new(Nonce::new([4; 18]));
    let (server, server_first) = server.client_first(&client.client_first())?;
    let challenge = client.server_first(&server_first).unwrap();
    let (client, client_final) = challenge.answer(&answer(&challenge)).unwrap();
    let Authenticated { server_final } = server.client_final(&client_final)?;
    client.server_final(&server_final).unwrap();
    Ok(())
}

proptest! {
    #[test]
    fn the_password_gets_in_and_no_other(
        password in password(),
        guess in password(),
        salt in proptest::collection::vec(any::<u8>(), 0..40),
        iterations in 1..=FEW,
    ) {
        let iterations = Iterations::new(iterations).unwrap();
        let keys = ScramKeys::derive(&password, &salt, iterations);
        let accepted = login(&keys, |challenge| challenge.derive_keys(&password));
        prop_assert_eq!(accepted, Ok(()));
        prop_assume!(saslprep::prepare(&guess) != saslprep::prepare(&password));
        let refused = login(&keys, |challenge| challenge.derive_keys(&guess));
        prop_assert_eq!(refused, Err(ScramServerError::WrongProof));
    }
}

/// HMAC pads short keys with NULs, which PostgreSQL's passwords cannot have.
fn password() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(1..=u8::MAX, 0..80)
}

#[test]
fn a_password_gets_in_in_another_spelling_that_saslprep_makes_equal() {
    let keys = ScramKeys::derive("e\u{301}".as_bytes(), b"salt", Iterations::new(FEW).unwrap());
    for spelling in ["\u{e9}", "e\u{301}", "\u{ad}\u{e9}"] {
        assert!(login(&keys, |challenge| challenge.derive_keys(spelling.as_bytes())).is_ok());
    }
}

#[test]
fn a_mechanism_is_known_by_its_whole_name() {
    assert_eq!(Mechanism::parse(b"SCRAM-SHA-256"), Some(Mechanism::ScramSha256));
    for name in ["", "SCRAM-SHA-256-PLUS", "SCRAM-SHA-25", "scram-sha-256", "SCRAM-SHA-1"] {
        assert_eq!(Mechanism::parse(name.as_bytes()), None, "{name}");
    }
}

#[test]
fn a_mechanism_is_chosen_from_a_list() {
    let choose = |list: &[u8]| Mechanism::choose(list.split(|byte| *byte == 0));
    assert_eq!(choose(b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"), Some(Mechanism::ScramSha256));
    assert_eq!(choose(b"SCRAM-SHA-256"), Some(Mechanism::ScramSha256));
    assert_eq!(choose(b"OAUTHBEARER\0\0"), None);
    assert_eq!(choose(b""), None);
}

#[test]
fn a_nonce_is_printable_and_without_a_comma() {
    for random in [[0; Nonce::RANDOM_LEN], [255; Nonce::RANDOM_LEN], [44; Nonce::RANDOM_LEN]] {
        let nonce = Nonce::new(random);
        assert_eq!(nonce.as_str().len(), 24);
        assert!(nonce.as_str().bytes().all(|byte| byte.is_ascii_graphic() && byte != b','));
    }
}

use super::super::{ScramKeys, ScramServer};
use super::*;

fn few() -> Iterations {
    Iterations::new(2).unwrap()
}

fn client() -> ScramClient {
    ScramClient::new(Nonce::new([1; 18]))
}

/// Our nonce as it goes over the wire.
fn nonce() -> String {
    Nonce::new([1; 18]).as_str().to_owned()
}

fn challenge() -> ScramChallenge {
    let message = format!("r={}server,s=c2FsdA==,i=2", nonce());
    client().server_first(message.as_bytes()).unwrap()
}

/// The client after its proof, and what a server with the same secret says then.
fn proved() -> (ScramClientFinal, Vec<u8>) {
    let keys = ScramKeys::derive(b"pencil", b"salt", few());
    let server = ScramServer::new(keys, Nonce::new([2; 18]));
    let (server, server_first) = server.client_first(&client().client_first()).unwrap();
    let challenge = client().server_first(&server_first).unwrap();
    let (client, client_final) = challenge.answer(&challenge.derive_keys(b"pencil")).unwrap();
    (client, server.client_final(&client_final).unwrap().server_final)
}

#[test]
fn client_first_is_what_libpq_sends() {
    assert_eq!(client().client_first(), format!("n,,n=,r={}", nonce()).into_bytes());
}

#[test]
fn the_server_must_continue_our_nonce() {
    let own = nonce();
    for theirs in [own.clone(), own[1..].to_owned(), format!("x{own}"), "other".to_owned()] {
        let message = format!("r={theirs},s=c2FsdA==,i=2");
        let error = client().server_first(message.as_bytes()).unwrap_err();
        assert_eq!(error, ScramClientError::NonceMismatch, "{theirs}");
    }
}

#[test]
fn iterations_have_a_limit() {
    let with_count = |count: u32| {
        client().server_first(format!("r={}s,s=c2FsdA==,i={count}", nonce()).as_bytes())
    };
    let limit = Iterations::MAX_FROM_SERVER;
    assert_eq!(with_count(limit.count()).unwrap().iterations(), limit);
    let error = with_count(limit.count() + 1).unwrap_err();
    assert!(matches!(&error, ScramClientError::TooManyIterations(asked) if *asked > limit));
    assert_eq!(
        error.to_string(),
        "the server asks for 100001 SCRAM iterations, over the limit of 100000"
    );
}

#[test]
fn a_challenge_can_be_answered_with_new_keys_when_the_old_ones_do_not_fit() {
    let challenge = challenge();
    assert_eq!((challenge.salt(), challenge.iterations()), (&b"salt"[..], few()));
    for stale in [
        LoginKeys::derive(b"pencil", b"tlas", few()),
        LoginKeys::derive(b"pencil", b"salt", Iterations::new(3).unwrap()),
    ] {
        assert_eq!(challenge.answer(&stale).unwrap_err(), ScramClientError::KeysDoNotFit);
    }
    let (_, client_final) = challenge.answer(&challenge.derive_keys(b"pencil")).unwrap();
    let expected = format!("c=biws,r={}server,p=", nonce());
    assert!(client_final.starts_with(expected.as_bytes()));
}

#[test]
fn a_server_that_has_our_secret_is_believed() {
    let (client, server_final) = proved();
    assert_eq!(client.server_final(&server_final), Ok(()));
}

#[test]
fn a_server_that_does_not_have_our_secret_is_not_believed() {
    let (_, other) = {
        let challenge = challenge();
        let (client, _) = challenge.answer(&challenge.derive_keys(b"pencil")).unwrap();
        (client, ServerFinal::encode(&challenge.derive_keys(b"pen").server_signature(b"")))
    };
    let (client, server_final) = proved();
    let error = client.server_final(other.as_bytes()).unwrap_err();
    assert_eq!(error, ScramClientError::WrongServerSignature);
    // Nor one that repeats the signature of another login.
    let (client, _) = challenge().answer(&challenge().derive_keys(b"pencil")).unwrap();
    let error = client.server_final(&server_final).unwrap_err();
    assert_eq!(error, ScramClientError::WrongServerSignature);
}

#[test]
fn a_refusal_is_told_with_its_reason() {
    let (client, _) = proved();
    let error = client.server_final(b"e=invalid-proof").unwrap_err();
    assert_eq!(error, ScramClientError::Refused("invalid-proof".to_owned()));
    assert_eq!(error.to_string(), "the server refused the SCRAM exchange: invalid-proof");
}

#[test]
fn a_message_out_of_turn_is_refused() {
    let (after_proof, server_final) = proved();
    let error = client().server_first(&server_final).unwrap_err();
    assert!(matches!(error, ScramClientError::Message(_)));
    let error = after_proof.server_final(b"r=a,s=c2FsdA==,i=2").unwrap_err();
    assert!(matches!(error, ScramClientError::Message(_)));
}

#[test]
fn debug_shows_no_signature() {
    let (client, _) = proved();
    assert_eq!(format!("{client:?}"), "ScramClientFinal { server_signature: Key(..) }");
}

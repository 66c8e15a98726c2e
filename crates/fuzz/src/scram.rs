//! SCRAM-SHA-256, each side against an opponent who does not know the password.

use std::sync::LazyLock;

use pgweir_auth::MockAuth;
use pgweir_auth::scram::{
    Iterations, LoginKeys, MAX_CLIENT_MESSAGE_LEN, MAX_SERVER_MESSAGE_LEN, Nonce, ScramClient,
    ScramKeys, ScramServer, ScramServerError,
};

const PASSWORD: &[u8] = b"pencil";
const SALT: &[u8] = b"salt";

/// What the server side stores, and what the client side answers the usual challenge with.
static KEYS: LazyLock<LoginKeys> =
    LazyLock::new(|| LoginKeys::derive(PASSWORD, SALT, Iterations::DEFAULT));

/// More work than this for a challenge is not done here; the limit on it is checked all the same.
const CHEAP_ITERATIONS: u32 = 16;

/// Client-first and client-final, a line each, of somebody without the password. A user that does
/// not exist is treated alike.
pub(crate) fn server(data: &[u8]) {
    let mock = MockAuth::new([7; 32], Iterations::DEFAULT);
    let known = exchange(KEYS.scram_keys(), data);
    let unknown = exchange(mock.scram_keys(None, b"nobody"), data);
    assert_eq!(known, unknown, "a known user and an unknown one are told apart");
}

fn exchange(keys: ScramKeys, data: &[u8]) -> ScramServerError {
    let (first, last) = lines(data);
    let nonce = Nonce::new([9; Nonce::RANDOM_LEN]);
    let (next, challenge) = match ScramServer::new(keys, nonce).client_first(first) {
        Ok(next) => next,
        Err(error) => return error,
    };
    assert!(challenge.len() <= MAX_SERVER_MESSAGE_LEN + MAX_CLIENT_MESSAGE_LEN);
    assert!(challenge.starts_with(b"r=") && challenge.ends_with(b",i=4096"), "a malformed one");
    match next.client_final(last) {
        Ok(_) => panic!("somebody without the password got in"),
        Err(error) => {
            assert!(["08P01", "0A000", "28P01"].contains(&error.sqlstate()));
            assert!(error.to_string().is_ascii(), "an error shows what the client sent");
            error
        }
    }
}

/// Server-first and server-final, a line each, of somebody who does not know the password either.
pub(crate) fn client(data: &[u8]) {
    let (first, last) = lines(data);
    let client = ScramClient::new(Nonce::new([9; Nonce::RANDOM_LEN]));
    let challenge = match client.server_first(first) {
        Ok(challenge) => challenge,
        Err(error) => return assert!(error.to_string().is_ascii()),
    };
    let (salt, iterations) = (challenge.salt(), challenge.iterations());
    assert!(iterations <= Iterations::MAX_FROM_SERVER, "a server keeps us busy");
    let derived;
    let keys = if KEYS.fit(salt, iterations) {
        &*KEYS
    } else if iterations.count() <= CHEAP_ITERATIONS {
        derived = challenge.derive_keys(PASSWORD);
        &derived
    } else {
        return assert!(challenge.answer(&KEYS).is_err(), "keys for another salt are used");
    };
    let (next, answer) = challenge.answer(keys).expect("the keys fit");
    assert!(answer.starts_with(b"c=biws,r="), "channel binding that was not asked for");
    match next.server_final(last) {
        Ok(()) => panic!("a server without the password is believed"),
        Err(error) => assert!(error.to_string().is_ascii()),
    }
}

/// The first line, and all behind it.
fn lines(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, b""),
    }
}

use super::super::{Iterations, LoginKeys, ScramClient};
use super::*;

/// The exchange of RFC 7677 §3.
mod rfc {
    pub(super) const CLIENT_FIRST: &[u8] = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    pub(super) const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    pub(super) const SERVER_FIRST: &[u8] = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
        s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    pub(super) const CLIENT_FINAL: &[u8] = b"c=biws,\
        r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    pub(super) const SERVER_FINAL: &[u8] = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
    pub(super) const SALT: [u8; 16] = [
        0x5b, 0x6d, 0x99, 0x68, 0x9d, 0x12, 0x35, 0x8e, 0xec, 0xa0, 0x4b, 0x14, 0x12, 0x36, 0xfa,
        0x81,
    ];
}

fn keys() -> ScramKeys {
    ScramKeys::derive(b"pencil", b"salt", Iterations::new(2).unwrap())
}

/// A server that has sent its challenge, and the client's right answer to it.
fn challenged(client_first: &[u8], server_random: u8) -> (ScramServerFinal, Vec<u8>) {
    let (server, server_first) = ScramServer::new(keys(), Nonce::new([server_random; 18]))
        .client_first(client_first)
        .unwrap();
    let challenge = ScramClient::new(Nonce::new([1; 18])).server_first(&server_first).unwrap();
    let (_, client_final) = challenge.answer(&challenge.derive_keys(b"pencil")).unwrap();
    (server, client_final)
}

fn client_first() -> Vec<u8> {
    ScramClient::new(Nonce::new([1; 18])).client_first()
}

#[test]
fn the_exchange_of_rfc_7677_succeeds() {
    let keys = LoginKeys::derive(b"pencil", &rfc::SALT, Iterations::DEFAULT);
    let server = ScramServer::new(keys.scram_keys(), Nonce(rfc::SERVER_NONCE.to_owned()));
    let (server, server_first) = server.client_first(rfc::CLIENT_FIRST).unwrap();
    assert_eq!(server_first, rfc::SERVER_FIRST);
    let authenticated = server.client_final(rfc::CLIENT_FINAL).unwrap();
    assert_eq!(authenticated.server_final, rfc::SERVER_FINAL);
}

#[test]
fn the_answer_to_another_challenge_is_refused() {
    let (_, recorded) = challenged(&client_first(), 2);
    let (server, _) = challenged(&client_first(), 3);
    assert_eq!(server.client_final(&recorded).unwrap_err(), ScramServerError::NonceMismatch);
}

#[test]
fn a_nonce_that_is_cut_or_continued_is_refused() {
    for change in [|nonce: &str| nonce[1..].to_owned(), |nonce: &str| format!("{nonce}x")] {
        let (server, client_final) = challenged(&client_first(), 2);
        let text = String::from_utf8(client_final).unwrap();
        let nonce = text.split(',').nth(1).unwrap().strip_prefix("r=").unwrap();
        let message = text.replace(nonce, &change(nonce));
        let error = server.client_final(message.as_bytes()).unwrap_err();
        assert_eq!(error, ScramServerError::NonceMismatch);
    }
}

#[test]
fn a_proof_for_other_words_is_refused() {
    let (server, client_final) = challenged(&client_first(), 2);
    let text = String::from_utf8(client_final).unwrap();
    let message = text.replace(",p=", ",x=1,p=");
    let error = server.client_final(message.as_bytes()).unwrap_err();
    assert_eq!(error, ScramServerError::WrongProof);
}

#[test]
fn what_is_said_about_channel_binding_must_stay_the_same() {
    // The client answers as if it had said `n`: "biws".
    let as_not_offered = [b"y", &client_first()[1..]].concat();
    let (server, client_final) = challenged(&as_not_offered, 2);
    let error = server.client_final(&client_final).unwrap_err();
    assert_eq!(error, ScramServerError::ChannelBindingMismatch);
    // And as if it had said `y`, which is covered by the proof: "eSws".
    let (server, client_final) = challenged(&client_first(), 2);
    let text = String::from_utf8(client_final).unwrap().replace("biws", "eSws");
    let error = server.client_final(text.as_bytes()).unwrap_err();
    assert_eq!(error, ScramServerError::ChannelBindingMismatch);
}

#[test]
fn a_client_that_believes_channel_binding_is_not_offered_gets_in() {
    let bare = ClientFirst::encode_bare(&Nonce::new([1; 18]));
    let client_first = ClientFirst::encode(ChannelBinding::NotOffered, &bare);
    let (server, server_first) = ScramServer::new(keys(), Nonce::new([2; 18]))
        .client_first(client_first.as_bytes())
        .unwrap();
    let nonce = ServerFirst::parse(&server_first).unwrap().nonce;
    let without_proof = ClientFinal::encode_without_proof(ChannelBinding::NotOffered, nonce);
    assert!(without_proof.starts_with("c=eSws,"));
    let auth_message =
        message::auth_message(bare.as_bytes(), &server_first, without_proof.as_bytes());
    let login = LoginKeys::derive(b"pencil", b"salt", Iterations::new(2).unwrap());
    let client_final = ClientFinal::encode(&without_proof, &login.prove(&auth_message));
    assert!(server.client_final(client_final.as_bytes()).is_ok());
}

#[test]
fn a_message_out_of_turn_is_refused() {
    let (server, client_final) = challenged(&client_first(), 2);
    assert!(matches!(server.client_final(&client_first()), Err(ScramServerError::Message(_))));
    let server = ScramServer::new(keys(), Nonce::new([2; 18]));
    assert!(matches!(server.client_first(&client_final), Err(ScramServerError::Message(_))));
}

#[test]
fn errors_have_the_sqlstates_of_postgresql() {
    for (error, sqlstate) in [
        (MessageError::Empty.into(), "08P01"),
        (MessageError::ChannelBinding.into(), "08P01"),
        (MessageError::AuthorizationIdentity.into(), "0A000"),
        (MessageError::MandatoryExtension.into(), "0A000"),
        (ScramServerError::ChannelBindingMismatch, "08P01"),
        (ScramServerError::NonceMismatch, "08P01"),
        (ScramServerError::WrongProof, "28P01"),
    ] {
        assert_eq!(error.sqlstate(), sqlstate, "{error}");
    }
}

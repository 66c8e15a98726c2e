//! Our way in: how servers let us in, and which we do not believe.

use std::time::Duration;

use pgweir_auth::Md5Hash;
use pgweir_auth::scram::{Iterations, Nonce, ScramKeys, ScramServer};
use pgweir_engine::{Event, Mark};
use pgweir_wire::backend::{
    authentication_cleartext, authentication_md5, authentication_sasl,
    authentication_sasl_continue, authentication_sasl_final,
};
use pgweir_wire::frontend::SaslInitialResponse;

use crate::messages::{authentication_ok, columns, done, fatal, message, password, query, ready};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

/// A server that was asked for, has said this, and what it heard then.
fn challenged(challenge: &[u8]) -> (Stage, Peer, Peer) {
    let stage = Stage::new(&Setup::default());
    let client = stage.newcomer(&[]);
    let server = stage.bare_server();
    server.sends(challenge);
    (stage, server, client)
}

/// We log in by whatever the server asks for.
#[test]
fn a_server_that_asks_for_proof_gets_it() {
    let mut challenge = Vec::new();
    authentication_cleartext(&mut challenge);
    let (_stage, server, _client) = challenged(&challenge);
    assert_eq!(server.heard_bytes(), password("password"));

    let mut challenge = Vec::new();
    authentication_md5(&mut challenge, *b"salt");
    let (stage, server, client) = challenged(&challenge);
    let response = Md5Hash::of(b"password", b"user").response(*b"salt");
    let response = std::str::from_utf8(&response).expect("hexadecimal");
    assert_eq!(server.heard_bytes(), password(response));
    server.says([stage.welcome(&server)]);
    assert!(client.is_greeted());
}

/// Plays the server's part of a SCRAM exchange, of a user with this password.
fn scram(stage: &Stage, server: &Peer, secret: &[u8], salt: &[u8]) {
    let answer = server.heard_bytes();
    let first = SaslInitialResponse::parse(&answer[5..]).expect("an answer");
    assert_eq!(first.mechanism, b"SCRAM-SHA-256");
    let keys = ScramKeys::derive(secret, salt, Iterations::DEFAULT);
    let scram = ScramServer::new(keys, Nonce::new([5; Nonce::RANDOM_LEN]));
    let (last, challenge) = scram.client_first(first.data.expect("data")).expect("its first");
    let mut question = Vec::new();
    authentication_sasl_continue(&mut question, &challenge);
    server.sends(&question);
    let proof = server.heard_bytes();
    let Ok(authenticated) = last.client_final(&proof[5..]) else {
        return server.says([fatal("28P01")]);
    };
    let mut end = Vec::new();
    authentication_sasl_final(&mut end, &authenticated.server_final);
    server.says([end, stage.welcome(server)]);
}

fn sasl() -> Vec<u8> {
    let mut challenge = Vec::new();
    authentication_sasl(&mut challenge, &[b"SCRAM-SHA-256-PLUS", b"SCRAM-SHA-256"]);
    challenge
}

/// Deriving the keys takes a millisecond, so they are kept; with another salt (the password was set
/// again) they are others.
#[test]
fn a_server_that_asks_for_scram_gets_it_again_and_again() {
    let (stage, mut server, client) = challenged(&sasl());
    scram(&stage, &server, b"password", b"salt");
    assert!(client.is_greeted());
    for salt in [b"salt", b"more"] {
        server.ends();
        client.says([query("SELECT")]);
        server = stage.bare_server();
        server.sends(&sasl());
        scram(&stage, &server, b"password", salt);
        assert_eq!(server.heard(), "Q(SELECT)");
        server.says([done(), ready()]);
        assert_eq!(took(Mark::LoginKeysOld), salt == b"more");
    }
}

/// A password that is not the server's is refused by the server, and its words reach the client.
#[test]
fn a_server_that_has_another_password_says_so() {
    let (stage, server, client) = challenged(&sasl());
    scram(&stage, &server, b"changed", b"salt");
    assert_eq!(client.heard(), "R E(FATAL 28P01)");
    assert!(client.is_closed());
}

/// A server that asks for SCRAM and then takes us without having shown that it knows the password
/// is not the one that we meant.
#[test]
fn a_server_that_skips_its_own_proof_is_not_believed() {
    let (stage, server, client) = challenged(&sasl());
    server.says([stage.welcome(&server)]);
    assert!(server.is_aborted());
    assert_eq!(client.heard(), "R");
}

/// Nor is one that has another proof than ours, whose challenge is not for us, or that speaks
/// another mechanism: it is told nothing, and the next attempt may find the right one.
#[test]
fn a_server_that_does_not_know_the_password_is_not_believed() {
    let not_believed = |says: &[Vec<u8>]| {
        let (stage, server, client) = challenged(&says[0]);
        for words in &says[1..] {
            assert!(server.heard_bytes().starts_with(b"p"));
            server.sends(words);
        }
        assert_eq!((server.heard_bytes(), server.is_aborted()), (Vec::new(), true));
        assert!(client.is_open() && !client.is_greeted());
        stage.wait(Duration::from_millis(51));
        stage.server();
        assert!(client.is_greeted());
    };
    let built = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut message = Vec::new();
        write(&mut message);
        message
    };
    not_believed(&[built(&|out| authentication_sasl(out, &[b"SCRAM-SHA-256-PLUS"]))]);
    assert!(took(Mark::MechanismMissing));
    let challenge = |text: &str| built(&|out| authentication_sasl_continue(out, text.as_bytes()));
    not_believed(&[sasl(), challenge("r=another,s=c2FsdA==,i=4096")]);
    assert!(took(Mark::ChallengeUnfit));
    // What we say begins with our nonce, which is always the same on a stage.
    let (_stage, server, _client) = challenged(&sasl());
    let first = String::from_utf8_lossy(&server.heard_bytes()).into_owned();
    let (_, nonce) = first.split_once(",r=").expect("a nonce");
    let signature = "v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
    let end = built(&|out| authentication_sasl_final(out, signature.as_bytes()));
    not_believed(&[sasl(), challenge(&format!("r={nonce}more,s=c2FsdA==,i=4096")), end]);
    assert!(took(Mark::ServerUnproved));
}

/// What is no PostgreSQL is an attempt that failed, whatever it says.
#[test]
fn what_no_server_says_before_its_login_is_over_ends_the_attempt() {
    let http = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    let kerberos = message(b'R', &7u32.to_be_bytes());
    let long = |bytes: u32| [&b"N"[..], &(4 + bytes).to_be_bytes()].concat();
    let long = [long(30_001), long(65_536), long(100_000)];
    let others = [
        http,
        kerberos.clone(),
        b"R\0\0\0\x03".to_vec(),
        columns(),
        done(),
        ready(),
        message(b'R', b""),
    ];
    for wrong in long.iter().chain(&others) {
        let (stage, server, client) = challenged(wrong);
        assert!(server.is_aborted(), "{}", wrong.escape_ascii());
        let refused = |event: &Event| matches!(event, Event::ServerRefused { .. });
        assert!(stage.log().iter().any(refused));
        assert!(client.is_open());
        stage.wait(Duration::from_millis(51));
        stage.server();
        assert!(client.is_greeted());
    }
    assert!(took(Mark::LoginBroken));
    challenged(&long[0]);
    assert!(took(Mark::LoginMessageTooLong));
    challenged(&kerberos);
    assert!(took(Mark::MethodNotSpoken));
}

/// A message that was longer than what is retained was waited for until the attempt's time was up.
#[test]
fn the_longest_message_of_a_login_is_read_to_its_end() {
    let (stage, server, client) = challenged(&message(b'N', &[0; 30_000]));
    server.says([stage.welcome(&server)]);
    assert!(client.is_greeted());
}

/// What is said out of turn is no login either.
#[test]
fn parameters_before_the_proof_end_the_attempt() {
    let (_stage, server, _client) = challenged(&message(b'S', b"server_version\x0015.1\0"));
    assert!(server.is_aborted());
    let twice = [authentication_ok(), message(b'R', &12u32.to_be_bytes())].concat();
    let (_stage, server, _client) = challenged(&twice);
    assert!(server.is_aborted());
    assert!(took(Mark::ChallengedOutOfOrder));
}

/// Whoever can put a message into the stream behind the login must not be told the password.
#[test]
fn a_server_that_asks_again_is_told_nothing() {
    let built = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut message = Vec::new();
        write(&mut message);
        message
    };
    let cleartext = built(&|out| authentication_cleartext(out));
    let md5 = built(&|out| authentication_md5(out, *b"salt"));
    for again in [&cleartext, &md5, &sasl(), &authentication_ok()] {
        let (_stage, server, _client) = challenged(&[&authentication_ok()[..], again].concat());
        assert_eq!((server.heard_bytes(), server.is_aborted()), (Vec::new(), true));
    }
    for again in [&cleartext, &md5, &sasl()] {
        let (_stage, server, _client) = challenged(&cleartext);
        assert_eq!(server.heard_bytes(), password("password"));
        server.sends(again);
        assert_eq!((server.heard_bytes(), server.is_aborted()), (Vec::new(), true));
    }
}

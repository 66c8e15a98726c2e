//! Claims about PostgreSQL, put to a PostgreSQL.

#![expect(clippy::unwrap_used, reason = "the functions that the tests share may fail like them")]

use std::sync::LazyLock;

use pgweir_auth::scram::{
    Iterations, Nonce, ScramClient, ScramKeys, ScramServer, ScramServerError,
};
use pgweir_auth::{Md5Hash, MockAuth, Verifier, VerifierKind};
use pgweir_testkit::{Cluster, HostAuth, Message, WireClient, frames};

const USER: &str = "alice";
const PASSWORD: &str = "pencil";

/// The kinds of Authentication messages that carry SASL data.
const SASL_CONTINUE: u32 = 11;
const SASL_FINAL: u32 = 12;

static CLUSTER: LazyLock<Cluster> =
    LazyLock::new(|| Cluster::builder().auth(HostAuth::ScramSha256).user(USER, PASSWORD).start());

/// What PostgreSQL stores for a role with this password.
fn stored(role: &str, password: &str, encryption: &str) -> String {
    CLUSTER.psql(&format!(
        "SET password_encryption = '{encryption}';
         CREATE ROLE {role} PASSWORD '{password}';
         SELECT rolpassword FROM pg_authid WHERE rolname = '{role}'"
    ))
}

/// Connects as `user`, who is asked for SCRAM, and sends `client_first`. Gives the answer.
fn send_client_first(user: &str, client_first: &[u8]) -> (WireClient, Message) {
    let mut server = WireClient::open(CLUSTER.address()).unwrap();
    server.send(&frames::startup(frames::PROTOCOL_3_0, &[("user", user)])).unwrap();
    assert_eq!(server.read().unwrap().unwrap().body, b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    let len = u32::try_from(client_first.len()).unwrap().to_be_bytes();
    let body = [b"SCRAM-SHA-256\0", &len[..], client_first].concat();
    server.send(&frames::message(b'p', &body)).unwrap();
    let answer = server.read().unwrap().unwrap();
    (server, answer)
}

/// Sends `client_final` and gives the answer.
fn send_client_final(server: &mut WireClient, client_final: &[u8]) -> Message {
    server.send(&frames::message(b'p', client_final)).unwrap();
    server.read().unwrap().unwrap()
}

/// The SASL data of an Authentication message, which must be of this kind.
fn sasl_data(message: &Message, kind: u32) -> &[u8] {
    assert_eq!(message.tag, b'R', "{message}");
    message.body.strip_prefix(&kind.to_be_bytes()).unwrap()
}

fn client() -> ScramClient {
    ScramClient::new(Nonce::new([1; Nonce::RANDOM_LEN]))
}

#[test]
fn what_it_stores_accepts_the_password() {
    for (i, password) in [
        "pencil",
        " a  b ",
        "p\u{e4}ssw\u{f6}rd",
        "e\u{301}\u{a0}\u{ad}\u{2168}",
        "\u{ad}",
        "a\u{340}",
        "\u{1f130}bc",
        "\u{fb49}",
        "\u{5d0}\u{5d1}",
        "\u{5d0}a",
        "\u{1f600}",
        &"long".repeat(100),
    ]
    .iter()
    .enumerate()
    {
        let scram = stored(&format!("scram_{i}"), password, "scram-sha-256");
        let scram = ScramKeys::parse(&scram).unwrap();
        assert!(scram.accepts(password.as_bytes()), "{password}");
        let role = format!("md5_{i}");
        let md5 = Md5Hash::parse(&stored(&role, password, "md5")).unwrap();
        assert_eq!(md5, Md5Hash::of(password.as_bytes(), role.as_bytes()), "{password}");
    }
}

#[test]
fn it_takes_the_same_texts_for_hashes() {
    let scram = stored("source", PASSWORD, "scram-sha-256");
    for (i, text) in [
        "md50098e7fab7b4d8d091067152a80b3f12",
        "md50098E7FAB7B4D8D091067152A80B3F12",
        "md50098e7fab7b4d8d091067152a80b3f1",
        "md50098e7fab7b4d8d091067152a80b3f12a",
        "md5",
        &scram,
        &scram[1..],
        &scram[..scram.len() - 1],
        &scram[..scram.len() / 2],
        &scram.to_lowercase(),
        &scram.replace("4096", "four"),
        &scram.replacen(':', "$", 1),
        &scram.replace('=', ""),
    ]
    .iter()
    .enumerate()
    {
        // It stores a hash as it is, and the hash of everything else.
        let is_hash = stored(&format!("text_{i}"), text, "scram-sha-256") == **text;
        let read = Verifier::parse(text).unwrap();
        assert_eq!(read.kind() != VerifierKind::Plain, is_hash, "{text}");
    }
}

#[test]
fn it_lets_our_client_in_and_is_believed() {
    let (mut server, answer) = send_client_first(USER, &client().client_first());
    let challenge = client().server_first(sasl_data(&answer, SASL_CONTINUE)).unwrap();
    let keys = challenge.derive_keys(PASSWORD.as_bytes());
    let (proved, client_final) = challenge.answer(&keys).unwrap();
    let answer = send_client_final(&mut server, &client_final);
    assert_eq!(proved.server_final(sasl_data(&answer, SASL_FINAL)), Ok(()));
    assert_eq!(server.read().unwrap().unwrap().body, 0_u32.to_be_bytes());

    // And again with the keys of the first time, as they are kept.
    let (mut server, answer) = send_client_first(USER, &client().client_first());
    let challenge = client().server_first(sasl_data(&answer, SASL_CONTINUE)).unwrap();
    let (proved, client_final) = challenge.answer(&keys).unwrap();
    let answer = send_client_final(&mut server, &client_final);
    assert_eq!(proved.server_final(sasl_data(&answer, SASL_FINAL)), Ok(()));
}

#[test]
fn it_shows_an_unknown_user_a_salt_like_ours() {
    let challenge = || {
        let (server, answer) = send_client_first("nobody", &client().client_first());
        let challenge = client().server_first(sasl_data(&answer, SASL_CONTINUE)).unwrap();
        (server, challenge)
    };
    let ((_, first), (mut server, second)) = (challenge(), challenge());
    assert_eq!(first.salt(), second.salt());
    let mock = MockAuth::new([0; 32], Iterations::DEFAULT);
    assert_eq!(first.salt().len(), mock.salt(b"nobody").len());
    assert_eq!(first.iterations(), mock.iterations());
    let (_, client_final) = second.answer(&second.derive_keys(b"guess")).unwrap();
    let answer = send_client_final(&mut server, &client_final);
    assert_eq!(answer.sqlstate(), ScramServerError::WrongProof.sqlstate());
}

#[test]
fn it_refuses_the_same_first_messages_as_our_server() {
    for message in [
        "n,,n=,r=abc",
        "y,,n=,r=abc",
        "n,,n=user,r=abc,x=1",
        "n,,n=,r=a\0",
        "n",
        "x,,n=,r=abc",
        "nn,,n=,r=abc",
        "n=,r=abc",
        "n,x,n=,r=abc",
        "p=tls-server-end-point,,n=,r=abc",
        "n,a=root,n=,r=abc",
        "n,,m=x,n=,r=abc",
        "n,,",
        "n,,r=abc",
        "n,,n,r=abc",
        "n,,n=",
        "n,,n=,n=,r=abc",
        "n,,n=,r",
        "n,,n=,r=a b",
        "n,,n=,r=caf\u{e9}",
        "n,,n=,r=abc,x",
        "n,,n=,r=abc,1=x",
        "n,,n=,r=abc,xx=1",
    ] {
        let (_, answer) = send_client_first(USER, message.as_bytes());
        match our_server().client_first(message.as_bytes()) {
            Ok(_) => assert_eq!(answer.tag, b'R', "{message:?} {answer}"),
            Err(error) => assert_eq!(answer.sqlstate(), error.sqlstate(), "{message:?} {answer}"),
        }
    }
}

#[test]
fn it_refuses_the_same_last_messages_as_our_server() {
    let changes: [fn(&str) -> String; 15] = [
        |right| right.to_owned(),
        |right| right.replace("c=biws", "c=eSws"),
        |right| right.replace("c=biws,", ""),
        |right| right.replace("c=biws", "c="),
        |right| right.replace("biws", "biws\0"),
        |right| right.replace(",r=", ",r=x"),
        |right| right.replace(",p=", "x,p="),
        |right| right.replace(",r=", ",s="),
        |right| right.replace(",p=", ",x=1,p="),
        |right| right.replace(",p=", ",9=1,p="),
        |right| right.replace(",p=", ",,p="),
        |right| right.split(",p=").next().unwrap_or_default().to_owned(),
        |right| right.replace(",p=", ",p=AAAA"),
        |right| format!("{right},x=1"),
        |right| format!("{}=", right.trim_end_matches('=')).replace(",p=", ",p=A"),
    ];
    for (i, change) in changes.iter().enumerate() {
        let (mut theirs, answer) = send_client_first(USER, &client().client_first());
        let message = change(&right_client_final(sasl_data(&answer, SASL_CONTINUE)));
        let answer = send_client_final(&mut theirs, message.as_bytes());

        let (ours, server_first) = our_server().client_first(&client().client_first()).unwrap();
        let message = change(&right_client_final(&server_first));
        match ours.client_final(message.as_bytes()) {
            Ok(_) => assert_eq!(answer.tag, b'R', "{i} {message:?} {answer}"),
            Err(error) => {
                assert_eq!(answer.sqlstate(), error.sqlstate(), "{i} {message:?} {answer}");
            }
        }
    }
}

#[test]
fn it_lets_pass_what_no_client_sends_and_our_server_refuses() {
    for message in ["n,,n=,r=", "n,,n=,r=abc,"] {
        let (_, answer) = send_client_first(USER, message.as_bytes());
        assert_eq!(answer.tag, b'R', "{message:?} {answer}");
        assert!(our_server().client_first(message.as_bytes()).is_err(), "{message:?}");
    }
}

fn our_server() -> ScramServer {
    let keys = ScramKeys::derive(PASSWORD.as_bytes(), b"salt", Iterations::DEFAULT);
    ScramServer::new(keys, Nonce::new([2; Nonce::RANDOM_LEN]))
}

/// The right answer to a challenge.
fn right_client_final(server_first: &[u8]) -> String {
    let challenge = client().server_first(server_first).unwrap();
    let keys = challenge.derive_keys(PASSWORD.as_bytes());
    let (_, client_final) = challenge.answer(&keys).unwrap();
    String::from_utf8(client_final).unwrap()
}

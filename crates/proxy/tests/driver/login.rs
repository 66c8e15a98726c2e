//! The way in: which clients are let in, and what the others are told.

use std::time::Duration;

use pgweir_auth::Md5Hash;
use pgweir_auth::scram::{Nonce, ScramClient};
use pgweir_engine::{Event, Mark, NEWCOMERS};
use pgweir_wire::frontend::{SaslInitialResponse, write_sasl_response};
use pgweir_wire::{Header, ProtocolVersion};

use crate::messages::{
    done, from_backend, message, one_row, password, query, ready, ssl_request, startup, startup_of,
    sync,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

const MINE: [(&str, &str); 2] = [("user", "user"), ("database", "db")];

/// A stage that asks its clients for proof.
fn guarded(auth: &'static str) -> Stage {
    Stage::new(&Setup { auth, ..Setup::default() })
}

/// Somebody who has sent this as its first bytes.
fn first_bytes(stage: &Stage, bytes: &[u8]) -> Peer {
    let stranger = stage.stranger();
    stranger.sends(bytes);
    stranger
}

/// No server is asked for before the client has proved who it is.
#[test]
fn who_proves_who_it_is_is_let_in() {
    let stage = guarded("password");
    let alice = stage.newcomer(&[]);
    assert_eq!(alice.heard_bytes(), message(b'R', &3u32.to_be_bytes()));
    assert_eq!(stage.attempts(), 0);
    alice.says([password("password")]);
    stage.server();
    assert!(alice.is_greeted());
}

/// The same by MD5, which older drivers speak.
#[test]
fn who_proves_it_by_md5_is_let_in() {
    let stage = guarded("md5");
    let alice = stage.newcomer(&[]);
    let salt: [u8; 4] = alice.heard_bytes()[9..].try_into().expect("a salt");
    let response = Md5Hash::of(b"password", b"user").response(salt);
    let response = std::str::from_utf8(&response).expect("hexadecimal");
    alice.says([password(response)]);
    stage.server();
    assert!(alice.is_greeted());
}

/// A wrong password, a user and a database that do not exist look the same from outside.
#[test]
fn who_does_not_is_not_told_why() {
    for auth in ["password", "md5"] {
        let stage = guarded(auth);
        for (user, database) in [("user", "db"), ("nobody", "db"), ("user", "nothing")] {
            let stranger = first_bytes(&stage, &startup(&[("user", user), ("database", database)]));
            assert_eq!(stranger.heard(), "R");
            stranger.says([password("guess")]);
            assert_eq!(stranger.heard(), "E(FATAL 28P01)", "{user}, {database}");
            assert!(stranger.is_closed());
            let is_known = (user, database) == ("user", "db");
            assert!(if is_known { took(Mark::ProofWrong) } else { took(Mark::ProofOfNobody) });
        }
        assert_eq!(stage.attempts(), 0, "no server is opened for a stranger");
    }
}

/// Chooses a SASL mechanism and begins it like this.
fn sasl(mechanism: &str, first: &[u8]) -> Vec<u8> {
    let mut answer = Vec::new();
    SaslInitialResponse::write(&mut answer, mechanism.as_bytes(), first);
    answer
}

/// Answers a SCRAM challenge; says what came of it.
fn scram(client: &Peer, secret: &[u8]) -> String {
    assert_eq!(client.heard(), "R");
    let scram = ScramClient::new(Nonce::new([5; Nonce::RANDOM_LEN]));
    client.sends(&sasl("SCRAM-SHA-256", &scram.client_first()));
    let challenge = client.heard_bytes();
    let challenge = scram.server_first(&challenge[9..]).expect("a challenge");
    let keys = challenge.derive_keys(secret);
    let (last, answer) = challenge.answer(&keys).expect("an answer");
    let mut proof = Vec::new();
    write_sasl_response(&mut proof, &answer);
    client.sends(&proof);
    let heard = client.heard_bytes();
    let header = Header::parse(&heard).expect("a message").expect("a whole one");
    if header.tag == b'R' {
        last.server_final(&heard[9..header.message_len()]).expect("we know the password, too");
    }
    from_backend(&heard)
}

/// The same by SCRAM, in which we prove ourselves too.
#[test]
fn who_proves_it_by_scram_is_let_in() {
    let stage = guarded("scram-sha-256");
    let alice = stage.newcomer(&[]);
    assert_eq!(scram(&alice, b"password"), "R R");
    stage.server();
    assert!(alice.is_greeted());
}

/// The exchange with somebody who does not exist is for show, and goes all the way.
#[test]
fn who_does_not_prove_it_by_scram_is_not_told_why() {
    let stage = guarded("scram-sha-256");
    let known = stage.newcomer(&[]);
    assert_eq!(scram(&known, b"guess"), "E(FATAL 28P01)");
    assert!(took(Mark::ScramProofWrong));
    let unknown = first_bytes(&stage, &startup(&[("user", "nobody")]));
    assert_eq!(scram(&unknown, b"password"), "E(FATAL 28P01)");
    assert!(took(Mark::ProofOfNobody));
    assert!(known.is_closed() && unknown.is_closed());
    assert_eq!(stage.attempts(), 0);
}

/// Who asks for what is not supported is told so; an answer that makes no sense is a violation.
#[test]
fn a_scram_answer_that_does_not_fit_gets_the_sqlstate_of_postgresql() {
    for (first, refusal) in [
        ("n,a=root,n=,r=abc", "E(FATAL 0A000)"),
        ("n,,m=x,n=,r=abc", "E(FATAL 0A000)"),
        ("n,,r=abc", "E(FATAL 08P01)"),
    ] {
        let stage = guarded("scram-sha-256");
        let stranger = stage.newcomer(&[]);
        assert_eq!(stranger.heard(), "R");
        stranger.sends(&sasl("SCRAM-SHA-256", first.as_bytes()));
        assert_eq!(stranger.heard(), refusal, "{first}");
        assert!(stranger.is_closed());
        assert!(took(Mark::ScramNotBegun));
    }
}

/// Nor does SCRAM end with the answer to another challenge, or begin where none was chosen.
#[test]
fn what_is_no_scram_is_refused() {
    let refused = |auth, answers: &[&[u8]]| {
        let stage = guarded(auth);
        let stranger = stage.newcomer(&[]);
        for answer in answers {
            assert!(stranger.heard_bytes().starts_with(b"R"));
            stranger.sends(answer);
        }
        assert_eq!(stranger.heard(), "E(FATAL 08P01)");
        assert!(stranger.is_closed());
        assert_eq!((stage.attempts(), stage.clients_left()), (0, 0));
    };
    let first = ScramClient::new(Nonce::new([5; Nonce::RANDOM_LEN])).client_first();
    let auth = "scram-sha-256";
    let end = message(b'p', b"c=biws,r=another,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    for end in [&end, &message(b'p', b"no end")] {
        refused(auth, &[&sasl("SCRAM-SHA-256", &first), end]);
        assert!(took(Mark::ScramNotEnded));
    }
    refused(auth, &[&sasl("SCRAM-SHA-1", &first)]);
    assert!(took(Mark::MechanismUnknown));
    refused(auth, &[&message(b'p', b"SCRAM-SHA-256\0")]);
    assert!(took(Mark::SaslMalformed));
}

/// A stranger's SCRAM exchange begins like anybody's.
#[test]
fn scram_is_offered_to_strangers_too() {
    let stage = guarded("scram-sha-256");
    let known = stage.newcomer(&[]).heard_bytes();
    let unknown = first_bytes(&stage, &startup(&[("user", "nobody")])).heard_bytes();
    assert_eq!(known, unknown);
    assert!(known.windows(13).any(|bytes| bytes == b"SCRAM-SHA-256"));
}

/// There is nobody to prove anything where everybody is trusted: the name is what is wrong.
#[test]
fn a_pool_that_does_not_exist_is_named_where_everybody_is_trusted() {
    let stage = guarded("trust");
    let stranger = first_bytes(&stage, &startup(&[("user", "nobody"), ("database", "db")]));
    assert_eq!(stranger.heard(), "E(FATAL 28000)");
    assert!(stranger.is_closed());
    assert!(stage.log().iter().any(|event| matches!(event, Event::LoginRefused { .. })));
}

/// libpq sends everything with one write when it knows what it will be asked.
#[test]
fn a_password_and_a_query_may_come_with_the_startup_packet() {
    let stage = guarded("password");
    let alice = stage.stranger();
    alice.says([startup(&MINE), password("password"), query("SELECT")]);
    assert_eq!(stage.server().heard(), "Q(SELECT)");
    assert!(alice.is_greeted());
}

/// One that has nothing more to say has said all that, wherever in the turn its end is seen.
#[test]
fn who_says_all_at_once_and_no_more_is_answered() {
    let stage = guarded("password");
    let alice = stage.stranger();
    stage.keep_turn_open();
    alice.says_and_ends([startup(&MINE), password("password"), query("SELECT")]);
    stage.end_turn();
    let server = stage.server();
    assert_eq!(server.heard(), "Q(SELECT)");
    server.says([done(), ready()]);
    assert!(alice.heard().ends_with("Z C Z"));
    assert!(alice.is_closed());
}

/// What is missing will not come any more.
#[test]
fn who_ends_inside_a_login_is_let_go() {
    let proof = password("password");
    let ends: [&[&[u8]]; 4] =
        [&[], &[&startup(&MINE)[..9]], &[&startup(&MINE)], &[&startup(&MINE), &proof[..7]]];
    for said in ends {
        let stage = guarded("password");
        let alice = stage.stranger();
        alice.says_and_ends(said);
        assert!(alice.is_closed(), "{said:?}");
        assert_eq!((stage.clients_left(), stage.attempts()), (0, 0));
    }
}

/// A connection that says nothing costs a descriptor: it is closed when its time is over.
#[test]
fn a_login_ends_after_client_login_timeout() {
    let stage = guarded("password");
    let silent = stage.stranger();
    stage.wait(Duration::from_secs(10));
    let asked = stage.newcomer(&[]);
    assert_eq!(asked.heard(), "R");
    stage.wait(Duration::from_millis(5_001));
    assert_eq!(silent.heard(), "E(FATAL 08006)");
    assert!(silent.is_closed() && asked.is_open());
    stage.wait(Duration::from_secs(10));
    assert_eq!(asked.heard(), "E(FATAL 08006)");
    assert!(asked.is_closed());
}

/// What had come of an answer when its time was over is the beginning of nobody else's.
#[test]
fn half_a_password_is_forgotten_at_client_login_timeout() {
    let stage = guarded("password");
    let proof = password("password");
    for cut in [1, 4, 7] {
        let late = stage.newcomer(&[]);
        late.sends(&proof[..cut]);
        stage.wait(Duration::from_millis(15_001));
        assert_eq!(late.heard(), "R E(FATAL 08006)");
        assert!(late.is_closed());
        late.sends(&proof[cut..]);
        assert_eq!((stage.clients_left(), stage.attempts()), (0, 0), "cut at {cut}");
    }
    let bob = stage.newcomer(&[]);
    assert_eq!(bob.heard(), "R");
    bob.says([proof]);
    let server = stage.server();
    assert!(bob.is_greeted());
    bob.says([query("bob")]);
    assert_eq!(server.heard(), "Q(bob)");
    server.says([one_row("bob")]);
    assert_eq!(bob.heard(), "T D(bob) C Z");
}

/// The time is for the login: who has logged in may be silent for as long as it likes.
#[test]
fn a_session_does_not_end_after_client_login_timeout() {
    let (stage, _server, alice) = Stage::ready(&Setup::default());
    stage.wait(Duration::from_secs(100));
    assert!(alice.is_open());
}

/// Without TLS the answer is N, and the client goes on in plain.
#[test]
fn encryption_is_declined() {
    let (stage, _server, _alice) = Stage::ready(&Setup::default());
    let mut gss = ssl_request();
    gss[7] += 1;
    let bob = first_bytes(&stage, &gss);
    assert_eq!(bob.heard_bytes(), b"N");
    bob.says([ssl_request()]);
    assert_eq!(bob.heard_bytes(), b"N");
    bob.says([startup(&MINE)]);
    assert!(bob.is_greeted());
}

/// Bytes behind the request would be read as if they had come encrypted (CVE-2021-23214).
#[test]
fn bytes_behind_a_request_for_encryption_are_refused() {
    let stage = guarded("trust");
    let stranger = first_bytes(&stage, &[ssl_request(), startup(&MINE)].concat());
    assert_eq!(stranger.heard(), "E(FATAL 08P01)");
    assert!(stranger.is_closed());
}

/// Each gets the SQLSTATE that PostgreSQL gives it, and leaves nothing open.
#[test]
fn what_is_no_startup_packet_is_refused() {
    let version_2 = [8u32, 2 << 16].map(u32::to_be_bytes).concat();
    for (bytes, code) in [
        (&version_2[..], "E(FATAL 0A000)"),
        (&[0, 0, 0, 7], "E(FATAL 08P01)"),
        (b"GET / HTTP/1.1\r\n\r\n", "E(FATAL 08P01)"),
        (&startup(&[("user", "")]), "E(FATAL 28000)"),
        (&startup(&[("user", "user"), ("replication", "maybe")]), "E(FATAL 22023)"),
        (&startup(&[("user", "user"), ("pgweir.pipelining", "on")]), "E(FATAL 22023)"),
        (&startup(&[("user", "user"), ("options", "-c pgweir.pipelining=1")]), "E(FATAL 22023)"),
        (&startup(&[("user", "user"), ("options", "-x")]), "E(FATAL 42601)"),
        (&startup(&[("user", "user"), ("options", "-c work_mem")]), "E(FATAL 42601)"),
        (&startup(&[("user", "user"), ("options", "-f z")]), "E(FATAL 42601)"),
    ] {
        let stage = guarded("trust");
        let stranger = first_bytes(&stage, bytes);
        assert_eq!(stranger.heard(), code, "{}", bytes.escape_ascii());
        assert!(stranger.is_closed());
        assert_eq!(stage.connections(), 0);
    }
}

/// A client of a later protocol is told what is spoken here, and goes on with that.
#[test]
fn a_later_protocol_is_negotiated() {
    let (stage, _server, _alice) = Stage::ready(&Setup::default());
    for (minor, options, told, secret) in
        [(0, false, false, 4), (2, false, false, 32), (9, false, true, 32), (0, true, true, 4)]
    {
        let option = [("_pq_.unknown", "on")];
        let parameters = [&MINE[..], if options { &option } else { &[] }].concat();
        let version = ProtocolVersion(3 << 16 | minor);
        let client = first_bytes(&stage, &startup_of(version, &parameters));
        let heard = client.heard_bytes();
        let header = Header::parse(&heard).expect("a message").expect("a whole one");
        assert_eq!(header.tag == b'v', told, "3.{minor}");
        let key = heard.len() - 6 - (9 + secret);
        assert_eq!(heard[key], b'K', "3.{minor}: a secret of {secret} bytes");
    }
}

/// One client too many is told so, before it costs anything.
#[test]
fn more_clients_than_max_clients_are_refused() {
    let (stage, _server, alice) = Stage::ready(&Setup::with("max_clients = 2"));
    let bob = stage.client();
    let carol = stage.newcomer(&[]);
    assert_eq!(carol.heard(), "E(FATAL 53300)");
    assert!(carol.is_closed());
    bob.ends();
    assert!(stage.newcomer(&[]).is_greeted());
    assert!(alice.is_open());
}

/// Those that say nothing take no more than a few places beyond `max_clients`.
#[test]
fn a_crowd_that_says_nothing_is_refused_before_it_says_it() {
    let (stage, _server, alice) = Stage::ready(&Setup::with("max_clients = 2"));
    let _bob = stage.client();
    let silent: Vec<_> = (0..NEWCOMERS).map(|_| stage.stranger()).collect();
    let late = stage.stranger();
    assert_eq!(late.heard(), "E(FATAL 53300)");
    assert!(late.is_closed() && alice.is_open());
    assert!(silent.iter().all(Peer::is_open));
    late.ends();
    silent[0].ends();
    let carol = stage.newcomer(&[]);
    assert_eq!(carol.heard(), "E(FATAL 53300)");
}

/// A client that has left and does not read what it is owed keeps a descriptor, and counts.
#[test]
fn who_does_not_read_its_last_words_is_still_one_of_max_clients() {
    let ends: [fn(&Stage, &Peer); 3] = [
        |_, alice| alice.takes_all(),
        |_, alice| {
            alice.deafens();
            alice.takes_all();
        },
        |stage, _| {
            stage.wait(Duration::from_secs(1));
            stage.wait(Duration::from_secs(16 * 60));
        },
    ];
    for end in ends {
        let (stage, server, alice) = Stage::ready(&Setup::with("max_clients = 1"));
        alice.takes(0);
        alice.says_and_ends([query("SELECT")]);
        server.says([done(), ready()]);
        assert_eq!((stage.clients(), stage.clients_left()), (Vec::new(), 1));
        let bob = stage.newcomer(&[]);
        assert_eq!(bob.heard(), "E(FATAL 53300)");
        end(&stage, &alice);
        assert_eq!(stage.clients_left(), 0);
        stage.client();
    }
}

/// Only a password is an answer to the question for one, and no password is long.
#[test]
fn another_answer_than_a_password_is_refused() {
    let refused = |auth, wrong: Vec<u8>| {
        let stage = guarded(auth);
        let stranger = stage.newcomer(&[]);
        assert_eq!(stranger.heard(), "R");
        stranger.says([wrong]);
        assert_eq!(stranger.heard(), "E(FATAL 08P01)");
        assert!(stranger.is_closed());
        assert_eq!((stage.attempts(), stage.clients_left()), (0, 0));
    };
    for auth in ["password", "md5", "scram-sha-256"] {
        for wrong in [query("SELECT"), sync()] {
            refused(auth, wrong);
            assert!(took(Mark::NoProof));
        }
        refused(auth, [&b"p"[..], &60_000u32.to_be_bytes()].concat());
        assert!(took(Mark::ProofTooLong));
        refused(auth, [&b"p"[..], &3u32.to_be_bytes()].concat());
        assert!(took(Mark::ProofMalformed));
    }
    for auth in ["password", "md5"] {
        refused(auth, message(b'p', b"no end"));
        assert!(took(Mark::PasswordMalformed));
    }
}

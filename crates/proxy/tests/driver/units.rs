//! What a server is needed for, and what is answered or refused without one.

use pgweir_engine::{ClientState, ServerActivity, TICK};

use crate::messages::{
    bind, bind_complete, close_statement, copy_data, copy_done, copy_fail, copy_in,
    describe_statement, done, error, execute, flush, in_block, message, no_data, no_parameters,
    parse, parse_as, parse_complete, password, query, ready, sync, terminate,
};
use crate::stage::{Setup, Stage};

/// The reply to Parse, Bind, Execute and Sync.
fn batch_reply() -> [Vec<u8>; 4] {
    [parse_complete(), bind_complete(), done(), ready()]
}

/// A client that makes up its mind slowly would hold a server that others wait for.
#[test]
fn a_unit_gets_a_server_once_it_is_whole() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("SELECT 1"), bind(), execute()]);
    assert_eq!((server.heard(), stage.clients()), (String::new(), vec![ClientState::Idle]));
    alice.says([sync()]);
    assert_eq!(server.heard(), "P(SELECT 1) B E S");
    server.says(batch_reply());
    assert_eq!(alice.heard(), "1 2 C Z");
    let [start, end] = [&query("SELECT 2")[..7], &query("SELECT 2")[7..]].map(<[u8]>::to_vec);
    alice.sends(&start);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    alice.sends(&end);
    assert_eq!(server.heard(), "Q(SELECT 2)");
}

/// A client may wait for what is said without being asked for: an error, or CopyInResponse.
#[test]
fn a_batch_without_its_end_does_not_wait_for_ever() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("COPY t FROM STDIN"), bind(), execute()]);
    stage.wait(TICK / 2);
    assert_eq!(server.heard(), "");
    stage.wait(TICK);
    assert_eq!(server.heard(), "P(COPY t FROM STDIN) B E");
    server.says([parse_complete(), bind_complete(), copy_in()]);
    assert_eq!(alice.heard(), "1 2 G");
    alice.says([copy_data(b"1"), copy_done(), sync()]);
    server.says([done(), ready()]);
    assert_eq!((alice.heard().as_str(), stage.servers()), ("C Z", vec![ServerActivity::Idle]));
    // The next one has its own time.
    alice.says([parse("bad")]);
    assert_eq!(server.heard(), "d c S");
    stage.wait(TICK);
    server.says([error("42601")]);
    assert_eq!((server.heard().as_str(), alice.heard().as_str()), ("P(bad)", "E(42601)"));
    alice.says([sync()]);
    server.says([ready()]);
    assert_eq!((alice.heard().as_str(), stage.servers()), ("Z", vec![ServerActivity::Idle]));
}

/// PostgreSQL has nothing to say to it.
#[test]
fn a_part_of_a_message_gets_no_server() {
    let (stage, _server, alice) = Stage::ready(&Setup::default());
    alice.sends(&parse("SELECT 1")[..6]);
    stage.wait(2 * TICK);
    stage.wait(2 * TICK);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// What is longer than we keep goes out as it comes.
#[test]
fn a_long_unit_is_sent_piece_by_piece() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let long = query(&format!("SELECT '{}'", "x".repeat(200_000)));
    let mut sent = Vec::new();
    for piece in long.chunks(20_000) {
        alice.sends(piece);
        sent.extend(server.heard_bytes());
    }
    assert!(sent == long, "{} bytes of {}", sent.len(), long.len());
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// What fits is heard at once, also by a server that its client has already: what a statement
/// leaves does not depend on how it arrives.
#[test]
fn a_short_unit_is_sent_at_once() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    let [first, second] = [query("SELECT 1"), query("SET a.b = 1")];
    alice.says([first.clone(), second[..10].to_vec()]);
    assert!(server.heard_bytes() == first);
    alice.sends(&second[10..15]);
    assert!(server.heard_bytes().is_empty());
    alice.sends(&second[15..]);
    assert!(server.heard_bytes() == second);
}

/// The text of a query may pin anywhere, also in a piece that comes later.
#[test]
fn a_pin_at_the_end_of_a_long_text_is_seen() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let long = query(&format!("SELECT '{}'; LISTEN channel", "x".repeat(40_000)));
    for piece in long.chunks(17_000) {
        alice.sends(piece);
    }
    assert!(server.heard_bytes() == long);
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Active]);
}

/// Flush asks for an answer before the unit is over.
#[test]
fn a_batch_with_a_flush_gets_a_server_at_once() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("SELECT 1"), describe_statement(""), flush()]);
    assert_eq!(server.heard(), "P(SELECT 1) D H");
    server.says([parse_complete(), no_parameters(), no_data()]);
    assert_eq!(alice.heard(), "1 t n");
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    alice.says([bind(), execute(), sync()]);
    assert_eq!(server.heard(), "B E S");
    server.says([bind_complete(), done(), ready()]);
    assert_eq!(alice.heard(), "2 C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// Pipelining: a client need not wait for a reply before it asks again.
#[test]
fn units_of_a_client_follow_each_other_without_a_pause() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("a"), query("b"), parse("c"), bind(), execute(), sync()]);
    assert_eq!(server.heard(), "Q(a) Q(b) P(c) B E S");
    server.says([done(), ready(), done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    server.says(batch_reply());
    assert_eq!(alice.heard(), "C Z C Z 1 2 C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A client that keeps its pipeline full would keep its server for ever.
#[test]
fn a_pipeline_is_interrupted_for_those_who_wait() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("a")]);
    bob.says([query("bob")]);
    alice.says([query("b")]);
    assert_eq!(server.heard(), "Q(a)");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(bob)");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(b)");
    server.says([done(), ready()]);
    assert_eq!((alice.heard(), bob.heard()), ("C Z C Z".to_owned(), "C Z".to_owned()));
}

/// Inside of a transaction the server is not given back anyway: nothing is gained by a pause.
#[test]
fn a_pipeline_inside_a_transaction_is_not_interrupted() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    bob.says([query("bob")]);
    alice.says([query("a"), query("b")]);
    assert_eq!(server.heard(), "Q(BEGIN) Q(a) Q(b)");
}

/// After an error PostgreSQL skips all up to the Sync, without a reply.
#[test]
fn what_is_skipped_after_an_error_is_owed_no_reply() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("bad"), bind(), execute(), query("skipped"), sync(), query("run")]);
    assert_eq!(server.heard(), "P(bad) B E Q(skipped) S Q(run)");
    server.says([error("42601"), ready(), done(), ready()]);
    assert_eq!(alice.heard(), "E(42601) Z C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A query that is sent while the server skips already is owed no reply either.
#[test]
fn what_is_sent_while_the_server_skips_is_owed_no_reply() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse("bad"), flush()]);
    server.says([error("42601")]);
    alice.says([query("skipped"), bind(), execute(), query("skipped, too")]);
    alice.says([sync()]);
    assert_eq!(server.heard(), "P(bad) H Q(skipped) B E Q(skipped, too) S");
    server.says([ready()]);
    assert_eq!(alice.heard(), "E(42601) Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A unit that seemed to be over and is not, because the server skips its end, needs the Sync that
/// its client holds back for others' sake.
#[test]
fn a_sync_that_was_held_back_is_sent_when_its_batch_has_failed() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([parse("bad"), query("skipped")]);
    bob.says([query("bob")]);
    alice.says([sync()]);
    assert_eq!(server.heard(), "P(bad) Q(skipped)");
    server.says([error("42601")]);
    assert_eq!(server.heard(), "S");
    server.says([ready()]);
    assert_eq!(alice.heard(), "E(42601) Z");
    assert_eq!(server.heard(), "Q(bob)");
}

/// A batch that we refuse is skipped by us, as PostgreSQL would.
#[test]
fn a_refused_batch_is_skipped_up_to_its_sync() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("slow")]);
    bob.says([parse("SELECT 1"), bind(), execute(), flush()]);
    stage.cancel(&bob);
    assert_eq!(bob.heard(), "E(57014)");
    bob.says([parse("SELECT 2"), query("skipped"), copy_data(b"too"), sync()]);
    assert_eq!(bob.heard(), "Z");
    bob.says([query("run")]);
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(slow) Q(run)");
}

/// PostgreSQL passes over COPY data that comes too late, and a Flush with nothing to flush.
#[test]
fn what_needs_no_answer_needs_no_server() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([copy_data(b"late"), copy_done(), copy_fail(), flush()]);
    assert_eq!((server.heard(), alice.heard()), (String::new(), String::new()));
    assert_eq!(stage.clients(), [ClientState::Idle]);
    alice.says([query("SELECT")]);
    assert_eq!(server.heard(), "Q(SELECT)");
}

/// An empty batch has a reply too.
#[test]
fn a_sync_alone_is_a_unit() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([sync()]);
    assert_eq!(server.heard(), "S");
    server.says([ready()]);
    assert_eq!(alice.heard(), "Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A stream whose framing is lost cannot be read any further: PostgreSQL ends it.
#[test]
fn what_the_protocol_does_not_allow_ends_the_connection() {
    let violations = [
        message(b'y', b""),
        password("out of place"),
        [&b"Q"[..], &3u32.to_be_bytes()].concat(),
        message(b'S', &[0; 10_000]),
    ];
    for violation in violations {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([violation]);
        assert_eq!(alice.heard(), "E(FATAL 08P01)");
        assert!(alice.is_closed());
        assert_eq!(server.heard(), "");
        assert_eq!(stage.servers(), [ServerActivity::Idle]);
    }
}

/// What comes before the violation is none: it is carried out, and its server is clean again.
#[test]
fn a_violation_inside_a_transaction_is_rolled_back() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    assert_eq!(alice.heard(), "C Z(T)");
    alice.says([password("out of place")]);
    assert_eq!(alice.heard(), "E(FATAL 08P01)");
    assert_eq!(server.heard(), "Q(BEGIN) Q(ROLLBACK)");
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// A Flush with a body gets an error, which would be one reply more than is counted on. Its first
/// half, sent while its unit ran, was taken for a good one.
#[test]
fn a_flush_with_a_body_ends_the_connection() {
    let flush = message(b'H', b"xy");
    for cut in 5..=flush.len() {
        for (before, reply) in [(vec![], vec![]), (query("SELECT"), [done(), ready()].concat())] {
            let (stage, server, alice) = Stage::ready(&Setup::default());
            alice.says([&before, &flush[..cut]]);
            assert_eq!(alice.heard(), "E(FATAL 08P01)");
            assert!(alice.is_closed());
            server.says([reply]);
            assert_eq!(stage.servers(), [ServerActivity::Idle]);
        }
    }
}

/// A message whose names cannot be read is the server's to refuse; nobody else gets that server,
/// in case it does not.
#[test]
fn a_message_that_we_cannot_read_is_left_to_the_server() {
    for body in [&b"no end"[..], b""] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        alice.says([message(b'P', body), sync()]);
        server.says([error("08P01"), ready()]);
        assert_eq!(alice.heard(), "E(08P01) Z");
        assert_eq!(stage.servers(), [ServerActivity::Active]);
        alice.says([terminate()]);
        assert!(server.is_closed());
    }
}

/// Named statements, portals and closes are counted as what they are.
#[test]
fn every_message_of_a_batch_is_owed_its_own_reply() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([
        parse_as("s", "SELECT 1"),
        describe_statement("s"),
        bind(),
        close_statement("s"),
        sync(),
    ]);
    // The unnamed statement is nobody's on either side: nothing is put in front of the Bind.
    let ours = "D(pgweir_1)";
    assert_eq!(server.heard(), format!("P(pgweir_1=SELECT 1) {ours} D(pgweir_1) B C(s) S"));
    let described = [no_parameters(), no_data()].concat();
    server.says([parse_complete(), described.clone(), described, error("26000"), ready()]);
    assert_eq!(alice.heard(), "1 t n E(26000) Z");
}

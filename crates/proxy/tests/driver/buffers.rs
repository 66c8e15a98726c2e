//! Who is slow stops whoever feeds it, and nobody else, and nothing is lost on the way.

use std::time::Duration;

use pgweir_engine::{Mark, ServerActivity};

use crate::messages::{
    bind_complete, bind_value, copy_data, copy_done, copy_in, done, error, execute, in_block,
    long_row, message, one_row, parse, parse_complete, query, ready, sync,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

/// A row that is more than is kept for a slow reader.
fn much() -> Vec<u8> {
    long_row(100_000)
}

/// A client inside of a COPY, whose server takes nothing and which is not read any more.
fn copy_to_a_slow_server(setup: &Setup) -> (Stage, Peer, Peer) {
    let (stage, server, alice) = Stage::ready(setup);
    alice.says([query("COPY t FROM STDIN")]);
    server.says([copy_in()]);
    server.heard();
    server.takes(0);
    alice.says([copy_data(&[b'x'; 100_000])]);
    assert!(!alice.is_read());
    (stage, server, alice)
}

/// A slow client must not fill our memory with what its server sends.
#[test]
fn a_client_that_does_not_read_stops_its_server() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.takes(10);
    alice.says([query("SELECT")]);
    server.says([much()]);
    assert!(!server.is_read());
    // A little room is not enough, most of it is.
    alice.takes(1_000);
    assert!(!server.is_read());
    alice.takes(90_000);
    assert!(server.is_read());
    server.says([much()]);
    server.says([done(), ready()]);
    assert!(!server.is_read());
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    alice.takes_all();
    assert!(server.is_read());
    let expected = [much(), much(), done(), ready()].concat();
    assert!(alice.heard_bytes() == expected);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// Its neighbours do not notice.
#[test]
fn a_client_that_does_not_read_stops_nobody_else() {
    let (stage, first, alice) = Stage::ready(&Setup::of_size(2));
    let bob = stage.client();
    alice.takes(0);
    alice.says([query("a")]);
    first.says([much()]);
    assert!(!first.is_read());
    bob.says([query("b")]);
    let second = stage.server();
    second.says([much(), done(), ready()]);
    assert!(bob.heard_bytes() == [much(), done(), ready()].concat());
    assert!(bob.is_read() && second.is_read() && alice.is_read());
}

/// A slow server must not fill our memory with what its client sends.
#[test]
fn a_server_that_does_not_read_stops_its_client() {
    let (stage, server, alice) = copy_to_a_slow_server(&Setup::default());
    alice.says([copy_data(&[b'y'; 100_000]), copy_done()]);
    server.takes(1_000);
    assert!(!alice.is_read());
    server.takes_all();
    assert!(alice.is_read());
    let data = [copy_data(&[b'x'; 100_000]), copy_data(&[b'y'; 100_000]), copy_done()].concat();
    assert!(server.heard_bytes() == data);
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "G C Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// The pause ends with the lease: a client that was paused for its server's sake, and lost it, was
/// never read again.
#[test]
fn a_client_that_parts_from_a_slow_server_is_read_again() {
    let (stage, server, alice) = copy_to_a_slow_server(&Setup::default());
    server.says([error("22P02"), ready()]);
    assert!(alice.is_read());
    assert_eq!(alice.heard(), "G E(22P02) Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// The same for a client that gives up before the server has its settings.
#[test]
fn a_client_that_is_cancelled_before_a_slow_server_is_set_is_read_again() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.newcomer(&[("application_name", &"'".repeat(9_000))]);
    server.says([one_row("")]);
    assert!(bob.is_greeted());
    alice.says([query("COPY t FROM STDIN")]);
    server.says([one_row("")]);
    server.says([copy_in()]);
    server.takes(0);
    alice.says([copy_data(&[b'x'; 60_000])]);
    server.says([error("22P02"), ready()]);
    assert!(alice.is_read());
    bob.says([query("b")]);
    assert!(!bob.is_read(), "its settings wait behind the data");
    stage.cancel(&bob);
    assert_eq!(bob.heard(), "E(57014) Z");
    assert!(bob.is_read());
}

/// A server that is slow when it is lent stops its new client too: a hundred times as much as is
/// meant to be kept piled up.
#[test]
fn a_server_that_is_lent_while_it_is_slow_stops_its_new_client() {
    let (stage, server, _alice) = copy_to_a_slow_server(&Setup::default());
    server.says([error("22P02"), ready()]);
    let bob = stage.client();
    bob.says([query("COPY t FROM STDIN")]);
    assert!(!bob.is_read());
    server.takes_all();
    assert!(bob.is_read());
    assert!(server.heard_bytes().ends_with(&query("COPY t FROM STDIN")));
}

/// A client that has not read its last reply holds the next server up as it did the last one.
#[test]
fn a_server_that_is_lent_to_a_slow_client_is_stopped() {
    let (stage, first, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.takes(0);
    alice.says([query("a")]);
    first.sends(&[much(), done(), ready()].concat());
    // It is given back, and must not be stopped for what another does not read.
    assert!(first.is_read());
    bob.says([query("b")]);
    first.says([one_row("bob")]);
    assert_eq!(bob.heard(), "T D(bob) C Z");
    alice.says([query("again")]);
    assert!(!first.is_read());
    alice.takes_all();
    assert!(first.is_read());
}

/// The pause of a server ends when its client is gone, or nobody would read its reply.
#[test]
fn a_server_whose_slow_client_is_gone_is_read_again() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.takes(10);
    alice.says([query("SELECT")]);
    server.says([much()]);
    assert!(!server.is_read());
    alice.breaks();
    assert!(server.is_read());
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// It ends, too, when what gives the server back is something that the client has sent.
#[test]
fn a_server_that_its_slow_client_gives_back_is_read_again() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("COPY t FROM STDIN")]);
    server.says([copy_in()]);
    let data = copy_data(&[b'x'; 50_000]);
    alice.sends(&data[..20_000]);
    alice.takes(0);
    server.says([message(b'N', &[b'x'; 100_000]), error("22P02"), ready()]);
    assert!(!server.is_read());
    alice.sends(&data[20_000..]);
    assert!(server.is_read());
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// Bytes that were gathered for one write were forgotten if there was no room: nobody had been
/// told to wait for room.
#[test]
fn output_that_finds_no_room_is_waited_for() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    for (client, text) in [(&alice, "SELECT $1"), (&bob, "SELECT 7")] {
        client.says([parse(text), sync()]);
        server.says([parse_complete(), ready()]);
        client.heard();
    }
    server.heard();
    server.takes(10_000);
    // Our Parse and the client's own Bind go out together.
    let rest = [bind_value(&[b'x'; 50_000]), execute(), sync()].concat();
    alice.sends(&rest);
    assert_eq!(server.heard_bytes().len(), 10_000);
    server.takes_all();
    assert!([parse("SELECT $1"), rest].concat().ends_with(&server.heard_bytes()));
    server.says([parse_complete(), bind_complete(), done(), ready()]);
    assert_eq!(alice.heard(), "2 C Z");
}

/// A client that waits is read a little ahead, and no further.
#[test]
fn a_client_that_waits_is_not_read_without_end() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("slow")]);
    assert_eq!(server.heard(), "Q(slow)");
    let text = "x".repeat(1_000);
    let pipeline: Vec<_> = (0..300).map(|_| query(&text)).collect();
    bob.says(&pipeline);
    assert!(!bob.is_read());
    server.says([done(), ready()]);
    for _ in 0..300 {
        server.says([done(), ready()]);
    }
    assert!(server.heard_bytes() == pipeline.concat());
    assert_eq!(bob.heard(), vec!["C Z"; 300].join(" "));
    assert!(bob.is_read());
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// Last words wait for a client that is slow to read them, but not for ever.
#[test]
fn last_words_wait_for_their_reader() {
    let (stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    alice.takes(0);
    alice.says([query("SELECT")]);
    server.ends();
    assert!(alice.is_open() && !alice.is_read());
    assert_eq!(stage.clients_left(), 1);
    stage.wait(Duration::from_secs(1));
    alice.takes_all();
    assert_eq!(alice.heard(), "E(FATAL 08007)");
    assert!(alice.is_closed());
    assert_eq!((stage.clients_left(), stage.connections()), (0, 0));

    let (stage, server, alice) = Stage::ready(&Setup::of_mode("session"));
    alice.takes(0);
    alice.says([query("SELECT")]);
    server.ends();
    // Its time begins anew with whatever it reads.
    for _ in 0..3 {
        stage.wait(Duration::from_secs(1));
        stage.wait(Duration::from_secs(9));
        alice.takes(10);
        assert!(alice.is_open());
    }
    stage.wait(Duration::from_secs(1));
    stage.wait(Duration::from_millis(10_001));
    assert!(alice.is_aborted());
    assert_eq!((stage.clients_left(), stage.connections()), (0, 0));
}

/// Who reads slowly hears all that its server has said before the connection ends inside a message:
/// what was kept for it was dropped, and it found the end anywhere, between two messages too.
#[test]
fn a_part_of_a_message_is_not_lost_on_its_way_to_a_slow_reader() {
    let ends: [fn(&Stage, &Peer); 2] = [|_, server| server.ends(), |stage, _| stage.shut_down()];
    for end in ends {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        alice.takes(0);
        alice.says([query("COMMIT"), query("SELECT")]);
        server.says([done(), ready()]);
        server.sends(&much()[..50_000]);
        end(&stage, &server);
        alice.takes_all();
        let said = [&done(), &ready(), &much()[..50_000]].concat();
        assert!(alice.heard_bytes() == said);
        assert!(alice.is_closed());
    }
}

/// Who says no more may still read what it has asked for, in its own time: PostgreSQL waits, too.
#[test]
fn replies_wait_for_a_reader_that_has_ended_its_stream() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    alice.takes(0);
    alice.says_and_ends([query("SELECT")]);
    server.says([one_row("slowly")]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    for _ in 0..3 {
        stage.wait(Duration::from_secs(300));
        assert!(alice.is_open());
        assert_eq!(stage.clients_left(), 1);
    }
    alice.takes_all();
    assert_eq!(alice.heard(), "T D(slowly) C Z");
    assert!(alice.is_closed());
    assert_eq!(stage.clients_left(), 0);
    assert!(took(Mark::LingererWaitedFor));
}

/// Nobody waits for ever, or a descriptor would be gone for each that never reads; and the process
/// does not wait so long for its end.
#[test]
fn a_reader_that_never_reads_is_given_up() {
    for (drains, patience) in
        [(false, Duration::from_secs(15 * 60)), (true, Duration::from_secs(10))]
    {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        alice.takes(0);
        alice.says_and_ends([query("SELECT")]);
        server.says([one_row("slowly")]);
        if drains {
            stage.drain();
        }
        stage.wait(Duration::ZERO);
        stage.wait(patience - Duration::from_secs(1));
        assert_eq!(stage.clients_left(), 1, "{drains}");
        stage.wait(Duration::from_secs(2));
        assert_eq!(stage.clients_left(), 0, "{drains}");
    }
}

/// Closing in good order is: all that was written, then the end.
#[test]
fn a_server_that_is_closed_hears_goodbye_first() {
    let (stage, server, _alice) = Stage::ready(&Setup::with("idle_timeout = 1000"));
    server.takes(2);
    stage.wait(Duration::from_secs(2));
    assert!(server.is_open());
    assert_eq!(server.heard_bytes(), b"X\0");
    server.takes_all();
    assert_eq!(server.heard_bytes(), b"\0\0\x04");
    assert!(server.is_closed());
}

/// Messages that come in pieces are put together, whatever stands before and behind them.
#[test]
fn what_is_retained_is_put_before_what_follows() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    server.heard();
    alice.heard();
    let stream = [query("a"), query("b"), parse("c"), sync()].concat();
    for cut in 1..stream.len() {
        alice.sends(&stream[..cut]);
        alice.sends(&stream[cut..]);
        assert!(server.heard_bytes() == stream, "cut at {cut}");
        let replies =
            [done(), in_block(), done(), in_block(), parse_complete(), in_block()].concat();
        server.sends(&replies[..cut.min(replies.len())]);
        server.sends(&replies[cut.min(replies.len())..]);
        assert!(alice.heard_bytes() == replies, "cut at {cut}");
    }
}

/// A message that promises a gigabyte costs nothing before it comes.
#[test]
fn a_long_message_is_not_waited_for() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let length = 1_000_000_000u32.to_be_bytes();
    alice.sends(&[&b"Q"[..], &length, &[b' '; 20_000]].concat());
    assert_eq!(server.heard_bytes().len(), 20_005);
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    assert!(alice.is_read());
    // One that is longer than PostgreSQL takes is refused by its header alone.
    let bob = stage.client();
    bob.sends(&message(b'Q', b"")[..1]);
    bob.sends(&u32::to_be_bytes(0x4000_0000));
    assert_eq!(bob.heard(), "E(FATAL 08P01)");
}

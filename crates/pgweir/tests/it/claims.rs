//! A header that claims a gigabyte costs nothing before the gigabyte comes.
//!
//! Address space is measured too: memory that is asked for and not written to takes nothing else.

use std::io::{ErrorKind, Read, Write};

use pgweir_testkit::frames::query;
use pgweir_testkit::{Login, WireClient};

use crate::stage::Stage;
use crate::stand_in::StandIn;
use crate::usage::{MB, Memory};

/// The most that PostgreSQL lets a client claim (`PQ_LARGE_MESSAGE_LIMIT`, libpq.h).
const GIGABYTE: u32 = 0x3fff_fffe;

/// What no length field of a client may say.
const IMPOSSIBLE: [u32; 6] = [0, 3, GIGABYTE + 1, 0x7fff_ffff, 0x8000_0000, u32::MAX];

/// Connections that make the same claim: with less than a gigabyte of room for each it shows.
const CROWD: usize = 5;

/// A header that claims so much, and all that comes of the rest.
fn claim(tag: u8, length: u32, start: &[u8]) -> Vec<u8> {
    [&[tag][..], &length.to_be_bytes(), start].concat()
}

#[track_caller]
fn assert_nothing_was_taken(memory: &Memory<'_>) {
    let (growth, reservation) = (memory.growth(), memory.reservation());
    assert!(growth < 8 * MB, "{growth} bytes more");
    assert!(reservation < 100 * MB, "{reservation} bytes of address space more");
}

/// When this has been answered, all that was sent before it has been read.
fn wait_for_a_turn(stage: &Stage) {
    let mut client = stage.client();
    for _ in 0..10 {
        assert_eq!(client.query("SELECT 'a turn'"), ["a turn"]);
    }
}

#[test]
fn of_a_stranger() {
    let stage = Stage::new("claims_stranger", 1);
    stage.client();
    let memory = Memory::of(&stage.pgweir);
    let admin = Login::new("admin").database("pgweir").startup_message();
    for length in IMPOSSIBLE.into_iter().chain([GIGABYTE]) {
        for _ in 0..CROWD {
            // A startup packet, and the answer to a question for a password.
            let start = [&length.to_be_bytes()[..], &[0, 3, 0, 0], b"user\0"].concat();
            let password = [&admin[..], &claim(b'p', length, b"md5")].concat();
            for said in [start, password] {
                let mut stranger = WireClient::open(stage.address()).unwrap();
                stranger.send(&said).unwrap();
                let reply = stranger.read_to_end().unwrap();
                let last = reply.last().map(|message| message.sqlstate());
                assert_eq!(last.as_deref(), Some("08P01"), "{length:#x}");
            }
        }
    }
    assert_nothing_was_taken(&memory);
}

#[test]
fn of_a_client() {
    let stage = Stage::new("claims_client", 2);
    stage.client();
    let memory = Memory::of(&stage.pgweir);
    let mut crowd = Vec::new();
    for tag in *b"QPBF" {
        for _ in 0..CROWD {
            let mut client = stage.client();
            client.send(&claim(tag, GIGABYTE, b"\0\0")).unwrap();
            crowd.push(client);
        }
    }
    // Claims within a message: a Bind of one long value, one of many, a Parse of many types.
    for start in [&b"\0\0\0\0\0\x01\x3f\xff\x00\x00"[..], b"\0\0\0\0\xff\xff", b"\0\0\xff\xff"] {
        for tag in *b"PB" {
            let mut client = stage.client();
            client.send(&claim(tag, GIGABYTE, start)).unwrap();
            crowd.push(client);
        }
    }
    wait_for_a_turn(&stage);
    assert_nothing_was_taken(&memory);

    // What is long enough to be sent on before its end has come.
    for client in crowd.iter_mut().take(2) {
        client.send(&[b' '; 20_000]).unwrap();
    }
    stage.wait_for_servers_in_use(2);
    assert_nothing_was_taken(&memory);
    drop(crowd);
    wait_for_a_turn(&stage);

    for length in IMPOSSIBLE {
        for tag in *b"QPBFd" {
            let mut client = stage.client();
            client.send(&claim(tag, length, b"\0\0")).unwrap();
            let reply = client.read_to_end().unwrap();
            assert_eq!(reply.last().unwrap().sqlstate(), "08P01", "{} {length:#x}", tag as char);
        }
    }
    assert_nothing_was_taken(&memory);
}

#[test]
fn of_a_server_that_lets_us_in() {
    for tag in *b"RSEZ" {
        let stand_in = StandIn::new();
        let mut newcomer = stand_in.newcomer();
        let mut server = stand_in.bare_server();
        let memory = Memory::of(&stand_in.pgweir);
        server.write_all(&claim(tag, GIGABYTE, &[b'S'; 1_000])).unwrap();
        // It is given up, and another is tried.
        let _next = stand_in.server();
        let read = server.read(&mut [0; 1]).map_err(|error| error.kind());
        assert!(matches!(read, Ok(0) | Err(ErrorKind::ConnectionReset)), "{}", tag as char);
        assert_eq!(newcomer.read_until_ready().unwrap()[0].tag, b'R');
        assert_nothing_was_taken(&memory);
    }
}

#[test]
fn of_a_server_that_replies() {
    for tag in *b"DTENSZ" {
        let stand_in = StandIn::new();
        let (mut server, mut client) = stand_in.ready();
        let memory = Memory::of(&stand_in.pgweir);
        client.send(&query("SELECT")).unwrap();
        server.read_exact(&mut vec![0; query("SELECT").len()]).unwrap();
        if tag == b'D' {
            // Rows come behind what describes them: here, nothing.
            let description = [b'T', 0, 0, 0, 6, 0, 0];
            server.write_all(&description).unwrap();
            client.stream().read_exact(&mut [0; 7]).unwrap();
        }
        let claim = claim(tag, GIGABYTE, &[b'S'; 20_000]);
        server.write_all(&claim).unwrap();
        if matches!(tag, b'S' | b'Z') {
            // They have to be understood as a whole, and so long a one is none.
            let reply = client.read_to_end().unwrap();
            assert_eq!(reply.last().unwrap().sqlstate(), "XX000", "{}", tag as char);
        } else {
            let mut read = vec![0; claim.len()];
            client.stream().read_exact(&mut read).unwrap();
            assert!(read == claim, "{}", tag as char);
        }
        assert_nothing_was_taken(&memory);
    }
}

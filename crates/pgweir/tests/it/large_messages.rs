//! Messages that nobody would want to have in memory as a whole: they pass through in pieces.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use pgweir_testkit::frames::{execute, parse, query, sync};
use pgweir_testkit::{PATIENCE, WireClient};

use crate::stage::Stage;
use crate::stand_in::StandIn;
use crate::usage::{MB, Memory};

const ALPHABET: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const LETTERS: usize = ALPHABET.len();

/// What the length field of a message may say at most (`PQ_LARGE_MESSAGE_LIMIT`, libpq.h).
const LONGEST: usize = 0x3fff_fffe;

/// `byteacat(bytea, bytea)` and the functions of large objects, by their oids (pg_proc.dat).
const BYTEACAT: u32 = 2011;
const LOREAD: u32 = 954;
const LOWRITE: u32 = 955;

/// Messages up to where a long value begins, whose letters and end are still to be sent.
struct Head(Vec<u8>);

impl Head {
    /// `after` bytes will follow.
    fn new(tag: u8, fields: &[&[u8]], after: usize) -> Self {
        let fields = fields.concat();
        let length = size(4 + fields.len() + after);
        Self([&[tag][..], &length, &fields].concat())
    }
}

/// A length or a count of four bytes.
fn size(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap().to_be_bytes()
}

/// Sends the alphabet again and again, so many letters in all. It is no power of two long: in
/// what a buffer lost, doubled or swapped the letters would not be in order.
fn send_letters(mut stream: &TcpStream, count: usize) {
    let page = ALPHABET.repeat(40_000);
    let mut left = count;
    while left > 0 {
        let n = left.min(page.len());
        stream.write_all(&page[..n]).unwrap();
        left -= n;
    }
}

fn expect_letters(mut stream: &TcpStream, count: usize) {
    let page = ALPHABET.repeat(40_000);
    let mut read = vec![0; page.len()];
    let mut left = count;
    while left > 0 {
        let n = left.min(page.len());
        stream.read_exact(&mut read[..n]).unwrap();
        assert!(read[..n] == page[..n], "within the last {left} letters of {count}");
        left -= n;
    }
}

fn expect(mut stream: &TcpStream, bytes: &[u8]) {
    let mut read = vec![0; bytes.len()];
    stream.read_exact(&mut read).unwrap();
    assert_eq!(read, bytes);
}

/// The client's connection, for what it would take a [`WireClient`] too much memory to read.
fn raw(client: &WireClient) -> &TcpStream {
    client.stream().set_read_timeout(Some(PATIENCE)).unwrap();
    client.stream().set_write_timeout(Some(PATIENCE)).unwrap();
    client.stream()
}

#[test]
fn a_bind_of_200_megabytes() {
    const TIMES: usize = 7_700_000;
    let stage = Stage::new("large_bind", 1);
    let mut client = stage.client();
    let alphabet = str::from_utf8(ALPHABET).unwrap();
    let text = format!("SELECT $1 = repeat('{alphabet}', {TIMES}), length($1)");
    client.query("SELECT 'warm'");
    let memory = Memory::of(&stage.pgweir);

    let value = TIMES * LETTERS;
    let names_formats_and_count = [0, 0, 0, 0, 0, 1];
    let head = Head::new(b'B', &[&names_formats_and_count, &size(value)], value + 2);
    client.send(&[parse("", &text, &[]), head.0].concat()).unwrap();
    send_letters(raw(&client), value);
    client.send(&[vec![0; 2], execute("", 0), sync()].concat()).unwrap();

    let reply = client.read_until_ready().unwrap();
    let row = reply.iter().find(|message| message.tag == b'D').unwrap();
    assert_eq!(row.to_string(), format!("DataRow \"t\" \"{value}\""));
    let growth = memory.growth();
    assert!(growth < 8 * MB, "{growth} bytes more");
}

#[test]
fn a_function_call_of_100_megabytes() {
    const HALF: usize = 2_000_000 * LETTERS;
    let stage = Stage::new("large_call", 1);
    let mut client = stage.client();
    client.query("SELECT 'warm'");
    let memory = Memory::of(&stage.pgweir);

    // One format for all, binary; two arguments.
    let fields: [&[u8]; 3] = [&BYTEACAT.to_be_bytes(), &[0, 1, 0, 1, 0, 2], &size(HALF)];
    client.send(&Head::new(b'F', &fields, HALF + 4 + HALF + 2).0).unwrap();
    send_letters(raw(&client), HALF);
    client.send(&size(HALF)).unwrap();
    send_letters(raw(&client), HALF);
    client.send(&[0, 1]).unwrap();

    let reply = Head::new(b'V', &[&size(2 * HALF)], 2 * HALF);
    expect(raw(&client), &reply.0);
    expect_letters(raw(&client), 2 * HALF);
    assert_eq!(client.read().unwrap().unwrap().to_string(), "ReadyForQuery I");
    assert_eq!(client.query("SELECT 'on'"), ["on"]);
    let growth = memory.growth();
    assert!(growth < 8 * MB, "{growth} bytes more");
}

#[test]
fn a_large_object_of_26_megabytes() {
    const LENGTH: usize = 1_000_000 * LETTERS;
    const DESCRIPTOR: [u8; 4] = [0; 4];
    let stage = Stage::new("large_object", 1);
    let mut client = stage.client();
    client.query("BEGIN");
    assert_eq!(client.query("SELECT lo_open(lo_create(0), x'60000'::int)"), ["0"]);
    let memory = Memory::of(&stage.pgweir);

    let format_and_count: &[u8] = &[0, 1, 0, 1, 0, 2];
    let descriptor = [&size(4)[..], &DESCRIPTOR].concat();
    let fields = [&LOWRITE.to_be_bytes(), format_and_count, &descriptor, &size(LENGTH)];
    client.send(&Head::new(b'F', &fields, LENGTH + 2).0).unwrap();
    send_letters(raw(&client), LENGTH);
    client.send(&[0, 1]).unwrap();
    expect(raw(&client), &Head::new(b'V', &[&size(4), &size(LENGTH)], 0).0);
    assert_eq!(client.read().unwrap().unwrap().to_string(), "ReadyForQuery T");

    assert_eq!(client.query("SELECT lo_lseek(0, 0, 0)"), ["0"]);
    let fields =
        [&LOREAD.to_be_bytes(), format_and_count, &descriptor, &size(4), &size(LENGTH), &[0, 1]];
    client.send(&Head::new(b'F', &fields, 0).0).unwrap();
    expect(raw(&client), &Head::new(b'V', &[&size(LENGTH)], LENGTH).0);
    expect_letters(raw(&client), LENGTH);
    assert_eq!(client.read().unwrap().unwrap().to_string(), "ReadyForQuery T");
    client.query("ROLLBACK");
    let growth = memory.growth();
    assert!(growth < 8 * MB, "{growth} bytes more");
}

/// PostgreSQL itself would need a gigabyte for each.
#[test]
fn the_longest_that_there_can_be() {
    let stand_in = StandIn::new();
    let (mut server, mut client) = stand_in.ready();
    let memory = Memory::of(&stand_in.pgweir);
    let value = LONGEST - 4 - 12;
    let head = Head::new(b'B', &[&[0, 0, 0, 0, 0, 1], &size(value)], value + 2).0;
    let end = [&[0, 0], &execute("", 0)[..], &sync()].concat();
    assert_eq!(&head[1..5], size(LONGEST));
    thread::scope(|scope| {
        scope.spawn(|| {
            expect(&server, &head);
            expect_letters(&server, value);
            expect(&server, &end);
        });
        client.send(&head).unwrap();
        send_letters(raw(&client), value);
        client.send(&end).unwrap();
    });

    let value = LONGEST - 4 - 6;
    let row = Head::new(b'D', &[&[0, 1], &size(value)], value).0;
    let start = [b"2\0\0\0\x04", &row[..]].concat();
    let end = b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
    thread::scope(|scope| {
        scope.spawn(|| {
            expect(raw(&client), &start);
            expect_letters(raw(&client), value);
            expect(raw(&client), end);
        });
        server.write_all(&start).unwrap();
        send_letters(&server, value);
        server.write_all(end).unwrap();
    });
    let growth = memory.growth();
    assert!(growth < 8 * MB, "{growth} bytes more");

    client.send(&query("SELECT 'on'")).unwrap();
    expect(&server, &query("SELECT 'on'"));
}

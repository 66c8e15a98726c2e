//! What the protocol does not allow gets PostgreSQL's own reaction.

use pgweir_testkit::Script;
use pgweir_testkit::frames::{self, PROTOCOL_3_0, execute, message, parse, query, sync, terminate};

use super::{Difference, NAME, same, same_but, script};

/// A header that promises more, or less, than comes.
fn header(tag: u8, length: i32) -> Vec<u8> {
    [&[tag][..], &length.to_be_bytes()].concat()
}

#[test]
fn unknown_messages() {
    for tag in *b"yp\0" {
        let script = script().send(&message(tag, b"")).read_to_end();
        same_but(&[Difference::SourcePlace], &script);
    }
}

#[test]
fn impossible_lengths() {
    for wrong in [
        header(b'Q', -1),
        header(b'Q', 3),
        header(b'Q', i32::MIN),
        header(b'Q', 0x3fff_ffff),
        header(b'S', 10_001),
        header(b'd', i32::MAX),
    ] {
        same_but(&[Difference::Farewell], &script().send(&wrong).read_to_end());
    }
}

#[test]
fn impossible_startup_packets() {
    // 7, 0 and -1 bytes, and one byte more than PostgreSQL reads.
    for wrong in
        [&[0, 0, 0, 7, 0, 3, 0][..], &[0, 0, 0, 0], &[0xff; 8], &[0, 0, 0x27, 0x15, 0, 3, 0, 0]]
    {
        same_but(&[Difference::Farewell], &Script::raw().send(wrong).read_to_end());
    }
    let old = frames::startup(2 << 16, &[("user", NAME)]);
    same_but(&[Difference::Protocol2], &Script::raw().send(&old).read_to_end());
}

#[test]
fn bodies_that_cannot_be_read() {
    for wrong in [
        message(b'Q', b"SELECT 1"),
        message(b'Q', b"SELECT 1\0SELECT 2\0"),
        message(b'B', b"\0\0\0"),
        message(b'B', b"no end"),
        message(b'P', b"no end"),
        message(b'P', b"\0SELECT 1"),
        message(b'D', b""),
        message(b'D', b"X\0"),
        message(b'D', b"S\0more"),
        message(b'C', b"X\0"),
        message(b'E', b"\0\0"),
        message(b'S', b"more"),
        message(b'F', b"\0\0"),
    ] {
        let rest = [sync(), query("SELECT 1"), terminate()].concat();
        same(&script().send(&[wrong, rest].concat()).read_to_end());
    }
    let flush = [message(b'H', b"more"), sync(), terminate()].concat();
    same_but(&[Difference::FlushBody], &script().send(&flush).read_to_end());
}

#[test]
fn steps_that_come_too_early() {
    same(
        &script()
            .ask(&[execute("", 0), sync()].concat())
            .ask(&[parse("", "SELECT 1", &[]), execute("", 0), sync()].concat())
            .ask(&[execute("nothing", 5), parse("", "SELECT 2", &[]), sync()].concat())
            .ask(&query("SELECT 1")),
    );
    // The answer to an authentication request that was never made.
    let password = frames::password("secret");
    let startup = frames::startup(PROTOCOL_3_0, &[("user", NAME), ("database", NAME)]);
    let script = Script::raw().send(&startup).read_until_ready().send(&password).read_to_end();
    same_but(&[Difference::SourcePlace], &script);
}

//! The network cuts streams where it likes: what goes in byte by byte comes out as what goes in
//! at once.

use pgweir_engine::Mark;

use crate::messages::{
    bind, bind_complete, bind_to, close_complete, close_statement, columns, copy_data, copy_done,
    copy_in, copy_out, describe_statement, done, error, execute, fatal, from_backend,
    from_frontend, in_block, message, no_data, no_parameters, notice, one_row, parse, parse_as,
    parse_complete, query, ready, row, startup, sync, terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

/// Who sends what, in turns.
enum Turn {
    Client(Vec<u8>),
    Server(Vec<u8>),
}

use Turn::{Client, Server};

/// Plays the turns, each cut into pieces of this size; says what the client and the server heard.
fn play(turns: &[Turn], size: usize) -> (Vec<u8>, Vec<u8>) {
    let (_stage, server, client) = Stage::ready(&Setup::default());
    for turn in turns {
        let (peer, bytes): (&Peer, _) = match turn {
            Client(bytes) => (&client, bytes),
            Server(bytes) => (&server, bytes),
        };
        for piece in bytes.chunks(size) {
            peer.sends(piece);
        }
    }
    (client.heard_bytes(), server.heard_bytes())
}

/// Plays the turns at once and in pieces: each side hears what the other has said.
#[track_caller]
fn same_in_pieces(turns: &[Turn]) {
    let whole = play(turns, usize::MAX);
    let said = |by_client: bool| {
        let of = turns.iter().filter_map(|turn| match turn {
            Client(bytes) => by_client.then_some(&bytes[..]),
            Server(bytes) => (!by_client).then_some(&bytes[..]),
        });
        of.collect::<Vec<_>>().concat()
    };
    assert_eq!(whole, (said(false), said(true)), "nothing is added and nothing is lost");
    for size in [1, 2, 3, 4, 5, 6, 7, 11, 64] {
        assert_eq!(play(turns, size), whole, "pieces of {size}");
    }
}

/// Several units in one stream, with errors and a transaction.
#[test]
fn simple_queries() {
    same_in_pieces(&[
        Client([query("SELECT 1"), query("SELECT 2"), query("")].concat()),
        Server([one_row("1"), notice(), one_row("2"), notice(), done(), ready()].concat()),
        Client([query("BEGIN"), query("bad")].concat()),
        Server([done(), in_block(), error("42601"), in_block()].concat()),
        Client(query("ROLLBACK")),
        Server([done(), ready()].concat()),
    ]);
}

/// Every message of the extended protocol, without names, and a batch that fails.
#[test]
fn extended_batches() {
    same_in_pieces(&[
        Client([parse("SELECT 1"), describe_statement(""), bind(), execute(), sync()].concat()),
        Server([parse_complete(), no_parameters(), columns(), bind_complete(), row(b"1")].concat()),
        Server([done(), ready()].concat()),
        Client([parse("x"), bind(), close_statement(""), sync()].concat()),
        Server([parse_complete(), bind_complete(), close_complete(), ready()].concat()),
        Client([parse("bad"), bind(), execute(), sync()].concat()),
        Server([error("42601"), ready()].concat()),
        Client([parse("y"), describe_statement(""), sync()].concat()),
        Server([parse_complete(), no_parameters(), no_data(), ready()].concat()),
    ]);
}

/// The same with names, which a server is told in other words.
#[test]
fn names() {
    let turns = [
        Client([parse_as("s", "x"), bind_to("s"), describe_statement("s"), sync()].concat()),
        Server([parse_complete(), no_parameters(), columns(), bind_complete()].concat()),
        Server([no_parameters(), columns(), ready()].concat()),
        Client([bind_to("s"), execute(), close_statement("s"), sync()].concat()),
        Server([bind_complete(), row(b"1"), done(), close_complete(), ready()].concat()),
        Client([parse_as("s", "bad"), bind_to("s"), sync()].concat()),
        Server([error("42601"), ready()].concat()),
    ];
    let whole = play(&turns, usize::MAX);
    let [heard_by_client, heard_by_server] = [from_backend(&whole.0), from_frontend(&whole.1)];
    assert_eq!(heard_by_client, "1 2 t T Z 2 D(1) C 3 Z E(42601) Z");
    let first = "P(pgweir_1=x) D(pgweir_1) B(pgweir_1) D(pgweir_1) S";
    let last = "P(pgweir_2=bad) D(pgweir_2) B(pgweir_2) S";
    assert_eq!(heard_by_server, format!("{first} B(pgweir_1) E C(s) S {last}"));
    for size in [1, 2, 3, 4, 5, 6, 7, 11, 64] {
        assert_eq!(play(&turns, size), whole, "pieces of {size}");
    }
}

/// Both directions of COPY.
#[test]
fn copies() {
    same_in_pieces(&[
        Client(query("COPY t FROM STDIN")),
        Server(copy_in()),
        Client([copy_data(b"1\n"), copy_data(b""), copy_data(b"2\n"), copy_done()].concat()),
        Server([done(), ready()].concat()),
        Client(query("COPY t TO STDOUT")),
        Server([copy_out(), copy_data(b"1\n"), copy_data(b"2\n"), copy_done()].concat()),
        Server([done(), ready()].concat()),
    ]);
}

/// Messages that are streamed are cut where they are cut.
#[test]
fn long_messages() {
    let long = vec![b'x'; 70_000];
    let turns = [
        Client(query(&"x".repeat(70_000))),
        Server([columns(), row(&long), row(b"short"), row(&long), done(), ready()].concat()),
        Client([parse(&"y".repeat(40_000)), bind(), execute(), sync()].concat()),
        Server([parse_complete(), bind_complete(), row(&long), done(), ready()].concat()),
    ];
    let whole = play(&turns, usize::MAX);
    for size in [997, 8_192, 16_383, 16_384, 16_385, 65_536] {
        assert!(play(&turns, size) == whole, "pieces of {size}");
    }
}

/// A login is read byte by byte too, from both sides, and so are the last words.
#[test]
fn logins_and_farewells() {
    for size in [1, 2, 5] {
        let stage = Stage::new(&Setup::default());
        let client = stage.stranger();
        let packet = startup(&[("user", "user"), ("database", "db"), ("TimeZone", "UTC")]);
        for piece in packet.chunks(size) {
            client.sends(piece);
        }
        let server = stage.bare_server();
        for piece in stage.welcome(&server).chunks(size) {
            server.sends(piece);
        }
        let set = "Q(SELECT ARRAY[pg_catalog.set_config('timezone', 'UTC', false)] IS NULL)";
        assert_eq!(server.heard(), set);
        for piece in one_row("UTC").chunks(size) {
            server.sends(piece);
        }
        assert!(client.is_greeted());
        client.says([query("SELECT")]);
        for piece in fatal("57P01").chunks(size) {
            server.sends(piece);
        }
        server.ends();
        assert_eq!(client.heard(), "E(08007) Z");
        let other = stage.newcomer(&[("TimeZone", "UTC")]);
        assert!(other.is_greeted());
        for piece in terminate().chunks(size) {
            other.sends(piece);
        }
        assert!(other.is_closed());
    }
}

/// What a message names has to be there before it is sent on: such a name is not waited for.
#[test]
fn a_name_that_does_not_end_is_not_waited_for() {
    let (_stage, server, client) = Stage::ready(&Setup::default());
    let bind = message(b'B', &[b'x'; 20_000]);
    client.sends(&bind[..17_000]);
    assert!(took(Mark::NamesTooLong));
    assert_eq!((client.heard().as_str(), server.heard().as_str()), ("E(FATAL 08P01)", ""));
}

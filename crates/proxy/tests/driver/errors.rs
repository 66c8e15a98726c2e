//! What an error says besides its code: what happened in this case, and what can be done about it.

use std::time::Duration;

use pgweir_wire::Header;

use crate::messages::{fatal, query};
use crate::peer::Peer;
use crate::stage::{Setup, Stage};

/// Somewhat more than query_wait_timeout.
const LONG: Duration = Duration::from_millis(5_100);

/// An ErrorResponse.
#[derive(Debug)]
struct Told {
    message: String,
    detail: String,
    hint: String,
}

/// The first error among what a client has heard.
#[track_caller]
fn told(client: &Peer) -> Told {
    let bytes = client.heard_bytes();
    let mut rest = &bytes[..];
    while let Ok(Some(header)) = Header::parse(rest) {
        let (message, behind) = rest.split_at(header.message_len());
        if header.tag == b'E' {
            let field = |name: u8| {
                let mut fields = message[5..].split(|byte| *byte == 0);
                let found = fields.find_map(|field| field.strip_prefix(&[name]));
                String::from_utf8_lossy(found.unwrap_or_default()).into_owned()
            };
            return Told { message: field(b'M'), detail: field(b'D'), hint: field(b'H') };
        }
        rest = behind;
    }
    panic!("no error in {bytes:?}");
}

/// PostgreSQL has said what is wrong: "no server can be reached" alone would hide it.
#[test]
fn a_wait_that_is_over_says_what_the_server_has_said() {
    for code in ["57P03", "53300"] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        server.ends();
        alice.says([query("SELECT")]);
        stage.bare_server().says([fatal(code)]);
        stage.wait(LONG);
        let Told { message, detail, hint } = told(&alice);
        assert_eq!(message, "no server for pool \"db/user\" can be reached");
        assert_eq!(
            detail,
            "as the server says: The server at 127.0.0.1:5432 said this to pgweir. \
             Waited 5.1 s; 0 others wait."
        );
        assert!(hint.contains("pgweir check --connect"), "{hint}");
    }
}

/// The pool has a server, which works: that PostgreSQL refuses another one is not the same as that
/// there is none.
#[test]
fn a_wait_for_servers_that_work_says_why_there_are_no_more_of_them() {
    let (stage, _server, alice) = Stage::ready(&Setup::of_size(2));
    alice.says([query("slow")]);
    let bob = stage.client();
    bob.says([query("bob")]);
    stage.bare_server().says([fatal("53300")]);
    stage.wait(LONG);
    let Told { message, detail, hint } = told(&bob);
    assert_eq!(message, "all servers of pool \"db/user\" are busy");
    assert_eq!(
        detail,
        "Waited 5.1 s; 0 others wait. Another connection was refused: as the server says: The \
         server at 127.0.0.1:5432 said this to pgweir."
    );
    assert_eq!(hint, "Shorten transactions, or raise query_wait_timeout.");
}

/// Its own timeout is not over yet, and nothing has failed.
#[test]
fn a_wait_for_a_server_that_says_nothing_says_so() {
    let stage = Stage::new(&Setup::with("connect_timeout = 10000\nquery_wait_timeout = 5000"));
    let alice = stage.newcomer(&[]);
    let _silent = stage.bare_server();
    stage.wait(LONG);
    let Told { message, detail, .. } = told(&alice);
    assert_eq!(message, "no server for pool \"db/user\" can be reached");
    assert_eq!(detail, "127.0.0.1:5432 has not answered yet. Waited 5.1 s; 0 others wait.");
}

/// Where a server is needed at once nobody waits for the next attempt.
#[test]
fn an_attempt_that_fails_says_where_to_look() {
    let stage = Stage::new(&Setup::default());
    let alice = stage.newcomer(&[("replication", "true")]);
    stage.refuse_server();
    let Told { message, detail, hint } = told(&alice);
    assert_eq!(message, "the server cannot be reached");
    assert_eq!(detail, "Connecting to 127.0.0.1:5432 failed: connection refused.");
    assert!(hint.contains("pgweir check --connect"), "{hint}");
}

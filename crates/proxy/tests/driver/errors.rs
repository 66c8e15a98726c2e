//! What an error says besides its code: what happened in this case, and what can be done about it.

use std::time::Duration;

use pgweir_wire::Header;

use crate::listen::listens;
use crate::messages::{done, fatal, in_block, query};
use crate::peer::Peer;
use crate::pipelining::{braked, shared, updated};
use crate::stage::{Setup, Stage};

/// Somewhat more than query_wait_timeout.
const LONG: Duration = Duration::from_millis(5_100);

/// What is said of such a wait.
const WAITED: &str = "Waited 5.0 s for a server of pool \"db/user\";";

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
        let said = "as the server says: The server at 127.0.0.1:5432 said this to pgweir.";
        assert_eq!(detail, format!("{said} {WAITED} 0 others wait."));
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
    let said = "as the server says: The server at 127.0.0.1:5432 said this to pgweir.";
    let expected = format!("{WAITED} 0 others wait. Another connection was refused: {said}");
    assert_eq!(detail, expected);
    assert_eq!(hint, "Shorten transactions, or raise query_wait_timeout.");
}

/// Nor is it a limit that keeps a server away where the pool's own attempt is all that it leaves.
#[test]
fn a_wait_for_a_server_that_cannot_be_reached_says_why() {
    const LIMITS: [&str; 2] = [
        "connect_timeout = 10000\nquery_wait_timeout = 5000",
        "connect_timeout = 10000\nquery_wait_timeout = 5000\nmax_server_connections = 1",
    ];
    for general in LIMITS {
        let stage = Stage::new(&Setup::with(general));
        let alice = stage.newcomer(&[]);
        stage.refuse_server();
        stage.wait(LONG);
        assert_eq!(stage.attempts(), 1, "another attempt is under way");
        let Told { message, detail, .. } = told(&alice);
        assert_eq!(message, "no server for pool \"db/user\" can be reached", "{general}");
        let why = "Connecting to 127.0.0.1:5432 failed: connection refused.";
        assert_eq!(detail, format!("{why} {WAITED} 0 others wait."));
    }
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
    let said = "127.0.0.1:5432 has not answered yet.";
    assert_eq!(detail, format!("{said} {WAITED} 0 others wait."));
}

/// Nor is one to blame that takes the place of a lost one just then: it was the wait for that one.
#[test]
fn a_server_that_was_asked_a_moment_ago_is_not_to_blame() {
    let setup = Setup::with("connect_timeout = 10000\nquery_wait_timeout = 5000");
    let (stage, server, alice) = Stage::ready(&setup);
    let bob = stage.client();
    alice.says([query("slow")]);
    bob.says([query("SELECT")]);
    stage.wait(Duration::from_millis(4_900));
    server.ends();
    assert_eq!(stage.attempts(), 1);
    stage.wait(Duration::from_millis(200));
    let Told { message, detail, .. } = told(&bob);
    assert_eq!(message, "all servers of pool \"db/user\" are busy");
    assert_eq!(detail, format!("{WAITED} 0 others wait. Another connection is being made."));
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

/// One that is given a server at last, and waits for that to be set as it needs it, is not in the
/// queue: those that are were said to be one fewer.
#[test]
fn all_who_are_in_the_queue_are_counted() {
    let general = "connect_timeout = 10000\nquery_wait_timeout = 5000";
    let (stage, server, _alice) = Stage::ready(&Setup::with(general));
    let bob = stage.newcomer(&[("application_name", "bob")]);
    assert!(server.heard().starts_with("Q(SELECT ARRAY"));
    stage.wait(Duration::from_secs(1));
    let others = [stage.client(), stage.client()];
    for client in &others {
        client.says([query("SELECT")]);
    }
    stage.wait(Duration::from_millis(4_100));
    assert_eq!(told(&bob).detail, format!("{WAITED} 2 others wait. pool_size is 1."));
}

/// "Raise pool_size" sends the operator to the wrong place when something else is full.
#[test]
fn a_wait_for_servers_that_are_busy_names_the_limit() {
    let cases = [
        ("", "pool_size is 1.", "pool_size"),
        (
            "max_server_connections = 1",
            "max_server_connections is 1 for all pools on 127.0.0.1:5432.",
            "max_server_connections",
        ),
        (
            "max_db_connections = 1",
            "max_db_connections is 1 for database \"db\".",
            "max_db_connections",
        ),
        (
            "max_user_connections = 1",
            "max_user_connections is 1 for user \"user\".",
            "max_user_connections",
        ),
    ];
    for (general, limit, setting) in cases {
        let size = if general.is_empty() { 1 } else { 2 };
        let (stage, _server, alice) = Stage::ready(&Setup { general, ..Setup::of_size(size) });
        alice.says([query("slow")]);
        let [bob, carol] = [stage.client(), stage.client()];
        bob.says([query("bob")]);
        stage.wait(Duration::from_secs(1));
        carol.says([query("carol")]);
        stage.wait(Duration::from_millis(4_100));
        let Told { message, detail, hint } = told(&bob);
        assert_eq!(message, "all servers of pool \"db/user\" are busy");
        assert_eq!(detail, format!("{WAITED} 1 others wait. {limit}"));
        assert_eq!(
            hint,
            format!("Shorten transactions, or raise {setting} or query_wait_timeout.")
        );
    }
}

/// An attempt that has failed before others took all that there may be is not why there is none.
#[test]
fn a_wait_behind_other_pools_names_the_limit_whatever_has_failed() {
    let general = "max_server_connections = 1\nquery_wait_timeout = 5000";
    let stage = Stage::new(&Setup { general, others: &["east"], ..Setup::of_size(2) });
    let early = stage.newcomer_to("east");
    stage.refuse_server();
    early.breaks();
    stage.wait(Duration::from_secs(3));
    let alice = stage.newcomer(&[]);
    let server = stage.server();
    assert!(alice.is_greeted());
    alice.says([query("slow")]);
    assert_eq!(server.heard(), "Q(slow)");
    let late = stage.newcomer_to("east");
    stage.wait(LONG);
    let Told { message, detail, .. } = told(&late);
    assert_eq!(message, "all servers of pool \"east/user\" are busy");
    assert!(detail.contains("max_server_connections is 1 for all pools"), "{detail}");
}

#[test]
fn a_wait_for_the_reserve_names_it() {
    let general = "reserve_pool_size = 2\nreserve_pool_timeout = 1000";
    let (stage, _server, alice) = Stage::ready(&Setup::with(general));
    let mut busy = vec![alice];
    busy.extend([stage.client(), stage.client(), stage.client()]);
    for client in &busy {
        client.says([query("slow")]);
    }
    stage.wait(Duration::from_secs(1));
    let _reserve = [stage.server(), stage.server()];
    stage.wait(LONG);
    let Told { detail, .. } = told(&busy[3]);
    assert!(detail.ends_with(" pool_size is 1, reserve_pool_size 2."), "{detail}");
}

/// The server that listens comes on top of what is set, and is no reserve.
#[test]
fn a_wait_beside_one_that_listens_names_no_reserve() {
    let (stage, server, alice) = listens(&Setup::default());
    let listener = stage.server();
    assert!(listener.heard().starts_with("Q(LISTEN"));
    let bob = stage.client();
    bob.says([query("slow")]);
    stage.wait(LONG);
    let Told { detail, .. } = told(&bob);
    assert!(detail.ends_with(" pool_size is 1."), "{detail}");
    assert!(alice.is_open() && server.is_open());
}

/// Which limit has ended a client, and how long it is.
#[test]
fn who_is_ended_by_a_timeout_is_told_which() {
    let cases = [
        ("client_idle_timeout", "", ""),
        ("idle_client_in_transaction_timeout", "BEGIN", "; the transaction is rolled back"),
        ("transaction_timeout", "BEGIN", "; the transaction is rolled back"),
    ];
    for (setting, first, end) in cases {
        let (_stage, alice) = Stage::timed_out(setting, first);
        let Told { detail, hint, .. } = told(&alice);
        assert_eq!(detail, format!("{setting} is 5 s{end}."));
        assert!(hint.ends_with(&format!("raise {setting}.")), "{hint}");
    }
    let stage = Stage::new(&Setup::with("client_login_timeout = 4500"));
    let stranger = stage.stranger();
    stage.wait(LONG);
    let Told { detail, hint, .. } = told(&stranger);
    assert_eq!(detail, "client_login_timeout is 4.5 s.");
    assert!(hint.ends_with("raise client_login_timeout."), "{hint}");
}

/// A cancel may come too late for a COMMIT, and for a statement outside a transaction.
#[test]
fn who_may_have_committed_is_not_told_of_a_rollback() {
    let open = "may or may not have been committed.";
    let cases = [
        ("", &["INSERT"][..], true),
        ("BEGIN", &["INSERT"], false),
        ("BEGIN", &["COMMIT"], true),
        ("BEGIN", &["COMMIT", "SELECT"], true),
        ("BEGIN", &["ROLLBACK; INSERT"], true),
    ];
    for (first, last, may_commit) in cases {
        let begin = |setup| {
            let (stage, server, alice) = Stage::ready(&setup);
            if !first.is_empty() {
                alice.says([query(first)]);
                server.says([done(), in_block()]);
            }
            alice.says(last.iter().map(|text| query(text)));
            let _begun = alice.heard();
            (stage, server, alice)
        };
        let (stage, _server, alice) = begin(Setup::with("transaction_timeout = 5000"));
        stage.wait(LONG);
        let end = match may_commit {
            true => format!("what was under way is cancelled, and {open}"),
            false => "the transaction is rolled back.".to_owned(),
        };
        assert_eq!(told(&alice).detail, format!("transaction_timeout is 5 s; {end}"), "{last:?}");
        let (stage, _server, alice) = begin(Setup::default());
        stage.shut_down();
        let detail = told(&alice).detail;
        assert_eq!(
            detail,
            if may_commit { format!("What was under way {open}") } else { String::new() }
        );
    }
}

/// So it is told who shares a server; what only reads has no outcome.
#[test]
fn who_may_have_changed_rows_beside_others_is_told_so() {
    let open = "What was under way may or may not have been committed.";
    for (text, detail) in [("UPDATE t SET a = 1", open), ("SELECT 1", "")] {
        let (stage, server, clients) = braked(&shared(1), 1);
        updated(&server, &clients[0]);
        clients[0].says([query(text)]);
        assert_eq!(server.heard(), format!("Q({text})"));
        stage.shut_down();
        assert_eq!(told(&clients[0]).detail, detail, "{text}");
    }
}

/// Which limit has kept a client out.
#[test]
fn who_is_one_too_many_is_told_of_what() {
    let (stage, _server, _alice) = Stage::ready(&Setup::with("max_clients = 1"));
    let Told { detail, hint, .. } = told(&stage.newcomer(&[]));
    assert_eq!(detail, "max_clients is 1.");
    assert!(hint.contains("max_clients"), "{hint}");
    let stage = Stage::new(&Setup::with("max_logins = 1"));
    let _silent = stage.stranger();
    let Told { detail, hint, .. } = told(&stage.stranger());
    assert_eq!(detail, "max_logins is 1.");
    assert!(hint.contains("max_logins"), "{hint}");
}

#[test]
fn who_begins_a_transaction_in_statement_mode_is_told_whose_mode_it_is() {
    let (_stage, server, alice) = Stage::ready(&Setup::of_mode("statement"));
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    let Told { detail, hint, .. } = told(&alice);
    assert_eq!(detail, "pool_mode of pool \"db/user\" is statement.");
    assert!(hint.contains("pool_mode"), "{hint}");
}

/// What a lost server may have done is the one thing that nobody can know.
#[test]
fn an_outcome_that_is_not_known_is_said_to_be_so() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("INSERT")]);
    server.ends();
    let Told { detail, hint, .. } = told(&alice);
    assert!(detail.ends_with(". The statement may or may not have been committed."), "{detail}");
    assert_eq!(hint, "Look whether it was carried out before it is run again.");
}

/// What was not begun can be run again without a look.
#[test]
fn a_statement_that_was_not_begun_is_said_to_be_so() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("INSERT")]);
    server.says([fatal("57P05")]);
    let Told { message, detail, hint } = told(&alice);
    assert_eq!(message, "the statement was lost with its server");
    assert_eq!(detail, "as the server says. The statement was not begun.");
    assert!(hint.starts_with("The statement can be run again. "), "{hint}");
}

/// A transaction of which nothing was committed can be run again.
#[test]
fn a_transaction_that_is_lost_may_be_run_again() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    alice.says([query("INSERT")]);
    server.ends();
    let Told { hint, .. } = told(&alice);
    assert_eq!(hint, "The transaction can be run again from its beginning.");
}

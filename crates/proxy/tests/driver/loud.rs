//! Names behind which sessions are changed unseen, and when they are known.

use std::sync::Arc;
use std::time::Duration;

use pgweir_engine::{Event, Loud, Mark, ServerActivity, TICK};
use pgweir_sql::{Catalogue, Kind, Object, Source};

use crate::messages::{
    bind, bind_complete, columns, done, done_with, error, execute, in_block, in_failed_block, left,
    long_row, no_data, no_parameters, parameter_status, parse, parse_as, parse_complete, query,
    ready, row, set_to, sync,
};
use crate::named::uses_again;
use crate::peer::Peer;
use crate::pipelining::{BRAKED, FREED, shared};
use crate::stage::{Setup, Stage, took};

/// Functions of these names, each of which takes a lock of the session.
fn locking(names: &[&str]) -> Arc<Loud> {
    doing("SELECT pg_advisory_lock(1)", names)
}

/// Functions of these names that do this.
fn doing(body: &str, names: &[&str]) -> Arc<Loud> {
    let object = |(oid, name): (u32, &&str)| Object {
        id: (Kind::Function, oid),
        name: (*name).to_owned(),
        source: Source::Sql(body.to_owned()),
        is_quiet: false,
        is_immutable: false,
    };
    let objects = (1..).zip(names).map(object).collect();
    Arc::new(Catalogue { objects, uses: Vec::new() }.loud())
}

/// A stage on which servers say nothing of their catalogues by themselves, nor is anything judged;
/// a server, and a client that waits to be let in.
fn unread(setup: &Setup) -> (Stage, Peer, Peer) {
    let stage = Stage::new(setup);
    stage.tell_no_names();
    stage.set_loud(None);
    let client = stage.newcomer(&[]);
    let server = stage.server();
    assert_eq!(server.heard(), "Q(names?)");
    assert!(!client.is_greeted());
    (stage, server, client)
}

/// The same, where that is over.
fn read(setup: &Setup, names: Arc<Loud>) -> (Stage, Peer, Peer) {
    let (stage, server, client) = unread(setup);
    server.says([done(), ready()]);
    assert_eq!(stage.judge_catalogue(Ok(names)), 1);
    assert!(client.is_greeted());
    (stage, server, client)
}

/// The simulator's: what waits for the names with its clients was taken for another pool, and made
/// anew by its own, whose clients had waited longer: without end, thousands in a second.
#[test]
fn what_waits_for_names_is_not_to_spare() {
    let others = &["east"];
    let limited = Setup { general: "max_server_connections = 2", others, ..Setup::of_size(2) };
    let (stage, first, alice) = unread(&limited);
    let bob = stage.newcomer(&[]);
    let second = stage.server();
    let carol = stage.newcomer_to("east");
    stage.wait(TICK);
    assert_eq!((second.heard().as_str(), stage.attempts()), ("", 0));
    first.says([done(), ready()]);
    assert_eq!(stage.judge_catalogue(Ok(Arc::new(Catalogue::default().loud()))), 1);
    assert!(alice.is_greeted() && bob.is_greeted());
    stage.wait(TICK);
    let gone = [&first, &second].into_iter().find(|server| server.heard() == "X");
    gone.expect("there is one to spare now").ends();
    assert_eq!(stage.server().heard(), "Q(names?)");
    assert!(!carol.is_greeted());
}

/// One is read from, for the one that waits: another is.
#[test]
fn what_nobody_waits_for_while_names_are_read_is_to_spare() {
    let (others, user): (&[_], _) = (&["east"], "min_pool_size = 2");
    let limited =
        Setup { general: "max_server_connections = 2", user, others, ..Setup::of_size(2) };
    let (stage, first, alice) = unread(&limited);
    stage.wait(TICK);
    let second = stage.server();
    let _carol = stage.newcomer_to("east");
    stage.wait(TICK);
    assert_eq!((first.heard().as_str(), second.heard().as_str()), ("", "X"));
    assert!(!alice.is_greeted());
}

/// It is the longest free, and another one goes.
#[test]
fn what_waits_for_names_is_not_taken_in_place_of_another() {
    let others = &["east", "west"];
    let limited = Setup { general: "max_server_connections = 3", others, ..Setup::of_size(2) };
    let (stage, first, _alice) = unread(&limited);
    let _bob = stage.newcomer(&[]);
    let second = stage.server();
    stage.wait(Duration::from_millis(10));
    let dave = stage.newcomer_to("west");
    let third = stage.server();
    assert_eq!(third.heard(), "Q(names?)");
    third.says([done(), ready()]);
    assert_eq!(stage.judge_catalogue(Ok(Arc::new(Catalogue::default().loud()))), 1);
    assert!(dave.is_greeted());
    let _carol = stage.newcomer_to("east");
    stage.wait(TICK);
    let heard = [&first, &second, &third].map(|server| server.heard());
    assert_eq!(heard, ["", "", "X"]);
}

/// The catalogue of the pool's database is another one from now on.
fn change_catalogue(stage: &Stage, size: usize) {
    stage.reload(&Setup { pool: "quiet_functions = 'quiet'", ..Setup::of_size(size) });
}

#[test]
fn units_wait_for_the_names_in_the_order_in_which_they_came() {
    let (stage, server, alice) = read(&Setup::default(), Arc::default());
    let bob = stage.client();
    change_catalogue(&stage, 1);
    assert_eq!(server.heard(), "Q(names?)");
    bob.says([query("SELECT 'bob'")]);
    alice.says([query("SELECT 'alice'")]);
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "");
    assert_eq!(stage.judge_catalogue(Ok(Arc::default())), 1);
    assert_eq!(server.heard(), "Q(SELECT 'bob')");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(SELECT 'alice')");
}

/// The server refuses to tell of it, or a part is too long to be kept: whoever waits is served all
/// the same.
#[test]
fn a_catalogue_that_cannot_be_read_holds_nobody_up() {
    let long = [long_row(40_000), done()].concat();
    for (answer, is_long) in [(error("42501"), false), (long, true)] {
        let (stage, server, alice) = unread(&Setup::default());
        for piece in answer.chunks(10_000) {
            server.says([piece]);
        }
        server.says([ready()]);
        assert_eq!(took(Mark::CatalogueTooLong), is_long);
        let told = |event: &Event| matches!(event, Event::CatalogueUnread { .. });
        assert!(stage.log().iter().any(told));
        assert!(alice.is_greeted());
        alice.says([query("SELECT take()")]);
        assert_eq!(server.heard(), "Q(SELECT take())");
        server.says([done(), ready()]);
        assert_eq!(stage.servers(), [ServerActivity::Idle]);
        stage.wait(Duration::from_secs(11));
        assert_eq!(server.heard(), "Q(names?)", "it is tried again");
    }
}

/// A cancel that has come late, a lock that is held: what another attempt comes to is another
/// matter.
#[test]
fn a_reading_that_is_cut_short_is_begun_again() {
    let (stage, server, alice) = unread(&Setup::default());
    for code in ["57014", "55P03"] {
        server.says([error(code), ready()]);
        assert_eq!(server.heard(), "Q(names?)");
    }
    assert!(!alice.is_greeted());
    server.says([error("57014"), ready()]);
    assert!(alice.is_greeted(), "three times is enough");
    assert!(stage.log().iter().any(|event| matches!(event, Event::CatalogueUnread { .. })));
}

#[test]
fn a_server_that_is_lost_while_it_is_asked_is_replaced() {
    let (stage, server, alice) = unread(&Setup::default());
    server.breaks();
    assert_eq!(stage.attempts(), 0, "the next one may be lost, too");
    stage.wait(Duration::from_secs(1));
    let other = stage.server();
    assert_eq!(other.heard(), "Q(names?)");
    other.says([done(), ready()]);
    stage.judge_catalogue(Ok(Arc::default()));
    assert!(alice.is_greeted());
}

/// A migration makes a function, runs it, and removes it, or takes all of it back: what that has
/// set is in no list, and what else it has done may be what no DISCARD removes.
#[test]
fn what_was_made_used_and_removed_is_looked_for() {
    let makes = "CREATE FUNCTION mig() RETURNS void LANGUAGE sql AS 'SELECT'";
    let (uses, removes) = ("SELECT mig()", "DROP FUNCTION mig()");
    let all = [makes, uses, removes].join("; ");
    let block =
        |rest: &str| format!("DO $$ BEGIN CREATE VIEW v AS SELECT f(); TABLE v; {rest}END $$");
    for (texts, is_looked_for) in [
        (&["BEGIN", makes, uses, removes, "COMMIT"][..], true),
        (&["BEGIN", &all, "COMMIT"], true),
        (&["BEGIN", makes, uses, "ROLLBACK"], true),
        (&["BEGIN", "SAVEPOINT a", makes, uses, "ROLLBACK TO a", "COMMIT"], true),
        (&["BEGIN", makes, uses, "fails", "ROLLBACK"], true),
        (&["BEGIN", makes, uses, "fails", "COMMIT"], true),
        // What it has made is committed before.
        (&[makes, uses, "fails"], false),
        (&[&[makes, uses, "fails"].join("; ")], true),
        (&["BEGIN", makes, uses, "PREPARE TRANSACTION 'a'"], true),
        // A trigger that waits for the end has used it.
        (&["BEGIN", makes, "END"], true),
        (&["BEGIN", &block(""), "ROLLBACK"], true),
        (&[&block("DROP VIEW v; ")], true),
        (&[&block("COMMIT; DROP VIEW v; ")], true),
        (
            &["BEGIN", makes, "DO $$ BEGIN PERFORM mig(); DROP FUNCTION mig(); END $$", "COMMIT"],
            true,
        ),
        (&[&block("")], false),
        (&["BEGIN", makes, "COMMIT", "DISCARD ALL"], false),
        (&["BEGIN", makes, "COMMIT", "SELECT pg_advisory_unlock(1)"], false),
        (
            &["BEGIN", "DO $$ BEGIN CREATE TEMP TABLE t () ON COMMIT DROP; END $$", "ROLLBACK"],
            false,
        ),
        (&["BEGIN", "DO $$ BEGIN EXECUTE 'SELECT 1'; END $$", "ROLLBACK"], false),
        (&["BEGIN", makes, "ROLLBACK"], false),
        (&["BEGIN", "CREATE TABLE t ()", "SELECT 1", "COMMIT"], false),
    ] {
        let (stage, server, alice) = read(&Setup::default(), Arc::default());
        let mut status = ready();
        for text in texts {
            alice.says([query(text)]);
            assert_eq!(server.heard(), format!("Q({text})"));
            status = match *text {
                "BEGIN" => in_block(),
                "COMMIT" | "END" | "PREPARE TRANSACTION 'a'" | "ROLLBACK" => ready(),
                _ => status,
            };
            let answer = match *text {
                "END" | "fails" => error("22012"),
                "PREPARE TRANSACTION 'a'" => done_with("PREPARE TRANSACTION"),
                "ROLLBACK TO a" => done_with("ROLLBACK"),
                text => done_with(text),
            };
            server.says([answer, status.clone()]);
        }
        stage.wait(Duration::from_secs(1));
        assert_eq!(server.heard(), "Q(names?)");
        server.says([done(), ready()]);
        stage.judge_catalogue(Ok(Arc::default()));
        assert_eq!(took(Mark::SchemaChangedAgain), is_looked_for, "{texts:?}");
        if is_looked_for {
            assert_eq!(server.heard(), "Q(set to?)");
            server.says([set_to(&[("search_path", "mig")])]);
            assert_eq!(server.heard(), "X");
        } else {
            assert!(server.is_open(), "{texts:?}");
        }
    }
}

/// It gives itself a minute. Whoever is asked again and again, and never answers, would keep all
/// clients waiting for ever.
#[test]
fn servers_that_are_lost_while_they_are_asked_hold_nobody_up_for_ever() {
    let (stage, mut server, alice) = unread(&Setup::with("query_wait_timeout = 0"));
    for _ in 0..2 {
        stage.wait(Duration::from_secs(60));
        assert!(server.is_open(), "the catalogue may be large");
        stage.wait(Duration::from_secs(6));
        server = stage.server();
        assert_eq!(server.heard(), "Q(names?)");
    }
    stage.wait(Duration::from_secs(2));
    server.breaks();
    assert!(took(Mark::CatalogueLost));
    assert!(stage.log().iter().any(|event| matches!(event, Event::CatalogueUnread { .. })));
    stage.wait(Duration::from_secs(1));
    let next = stage.server();
    assert!(alice.is_greeted());
    alice.says([query("SELECT 1")]);
    assert_eq!(next.heard(), "Q(SELECT 1)");
}

/// The next one is made later each time, though all of them let us in.
#[test]
fn servers_that_are_lost_before_they_are_of_use_are_made_less_and_less_often() {
    let (stage, server, _alice) = unread(&Setup::with("query_wait_timeout = 0"));
    server.breaks();
    let mut waited = Vec::new();
    for _ in 0..7 {
        let mut ticks = 0;
        while stage.attempts() == 0 {
            stage.wait(TICK);
            ticks += 1;
        }
        stage.bare_server().breaks();
        waited.push(ticks);
    }
    assert!(waited[6] >= 8 && waited[0] < 2, "{waited:?}");
}

/// Its client's own could end the question, and a role not be allowed to ask it.
#[test]
fn a_server_is_asked_without_the_settings_of_its_last_client() {
    let (stage, server, _alice) = read(&Setup::default(), Arc::default());
    let bob = stage.newcomer(&[("statement_timeout", "1")]);
    let set = "Q(SELECT ARRAY[pg_catalog.set_config('statement_timeout', '1', false)] IS NULL)";
    assert_eq!(server.heard(), set);
    server.says([done(), ready()]);
    assert!(bob.is_greeted());
    change_catalogue(&stage, 1);
    assert_eq!(server.heard(), set.replace("'1'", "NULL"));
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(names?)");
}

/// A short statement_timeout would end the question each time: another one is asked.
#[test]
fn a_server_that_keeps_the_settings_of_its_last_client_is_not_asked() {
    let (stage, server, alice) = read(&Setup::default(), Arc::default());
    stage.newcomer(&[("statement_timeout", "1")]);
    server.says([done(), ready()]);
    change_catalogue(&stage, 1);
    alice.says([query("SELECT 1")]);
    server.heard();
    server.says([error("57014"), ready()]);
    assert!(took(Mark::ReadingRefused));
    assert_eq!(server.heard(), "X");
    server.ends();
    let other = stage.server();
    assert_eq!(other.heard(), "Q(names?)");
    other.says([done(), ready()]);
    stage.judge_catalogue(Ok(Arc::default()));
    assert_eq!(other.heard(), "Q(SELECT 1)");
}

/// Long, as a catalogue may be: it is not what nobody hears.
#[test]
fn what_a_server_says_of_its_catalogue_is_kept() {
    let (stage, server, _alice) = unread(&Setup::default());
    server.says([columns()]);
    for _ in 0..300 {
        server.says([row(&[b'x'; 10_000])]);
    }
    server.says([done(), ready()]);
    assert_eq!(stage.judge_catalogue(Ok(Arc::default())), 1);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

#[test]
fn a_name_counts_as_what_stands_behind_it() {
    let (stage, server, alice) = read(&Setup::default(), locking(&["take"]));
    alice.says([query("SELECT take()")]);
    assert_eq!(server.heard(), "Q(SELECT take())");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(left?)");
    server.says([left("a")]);
    assert_eq!(stage.servers(), [ServerActivity::Active]);
}

/// What a client calls between its change of the schema and the next list may be in that only.
#[test]
fn what_is_new_behind_a_change_of_the_schema_counts_as_done_by_its_client() {
    let (stage, server, alice) = read(&Setup::default(), Arc::default());
    for text in ["CREATE FUNCTION take()", "SELECT take()"] {
        alice.says([query(text)]);
        assert_eq!(server.heard(), format!("Q({text})"));
        server.says([done(), ready()]);
    }
    assert_eq!(stage.servers(), [ServerActivity::Active], "it is kept until that is known");
    stage.wait(Duration::from_secs(1));
    assert_eq!(server.heard(), "Q(names?)", "between two of its units");
    server.says([done(), ready()]);
    assert_eq!(stage.judge_catalogue(Ok(locking(&["take"]))), 1);
    assert_eq!(server.heard(), "Q(left?)");
    server.says([left("a")]);
    assert_eq!(stage.servers(), [ServerActivity::Active]);
}

#[test]
fn a_change_of_the_schema_that_makes_nothing_loud_keeps_no_server() {
    let (stage, server, alice) = read(&Setup::default(), locking(&["take"]));
    stage.wait(Duration::from_secs(1));
    alice.says([query("CREATE TABLE t (a int)")]);
    assert_eq!(server.heard(), "Q(CREATE TABLE t (a int))");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(names?)");
    alice.says([query("SELECT 1")]);
    assert_eq!(server.heard(), "", "one after the other");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(SELECT 1)", "which is judged meanwhile");
    server.says([done(), ready()]);
    stage.judge_catalogue(Ok(locking(&["take"])));
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// What was quiet may change a session from then on, until it is read anew.
#[test]
fn nobody_shares_while_the_schema_changes() {
    let (stage, server, alice) = read(&shared(2), locking(&["take"]));
    let bob = stage.client();
    alice.says([query("CREATE FUNCTION quiet()")]);
    assert_eq!(server.heard(), "Q(CREATE FUNCTION quiet())");
    bob.says([query("SELECT quiet()")]);
    let other = stage.server();
    assert_eq!(other.heard(), "Q(SELECT quiet())", "nobody knows whether it has begun");
    other.says([done(), ready()]);
    server.says([done(), ready()]);
    bob.says([query("SELECT 1")]);
    assert_eq!(other.heard(), "Q(SELECT 1)", "it is not read yet");
    stage.wait(Duration::from_secs(1));
    assert_eq!(server.heard(), "Q(names?)");
    server.says([done(), ready()]);
    stage.judge_catalogue(Ok(locking(&["take"])));
    other.says([done(), ready()]);
    bob.says([query("SELECT 1")]);
    assert_eq!([server.heard(), other.heard()].concat(), BRAKED);
}

/// A client shares its server until another one changes the schema on its own.
fn shares_until_it_changes([bob, server]: [&Peer; 2], [alice, changes]: [&Peer; 2]) {
    bob.says([query("SELECT 1")]);
    assert_eq!(server.heard(), BRAKED);
    server.says([done(), ready()]);
    server.heard();
    server.says([done(), ready()]);
    alice.says([query("CREATE FUNCTION f()")]);
    assert!(changes.heard().ends_with("Q(CREATE FUNCTION f())"));
    bob.says([query("SELECT 1")]);
    assert_eq!(server.heard(), FREED);
}

/// Nobody knows whether two addresses lead to the same database.
#[test]
fn a_change_of_the_schema_counts_for_all_databases_of_that_name() {
    let user = "[pools.two.shards.0]\nservers = [['localhost', 5432, 'primary']]\n\
                database = 'db'\n[pools.two.users.0]\nusername = 'user'\n\
                password = 'password'\npool_size = 2";
    let stage = Stage::new(&Setup { user, ..shared(2) });
    let alice = stage.newcomer(&[]);
    let changes = stage.server();
    let bob = stage.newcomer_to("two");
    let server = stage.server();
    shares_until_it_changes([&bob, &server], [&alice, &changes]);
}

/// A pool whose functions are ignored has none read, but what its clients change of the schema may
/// change what those of others reach.
#[test]
fn a_change_of_the_schema_counts_also_where_nobody_looks() {
    let user = "[pools.two]\nloud_functions = 'ignore'\n\
                [pools.two.shards.0]\nservers = [['localhost', 5432, 'primary']]\n\
                database = 'db'\n[pools.two.users.0]\nusername = 'user'\n\
                password = 'password'\npool_size = 2";
    let stage = Stage::new(&Setup { user, ..shared(2) });
    let alice = stage.newcomer_to("two");
    let changes = stage.server();
    let bob = stage.newcomer(&[]);
    let server = stage.server();
    shares_until_it_changes([&bob, &server], [&alice, &changes]);
}

/// What was a view may be one that changes rows: a statement that is lost then was perhaps carried
/// out, and is not run twice.
#[test]
fn nothing_is_run_again_while_the_schema_changes() {
    let (stage, server, alice) = read(&shared(2), locking(&["take"]));
    let bob = stage.client();
    alice.says([query("CREATE OR REPLACE VIEW v")]);
    assert_eq!(server.heard(), "Q(CREATE OR REPLACE VIEW v)");
    server.says([done(), ready()]);
    for units in [1, 2] {
        bob.says(vec![query("SELECT a FROM v"); units]);
        let other = stage.server();
        assert!(other.heard().ends_with("Q(SELECT a FROM v)"));
        other.breaks();
        let told = if units == 1 { "E(08007) Z" } else { "E(FATAL 08007)" };
        assert_eq!(bob.heard(), told);
    }
}

/// Nor while another one changes it, which the list does not show.
#[test]
fn nobody_shares_while_somebody_else_changes_the_schema() {
    let (stage, server, alice) = read(&shared(3), locking(&["take"]));
    let bob = stage.client();
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    alice.says([query("CREATE FUNCTION quiet()")]);
    server.says([done(), in_block()]);
    bob.says([query("CREATE TABLE t (a int)")]);
    let other = stage.server();
    other.says([done(), ready()]);
    assert_eq!(other.heard(), "Q(CREATE TABLE t (a int))");
    stage.wait(Duration::from_secs(1));
    assert_eq!(other.heard(), "Q(names?)");
    other.says([done(), ready()]);
    stage.judge_catalogue(Ok(locking(&["take"])));
    assert!(took(Mark::SchemaStillChanging));
    bob.heard();
    bob.says([query("SELECT 1")]);
    assert_eq!(other.heard(), "Q(SELECT 1)");
    other.says([done(), ready()]);
    assert_eq!(bob.heard(), "C Z");
    server.heard();
    alice.breaks();
    assert!(took(Mark::SchemaChangerGone));
    assert_eq!(server.heard(), "Q(ROLLBACK)");
    server.says([done(), ready()]);
    stage.wait(Duration::from_secs(1));
    assert_eq!(server.heard(), "Q(names?)", "it may have been committed");
    server.says([done(), ready()]);
    stage.judge_catalogue(Ok(locking(&["take"])));
    bob.says([query("SELECT 1")]);
    assert_eq!([server.heard(), other.heard()].concat(), BRAKED);
}

/// Whoever holds the server that is asked is free to leave once it has said that it cannot be read.
#[test]
fn a_drain_does_not_wait_for_a_catalogue_that_cannot_be_read() {
    let (stage, server, alice) = read(&Setup::default(), Arc::default());
    stage.wait(Duration::from_secs(1));
    alice.says([query("CREATE TABLE t (a int)")]);
    server.says([done(), ready()]);
    assert!(server.heard().ends_with("Q(names?)"));
    assert_eq!(alice.heard(), "C Z");
    stage.drain();
    assert!(alice.is_open());
    server.says([error("42501"), ready()]);
    assert_eq!(alice.heard(), "E(FATAL 57P01)");
    assert!(took(Mark::NamesToldToLeaver));
}

/// A session sets what it likes, and nobody notes it: a newcomer was told of that at its login,
/// when what its server is asked had shown that something else is new.
#[test]
fn no_newcomer_is_told_what_a_session_has_set() {
    let setup = Setup { mode: "session", ..Setup::of_size(2) };
    let (stage, server, alice) = read(&setup, locking(&["take"]));
    alice.says([query("SET datestyle = german")]);
    server.says([done(), parameter_status("DateStyle", "German"), ready()]);
    stage.wait(Duration::from_secs(1));
    alice.says([query("CREATE TABLE t (a int)")]);
    server.says([done(), ready()]);
    assert!(server.heard().ends_with("Q(names?)"));
    alice.heard();
    server.says([parameter_status("TimeZone", "UTC"), done(), ready()]);
    stage.judge_catalogue(Ok(locking(&["take"])));
    assert_eq!(alice.heard(), "S(TimeZone=UTC)");
    assert_eq!(stage.newcomer(&[]).heard(), "R S(server_version=15.1) K Z");
}

/// Nobody waits for it where another server is free.
#[test]
fn the_schema_is_read_on_a_server_that_is_free() {
    let (stage, server, alice) = read(&Setup::of_size(2), locking(&["take"]));
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    let bob = stage.client();
    bob.says([query("SELECT 1")]);
    let other = stage.server();
    assert_eq!(other.heard(), "Q(SELECT 1)");
    other.says([done(), ready()]);
    stage.wait(Duration::from_secs(1));
    alice.says([query("CREATE TABLE t (a int); COMMIT")]);
    server.says([done(), ready()]);
    assert_eq!(other.heard(), "Q(names?)");
    server.heard();
    alice.says([query("SELECT 2")]);
    assert_eq!(server.heard(), "Q(SELECT 2)");
}

/// What a transaction has done to the schema is gone with the server that is lost.
#[test]
fn what_was_lost_keeps_no_server() {
    let (stage, server, alice) = read(&Setup::default(), Arc::default());
    for text in ["BEGIN", "CREATE FUNCTION take()"] {
        alice.says([query(text)]);
        server.heard();
        server.says([done(), in_block()]);
    }
    server.breaks();
    alice.heard();
    alice.says([query("SELECT")]);
    assert_eq!(alice.heard(), "E(40001) Z(E)");
    change_catalogue(&stage, 1);
    alice.says([query("ROLLBACK")]);
    let other = stage.server();
    assert_eq!(other.heard(), "Q(names?)");
    other.says([done(), ready()]);
    assert_eq!(stage.judge_catalogue(Ok(Arc::default())), 1);
    assert!(other.heard().starts_with("Q(BEGIN; SELECT CAST("));
    other.says([done(), error("22P02"), in_failed_block()]);
    assert_eq!(other.heard(), "Q(ROLLBACK)");
    other.says([done(), ready()]);
    assert_eq!((alice.heard().as_str(), stage.servers()), ("C Z", vec![ServerActivity::Idle]));
}

/// A client in the middle of its transaction is where it is: its statements are read as before.
#[test]
fn what_is_known_of_a_place_matters_to_whoever_is_still_there() {
    let (stage, server, alice) = read(&Setup::default(), locking(&["take"]));
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    stage.reload(&Setup { port: 5433, ..Setup::default() });
    server.heard();
    alice.says([query("SELECT take(); COMMIT")]);
    assert_eq!(server.heard(), "Q(SELECT take(); COMMIT)");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(left?)");
}

/// It was promised a server when the names that mattered were known.
#[test]
fn a_client_that_has_its_server_waits_for_the_names_too() {
    let (stage, other, new, _clients) = while_names_are_unknown();
    other.says([done(), ready()]);
    stage.judge_catalogue(Ok(locking(&["take"])));
    assert_eq!(new.heard(), "Q(SELECT 2)");
    assert!(took(Mark::HeldForCatalogue));
}

/// Another configuration goes back to names that are known, or needs none: nobody reads them then.
#[test]
fn a_client_that_waits_for_names_goes_on_when_none_are_read() {
    let (stage, _other, new, _clients) = while_names_are_unknown();
    stage.reload(&Setup::of_size(2));
    assert_eq!(new.heard(), "Q(SELECT 2)");
    let (stage, _other, new, _clients) = while_names_are_unknown();
    stage.reload(&Setup { pool: "loud_functions = 'ignore'", ..Setup::of_size(2) });
    assert_eq!(new.heard(), "Q(SELECT 2)");
}

/// A server is asked for names that have come to matter, while a client has been given another,
/// which it had been promised before, and has a statement held.
fn while_names_are_unknown() -> (Stage, Peer, Peer, [Peer; 4]) {
    let (stage, server, alice) = read(&Setup::of_size(2), Arc::default());
    let bob = stage.newcomer(&[("timezone", "UTC")]);
    server.heard();
    server.says([done(), ready()]);
    assert!(bob.is_greeted());
    alice.says([query("SELECT 1")]);
    server.heard();
    server.says([done(), ready()]);
    let carol = stage.client();
    carol.says([query("SELECT 3")]);
    let other = stage.server();
    assert_eq!(other.heard(), "Q(SELECT 3)");
    server.says([done(), ready()]);
    bob.says([query("SELECT 2")]);
    server.heard();
    other.says([done(), ready()]);
    server.says([error("22023"), ready()]);
    assert_eq!(server.heard(), "X");
    change_catalogue(&stage, 2);
    assert_eq!(other.heard(), "Q(names?)");
    server.ends();
    let new = stage.server();
    assert!(new.heard().contains("set_config('timezone', 'UTC'"));
    new.says([done(), ready()]);
    assert_eq!(new.heard(), "");
    (stage, other, new, [server, alice, bob, carol])
}

/// Others may change the schema elsewhere, and nobody sees them.
#[test]
fn the_catalogue_is_read_now_and_then() {
    let (stage, server, alice) = read(&Setup::default(), Arc::default());
    alice.says([query("SELECT take()")]);
    assert_eq!(server.heard(), "Q(SELECT take())");
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    stage.wait(Duration::from_secs(290));
    assert_eq!(server.heard(), "");
    stage.wait(Duration::from_secs(11));
    assert_eq!(server.heard(), "Q(names?)");
    server.says([done(), ready()]);
    assert_eq!(stage.judge_catalogue(Ok(locking(&["take"]))), 1);
    alice.says([query("SELECT take()")]);
    assert_eq!(server.heard(), "Q(SELECT take())");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(left?)");
}

/// No reply tells of a DEALLOCATE within a block: what all have prepared there may be gone.
#[test]
fn what_may_remove_prepared_statements_unseen_empties_its_server() {
    let (stage, server, alice) = read(&Setup::default(), Arc::default());
    let block = "DO $$ BEGIN DEALLOCATE ALL; END $$";
    alice.says([query(block)]);
    assert_eq!(server.heard(), format!("Q({block})"));
    server.says([error("P0001"), ready()]);
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
    server.says([done(), ready()]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    assert!(took(Mark::NamesGoneUnseen));
}

/// Where the pool says so, what was done unseen keeps no server: it is removed before the next one
/// has it, who would find it there.
#[test]
fn what_is_done_unseen_is_removed_where_the_pool_says_so() {
    let setup = Setup { pool: "loud_functions = 'reset'", ..Setup::default() };
    let (stage, server, alice) = read(&setup, locking(&["take"]));
    let bob = stage.client();
    alice.says([query("SELECT take()")]);
    bob.says([query("SELECT 'bob'")]);
    assert_eq!(server.heard(), "Q(SELECT take())");
    server.says([done(), ready()]);
    assert_eq!((alice.heard().as_str(), server.heard().as_str()), ("C Z", "Q(DISCARD ALL)"));
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(SELECT 'bob')");
    server.says([done(), ready()]);
    assert_eq!((server.heard().as_str(), stage.servers()), ("", vec![ServerActivity::Idle]));
    assert!(took(Mark::CleanedOfUnseen));
}

/// What is set for a transaction is nothing to remove, but literals may be read by it.
#[test]
fn what_is_set_unseen_for_a_transaction_is_for_nobody_else() {
    let setup = Setup { pool: "loud_functions = 'reset'", ..Setup::default() };
    let local = "SELECT set_config('TimeZone', 'CET', true)";
    let (_stage, server, alice) = read(&setup, doing(local, &["locally"]));
    alice.says([parse_as("s", "SELECT '1'"), sync()]);
    server.says([parse_complete(), no_parameters(), no_data(), ready()]);
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    alice.says([query("SELECT locally()")]);
    server.says([done(), in_block()]);
    uses_again(&alice, &server);
    assert!(server.heard().starts_with("C(pgweir_1) P(pgweir_1=SELECT '1') "));
}

/// A SELECT of a view is under way when another client gives the view another query: from then on
/// it is not known to only read.
fn while_its_view_changes() -> (Stage, Peer, Peer, Peer) {
    let (stage, server, alice) = read(&shared(2), locking(&["take"]));
    let bob = stage.client();
    bob.says([query("SELECT a FROM v")]);
    assert_eq!(server.heard(), BRAKED);
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(SELECT a FROM v)");
    alice.says([query("CREATE OR REPLACE VIEW v AS SELECT act()")]);
    let other = stage.server();
    other.heard();
    other.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z");
    (stage, server, other, bob)
}

/// A reply that is too long is thrown away, and then nobody knows what its statement has done.
#[test]
fn a_long_reply_is_not_asked_for_again_when_the_schema_has_changed() {
    let (_stage, server, _other, bob) = while_its_view_changes();
    server.says([long_row(400_000), done(), ready()]);
    assert!(took(Mark::TooLongInDoubt));
    assert_eq!(bob.heard(), "E(08007) Z");
    assert!(!server.heard().contains("SELECT a FROM v"));
}

/// That its client has asked for its end says nothing of what it has done.
#[test]
fn nor_is_it_called_cancelled() {
    let (stage, server, alice) = read(&shared(2), locking(&["take"]));
    let (bob, carol) = (stage.client(), stage.client());
    for _ in 0..2 {
        bob.says([query("SELECT a FROM v")]);
        server.heard();
        server.says([done(), ready()]);
    }
    server.heard();
    server.says([done(), ready()]);
    bob.heard();
    for client in [&bob, &carol] {
        client.says([query("SELECT a FROM v")]);
    }
    assert_eq!(server.heard(), "Q(SELECT a FROM v) Q(SELECT a FROM v)");
    alice.says([query("CREATE OR REPLACE VIEW v AS SELECT act()")]);
    let other = stage.server();
    other.heard();
    other.says([done(), ready()]);
    stage.cancel(&bob);
    assert_eq!(stage.cancels(), 0);
    server.says([long_row(400_000), done(), ready()]);
    assert!(took(Mark::TooLongInDoubt));
    assert_eq!(bob.heard(), "E(08007) Z");
}

/// Nor is it known of two that were one transaction, of which the server says that it does not know
/// what became of it.
#[test]
fn what_was_joined_is_in_doubt_when_the_schema_has_changed() {
    let (stage, server, alice) = read(&Setup { joins: true, ..shared(2) }, locking(&["take"]));
    let (bob, carol) = (stage.client(), stage.client());
    let batch = || [parse("SELECT a FROM v"), bind(), execute(), sync()].concat();
    let before = stage.snapshot().memory.buffers.total;
    let reply = [parse_complete(), bind_complete(), done(), ready()].concat();
    bob.says([batch()]);
    server.heard();
    server.says([done(), ready()]);
    for _ in 0..2 {
        assert_eq!(server.heard(), "P(SELECT a FROM v) B E S");
        server.says([&reply]);
        assert_eq!(bob.heard(), "1 2 C Z");
        bob.says([batch()]);
    }
    stage.keep_turn_open();
    carol.says([batch()]);
    let dave = stage.client();
    dave.says([batch()]);
    stage.end_turn();
    assert_eq!(
        server.heard(),
        "P(SELECT a FROM v) B E S P(SELECT a FROM v) B E P(SELECT a FROM v) B E S"
    );
    server.says([&reply]);
    alice.says([query("CREATE OR REPLACE VIEW v AS SELECT act()")]);
    let other = stage.server();
    other.heard();
    other.says([done(), ready()]);
    server.says([parse_complete(), bind_complete(), done()]);
    server.says([error("40003"), ready()]);
    assert!(took(Mark::DerailedInDoubt));
    let after = stage.snapshot().memory.buffers.total;
    assert_eq!(after, before, "nothing of the reply is kept");
    assert_eq!((carol.heard().as_str(), dave.heard().as_str()), ("E(08007) Z", "E(08007) Z"));
}

/// Nor is it known what it did before its server had refused what its client has set.
#[test]
fn what_stood_behind_settings_that_were_refused_is_in_doubt() {
    let (stage, server, alice) = read(&shared(2), locking(&["take"]));
    let (bob, carol) = (stage.newcomer(&[("search_path", "x")]), stage.client());
    server.heard();
    server.says([columns(), row(b""), done(), ready()]);
    assert!(bob.is_greeted());
    carol.says([query("SELECT a FROM v")]);
    server.heard();
    server.says([done(), ready()]);
    for _ in 0..2 {
        assert_eq!(server.heard(), "Q(SELECT a FROM v)");
        server.says([done(), ready()]);
        assert_eq!(carol.heard(), "C Z");
        carol.says([query("SELECT a FROM v")]);
    }
    assert_eq!(server.heard(), "Q(SELECT a FROM v)");
    bob.says([query("SELECT a FROM v")]);
    assert!(server.heard().ends_with(") Q(SELECT a FROM v)"));
    alice.says([query("CREATE OR REPLACE VIEW v AS SELECT act()")]);
    let other = stage.server();
    other.heard();
    other.says([done(), ready()]);
    server.says([done(), ready(), error("53200"), ready(), done(), ready()]);
    assert!(took(Mark::MissetInDoubt));
    assert_eq!((carol.heard().as_str(), bob.heard().as_str()), ("C Z", "E(08007) Z"));
}

/// The same if it was thrown away before.
#[test]
fn what_was_thrown_away_before_the_schema_changes_is_in_doubt() {
    let (stage, server, alice) = read(&shared(2), locking(&["take"]));
    let bob = stage.client();
    bob.says([query("SELECT a FROM v")]);
    server.heard();
    server.says([done(), ready()]);
    server.heard();
    server.says([long_row(400_000)]);
    alice.says([query("CREATE OR REPLACE VIEW v AS SELECT act()")]);
    assert_eq!(stage.server().heard(), "Q(CREATE OR REPLACE VIEW v AS SELECT act())");
    server.says([done(), ready()]);
    assert!(took(Mark::TooLongInDoubt));
    assert_eq!(bob.heard(), "E(08007) Z");
    assert!(!server.heard().contains("SELECT a FROM v"));
}

/// That the names are known again says nothing of what was sent under those before.
#[test]
fn a_read_under_names_that_were_others_is_in_doubt_when_its_server_is_lost() {
    for names in [&["take", "act"][..], &["take"]] {
        let (stage, server, other, bob) = while_its_view_changes();
        stage.wait(Duration::from_secs(1));
        assert!(other.heard().ends_with("Q(names?)"));
        other.says([done(), ready()]);
        assert_eq!(stage.judge_catalogue(Ok(locking(names))), 1);
        server.breaks();
        let heard = if names.len() == 1 { "" } else { "E(08007) Z" };
        assert_eq!(bob.heard(), heard, "the same names stand for the same");
    }
}

/// What was heard of a server while somebody had it says nothing of who shares it next.
#[test]
fn names_that_were_others_are_forgotten_with_whoever_had_the_server() {
    let (stage, server, alice) = read(&shared(1), locking(&["take"]));
    let bob = stage.client();
    alice.says([query("SELECT 0")]);
    assert_eq!(server.heard(), BRAKED);
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(SELECT 0)");
    stage.reload(&Setup { pool: "quiet_functions = 'f'", ..shared(1) });
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z");
    stage.wait(Duration::from_secs(1));
    assert_eq!(server.heard(), FREED);
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(names?)");
    server.says([done(), ready()]);
    assert_eq!(stage.judge_catalogue(Ok(locking(&["act"]))), 1);
    bob.says([query("SELECT 1")]);
    assert_eq!(server.heard(), BRAKED);
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(SELECT 1)");
    server.breaks();
    assert_eq!(bob.heard(), "", "it only reads, and is run again");
    assert_eq!(stage.server().heard(), "Q(SELECT 1)");
}

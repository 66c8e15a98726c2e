//! What clients change of their settings goes with them from server to server.

use std::time::Duration;

use pgweir_engine::{Mark, ServerActivity};

use crate::messages::{
    bind_complete, bind_to, close_complete, done, done_with, error, execute, fatal, in_block,
    no_data, no_parameters, notice, one_row, parameter_status, parse_as, parse_complete, query,
    ready, row, set_to, sync, terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

const MEMORY: (&str, &str) = ("work_mem", "1024");
const QUESTION: &str = "Q(set to?)";

/// The client runs a query, and its server answers with this.
fn run(client: &Peer, server: &Peer, text: &str, status: Vec<u8>) {
    client.heard();
    client.says([query(text)]);
    assert_eq!(server.heard(), format!("Q({text})"));
    server.says([done(), status]);
    assert!(client.heard().starts_with("C Z"));
}

/// The client changes a setting, and its server has said what it is set to.
fn set(client: &Peer, server: &Peer) {
    run(client, server, "SET work_mem = '1MB'", ready());
    assert_eq!(server.heard(), QUESTION);
    server.says([set_to(&[MEMORY])]);
}

/// What a server hears that is to put back what its client has asked for.
const PUTS_BACK: &str = "P(pgweir_back=WITH s AS MATERIALIZED";

/// That it has done so.
fn put_back() -> Vec<u8> {
    let closed = [close_complete(), close_complete()].concat();
    [parse_complete(), bind_complete(), row(b"f"), done(), closed].concat()
}

/// What a server hears that is brought to a setting, or that is taken back.
fn brought(value: &str) -> String {
    format!("Q(SELECT ARRAY[pg_catalog.set_config('work_mem', {value}, false)] IS NULL)")
}

/// The client takes its settings back, which its server does, and then puts back.
fn reset(client: &Peer, server: &Peer, status: Vec<u8>) {
    client.heard();
    client.says([query("RESET ALL")]);
    assert_eq!(server.heard(), "Q(RESET ALL)");
    server.says([done(), status]);
    assert_eq!(client.heard(), "C");
    assert!(server.heard().starts_with(PUTS_BACK));
}

/// A stage with a client that has asked for a setting at its login, and has it.
fn named() -> (Stage, Peer, Peer) {
    let stage = Stage::new(&Setup::default());
    let client = stage.newcomer(&[("application_name", "it")]);
    let server = stage.server();
    server.says([parameter_status("application_name", "it"), one_row("it")]);
    assert!(client.is_greeted());
    server.heard();
    client.heard();
    (stage, server, client)
}

#[test]
fn a_setting_keeps_no_server_and_is_no_strangers() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    set(&alice, &server);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    run(&alice, &server, "SELECT", ready());
    bob.says([query("bob")]);
    assert_eq!(server.heard(), brought("NULL"));
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(bob)");
    server.says([done(), ready()]);
    alice.says([query("SELECT")]);
    assert_eq!(server.heard(), brought("'1024'"));
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT)");
}

/// On a connection of its own nothing would keep a client from taking back what no server takes any
/// more.
#[test]
fn what_no_server_takes_may_be_taken_back() {
    for cure in ["RESET work_mem", "DISCARD ALL", "SET work_mem = '2MB'"] {
        let (stage, server, alice) = Stage::ready(&Setup::default());
        set(&alice, &server);
        stage.client().says([query("bob")]);
        server.says([one_row("")]);
        server.says([done(), ready()]);
        alice.heard();
        server.heard();
        alice.says([query(cure)]);
        assert_eq!(server.heard(), brought("'1024'"));
        server.says([error("22023"), ready()]);
        server.ends();
        let new = stage.server();
        assert_eq!(new.heard(), brought("'1024'"));
        new.says([error("22023"), ready()]);
        assert_eq!((new.heard(), alice.heard()), (format!("Q({cure})"), String::new()));
        assert!(took(Mark::CureTried));
        new.says([done(), ready()]);
        assert_eq!((new.heard().as_str(), alice.heard().as_str()), (QUESTION, "C Z"));
    }
}

/// What a transaction has done to it is known when it is over.
#[test]
fn it_is_asked_for_behind_the_transaction() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    run(&alice, &server, "BEGIN", in_block());
    run(&alice, &server, "SET work_mem = '1MB'", in_block());
    run(&alice, &server, "SELECT", in_block());
    run(&alice, &server, "ROLLBACK", ready());
    assert_eq!(server.heard(), QUESTION);
    server.says([set_to(&[])]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    run(&stage.client(), &server, "SELECT", ready());
}

/// Where nobody waits for the server it is asked once, behind all that its client has sent.
#[test]
fn it_is_asked_for_behind_the_pipeline() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([query("SET work_mem = '1MB'"), query("SELECT")]);
    assert_eq!(server.heard(), "Q(SET work_mem = '1MB') Q(SELECT)");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), QUESTION);
}

#[test]
fn the_next_unit_waits_for_the_answer() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    run(&alice, &server, "SET work_mem = '1MB'", ready());
    alice.says([query("SELECT")]);
    assert_eq!(server.heard(), QUESTION);
    server.says([set_to(&[MEMORY])]);
    assert_eq!(server.heard(), "Q(SELECT)");
}

/// Whoever waits is next, and is brought to settings of its own.
#[test]
fn a_client_that_sets_something_lets_others_go_first() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("SET work_mem = '1MB'")]);
    bob.says([query("bob")]);
    alice.says([query("SELECT")]);
    assert_eq!(server.heard(), "Q(SET work_mem = '1MB')");
    server.says([done(), ready()]);
    assert_eq!(server.heard(), QUESTION);
    server.says([set_to(&[MEMORY])]);
    assert_eq!(server.heard(), brought("NULL"));
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(bob)");
}

/// A SET that was acknowledged is not lost in silence.
#[test]
fn a_client_whose_settings_are_lost_is_told() {
    for lost in [fatal("57P01"), Vec::new()] {
        let (_stage, server, alice) = Stage::ready(&Setup::default());
        run(&alice, &server, "SET work_mem = '1MB'", ready());
        server.says([lost]);
        server.breaks();
        assert_eq!(alice.heard(), "E(FATAL 57P01)");
    }
}

/// A statement_timeout of its own may be the reason: it is asked again behind the next unit.
#[test]
fn a_server_that_does_not_say_stays_with_its_client() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    run(&alice, &server, "SET statement_timeout = 1", ready());
    for _ in 0..3 {
        assert_eq!(server.heard(), QUESTION);
        server.says([notice(), error("57014"), ready()]);
        assert_eq!(alice.heard(), "");
    }
    assert_eq!(server.heard(), "");
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    run(&alice, &server, "SELECT", ready());
    assert_eq!(server.heard(), QUESTION);
    server.says([set_to(&[("statement_timeout", "1")])]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

#[test]
fn a_server_that_does_not_answer_is_lost() {
    let (stage, server, alice) = Stage::ready(&Setup::with("connect_timeout = 2000"));
    run(&alice, &server, "SET work_mem = '1MB'", ready());
    stage.wait(Duration::from_millis(1_900));
    assert!(server.is_open());
    stage.wait(Duration::from_millis(200));
    assert!(server.is_aborted());
    assert_eq!(alice.heard(), "E(FATAL 57P01)");
}

/// What it was set to nobody knows any more.
#[test]
fn a_server_is_cleaned_behind_a_client_that_does_not_wait() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    run(&alice, &server, "SET work_mem = '1MB'", ready());
    assert_eq!(server.heard(), QUESTION);
    alice.says([terminate()]);
    server.says([set_to(&[MEMORY])]);
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
    server.says([done(), ready()]);
    run(&stage.client(), &server, "SELECT", ready());
}

#[test]
fn a_client_that_leaves_later_leaves_nothing() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    set(&alice, &server);
    alice.says([terminate()]);
    assert_eq!(server.heard(), "");
    stage.client().says([query("SELECT")]);
    assert_eq!(server.heard(), brought("NULL"));
}

/// A cancel that comes behind the last reply is for nothing, and not for our question.
#[test]
fn the_question_is_not_cancelled() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    run(&alice, &server, "SET work_mem = '1MB'", ready());
    let cancel = stage.cancel(&alice);
    assert!(cancel.is_closed());
    assert_eq!(stage.cancels(), 0);
}

/// No list shows custom settings: those that a client has named are asked for by name, as long as
/// it lives.
#[test]
fn custom_settings_are_asked_for_by_name() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    let asked = |text: &str, names: &[&str], told: &[(&str, &str)]| {
        alice.heard();
        alice.says([query(text)]);
        server.heard();
        server.says([done(), ready()]);
        let heard = String::from_utf8_lossy(&server.heard_bytes()).into_owned();
        let asked: Vec<_> = heard
            .split(" UNION ALL SELECT '")
            .skip(3)
            .map(|part| part.split('\'').next().unwrap_or_default())
            .collect();
        assert_eq!(asked, names, "{text}");
        if !heard.is_empty() {
            server.says([set_to(told)]);
        }
    };
    asked("SET App.a = 1", &["app.a"], &[("app.a", "1")]);
    asked("SELECT set_config('x.y', $1, false)", &["app.a", "x.y"], &[("app.a", "1"), ("x.y", "")]);
    asked("SET work_mem = '1MB'", &["app.a", "x.y"], &[("app.a", "1"), ("x.y", "")]);
    // For a transaction: nothing is left that is not known already, unless the name is new.
    asked("SET LOCAL x.y = 7", &[], &[]);
    asked("SET LOCAL new.one = 7", &["app.a", "new.one", "x.y"], &[("new.one", "")]);
    asked("SET LOCAL new.one = 8", &[], &[]);
}

/// What nobody could keep for every client stays where it is.
#[test]
fn a_client_with_very_long_settings_keeps_its_server() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    run(&alice, &server, "SET app.x = 'xxx'", ready());
    server.says([set_to(&[("app.x", &"x".repeat(16 * 1024))])]);
    assert_eq!(alice.heard(), "");
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    server.heard();
    alice.says([terminate()]);
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
}

/// It need not come in one piece.
#[test]
fn a_client_with_a_setting_too_long_to_be_read_keeps_its_server() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    run(&alice, &server, "SET app.x = 'xxx'", ready());
    let told = set_to(&[("app.x", &"x".repeat(16 * 1024))]);
    for piece in told.chunks(10_000) {
        server.says([piece.to_vec()]);
    }
    assert_eq!(stage.servers(), [ServerActivity::Active]);
    alice.heard();
    alice.says([terminate()]);
    assert!(server.heard().ends_with("Q(DISCARD ALL)"));
    assert!(took(Mark::SettingsUnreadable));
}

/// Until its server has said in which encoding a client speaks that has changed it, a text that is
/// not plain ASCII may be anything.
#[test]
fn the_encoding_of_a_client_is_known_behind_its_unit() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let utf8 = || parameter_status("client_encoding", "UTF8");
    alice.says([query("SET client_encoding = 'UTF8'")]);
    server.says([utf8(), done(), ready()]);
    assert_eq!(server.heard(), format!("Q(SET client_encoding = 'UTF8') {QUESTION}"));
    server.says([set_to(&[("client_encoding", "UTF8")])]);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    alice.says([query("SELECT 'é'")]);
    server.says([one_row("é")]);
    assert_eq!(stage.servers(), [ServerActivity::Idle], "nothing keeps it");
    // Of the second it is not known when the first is over.
    alice.says([query("SELECT 1"), query("SET client_encoding = 'UTF8'")]);
    server.says([one_row("1")]);
    alice.says([query("SELECT 'é'")]);
    server.heard_bytes();
    server.says([utf8(), done(), ready(), one_row("é")]);
    assert_eq!(stage.servers(), [ServerActivity::Active], "it may have been anything");
}

/// A text that is too long to be looked at twice names whatever it names.
#[test]
fn a_client_that_sets_what_is_not_clear_keeps_its_server() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let text = query(&format!("SET app.x = '{}'", "x".repeat(40_000)));
    for piece in text.chunks(20_000) {
        alice.says([piece.to_vec()]);
    }
    server.heard_bytes();
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "");
    assert_eq!(stage.servers(), [ServerActivity::Active]);
}

/// RESET goes back to what its client has asked for at its login, and at once.
#[test]
fn what_was_asked_for_at_login_is_put_back_behind_a_reset() {
    for text in ["RESET ALL", "DISCARD ALL", "SET x = 1; RESET application_name"] {
        let (stage, server, named) = named();
        named.says([query(text), query("SELECT")]);
        assert_eq!(server.heard(), format!("Q({text})"));
        // What is true for a moment only it is not told.
        server.says([parameter_status("application_name", ""), done(), ready()]);
        assert_eq!(named.heard(), "C");
        let heard = server.heard();
        assert!(heard.starts_with(PUTS_BACK), "{heard}");
        server.says([put_back(), parameter_status("application_name", "it"), ready()]);
        assert_eq!(named.heard(), "Z");
        assert_eq!(server.heard(), QUESTION);
        server.says([set_to(&[("application_name", "it")])]);
        assert_eq!(server.heard(), "Q(SELECT)");
        server.says([done(), ready()]);
        assert_eq!(named.heard(), "C Z");
        assert_eq!(stage.servers(), [ServerActivity::Idle]);
        run(&named, &server, "SELECT", ready());
    }
}

/// Within a transaction, so that it is undone with it.
#[test]
fn what_was_asked_for_at_login_is_put_back_within_the_transaction() {
    let (_stage, server, named) = named();
    run(&named, &server, "BEGIN", in_block());
    reset(&named, &server, in_block());
    server.says([put_back(), in_block()]);
    assert_eq!(named.heard(), "Z(T)");
    run(&named, &server, "ROLLBACK", ready());
    assert_eq!(server.heard(), QUESTION);
}

/// What is not put back it is told before its ReadyForQuery, as PostgreSQL does.
#[test]
fn what_a_reset_has_changed_is_told_with_it() {
    let (_stage, server, named) = named();
    named.says([query("RESET ALL")]);
    server.says([done(), parameter_status("TimeZone", "GMT"), ready()]);
    assert_eq!(named.heard(), "C");
    server.says([put_back(), ready()]);
    assert_eq!(named.heard(), "S(TimeZone=GMT) Z");
}

/// What a client has not asked for is no affair of its login.
#[test]
fn nothing_is_put_back_behind_a_reset_of_something_else() {
    for text in
        ["RESET work_mem", "SET work_mem TO DEFAULT", "DISCARD PLANS", "SET TIME ZONE LOCAL"]
    {
        let (_stage, server, named) = named();
        run(&named, &server, text, ready());
        assert_eq!(server.heard(), QUESTION);
    }
}

/// The unit is over, whatever becomes of the server that should have put something back.
#[test]
fn a_server_that_is_lost_while_it_puts_back_does_not_take_the_end_of_the_unit_along() {
    let (_stage, server, named) = named();
    reset(&named, &server, ready());
    server.ends();
    assert_eq!(named.heard(), "Z E(FATAL 57P01)");
}

/// So is that of a client which leaves meanwhile.
#[test]
fn who_leaves_while_something_is_put_back_hears_the_end_of_the_unit() {
    let (_stage, server, named) = named();
    reset(&named, &server, ready());
    named.says([terminate()]);
    assert_eq!(named.heard(), "");
    server.says([put_back(), parameter_status("TimeZone", "GMT"), ready()]);
    assert_eq!(named.heard(), "S(TimeZone=GMT) Z");
    assert!(named.is_closed());
}

/// Something else for the transaction only is put back for the transaction only.
#[test]
fn a_default_for_the_transaction_is_put_back_for_the_transaction() {
    let (_stage, server, named) = named();
    run(&named, &server, "BEGIN", in_block());
    named.says([query("SET LOCAL application_name TO DEFAULT")]);
    server.heard();
    server.says([done(), in_block()]);
    let asked = String::from_utf8_lossy(&server.heard_bytes()).into_owned();
    assert!(asked.contains("set_config('application_name', 'it', true)"), "{asked}");
    server.says([put_back(), in_block()]);
    assert_eq!(named.heard(), "C Z(T)");
}

/// In session mode, too, where nothing is asked for.
#[test]
fn what_was_asked_for_at_login_is_put_back_in_a_session() {
    let stage = Stage::new(&Setup::of_mode("session"));
    let named = stage.newcomer(&[("application_name", "it")]);
    let server = stage.server();
    server.says([one_row("it")]);
    server.heard();
    named.heard();
    reset(&named, &server, ready());
    server.says([put_back(), ready()]);
    assert_eq!(server.heard(), "");
    run(&named, &server, "SELECT", ready());
}

/// Under other settings a text may mean something else, so it is another statement.
#[test]
fn a_statement_is_read_again_under_other_settings() {
    let (_stage, server, alice) = Stage::ready(&Setup::default());
    alice.says([parse_as("s", "SELECT"), sync()]);
    server.heard();
    server.says([parse_complete(), no_parameters(), no_data(), ready()]);
    set(&alice, &server);
    alice.heard();
    alice.says([bind_to("s"), execute(), sync()]);
    assert_eq!(server.heard(), "P(pgweir_2=SELECT) D(pgweir_2) B(pgweir_2) E S");
    server.says([parse_complete(), no_parameters(), no_data(), bind_complete(), done(), ready()]);
    assert_eq!(alice.heard(), "2 C Z");
}

/// Nor is one used that was read under what another's transaction had changed.
#[test]
fn a_statement_that_was_read_under_a_strangers_settings_is_made_again() {
    let stage = Stage::new(&Setup::of_size(2));
    let alice = stage.newcomer(&[]);
    let first = stage.server();
    assert!(alice.is_greeted());
    let bob = stage.client();
    alice.says([parse_as("s", "SELECT"), sync()]);
    first.says([parse_complete(), no_parameters(), no_data(), ready()]);
    bob.says([parse_as("s", "SELECT"), sync()]);
    first.says([parse_complete(), no_parameters(), no_data(), ready()]);
    first.heard();
    // It is made on another server, in the middle of a transaction with settings of its own.
    bob.says([query("BEGIN")]);
    first.says([done_with("BEGIN"), in_block()]);
    alice.says([query("BEGIN; SET LOCAL TimeZone = 'CET'")]);
    let second = stage.server();
    second.heard();
    second.says([done(), done(), in_block()]);
    let made = [parse_complete(), no_parameters(), no_data()].concat();
    let runs = |client: &Peer, hears: &str, answers: &[u8], status: Vec<u8>| {
        client.says([bind_to("s"), execute(), sync()]);
        assert_eq!(second.heard(), hears);
        second.says([answers.to_vec(), bind_complete(), done(), status]);
    };
    runs(&alice, "P(pgweir_1=SELECT) D(pgweir_1) B(pgweir_1) E S", &made, in_block());
    runs(&alice, "B(pgweir_1) E S", &[], in_block());
    run(&alice, &second, "COMMIT", ready());
    let carol = stage.client();
    carol.says([parse_as("c", "OTHER"), sync()]);
    second.heard();
    second.says([parse_complete(), no_parameters(), no_data(), ready()]);
    let again = "C(pgweir_1) P(pgweir_1=SELECT) D(pgweir_1) B(pgweir_1) E S";
    let closed = [close_complete(), made].concat();
    runs(&alice, again, &closed, ready());
    runs(&alice, "B(pgweir_1) E S", &[], ready());
}

/// One that cannot be put back any more is put back when the server is lent next: there it is an
/// error that the client hears.
#[test]
fn what_cannot_be_put_back_is_an_error_of_the_next_unit() {
    let (_stage, server, named) = named();
    reset(&named, &server, ready());
    server.says([parse_complete(), bind_complete(), error("22023"), ready()]);
    assert_eq!(named.heard(), "Z");
    assert_eq!(server.heard(), QUESTION);
    server.says([set_to(&[])]);
    assert_eq!(server.heard(), "Q(DISCARD ALL)");
    server.says([done(), ready()]);
    assert!(took(Mark::PutBackRefused));
}

/// A cancel that has come too late for the RESET would undo the transaction.
#[test]
fn nothing_is_put_back_in_a_transaction_while_a_cancel_may_come() {
    let (stage, server, named) = named();
    run(&named, &server, "BEGIN", in_block());
    named.says([query("RESET ALL")]);
    server.heard();
    stage.wait(Duration::from_millis(200));
    let cancel = stage.cancel(&named);
    let line = stage.cancel_line().expect("a connection for the cancel");
    line.heard_bytes();
    server.says([done(), in_block()]);
    named.says([query("SELECT")]);
    assert_eq!(server.heard(), "");
    line.ends();
    assert!(cancel.is_closed());
    assert!(server.heard().starts_with(PUTS_BACK));
    server.says([put_back(), in_block()]);
    assert_eq!(named.heard(), "C Z(T)");
    assert_eq!(server.heard(), "Q(SELECT)");
}

/// Who leaves meanwhile needs nothing put back, but hears the end of its unit.
#[test]
fn who_leaves_while_a_cancel_may_come_hears_the_end_of_the_unit() {
    for leaves_first in [true, false] {
        let (stage, server, named) = named();
        run(&named, &server, "BEGIN", in_block());
        named.says([query("RESET ALL")]);
        server.heard();
        stage.wait(Duration::from_millis(200));
        stage.cancel(&named);
        let line = stage.cancel_line().expect("a connection for the cancel");
        line.heard_bytes();
        if leaves_first {
            named.says([terminate()]);
        }
        server.says([done(), in_block()]);
        if !leaves_first {
            named.says([terminate()]);
        }
        line.ends();
        if !leaves_first {
            assert!(server.heard().starts_with(PUTS_BACK));
            server.says([put_back(), in_block()]);
        }
        assert_eq!(named.heard(), "C Z(T)", "{leaves_first}");
        assert!(named.is_closed());
    }
}

/// There may be nothing to put back any more: a reload has taken its name from what servers get.
#[test]
fn who_leaves_while_a_cancel_may_come_is_done_where_nothing_is_put_back() {
    let stage = Stage::new(&Setup::default());
    let named = stage.newcomer(&[("application_name", "it")]);
    let server = stage.server();
    server.heard();
    server.says([parameter_status("application_name", "it"), one_row("it")]);
    assert!(named.is_greeted());
    run(&named, &server, "BEGIN", in_block());
    named.says([query("RESET ALL")]);
    server.heard();
    stage.wait(Duration::from_millis(200));
    stage.cancel(&named);
    let line = stage.cancel_line().expect("a connection for the cancel");
    line.heard_bytes();
    server.says([done(), in_block()]);
    named.says([terminate()]);
    stage.reload(&Setup { pool: "application_name = 'pool'", ..Setup::default() });
    line.ends();
    assert!(took(Mark::LeaverBehindCancel));
    assert_eq!(named.heard(), "C Z(T)");
    assert!(named.is_closed());
}

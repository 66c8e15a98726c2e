//! Who listens for whom, and where one takes over from the other.

use std::time::Duration;

use pgweir_engine::{Mark, ServerActivity};

use crate::messages::{
    bind, bind_complete, bind_to, close_complete, close_statement, columns, copy_data, copy_done,
    copy_in, describe_statement, done, done_with, error, execute, fatal, flush, in_block,
    in_failed_block, left, notified, one_row, parameter_status, parse, parse_as, parse_complete,
    query, ready, row, set_to, sync, terminate,
};
use crate::peer::Peer;
use crate::pipelining::{BRAKED, FREED, shared};
use crate::stage::{Setup, Stage, took};

/// The answer to statements that we have a client's server carry out beside its own.
fn aside(statements: usize) -> Vec<u8> {
    let closed = [close_complete(), close_complete()].concat();
    [parse_complete(), bind_complete(), done(), closed].concat().repeat(statements)
}

/// The channels that a server is left listening on.
fn listens_on(channels: &[&str]) -> Vec<u8> {
    let rows = channels.iter().flat_map(|channel| row(format!("l{channel}").as_bytes()));
    [columns(), rows.collect(), done(), ready()].concat()
}

/// A client that listens on `a`, and the server that it has, which has said so.
pub(crate) fn listens(setup: &Setup) -> (Stage, Peer, Peer) {
    let (stage, server, alice) = Stage::ready(setup);
    alice.says([query("LISTEN a")]);
    assert_eq!(server.heard(), "Q(LISTEN a)");
    server.says([done(), ready()]);
    assert_eq!((server.heard().as_str(), alice.heard().as_str()), ("Q(left?)", "C Z"));
    server.says([listens_on(&["a"])]);
    (stage, server, alice)
}

/// A client that listens on `a`, the server that it has, and one that listens, which says so next.
struct Scene {
    stage: Stage,
    alice: Peer,
    server: Peer,
    listener: Peer,
    /// The channel of the marks.
    own: String,
}

impl Scene {
    fn new() -> Self {
        Self::with("connect_timeout = 5000")
    }

    fn with(general: &'static str) -> Self {
        Self::of(&Setup::with(general))
    }

    fn of(setup: &Setup) -> Self {
        let (stage, server, alice) = listens(setup);
        let listener = stage.server();
        let told = listener.heard();
        let own = told.split('"').nth(3).expect("a channel of its own").to_owned();
        assert_eq!(told, format!("Q(LISTEN \"a\"; LISTEN \"{own}\"; )"));
        Self { stage, alice, server, listener, own }
    }

    /// One in which the listener has taken over.
    fn listening() -> Self {
        Self::new().taken_over()
    }

    /// The same, and the client is in a transaction in which it notifies itself.
    fn notifying() -> Self {
        let scene = Self::listening();
        scene.alice.says([query("BEGIN")]);
        scene.server.says([done(), in_block()]);
        scene.alice.says([query("NOTIFY a, '2'")]);
        scene.server.says([aside(3), in_block()]);
        scene.server.says([done(), in_block()]);
        scene
    }

    /// One in which the client has something to be told, while its server puts a setting back.
    fn putting_back() -> Self {
        let scene = Self::listening();
        let alice = scene.stage.newcomer(&[("application_name", "it")]);
        scene.server.says([parameter_status("application_name", "it"), one_row("it")]);
        assert!(alice.is_greeted());
        alice.says([query("LISTEN a")]);
        scene.server.says([done(), ready(), listens_on(&["a"])]);
        scene.server.heard();
        scene.server.says([aside(2), notified(&scene.own, "2"), ready()]);
        scene.listener.says([notified(&scene.own, "2")]);
        scene.assert_unlistens();
        scene.server.says([aside(1), ready()]);
        let scene = Self { alice, ..scene };
        scene.begins();
        scene.shows("NOTIFY a, '1'", "NOTIFY", "3");
        scene.alice.says([query("COMMIT; RESET ALL")]);
        scene.server.heard();
        let marked = [notified(&scene.own, "3"), notified("a", "1")].concat();
        scene.server.says([done_with("COMMIT"), done_with("RESET"), marked.clone(), ready()]);
        scene.alice.heard();
        scene.listener.says([marked]);
        scene
    }

    fn taken_over(self) -> Self {
        let scene = self;
        scene.listener.says([done(), done(), ready()]);
        scene.assert_marks("1");
        scene.server.says([aside(2), notified(&scene.own, "1"), ready()]);
        scene.listener.says([notified(&scene.own, "1")]);
        scene.assert_unlistens();
        scene.server.says([aside(1), ready()]);
        assert_eq!(scene.states(), [ServerActivity::Idle, ServerActivity::Active]);
        scene
    }

    /// The client's server was sent the next mark, and this before.
    fn assert_shows(&self, before: &[&str], number: &str) {
        let mut texts: Vec<_> = before.iter().map(|text| (*text).to_owned()).collect();
        texts.push(format!("LISTEN \"{}\"", self.own));
        texts.push(format!("NOTIFY \"{}\", '{number}'", self.own));
        let word =
            |text: String| format!("P(pgweir_aside={text}) B(pgweir_aside) E C C(pgweir_aside)");
        let words: Vec<_> = texts.into_iter().map(word).collect();
        assert_eq!(self.server.heard(), format!("{} S", words.join(" ")));
    }

    fn assert_marks(&self, number: &str) {
        self.assert_shows(&[], number);
    }

    fn assert_unlistens(&self) {
        let words = "P(pgweir_aside=UNLISTEN *) B(pgweir_aside) E C C(pgweir_aside) S";
        assert_eq!(self.server.heard(), words);
    }

    fn begins(&self) {
        self.runs("BEGIN", "BEGIN");
    }

    /// The client says this within a transaction, and is answered with a tag.
    fn runs(&self, text: &str, tag: &str) {
        self.alice.says([query(text)]);
        assert_eq!(self.server.heard(), format!("Q({text})"));
        self.server.says([done_with(tag), in_block()]);
    }

    /// The same, and before that its server was told to listen on `a`.
    fn shows(&self, text: &str, tag: &str, number: &str) {
        self.alice.says([query(text)]);
        self.assert_shows(&["LISTEN \"a\""], number);
        self.server.says([aside(3), in_block()]);
        assert_eq!(self.server.heard(), format!("Q({text})"));
        self.server.says([done_with(tag), in_block()]);
    }

    /// Something is notified on `a`, and the client commits, whose mark is the second.
    fn commits_behind_a_notification(&self) {
        self.listener.says([notified("a", "1")]);
        self.alice.heard();
        self.alice.says([query("COMMIT")]);
        self.server.says([done_with("COMMIT"), notified(&self.own, "2"), ready()]);
        self.listener.says([notified(&self.own, "2")]);
    }

    /// Its server says that it listens on nothing, and the client is told of nothing.
    fn assert_listens_no_more(&self) {
        assert!(self.alice.heard().ends_with(" C Z"));
        assert_eq!(self.server.heard(), "Q(left?)");
        self.server.says([listens_on(&[])]);
        self.listener.says([notified("a", "1")]);
        self.assert_told(&[]);
    }

    /// The client was told of these, and of nothing else.
    fn assert_told(&self, payloads: &[&str]) {
        let told: Vec<_> = payloads.iter().flat_map(|text| notified("a", text)).collect();
        assert_eq!(self.alice.heard_bytes(), told, "{payloads:?}");
    }

    fn states(&self) -> Vec<ServerActivity> {
        self.stage.servers()
    }
}

#[test]
fn the_listener_takes_over_at_the_mark() {
    for listener_first in [false, true] {
        let scene = Scene::new();
        scene.listener.says([done(), done(), ready()]);
        scene.assert_marks("1");
        let say = |of_server: bool| match of_server {
            true => {
                let before = [notified("a", "1"), aside(2), notified("a", "2")].concat();
                let mark = notified(&scene.own, "1");
                scene.server.says([before, mark, notified("a", "3"), ready()]);
            }
            false => {
                let before = [notified("a", "1"), notified("a", "2")].concat();
                scene.listener.says([before, notified(&scene.own, "1"), notified("a", "3")]);
            }
        };
        say(!listener_first);
        say(listener_first);
        scene.assert_told(&["1", "2", "3"]);
        scene.assert_unlistens();
        scene.server.says([notified("a", "4"), aside(1), ready()]);
        scene.assert_told(&[]);
        scene.listener.says([notified("a", "4"), notified("b", "5")]);
        scene.assert_told(&["4"]);
        assert_eq!(scene.states(), [ServerActivity::Idle, ServerActivity::Active]);
    }
}

/// What it notifies itself of comes before its reply is over.
#[test]
fn a_client_that_notifies_is_told_by_its_server() {
    let scene = Scene::listening();
    scene.alice.says([query("NOTIFY a, '2'")]);
    scene.assert_shows(&["LISTEN \"a\""], "2");
    scene.server.says([aside(3), notified(&scene.own, "2"), ready(), notified("a", "1")]);
    assert_eq!(scene.server.heard(), "", "until the listener has come there");
    scene.listener.says([notified("a", "0"), notified(&scene.own, "2"), notified("a", "1")]);
    scene.assert_told(&["0", "1"]);
    assert_eq!(scene.server.heard(), "Q(NOTIFY a, '2')");
    scene.listener.says([notified("a", "2")]);
    scene.server.says([done(), notified("a", "2"), ready()]);
    assert_eq!(scene.alice.heard(), "C A Z");
    assert_eq!(scene.server.heard(), "Q(left?)");
    scene.server.says([listens_on(&["a", &scene.own])]);
    scene.assert_marks("3");
}

/// The server that listens is no sign of somebody else: who is alone has one alone.
#[test]
fn who_is_alone_beside_the_listener_shares_nothing() {
    let scene = Scene::of(&shared(1)).taken_over();
    let bob = scene.stage.client();
    let served = || {
        bob.says([query("SELECT 0")]);
        let mut heard = scene.server.heard();
        if heard == BRAKED || heard == FREED {
            scene.server.says([one_row("")]);
            heard += &scene.server.heard();
        }
        scene.server.says([one_row("")]);
        assert_eq!(bob.heard(), "T D() C Z");
        heard
    };
    assert_eq!(served(), format!("{BRAKED}Q(SELECT 0)"));
    scene.stage.reload(&Setup { general: "pipelining = 'auto'", ..Setup::default() });
    (0..16).for_each(|_| assert_eq!(served(), "Q(SELECT 0)"));
    assert_eq!(served(), format!("{FREED}Q(SELECT 0)"));
}

/// Wherever in its batch it stands: once that has begun nobody takes over any more.
#[test]
fn what_notifies_may_stand_behind_others_of_its_batch() {
    for (first, heard) in [
        (parse_as("", "SELECT 1"), "P(SELECT 1)"),
        (describe_statement(""), "D"),
        (close_statement("n"), "C(n)"),
        (execute(), "E"),
    ] {
        let scene = Scene::listening();
        scene.alice.says([first, parse_as("", "NOTIFY a, '2'"), sync()]);
        scene.assert_shows(&["LISTEN \"a\""], "2");
        scene.server.says([aside(3), notified(&scene.own, "2"), ready()]);
        scene.listener.says([notified(&scene.own, "2")]);
        assert_eq!(scene.server.heard(), format!("{heard} P(NOTIFY a, '2') S"));
    }
}

/// Its server listens for it already, or is about to: what was cancelled is not run, and the cancel
/// is not kept for another.
#[test]
fn a_unit_that_waits_for_the_listener_is_cancelled() {
    for listener_first in [false, true] {
        let scene = Scene::listening();
        scene.alice.says([query("NOTIFY a, '2'")]);
        scene.assert_shows(&["LISTEN \"a\""], "2");
        let server_says = || scene.server.says([aside(3), notified(&scene.own, "2"), ready()]);
        if !listener_first {
            server_says();
        }
        let requester = scene.stage.cancel(&scene.alice);
        assert!(requester.is_closed());
        assert_eq!(scene.alice.heard(), "E(57014) Z");
        scene.listener.says([notified(&scene.own, "2")]);
        if listener_first {
            server_says();
        }
        assert_eq!(scene.server.heard(), "Q(left?)");
        scene.server.says([listens_on(&["a", &scene.own])]);
        scene.assert_marks("3");
        scene.server.says([aside(2), notified(&scene.own, "3"), ready()]);
        scene.listener.says([notified(&scene.own, "3")]);
        scene.assert_unlistens();
        scene.server.says([aside(1), ready()]);
        assert_eq!(scene.states(), [ServerActivity::Idle, ServerActivity::Active]);
        scene.alice.says([query("SELECT 1")]);
        assert_eq!(scene.server.heard(), "Q(SELECT 1)");
    }
}

/// Its mark goes out with its transaction, and the listener may be late.
#[test]
fn the_end_of_a_transaction_waits_for_the_listener() {
    let scene = Scene::listening();
    scene.alice.says([query("BEGIN")]);
    scene.server.says([done(), in_block()]);
    scene.alice.says([query("NOTIFY a, '2'")]);
    assert_eq!(scene.alice.heard(), "C Z(T)");
    scene.server.heard();
    scene.server.says([aside(3), in_block()]);
    assert_eq!(scene.server.heard(), "Q(NOTIFY a, '2')");
    scene.server.says([done(), in_block()]);
    scene.alice.says([query("COMMIT")]);
    scene.server.says([done(), notified(&scene.own, "2"), notified("a", "2"), ready()]);
    assert_eq!(scene.alice.heard(), "C Z(T) C");
    scene.listener.says([notified("a", "1"), notified(&scene.own, "2"), notified("a", "2")]);
    let told = [notified("a", "1"), notified("a", "2"), ready()].concat();
    assert_eq!(scene.alice.heard_bytes(), told);
    assert!(took(Mark::PendingBehindReady));
}

/// What others have notified before comes first, though the client has sent more behind its COMMIT.
#[test]
fn nothing_goes_behind_an_end_that_may_wait_for_the_listener() {
    let scene = Scene::listening();
    scene.begins();
    scene.shows("NOTIFY a, '2'", "NOTIFY", "2");
    assert_eq!(scene.alice.heard(), "C Z(T) C Z(T)");
    scene.alice.says([query("COMMIT"), sync(), query("SELECT 1")]);
    assert_eq!(scene.server.heard(), "Q(COMMIT)", "not even a Sync alone");
    assert!(took(Mark::HeldUntilAgreed));
    scene.server.says([done(), notified(&scene.own, "2"), notified("a", "2"), ready()]);
    assert_eq!((scene.server.heard().as_str(), scene.alice.heard().as_str()), ("", "C"));
    scene.listener.says([notified("a", "1"), notified(&scene.own, "2"), notified("a", "2")]);
    let told = [notified("a", "1"), notified("a", "2"), ready()].concat();
    assert_eq!(scene.alice.heard_bytes(), told);
    assert_eq!(scene.server.heard(), "Q(left?)");
    scene.server.says([listens_on(&["a"])]);
    scene.assert_marks("3");
    scene.server.says([aside(2), notified(&scene.own, "3"), ready()]);
    scene.assert_unlistens();
    scene.listener.says([notified(&scene.own, "3")]);
    scene.server.says([aside(1), ready()]);
    assert_eq!(scene.server.heard(), "S Q(SELECT 1)");
}

/// A cancel comes for the last one, and not for what has been sent behind it: of which its client
/// would hear before it is told of the end.
#[test]
fn a_cancel_is_for_nothing_while_the_end_waits_for_the_listener() {
    let scene = Scene::listening();
    scene.begins();
    scene.shows("NOTIFY a, '2'", "NOTIFY", "2");
    scene.alice.says([query("COMMIT")]);
    scene.server.says([done(), notified(&scene.own, "2"), notified("a", "2"), ready()]);
    scene.alice.heard();
    scene.alice.says([query("next")]);
    assert!(scene.stage.cancel(&scene.alice).is_closed());
    assert_eq!((scene.alice.heard().as_str(), scene.stage.cancels()), ("", 0));
    scene.listener.says([notified(&scene.own, "2"), notified("a", "2")]);
    assert_eq!(scene.alice.heard(), "A Z");
}

/// It may send its Terminate while the end of its last transaction waits for the listener. What its
/// server has said behind that it was told, though the listener had not said what came before; and
/// later nothing at all.
#[test]
fn who_leaves_is_told_of_the_end_of_its_transaction() {
    let scene = Scene::notifying();
    scene.alice.says([query("COMMIT")]);
    scene.server.says([done(), notified(&scene.own, "2"), notified("a", "2"), ready()]);
    assert_eq!(scene.alice.heard(), "C Z(T) C Z(T) C");
    scene.alice.says([terminate()]);
    assert_eq!(scene.alice.heard(), "");
    assert!(took(Mark::LeavesBeforeReady));
    scene.listener.says([notified("a", "1"), notified(&scene.own, "2"), notified("a", "2")]);
    assert_eq!(scene.alice.heard(), "A A Z");
    assert!(!scene.alice.is_open());
}

/// Nor does the end of its transaction wait for anything, if it has sent that before.
#[test]
fn who_leaves_behind_a_transaction_waits_for_no_listener() {
    let scene = Scene::notifying();
    scene.alice.says([query("COMMIT"), terminate()]);
    scene.server.says([done(), notified(&scene.own, "2"), notified("a", "2"), ready()]);
    assert_eq!(scene.alice.heard(), "C Z(T) C Z(T) C A Z");
    assert!(took(Mark::ReadyNotDelayed));
    assert!(!scene.alice.is_open());
}

#[test]
fn what_comes_within_a_transaction_is_told_behind_it() {
    let scene = Scene::listening();
    scene.alice.says([query("BEGIN")]);
    scene.server.says([done(), in_block()]);
    scene.listener.says([notified("a", "1"), notified("a", "2")]);
    assert_eq!(scene.alice.heard(), "C Z(T)");
    scene.alice.says([query("COMMIT")]);
    scene.server.says([done(), ready()]);
    assert_eq!(scene.alice.heard(), "C A A Z");
}

/// A statement that was to show what is listened on is rolled back with its transaction.
#[test]
fn what_is_rolled_back_has_shown_nothing() {
    let scene = Scene::listening();
    scene.alice.says([query("BEGIN")]);
    scene.server.says([done(), in_block()]);
    scene.alice.says([query("LISTEN b")]);
    scene.server.says([aside(3), in_block()]);
    scene.server.says([done(), in_block()]);
    scene.alice.says([query("ROLLBACK")]);
    scene.server.heard();
    scene.server.says([done(), ready()]);
    assert_eq!(scene.server.heard(), "Q(left?)");
    scene.server.says([listens_on(&[])]);
    assert_eq!(scene.states(), [ServerActivity::Idle, ServerActivity::Active]);
    scene.alice.heard();
    scene.listener.says([notified("a", "1")]);
    scene.assert_told(&["1"]);
}

#[test]
fn who_may_have_missed_something_is_told() {
    let scene = Scene::listening();
    scene.listener.breaks();
    let told = format!("Q(LISTEN \"a\"; LISTEN \"{}\"; )", scene.own);
    assert_eq!(scene.server.heard(), told, "it is free");
    assert_eq!(scene.alice.heard(), "");
    scene.server.says([done(), done(), ready()]);
    let heard = String::from_utf8_lossy(&scene.alice.heard_bytes()).into_owned();
    assert!(heard.contains("may have been missed"), "{heard}");
    scene.server.says([notified("a", "1")]);
    scene.assert_told(&["1"]);
}

/// Whoever is busy hears it when that is over, and once.
#[test]
fn who_may_have_missed_something_twice_is_told_once() {
    let scene = Scene::listening();
    scene.begins();
    scene.listener.breaks();
    for _ in 0..2 {
        let next = scene.stage.server();
        assert!(next.heard().starts_with("Q(LISTEN "));
        next.says([done(), done(), ready()]);
        next.breaks();
    }
    assert!(took(Mark::ToldOnce));
    scene.alice.heard();
    scene.alice.says([query("COMMIT")]);
    scene.server.says([done(), ready()]);
    assert_eq!(scene.alice.heard(), "C N Z");
}

/// The next one has not begun to listen: what comes meanwhile is not known to anybody.
#[test]
fn who_goes_to_its_server_while_nobody_listens_is_told_as_well() {
    let scene = Scene::listening();
    scene.listener.breaks();
    let listener = scene.server;
    assert!(listener.heard().starts_with("Q(LISTEN "), "it is free");
    scene.alice.says([query("NOTIFY a, '2'")]);
    let server = scene.stage.server();
    assert!(server.heard().starts_with("P(pgweir_aside=LISTEN \"a\") "));
    server.says([aside(3), notified(&scene.own, "2"), ready()]);
    assert_eq!(server.heard(), "Q(NOTIFY a, '2')");
    listener.says([done(), done(), ready(), notified("a", "2")]);
    server.says([done(), notified("a", "2"), ready()]);
    assert_eq!(scene.alice.heard(), "N C A Z");
}

/// The next one may begin to listen behind what the client's server has said at the mark.
#[test]
fn a_listener_that_is_lost_before_it_takes_over_takes_over_nothing() {
    for marked in [false, true] {
        let scene = Scene::new();
        scene.listener.says([done(), done(), ready()]);
        scene.assert_marks("1");
        let listener_is_first = [notified("a", "1"), notified(&scene.own, "1"), notified("a", "2")];
        scene.listener.says(listener_is_first.iter().filter(|_| marked));
        scene.listener.breaks();
        let before = [notified("a", "1"), aside(2), notified(&scene.own, "1")].concat();
        scene.server.says([before, notified("a", "2"), ready()]);
        scene.assert_told(&["1", "2"]);
        let listener = scene.stage.server();
        assert!(listener.heard().starts_with("Q(LISTEN "));
        listener.says([done(), done(), ready()]);
        scene.assert_marks("2");
        scene.server.says([aside(2), notified(&scene.own, "2"), ready()]);
        listener.says([notified(&scene.own, "2"), notified("a", "3")]);
        scene.assert_told(&["3"]);
    }
}

/// It has carried out what asked for it, and another was asked since.
#[test]
fn the_mark_of_a_server_that_is_lost_is_none() {
    let scene = Scene::listening();
    scene.alice.says([query("NOTIFY a, '2'")]);
    scene.assert_shows(&["LISTEN \"a\""], "2");
    scene.server.breaks();
    let server = scene.stage.server();
    assert!(server.heard().contains(&format!("NOTIFY \"{}\", '3'", scene.own)));
    server.says([aside(3), notified(&scene.own, "3"), ready(), notified("a", "1")]);
    scene.listener.says([notified(&scene.own, "2"), notified("a", "0")]);
    scene.assert_told(&["0"]);
    assert_eq!(server.heard(), "");
    scene.listener.says([notified(&scene.own, "3"), notified("a", "1")]);
    scene.assert_told(&["1"]);
    assert_eq!(server.heard(), "Q(NOTIFY a, '2')");
}

/// What it has set is asked for once nothing keeps its server.
#[test]
fn the_listener_takes_over_from_a_client_that_has_set_something() {
    let scene = Scene::new();
    scene.alice.says([query("RESET x")]);
    assert_eq!(scene.server.heard(), "Q(RESET x)");
    scene.server.says([done(), ready()]);
    scene.listener.says([done(), done(), ready()]);
    scene.assert_marks("1");
    scene.server.says([aside(2), notified(&scene.own, "1"), ready()]);
    scene.listener.says([notified(&scene.own, "1")]);
    scene.assert_unlistens();
    scene.server.says([aside(1), ready()]);
    assert_eq!(scene.server.heard(), "Q(set to?)");
    scene.server.says([set_to(&[])]);
    assert_eq!(scene.states(), [ServerActivity::Idle, ServerActivity::Active]);
}

/// It would tell others of what they have not asked for. Nor does its client hear anything twice.
#[test]
fn a_server_that_listens_on_is_nobody_elses() {
    let scene = Scene::new();
    scene.listener.says([done(), done(), ready()]);
    scene.assert_marks("1");
    scene.server.says([aside(2), notified(&scene.own, "1"), ready()]);
    scene.listener.says([notified(&scene.own, "1")]);
    scene.assert_unlistens();
    scene.alice.says([query("SELECT 1")]);
    scene.server.says([error("57014"), ready(), notified("a", "1")]);
    assert!(took(Mark::StillListens));
    assert_eq!(scene.server.heard(), "X");
    scene.listener.says([notified("a", "1")]);
    scene.assert_told(&["1"]);
    scene.server.ends();
    assert_eq!(scene.stage.server().heard(), "Q(SELECT 1)");
}

/// A cancel has come late: what the client notifies itself of it is told by the listener.
#[test]
fn a_server_that_cannot_be_told_to_listen_carries_the_unit_out() {
    let scene = Scene::listening();
    scene.alice.says([query("NOTIFY a, '1'")]);
    scene.assert_shows(&["LISTEN \"a\""], "2");
    scene.server.says([error("57014"), ready()]);
    assert!(took(Mark::ToServerInVain));
    assert_eq!(scene.server.heard(), "Q(NOTIFY a, '1')");
    scene.server.says([done(), ready()]);
    assert_eq!(scene.alice.heard(), "C Z");
    scene.listener.says([notified("a", "1")]);
    scene.assert_told(&["1"]);
    assert_eq!(scene.server.heard(), "Q(left?)");
    scene.server.says([listens_on(&[])]);
    assert_eq!(scene.states(), [ServerActivity::Idle, ServerActivity::Active]);
    scene.alice.says([query("NOTIFY a, '2'")]);
    scene.assert_shows(&["LISTEN \"a\""], "3");
}

/// Within a transaction that fails with it, and nobody was told: its COMMIT was answered with
/// ROLLBACK.
#[test]
fn a_transaction_in_which_a_server_cannot_be_told_to_listen_is_lost() {
    let scene = Scene::listening();
    scene.begins();
    scene.alice.says([query("COMMIT; NOTIFY a, '1'")]);
    scene.assert_shows(&["LISTEN \"a\""], "2");
    scene.alice.heard();
    scene.server.says([error("57014"), in_failed_block()]);
    assert!(took(Mark::LostUnshown));
    assert!(!scene.server.is_open());
    assert_eq!(scene.alice.heard(), "E(40001) Z(E)");
    scene.alice.says([query("ROLLBACK")]);
    let next = scene.stage.server();
    assert!(next.heard().starts_with("Q(BEGIN; SELECT CAST("));
    next.says([done(), error("22P02"), in_failed_block()]);
    assert_eq!(next.heard(), "Q(ROLLBACK)");
    next.says([done(), ready()]);
    assert_eq!(scene.alice.heard(), "C Z");
}

/// Its client does not wait for it, and nobody else may.
#[test]
fn a_server_that_is_silent_to_what_it_is_asked_goes_behind_its_client() {
    let scene = Scene::new();
    scene.listener.says([done(), done(), ready()]);
    scene.assert_marks("1");
    scene.alice.ends();
    scene.stage.wait(Duration::from_secs(4));
    assert!(scene.server.is_open());
    scene.stage.wait(Duration::from_secs(2));
    assert!(!scene.server.is_open());
}

/// The statement of our own is within the transaction.
#[test]
fn a_transaction_takes_no_longer_because_of_what_its_server_is_asked() {
    let scene = Scene::with("connect_timeout = 9000\ntransaction_timeout = 3000");
    let scene = scene.taken_over();
    scene.alice.says([query("BEGIN")]);
    scene.server.says([done(), in_block()]);
    scene.alice.says([query("LISTEN b")]);
    assert_eq!(scene.alice.heard(), "C Z(T)");
    scene.server.heard();
    scene.stage.wait(Duration::from_secs(4));
    assert_eq!(scene.alice.heard(), "E(FATAL 25P04)");
    assert!(took(Mark::TransactionTooLongAside));
    assert!(!scene.alice.is_open());
    scene.server.says([aside(3), in_block()]);
    assert_eq!(scene.server.heard(), "Q(ROLLBACK)");
}

/// Each has a server and waits for the listener, for which there is no room.
#[test]
fn where_there_is_no_room_a_listening_server_is_the_listener() {
    let setup = Setup { size: 4, general: "max_server_connections = 2", ..Setup::default() };
    let (stage, server, alice) = Stage::ready(&setup);
    alice.says([query("LISTEN a")]);
    let bob = stage.client();
    bob.says([query("LISTEN b")]);
    let other = stage.server();
    assert_eq!(other.heard(), "Q(LISTEN b)");
    server.heard();
    for (server, channel) in [(&server, "a"), (&other, "b")] {
        server.says([done(), ready()]);
        assert_eq!(server.heard(), "Q(left?)");
        server.says([listens_on(&[channel])]);
    }
    alice.heard();
    bob.heard();
    let told = server.heard();
    let own = told.split('"').nth(3).expect("a channel of its own");
    assert_eq!(told, format!("Q(LISTEN \"a\"; LISTEN \"{own}\"; )"));
    server.says([notified("a", "1"), done(), done(), ready()]);
    assert_eq!(server.heard(), "Q(LISTEN \"b\"; )");
    server.says([done(), notified("b", "1"), ready()]);
    other.says([notified("b", "1")]);
    assert_eq!((alice.heard().as_str(), bob.heard().as_str()), ("A", "A"));
    assert!(other.heard().contains("NOTIFY"), "bob's server is to go back");
    other.says([aside(2), notified(own, "1"), ready()]);
    server.says([notified(own, "1")]);
    assert!(other.heard().contains("UNLISTEN"));
    other.says([aside(1), ready()]);
    alice.says([query("SELECT 1")]);
    assert_eq!(other.heard(), "Q(SELECT 1)");
}

/// It comes on top of the pool's size, and who waits for that is not served by it.
#[test]
fn the_listener_is_no_server_beyond_the_pools_size() {
    let setup = Setup::with("max_db_connections = 2");
    let scene = Scene::of(&setup).taken_over();
    let [bob, carol] = [scene.stage.client(), scene.stage.client()];
    bob.says([query("CREATE TEMP TABLE t ()")]);
    scene.server.says([done(), ready(), left("t")]);
    carol.says([query("SELECT 1")]);
    scene.listener.breaks();
    let next = scene.stage.server();
    assert!(next.heard().starts_with("Q(LISTEN \"a\";"));
    assert_eq!(carol.heard(), "");
}

/// It exists there only, and its client goes on with it.
#[test]
fn a_server_that_stays_for_a_long_statement_is_no_listener() {
    let setup = Setup { size: 4, general: "max_server_connections = 2", ..Setup::default() };
    let (stage, server, alice) = Stage::ready(&setup);
    alice.says([query("BEGIN")]);
    server.says([done(), in_block()]);
    let bob = stage.client();
    bob.says([query("CREATE TEMP TABLE t ()")]);
    let other = stage.server();
    other.says([done(), ready(), left("t")]);
    alice.says([query("LISTEN a"), query("COMMIT")]);
    server.says([done(), in_block(), done(), ready(), listens_on(&["a"])]);
    alice.says([parse(&format!("SELECT '{}'", "x".repeat(20_000))), sync()]);
    server.says([parse_complete(), ready()]);
    server.heard_bytes();
    bob.says([query("LISTEN b; DROP TABLE t")]);
    other.says([done(), done(), ready(), listens_on(&["b"])]);
    assert_eq!(server.heard(), "");
    alice.says([bind(), execute(), sync()]);
    assert_eq!(server.heard(), "B E S");
    server.says([bind_complete(), done(), ready()]);
    alice.says([parse("short"), sync()]);
    server.says([parse_complete(), ready()]);
    stage.wait(Duration::from_secs(1));
    let heard = server.heard();
    assert!(heard.starts_with("P(short) S Q(LISTEN \"a\"; "), "{heard}");
}

/// A standby: nothing can be listened to there.
#[test]
fn a_client_keeps_its_server_where_the_listener_is_refused() {
    let scene = Scene::new();
    scene.listener.says([error("25006"), ready()]);
    assert_eq!(scene.listener.heard(), "X");
    scene.listener.ends();
    scene.stage.wait(Duration::from_secs(1));
    assert_eq!(scene.states(), [ServerActivity::Active]);
    scene.server.says([notified("a", "1")]);
    scene.assert_told(&["1"]);
    assert!(took(Mark::ListenerRefused));
}

/// The one that listened is lost, and the next is not promoted yet: who has no server of its own
/// that listens hears nothing meanwhile.
#[test]
fn who_hears_nothing_waits_for_one_that_does_not_refuse() {
    let scene = Scene::listening();
    let told = format!("Q(LISTEN \"a\"; LISTEN \"{}\"; )", scene.own);
    scene.listener.breaks();
    assert_eq!(scene.server.heard(), told, "it is free");
    scene.server.says([error("25006"), ready()]);
    assert_eq!(scene.server.heard(), "X");
    scene.server.ends();
    for answer in [error("25006"), [done(), done()].concat()] {
        scene.stage.wait(Duration::from_millis(900));
        assert_eq!(scene.stage.attempts(), 0);
        scene.stage.wait(Duration::from_millis(300));
        assert!(took(Mark::ListenerTriedAgain));
        let next = scene.stage.server();
        assert_eq!((next.heard(), scene.alice.heard()), (told.clone(), String::new()));
        next.says([answer, ready()]);
    }
    assert_eq!(scene.alice.heard(), "N");
}

/// It comes on top of the pool's servers, also where the configuration was read meanwhile.
#[test]
fn who_does_not_refuse_any_more_comes_on_top_behind_a_reload() {
    let setup = Setup::of_size(1);
    let scene = Scene::of(&setup).taken_over();
    scene.listener.breaks();
    scene.server.says([error("25006"), ready()]);
    scene.server.ends();
    scene.stage.reload(&setup);
    let bob = scene.stage.client();
    bob.says([query("BEGIN")]);
    let lent = scene.stage.server();
    lent.says([done(), in_block()]);
    scene.stage.wait(Duration::from_secs(2));
    assert!(took(Mark::ListenerTriedAgain));
    assert!(scene.stage.server().heard().starts_with("Q(LISTEN \"a\"; "));
}

/// Its channel would be another one there, or none, and all others would hear nothing for that.
/// When it has the encoding of the others its server is asked for the name in that.
#[test]
fn the_listener_hears_of_no_name_in_another_encoding() {
    let encoding = |name| parameter_status("client_encoding", name);
    let stage = Stage::new(&Setup::default());
    let bob = stage.newcomer(&[("client_encoding", "LATIN1")]);
    let server = stage.server_set_to(&[("client_encoding", "UTF8")]);
    server.says([encoding("LATIN1"), one_row("LATIN1")]);
    bob.says([query("LISTEN a; LISTEN é")]);
    server.says([done(), done(), ready(), listens_on(&["a", "é"])]);
    let listener = stage.server_set_to(&[("client_encoding", "UTF8")]);
    let told = listener.heard();
    assert!(told.starts_with("Q(LISTEN \"a\"; LISTEN \"pgweir_"), "{told}");
    assert!(!told.contains('é'), "{told}");
    listener.says([done(), done(), ready()]);
    server.heard();
    bob.says([query("SET client_encoding = 'UTF8'")]);
    server.says([done(), encoding("UTF8"), ready()]);
    assert!(server.heard().ends_with(" Q(left?)"));
    server.says([listens_on(&["a", "é"])]);
    assert_eq!(listener.heard(), "Q(LISTEN \"é\"; )");
    listener.says([done(), ready()]);
    assert!(server.heard().contains("NOTIFY"), "bob's server is to go back");
}

/// What takes the brake off is under it: that it took too long refuses nothing.
#[test]
fn a_listener_that_brakes_is_tried_again() {
    let scene = Scene::of(&shared(1)).taken_over();
    let bob = scene.stage.client();
    bob.says([query("SELECT 0")]);
    assert_eq!(scene.server.heard(), BRAKED);
    scene.server.says([one_row("")]);
    assert_eq!(scene.server.heard(), "Q(SELECT 0)");
    scene.server.says([one_row("0")]);
    scene.listener.breaks();
    for _ in 0..2 {
        assert_eq!(scene.server.heard(), FREED);
        scene.server.says([error("57014"), ready()]);
        assert!(took(Mark::SettingsBraked));
    }
    assert_eq!(scene.server.heard(), FREED);
    scene.server.says([one_row("")]);
    assert_eq!(scene.server.heard(), format!("Q(LISTEN \"a\"; LISTEN \"{}\"; )", scene.own));
    scene.server.says([done(), done(), ready()]);
    assert_eq!(scene.alice.heard(), "N");
}

#[test]
fn nobody_listens_for_nobody() {
    let scene = Scene::listening();
    scene.alice.says([query("UNLISTEN *")]);
    scene.assert_shows(&["LISTEN \"a\""], "2");
    scene.server.says([aside(3), notified(&scene.own, "2"), ready()]);
    scene.listener.says([notified(&scene.own, "2")]);
    assert_eq!(scene.server.heard(), "Q(UNLISTEN *)");
    scene.server.says([done(), ready()]);
    assert_eq!(scene.server.heard(), "Q(left?)");
    scene.server.says([listens_on(&[])]);
    scene.stage.wait(Duration::from_secs(1));
    assert_eq!(scene.listener.heard(), "X");
    assert_eq!(scene.states(), [ServerActivity::Idle]);
}

/// Though somebody has begun to listen there while the listener was about to.
#[test]
fn the_listener_leaves_a_channel_of_nobody() {
    let scene = Scene::of(&Setup::of_size(2));
    let bob = scene.stage.client();
    bob.says([query("LISTEN a")]);
    let server = scene.stage.server();
    server.says([done(), ready(), listens_on(&["a"])]);
    bob.says([query("LISTEN b; UNLISTEN a")]);
    server.says([done(), done(), ready(), listens_on(&["b"])]);
    scene.alice.says([query("UNLISTEN a")]);
    scene.server.says([done(), ready(), listens_on(&[])]);
    scene.listener.says([done(), done(), ready()]);
    assert_eq!(scene.listener.heard(), "Q(LISTEN \"b\"; UNLISTEN \"a\"; )");
}

/// The channel of the marks is left, of which the client knows nothing.
#[test]
fn a_server_does_not_listen_on_for_a_client_that_has_ended_that() {
    let scene = Scene::listening();
    scene.alice.says([query("UNLISTEN a")]);
    scene.assert_shows(&["LISTEN \"a\""], "2");
    scene.server.says([aside(3), notified(&scene.own, "2"), ready()]);
    scene.listener.says([notified(&scene.own, "2")]);
    assert_eq!(scene.server.heard(), "Q(UNLISTEN a)");
    scene.server.says([done(), ready()]);
    assert_eq!(scene.server.heard(), "Q(left?)");
    scene.server.says([listens_on(&[&scene.own])]);
    scene.assert_unlistens();
    scene.server.says([aside(1), ready()]);
    assert_eq!(scene.states()[0], ServerActivity::Idle);
}

/// It is not on the channel of the marks, either, when the mark goes out.
#[test]
fn who_has_ended_to_listen_in_its_transaction_listens_no_more() {
    let ends = [("COMMIT", &[][..]), ("COMMIT", &["b"][..]), ("ROLLBACK", &[])];
    for (end, channels) in ends {
        let scene = Scene::listening();
        scene.alice.says([query("BEGIN")]);
        scene.server.says([done(), in_block()]);
        scene.alice.says([query("NOTIFY a, '1'")]);
        scene.server.says([aside(3), in_block()]);
        scene.server.says([done(), in_block()]);
        scene.alice.says([query("UNLISTEN *")]);
        scene.server.says([done_with("UNLISTEN"), in_block()]);
        scene.alice.says([query(end)]);
        scene.server.heard();
        scene.alice.heard();
        scene.server.says([done_with(end), ready()]);
        assert_eq!(scene.alice.heard(), "C Z", "{end}");
        assert_eq!(scene.server.heard(), "Q(left?)");
        scene.server.says([listens_on(channels)]);
        scene.listener.says([notified("a", "1"), notified("a", "2")]);
        let listens = end == "ROLLBACK";
        assert_eq!(scene.alice.heard(), if listens { "A A" } else { "" }, "{end}");
        scene.server.says([notified("b", "3")]);
        assert_eq!(scene.alice.heard(), if channels.is_empty() { "" } else { "A" }, "{end}");
    }
}

/// What was told to listen or to notify PREPARE TRANSACTION refuses.
#[test]
fn what_ends_other_state_needs_no_listening() {
    let scene = Scene::listening();
    scene.begins();
    for text in ["DROP TABLE t", "CLOSE ALL", "SELECT pg_advisory_unlock(1)"] {
        scene.runs(text, text.split(' ').next().expect("a word"));
    }
    scene.shows("UNLISTEN *", "UNLISTEN", "2");
}

/// AND CHAIN and ROLLBACK TO go on within a transaction: what was to show on its server what it
/// listens on is gone there, and without it UNLISTEN would find nothing to end.
#[test]
fn what_is_rolled_back_within_a_block_is_shown_again() {
    for unlistens in [false, true] {
        let scene = Scene::listening();
        scene.begins();
        scene.runs("SAVEPOINT s", "SAVEPOINT");
        scene.shows("NOTIFY a, '1'", "NOTIFY", "2");
        if unlistens {
            scene.runs("UNLISTEN *", "UNLISTEN");
        }
        scene.runs("ROLLBACK TO s", "ROLLBACK");
        scene.shows("UNLISTEN *", "UNLISTEN", "3");
        scene.alice.says([query("COMMIT")]);
        scene.server.heard();
        scene.server.says([done_with("COMMIT"), ready()]);
        scene.assert_listens_no_more();
    }
}

/// ROLLBACK TO does not say to which savepoint: one behind UNLISTEN, or one before. What the
/// listener hears of the mark does.
#[test]
fn who_has_unlistened_before_a_savepoint_listens_no_more() {
    for heard_first in [false, true] {
        for commits in [false, true] {
            let scene = Scene::listening();
            scene.begins();
            scene.shows("NOTIFY b", "NOTIFY", "2");
            scene.runs("UNLISTEN *", "UNLISTEN");
            scene.runs("SAVEPOINT s", "SAVEPOINT");
            scene.runs("ROLLBACK TO s", "ROLLBACK");
            assert!(took(Mark::UnlistenInDoubt));
            scene.alice.says([query("COMMIT")]);
            scene.server.heard();
            let mark = || notified(&scene.own, "2");
            if heard_first && commits {
                scene.listener.says([mark()]);
            }
            scene.server.says([done_with("COMMIT"), ready()]);
            assert_eq!(scene.server.heard(), "Q(left?)");
            scene.server.says([listens_on(&[])]);
            scene.alice.heard();
            scene.listener.says([notified("a", "0")]);
            let is_known = heard_first && commits;
            assert_eq!(scene.alice.heard(), if is_known { "" } else { "A" });
            if !is_known {
                // What may notify waits until that is known.
                scene.alice.says([query("NOTIFY a")]);
                assert_eq!(scene.server.heard(), "");
                scene.stage.wait(Duration::from_secs(1));
                assert_eq!(scene.listener.heard(), format!("Q(NOTIFY \"{}\", '3'; )", scene.own));
            }
            if !heard_first && commits {
                scene.listener.says([mark()]);
                assert!(took(Mark::DoubtEndsListening));
            } else if !commits {
                scene.listener.says([done(), notified(&scene.own, "3"), ready()]);
                scene.assert_shows(&["LISTEN \"a\""], "4");
                continue;
            }
            scene.listener.says([notified("a", "1")]);
            assert_eq!(scene.alice.heard(), "");
            if !is_known {
                assert_eq!(scene.server.heard(), "Q(NOTIFY a)");
            }
        }
    }
}

/// Nor can it be known without a listener: rather than that it misses something it listens on.
#[test]
fn who_may_have_unlistened_listens_on_where_nobody_can_tell() {
    let scene = Scene::listening();
    scene.begins();
    scene.shows("NOTIFY b", "NOTIFY", "2");
    scene.runs("UNLISTEN *", "UNLISTEN");
    scene.runs("SAVEPOINT s", "SAVEPOINT");
    scene.runs("ROLLBACK TO s", "ROLLBACK");
    scene.listener.breaks();
    scene.alice.says([query("COMMIT")]);
    scene.server.heard();
    scene.server.says([done_with("COMMIT"), ready()]);
    assert!(took(Mark::DoubtUnheard));
    assert!(scene.alice.heard().ends_with(" C Z"));
    assert_eq!(scene.server.heard(), "Q(left?)");
    scene.server.says([listens_on(&[])]);
    assert_eq!(scene.server.heard(), format!("Q(LISTEN \"a\"; LISTEN \"{}\"; )", scene.own));
    scene.server.says([done(), done(), ready(), notified("a", "1")]);
    assert_eq!(scene.alice.heard(), "N A");
}

/// It is not the end of the block that says what becomes of it.
#[test]
fn what_a_chain_has_committed_no_rollback_takes_back() {
    for text in ["UNLISTEN *", "DO $$ BEGIN EXECUTE 'UNLISTEN *'; END $$"] {
        let scene = Scene::listening();
        scene.begins();
        scene.shows("NOTIFY a, '1'", "NOTIFY", "2");
        scene.alice.says([query("SELECT 1 / 0")]);
        assert_eq!(scene.server.heard(), "Q(SELECT 1 / 0)");
        scene.server.says([error("22012"), in_failed_block()]);
        scene.runs("COMMIT AND CHAIN", "ROLLBACK");
        scene.shows(text, text.split(' ').next().expect("a word"), "3");
        scene.runs("COMMIT AND CHAIN", "COMMIT");
        scene.runs("SAVEPOINT s", "SAVEPOINT");
        scene.alice.says([query("ROLLBACK")]);
        scene.server.heard();
        scene.server.says([done_with("ROLLBACK"), ready()]);
        scene.assert_listens_no_more();
    }
    assert!(took(Mark::ListensNoMore));
}

/// In a pipeline the end of a block may be under way, which takes along what was shown within it.
#[test]
fn what_unlistens_behind_an_end_waits_for_it() {
    for end in ["COMMIT", "ROLLBACK"] {
        let scene = Scene::listening();
        scene.begins();
        scene.shows("NOTIFY a, '1'", "NOTIFY", "2");
        scene.alice.says([query("SELECT 1 / 0")]);
        scene.server.says([error("22012"), in_failed_block()]);
        scene.alice.says([query(end), query("UNLISTEN *")]);
        assert_eq!(scene.server.heard(), format!("Q(SELECT 1 / 0) Q({end})"));
        scene.server.says([done_with("ROLLBACK"), ready()]);
        assert_eq!(scene.server.heard(), "Q(left?)");
        scene.server.says([listens_on(&[])]);
        scene.assert_shows(&["LISTEN \"a\""], "3");
    }
}

/// The mark comes with the end of the block, though it was committed before.
#[test]
fn who_begins_to_listen_in_a_chain_listens_behind_its_rollback() {
    let scene = Scene::listening();
    scene.begins();
    scene.shows("LISTEN b", "LISTEN", "2");
    scene.runs("COMMIT AND CHAIN", "COMMIT");
    scene.listener.says([notified(&scene.own, "2")]);
    scene.runs("UNLISTEN *", "UNLISTEN");
    scene.alice.says([query("ROLLBACK")]);
    scene.server.heard();
    let marked = notified(&scene.own, "2");
    scene.server.says([done_with("ROLLBACK"), marked, notified("b", "1"), ready()]);
    assert!(scene.alice.heard().ends_with(" C A Z"));
    assert_eq!(scene.server.heard(), "Q(left?)");
    scene.server.says([listens_on(&["a", "b", &scene.own])]);
    assert_eq!(scene.listener.heard(), "Q(LISTEN \"b\"; )");
}

/// What was notified on one channel behind that is not told, though on others it listens yet.
#[test]
fn who_has_ended_to_listen_in_a_chain_is_told_of_other_channels() {
    let scene = Scene::listening();
    scene.begins();
    scene.shows("LISTEN b", "LISTEN", "2");
    scene.runs("UNLISTEN a", "UNLISTEN");
    scene.runs("COMMIT AND CHAIN", "COMMIT");
    assert!(took(Mark::UnlistenCommitted));
    scene.listener.says([notified("a", "1")]);
    scene.alice.says([query("ROLLBACK")]);
    scene.server.heard();
    scene.alice.heard();
    let marked = notified(&scene.own, "2");
    scene.server.says([done_with("ROLLBACK"), marked, notified("b", "3"), ready()]);
    scene.listener.says([notified("a", "2"), notified(&scene.own, "2")]);
    assert_eq!(scene.server.heard(), "Q(left?)");
    scene.server.says([listens_on(&["b", &scene.own])]);
    assert!(took(Mark::PendingSifted));
    assert_eq!(scene.alice.heard(), "C Z A", "of b, not of a");
}

/// Nor does it say so itself, if a function has done that.
#[test]
fn who_has_ended_to_listen_unseen_is_told_of_other_channels() {
    let scene = Scene::listening();
    scene.begins();
    scene.shows("LISTEN b", "LISTEN", "2");
    scene.runs("DO $$ BEGIN UNLISTEN a; END $$", "DO");
    scene.listener.says([notified("a", "1")]);
    scene.alice.says([query("COMMIT")]);
    scene.server.heard();
    scene.alice.heard();
    let told = [notified(&scene.own, "2"), notified("b", "3")].concat();
    scene.server.says([done_with("COMMIT"), told, ready()]);
    scene.listener.says([notified("a", "2"), notified(&scene.own, "2")]);
    assert_eq!(scene.server.heard(), "Q(left?)");
    scene.server.says([listens_on(&["b", &scene.own])]);
    assert_eq!(scene.alice.heard(), "C Z A", "of b, not of a");
}

/// What a function has done before the listener took over again is over and known by then.
#[test]
fn who_has_come_back_to_the_listener_is_told_at_once() {
    let scene = Scene::listening();
    scene.alice.says([query("DO $$ BEGIN UNLISTEN b; END $$")]);
    scene.assert_shows(&["LISTEN \"a\""], "2");
    scene.server.says([aside(3), notified(&scene.own, "2"), ready()]);
    scene.listener.says([notified(&scene.own, "2")]);
    assert_eq!(scene.server.heard(), "Q(DO $$ BEGIN UNLISTEN b; END $$)");
    scene.server.says([done_with("DO"), ready()]);
    assert_eq!(scene.server.heard(), "Q(left?)");
    scene.server.says([listens_on(&["a", &scene.own])]);
    scene.assert_marks("3");
    scene.server.says([aside(2), notified(&scene.own, "3"), ready()]);
    scene.listener.says([notified(&scene.own, "3")]);
    scene.assert_unlistens();
    scene.server.says([aside(1), ready()]);
    scene.alice.heard();
    scene.alice.says([query("LOAD 'x'")]);
    scene.server.says([done_with("LOAD"), ready()]);
    assert_eq!(scene.alice.heard(), "C Z");
    scene.listener.says([notified("a", "1")]);
    scene.assert_told(&["1"]);
}

/// A server that its client keeps for what no question tells of is not asked what it listens on.
#[test]
fn who_has_ended_to_listen_on_a_server_of_its_own_is_told_of_all() {
    let scene = Scene::listening();
    scene.begins();
    scene.runs("LOAD 'x'", "LOAD");
    scene.shows("LISTEN b", "LISTEN", "2");
    scene.runs("DO $$ BEGIN UNLISTEN a; END $$", "DO");
    scene.commits_behind_a_notification();
    assert!(took(Mark::NothingSifted));
    assert_eq!(scene.alice.heard(), "C Z A", "of a, too");
    scene.server.says([notified("b", "3")]);
    assert_eq!(scene.alice.heard(), "A");
}

/// Nor is one that has become its client's for as long as that stays.
#[test]
fn who_has_ended_to_listen_in_session_mode_is_told_of_all() {
    let scene = Scene::listening();
    scene.stage.reload(&Setup::of_mode("session"));
    scene.begins();
    scene.shows("LISTEN b", "LISTEN", "2");
    scene.runs("UNLISTEN a", "UNLISTEN");
    scene.commits_behind_a_notification();
    assert_eq!(scene.alice.heard(), "C A Z", "of a, too");
}

/// As by PostgreSQL, which tells in front of the end of a unit what was notified within it.
#[test]
fn who_loses_a_server_is_told_before_its_unit_is_over() {
    let scene = Scene::listening();
    scene.alice.says([query("UPDATE t SET a = 1")]);
    assert_eq!(scene.server.heard(), "Q(UPDATE t SET a = 1)");
    scene.listener.says([notified("a", "1")]);
    assert_eq!(scene.alice.heard(), "");
    scene.server.breaks();
    assert_eq!(scene.alice.heard(), "E(08007) A Z");
}

/// What the listener has yet to say was notified before; if it is lost that is told.
#[test]
fn who_ends_to_listen_is_told_of_all_that_came_before() {
    for is_lost in [false, true] {
        let scene = Scene::listening();
        scene.alice.says([query("BEGIN")]);
        scene.server.says([done(), in_block()]);
        scene.alice.says([query("UNLISTEN a")]);
        scene.server.says([aside(3), in_block()]);
        scene.server.says([done(), in_block()]);
        scene.alice.says([query("COMMIT")]);
        scene.server.heard();
        assert_eq!(scene.alice.heard(), "C Z(T) C Z(T)");
        scene.server.says([done(), notified(&scene.own, "2"), ready()]);
        assert_eq!(scene.alice.heard(), "C");
        assert_eq!(scene.server.heard(), "");
        if is_lost {
            scene.listener.breaks();
        } else {
            scene.listener.says([notified("a", "1"), notified(&scene.own, "2")]);
        }
        assert_eq!(scene.alice.heard(), if is_lost { "N Z" } else { "A Z" });
        assert_eq!(scene.server.heard(), "Q(left?)");
        scene.server.says([listens_on(&[&scene.own])]);
        scene.assert_unlistens();
        scene.server.says([aside(1), ready()]);
        // With the listener that is logging in there is one too many.
        let ends = if is_lost { "X" } else { "" };
        assert_eq!(scene.server.heard(), ends);
    }
}

/// It does not read, and the others do.
#[test]
fn so_much_is_kept_for_a_client_and_no_more() {
    let scene = Scene::listening();
    let bob = scene.stage.client();
    scene.alice.says([query("BEGIN")]);
    scene.server.says([done(), in_block()]);
    scene.alice.heard();
    let long = "x".repeat(8_000);
    for _ in 0..1_100 {
        scene.listener.says([notified("a", &long)]);
    }
    assert_eq!(scene.alice.heard(), "E(FATAL 54000)");
    assert!(bob.is_open() && !scene.alice.is_open());
    assert!(took(Mark::NotifiedTooMuch));
}

/// The simulator's: what had come within a transaction was told behind the FATAL that ended it.
#[test]
fn nothing_is_told_behind_a_servers_last_words() {
    let scene = Scene::listening();
    scene.alice.says([query("BEGIN")]);
    scene.server.says([done(), in_block()]);
    scene.listener.says([notified("a", "1")]);
    scene.alice.says([query("NOTIFY a, '2'")]);
    scene.server.says([aside(3), in_block()]);
    scene.server.says([done(), in_block()]);
    scene.alice.says([query("CREATE TEMP TABLE t ()")]);
    scene.server.says([done(), in_block()]);
    scene.server.says([fatal("57P01")]);
    scene.server.breaks();
    assert_eq!(scene.alice.heard(), "C Z(T) C Z(T) C Z(T) E(FATAL 57P01)");
    assert!(!scene.alice.is_open());
}

/// Its server has said FATAL, and has not ended yet.
#[test]
fn who_has_heard_the_end_is_told_nothing_more() {
    let scene = Scene::listening();
    scene.alice.says([query("CREATE TEMP TABLE t ()")]);
    scene.server.says([done(), ready()]);
    scene.server.says([left("t")]);
    scene.alice.heard();
    scene.server.says([fatal("57P01")]);
    assert_eq!(scene.alice.heard(), "E(FATAL 57P01)");
    scene.listener.says([notified("a", "1")]);
    scene.server.breaks();
    assert_eq!(scene.alice.heard(), "");
    assert!(!scene.alice.is_open());
}

/// A server that only listens for its client is not kept for what that prepares meanwhile.
#[test]
fn what_is_prepared_before_the_listener_takes_over_keeps_no_server() {
    let scene = Scene::listening();
    scene.alice.says([query("BEGIN")]);
    scene.server.says([done(), in_block()]);
    scene.alice.says([query("NOTIFY b")]);
    scene.server.says([aside(3), in_block()]);
    scene.server.says([done(), in_block()]);
    scene.server.heard();
    scene.alice.says([parse_as("s", "SELECT 1"), sync()]);
    let told = scene.server.heard();
    assert!(told.starts_with("P(pgweir_1=SELECT 1) "), "{told}");
}

/// In the place of COPY data whatever it says is the end of its session, if they are read: there is
/// nothing to take over for.
#[test]
fn nobody_takes_over_inside_a_copy() {
    let scene = Scene::listening();
    scene.alice.says([query("COPY t FROM STDIN")]);
    assert_eq!(scene.server.heard(), "Q(COPY t FROM STDIN)");
    scene.server.says([copy_in()]);
    scene.alice.says([query("NOTIFY a, '2'")]);
    assert_eq!(scene.server.heard(), "Q()");
}

/// A Sync that may have been read with the data of a COPY is answered after all, when the server
/// has been sent something of ours.
#[test]
fn a_sync_in_doubt_may_be_answered_before_what_the_listener_needs() {
    let scene = Scene::new();
    let begins = [parse("COPY t FROM STDIN"), bind(), execute(), sync()].concat();
    scene.alice.says([begins, copy_data(b"1\n"), copy_done(), sync()]);
    scene.server.heard();
    scene.server.says([parse_complete(), bind_complete(), copy_in(), error("P0001"), ready()]);
    scene.listener.says([done(), done(), ready()]);
    scene.assert_marks("1");
    scene.server.says([ready(), aside(2), notified(&scene.own, "1"), ready()]);
    assert_eq!(scene.alice.heard(), "1 2 G E(P0001) Z Z");
    assert_eq!(scene.stage.contained(), None);
    assert!(took(Mark::SyncInDoubtAhead));
}

/// What stands behind the end of a transaction that has failed is no part of it.
#[test]
fn what_follows_a_failed_transaction_waits_for_its_end() {
    let scene = Scene::listening();
    scene.alice.says([query("BEGIN")]);
    scene.server.says([done(), in_block()]);
    scene.alice.says([query("SELECT 1 / 0")]);
    scene.server.says([error("22012"), in_failed_block()]);
    scene.server.heard();
    scene.alice.says([query("ROLLBACK"), query("UNLISTEN a")]);
    assert_eq!(scene.server.heard(), "Q(ROLLBACK)");
    scene.server.says([done(), ready()]);
    scene.assert_shows(&["LISTEN \"a\""], "2");
}

/// Its unit has ended, and waits for what the listener has to say of before.
#[test]
fn the_end_of_a_unit_is_told_before_a_servers_last_words() {
    let scene = Scene::notifying();
    scene.alice.says([query("CREATE TEMP TABLE t ()")]);
    scene.server.says([done(), in_block()]);
    scene.alice.says([query("COMMIT")]);
    scene.server.says([done(), notified(&scene.own, "2"), notified("a", "2"), ready()]);
    assert_eq!(scene.alice.heard(), "C Z(T) C Z(T) C Z(T) C");
    scene.server.says([fatal("57P01")]);
    assert_eq!(scene.alice.heard(), "Z E(FATAL 57P01)");
    scene.listener.says([notified(&scene.own, "2"), notified("a", "2")]);
    scene.server.breaks();
    assert_eq!(scene.alice.heard(), "");
    assert!(!scene.alice.is_open());
}

/// The simulator's: whoever was asked to leave behind its transaction left without what it was
/// notified of in that.
#[test]
fn who_is_asked_to_leave_hears_of_its_own_before() {
    let scene = Scene::listening();
    scene.begins();
    scene.shows("NOTIFY a, '2'", "NOTIFY", "2");
    scene.alice.heard();
    scene.stage.drain();
    scene.alice.says([query("COMMIT")]);
    let told = [notified(&scene.own, "2"), notified("a", "2")].concat();
    scene.server.says([done(), told.clone(), ready()]);
    assert_eq!(scene.alice.heard_bytes(), done());
    scene.listener.says([told]);
    assert_eq!(scene.alice.heard_bytes(), [notified("a", "2"), ready()].concat());
    assert_eq!(scene.server.heard(), "Q(COMMIT) Q(left?)");
    scene.server.says([left("")]);
    assert_eq!(scene.alice.heard(), "E(FATAL 57P01)");
}

/// Within its batch a client is not told what the listener has had to say before.
#[test]
fn a_server_tells_nothing_before_what_was_said_before_it() {
    let scene = Scene::listening();
    scene.begins();
    scene.shows("NOTIFY a, '2'", "NOTIFY", "2");
    scene.alice.heard();
    scene.alice.says([parse_as("", "COMMIT"), bind_to(""), execute(), flush()]);
    assert_eq!(scene.server.heard(), "P(COMMIT) B E H");
    let committed = [parse_complete(), bind_complete(), done_with("COMMIT")].concat();
    scene.server.says([committed, notified(&scene.own, "2"), notified("a", "2")]);
    scene.listener.says([notified(&scene.own, "2"), notified("a", "2")]);
    assert_eq!(scene.alice.heard(), "1 2 C");
    scene.alice.says([query("NOTIFY a, '3'")]);
    assert_eq!(scene.server.heard(), "Q(NOTIFY a, '3')");
    let told = [notified("a", "2"), notified("a", "3")].concat();
    scene.server.says([done(), notified("a", "3"), ready()]);
    assert_eq!(scene.alice.heard_bytes(), [done(), told, ready()].concat());
}

/// Nor while what a client has asked for at its login is put back, until which its unit goes on.
#[test]
fn a_server_tells_nothing_before_that_while_it_puts_something_back() {
    let scene = Scene::putting_back();
    let put_back = [parse_complete(), bind_complete(), row(b"f"), done()].concat();
    scene.server.says([put_back, close_complete(), close_complete(), notified("a", "2")]);
    scene.assert_told(&[]);
    assert!(took(Mark::NotifiedBehindPending));
    scene.server.says([ready()]);
    let told = [notified("a", "1"), notified("a", "2"), ready()].concat();
    assert_eq!(scene.alice.heard_bytes(), told);
}

/// Of that no more is kept than of what the listener says.
#[test]
fn a_server_tells_no_more_than_is_kept_while_it_puts_something_back() {
    let scene = Scene::putting_back();
    scene.alice.heard();
    let long = notified("a", &"x".repeat(8_000));
    for _ in 0..1_100 {
        scene.server.says([long.clone()]);
    }
    assert!(scene.alice.heard().ends_with(" Z E(FATAL 54000)"));
    assert!(took(Mark::ToldTooMuch));
}

/// The settings that limit how many servers there are.
const LIMITS: [&str; 3] = ["max_server_connections", "max_db_connections", "max_user_connections"];

fn limited(limit: &str, most: usize) -> Setup {
    Setup { general: format!("{limit} = {most}").leak(), ..Setup::of_size(2) }
}

#[test]
fn the_listener_counts_in_every_limit() {
    for limit in LIMITS {
        for (most, opens) in [(2, 0), (3, 1)] {
            let scene = Scene::of(&limited(limit, most)).taken_over();
            let bob = scene.stage.client();
            scene.alice.says([query("alice")]);
            assert_eq!(scene.server.heard(), "Q(alice)");
            bob.says([query("bob")]);
            assert_eq!(scene.stage.attempts(), opens, "{limit} = {most}");
            if opens == 0 {
                scene.server.says([done(), ready()]);
                assert_eq!(scene.server.heard(), "Q(bob)", "{limit} = {most}");
            }
        }
    }
}

#[test]
fn a_client_keeps_its_server_where_no_limit_leaves_room_for_a_listener() {
    for limit in LIMITS {
        let (stage, server, alice) = listens(&limited(limit, 1));
        assert_eq!((stage.attempts(), stage.servers()), (0, vec![ServerActivity::Active]));
        let bob = stage.client();
        bob.says([query("bob")]);
        server.says([notified("a", "1")]);
        assert_eq!(alice.heard(), "A", "{limit}");
        assert_eq!((stage.attempts(), server.heard().as_str()), (0, ""), "{limit}");
        alice.says([query("UNLISTEN *")]);
        assert_eq!(server.heard(), "Q(UNLISTEN *)", "{limit}");
        server.says([done(), ready()]);
        assert_eq!((server.heard().as_str(), alice.heard().as_str()), ("Q(left?)", "C Z"));
        server.says([listens_on(&[])]);
        assert_eq!(server.heard(), "Q(bob)", "{limit}");
    }
}

/// Another pool's server was in its way.
#[test]
fn the_listener_comes_when_there_is_room_for_it() {
    let general = "max_server_connections = 2";
    let setup = Setup { general, others: &["east"], ..Setup::of_size(2) };
    let (stage, server, alice) = Stage::ready(&setup);
    let bob = stage.newcomer_to("east");
    let other = stage.server();
    assert!(bob.is_greeted());
    bob.says([query("BEGIN")]);
    other.says([done(), in_block()]);
    alice.says([query("LISTEN a")]);
    server.says([done(), ready()]);
    server.says([listens_on(&["a"])]);
    assert_eq!((alice.heard().as_str(), stage.attempts()), ("C Z", 0));
    server.says([notified("a", "1")]);
    assert_eq!(alice.heard(), "A");
    other.breaks();
    stage.wait(Duration::from_secs(1));
    let listener = stage.server();
    assert!(listener.heard().starts_with("Q(LISTEN \"a\"; "));
    listener.says([done(), done(), ready()]);
    assert!(server.heard().starts_with("Q(LISTEN a) Q(left?) P(pgweir_aside="));
}

/// A scene whose listener has the one connection that a reload has left.
fn at_the_limit(setup: &Setup, limit: &str) -> Scene {
    let before = Setup { general: format!("{limit} = 2").leak(), ..*setup };
    let scene = Scene::of(&before).taken_over();
    scene.stage.reload(&Setup { general: format!("{limit} = 1").leak(), ..*setup });
    scene.stage.wait(Duration::from_millis(100));
    assert!(scene.server.heard().ends_with('X'));
    scene.server.ends();
    assert_eq!((scene.states(), scene.stage.attempts()), (vec![ServerActivity::Active], 0));
    scene
}

/// It comes back when nobody waits, and says that it was away.
#[test]
fn the_last_connection_is_lent_rather_than_that_it_listens() {
    for limit in LIMITS {
        let scene = at_the_limit(&Setup::of_size(2), limit);
        let bob = scene.stage.client();
        bob.says([query("bob")]);
        scene.stage.wait(Duration::from_millis(900));
        assert_eq!(scene.listener.heard(), "");
        scene.stage.wait(Duration::from_millis(300));
        assert_eq!(scene.listener.heard(), "X", "{limit}");
        scene.listener.ends();
        let server = scene.stage.server();
        assert_eq!(server.heard(), "Q(bob)", "{limit}");
        scene.alice.says([query("alice")]);
        server.says([done(), ready()]);
        assert_eq!((server.heard().as_str(), bob.heard().as_str()), ("Q(alice)", "C Z"));
        server.says([done(), ready()]);
        assert_eq!(scene.alice.heard(), "C Z");
        assert_eq!(server.heard(), format!("Q(LISTEN \"a\"; LISTEN \"{}\"; )", scene.own));
        server.says([done(), done(), ready()]);
        assert_eq!(scene.alice.heard(), "N");
    }
}

/// So it is where another client keeps the only other one.
#[test]
fn what_is_not_kept_is_lent_rather_than_that_it_listens() {
    for limit in LIMITS {
        let Scene { stage, alice, server, listener, own } =
            Scene::of(&limited(limit, 2)).taken_over();
        let [bob, carol] = [stage.client(), stage.client()];
        bob.says([query("CREATE TEMP TABLE t ()")]);
        assert_eq!(server.heard(), "Q(CREATE TEMP TABLE t ())");
        server.says([done(), ready(), left("t")]);
        let mut last = listener;
        for _ in 0..2 {
            carol.says([query("carol")]);
            stage.wait(Duration::from_millis(900));
            assert_eq!(last.heard(), "", "{limit}");
            stage.wait(Duration::from_millis(300));
            assert_eq!(last.heard(), "X", "{limit}");
            last.ends();
            last = stage.server();
            assert_eq!(last.heard(), "Q(carol)", "{limit}");
            last.says([done(), ready()]);
            assert_eq!(carol.heard(), "C Z");
            assert_eq!(last.heard(), format!("Q(LISTEN \"a\"; LISTEN \"{}\"; )", own));
            last.says([done(), done(), ready()]);
            assert_eq!(alice.heard(), "N");
        }
    }
}

/// Nor does another pool starve for it.
#[test]
fn the_last_connection_is_lent_to_others_rather_than_that_it_listens() {
    let setup = Setup { others: &["east"], ..Setup::of_size(2) };
    let scene = at_the_limit(&setup, "max_server_connections");
    let bob = scene.stage.newcomer_to("east");
    scene.stage.wait(Duration::from_millis(2900));
    assert_eq!(scene.listener.heard(), "");
    scene.stage.wait(Duration::from_millis(300));
    assert_eq!(scene.listener.heard(), "X");
    scene.listener.ends();
    let server = scene.stage.server();
    assert!(bob.is_greeted());
    bob.says([query("bob")]);
    assert_eq!(server.heard(), "Q(bob)");
}

/// A cancel that has come late would hit what goes unseen, and its transaction with it: a COMMIT
/// was answered with ROLLBACK, without an error.
#[test]
fn a_cancel_is_over_before_a_server_is_told_to_listen_in_a_transaction() {
    let scene = Scene::listening();
    scene.begins();
    scene.alice.says([query("SELECT 1")]);
    let requester = scene.stage.cancel(&scene.alice);
    let cancel = scene.stage.cancel_line().expect("a connection for the cancel");
    scene.server.says([done(), in_block()]);
    scene.server.heard();
    scene.alice.says([query("COMMIT; NOTIFY a, '1'")]);
    assert_eq!(scene.server.heard(), "");
    assert!(took(Mark::ListenAwaitsCancel));
    cancel.ends();
    assert!(requester.is_closed());
    scene.assert_shows(&["LISTEN \"a\""], "2");
}

/// Its server hears what the listener does where a function has begun to listen, which nobody saw.
#[test]
fn who_listens_again_unseen_is_told_once() {
    let scene = Scene::listening();
    scene.alice.says([query("SELECT f()")]);
    assert_eq!(scene.server.heard(), "Q(SELECT f())");
    scene.server.says([done(), notified("a", "1"), ready()]);
    assert!(took(Mark::HeardTwice));
    assert_eq!(scene.alice.heard(), "C Z");
    scene.listener.says([notified("a", "1")]);
    scene.assert_told(&["1"]);
}

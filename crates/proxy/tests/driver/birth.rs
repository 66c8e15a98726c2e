//! Settings that only a server's start can set: each server is lent to those that ask for its own.

use std::time::Duration;

use pgweir_engine::{Mark, ServerActivity};

use crate::messages::{
    authentication_ok, done, error, fatal, in_block, parse_as, query, ready, sync,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage, took};

pub(crate) const BORN: (&str, &str) = ("ignore_system_indexes", "on");

/// The oldest attempt succeeds, and was asked for just these besides user and database.
pub(crate) fn server_born(stage: &Stage, birth: &[(&str, &str)]) -> Peer {
    let (server, asked) = stage.bare_server_asked();
    let asked: Vec<_> = asked.iter().skip(2).map(|(n, v)| (n.as_str(), v.as_str())).collect();
    assert_eq!(asked, birth);
    let welcome = stage.welcome(&server);
    server.says([welcome]);
    server
}

fn run(client: &Peer, server: &Peer) {
    client.heard();
    client.says([query("SELECT")]);
    assert_eq!(server.heard(), "Q(SELECT)");
    server.says([done(), ready()]);
    assert_eq!(client.heard(), "C Z");
}

#[test]
fn a_server_is_started_with_them_and_lent_to_nobody_else() {
    let stage = Stage::new(&Setup::of_size(2));
    let plain = stage.newcomer(&[]);
    let first = server_born(&stage, &[]);
    let born = stage.newcomer(&[("options", "-c Ignore-System-Indexes=on")]);
    assert!(plain.is_greeted() && !born.is_greeted());
    let second = server_born(&stage, &[BORN]);
    assert!(born.is_greeted());
    // That servers take it is known.
    let alike = stage.newcomer(&[BORN]);
    assert!(alike.is_greeted());
    for _ in 0..2 {
        run(&plain, &first);
        run(&born, &second);
        run(&alike, &second);
    }
}

#[test]
fn an_idle_one_makes_way_in_a_full_pool() {
    let (stage, server, plain) = Stage::ready(&Setup::default());
    let born = stage.newcomer(&[BORN]);
    assert_eq!(server.heard(), "X");
    server.breaks();
    let other = server_born(&stage, &[BORN]);
    assert!(born.is_greeted());
    plain.says([query("SELECT")]);
    assert_eq!(other.heard(), "X");
    other.breaks();
    let third = server_born(&stage, &[]);
    assert_eq!(third.heard(), "Q(SELECT)");
}

#[test]
fn the_queue_keeps_its_order() {
    let (stage, server, plain) = Stage::ready(&Setup::default());
    let late = stage.client();
    plain.says([query("BEGIN")]);
    server.heard();
    server.says([done(), in_block()]);
    let born = stage.newcomer(&[BORN]);
    late.says([query("late")]);
    plain.says([query("COMMIT")]);
    server.heard();
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "X");
    server.breaks();
    let other = server_born(&stage, &[BORN]);
    assert!(born.is_greeted());
    assert_eq!(other.heard(), "X");
    other.breaks();
    assert_eq!(server_born(&stage, &[]).heard(), "Q(late)");
}

/// It would be out of the queue until that has gone, and what is opened meanwhile is another's.
#[test]
fn none_makes_way_where_there_is_room_for_another() {
    let setup = Setup { general: "connect_parallelism = 1", ..Setup::of_size(3) };
    let (stage, server, plain) = Stage::ready(&setup);
    let (gone, late) = (stage.client(), stage.client());
    plain.says([query("BEGIN")]);
    server.heard();
    server.says([done(), in_block()]);
    gone.says([query("gone")]);
    let bare = stage.bare_server();
    let born = stage.newcomer(&[BORN]);
    late.says([query("late")]);
    gone.breaks();
    assert_eq!(stage.attempts(), 0);
    bare.says([stage.welcome(&bare)]);
    assert_eq!(bare.heard(), "Q(late)");
    let other = server_born(&stage, &[BORN]);
    assert!(born.is_greeted());
    run(&born, &other);
}

#[test]
fn who_is_refused_hears_why_and_nobody_else() {
    let (stage, server, plain) = Stage::ready(&Setup::of_size(2));
    let refused = stage.newcomer(&[("log_connections", "on")]);
    let bare = stage.bare_server();
    bare.says([authentication_ok(), error("42501")]);
    assert_eq!(refused.heard(), "R E(FATAL 42501)");
    // Nor is another one asked at once.
    let again = stage.newcomer(&[("log_connections", "on")]);
    assert_eq!(again.heard(), "R E(FATAL 42501)");
    assert_eq!(stage.attempts(), 0);
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    run(&plain, &server);
}

/// What the client asks for says nothing of the password: all hear that.
#[test]
fn who_was_promised_one_hears_that_there_will_be_none() {
    let (stage, server, plain) = Stage::ready(&Setup::default());
    let born = stage.newcomer(&[BORN]);
    assert_eq!(server.heard(), "X");
    server.breaks();
    plain.says([query("SELECT")]);
    stage.bare_server().says([fatal("28P01")]);
    assert_eq!(born.heard(), "R E(FATAL 28P01)");
    assert_eq!(plain.heard(), "E(28P01) Z");
}

#[test]
fn who_was_promised_one_that_is_not_made_waits_for_the_next() {
    let (stage, server, plain) = Stage::ready(&Setup::default());
    let born = stage.newcomer(&[BORN]);
    server.breaks();
    stage.refuse_server();
    plain.says([query("SELECT")]);
    assert_eq!((born.heard().as_str(), stage.attempts()), ("R", 0));
    stage.wait(Duration::from_secs(1));
    let other = server_born(&stage, &[BORN]);
    assert!(born.is_greeted());
    assert_eq!(other.heard(), "X");
    other.breaks();
    assert_eq!(server_born(&stage, &[]).heard(), "Q(SELECT)");
}

/// No idle one goes for an attempt that may fail like the one before.
#[test]
fn none_makes_way_while_attempts_fail() {
    let (stage, server, plain) = Stage::ready(&Setup::of_size(2));
    let first = stage.newcomer(&[BORN]);
    stage.refuse_server();
    assert_eq!(first.heard(), "R E(FATAL 57P03)");
    let second = stage.newcomer(&[BORN]);
    assert_eq!((second.heard().as_str(), stage.attempts()), ("R E(FATAL 57P03)", 0));
    run(&plain, &server);
}

/// Another server is asked about settings that one has refused: it is started for its client, too.
#[test]
fn who_is_refused_its_settings_gets_another_of_its_own() {
    let stage = Stage::new(&Setup::of_size(2));
    let _alike = stage.newcomer(&[BORN]);
    let server = server_born(&stage, &[BORN]);
    let other = stage.newcomer(&[("jit_profiling_support", "on")]);
    stage.refuse_server();
    assert!(other.heard().ends_with("E(FATAL 57P03)"));
    stage.wait(Duration::from_secs(1));
    let odd = stage.newcomer(&[BORN, ("application_name", "odd")]);
    assert!(server.heard().starts_with("Q(SELECT ARRAY["));
    server.says([error("22023"), ready()]);
    let next = server_born(&stage, &[BORN]);
    assert!(next.heard().starts_with("Q(SELECT ARRAY["));
    next.says([done(), ready()]);
    assert!(odd.is_greeted());
}

/// A client for which no server is started now: each of its units is answered by us.
fn barren(general: &'static str) -> (Stage, Peer) {
    let (stage, _server, _plain) = Stage::ready(&Setup { general, ..Setup::of_size(2) });
    let born = stage.newcomer(&[BORN]);
    server_born(&stage, &[BORN]).breaks();
    let other = stage.newcomer(&[BORN]);
    stage.refuse_server();
    assert!(other.heard().ends_with("E(FATAL 57P03)") || other.is_greeted());
    born.heard();
    (stage, born)
}

/// All that it has sent, though it sends no more.
#[test]
fn who_leaves_is_refused_each_of_its_units() {
    let (_stage, born) = barren("");
    born.says([query("a"), parse_as("", "b"), sync()]);
    born.ends();
    assert_eq!(born.heard(), "E(53300) Z E(53300) Z");
    assert!(born.is_closed());
}

/// So many units that what is said of them is more than is kept for a client.
const MANY: usize = 4_000;

/// What we say ourselves no server stops: for whoever asked on and read nothing it piled up without
/// limit.
#[test]
fn who_does_not_read_its_refusals_is_refused_no_more() {
    for ends in [false, true] {
        let (stage, born) = barren("");
        born.takes(0);
        for _ in 0..4 {
            born.says([query("SELECT").repeat(MANY)]);
        }
        assert!(!born.is_read());
        if ends {
            born.ends();
        }
        assert!(born.is_open());
        // A little room is not enough.
        born.takes(20_000);
        assert!(born.heard_bytes().len() == 20_000 && !born.is_read());
        born.takes_all();
        let rest = born.heard_bytes();
        let last = rest.windows(6).filter(|bytes| *bytes == ready()).count();
        assert!(last > 3 * MANY, "{last} of {} are answered", 4 * MANY);
        assert_eq!(born.is_closed(), ends);
        assert_eq!(stage.clients_left(), if ends { 1 } else { 2 });
        assert!(took(Mark::RefusalUnread));
    }
}

/// Who waits for nothing but its own reading is in nobody's way, and is ended as one that idles.
#[test]
fn who_does_not_read_its_refusals_is_asked_to_leave() {
    for drains in [false, true] {
        let (stage, born) = barren("client_idle_timeout = 5000");
        born.takes(0);
        born.says([query("SELECT").repeat(MANY)]);
        assert_eq!(stage.clients().len(), 2);
        if drains {
            stage.drain();
        } else {
            stage.wait(Duration::from_secs(6));
        }
        assert_eq!(stage.clients().len(), 0);
        born.takes_all();
        let end = if drains { "E(FATAL 57P01)" } else { "E(FATAL 57P05)" };
        assert!(born.heard().ends_with(end));
        assert!(born.is_closed());
    }
}

#[test]
fn who_leaves_leaves_a_server_to_others() {
    let (stage, server, plain) = Stage::ready(&Setup::of_size(2));
    let born = stage.newcomer(&[BORN]);
    let second = stage.bare_server();
    born.breaks();
    second.says([stage.welcome(&second)]);
    assert_eq!(stage.servers(), [ServerActivity::Idle; 2]);
    run(&plain, &server);
    let alike = stage.newcomer(&[BORN]);
    assert!(alike.is_greeted());
    run(&alike, &second);
}

#[test]
fn who_leaves_before_one_has_made_way_wants_none() {
    let (stage, server, plain) = Stage::ready(&Setup::default());
    let born = stage.newcomer(&[BORN]);
    assert_eq!(server.heard(), "X");
    born.breaks();
    server.breaks();
    assert_eq!((stage.servers(), stage.attempts()), (vec![], 0));
    plain.says([query("SELECT")]);
    assert_eq!(server_born(&stage, &[]).heard(), "Q(SELECT)");
}

#[test]
fn those_that_are_kept_for_nobody_are_started_with_nothing() {
    let stage = Stage::new(&Setup { user: "min_pool_size = 2", ..Setup::of_size(2) });
    stage.wait(Duration::from_millis(100));
    let servers = [server_born(&stage, &[]), server_born(&stage, &[])];
    let born = stage.newcomer(&[BORN]);
    let made_way = servers.iter().find(|server| server.heard() == "X").expect("one makes way");
    made_way.breaks();
    let other = server_born(&stage, &[BORN]);
    assert!(born.is_greeted());
    run(&born, &other);
    // One that is lost is replaced for nobody.
    other.ends();
    stage.wait(Duration::from_millis(100));
    server_born(&stage, &[]);
}

#[test]
fn servers_of_another_configuration_are_started_with_them() {
    let (stage, server, _plain) = Stage::ready(&Setup::default());
    let born = stage.newcomer(&[BORN]);
    server.breaks();
    let other = server_born(&stage, &[BORN]);
    assert!(born.is_greeted());
    stage.reload(&Setup { port: 5433, ..Setup::default() });
    assert_eq!(other.heard(), "X");
    born.says([query("SELECT")]);
    other.breaks();
    assert_eq!(server_born(&stage, &[BORN]).heard(), "Q(SELECT)");
}

/// Whoever was promised one of the old servers gets one of the new.
#[test]
fn a_promise_outlasts_a_reload() {
    let (stage, server, _plain) = Stage::ready(&Setup::default());
    let born = stage.newcomer(&[BORN]);
    stage.reload(&Setup { port: 5433, ..Setup::default() });
    server.breaks();
    server_born(&stage, &[BORN]);
    assert!(born.is_greeted());
    assert_eq!(stage.snapshot().servers[0].address.port, 5433);
}

/// The simulator's: the place that one leaves on a server of the old configuration nobody was told
/// of.
#[test]
fn what_is_left_where_a_promise_is_kept_elsewhere_is_for_others() {
    let others: &'static [&'static str] = &["east"];
    let setup = || Setup { general: "max_server_connections = 1", others, ..Setup::default() };
    let (stage, server, _plain) = Stage::ready(&setup());
    let born = stage.newcomer(&[BORN]);
    assert_eq!(server.heard(), "X");
    let east = stage.newcomer_to("east");
    stage.reload(&Setup { port: 5433, ..setup() });
    assert_eq!(stage.attempts(), 0);
    server.breaks();
    assert_eq!(stage.attempts(), 2, "one on each server");
    assert!(took(Mark::PlaceLeft));
    server_born(&stage, &[BORN]);
    server_born(&stage, &[]);
    assert!(born.is_greeted() && east.is_greeted());
}

/// A client says how long its login takes, and no other login is put off for that.
#[test]
fn who_asks_for_a_long_delay_hears_so_alone() {
    let (stage, server, plain) = Stage::ready(&Setup::of_size(2));
    let slow = stage.newcomer(&[("post_auth_delay", "2000")]);
    let bare = stage.bare_server();
    bare.says([authentication_ok()]);
    stage.wait(Duration::from_secs(60));
    assert_eq!(slow.heard(), "R E(FATAL 57P03)");
    plain.says([query("BEGIN")]);
    assert_eq!(server.heard(), "Q(BEGIN)");
    let other = stage.client();
    other.says([query("SELECT")]);
    assert_eq!(server_born(&stage, &[]).heard(), "Q(SELECT)");
    assert!(took(Mark::SlowBirth));
}

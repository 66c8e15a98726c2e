//! What a client asked for in its startup packet is what its server is set to.

use std::time::Duration;

use pgweir_engine::{ClientState, ServerActivity};

use crate::messages::{
    done, error, fatal, left, message, notice, one_row, parameter_status, query, ready, terminate,
};
use crate::peer::Peer;
use crate::stage::{Setup, Stage};

const NAMED: &[(&str, &str)] = &[("application_name", "it")];
const SET: &str = "Q(SELECT ARRAY[pg_catalog.set_config('application_name', 'it', false)] IS NULL)";
const UNSET: &str =
    "Q(SELECT ARRAY[pg_catalog.set_config('application_name', NULL, false)] IS NULL)";

/// A stage with a client that has settings, on whose server they are.
fn named(setup: &Setup) -> (Stage, Peer, Peer) {
    let stage = Stage::new(setup);
    let client = stage.newcomer(NAMED);
    let server = stage.server();
    assert_eq!(server.heard(), SET);
    server.says([one_row("it")]);
    assert!(client.is_greeted());
    (stage, server, client)
}

/// What a server reports under the client's settings is known once it has been set to them.
#[test]
fn a_greeting_waits_for_the_settings() {
    let stage = Stage::new(&Setup::default());
    let client = stage.newcomer(NAMED);
    let server = stage.server();
    assert_eq!(client.heard(), "R");
    assert_eq!(server.heard(), SET);
    server.says([notice()]);
    assert_eq!(client.heard(), "", "it does not know that it is let in");
    server.says([parameter_status("application_name", "it"), one_row("it")]);
    assert_eq!(client.heard(), "S(server_version=15.1) S(application_name=it) K Z");
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
}

/// Logging in costs no server when what it would say is known.
#[test]
fn a_greeting_that_is_known_waits_for_nobody() {
    let (stage, server, client) = named(&Setup::default());
    client.says([query("slow")]);
    assert_eq!(server.heard(), "Q(slow)");
    assert!(stage.newcomer(NAMED).is_greeted());
    assert!(!stage.newcomer(&[("application_name", "other")]).is_greeted());
}

/// A query that ran before its settings were there would run under another's.
#[test]
fn a_query_waits_until_its_settings_are_answered() {
    let (stage, server, _named) = named(&Setup::default());
    let plain = stage.newcomer(&[]);
    assert_eq!(server.heard(), UNSET);
    server.says([one_row("")]);
    assert!(plain.is_greeted());
    plain.says([query("SELECT")]);
    assert_eq!(server.heard(), "Q(SELECT)");
    server.says([done(), ready()]);
    let named = stage.newcomer(NAMED);
    assert!(named.is_greeted());
    named.says([query("INSERT")]);
    assert_eq!(server.heard(), SET);
    assert_eq!(stage.clients().last(), Some(&ClientState::Active));
    server.says([notice()]);
    assert_eq!(named.heard(), "", "what is set is no matter of the client's");
    server.says([one_row("it")]);
    assert_eq!(server.heard(), "Q(INSERT)");
    server.says([done(), ready()]);
    assert_eq!(named.heard(), "C Z");
}

/// A round trip for each transaction is saved where there is a server that fits.
#[test]
fn a_server_that_fits_is_lent_before_one_that_was_used_later() {
    let (stage, fits, named) = named(&Setup::of_size(2));
    named.says([query("slow")]);
    assert_eq!(fits.heard(), "Q(slow)");
    let plain = stage.newcomer(&[]);
    let other = stage.server();
    assert!(plain.is_greeted());
    fits.says([done(), ready()]);
    plain.says([query("plain")]);
    assert_eq!(other.heard(), "Q(plain)");
    other.says([done(), ready()]);
    named.says([query("named")]);
    assert_eq!((fits.heard().as_str(), other.heard().as_str()), ("Q(named)", ""));
}

/// PostgreSQL refuses the login of a client whose settings it does not take.
#[test]
fn settings_that_are_wrong_end_the_login() {
    let stage = Stage::new(&Setup::default());
    let client = stage.newcomer(&[("work_mem", "much")]);
    let server = stage.server();
    server.heard();
    server.says([error("22023"), ready()]);
    assert_eq!(client.heard(), "R E(FATAL 22023)");
    assert!(client.is_closed());
    assert_eq!(stage.servers(), [ServerActivity::Idle]);
    // The settings did not come about: the next one needs none to be taken back.
    let plain = stage.newcomer(&[]);
    assert!(plain.is_greeted());
    assert_eq!(server.heard(), "");
}

/// A stage with two clients of which one has settings, and whose only server has refused these
/// settings for a query of that client.
fn refused(setup: &Setup) -> (Stage, Peer, Peer) {
    let (stage, server, named) = named(setup);
    let plain = stage.newcomer(&[]);
    assert_eq!(server.heard(), UNSET);
    server.says([one_row("")]);
    assert!(plain.is_greeted());
    named.says([query("INSERT")]);
    assert_eq!(server.heard(), SET);
    plain.says([query("SELECT")]);
    server.says([error("22023"), ready()]);
    leaves(&server);
    assert_eq!(named.heard(), "");
    (stage, named, plain)
}

/// As [`refused`], and a new server has refused them too. It runs a query of the other client.
fn refused_for_good() -> (Stage, Peer, Peer, Peer) {
    let (stage, named, plain) = refused(&Setup::default());
    let server = stage.server();
    assert_eq!(server.heard(), SET);
    server.says([error("22023"), ready()]);
    assert_eq!(named.heard(), "E(22023) Z");
    assert_eq!(server.heard(), "Q(SELECT)");
    (stage, server, named, plain)
}

/// What others have left on a server may be why it refuses settings, even to go back to none: a
/// statement_timeout, a role, a table for which temp_buffers is fixed.
#[test]
fn a_server_that_was_used_is_replaced_before_settings_are_refused() {
    let (stage, server, _named) = named(&Setup::default());
    let plain = stage.newcomer(&[]);
    assert_eq!(server.heard(), UNSET);
    server.says([error("57014"), ready()]);
    assert_eq!(stage.attempts(), 0, "until it has gone");
    leaves(&server);
    assert_eq!(plain.heard(), "R");
    let new = stage.server();
    assert!(plain.is_greeted());
    assert_eq!((new.heard().as_str(), stage.attempts()), ("", 0));
}

/// Settings that were valid at login may not be so later (a role that was dropped): the unit is
/// not run, its client is told, and the session goes on.
#[test]
fn settings_that_have_become_wrong_answer_the_unit() {
    let (stage, named, _plain) = refused(&Setup::default());
    named.says([query("SELECT")]);
    let server = stage.server();
    assert_eq!(server.heard(), SET);
    server.says([error("22023"), ready()]);
    assert_eq!(named.heard(), "E(22023) Z");
    assert_eq!(server.heard(), "Q(SELECT)", "the other client's turn");
    server.says([done(), ready()]);
    // The query behind it is a unit of its own, and its settings are tried again.
    assert_eq!(server.heard(), SET);
    server.says([one_row("it")]);
    assert_eq!(server.heard(), "Q(SELECT)");
    server.says([done(), ready()]);
    assert_eq!(named.heard(), "C Z");
}

/// What a server says of settings that it refuses comes to their client in full.
#[test]
fn refused_settings_are_told_of_with_detail_and_hint() {
    let (stage, named, _plain) = refused(&Setup::default());
    named.says([query("SELECT")]);
    let server = stage.server();
    assert_eq!(server.heard(), SET);
    let fields = b"SERROR\0VERROR\0C22023\0Mno such zone\0Dthere are others\0Hask for one\0\0";
    server.says([message(b'E', fields), ready()]);
    let said = named.heard_bytes();
    for part in ["Mno such zone\0", "Dthere are others\0", "Hask for one\0"] {
        assert!(said.windows(part.len()).any(|window| window == part.as_bytes()), "{part}");
    }
}

/// A client whose server is replaced has had its turn in the queue.
#[test]
fn a_new_server_goes_to_the_client_that_it_was_opened_for() {
    let (stage, named, plain) = refused(&Setup::default());
    assert_eq!((stage.attempts(), stage.servers()), (1, vec![ServerActivity::Login]));
    let server = stage.server();
    assert_eq!(server.heard(), SET);
    server.says([one_row("it")]);
    assert_eq!(server.heard(), "Q(INSERT)");
    server.says([done(), ready()]);
    assert_eq!((named.heard().as_str(), plain.heard().as_str()), ("C Z", ""));
    assert_eq!(server.heard(), UNSET);
}

#[test]
fn who_waits_for_a_new_server_that_cannot_be_had_keeps_its_place() {
    let (stage, named, plain) = refused(&Setup::default());
    stage.refuse_server();
    assert_eq!((stage.attempts(), stage.servers()), (0, vec![]));
    stage.wait(Duration::from_millis(100));
    let server = stage.server();
    assert_eq!((server.heard().as_str(), plain.heard().as_str()), (SET, ""));
    server.says([one_row("it")]);
    assert_eq!(server.heard(), "Q(INSERT)");
    server.says([done(), ready()]);
    assert_eq!(named.heard(), "C Z");
}

/// While no new ones can be had, the servers that there are must not go one after the other because
/// of one client. It is told what a connection of its own would tell it.
#[test]
fn settings_cost_no_server_while_new_ones_cannot_be_had() {
    let (stage, first, named) = named(&Setup::of_size(2));
    named.says([query("slow")]);
    assert_eq!(first.heard(), "Q(slow)");
    let plain = stage.newcomer(&[]);
    let second = stage.server();
    assert!(plain.is_greeted());
    first.says([done(), ready()]);
    let other = stage.newcomer(&[("application_name", "other")]);
    assert!(first.heard().starts_with("Q(SELECT ARRAY["));
    first.says([error("22023"), ready()]);
    leaves(&first);
    assert_eq!(second.heard(), "");
    stage.refuse_server();
    assert!(second.heard().starts_with("Q(SELECT ARRAY["));
    second.says([error("22023"), ready()]);
    assert_eq!(other.heard(), "R E(FATAL 57P03)");
    assert_eq!((second.is_open(), stage.servers()), (true, vec![ServerActivity::Idle]));
}

/// One logs in with settings that a server refuses which others have had.
fn odd(stage: &Stage, server: &Peer) -> Peer {
    let odd = stage.newcomer(&[("application_name", "odd")]);
    refuses(server);
    odd
}

fn refuses(server: &Peer) {
    assert!(server.heard().starts_with("Q(SELECT ARRAY["));
    server.says([error("22023"), ready()]);
}

/// A pool of two with a server that is free, where the last attempt to make another has failed.
fn failed() -> (Stage, Peer) {
    let (stage, mut servers, clients) = busy(&Setup::of_size(2), 2);
    finishes(&servers[0], &clients[0]);
    let odd = odd(&stage, &servers[0]);
    leaves(&servers[0]);
    stage.refuse_server();
    odd.breaks();
    finishes(&servers[1], &clients[1]);
    (stage, servers.remove(1))
}

/// That the last attempt failed may be long ago: a new one is made beside the servers that there
/// are, and none of them is given up for it.
#[test]
fn settings_cost_no_server_after_an_attempt_that_failed() {
    let (stage, server) = failed();
    for _ in 0..5 {
        stage.wait(Duration::from_secs(10));
        let odd = odd(&stage, &server);
        assert_eq!((odd.heard().as_str(), stage.servers().len()), ("R", 2));
        stage.refuse_server();
        refuses(&server);
        assert_eq!(odd.heard(), "E(FATAL 57P03)");
        assert_eq!(stage.servers(), [ServerActivity::Idle]);
    }
}

/// Nor is there one more than there may be, long after that.
#[test]
fn settings_cost_a_server_and_make_no_more_long_after_an_attempt_that_failed() {
    let (stage, server) = failed();
    stage.reload(&Setup::of_size(1));
    stage.wait(Duration::from_secs(25));
    let _odd = odd(&stage, &server);
    assert_eq!(stage.attempts(), 0, "it makes way first");
    leaves(&server);
    assert_eq!(stage.attempts(), 1);
}

/// What an attempt has failed of would end a login; a unit hears it as an error of its own.
#[test]
fn a_unit_hears_why_no_server_can_be_had_for_its_settings() {
    let (stage, server, named) = named(&Setup::of_size(2));
    let plain = stage.newcomer(&[]);
    server.says([one_row("")]);
    plain.says([query("slow")]);
    stage.newcomer(&[]).says([query("SELECT")]);
    stage.bare_server().says([fatal("53300")]);
    server.says([done(), ready()]);
    server.says([done(), ready()]);
    named.says([query("INSERT")]);
    assert!(server.heard().ends_with(SET));
    server.says([error("22023"), ready()]);
    assert_eq!(named.heard(), "E(53300) Z");
}

/// Perhaps servers die of it: the third is not asked for at once.
#[test]
fn whoever_loses_two_servers_waits_for_the_next() {
    let (stage, server, named) = named(&Setup::default());
    let plain = stage.newcomer(&[]);
    server.says([one_row("")]);
    assert!(plain.is_greeted());
    named.says([query("INSERT")]);
    server.ends();
    let second = stage.server();
    assert_eq!(second.heard(), SET);
    second.ends();
    assert_eq!(stage.attempts(), 0);
    stage.wait(Duration::from_millis(100));
    assert_eq!(stage.attempts(), 1);
}

/// A server that was promised to it and did not come counts, too.
#[test]
fn a_promise_that_is_broken_counts_as_a_lost_server() {
    let (stage, named, _plain) = refused(&Setup::default());
    stage.refuse_server();
    stage.wait(Duration::from_millis(100));
    let server = stage.server();
    assert_eq!(server.heard(), SET);
    server.ends();
    assert_eq!((named.heard().as_str(), stage.attempts()), ("", 0));
    stage.wait(Duration::from_millis(100));
    assert_eq!(stage.attempts(), 1);
}

/// A reload may have left no place for the one that is to come for a server that goes.
#[test]
fn a_server_that_goes_makes_no_place_in_a_pool_that_is_full() {
    let (stage, servers, clients) = busy(&Setup::of_size(2), 2);
    let odd = stage.newcomer(&[("application_name", "odd")]);
    finishes(&servers[0], &clients[0]);
    servers[0].heard();
    servers[0].says([error("22023"), ready()]);
    stage.reload(&Setup::default());
    leaves(&servers[0]);
    assert_eq!(stage.attempts(), 0);
    finishes(&servers[1], &clients[1]);
    assert!(servers[1].heard().starts_with("Q(SELECT ARRAY["));
    servers[1].says([one_row("odd")]);
    assert!(odd.is_greeted());
}

/// DISCARD ALL takes back what a client has left, whatever the reset query of sessions is, and the
/// settings of its login with it.
#[test]
fn what_is_discarded_is_not_believed_to_be_set() {
    let (stage, server, named) = named(&Setup { reset_query: "", ..Setup::default() });
    named.says([query("SELECT pg_advisory_lock(1)")]);
    server.says([done(), ready(), left("a")]);
    named.says([terminate()]);
    server.says([done(), ready()]);
    server.heard();
    stage.newcomer(NAMED).says([query("SELECT")]);
    assert_eq!(server.heard(), SET);
}

/// A server that was opened for the queue is new as well: nobody has to make place for one.
#[test]
fn settings_are_asked_of_a_server_that_is_under_way() {
    let (stage, servers, clients) = busy(&Setup::of_size(2), 1);
    let odd = stage.newcomer(&[("application_name", "odd")]);
    assert_eq!(stage.attempts(), 1);
    finishes(&servers[0], &clients[0]);
    assert!(servers[0].heard().starts_with("Q(SELECT ARRAY["));
    servers[0].says([error("22023"), ready()]);
    assert_eq!((servers[0].heard().as_str(), stage.attempts()), ("", 1));
    let new = stage.server();
    assert!(new.heard().starts_with("Q(SELECT ARRAY["));
    new.says([one_row("odd")]);
    assert!(odd.is_greeted());
}

/// A client that asks again and again for what no server takes costs a server each time.
#[test]
fn settings_that_a_new_server_has_refused_cost_no_other_for_a_while() {
    let (stage, server, named, plain) = refused_for_good();
    for _ in 0..3 {
        server.says([done(), ready()]);
        plain.heard();
        named.says([query("INSERT")]);
        assert_eq!(server.heard(), SET);
        plain.says([query("SELECT")]);
        server.says([error("57014"), ready()]);
        assert_eq!(named.heard(), "E(22023) Z", "what the new one said");
        assert_eq!((server.heard().as_str(), stage.attempts()), ("Q(SELECT)", 0));
    }
    // What has changed meanwhile another new one would say.
    stage.wait(Duration::from_secs(6));
    server.says([done(), ready()]);
    named.says([query("INSERT")]);
    assert_eq!(server.heard(), SET);
    server.says([error("22023"), ready()]);
    leaves(&server);
    assert_eq!(stage.attempts(), 1);
}

/// What a server takes after all was not to be refused.
#[test]
fn settings_that_a_server_takes_again_are_not_remembered_as_refused() {
    let (stage, server, named, _plain) = refused_for_good();
    server.says([done(), ready()]);
    named.says([query("INSERT")]);
    assert_eq!(server.heard(), SET);
    server.says([one_row("it")]);
    assert_eq!(server.heard(), "Q(INSERT)");
    server.says([done(), ready()]);
    let plain = stage.newcomer(&[]);
    assert!(plain.is_greeted());
    plain.says([query("SELECT")]);
    assert_eq!(server.heard(), UNSET);
    server.says([one_row("")]);
    assert_eq!(server.heard(), "Q(SELECT)");
    server.says([done(), ready()]);
    named.says([query("INSERT")]);
    assert_eq!(server.heard(), SET);
    server.says([error("57014"), ready()]);
    leaves(&server);
    assert_eq!(stage.attempts(), 1);
}

/// Who waits behind a client whose server is replaced is not served by the new one: where there is
/// room it gets one of its own at once.
#[test]
fn a_server_that_is_promised_is_not_counted_for_the_queue() {
    let (stage, servers, clients) = busy(&Setup::of_size(2), 1);
    let odd = stage.newcomer(&[("application_name", "odd")]);
    finishes(&servers[0], &clients[0]);
    assert!(servers[0].heard().starts_with("Q(SELECT ARRAY["));
    // What was opened for it meanwhile goes at once.
    stage.server().ends();
    servers[0].says([error("22023"), ready()]);
    leaves(&servers[0]);
    assert_eq!(stage.attempts(), 1);
    clients[0].says([query("SELECT")]);
    assert_eq!((stage.attempts(), odd.heard().as_str()), (2, "R"));
}

/// One that does not go is cut off.
#[test]
fn a_server_that_does_not_leave_in_time_is_replaced() {
    let (stage, server, _named) =
        named(&Setup::with("connect_timeout = 2000\nquery_wait_timeout = 5000"));
    let plain = stage.newcomer(&[]);
    assert_eq!(server.heard(), UNSET);
    server.says([error("57014"), ready()]);
    stage.wait(Duration::from_millis(1_900));
    assert_eq!((server.heard().as_str(), stage.attempts()), ("X", 0));
    stage.wait(Duration::from_millis(200));
    assert!(server.is_aborted());
    stage.server();
    assert!(plain.is_greeted());
}

/// Of those that are made at a time a new server for somebody is one.
#[test]
fn a_server_in_the_place_of_another_waits_for_those_that_are_being_made() {
    let setup = Setup { others: &["east"], ..Setup::with("connect_parallelism = 1") };
    let (stage, server, _named) = named(&setup);
    let plain = stage.newcomer(&[]);
    assert_eq!(server.heard(), UNSET);
    server.says([error("57014"), ready()]);
    let east = stage.newcomer_to("east");
    assert_eq!(stage.attempts(), 1);
    leaves(&server);
    assert_eq!(stage.attempts(), 1);
    stage.server();
    assert!(east.is_greeted());
    assert_eq!(stage.attempts(), 1);
    stage.server();
    assert!(plain.is_greeted());
}

/// Nor does its client wait for that any longer than others wait for a server.
#[test]
fn who_waits_for_a_server_to_leave_is_told_in_time() {
    let (stage, server, _named) = named(&Setup::with("query_wait_timeout = 2000"));
    let plain = stage.newcomer(&[]);
    assert_eq!(server.heard(), UNSET);
    server.says([error("57014"), ready()]);
    stage.wait(Duration::from_millis(1_900));
    assert_eq!((server.heard().as_str(), plain.heard().as_str()), ("X", "R"));
    stage.wait(Duration::from_millis(200));
    assert_eq!(plain.heard(), "E(FATAL 57P03)");
}

/// Nobody is left to replace it for: whoever waits gets what comes.
#[test]
fn a_server_may_leave_after_the_client_that_it_leaves_for() {
    let (stage, server, _named) = named(&Setup::default());
    let odd = stage.newcomer(&[]);
    assert_eq!(server.heard(), UNSET);
    server.says([error("57014"), ready()]);
    odd.breaks();
    leaves(&server);
    assert_eq!((stage.attempts(), stage.servers()), (0, vec![]));
    let (stage, server, _named) = named(&Setup::default());
    let odd = stage.newcomer(&[]);
    assert_eq!(server.heard(), UNSET);
    server.says([error("57014"), ready()]);
    let plain = stage.newcomer(&[]);
    odd.breaks();
    leaves(&server);
    assert_eq!((stage.server().heard().as_str(), stage.attempts()), ("", 0));
    assert!(plain.is_greeted());
}

/// So many servers, on each of which a client without settings has a query running.
fn busy(setup: &Setup, count: usize) -> (Stage, Vec<Peer>, Vec<Peer>) {
    let stage = Stage::new(setup);
    let (mut servers, mut clients) = (Vec::new(), Vec::new());
    for n in 0..count {
        let client = stage.newcomer(&[]);
        client.says([query("slow")]);
        let server = stage.server();
        assert!(client.is_greeted(), "client {n}");
        assert_eq!(server.heard(), "Q(slow)");
        servers.push(server);
        clients.push(client);
    }
    (stage, servers, clients)
}

/// It was told to go, and goes.
#[track_caller]
fn leaves(server: &Peer) {
    assert_eq!((server.heard().as_str(), server.is_open()), ("X", true));
    server.ends();
}

/// A client's query is answered.
#[track_caller]
fn finishes(server: &Peer, client: &Peer) {
    server.says([done(), ready()]);
    assert_eq!(client.heard(), "C Z");
}

/// Whoever needs a server takes what was opened for a client that does not need it any more.
#[test]
fn a_server_that_is_opened_for_a_client_is_anybodys_once_that_is_gone() {
    let (stage, named, plain) = refused(&Setup::default());
    named.breaks();
    let server = stage.server();
    assert_eq!(server.heard(), "Q(SELECT)");
    server.says([done(), ready()]);
    assert_eq!(plain.heard(), "C Z");

    let (stage, named, _plain) = refused(&Setup::default());
    assert!(stage.cancel(&named).is_closed());
    assert_eq!(named.heard(), "E(57014) Z");
    assert_eq!(stage.server().heard(), "Q(SELECT)");
}

/// Nothing of the client's was sent: it need not know.
#[test]
fn a_server_lost_while_it_is_prepared_is_replaced() {
    let (stage, server, named) = named(&Setup::default());
    let plain = stage.newcomer(&[]);
    server.says([one_row("")]);
    assert!(plain.is_greeted());
    named.says([query("INSERT")]);
    server.ends();
    let next = stage.server();
    assert_eq!(next.heard(), SET);
    next.says([one_row("it")]);
    assert_eq!(next.heard(), "Q(INSERT)");
    next.says([done(), ready()]);
    assert_eq!(named.heard(), "C Z");
}

/// The login waited for a server that was gone, for ever.
#[test]
fn a_server_lost_while_it_is_prepared_for_a_greeting_is_replaced() {
    let stage = Stage::new(&Setup::default());
    let client = stage.newcomer(NAMED);
    let server = stage.server();
    assert_eq!(server.heard(), SET);
    server.ends();
    let next = stage.server();
    assert_eq!(next.heard(), SET);
    next.says([one_row("it")]);
    assert!(client.is_greeted());
}

/// Our own short statement gets no more time than a login.
#[test]
fn a_server_that_is_not_prepared_in_time_is_replaced() {
    let stage = Stage::new(&Setup::with("connect_timeout = 2000\nquery_wait_timeout = 5000"));
    let client = stage.newcomer(NAMED);
    let hung = stage.server();
    stage.wait(Duration::from_millis(1_900));
    assert!(hung.is_open());
    stage.wait(Duration::from_millis(200));
    assert!(hung.is_aborted());
    let next = stage.server();
    next.says([one_row("it")]);
    assert!(client.is_greeted());
}

/// The server is what it was set to, whoever that was for.
#[test]
fn who_leaves_while_its_server_is_prepared_leaves_a_server_that_fits_others() {
    let (stage, server, named) = named(&Setup::default());
    let plain = stage.newcomer(&[]);
    server.says([one_row("")]);
    assert!(plain.is_greeted());
    named.says([query("INSERT")]);
    named.breaks();
    server.heard();
    server.says([one_row("it")]);
    assert_eq!((server.heard().as_str(), stage.servers()), ("", vec![ServerActivity::Idle]));
    stage.newcomer(NAMED).says([query("SELECT")]);
    assert_eq!(server.heard(), "Q(SELECT)");
}

/// The next client must not inherit the settings of a session.
#[test]
fn settings_of_a_session_are_gone_with_it() {
    let (stage, server, named) = named(&Setup::of_mode("session"));
    named.says([query("SELECT")]);
    server.says([done(), ready()]);
    named.says([terminate()]);
    assert_eq!(server.heard(), "Q(SELECT) Q(DISCARD ALL)");
    server.says([done(), ready()]);
    let plain = stage.newcomer(&[]);
    assert!(plain.is_greeted());
    plain.says([query("SELECT")]);
    assert_eq!(server.heard(), "Q(SELECT)");
}

/// What a reset query does to settings it does not say: it finds none.
#[test]
fn settings_of_a_session_are_taken_back_before_a_reset_query_of_the_operators() {
    for reset_query in ["RESET ALL", "CLOSE ALL", "SET application_name = 'x'"] {
        let (stage, server, named) = session_is_over(reset_query);
        assert_eq!(server.heard(), UNSET);
        server.says([parameter_status("application_name", ""), one_row("")]);
        assert_eq!(server.heard(), format!("Q({reset_query})"));
        server.says([done(), ready()]);
        drop(named);
        let next = stage.newcomer(NAMED);
        assert!(next.is_greeted());
        next.says([query("SELECT")]);
        assert_eq!(server.heard(), SET, "behind {reset_query}");
    }
}

/// The default, however it is written: DISCARD ALL takes settings back, and needs no other
/// statement for it.
#[test]
fn a_reset_query_that_takes_settings_back_runs_alone() {
    for reset_query in ["DISCARD ALL", " discard all ; "] {
        let (_stage, server, _named) = session_is_over(reset_query);
        assert_eq!(server.heard(), format!("Q({reset_query})"));
    }
}

/// It might refuse as well what sets it for the next client.
#[test]
fn a_server_that_does_not_give_up_settings_is_not_used_again() {
    let (stage, server, _named) = session_is_over("RESET ALL");
    assert_eq!(server.heard(), UNSET);
    server.says([error("57014"), ready()]);
    assert_eq!((server.heard().as_str(), stage.servers()), ("X", vec![]));
}

/// Without a reset query everything stays, settings as well.
#[test]
fn settings_of_a_session_outlive_it_where_nothing_is_reset() {
    let (stage, server, _named) = session_is_over("");
    assert_eq!((server.heard().as_str(), stage.servers()), ("", vec![ServerActivity::Idle]));
    stage.newcomer(NAMED).says([query("SELECT")]);
    assert_eq!(server.heard(), "Q(SELECT)");
}

/// A session with settings, which has sent a query and left, in a pool with this reset query.
fn session_is_over(reset_query: &'static str) -> (Stage, Peer, Peer) {
    let (stage, server, named) = named(&Setup { reset_query, ..Setup::of_mode("session") });
    named.says([query("SELECT")]);
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "Q(SELECT)");
    named.says([terminate()]);
    (stage, server, named)
}

/// A new version of PostgreSQL speaks another dialect: what was remembered of the old one is
/// forgotten.
#[test]
fn greetings_are_forgotten_when_the_server_has_another_version() {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    server.ends();
    alice.says([query("SELECT")]);
    let newer = stage.bare_server();
    let welcome = stage.welcome(&newer);
    let old = parameter_status("server_version", "15.1");
    let new = parameter_status("server_version", "16.0");
    let at = welcome.windows(old.len()).position(|bytes| bytes == old).expect("a version");
    newer.says([&welcome[..at], &new, &welcome[at + old.len()..]]);
    assert_eq!(newer.heard(), "Q(SELECT)");
    newer.says([done(), ready()]);
    let bob = stage.newcomer(&[]);
    assert_eq!(bob.heard(), "R S(server_version=16.0) K Z");
}

/// A server that dies of a client's settings was tried for ever, as fast as connections are made.
#[test]
fn settings_that_kill_their_server_end_the_wait() {
    let (stage, server, named) = named(&Setup::default());
    server.ends();
    named.says([query("x")]);
    for _ in 0..40 {
        stage.wait(Duration::from_secs(1));
        let told = named.heard();
        if !told.is_empty() {
            assert_eq!(told, "E(53300) Z");
            return;
        }
        let next = stage.server();
        assert_eq!(next.heard(), SET);
        next.ends();
    }
    panic!("40 servers died and it was not told");
}

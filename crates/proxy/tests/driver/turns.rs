//! What is ready together: units go to servers, and output goes out, at the end of a turn, and
//! whatever comes before that must find them as good as done.

use crate::messages::{columns, done, one_row, query, ready, row, terminate};
use crate::peer::Peer;
use crate::stage::{Setup, Stage};

/// Bob waits for the server that alice has; the turn in which she is done is not over.
fn granted() -> (Stage, Peer, Peer, Peer) {
    let (stage, server, alice) = Stage::ready(&Setup::default());
    let bob = stage.client();
    alice.says([query("a")]);
    bob.says([query("b")]);
    assert_eq!(server.heard(), "Q(a)");
    stage.keep_turn_open();
    server.says([done(), ready()]);
    assert_eq!(server.heard(), "");
    (stage, server, alice, bob)
}

/// Four clients and their four servers, which have so much to say in each turn that it is gathered.
struct Crowd {
    stage: Stage,
    clients: Vec<Peer>,
    servers: Vec<Peer>,
}

impl Crowd {
    fn new() -> Self {
        let stage = Stage::new(&Setup::of_size(4));
        let clients: Vec<_> = (0..4).map(|_| stage.newcomer(&[])).collect();
        let first = stage.server();
        clients.iter().for_each(|client| client.says([query("")]));
        let servers = std::iter::once(first).chain((1..4).map(|_| stage.server())).collect();
        assert!(clients.iter().all(Peer::is_greeted));
        let crowd = Self { stage, clients, servers };
        crowd.answer();
        for _ in 0..4 {
            crowd.ask();
            crowd.answer();
        }
        crowd
    }

    /// Each client asks, in one turn, by its number.
    fn ask(&self) {
        self.stage.keep_turn_open();
        for (number, client) in self.clients.iter().enumerate() {
            client.says([query(&number.to_string())]);
        }
        self.stage.end_turn();
    }

    /// Each server answers, in one turn.
    fn answer(&self) {
        self.stage.keep_turn_open();
        self.servers.iter().for_each(|server| server.says([done(), ready()]));
        self.stage.end_turn();
        assert!(self.clients.iter().all(|client| client.heard() == "C Z"));
        self.servers.iter().for_each(|server| assert!(server.heard().starts_with("Q(")));
    }

    /// A turn begins behind one in which each client has asked. The first client and its server.
    fn much_to_say(&self) -> (&Peer, &Peer) {
        self.ask();
        let server = self.servers.iter().find(|server| server.heard() == "Q(0)");
        self.stage.keep_turn_open();
        (&self.clients[0], server.expect("it was asked"))
    }
}

#[test]
fn the_end_of_a_turn_sends_what_was_gathered() {
    let crowd = Crowd::new();
    crowd.stage.keep_turn_open();
    crowd.clients.iter().for_each(|client| client.says([query("a")]));
    assert!(crowd.servers.iter().all(|server| server.heard().is_empty()), "all goes out together");
    crowd.stage.end_turn();
    assert!(crowd.servers.iter().all(|server| server.heard() == "Q(a)"));
}

/// Servers have work to do while the clients' replies go out.
#[test]
fn servers_are_written_to_before_clients() {
    let crowd = Crowd::new();
    let next: Vec<_> = (0..4).map(|_| crowd.stage.client()).collect();
    for _ in 0..4 {
        crowd.ask();
        crowd.answer();
    }
    crowd.ask();
    next.iter().for_each(|client| client.says([query("next")]));
    crowd.answer();
    assert_eq!(crowd.stage.written_together(), "QQQQCCCC");
    crowd.servers.iter().for_each(|server| server.says([done(), ready()]));
    assert!(next.iter().all(|client| client.heard() == "C Z"));
}

/// Nobody waits for the end of a turn in which there is little to send; nor for good in one mode.
#[test]
fn what_few_have_to_say_goes_out_at_once() {
    let crowd = Crowd::new();
    let (alice, server) = crowd.much_to_say();
    server.says([columns(), row(b"1")]);
    assert_eq!(alice.heard(), "", "there was much to send before");
    crowd.stage.end_turn();
    assert_eq!(alice.heard(), "T D(1)");
    crowd.stage.keep_turn_open();
    server.says([done(), ready()]);
    assert_eq!(alice.heard(), "C Z");
    crowd.stage.end_turn();
}

/// The unit was not sent: a cancel must not pass it by and let it run.
#[test]
fn a_cancel_finds_a_unit_that_is_about_to_be_sent() {
    let (stage, server, alice, bob) = granted();
    let requester = stage.cancel(&bob);
    stage.end_turn();
    assert!(requester.is_closed());
    assert_eq!((alice.heard().as_str(), bob.heard().as_str()), ("C Z", "E(57014) Z"));
    assert_eq!(server.heard(), "", "what was cancelled is not run");
    bob.says([query("again")]);
    assert_eq!(server.heard(), "Q(again)");
}

/// The unit was taken: a client that is asked to leave leaves behind it.
#[test]
fn a_unit_that_is_about_to_be_sent_is_run_before_its_client_is_asked_to_leave() {
    let (stage, server, alice, bob) = granted();
    stage.drain();
    stage.end_turn();
    assert_eq!(alice.heard(), "C Z E(FATAL 57P01)");
    assert_eq!(server.heard(), "Q(b)");
    server.says([done(), ready()]);
    assert_eq!(bob.heard(), "C Z E(FATAL 57P01)");
}

/// Whoever waits next gets the server of a client that is gone before its unit was sent.
#[test]
fn a_client_that_is_gone_before_its_unit_is_sent_leaves_the_server_clean() {
    let (stage, server, alice, bob) = granted();
    bob.breaks();
    alice.says([query("next")]);
    stage.end_turn();
    assert_eq!((server.heard().as_str(), alice.heard().as_str()), ("Q(next)", "C Z"));
}

/// Its bytes were written before it left, as far as anybody can tell.
#[test]
fn a_client_that_leaves_gets_what_was_gathered_for_it() {
    let crowd = Crowd::new();
    let (alice, server) = crowd.much_to_say();
    server.says([one_row("1")]);
    assert_eq!(alice.heard(), "");
    alice.says([terminate()]);
    assert_eq!(alice.heard(), "T D(1) C Z");
    assert!(alice.is_closed());
    crowd.stage.end_turn();
}

/// What is long does not wait for the end of the turn, but for what was gathered before it; and
/// nothing is sent twice.
#[test]
fn long_and_short_output_keep_their_order() {
    let crowd = Crowd::new();
    let (alice, server) = crowd.much_to_say();
    let pieces = [columns(), row(&[b'x'; 10_000]), row(b"y"), row(&[b'z'; 10_000])];
    for piece in &pieces {
        server.says([piece]);
    }
    server.says([done(), ready()]);
    crowd.stage.end_turn();
    let heard = alice.heard_bytes();
    assert!(heard == [pieces.concat(), done(), ready()].concat(), "{} bytes", heard.len());
}

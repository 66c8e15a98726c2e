//! Peers that vanish without a word, as a host does that loses its power: what they kept from
//! others comes back, long before the kernel itself gives up on them after some 15 minutes.

use std::io::Read;
use std::net::TcpStream;

use pgweir_testkit::frames::query;
use pgweir_testkit::{Message, PoolerConfig};
use socket2::{SockFilter, SockRef};

use crate::stage::{self, CLUSTER, Stage};
use crate::stand_in::StandIn;

/// From now on no segment that is sent to this socket arrives, and so none is acknowledged. What
/// it has sent must have been acknowledged before: a host that is gone repeats nothing.
fn vanish(stream: &TcpStream) {
    // BPF_RET | BPF_K: of every segment zero bytes are let through.
    let nothing = [SockFilter::new(0x06, 0, 0, 0)];
    SockRef::from(stream).attach_filter(&nothing).unwrap();
}

fn impatient(config: PoolerConfig) -> PoolerConfig {
    config.general("tcp_user_timeout", "500")
}

#[test]
fn a_client_that_is_owed_a_reply() {
    // Of a few bytes, and of more than all buffers hold.
    for (name, size) in [("dead_few", 1), ("dead_many", 100_000_000)] {
        let stage = Stage::with(name, 1, impatient);
        stage.ask(&format!("CREATE TABLE t (a int); ALTER TABLE t OWNER TO {name}"));
        let mut lock = stage::superuser(&CLUSTER, name);
        lock.query("SELECT pg_advisory_lock(1)");
        let mut client = stage.client();
        client.query("BEGIN; INSERT INTO t VALUES (1)");
        let notice = "DO $$ BEGIN RAISE NOTICE 'has come'; END $$";
        let select = format!("SELECT repeat('x', {size}) FROM pg_advisory_lock(1)");
        client.send(&query(&format!("{notice}; {select}"))).unwrap();
        assert_eq!(client.read().unwrap().unwrap().tag, b'N');
        stage.wait_for_backends(1, "wait_event = 'advisory'");
        vanish(client.stream());
        lock.query("SELECT pg_advisory_unlock(1)");

        let mut next = stage.client();
        assert_eq!(next.query("SELECT count(*) FROM t"), ["0"]);
        stage.wait_for_backends(0, "state <> 'idle'");
    }
}

#[test]
fn a_client_that_is_owed_nothing() {
    let stage = Stage::with("dead_idle", 1, |config| {
        let config = config.general("tcp_keepalives_idle", "1").general("tcp_user_timeout", "0");
        config.general("tcp_keepalives_interval", "1").general("tcp_keepalives_count", "1")
    });
    let mut client = stage.client();
    client.query("BEGIN");
    vanish(client.stream());
    assert_eq!(stage.client().query("SELECT 'served'"), ["served"]);
}

#[test]
fn a_server_that_owes_a_reply() {
    let stand_in = StandIn::with(impatient);
    let (mut server, mut client) = stand_in.ready();
    client.send(&query("SELECT 1")).unwrap();
    server.read_exact(&mut vec![0; query("SELECT 1").len()]).unwrap();
    vanish(&server);
    client.send(&query("SELECT 2")).unwrap();
    let last_words = client.read_to_end().unwrap();
    assert_eq!(last_words.iter().map(Message::sqlstate).collect::<Vec<_>>(), ["08007"]);
    // The next one gets a new server.
    let mut next = stand_in.newcomer();
    next.read_until_ready().unwrap();
    next.send(&query("SELECT 3")).unwrap();
    let _new = stand_in.server();
}

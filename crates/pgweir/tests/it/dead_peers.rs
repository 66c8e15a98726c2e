//! Peers that vanish without a word, as a host does that loses its power: what they kept from
//! others comes back, long before the kernel itself gives up on them after some 15 minutes.

use std::fs;
use std::io::Read;
use std::net::TcpStream;

use pgweir_testkit::frames::query;
use pgweir_testkit::{Message, PoolerConfig, eventually_some};
use socket2::{SockFilter, SockRef};

use crate::reload::change;
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
        let stage = Stage::with(name, 1, |config| config.general("tcp_user_timeout", "0"));
        change(&stage, "tcp_user_timeout = 0", "tcp_user_timeout = 500");
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

/// In how many seconds the kernel looks after the peer of a connection from one port to another,
/// unless something comes before (`tm->when` in proc_net_tcp.txt).
fn looked_after_in(from: u16, to: u16) -> Option<u32> {
    // The timer that there is where nothing is under way.
    const KEEPALIVE: &str = "02";
    const TICKS: u32 = 100;
    let port = |address: &str| u16::from_str_radix(address.split(':').nth(1)?, 16).ok();
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut its = rows.filter(|row| port(row[1]) == Some(from) && port(row[2]) == Some(to));
    let (kind, when) = its.next()?[5].split_once(':')?;
    let ticks = u32::from_str_radix(when, 16).ok()?;
    (kind == KEEPALIVE).then(|| ticks.div_ceil(TICKS))
}

/// Peers of whom nothing is awaited are looked after by the kernel, as was set when they came.
#[test]
fn idle_peers_are_looked_after() {
    let kernels = fs::read_to_string("/proc/sys/net/ipv4/tcp_keepalive_time").unwrap();
    let kernels: u32 = kernels.trim().parse().unwrap();
    let setting = |seconds: u32| format!("tcp_keepalives_idle = {seconds}\n");
    let stage = Stage::with("dead_idle_server", 1, |config| {
        config.general("tcp_keepalives_idle", "5000").general("worker_threads", "2")
    });
    for (before, now, seconds) in [(5000, 5000, 5000), (5000, 500, 500), (500, 0, kernels)] {
        change(&stage, &setting(before), &setting(now));
        let mut client = stage.client();
        let to_server = client.query("SELECT inet_client_port()").concat().parse().unwrap();
        let its_own = client.stream().local_addr().unwrap().port();
        for (from, to) in [(to_server, CLUSTER.port()), (stage.pgweir.port(), its_own)] {
            let left = eventually_some("its timer", || looked_after_in(from, to));
            assert!((seconds - 60..=seconds).contains(&left), "{now} from {from}: {left}");
        }
        let own = "FROM pg_stat_activity WHERE usename = 'dead_idle_server'";
        stage.ask(&format!("SELECT pg_terminate_backend(pid) {own}"));
        stage.wait_for_idle_servers(0);
    }
}

//! A client that does not read what it asked for holds up nobody else, and costs little memory.
//! Nor does one that never stops sending.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use pgweir_testkit::frames::query;

use crate::stage::Stage;
use crate::usage::{MB, Memory};

/// Holds of a backend that has been busy for several times the `tcp_user_timeout` of these tests.
const FOR_LONG: &str = "query_start < clock_timestamp() - interval '3 s'";

#[test]
fn a_client_that_does_not_read() {
    let stage = impatient("slow_reader");
    let (mut slow, mut other) = (stage.client(), stage.client());
    for client in [&mut slow, &mut other] {
        client.query("SELECT 1");
    }
    let memory = Memory::of(&stage.pgweir);
    // 100 MB in rows, and 100 MB in one row.
    for (sql, rows) in [
        ("SELECT repeat('x', 100000) FROM generate_series(1, 1000)", 1000),
        ("SELECT repeat('x', 100000000)", 1),
    ] {
        slow.send(&query(sql)).unwrap();
        stage.wait_for_backends(1, &format!("wait_event = 'ClientWrite' AND {FOR_LONG}"));
        for _ in 0..100 {
            assert_eq!(other.query("SELECT 'on time'"), ["on time"]);
        }
        let growth = memory.growth();
        assert!(growth < 8 * MB, "{growth} bytes more");
        let reply = slow.read_until_ready().unwrap();
        let values = reply.iter().filter(|message| message.tag == b'D');
        assert_eq!(
            values.map(|row| row.body.len() - 6).collect::<Vec<_>>(),
            vec![100_000_000 / rows; rows]
        );
    }
}

#[test]
fn a_server_that_does_not_read() {
    // A COPY that waits for a lock: what the client sends piles up.
    let stage = impatient("slow_server");
    stage.ask("CREATE TABLE t (a text); ALTER TABLE t OWNER TO slow_server");
    let (mut locker, mut client) = (stage.client(), stage.client());
    locker.query("BEGIN; LOCK TABLE t");
    let memory = Memory::of(&stage.pgweir);
    client.send(&query("COPY t FROM STDIN")).unwrap();
    let line = [&vec![b'x'; 99_999][..], b"\n"].concat();
    let data = pgweir_testkit::frames::copy_data(&line);
    let stream = client.stream().try_clone().unwrap();
    std::thread::scope(|scope| {
        let sender = scope.spawn(move || {
            for _ in 0..1000 {
                std::io::Write::write_all(&mut &stream, &data).unwrap();
            }
        });
        stage.wait_for_backends(1, &format!("wait_event_type = 'Lock' AND {FOR_LONG}"));
        for _ in 0..100 {
            assert_eq!(locker.query("SELECT 'on time'"), ["on time"]);
        }
        let growth = memory.growth();
        assert!(growth < 8 * MB, "{growth} bytes more");
        assert!(!sender.is_finished(), "nobody reads it");
        locker.query("COMMIT");
    });
    client.send(&pgweir_testkit::frames::copy_done()).unwrap();
    let reply = client.read_until_ready().unwrap();
    assert_eq!(reply[1].to_string(), "CommandComplete \"COPY 1000\"");
}

#[test]
fn a_client_that_does_not_stop() {
    let stage = Stage::new("flood", 1);
    let mut other = stage.client();
    // No message begins like this: each is sent away, and sends on.
    let flood = vec![b'!'; 1_000_000];
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Relaxed) {
                    let mut client = stage.client();
                    while !over.load(Relaxed) {
                        if client.send(&flood).is_err() {
                            break;
                        }
                    }
                }
            });
        }
        let mut is_served =
            || other.send(&query("SELECT")).is_ok() && other.read_until_ready().is_ok();
        let served = (0..1000).all(|_| is_served());
        over.store(true, Relaxed);
        assert!(served);
    });
}

/// A stage where a peer that has vanished is soon taken for gone. Who is slow has not vanished.
fn impatient(name: &str) -> Stage {
    Stage::with(name, 2, |config| config.general("tcp_user_timeout", "500"))
}

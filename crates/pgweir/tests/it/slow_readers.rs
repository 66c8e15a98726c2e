//! A client that does not read what it asked for holds up nobody else, and costs little memory.

use std::fs;

use pgweir_testkit::Pgweir;
use pgweir_testkit::frames::query;

use crate::stage::Stage;

const MB: usize = 1024 * 1024;

#[test]
fn a_client_that_does_not_read() {
    let stage = Stage::new("slow_reader", 2);
    let (mut slow, mut other) = (stage.client(), stage.client());
    for client in [&mut slow, &mut other] {
        client.query("SELECT 1");
    }
    let before = resident(&stage.pgweir);
    // 100 MB in rows, and 100 MB in one row.
    for (sql, rows) in [
        ("SELECT repeat('x', 100000) FROM generate_series(1, 1000)", 1000),
        ("SELECT repeat('x', 100000000)", 1),
    ] {
        slow.send(&query(sql)).unwrap();
        stage.wait_for_backends(1, "wait_event = 'ClientWrite'");
        for _ in 0..100 {
            assert_eq!(other.query("SELECT 'on time'"), ["on time"]);
        }
        let grown = resident(&stage.pgweir).saturating_sub(before);
        assert!(grown < 8 * MB, "{grown} bytes more");
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
    let stage = Stage::new("slow_server", 2);
    stage.ask("CREATE TABLE t (a text); ALTER TABLE t OWNER TO slow_server");
    let (mut locker, mut client) = (stage.client(), stage.client());
    locker.query("BEGIN; LOCK TABLE t");
    let before = resident(&stage.pgweir);
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
        stage.wait_for_backends(1, "wait_event_type = 'Lock'");
        for _ in 0..100 {
            assert_eq!(locker.query("SELECT 'on time'"), ["on time"]);
        }
        let grown = resident(&stage.pgweir).saturating_sub(before);
        assert!(grown < 8 * MB, "{grown} bytes more");
        assert!(!sender.is_finished(), "nobody reads it");
        locker.query("COMMIT");
    });
    client.send(&pgweir_testkit::frames::copy_done()).unwrap();
    let reply = client.read_until_ready().unwrap();
    assert_eq!(reply[1].to_string(), "CommandComplete \"COPY 1000\"");
}

/// Memory of the process, in bytes.
fn resident(pgweir: &Pgweir) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", pgweir.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

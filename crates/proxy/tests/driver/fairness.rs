//! Many clients share few servers: nobody waits much longer than the others.

use std::time::Duration;

use crate::messages::{done, query, ready};
use crate::peer::Peer;
use crate::stage::{Setup, Stage};

const CLIENTS: usize = 10_000;
const SERVERS: usize = 40;
/// Answers that are looked at: the first round only lines the clients up.
const COUNTED: usize = 2 * CLIENTS;

/// A server, and what it is doing for whom until when, in ms.
struct Worker {
    server: Peer,
    busy: Option<(usize, u64)>,
}

/// Every client asks again as soon as it has its answer, and a statement takes 1 to 9 ms.
#[test]
fn ten_thousand_clients_on_forty_servers_wait_alike() {
    let general = "query_wait_timeout = 0\nmax_clients = 20000";
    let stage = Stage::new(&Setup { unchecked: true, general, ..Setup::of_size(SERVERS) });
    let clients: Vec<_> = (0..CLIENTS).map(|_| stage.newcomer(&[])).collect();
    let first = stage.server();
    let asks = |client: usize| clients[client].has_sent(&query(&client.to_string()));
    (0..CLIENTS).for_each(asks);
    stage.wait(Duration::ZERO);
    let others = (1..SERVERS).map(|_| stage.server());
    let servers: Vec<_> = std::iter::once(first).chain(others).collect();
    assert!(clients.iter().all(Peer::is_greeted));
    let mut workers: Vec<_> =
        servers.into_iter().map(|server| Worker { server, busy: None }).collect();

    let mut asked = vec![0; CLIENTS];
    let mut waits = Vec::new();
    let mut dice = 1_u64;
    for now in 0.. {
        let mut answered = Vec::new();
        for worker in &mut workers {
            match worker.busy {
                Some((client, until)) if until <= now => {
                    worker.server.has_sent(&[done(), ready()].concat());
                    answered.push(client);
                    worker.busy = None;
                }
                Some(_) => {}
                None => {
                    let heard = worker.server.heard();
                    let text = heard.strip_prefix("Q(").and_then(|text| text.strip_suffix(')'));
                    let client = text.expect("all are needed all the time").parse().unwrap();
                    dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    worker.busy = Some((client, now + 1 + (dice >> 33) % 9));
                }
            }
        }
        stage.wait(Duration::from_millis(1));
        for client in answered {
            assert_eq!(clients[client].heard(), "C Z");
            waits.push(now - asked[client]);
            asked[client] = now;
            asks(client);
        }
        if waits.len() >= CLIENTS + COUNTED {
            break;
        }
    }
    stage.check();
    let mut waits = waits.split_off(CLIENTS);
    waits.sort_unstable();
    let [p50, p99] = [50, 99].map(|percent| waits[waits.len() * percent / 100]);
    assert!(p99 < 2 * p50, "half wait {p50} ms, one in a hundred {p99} ms");
}

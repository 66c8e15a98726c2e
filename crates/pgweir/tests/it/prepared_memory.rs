//! How much is kept of what clients prepare, and for how long.

use pgweir_testkit::frames::{bind, execute, parse, sync};
use pgweir_testkit::{WireClient, eventually};

use crate::stage::Stage;
use crate::usage::MB;

/// As much as a pool keeps.
const MOST: usize = 64 * MB;

/// What is kept of one statement: the text, its end, and that no type is given.
const BYTES: usize = 14_003;

/// So many of each client: with the last of the clients it is too much.
const EACH: usize = 480;
const CLIENTS: usize = MOST / BYTES / EACH + 1;

fn text(number: usize) -> String {
    let start = format!("SELECT {number} /* ");
    let filling = BYTES - 3 - start.len() - " */".len();
    format!("{start}{} */", "x".repeat(filling))
}

/// A client that has prepared `EACH` statements, from this on.
fn prepared(stage: &Stage, first: usize) -> WireClient {
    let mut client = stage.client();
    for number in first..first + EACH {
        let unit = [parse(&number.to_string(), &text(number), &[]), sync()].concat();
        client.send(&unit).unwrap();
        let reply = client.read_until_ready().unwrap();
        assert_eq!(reply[0].tag, b'1', "{}", reply[0]);
    }
    client
}

fn run(client: &mut WireClient, number: usize) {
    let unit = [bind("", &number.to_string(), &[]), execute("", 0), sync()].concat();
    client.send(&unit).unwrap();
    let reply = client.read_until_ready().unwrap();
    assert_eq!(reply[1].to_string(), format!("DataRow \"{number}\""));
}

/// How many statements are kept, and how many bytes they are.
fn kept(stage: &Stage) -> (usize, usize) {
    let rows = stage.console("SHOW MEM");
    let row = rows.iter().find(|row| row.starts_with("statement_cache|")).unwrap();
    let number = |column| row.split('|').nth(column).unwrap().parse().unwrap();
    (number(2), number(4))
}

#[test]
fn it_is_bounded_and_given_back() {
    const SERVERS: usize = 2;
    const ON_SERVER: usize = 20;
    let stage = Stage::with("prepared_memory", SERVERS as u32, |config| {
        config.general("prepared_statements_cache_size", &ON_SERVER.to_string())
    });
    assert_eq!(kept(&stage), (0, 0));
    let mut clients: Vec<_> = (0..CLIENTS - 1).map(|at| prepared(&stage, at * EACH)).collect();
    let shared = (CLIENTS - 1) * EACH;
    assert_eq!(kept(&stage), (shared, shared * BYTES));
    stage.wait_for_servers_in_use(0);
    // What is too much is on the server of its client alone, which stays with that.
    clients.push(prepared(&stage, shared));
    let full = MOST / BYTES;
    assert!(full < CLIENTS * EACH);
    assert_eq!(kept(&stage), (full, full * BYTES));
    stage.wait_for_servers_in_use(1);
    for (at, client) in clients.iter_mut().enumerate() {
        for number in [0, 1, EACH / 2, EACH - 1] {
            run(client, at * EACH + number);
        }
    }
    drop(clients);
    let last = SERVERS * ON_SERVER;
    eventually("what only clients had to be given back", || kept(&stage).0 <= last);
    stage.wait_for_servers_in_use(0);
    let mut client = prepared(&stage, 0);
    run(&mut client, EACH - 1);
    stage.wait_for_servers_in_use(0);
    assert!((EACH..=EACH + last).contains(&kept(&stage).0));
}

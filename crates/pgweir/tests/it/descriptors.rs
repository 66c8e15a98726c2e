//! A process that has no file descriptor left goes on with those that it has.

use pgweir_testkit::frames::query;
use pgweir_testkit::{Pgweir, WireClient, eventually};

use crate::program::program;
use crate::stage::{self, CLUSTER, PROGRAM};
use crate::usage::descriptors;

const NAME: &str = "descriptors";
const LIMIT: usize = 40;

#[test]
fn running_out_of_descriptors_holds_up_nobody_else() {
    stage::create_database(&CLUSTER, NAME);
    let config = stage::trusting(&CLUSTER, NAME).user(NAME, "", 1);
    let few = format!("exec prlimit --nofile={LIMIT}:{LIMIT} '{PROGRAM}' \"$@\"");
    let pgweir = Pgweir::start(program("few-descriptors", &few), |port| config.text(port));
    let login = stage::login(NAME);
    let mut client = WireClient::login(pgweir.address(), &login).unwrap();
    let before = descriptors(&pgweir);

    // More than there are descriptors for: the kernel takes them, pgweir cannot.
    let mut crowd: Vec<_> = (0..2 * LIMIT)
        .map(|_| {
            let mut client = WireClient::open(pgweir.address()).unwrap();
            client.send(&[login.startup_message(), query("SELECT 'late'")].concat()).unwrap();
            client
        })
        .collect();
    eventually("a client that cannot be taken", || pgweir.log().contains("cannot accept a client"));
    for _ in 0..100 {
        assert_eq!(client.query("SELECT 'on time'"), ["on time"]);
    }

    // When some leave, those behind them get their turn.
    while !crowd.is_empty() {
        for mut served in crowd.drain(..LIMIT / 4) {
            served.read_until_ready().unwrap();
            assert_eq!(served.read_until_ready().unwrap()[1].to_string(), "DataRow \"late\"");
        }
    }
    eventually("all descriptors to be given back", || descriptors(&pgweir) == before);
    stage::assert_sound(&pgweir);
}

//! Many clients share few servers: each gets its turns, however much the others want.
//!
//! Every client has sent all its units beforehand, so that the order of turns is pgweir's doing
//! alone, and not that of a test's threads.

use pgweir_testkit::WireClient;
use pgweir_testkit::frames::query;

use crate::stage::Stage;

/// What a turn takes. A process that is not let run for a while holds up whom it is lent to, and
/// the others go on: a round should take longer than that.
const SECONDS: f64 = 0.001;

/// Who had a turn, in order, while so many clients that want so many turns each share the servers.
fn order_of_turns(stage: &Stage, servers: usize, clients: usize, turns: usize) -> Vec<usize> {
    let name = &stage.name;
    stage.ask(&format!(
        "CREATE TABLE turns (turn serial, who int); ALTER TABLE turns OWNER TO {name}"
    ));
    let mut holders: Vec<_> = (0..servers).map(|_| stage.client()).collect();
    for holder in &mut holders {
        holder.query("BEGIN");
    }
    let line_up = |who| {
        let mut client = stage.client();
        let insert =
            query(&format!("INSERT INTO turns (who) SELECT {who} FROM pg_sleep({SECONDS})"));
        client.send(&insert.repeat(turns)).unwrap();
        client
    };
    let mut clients: Vec<WireClient> = (0..clients).map(line_up).collect();
    stage.wait_for_waiters(clients.len());
    for holder in &mut holders {
        holder.query("COMMIT");
    }
    for client in &mut clients {
        for _ in 0..turns {
            let reply = client.read_until_ready().unwrap();
            assert_eq!(reply[0].to_string(), "CommandComplete \"INSERT 0 1\"");
        }
    }
    let order = stage.ask("SELECT who FROM turns ORDER BY turn");
    order.iter().map(|who| who.parse().unwrap()).collect()
}

#[test]
fn one_server_goes_round() {
    const CLIENTS: usize = 100;
    const TURNS: usize = 5;
    let stage = Stage::with("fair_one", 1, |config| config.pool("query_wait_timeout", "0"));
    let order = order_of_turns(&stage, 1, CLIENTS, TURNS);
    let rounds: Vec<_> = order.chunks(CLIENTS).collect();
    let mut first = rounds[0].to_vec();
    first.sort_unstable();
    assert!(first.iter().copied().eq(0..CLIENTS), "everybody has one turn in a round");
    assert_eq!(rounds.len(), TURNS);
    for round in &rounds {
        assert_eq!(round, &rounds[0]);
    }
}

#[test]
fn few_servers_leave_nobody_behind() {
    const CLIENTS: usize = 400;
    const TURNS: usize = 12;
    const SPREAD: usize = TURNS / 2;
    let stage = Stage::with("fair_few", 4, |config| config.pool("query_wait_timeout", "0"));
    let order = order_of_turns(&stage, 4, CLIENTS, TURNS);

    let mut had = vec![0; CLIENTS];
    let mut last = vec![None; CLIENTS];
    let mut gaps = Vec::new();
    for (now, &who) in order.iter().enumerate() {
        had[who] += 1;
        gaps.extend(last[who].replace(now).map(|before| now - before));
        let spread = had.iter().max().unwrap() - had.iter().min().unwrap();
        assert!(spread <= SPREAD, "{spread} turns more than another after {now}");
    }
    assert_eq!(had, [TURNS; CLIENTS]);
    gaps.sort_unstable();
    let [median, high] = [50, 99].map(|percent| gaps[gaps.len() * percent / 100]);
    assert!(high < 2 * median, "turns of others between two of one's own: {median}, {high}");
}

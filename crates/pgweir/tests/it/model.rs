//! Random sessions of twenty clients on three servers show what sessions of their own would.
//!
//! Each client has a *twin*: a connection straight to PostgreSQL, to another database of the same
//! cluster, which says the same. Every reply is compared, and behind each transaction what the
//! session shows: its settings, temporary tables, cursors, and all that it has prepared. Now and
//! then everybody is looked at, all locks are tried from outside, and all channels are notified.
//!
//! A seed says who says what when; one thread says it, and nothing goes on beside it but what a
//! client sends in one write. So a seed that fails fails again. What it takes to fail is then made
//! as short as can be, and printed.
//!
//! `PGWEIR_MODEL_SEEDS=100..200` runs other seeds than the few of every test run.

mod check;
mod clauses;
mod dice;
mod op;
mod pair;
mod shrink;
mod speaker;
mod world;

use std::env;
use std::ops::Range;

use dice::Dice;
use world::World;

/// Steps of a session that all clients have together.
const STEPS: usize = 300;

/// The seeds of every test run.
const SEEDS: Range<u64> = 4..9;

#[test]
fn a_pooled_session_is_as_one_of_its_own() {
    let seeds = env::var("PGWEIR_MODEL_SEEDS").map_or(SEEDS, |text| {
        let (first, end) = text.split_once("..").expect("PGWEIR_MODEL_SEEDS is as 100..200");
        first.parse().unwrap()..end.parse().unwrap()
    });
    for seed in seeds {
        let pool = PoolOf::of(seed);
        let mut world = World::new(pool);
        let mut dice = Dice::new(seed);
        let mut said = Vec::new();
        let outcome = (0..STEPS)
            .try_for_each(|_| {
                let op = world.next_op(&mut dice);
                said.push(op.clone());
                world.take(&op)
            })
            .and_then(|()| world.finish());
        if let Err(failure) = outcome {
            let transcript = world.transcript();
            drop(world);
            let (short, failure_then) = shrink::shrunk(said, pool);
            panic!(
                "seed {seed}: {failure}\nafter:\n{transcript}\n\
                 in short:\n{short}\nfails with: {failure_then}"
            );
        }
    }
}

/// What the pool of a session is like.
#[derive(Clone, Copy, Debug)]
struct PoolOf {
    /// So many statements that clients have prepared a server keeps: in every third session hardly
    /// any, so that they are closed and made again all the time.
    statements: u32,
    /// In every second session closed statements stand on servers that are shared, though each is
    /// there by itself: `auto` shares nothing where only one client speaks at a time.
    pipelining: &'static str,
}

impl PoolOf {
    fn of(seed: u64) -> Self {
        let statements = if seed.is_multiple_of(3) { 2 } else { 200 };
        let pipelining = if seed.is_multiple_of(2) { "auto" } else { "2x4" };
        Self { statements, pipelining }
    }
}

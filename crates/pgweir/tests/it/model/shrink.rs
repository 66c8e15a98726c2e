use super::PoolOf;
use super::op::Op;
use super::world::World;

/// So many sessions are tried at most.
const TRIES: usize = 120;

/// As few of these steps as are found that fail too, a line for each, and how they fail.
pub(super) fn shrunk(mut steps: Vec<Op>, pool: PoolOf) -> (String, String) {
    let mut failure = String::from("nothing, when it is run once more");
    let mut tries = 0;
    let mut size = steps.len();
    match fails(&steps, pool) {
        Some(how) => failure = how,
        None => size = 0,
    }
    while size > 0 {
        let mut from = 0;
        while from < steps.len() && tries < TRIES {
            let mut fewer = steps.clone();
            fewer.drain(from..(from + size).min(steps.len()));
            tries += 1;
            match fails(&fewer, pool) {
                Some(how) => (steps, failure) = (fewer, how),
                None => from += size,
            }
        }
        size /= 2;
    }
    let lines = steps.iter().map(|step| format!("  {step}\n")).collect();
    (lines, failure)
}

fn fails(steps: &[Op], pool: PoolOf) -> Option<String> {
    let mut world = World::new(pool);
    let done = steps.iter().try_for_each(|step| world.take(step)).and_then(|()| world.finish());
    done.err()
}

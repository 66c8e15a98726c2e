use super::{Aim, Heard, LATE_US, Request, World};
use crate::client::Client;
use crate::faults::Faults;
use crate::network::WireId;
use crate::run::Options;
use crate::trace::Trace;

/// A simulation in which nothing fails, and a client's connection where this goes on.
fn world(is_wished: fn(Aim) -> bool) -> (World, WireId) {
    let options = Options { faults: Some(Faults::NONE), ..Options::default() };
    for seed in 0..100 {
        let trace = Trace::new(false, false);
        let mut world = World::new(seed, &options, trace).expect("its configuration is right");
        while world.seats_taken > 0 && world.step().is_ok() {
            let late = world.now() > 2 * LATE_US && world.site.ledger.failure().is_none();
            let mut wires = (0..world.wires.len()).map(WireId).filter(|_| late);
            if let Some(of) = wires.find(|of| world.aim(*of).is_some_and(is_wished)) {
                return (world, of);
            }
        }
    }
    panic!("no seed has it");
}

/// What is found when that was asked to end so long ago, and nothing has come since.
fn failure_behind(world: &mut World, of: WireId, micros: u64) -> Option<String> {
    let aim = world.aim(of).expect("it goes on");
    let contact = world.client_on(of).map(Client::last_contact).expect("it is there");
    let heard = Some(Heard { at: world.now() - micros, aim, contact });
    // Whoever has brought it was told nothing.
    let request = world.site.ledger.cancel_asked(0);
    world.send_cancel(
        of,
        request,
        &pgweir_wire::CancelKey { process_id: 0, secret: [0; 4].into() },
    );
    world.requests.retain(|its| its.of == of && its.heard.is_none());
    let by = world.requests.pop().expect("it was noted").by;
    world.requests.push(Request { by, of, heard });
    world.check_cancels();
    world.site.ledger.failure()
}

fn runs(aim: Aim) -> bool {
    matches!(aim, Aim::Running(..))
}

#[test]
fn what_runs_on_is_seen_in_time() {
    let (mut world, of) = world(runs);
    assert_eq!(failure_behind(&mut world, of, LATE_US), None);
    let failure = failure_behind(&mut world, of, LATE_US + 1).expect("it is late");
    assert!(failure.starts_with("CancelArrives: c"), "{failure}");
}

#[test]
fn what_waits_on_is_seen_while_no_server_stands_still() {
    let (mut world, of) = world(|aim| aim == Aim::Waiting);
    let failure = failure_behind(&mut world, of, LATE_US + 1).expect("it is late");
    assert!(failure.starts_with("CancelArrives: what w"), "{failure}");
    world.site.frozen_until = world.now();
    assert_eq!(failure_behind(&mut world, of, LATE_US + 1), None);
}

#[test]
fn one_that_has_come_to_its_process_is_not_missed() {
    let (mut world, of) = world(runs);
    let Some(Aim::Running(wire, _)) = world.aim(of) else { panic!("it runs") };
    let process = super::backend(&world.wires[wire.0].outside).expect("it is there");
    let (cluster, id, now) = (process.cluster, process.process_id, world.now());
    world.site.ledger.cancelled.insert((cluster, id + 1), now);
    assert!(failure_behind(&mut world, of, LATE_US + 1).is_some());
    world.site.ledger.cancelled.insert((cluster, id), now);
    assert_eq!(failure_behind(&mut world, of, LATE_US + 1), None);
}

#[test]
fn a_server_in_trouble_explains_it() {
    let (mut world, of) = world(runs);
    let Some(Aim::Running(wire, _)) = world.aim(of) else { panic!("it runs") };
    let process = super::backend(&world.wires[wire.0].outside).expect("it is there");
    let cluster = process.cluster;
    world.site.trouble(cluster);
    assert_eq!(failure_behind(&mut world, of, LATE_US + 1), None);
}

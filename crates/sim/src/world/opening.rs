//! What a seed gives, told at the head of its trace.

use super::World;
use crate::topology::Ending;

impl World {
    pub(super) fn note_opening(&mut self) {
        let Self { site, topology, strikes, clusters, seats_taken, seed, .. } = self;
        let (diet, faults, rules) = (&site.diet, &site.faults, &site.rules);
        site.trace.note("seed", || match diet.to_string() {
            without if without.is_empty() => seed.to_string(),
            without => format!("{seed} without {without}"),
        });
        site.trace.note("", || {
            "c1: client 1; b2: the server process on connection 2; w3: connection 3; c1s4: \
             statement 4 of client 1"
        });
        site.trace.note("world", || {
            let (servers, turns) = (topology.clusters, topology.turns);
            let pools = topology.pools.iter();
            let pools = pools.map(|pool| format!("{} of {}", pool.database, pool.user));
            format!(
                "{servers} servers; {seats_taken} clients at a time, {turns} one after the other, \
                 of {}",
                pools.collect::<Vec<_>>().join(", ")
            )
        });
        for (number, cluster) in clusters.iter().enumerate() {
            let room = cluster.room;
            site.trace.note("world", || format!("server {number} says that it has {room:?}"));
        }
        site.trace.note("world", || {
            let on = faults.all().filter(|(_, often)| *often > 0.0);
            let on = on.map(|(name, often)| format!("{name} {often:.4}"));
            format!("what goes wrong: {}", on.collect::<Vec<_>>().join(", "))
        });
        site.trace.note("world", || {
            let strikes = strikes.iter().map(|strike| {
                let (seconds, micros) = (strike.at / 1_000_000, strike.at % 1_000_000);
                format!("{}.{} {seconds}.{micros:06}", strike.blow.fault(), strike.number)
            });
            format!("what comes at its time: {}", strikes.collect::<Vec<_>>().join(", "))
        });
        let workers = topology.workers;
        site.trace.note("pgweir", || {
            let ending = match topology.ending {
                Ending::None => "",
                Ending::Drain { .. } => ", and asks its clients to leave at some time",
                Ending::Now => ", and ends at some time",
            };
            let text = rules.current().text().replace("\n\n", "\n");
            format!("has {workers} workers{ending}; its configuration:\n{}", text.trim_end())
        });
    }
}

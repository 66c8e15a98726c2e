//! The promises.

use super::Limit::{AtLeast, AtMost, NeverOver};
use super::{Bound, Threshold, To};
use crate::contender::Contender;
use crate::metric::Metric;

const DIRECT: To = To::Contender(Contender::Direct);
const PGBOUNCER: To = To::Contender(Contender::PgBouncer);
const RELAY: To = To::Contender(Contender::Relay);
const OFF: To = To::Contender(Contender::PgweirOff);

/// Shared servers end a statement that takes longer.
const BRAKE_MS: f64 = 50.0;

/// With pools of ten where the case does not say otherwise. What is said of pgweir is said of its
/// defaults; the plain pooler, which it is without pipelining, has promises of its own.
pub(crate) const THRESHOLDS: &[Threshold] = &[
    Threshold {
        text: "tps, 64 clients, simple and extended",
        cases: &["simple-64", "extended-64"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        bounds: &[Bound(AtLeast(1.3), DIRECT)],
    },
    Threshold {
        text: "tps, 64 clients, simple and extended",
        cases: &["simple-64", "extended-64"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        bounds: &[Bound(AtLeast(1.8), PGBOUNCER)],
    },
    Threshold {
        text: "tps, prepared statements, 64 clients",
        cases: &["prepared-64"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        bounds: &[
            Bound(AtLeast(1.2), DIRECT),
            Bound(AtLeast(0.9), To::Contender(Contender::PipeliningRelay)),
        ],
    },
    Threshold {
        text: "tps, 250 clients",
        cases: &["simple-250"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        bounds: &[Bound(AtLeast(2.5), DIRECT)],
    },
    Threshold {
        text: "tps, 250 clients",
        cases: &["simple-250"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        bounds: &[Bound(AtLeast(1.9), PGBOUNCER)],
    },
    Threshold {
        text: "tps, 1000 clients",
        cases: &["simple-1000"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        bounds: &[Bound(AtLeast(1.8), PGBOUNCER)],
    },
    Threshold {
        text: "p99 / p50, 1000 clients",
        cases: &["simple-1000"],
        metrics: &[Metric::Tail],
        of: Contender::Pgweir,
        bounds: &[Bound(AtMost(2.0), To::Nothing)],
    },
    Threshold {
        text: "tps, 16 clients",
        cases: &["simple-16"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        bounds: &[Bound(AtLeast(1.0), DIRECT)],
    },
    Threshold {
        text: "p50 and p99 of 1 client, and at 25% and 50% of direct's maximum",
        cases: &["simple-1", "rate-25", "rate-50"],
        metrics: &[Metric::P50Ms, Metric::P99Ms],
        of: Contender::Pgweir,
        bounds: &[Bound(AtMost(1.0), OFF)],
    },
    Threshold {
        text: "tps, 64 names and 4 sets of settings",
        cases: &["settings-64"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        bounds: &[Bound(AtLeast(1.15), DIRECT)],
    },
    Threshold {
        text: "tps, 64 names and 4 sets of settings",
        cases: &["settings-64"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        bounds: &[Bound(AtLeast(0.8), To::Contender(Contender::EqualSettings))],
    },
    Threshold {
        text: "tps, 64 clients, server 0.5 ms away",
        cases: &["remote-64"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        bounds: &[Bound(AtLeast(3.0), PGBOUNCER)],
    },
    Threshold {
        text: "tps, UPDATE by key, 64 clients, pool of 64",
        cases: &["update-64"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        bounds: &[Bound(AtLeast(0.95), DIRECT)],
    },
    Threshold {
        text: "p99 of 60 clients that select, 4 others wait",
        cases: &["mix-view", "mix-lock"],
        metrics: &[Metric::P99Ms],
        of: Contender::Pgweir,
        bounds: &[Bound(AtMost(2.0), OFF)],
    },
    Threshold {
        text: "none of their transactions takes longer than two brakes, in any round",
        cases: &["mix-view", "mix-lock"],
        metrics: &[Metric::MaxMs],
        of: Contender::Pgweir,
        bounds: &[Bound(NeverOver(2.0 * BRAKE_MS), To::Nothing)],
    },
    Threshold {
        text: "p99 of 4 clients with TPC-B beside 60 that select",
        cases: &["mix-tpcb"],
        metrics: &[Metric::FewP99Ms],
        of: Contender::Pgweir,
        bounds: &[Bound(AtMost(1.5), OFF)],
    },
    Threshold {
        text: "CPU per transaction, 64 clients",
        cases: &["simple-64", "extended-64"],
        metrics: &[Metric::CpuUs],
        of: Contender::Pgweir,
        bounds: &[Bound(AtMost(0.45), PGBOUNCER)],
    },
    Threshold {
        text: "tps, pipelining against none, 1 to 1000 clients, pools of 2 to 64",
        cases: &[
            "simple-1",
            "simple-16",
            "simple-64",
            "simple-250",
            "simple-1000",
            "extended-64",
            "prepared-64",
            "remote-64",
            "settings-64",
            "pool-2",
            "pool-64",
            "tpcb-pool-64",
            "update-64",
            "mix-view",
            "mix-lock",
            "mix-tpcb",
        ],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        bounds: &[Bound(AtLeast(0.97), OFF)],
    },
    Threshold {
        text: "tps against the best pair of the grid",
        cases: &["sweep-16", "sweep-64", "sweep-250", "sweep-extended-64", "sweep-update-64"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        bounds: &[Bound(AtLeast(0.9), To::BestPair)],
    },
    Threshold {
        text: "the same, five seconds after a change of load",
        cases: &["sweep-16-to-250", "sweep-250-to-16", "sweep-to-update-64"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        bounds: &[Bound(AtLeast(0.9), To::BestPair)],
    },
    Threshold {
        text: "pipelining off: tps, 64 and 250 clients, simple and extended",
        cases: &["simple-64", "simple-250", "extended-64", "extended-250"],
        metrics: &[Metric::Tps],
        of: Contender::PgweirOff,
        bounds: &[Bound(AtLeast(1.15), PGBOUNCER)],
    },
    Threshold {
        text: "pipelining off: tps, 1 client",
        cases: &["simple-1", "extended-1"],
        metrics: &[Metric::Tps],
        of: Contender::PgweirOff,
        bounds: &[Bound(AtLeast(1.0), PGBOUNCER)],
    },
    Threshold {
        text: "pipelining off: tps, 64 clients",
        cases: &["simple-64", "extended-64"],
        metrics: &[Metric::Tps],
        of: Contender::PgweirOff,
        bounds: &[Bound(AtLeast(0.95), RELAY)],
    },
    Threshold {
        text: "pipelining off: CPU per transaction, 64 clients",
        cases: &["simple-64", "extended-64"],
        metrics: &[Metric::CpuUs],
        of: Contender::PgweirOff,
        bounds: &[Bound(AtMost(0.8), PGBOUNCER)],
    },
    Threshold {
        text: "pipelining off: tps, prepared against PgBouncer's extended protocol, 64 clients",
        cases: &["prepared-64"],
        metrics: &[Metric::Tps],
        of: Contender::PgweirOff,
        bounds: &[Bound(AtLeast(1.15), PGBOUNCER)],
    },
    Threshold {
        text: "pipelining off: tps, prepared against the simple protocol, 64 clients",
        cases: &["prepared-64"],
        metrics: &[Metric::Tps],
        of: Contender::PgweirOff,
        bounds: &[Bound(AtLeast(0.95), To::Contender(Contender::SimplePgweir))],
    },
    Threshold {
        text: "tps, a connection for each transaction, 8 clients",
        cases: &["connect"],
        metrics: &[Metric::Tps],
        of: Contender::Pgweir,
        bounds: &[Bound(AtLeast(1.0), PGBOUNCER)],
    },
    Threshold {
        text: "pipelining off: p50 and p99 at 25% and 50% of direct's maximum",
        cases: &["rate-25", "rate-50"],
        metrics: &[Metric::P50Ms, Metric::P99Ms],
        of: Contender::PgweirOff,
        bounds: &[Bound(AtMost(1.05), PGBOUNCER)],
    },
    Threshold {
        text: "COPY out and SELECT of 1,000,000 rows, wall",
        cases: &["copy-out", "select-1m"],
        metrics: &[Metric::WallS],
        of: Contender::Pgweir,
        bounds: &[Bound(AtMost(1.05), DIRECT)],
    },
    Threshold {
        text: "user memory for each idle client",
        cases: &["idle-10k"],
        metrics: &[Metric::ClientBytes],
        of: Contender::Pgweir,
        bounds: &[Bound(AtMost(2048.0), To::Nothing)],
    },
    Threshold {
        text: "10,000 idle clients, CPU",
        cases: &["idle-10k"],
        metrics: &[Metric::IdleCpuPercent],
        of: Contender::Pgweir,
        bounds: &[Bound(AtMost(1.0), To::Nothing)],
    },
    Threshold {
        text: "pipelining off: p99 / p50 at 1000 clients",
        cases: &["simple-1000", "extended-1000"],
        metrics: &[Metric::Tail],
        of: Contender::PgweirOff,
        bounds: &[Bound(AtMost(1.2), PGBOUNCER)],
    },
    Threshold {
        text: "tps, two workers instead of one, two pools",
        cases: &["workers-2"],
        metrics: &[Metric::Tps],
        of: Contender::TwoWorkers,
        bounds: &[Bound(AtLeast(0.97), OFF)],
    },
    Threshold {
        text: "CPU per transaction, two workers instead of one, two pools",
        cases: &["workers-2"],
        metrics: &[Metric::CpuUs],
        of: Contender::TwoWorkers,
        bounds: &[Bound(AtMost(1.15), OFF)],
    },
    Threshold {
        text: "tps, four workers instead of one, a server that answers at once",
        cases: &["workers-4"],
        metrics: &[Metric::Tps],
        of: Contender::FourWorkers,
        bounds: &[Bound(AtLeast(3.6), OFF)],
    },
];

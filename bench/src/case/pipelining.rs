//! The cases that are there for pipelining alone.

use super::{CROWD, Case, SELECTS, Server, Workload};
use crate::contender::Contender;
use crate::mix::Beside;
use crate::pgbench::{Load, Protocol, Script};
use crate::rounds::Pace;

/// Servers of a pool in which every client of a crowd could have one.
const LARGE_POOL: u32 = 64;

const OFF_AND_ON: &[Contender] = &[Contender::Pgweir, Contender::PgweirOff];

/// In the order in which they run and are reported.
pub(super) fn cases() -> Vec<Case> {
    let update = Load { script: Script::Update, ..SELECTS };
    let tpcb = Load { script: Script::TpcbLike, ..SELECTS };
    let (few, many) = (Load { clients: 16, ..SELECTS }, Load { clients: 250, ..SELECTS });
    let extended = Load { protocol: Protocol::Extended, ..SELECTS };
    let prepared = Load { protocol: Protocol::Prepared, ..SELECTS };
    vec![
        Case {
            title: "Selects, 64 clients with 64 application_names and 4 sets of TimeZone and \
                    search_path"
                .into(),
            workload: Workload::Settings { clients: CROWD },
            contenders: &[
                Contender::Direct,
                Contender::Pgweir,
                Contender::PgweirOff,
                Contender::Relay,
                Contender::PipeliningRelay,
                Contender::EqualSettings,
            ],
            base: Contender::Direct,
            ..case("settings-64", SELECTS)
        },
        Case {
            title: "Selects, simple protocol, 64 clients, pool of 2".into(),
            pool_size: 2,
            ..case("pool-2", SELECTS)
        },
        Case {
            title: "Selects, simple protocol, 64 clients, pool of 64".into(),
            pool_size: LARGE_POOL,
            ..case("pool-64", SELECTS)
        },
        Case {
            title: "TPC-B-like transactions, 64 clients, pool of 64".into(),
            pool_size: LARGE_POOL,
            ..case("tpcb-pool-64", tpcb)
        },
        Case {
            title: "UPDATE of one row by its key, 64 clients, pool of 64".into(),
            pool_size: LARGE_POOL,
            contenders: &[
                Contender::Direct,
                Contender::Pgweir,
                Contender::PgweirOff,
                Contender::Relay,
                Contender::PipeliningRelay,
            ],
            base: Contender::Direct,
            ..case("update-64", update)
        },
        mix("mix-view", Beside::SlowView),
        mix("mix-lock", Beside::RowLock),
        mix("mix-tpcb", Beside::TpcbLike),
        sweep("sweep-1", "Selects, 1 client", Load { clients: 1, ..SELECTS }),
        sweep("sweep-16", "Selects, 16 clients", few),
        sweep("sweep-64", "Selects, 64 clients", SELECTS),
        sweep("sweep-250", "Selects, 250 clients", many),
        sweep("sweep-1000", "Selects, 1000 clients", Load { clients: 1000, ..SELECTS }),
        sweep("sweep-extended-64", "Selects, extended protocol, 64 clients", extended),
        sweep("sweep-prepared-64", "Selects, prepared statements, 64 clients", prepared),
        Case {
            workload: Workload::Settings { clients: CROWD },
            ..sweep("sweep-settings-64", "Selects, 64 clients with 4 sets of settings", SELECTS)
        },
        Case {
            server: Server::Far,
            ..sweep("sweep-remote-64", "Selects, 64 clients, server 0.5 ms away", SELECTS)
        },
        Case {
            pool_size: LARGE_POOL,
            ..sweep("sweep-tpcb-64", "TPC-B-like transactions, 64 clients, pool of 64", tpcb)
        },
        Case {
            pool_size: LARGE_POOL,
            ..sweep("sweep-update-64", "UPDATE of one row by its key, 64 clients", update)
        },
        mixed_sweep("sweep-mix-view", Beside::SlowView),
        mixed_sweep("sweep-mix-lock", Beside::RowLock),
        mixed_sweep("sweep-mix-tpcb", Beside::TpcbLike),
        change("sweep-16-to-250", "Selects, 250 clients in place of 16", few, many),
        change("sweep-250-to-16", "Selects, 16 clients in place of 250", many, few),
        Case {
            pool_size: LARGE_POOL,
            ..change(
                "sweep-to-update-64",
                "UPDATE of one row by its key in place of selects, 64 clients",
                SELECTS,
                update,
            )
        },
    ]
}

fn mix(name: &str, beside: Beside) -> Case {
    Case {
        title: format!("Selects of 60 clients, and {}", beside.says()),
        workload: Workload::Mix(beside),
        pace: if beside.is_cold() { Pace::COLD } else { Pace::BRIEF },
        ..case(name, SELECTS)
    }
}

fn sweep(name: &str, what: &str, load: Load) -> Case {
    Case {
        title: format!("{what}, beside fixed pairs"),
        contenders: &[Contender::Pgweir],
        base: Contender::Pgweir,
        pace: Pace::SWEEP,
        is_sweep: true,
        ..case(name, load)
    }
}

fn mixed_sweep(name: &str, beside: Beside) -> Case {
    let what = format!("Selects of 60 clients, and {}", beside.says());
    Case { workload: Workload::Mix(beside), ..sweep(name, &what, SELECTS) }
}

fn change(name: &str, what: &str, from: Load, to: Load) -> Case {
    Case { workload: Workload::Change { from, to }, ..sweep(name, what, to) }
}

fn case(name: &str, load: Load) -> Case {
    Case {
        contenders: OFF_AND_ON,
        base: Contender::PgweirOff,
        ..Case::pgbench(name, load).of_pipelining()
    }
}

//! What [`crate::metrics`] tells: one table of metrics, each with its name, what it is, and where
//! its values come from. The values are those of the console.

use std::fmt::{self, Write};
use std::time::Duration;

use pgweir_engine::{Delays, PoolView, Snapshot, Stats, Usage};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelValue, LabelValueEncoder, MetricEncoder, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};

use crate::census::{Census, Censuses};
use crate::show::memory_by_name;

/// The text, in OpenMetrics 1.0. `resident_bytes`: as in [`crate::State`].
///
/// It is given the snapshot, since the library wants to own what it writes.
pub fn metrics(snapshot: Snapshot, resident_bytes: Option<usize>) -> String {
    let mut registry = Registry::with_prefix("pgweir");
    registry.register_collector(Box::new(Told { snapshot, resident_bytes }));
    let mut text = String::new();
    // Writing to a String fails only if a value's Display does, and none here does.
    let _ = encode(&mut text, &registry);
    text
}

#[derive(Debug)]
struct Told {
    snapshot: Snapshot,
    resident_bytes: Option<usize>,
}

impl Collector for Told {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let encoder = &mut encoder;
        let censuses = Censuses::of(&self.snapshot);
        // One that is removed may have a successor of its name, whose series these are now.
        let pools = self.snapshot.pools.iter().filter(|pool| !pool.removed);
        let pools: Vec<_> = pools.map(|pool| (pool, censuses.of_pool(pool))).collect();
        for metric in OF_POOLS {
            metric.encode(&pools, encoder)?;
        }
        self.of_servers(encoder)?;
        self.of_process(encoder)
    }
}

impl Told {
    fn of_servers(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Connections that there are to a server.";
        let mut family =
            encoder.encode_descriptor("server_connections", help, None, MetricType::Gauge)?;
        for limit in &self.snapshot.limits {
            let (host, port) = (&limit.address.host, limit.address.port.to_string());
            let labels = [("host", Label(host)), ("port", Label(&port))];
            family.encode_family(&labels)?.encode_gauge(&level(limit.used))?;
        }
        Ok(())
    }

    fn of_process(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let Snapshot { logins, memory, .. } = &self.snapshot;
        let help = "Clients that are logging in.";
        let mut family = encoder.encode_descriptor("logins", help, None, MetricType::Gauge)?;
        family.encode_gauge(&level(*logins))?;
        let help = "Memory that is kept, by what it is for; see SHOW MEM.";
        let bytes = Some(&Unit::Bytes);
        let mut family = encoder.encode_descriptor("memory", help, bytes, MetricType::Gauge)?;
        for (name, Usage { total, .. }) in memory_by_name(memory) {
            family.encode_family(&[("cache", name)])?.encode_gauge(&level(total))?;
        }
        if let Some(resident) = self.resident_bytes {
            let help = "Memory that the process has in use.";
            let mut family =
                encoder.encode_descriptor("resident_memory", help, bytes, MetricType::Gauge)?;
            family.encode_gauge(&level(resident))?;
        }
        let help = "The version.";
        let mut family = encoder.encode_descriptor("build", help, None, MetricType::Info)?;
        family.encode_info(&[("version", env!("CARGO_PKG_VERSION"))])
    }
}

/// One of pools, which its labels `database` and `user` name.
struct OfPool {
    name: &'static str,
    help: &'static str,
    reads: Reads,
}

/// What is read of a pool.
enum Reads {
    /// What only grows.
    Count(fn(&Stats) -> u64),
    /// The same in bytes.
    Bytes(fn(&Stats) -> u64),
    /// The same in time.
    Time(fn(&Stats) -> Duration),
    /// What only grows, of several kinds, which one more label tells apart.
    Counts(&'static str, fn(&PoolView) -> Vec<(&'static str, u64)>),
    /// What is now.
    Level(fn(&PoolView, &Census) -> usize),
    /// The same, of several kinds.
    Levels(&'static str, fn(&PoolView, &Census) -> Vec<(&'static str, usize)>),
    /// How long it is now.
    Length(fn(&PoolView) -> Duration),
    /// How many took how long.
    Delays(fn(&Stats) -> &Delays),
}

impl OfPool {
    fn encode(
        &self,
        pools: &[(&PoolView, Census)],
        encoder: &mut DescriptorEncoder<'_>,
    ) -> fmt::Result {
        let (unit, kind) = self.reads.kind();
        let mut family = encoder.encode_descriptor(self.name, self.help, unit.as_ref(), kind)?;
        for (pool, census) in pools {
            let labels = [("database", Label(&pool.database)), ("user", Label(&pool.user))];
            self.reads.encode(pool, census, labels, &mut family)?;
        }
        Ok(())
    }
}

impl Reads {
    fn kind(&self) -> (Option<Unit>, MetricType) {
        match self {
            Self::Count(_) | Self::Counts(..) => (None, MetricType::Counter),
            Self::Bytes(_) => (Some(Unit::Bytes), MetricType::Counter),
            Self::Time(_) => (Some(Unit::Seconds), MetricType::Counter),
            Self::Level(_) | Self::Levels(..) => (None, MetricType::Gauge),
            Self::Length(_) => (Some(Unit::Seconds), MetricType::Gauge),
            Self::Delays(_) => (Some(Unit::Seconds), MetricType::Histogram),
        }
    }

    fn encode(
        &self,
        pool: &PoolView,
        census: &Census,
        labels: Labels<'_, 2>,
        family: &mut MetricEncoder<'_>,
    ) -> fmt::Result {
        let stats = &pool.stats;
        let none = None::<&Exemplar<NoLabelSet, f64>>;
        match self {
            Self::Count(count) | Self::Bytes(count) => {
                family.encode_family(&labels)?.encode_counter(&count(stats), none)
            }
            Self::Time(time) => {
                let seconds = time(stats).as_secs_f64();
                family.encode_family(&labels)?.encode_counter(&seconds, none)
            }
            Self::Counts(kind, of) => each(labels, kind, of(pool), |labels, count| {
                family.encode_family(&labels)?.encode_counter(&count, none)
            }),
            Self::Level(of) => {
                family.encode_family(&labels)?.encode_gauge(&level(of(pool, census)))
            }
            Self::Levels(kind, of) => each(labels, kind, of(pool, census), |labels, count| {
                family.encode_family(&labels)?.encode_gauge(&level(count))
            }),
            Self::Length(time) => {
                family.encode_family(&labels)?.encode_gauge(&time(pool).as_secs_f64())
            }
            Self::Delays(of) => {
                let delays = of(stats);
                let longest = |micros: Option<u64>| match micros {
                    Some(micros) => Duration::from_micros(micros).as_secs_f64(),
                    // The library's word for +Inf.
                    None => f64::MAX,
                };
                let buckets = delays.buckets().map(|(micros, units)| (longest(micros), units));
                let buckets: Vec<_> = buckets.collect();
                let sum = delays.sum().as_secs_f64();
                let mut of_pool = family.encode_family(&labels)?;
                of_pool.encode_histogram::<NoLabelSet>(sum, delays.units(), &buckets, None)
            }
        }
    }
}

/// So many names, and what they say.
type Labels<'a, const N: usize> = [(&'static str, Label<'a>); N];

/// Writes what there is of each kind, which one more label tells apart.
fn each<'a, V>(
    [database, user]: Labels<'a, 2>,
    kind: &'static str,
    values: Vec<(&'static str, V)>,
    mut write: impl FnMut(Labels<'a, 3>, V) -> fmt::Result,
) -> fmt::Result {
    let mut values = values.into_iter();
    values.try_for_each(|(name, value)| write([database, user, (kind, Label(name))], value))
}

/// A label's value, which may be any text: a name of a database or of a user.
#[derive(Clone, Copy)]
struct Label<'a>(&'a str);

/// The library writes values as they are.
impl EncodeLabelValue for Label<'_> {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(['\\', '"', '\n']) {
            let (text, special) = match part.chars().next_back() {
                Some('\\') => (&part[..part.len() - 1], "\\\\"),
                Some('"') => (&part[..part.len() - 1], "\\\""),
                Some('\n') => (&part[..part.len() - 1], "\\n"),
                Some(_) | None => (part, ""),
            };
            encoder.write_str(text)?;
            encoder.write_str(special)?;
        }
        Ok(())
    }
}

/// What there is of something. No more fits into memory.
fn level(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

const OF_POOLS: &[OfPool] = &[
    of_pool("pool_clients", "Clients, by what they do.", Reads::Levels("state", clients)),
    of_pool(
        "pool_servers",
        "Server connections, by what they do.",
        Reads::Levels("state", servers),
    ),
    of_pool("pool_size", "Most server connections.", Reads::Level(|pool, _| pool.size)),
    of_pool(
        "pool_longest_wait",
        "For how long the client has waited that waits longest for a server.",
        Reads::Length(|pool| pool.longest_wait),
    ),
    of_pool(
        "pool_shared_servers",
        "Server connections that several clients share, of those that are active.",
        Reads::Level(|_, census| census.servers_shared as usize),
    ),
    of_pool(
        "pool_shared_servers_max",
        "Most server connections that may be shared now, by statements that read or write.",
        Reads::Levels("access", |pool, _| {
            vec![("read", pool.hot_most), ("write", pool.write_hot_most)]
        }),
    ),
    of_pool(
        "pool_depth",
        "Most statements that may stand on a shared server connection now, that read or write.",
        Reads::Levels("access", |pool, _| vec![("read", pool.depth), ("write", pool.write_depth)]),
    ),
    of_pool(
        "pool_pinned_servers",
        "Servers that stay with their clients, by what keeps them; see SHOW PINS.",
        Reads::Levels("kind", |pool, _| {
            pool.pins.iter().map(|pin| (pin.kind, pin.servers)).collect()
        }),
    ),
    of_pool(
        "pins",
        "How often a client has begun to keep its server, by what for.",
        Reads::Counts("kind", |pool| pool.pins.iter().map(|pin| (pin.kind, pin.begun)).collect()),
    ),
    of_pool(
        "pins_refused",
        "Statements that were refused since they would have kept a server, by what for.",
        Reads::Counts("kind", |pool| pool.pins.iter().map(|pin| (pin.kind, pin.refused)).collect()),
    ),
    of_pool(
        "transactions",
        "Transactions that clients have finished.",
        Reads::Count(|stats| stats.transactions),
    ),
    of_pool(
        "shared_transactions",
        "Transactions that have shared a server, of those that are finished.",
        Reads::Count(|stats| stats.shared),
    ),
    of_pool(
        "joined_transactions",
        "Transactions that have shared a server and were under one Sync with others.",
        Reads::Count(|stats| stats.joined),
    ),
    of_pool(
        "head_of_line_delay",
        "How long statements stood behind others on servers that they shared.",
        Reads::Delays(|stats| &stats.delays),
    ),
    of_pool(
        "queries",
        "Units finished: simple queries and batches.",
        Reads::Count(|stats| stats.queries),
    ),
    of_pool("received", "What clients have sent.", Reads::Bytes(|stats| stats.received)),
    of_pool("sent", "What servers have sent.", Reads::Bytes(|stats| stats.sent)),
    of_pool(
        "transaction_time",
        "Time that transactions took, from their first unit on.",
        Reads::Time(|stats| stats.transaction_time),
    ),
    of_pool(
        "query_time",
        "Time that servers had a unit in flight.",
        Reads::Time(|stats| stats.query_time),
    ),
    of_pool(
        "wait_time",
        "Time that clients waited for a server.",
        Reads::Time(|stats| stats.wait_time),
    ),
    of_pool(
        "server_assignments",
        "Times a server was lent, or given a unit that shares it.",
        Reads::Count(|stats| stats.assignments),
    ),
    of_pool("client_parses", "Parse messages of clients.", Reads::Count(|stats| stats.parses)),
    of_pool(
        "server_parses",
        "Parse messages of pgweir's own to servers.",
        Reads::Count(|stats| stats.own_parses),
    ),
    of_pool("client_binds", "Bind messages of clients.", Reads::Count(|stats| stats.binds)),
    of_pool("client_logins", "Logins of clients.", Reads::Count(|stats| stats.logins)),
    of_pool(
        "server_logins_refused",
        "Logins that a server has refused because it had too many connections.",
        Reads::Count(|stats| stats.refused_full),
    ),
    of_pool(
        "contained_servers",
        "Servers that were closed because they sent what no expected reply allows.",
        Reads::Count(|stats| stats.contained),
    ),
];

const fn of_pool(name: &'static str, help: &'static str, reads: Reads) -> OfPool {
    OfPool { name, help, reads }
}

/// The states of SHOW POOLS.
fn clients(_: &PoolView, census: &Census) -> Vec<(&'static str, usize)> {
    vec![
        ("active", census.clients_active as usize),
        ("waiting", census.clients_waiting as usize),
        ("active_cancel_req", census.clients_active_cancel),
        ("waiting_cancel_req", census.clients_waiting_cancel),
    ]
}

/// The same.
fn servers(_: &PoolView, census: &Census) -> Vec<(&'static str, usize)> {
    let states = [
        ("active", census.servers_active),
        ("active_cancel", census.servers_active_cancel),
        ("being_canceled", census.servers_being_canceled),
        ("idle", census.servers_idle),
        ("tested", census.servers_tested),
        ("login", census.servers_login),
    ];
    states.map(|(state, servers)| (state, servers as usize)).to_vec()
}

//! What is measured, in which unit, and how it is written.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A quantity that one contender has in one round.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// Transactions a second.
    Tps,
    P50Ms,
    P95Ms,
    P99Ms,
    /// The slowest of all transactions.
    MaxMs,
    /// `P99Ms` over `P50Ms`: how far the slow ones lie from the usual ones.
    Tail,
    /// Transactions a second of the few that stand beside others in a mix: all of the above are
    /// the others'.
    FewTps,
    FewP99Ms,
    /// Seconds from a query to the end of its result.
    WallS,
    /// User and system time of the pooler for each transaction, in µs.
    CpuUs,
    /// Anonymous memory of the pooler for each idle client, in bytes.
    ClientBytes,
    /// User and system time of the pooler while all clients are idle, in percent of one core.
    IdleCpuPercent,
    /// User and system time of the load's threads, in percent of the time that they had.
    LoadBusyPercent,
    /// The same of the server's threads.
    ServerBusyPercent,
    /// User and system time of what stands before a far server, in percent of its one core.
    ForwarderBusyPercent,
    /// Memory of the pooler after the run, in MB; shared pages counted whole.
    RssMb,
    /// The same, with shared pages counted in parts.
    PssMb,
}

/// All that one contender's turn gave.
pub(crate) type Sample = BTreeMap<Metric, f64>;

impl Metric {
    pub(crate) const ALL: [Self; 17] = [
        Self::Tps,
        Self::P50Ms,
        Self::P95Ms,
        Self::P99Ms,
        Self::MaxMs,
        Self::Tail,
        Self::FewTps,
        Self::FewP99Ms,
        Self::WallS,
        Self::CpuUs,
        Self::ClientBytes,
        Self::IdleCpuPercent,
        Self::LoadBusyPercent,
        Self::ServerBusyPercent,
        Self::ForwarderBusyPercent,
        Self::RssMb,
        Self::PssMb,
    ];

    /// The head of a column, with the unit.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Tps => "tps",
            Self::P50Ms => "p50 ms",
            Self::P95Ms => "p95 ms",
            Self::P99Ms => "p99 ms",
            Self::MaxMs => "max ms",
            Self::Tail => "p99 / p50",
            Self::FewTps => "tps of the few",
            Self::FewP99Ms => "p99 ms of the few",
            Self::WallS => "wall s",
            Self::CpuUs => "pooler CPU µs / tx",
            Self::ClientBytes => "bytes / idle client",
            Self::IdleCpuPercent => "idle CPU, % of a core",
            Self::LoadBusyPercent => "load busy, %",
            Self::ServerBusyPercent => "server busy, %",
            Self::ForwarderBusyPercent => "forwarder busy, %",
            Self::RssMb => "RSS MB",
            Self::PssMb => "Pss MB",
        }
    }

    /// Whether ratios of it between contenders mean something.
    pub(crate) fn has_ratio(self) -> bool {
        match self {
            Self::Tps | Self::P50Ms | Self::P95Ms | Self::P99Ms | Self::Tail => true,
            Self::MaxMs | Self::FewTps | Self::FewP99Ms => true,
            Self::WallS | Self::CpuUs | Self::ClientBytes | Self::RssMb | Self::PssMb => true,
            Self::IdleCpuPercent | Self::LoadBusyPercent => false,
            Self::ServerBusyPercent | Self::ForwarderBusyPercent => false,
        }
    }

    /// The value in words, to the digits that a round can tell.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Self::Tps | Self::ClientBytes => grouped(value),
            Self::LoadBusyPercent | Self::ServerBusyPercent | Self::ForwarderBusyPercent => {
                format!("{value:.0}")
            }
            Self::P50Ms | Self::P95Ms | Self::P99Ms | Self::WallS => format!("{value:.3}"),
            Self::MaxMs | Self::FewTps | Self::FewP99Ms => format!("{value:.1}"),
            Self::Tail | Self::IdleCpuPercent => format!("{value:.2}"),
            Self::CpuUs | Self::RssMb | Self::PssMb => format!("{value:.1}"),
        }
    }
}

/// A whole number with commas between thousands.
pub(crate) fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = if value <= -0.5 { "-".to_owned() } else { String::new() };
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests;

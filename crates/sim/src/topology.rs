use std::fmt::Write;
use std::path::Path;

use pgweir_config::{Config, PoolMode};
use pgweir_engine::Plan;

use crate::client::PoolFacts;
use crate::random::Dice;

/// What a simulation is made of.
pub(crate) struct Topology {
    pub(crate) pools: Vec<PoolFacts>,
    /// Servers, each with a port of its own: [`PORT`] and those above.
    pub(crate) clusters: usize,
    /// Clients at a time.
    pub(crate) seats: usize,
    /// Clients in all that sit on one seat one after the other.
    pub(crate) turns: u64,
    /// How long an attempt to connect to a server may take, in microseconds.
    pub(crate) connect_timeout_us: u64,
    /// After how many microseconds of rest a server is closed.
    pub(crate) idle_timeout_us: u64,
    /// The part of the configuration that stays as it is.
    general: String,
}

/// The port of the first fake server.
pub(crate) const PORT: u16 = 5_432;

/// How long a client of a strict pool may be silent.
const SILENCE_MS: [u64; 3] = [20, 200, 2_000];

impl Topology {
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        let clusters = dice.between(1..=2) as usize;
        let connect_timeout_ms = *dice.pick(&[500, 2_000, 5_000]);
        let idle_timeout_ms = *dice.pick(&[300, 5_000, 60_000]);
        let lifetime_ms = *dice.pick(&[0, 0, 400, 10_000]);
        let strict = dice.chance(0.2);
        let silence_ms = if strict { *dice.pick(&SILENCE_MS) } else { 0 };
        let general = format!(
            "[general]\nhost = \"127.0.0.1\"\nport = 6432\nauth_type = \"trust\"\n\
             connect_timeout = {connect_timeout_ms}\nidle_timeout = {idle_timeout_ms}\n\
             server_lifetime = {lifetime_ms}\nclient_login_timeout = 0\nquery_wait_timeout = 0\n\
             client_idle_timeout = {silence_ms}\n\
             idle_client_in_transaction_timeout = {silence_ms}\n"
        );
        let pools = (0..dice.between(1..=3)).map(|number| PoolFacts {
            database: format!("db{number}"),
            user: "app".to_owned(),
            mode: dice.weighted(&[
                (6, PoolMode::Transaction),
                (2, PoolMode::Session),
                (1, PoolMode::Statement),
            ]),
            impatient: dice.chance(0.4),
            strict,
        });
        Self {
            pools: pools.collect(),
            clusters,
            seats: dice.between(1..=12) as usize,
            turns: dice.between(1..=4),
            connect_timeout_us: connect_timeout_ms * 1_000,
            idle_timeout_us: idle_timeout_ms * 1_000,
            general,
        }
    }

    /// A configuration for it, as a user would write it: sizes, limits and who is served where are
    /// drawn each time. `at_rest`: no server is kept that nobody needs.
    pub(crate) fn config(&self, dice: &mut Dice, at_rest: bool) -> String {
        let mut config = self.general.clone();
        let mut put = |line: String| {
            // Writing to a String cannot fail.
            let _ = writeln!(config, "{line}");
        };
        for limit in ["max_server_connections", "max_user_connections", "max_db_connections"] {
            if dice.chance(0.2) {
                put(format!("{limit} = {}", dice.between(1..=4)));
            }
        }
        put(format!("connect_parallelism = {}", dice.pick(&[1, 2, 64])));
        put(format!("reserve_pool_size = {}", dice.pick(&[0, 0, 2])));
        put(format!("reserve_pool_timeout = {}", dice.pick(&[0, 100, 1_000])));
        for PoolFacts { database, user, mode, impatient, .. } in &self.pools {
            let wait_ms = if *impatient { *dice.pick(&[300, 3_000]) } else { 0 };
            let size = dice.between(1..=4);
            let least = if at_rest { 0 } else { dice.below(2) };
            put(format!(
                "\n[pools.{database}]\npool_mode = \"{}\"\nquery_wait_timeout = {wait_ms}\n\
                 [pools.{database}.users.0]\nusername = \"{user}\"\npool_size = {size}\n\
                 min_pool_size = {least}\n\
                 [pools.{database}.shards.0]\ndatabase = \"{database}\"\n\
                 servers = [[\"127.0.0.1\", {}, \"primary\"]]",
                mode.name(),
                u64::from(PORT) + dice.below(self.clusters as u64),
            ));
        }
        config
    }

    /// What pgweir makes of a configuration.
    pub(crate) fn plan_of(config: &str) -> Result<Plan, String> {
        let config =
            Config::parse(config, Path::new("sim.toml")).map_err(|errors| errors.to_string())?;
        Plan::new(&config, "0.0.0", [6; 32]).map_err(|error| error.to_string())
    }
}

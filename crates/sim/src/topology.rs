use std::path::Path;

use pgweir_config::{Config, PoolMode};
use pgweir_engine::Plan;

use crate::client::PoolFacts;
use crate::random::Dice;

/// What a simulation is made of.
pub(crate) struct Topology {
    /// The configuration as a user would write it.
    pub(crate) config: String,
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
}

/// The port of the first fake server.
pub(crate) const PORT: u16 = 5_432;

impl Topology {
    pub(crate) fn draw(dice: &mut Dice) -> Self {
        let clusters = dice.between(1..=2) as usize;
        let connect_timeout_ms = *dice.pick(&[500, 2_000, 5_000]);
        let idle_timeout_ms = *dice.pick(&[300, 5_000, 60_000]);
        let lifetime_ms = *dice.pick(&[0, 0, 400, 10_000]);
        let mut config = format!(
            "[general]\nhost = \"127.0.0.1\"\nport = 6432\nauth_type = \"trust\"\n\
             connect_timeout = {connect_timeout_ms}\nidle_timeout = {idle_timeout_ms}\n\
             server_lifetime = {lifetime_ms}\nclient_login_timeout = 0\nquery_wait_timeout = 0\n"
        );
        let mut pools = Vec::new();
        for number in 0..dice.between(1..=3) {
            let mode = dice.weighted(&[
                (6, PoolMode::Transaction),
                (2, PoolMode::Session),
                (1, PoolMode::Statement),
            ]);
            let wait_ms = *dice.pick(&[0, 0, 0, 300, 3_000]);
            let cluster = dice.below(clusters as u64) as u16;
            let facts = PoolFacts {
                database: format!("db{number}"),
                user: "app".to_owned(),
                mode,
                impatient: wait_ms > 0,
            };
            let PoolFacts { database, user, .. } = &facts;
            config.push_str(&format!(
                "\n[pools.{database}]\npool_mode = \"{}\"\nquery_wait_timeout = {wait_ms}\n\
                 [pools.{database}.users.0]\nusername = \"{user}\"\npool_size = {}\n\
                 [pools.{database}.shards.0]\ndatabase = \"{database}\"\n\
                 servers = [[\"127.0.0.1\", {}, \"primary\"]]\n",
                mode.name(),
                dice.between(1..=4),
                PORT + cluster,
            ));
            pools.push(facts);
        }
        Self {
            config,
            pools,
            clusters,
            seats: dice.between(1..=12) as usize,
            turns: dice.between(1..=4),
            connect_timeout_us: connect_timeout_ms * 1_000,
            idle_timeout_us: idle_timeout_ms * 1_000,
        }
    }

    /// What pgweir makes of the configuration.
    pub(crate) fn plan(&self) -> Result<Plan, String> {
        let config = Config::parse(&self.config, Path::new("sim.toml"))
            .map_err(|errors| errors.to_string())?;
        Plan::new(&config, "0.0.0", [6; 32]).map_err(|error| error.to_string())
    }
}

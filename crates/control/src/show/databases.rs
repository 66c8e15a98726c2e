//! SHOW DATABASES and SHOW USERS: the pools, put together by either half of their names.

use std::collections::BTreeMap;
use std::time::Duration;

use pgweir_config::PoolMode;
use pgweir_engine::{ClientTarget, PoolView, Snapshot};
use pgweir_wire::backend::Column;

use crate::table::{Table, int4, text};

const DATABASES: [Column<'_>; 17] = [
    text("name"),
    text("host"),
    int4("port"),
    text("database"),
    text("force_user"),
    int4("pool_size"),
    int4("min_pool_size"),
    int4("reserve_pool_size"),
    int4("server_lifetime"),
    text("pool_mode"),
    text("load_balance_hosts"),
    int4("max_connections"),
    int4("current_connections"),
    int4("max_client_connections"),
    int4("current_client_connections"),
    int4("paused"),
    int4("disabled"),
];

const USERS: [Column<'_>; 8] = [
    text("name"),
    text("pool_size"),
    text("reserve_pool_size"),
    text("pool_mode"),
    int4("max_user_connections"),
    int4("current_connections"),
    int4("max_user_client_connections"),
    int4("current_client_connections"),
];

pub(super) fn databases(snapshot: &Snapshot, out: &mut Vec<u8>) {
    let mut table = Table::new(out, &DATABASES);
    for (name, database) in group(snapshot, |database, _| database) {
        // Every pool of a database leads to the same server.
        let Some(first) = database.pools.first() else { continue };
        table.cell(name).cell(&first.address.host).cell(first.address.port);
        table.cell(&first.server_database).nullable(database.forced_user());
        table.cell(database.pools.iter().map(|pool| pool.size).max().unwrap_or(0));
        let largest = |of: fn(&PoolView) -> usize| database.pools.iter().map(|it| of(it)).max();
        table.cell(largest(|pool| pool.min_size).unwrap_or(0));
        table.cell(largest(|pool| pool.reserve).unwrap_or(0));
        table.cell(database.server_lifetime().as_secs());
        table.nullable(database.pool_mode().map(PoolMode::name)).nullable(None::<&str>);
        // As PgBouncer has it, 0 is no limit.
        table.cell(first.max_db_connections.unwrap_or(0)).cell(database.servers);
        table.cell(first.max_db_client_connections.unwrap_or(0)).cell(database.clients);
        table.cell(0).cell(0).end_row();
    }
}

pub(super) fn users(snapshot: &Snapshot, out: &mut Vec<u8>) {
    let mut table = Table::new(out, &USERS);
    for (name, user) in group(snapshot, |_, user| user) {
        let size = user.agreed(|pool| pool.size).map(|size| size.to_string());
        let reserve = user.agreed(|pool| pool.reserve).map(|reserve| reserve.to_string());
        table.cell(name).cell(size.unwrap_or_default()).cell(reserve.unwrap_or_default());
        table.nullable(user.pool_mode().map(PoolMode::name));
        table.cell(snapshot.max_user_connections.unwrap_or(0)).cell(user.servers);
        table.cell(snapshot.max_user_client_connections.unwrap_or(0)).cell(user.clients);
        table.end_row();
    }
}

/// How many databases there are.
pub(super) fn count_databases(snapshot: &Snapshot) -> usize {
    group(snapshot, |database, _| database).len()
}

/// How many users there are, whatever their databases.
pub(super) fn count_users(snapshot: &Snapshot) -> usize {
    group(snapshot, |_, user| user).len()
}

/// Pools that are shown together, and how many connections they have.
#[derive(Default)]
struct Group<'a> {
    pools: Vec<&'a PoolView>,
    clients: u32,
    servers: u32,
}

impl Group<'_> {
    /// What all pools have in common.
    fn agreed<T: PartialEq>(&self, of: impl Fn(&PoolView) -> T) -> Option<T> {
        let mut values = self.pools.iter().map(|pool| of(pool));
        let first = values.next()?;
        values.all(|value| value == first).then_some(first)
    }

    fn pool_mode(&self) -> Option<PoolMode> {
        self.agreed(|pool| pool.mode)
    }

    /// The one user of the server that all clients become, whoever they are.
    fn forced_user(&self) -> Option<String> {
        let user = self.agreed(|pool| pool.server_user.clone())?;
        self.pools.iter().all(|pool| pool.user != user).then_some(user)
    }

    /// The longest; zero, where it has no end.
    fn server_lifetime(&self) -> Duration {
        let lifetimes: Option<Vec<_>> = self.pools.iter().map(|it| it.server_lifetime).collect();
        lifetimes.and_then(|lifetimes| lifetimes.into_iter().max()).unwrap_or_default()
    }
}

/// The pools by a name that `key` makes of their database and user, with those that have none of
/// the connections.
fn group<'a>(
    snapshot: &'a Snapshot,
    key: impl Fn(&'a str, &'a str) -> &'a str,
) -> BTreeMap<&'a str, Group<'a>> {
    let mut groups = BTreeMap::<_, Group<'_>>::new();
    for pool in &snapshot.pools {
        groups.entry(key(&pool.database, &pool.user)).or_default().pools.push(pool);
    }
    for client in &snapshot.clients {
        match client.target {
            ClientTarget::Console => {}
            ClientTarget::Pool => {
                groups.entry(key(&client.database, &client.user)).or_default().clients += 1;
            }
        }
    }
    for server in &snapshot.servers {
        let (database, user) = &server.pool;
        groups.entry(key(database, user)).or_default().servers += 1;
    }
    groups
}

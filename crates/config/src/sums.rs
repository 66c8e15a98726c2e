//! Sizes of pools against the limits and times around them. What cannot be reached is legal, and
//! told.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::report::Report;
use crate::scope::Scope;
use crate::types::{ANY_DATABASE, Pool, User};
use crate::value::Value;

/// The limits of which each holds for a pool too.
const LIMITS: [&str; 3] = ["max_server_connections", "max_db_connections", "max_user_connections"];

/// Tells of a `pool_size` that the file asks for and that is over a limit.
pub(crate) fn pool_size(user: &Scope<'_>, report: &mut Report) {
    let asked = user.holds("pool_size").is_some_and(|holds| holds.line.is_some());
    let Some(size) = user.read::<u32>("pool_size").filter(|_| asked) else { return };
    for limit in LIMITS {
        if let Some(most) = user.read::<u32>(limit).filter(|most| size > *most) {
            let message = format!("over {limit}, which is {most}: no more are opened");
            report.warning(user.line_of("pool_size"), &user.key_of("pool_size"), message);
        }
    }
}

/// Tells of a reserve that clients do not live to see.
pub(crate) fn reserve(user: &Scope<'_>, report: &mut Report) {
    let has_one = user.read::<u32>("reserve_pool_size").is_some_and(|size| size > 0);
    let times = user.read("query_wait_timeout").zip(user.read("reserve_pool_timeout"));
    let Some((wait, opens)) = times.filter(|_| has_one) else { return };
    if !Duration::is_zero(&wait) && opens >= wait {
        let message = format!(
            "the reserve is never opened where query_wait_timeout is {} and reserve_pool_timeout \
             {}: expected a reserve_pool_timeout that is shorter",
            Value::Time(wait),
            Value::Time(opens),
        );
        report.warning(
            user.line_of("reserve_pool_size"),
            &user.key_of("reserve_pool_size"),
            message,
        );
    }
}

/// Tells of servers that are to be kept open in a pool that comes and goes with its clients.
pub(crate) fn minimum_of_any_database(user: &Scope<'_>, report: &mut Report) {
    if user.read::<u32>("min_pool_size").is_some_and(|min| min > 0) {
        let message = "has no effect in a pool for any database: its servers are opened when a \
                       client needs them";
        report.warning(user.line_of("min_pool_size"), &user.key_of("min_pool_size"), message);
    }
}

/// Tells of a limit of a database that is less than what its pools keep open.
pub(crate) fn of_database(database: &str, users: &[User], pool: &Scope<'_>, report: &mut Report) {
    if database != ANY_DATABASE {
        let sum = users.iter().map(|user| u64::from(user.min_pool_size)).sum();
        let whose = format!("all users of {database:?}");
        tell(pool, "max_db_connections", &whose, sum, report);
    }
}

/// The same of the limits of servers and of users.
pub(crate) fn over_databases(pools: &[Pool], general: &Scope<'_>, report: &mut Report) {
    let (mut of_servers, mut of_users) = (BTreeMap::<_, u64>::new(), BTreeMap::<_, u64>::new());
    for pool in pools.iter().filter(|pool| pool.name != ANY_DATABASE) {
        let server = pool.served().map(|(_, server)| (&server.host, server.port));
        for user in &pool.users {
            *of_servers.entry(server).or_default() += u64::from(user.min_pool_size);
            *of_users.entry(&user.username).or_default() += u64::from(user.min_pool_size);
        }
    }
    for (server, sum) in of_servers {
        let Some((host, port)) = server else { continue };
        let whose = format!("all users of the server {host}:{port}");
        tell(general, "max_server_connections", &whose, sum, report);
    }
    for (name, sum) in of_users {
        let whose = format!("user {name:?} over all databases");
        tell(general, "max_user_connections", &whose, sum, report);
    }
}

fn tell(scope: &Scope<'_>, limit: &'static str, whose: &str, sum: u64, report: &mut Report) {
    if let Some(most) = scope.read::<u32>(limit).filter(|most| sum > u64::from(*most)) {
        let message = format!(
            "less than the min_pool_size of {whose} together, which is {sum}: no more than {most} \
             are opened"
        );
        report.warning(scope.line_of(limit), &scope.key_of(limit), message);
    }
}

//! From the tree of sections to the configuration: what inherits from what, and the rules that
//! join several settings.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::credentials;
use crate::demand::Limit;
use crate::report::Report;
use crate::scope::Scope;
use crate::setting::{Dialect, Section};
use crate::settings::CONSOLE_DATABASES;
use crate::sums;
use crate::tree::{Child, Node};
use crate::types::{
    ANY_DATABASE, Exporter, General, LogOptions, Pool, PoolMode, Role, Server, Shard, TcpOptions,
    UnixSocket, User,
};

/// Where metrics are where clients come over a unix socket only.
const NO_HOST: &str = "127.0.0.1";

/// What `root` says, without the warnings. What is wrong goes to `report`; where the result is
/// `None`, something did.
pub(crate) fn config(
    root: &Node,
    dialect: Dialect,
    report: &mut Report,
) -> Option<(General, Vec<Pool>)> {
    let none = Node::empty(Section::General, "general".to_owned(), root.line);
    let node = root.children("general").first().map_or(&none, |child| &child.node);
    let scope = Scope::new(node, dialect);
    let general = general(&scope, report);
    let pools = root.children("pools").iter().map(|child| pool(child, &scope, report));
    // All of them first: a mistake in one hides none in the next.
    let pools: Vec<_> = pools.collect();
    let pools: Vec<_> = pools.into_iter().collect::<Option<_>>()?;
    sums::over_databases(&pools, &scope, report);
    Some((general?, pools))
}

fn general(scope: &Scope<'_>, report: &mut Report) -> Option<General> {
    Some(General {
        host: scope.read("host")?,
        port: scope.read("port")?,
        worker_threads: scope.read("worker_threads"),
        unix_socket: unix_socket(scope, report)?,
        connect_timeout: scope.read("connect_timeout")?,
        query_wait_timeout: timeout(scope, "query_wait_timeout")?,
        client_login_timeout: timeout(scope, "client_login_timeout")?,
        idle_timeout: timeout(scope, "idle_timeout")?,
        server_lifetime: timeout(scope, "server_lifetime")?,
        autoreload: scope.read("autoreload").filter(|time: &Duration| !time.is_zero()),
        shutdown_timeout: scope.read("shutdown_timeout")?,
        admin: credentials::admin(scope, report)?,
        max_clients: scope.read("max_clients"),
        max_logins: scope.read("max_logins")?,
        max_user_client_connections: scope.read("max_user_client_connections"),
        server_limit: server_limit(scope)?,
        max_user_connections: scope.read("max_user_connections"),
        connect_parallelism: scope.read("connect_parallelism")?,
        max_buffer_memory: scope.read("max_buffer_memory")?,
        client_idle_timeout: timeout(scope, "client_idle_timeout")?,
        exporter: exporter(scope, report)?,
        log: LogOptions { level: scope.read("log_level")?, format: scope.read("log_format")? },
        log_client_connections: scope.read("log_client_connections")?,
        log_client_disconnections: scope.read("log_client_disconnections")?,
        tcp: tcp(scope)?,
    })
}

fn unix_socket(scope: &Scope<'_>, report: &mut Report) -> Option<UnixSocket> {
    if scope.refused("unix_socket_dir") {
        return None;
    }
    let over_tcp = !scope.read::<String>("host")?.is_empty();
    let folder = scope.read::<String>("unix_socket_dir").filter(|folder| !folder.is_empty());
    if folder.is_none() && !over_tcp {
        let message = "there is nothing to listen on: expected a host, or a unix_socket_dir";
        report.error(scope.line_of("host"), &scope.key("host"), message);
    }
    Some(UnixSocket {
        folder,
        required: scope.has("unix_socket_dir") || !over_tcp,
        mode: scope.read("unix_socket_mode")?,
        group: scope.read("unix_socket_group"),
    })
}

/// `Some(None)`: there is none.
fn exporter(scope: &Scope<'_>, report: &mut Report) -> Option<Option<Exporter>> {
    if !scope.read::<bool>("enable_prometheus_exporter")? {
        return Some(None);
    }
    let (host, port) = (scope.read::<String>("host")?, scope.read("prometheus_exporter_port")?);
    let host = if host.is_empty() {
        NO_HOST.to_owned()
    } else if port == scope.read::<u16>("port")? {
        let name = "prometheus_exporter_port";
        let message = format!("{port} is the port of clients; expected another");
        report.error(scope.line_of(name), &scope.key(name), &message);
        return None;
    } else {
        host
    };
    Some(Some(Exporter { host, port }))
}

fn server_limit(scope: &Scope<'_>) -> Option<Limit> {
    let instances = scope.read("instances")?;
    Some(match (scope.read("max_server_connections"), scope.dialect()) {
        (Some(limit), _) => Limit::Set(limit),
        (None, Dialect::Own) => Limit::OfRoom { instances },
        (None, Dialect::Pgcat) if scope.has("instances") => Limit::OfRoom { instances },
        // Nothing is limited that PgCat does not limit.
        (None, Dialect::Pgcat) => Limit::None,
    })
}

fn tcp(scope: &Scope<'_>) -> Option<TcpOptions> {
    Some(TcpOptions {
        keepalives_idle: timeout(scope, "tcp_keepalives_idle")?,
        keepalives_interval: timeout(scope, "tcp_keepalives_interval")?,
        keepalives_count: scope.read("tcp_keepalives_count").filter(|count| *count > 0),
        user_timeout: timeout(scope, "tcp_user_timeout")?,
    })
}

fn pool(child: &Child, general: &Scope<'_>, report: &mut Report) -> Option<Pool> {
    let scope = general.inner(&child.node);
    let (line, key) = &child.named_at;
    if CONSOLE_DATABASES.contains(&child.name.as_str()) {
        let message = "this database is the console; expected another name";
        report.error(*line, key, message);
    }
    if child.name.is_empty() || child.name.contains('\0') {
        report.error(*line, key, "expected the name of a database");
    }
    let users = child.node.children("users");
    let mut names = BTreeSet::new();
    for user in users {
        let scope = scope.inner(&user.node);
        if let Some(name) = scope.read::<String>("username")
            && !names.insert(name.clone())
        {
            let message = format!("{name:?} is a user of this pool already");
            report.error(scope.line_of("username"), &scope.key("username"), message);
        }
    }
    if child.name == ANY_DATABASE {
        for user in users {
            sums::minimum_of_any_database(&scope.inner(&user.node), report);
        }
    }
    let users: Vec<_> = users.iter().map(|it| user(&scope.inner(&it.node), report)).collect();
    let shards = shards(child, &scope, report);
    let users: Vec<_> = users.into_iter().collect::<Option<_>>()?;
    sums::of_database(&child.name, &users, &scope, report);
    Some(Pool {
        name: child.name.clone(),
        users,
        max_client_connections: scope.read("max_db_client_connections"),
        max_connections: scope.read("max_db_connections"),
        shards: shards?,
    })
}

fn user(scope: &Scope<'_>, report: &mut Report) -> Option<User> {
    let auth = credentials::auth(scope, "auth_type", "password", report);
    let pool_size: u32 = scope.read("pool_size")?;
    if scope.read::<u32>("min_pool_size").is_some_and(|min| min > pool_size) {
        let message = format!("expected at most pool_size, which is {pool_size}");
        report.error(scope.line_of("min_pool_size"), &scope.key("min_pool_size"), message);
    }
    pin_policies(scope, report);
    sums::pool_size(scope, report);
    sums::reserve(scope, report);
    Some(User {
        username: scope.read("username")?,
        password: scope.read("password").unwrap_or_default(),
        auth: auth?,
        mode: scope.read::<PoolMode>("pool_mode")?,
        pool_size,
        min_pool_size: scope.read("min_pool_size")?,
        server_choice: scope.read("server_choice")?,
        loud_functions: scope.read("loud_functions")?,
        quiet_functions: scope.read("quiet_functions")?,
        application_name: scope.read("application_name")?,
        sequence_affinity: scope.read("sequence_affinity")?,
        max_pinned: scope.read("max_pinned")?,
        pipelining: scope.read("pipelining")?,
        pin_refuse: scope.read("pin_refuse")?,
        pin_ignore: scope.read("pin_ignore")?,
        prepared_statements: scope.read("prepared_statements_cache_size")?,
        reserve_pool_size: scope.read("reserve_pool_size")?,
        reserve_pool_timeout: scope.read("reserve_pool_timeout")?,
        server_username: scope.read("server_username")?,
        server_password: credentials::server_password(scope, report),
        reset_query: scope.read("server_reset_query")?,
        connect_timeout: scope.read("connect_timeout")?,
        query_wait_timeout: timeout(scope, "query_wait_timeout")?,
        idle_timeout: timeout(scope, "idle_timeout")?,
        server_lifetime: timeout(scope, "server_lifetime")?,
        idle_in_transaction_timeout: timeout(scope, "idle_client_in_transaction_timeout")?,
        pin_idle_timeout: timeout(scope, "pin_idle_timeout")?,
        statement_timeout: timeout(scope, "statement_timeout")?,
        transaction_timeout: timeout(scope, "transaction_timeout")?,
    })
}

/// What is refused cannot be ignored.
fn pin_policies(scope: &Scope<'_>, report: &mut Report) {
    let read = |name| scope.read::<Vec<&'static str>>(name).unwrap_or_default();
    let refused = read("pin_refuse");
    for kind in read("pin_ignore").iter().filter(|kind| refused.contains(kind)) {
        let message = format!("{kind:?} is in pin_refuse too");
        report.error(scope.line_of("pin_ignore"), &scope.key_of("pin_ignore"), message);
    }
}

fn shards(pool: &Child, outer: &Scope<'_>, report: &mut Report) -> Option<Vec<Shard>> {
    let children = pool.node.children("shards");
    let mut shards = Vec::new();
    let mut numbers = BTreeSet::new();
    for child in children {
        let scope = outer.inner(&child.node);
        if let Ok(number) = child.name.parse::<u32>()
            && !numbers.insert(number)
        {
            let message = format!("there is a shard {number} already");
            report.error(scope.line(), &child.node.path, message);
        }
        let servers = servers(&scope, report);
        let database: Option<String> = scope.read("database");
        if database.as_deref() == Some(ANY_DATABASE) && pool.name != ANY_DATABASE {
            let message = "\"*\" is for [pools.\"*\"]; expected the name of a database";
            report.error(scope.line_of("database"), &scope.key("database"), message);
        }
        shards.push((database, servers));
    }
    if let [_, second, ..] = children {
        let message = "has no effect yet: the first shard is used for everything";
        report.warning(second.node.line, &second.node.path, message);
    }
    let whole = |(database, servers): (Option<_>, Option<_>)| {
        Some(Shard { database: database?, servers: servers? })
    };
    shards.into_iter().map(whole).collect()
}

fn servers(scope: &Scope<'_>, report: &mut Report) -> Option<Vec<Server>> {
    let servers: Vec<Server> = scope.read("servers")?;
    let (line, key) = (scope.line_of("servers"), scope.key("servers"));
    if servers.iter().filter(|server| server.role == Role::Primary).count() > 1 {
        report.error(line, &key, "expected at most one primary");
    }
    if servers.iter().collect::<BTreeSet<_>>().len() < servers.len() {
        report.error(line, &key, "expected each server once");
    }
    if servers.len() > 1 {
        let message = "has no effect yet beyond one server: the primary is used, or the first \
                       server if there is none";
        report.warning(line, &key, message);
    }
    Some(servers)
}

/// A time of which zero means that there is no limit.
fn timeout(scope: &Scope<'_>, name: &'static str) -> Option<Option<Duration>> {
    let time: Duration = scope.read(name)?;
    Some((!time.is_zero()).then_some(time))
}

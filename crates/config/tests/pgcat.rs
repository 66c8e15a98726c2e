//! Every key of PgCat 1.2, and its default. Where PgCat's manual and its code disagree,
//! docs/configuration.md says who is right.

use std::path::Path;

use pgweir_config::{Config, Dialect, Effect, Fallback, Section, Setting};

use Section::{General, Pool, Root, Shard, User};

/// Section, key, a value that is not what happens anyway, and the default where there is one.
const KEYS: &[(Section, &str, &str, Option<&str>)] = &[
    (Root, "path", "'pgcat.toml'", None),
    (Root, "plugins", "{ query_logger = { enabled = true } }", None),
    (General, "host", "'127.0.0.1'", Some("0.0.0.0")),
    (General, "port", "6433", Some("6432")),
    (General, "enable_prometheus_exporter", "true", Some("false")),
    (General, "prometheus_exporter_port", "9931", Some("9930")),
    (General, "connect_timeout", "2000", Some("5000")),
    (General, "idle_timeout", "30000", Some("600000")),
    (General, "server_lifetime", "86400000", Some("3600000")),
    (General, "server_round_robin", "true", Some("true")),
    (General, "tcp_keepalives_idle", "6", Some("5")),
    (General, "tcp_keepalives_count", "6", Some("5")),
    (General, "tcp_keepalives_interval", "6", Some("5")),
    (General, "tcp_user_timeout", "20000", Some("10000")),
    (General, "dns_cache_enabled", "true", Some("false")),
    (General, "dns_max_ttl", "60", Some("30")),
    (General, "shutdown_timeout", "1000", Some("60000")),
    (General, "healthcheck_timeout", "2000", Some("1000")),
    (General, "healthcheck_delay", "2000", Some("30000")),
    (General, "ban_time", "30", Some("60")),
    (General, "idle_client_in_transaction_timeout", "5000", Some("0")),
    (General, "worker_threads", "8", Some("4")),
    (General, "autoreload", "15000", None),
    (General, "log_client_connections", "true", Some("false")),
    (General, "log_client_disconnections", "true", Some("false")),
    (General, "tls_certificate", "'server.crt'", None),
    (General, "tls_private_key", "'server.key'", None),
    (General, "server_tls", "true", Some("false")),
    (General, "verify_server_certificate", "true", Some("false")),
    (General, "admin_username", "'admin'", None),
    (General, "admin_password", "'admin'", None),
    (General, "admin_auth_type", "'md5'", Some("md5")),
    (General, "validate_config", "true", Some("true")),
    (General, "auth_query", "'SELECT 1'", None),
    (General, "auth_query_user", "'alice'", None),
    (General, "auth_query_password", "'secret'", None),
    (Pool, "pool_mode", "'session'", Some("transaction")),
    (Pool, "load_balancing_mode", "'loc'", Some("random")),
    (Pool, "default_role", "'replica'", Some("any")),
    (Pool, "query_parser_enabled", "true", Some("false")),
    (Pool, "query_parser_read_write_splitting", "true", Some("false")),
    (Pool, "query_parser_max_length", "1000", None),
    (Pool, "primary_reads_enabled", "false", Some("true")),
    (Pool, "connect_timeout", "2000", None),
    (Pool, "idle_timeout", "2000", None),
    (Pool, "server_lifetime", "2000", None),
    (Pool, "checkout_failure_limit", "3", None),
    (Pool, "sharding_function", "'sha1'", Some("pg_bigint_hash")),
    (Pool, "automatic_sharding_key", "'data.id'", None),
    (Pool, "sharding_key_regex", "'.*'", None),
    (Pool, "shard_id_regex", "'.*'", None),
    (Pool, "regex_search_limit", "500", Some("1000")),
    (Pool, "default_shard", "'random'", Some("shard_0")),
    (Pool, "auth_query", "'SELECT 1'", None),
    (Pool, "auth_query_user", "'alice'", None),
    (Pool, "auth_query_password", "'secret'", None),
    (Pool, "cleanup_server_connections", "false", Some("true")),
    (Pool, "log_client_parameter_status_changes", "true", Some("false")),
    (Pool, "prepared_statements_cache_size", "500", None),
    (Pool, "db_activity_based_routing", "true", Some("false")),
    (Pool, "db_activity_init_delay", "200", Some("100")),
    (Pool, "db_activity_ttl", "600", Some("900")),
    (Pool, "table_mutation_cache_ms_ttl", "100", Some("50")),
    (Pool, "plugins", "{ table_access = { enabled = true, tables = ['t'] } }", None),
    (User, "username", "'alice'", None),
    (User, "password", "'secret'", None),
    (User, "auth_type", "'md5'", None),
    (User, "server_username", "'bob'", None),
    (User, "server_password", "'secret'", None),
    (User, "pool_size", "9", Some("15")),
    (User, "min_pool_size", "3", Some("0")),
    (User, "pool_mode", "'transaction'", None),
    (User, "server_lifetime", "60000", None),
    (User, "statement_timeout", "5000", None),
    (User, "connect_timeout", "2000", None),
    (User, "idle_timeout", "2000", None),
    (Shard, "servers", "[['127.0.0.1', 5432, 'primary'], ['127.0.0.2', 5432, 'replica']]", None),
    (Shard, "database", "'shard0'", None),
    (Shard, "mirrors", "[['127.0.0.3', 5432, 0]]", None),
];

#[test]
fn defaults_are_as_promised() {
    for (section, key, _, default) in KEYS {
        let setting = find(*section, key);
        if let Some(default) = default {
            assert_eq!(setting.fallback(Dialect::Pgcat), Fallback::Text(default), "{key}");
        }
    }
}

/// A file with every key is read, and whoever asks for something that does not happen is told.
#[test]
fn a_file_with_every_key_is_read() {
    let headers = [
        (Root, ""),
        (General, "[general]\n"),
        (Pool, "[pools.app]\n"),
        (User, "[pools.app.users.0]\n"),
        (Shard, "[pools.app.shards.0]\n"),
    ];
    let lines = |section| {
        let of_section = KEYS.iter().filter(move |(place, ..)| *place == section);
        of_section.map(|(_, key, value, _)| format!("{key} = {value}\n")).collect::<String>()
    };
    let text: String =
        headers.iter().map(|(section, header)| format!("{header}{}", lines(*section))).collect();
    let config = Config::parse(&text, Path::new("pgcat.toml"));
    let config = config.unwrap_or_else(|errors| panic!("{errors}"));

    for (section, key, ..) in KEYS {
        let prefix = headers.iter().find(|(place, _)| place == section).map(|(_, header)| *header);
        let prefix = prefix.unwrap_or_default().trim_matches(['[', ']', '\n']);
        let path = if prefix.is_empty() { (*key).to_owned() } else { format!("{prefix}.{key}") };
        // What a list of several servers asks for is more than one line of the table says.
        let idle = find(*section, key).effect != Effect::Now || *key == "servers";
        let warned = config.warnings.iter().any(|warning| warning.0.key == path);
        assert_eq!(warned, idle, "{path}");
    }
}

#[track_caller]
fn find(section: Section, key: &str) -> &'static Setting {
    let setting = Setting::find(Dialect::Pgcat, section, key);
    setting.unwrap_or_else(|| panic!("{key} is not in the table"))
}

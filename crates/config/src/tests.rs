//! What files come to. What is said about wrong ones: `tests/files`.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::{ProptestConfig, any, prop_assert, proptest};

use crate::quantity;
use crate::{
    AuthMethod, Config, Exporter, LogFormat, LogLevel, LogOptions, Pipelining, Pool, PoolMode,
    Role, UnixSocket, User,
};

/// A SCRAM verifier that is whole.
pub(crate) const SCRAM: &str = "SCRAM-SHA-256$4096:c2FsdA==$\
                     h7BOWJYfmpnYU9QEagtbeT58Pku9IfWsqPsXwgzbHYs=:\
                     s+rNM0M7MbUlI1EDLJs+ei56p3ONXezfDdbGJoCFPAY=";

/// The smallest file that is one.
pub(crate) const SMALL: &str = r#"
[pools.app.users.0]
username = "alice"
password = "secret"
[pools.app.shards.0]
servers = [["10.0.0.1", 5432, "primary"]]
database = "app_db"
"#;

#[test]
fn defaults_are_those_of_the_pgcat_dialect() {
    let Config { general, pools, warnings } = parse(SMALL);
    assert_eq!((general.host.as_str(), general.port), ("0.0.0.0", 6432));
    let none = UnixSocket { folder: None, required: false, mode: 0o777, group: None };
    assert_eq!(general.unix_socket, none);
    assert_eq!(general.log, LogOptions { level: LogLevel::Info, format: LogFormat::Text });
    assert_eq!(general.max_clients, None);
    assert_eq!(general.connect_timeout, Duration::from_secs(5));
    assert_eq!(general.query_wait_timeout, Some(Duration::from_secs(5)));
    assert_eq!(general.client_login_timeout, Some(Duration::from_secs(15)));
    assert_eq!(general.idle_timeout, Some(Duration::from_secs(600)));
    assert_eq!(general.server_lifetime, Some(Duration::from_secs(3600)));
    assert_eq!(general.shutdown_timeout, Duration::from_secs(60));
    assert!(!general.log_client_connections && !general.log_client_disconnections);
    assert_eq!(general.tcp.keepalives_idle, Some(Duration::from_secs(5)));
    assert_eq!(general.tcp.keepalives_interval, Some(Duration::from_secs(5)));
    assert_eq!(general.tcp.keepalives_count, Some(5));
    assert_eq!(general.tcp.user_timeout, Some(Duration::from_secs(10)));
    assert_eq!(general.admin, None);
    assert_eq!(warnings, []);

    assert_eq!((general.max_logins, general.connect_parallelism), (1_000, 64));
    assert_eq!((general.client_idle_timeout, general.autoreload), (None, None));

    let [Pool { name, users, shards, max_client_connections, max_connections }] = &pools[..] else {
        panic!("{pools:?}")
    };
    assert_eq!(name, "app");
    assert_eq!((max_client_connections, max_connections), (&None, &None));
    let [user] = &users[..] else { panic!("{users:?}") };
    assert_eq!((user.username.as_str(), user.password.expose()), ("alice", "secret"));
    assert_eq!((user.server_username.as_str(), user.server_password.expose()), ("alice", "secret"));
    assert_eq!((user.auth, user.mode), (AuthMethod::Md5, PoolMode::Transaction));
    assert_eq!((user.pool_size, user.reset_query.as_str()), (15, "DISCARD ALL"));
    assert_eq!((user.min_pool_size, user.reserve_pool_size), (0, 0));
    assert_eq!((user.statement_timeout, user.transaction_timeout), (None, None));
    let (shard, server) = pools[0].served().expect("a pool has a server");
    assert_eq!(shard, &shards[0]);
    assert_eq!((shard.database.as_str(), server.host.as_str()), ("app_db", "10.0.0.1"));
    assert_eq!((server.port, server.role), (5432, Role::Primary));
}

#[test]
fn metrics_are_served_on_the_host_of_clients() {
    let exporter = |general: &str| {
        let text = format!(
            "[general]\nunix_socket_dir = '/run/postgresql'\n{general}\n\
             [pools.app.users.0]\nusername = 'alice'\npassword = 'secret'\npool_size = 1\n\
             [pools.app.shards.0]\nservers = [['db', 5432, 'primary']]\ndatabase = 'app'\n"
        );
        let config = parse(&text);
        config.general.exporter.map(|Exporter { host, port }| (host, port))
    };
    let at = |host: &str, port| Some((host.to_owned(), port));
    let served = "enable_prometheus_exporter = true";
    assert_eq!(exporter("host = '10.0.0.1'"), None);
    assert_eq!(exporter("prometheus_exporter_port = 6432"), None, "nobody is in the way");
    assert_eq!(exporter(&format!("host = '10.0.0.1'\n{served}")), at("10.0.0.1", 9_930));
    let elsewhere = format!("{served}\nprometheus_exporter_port = 9931");
    assert_eq!(exporter(&format!("host = 'localhost'\n{elsewhere}")), at("localhost", 9_931));
    assert_eq!(exporter(&format!("host = ''\n{served}")), at("127.0.0.1", 9_930));
    let of_clients = format!("host = ''\n{served}\nprometheus_exporter_port = 6432");
    assert_eq!(exporter(&of_clients), at("127.0.0.1", 6_432), "theirs is no TCP port");
}

/// Our own dialect has the same names and safe defaults.
#[test]
fn defaults_of_our_own_dialect_are_safe() {
    let Config { general, pools, warnings } = parse(&format!("config_version = 1\n{SMALL}"));
    assert_eq!((general.host.as_str(), general.port), ("127.0.0.1", 6432));
    assert_eq!(general.unix_socket.folder.as_deref(), Some("/run/pgweir"));
    assert!(!general.unix_socket.required, "not every machine has that folder");
    assert_eq!(general.connect_timeout, Duration::from_secs(5));
    assert_eq!(general.query_wait_timeout, Some(Duration::from_secs(30)));
    assert_eq!(general.server_lifetime, Some(Duration::from_secs(3600)));
    assert_eq!(general.admin, None, "nobody comes in with a password that everybody knows");
    assert_eq!(general.tcp.keepalives_idle, Some(Duration::from_secs(60)));
    assert_eq!(general.tcp.keepalives_interval, Some(Duration::from_secs(10)));
    assert_eq!(general.tcp.keepalives_count, Some(3));
    assert_eq!(general.tcp.user_timeout, Some(Duration::from_secs(30)));
    let user = &pools[0].users[0];
    assert_eq!((user.auth, user.pool_size), (AuthMethod::ScramSha256, 20));
    assert_eq!(user.query_wait_timeout, Some(Duration::from_secs(30)));
    assert_eq!(warnings, []);
}

/// The smallest file in the flat form of pgcat.toml.
const FLAT: &str = r#"
[user]
name = "alice"
password = "secret"
[shards.0]
servers = [["10.0.0.1", 5432, "primary"]]
database = "app_db"
[shards.1]
servers = [["10.0.0.2", 5432, "primary"]]
database = "other"
"#;

#[test]
fn the_flat_form_is_one_pool() {
    let plain = parse(FLAT);
    let with_pools = parse(&SMALL.replace("pools.app.", "pools.app_db."));
    assert_eq!(plain.general, with_pools.general, "with the same defaults");
    let [pool] = &plain.pools[..] else { panic!("{plain:?}") };
    assert_eq!((&pool.name, &pool.users), (&with_pools.pools[0].name, &with_pools.pools[0].users));
    let databases: Vec<_> = pool.shards.iter().map(|shard| shard.database.as_str()).collect();
    assert_eq!(databases, ["app_db", "other"]);

    let general = "[general]\npool_size = 5\npool_mode = 'session'\nidle_timeout = 1000\n";
    let router = "[query_router]\nquery_wait_timeout = 2000\n";
    let user = parse(&format!("{general}{router}{FLAT}")).pools.remove(0).users.remove(0);
    assert_eq!((user.pool_size, user.mode), (5, PoolMode::Session));
    assert_eq!(user.idle_timeout, Some(Duration::from_secs(1)));
    assert_eq!(user.query_wait_timeout, Some(Duration::from_secs(2)));
}

#[test]
fn a_file_with_pools_or_with_a_version_is_not_flat() {
    for head in ["config_version = 1", "pools.app.users = {}"] {
        let errors = Config::parse(&format!("{head}\n{FLAT}"), Path::new("f.toml"));
        let errors = errors.expect_err("it has keys of another form").to_string();
        assert!(errors.contains("f.toml:3: user: unknown"), "{errors}");
        assert!(errors.contains("f.toml:6: shards: unknown here; it belongs in"), "{errors}");
    }
}

#[test]
fn times_of_our_own_dialect_have_their_unit() {
    let idle = |value: &str| {
        let text = format!("config_version = 1\n[general]\nidle_timeout = \"{value}\"\n{SMALL}");
        parse(&text).general.idle_timeout
    };
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(idle("1500ms"), Some(Duration::from_millis(1500)));
    assert_eq!(idle("5s"), seconds(5));
    assert_eq!(idle("10min"), seconds(600));
    assert_eq!(idle("2h"), seconds(7200));
    assert_eq!(idle("7d"), seconds(7 * 86_400));
    assert_eq!(idle("off"), None);
}

#[test]
fn sizes_of_our_own_dialect_have_their_unit() {
    for (size, bytes) in [("0B", 0), ("1000B", 1_000), ("16kB", 16 << 10), ("64MB", 64 << 20)] {
        let text =
            format!("config_version = 1\n[pools.app]\nregex_search_limit = \"{size}\"{SMALL}");
        assert_eq!(parse(&text).warnings.len(), 1, "it has no effect yet");
        assert_eq!(
            (quantity::size(size), quantity::written_size(bytes)),
            (Some(bytes), size.into())
        );
    }
}

#[test]
fn the_longest_keepalive_is_that_of_the_kernel() {
    for (head, value) in [("", "32767"), ("config_version = 1", "'32767s'")] {
        let text = format!("{head}\n[general]\ntcp_keepalives_idle = {value}\n{SMALL}");
        let idle = parse(&text).general.tcp.keepalives_idle;
        assert_eq!(idle, Some(Duration::from_secs(32_767)));
    }
}

#[test]
fn a_unix_socket_that_is_asked_for_must_be_there() {
    let socket = |general: &str| {
        parse(&format!("config_version = 1\n[general]\n{general}\n{SMALL}")).general.unix_socket
    };
    let asked = socket("unix_socket_dir = '/tmp'\nunix_socket_mode = '770'");
    assert_eq!((asked.folder.as_deref(), asked.required), (Some("/tmp"), true));
    assert_eq!(asked.mode, 0o770);
    assert_eq!(socket("unix_socket_dir = ''").folder, None);
    assert!(socket("host = ''").required, "there is nothing else to listen on");
}

#[test]
fn zero_is_off_where_a_limit_can_be_off() {
    let general = parse(&format!(
        "[general]\nquery_wait_timeout = 0\nclient_login_timeout = 0\nidle_timeout = 0\n\
         server_lifetime = 0\nshutdown_timeout = 0\ntcp_keepalives_idle = 0\n\
         tcp_keepalives_interval = 0\ntcp_keepalives_count = 0\ntcp_user_timeout = 0\n{SMALL}"
    ))
    .general;
    assert_eq!(general.query_wait_timeout, None);
    assert_eq!(general.client_login_timeout, None);
    assert_eq!(general.idle_timeout, None);
    assert_eq!(general.server_lifetime, None);
    assert_eq!(general.shutdown_timeout, Duration::ZERO);
    assert_eq!(general.tcp.keepalives_idle, None);
    assert_eq!(general.tcp.keepalives_interval, None);
    assert_eq!(general.tcp.keepalives_count, None);
    assert_eq!(general.tcp.user_timeout, None);
}

#[test]
fn users_inherit_from_their_pool_and_from_general() {
    let user = |general: &str, pool: &str, user: &str| -> User {
        let text = format!("[general]\n{general}\n[pools.app]\n{pool}\n{SMALL}");
        let text = text.replace("[pools.app.shards.0]", &format!("{user}\n[pools.app.shards.0]"));
        parse(&text).pools.remove(0).users.remove(0)
    };
    let ms = |ms| Some(Duration::from_millis(ms));

    let all = user("idle_timeout = 1\nserver_lifetime = 2\nauth_type = 'password'", "", "");
    assert_eq!((all.idle_timeout, all.server_lifetime), (ms(1), ms(2)));
    assert_eq!(all.auth, AuthMethod::Password);
    let mixed = user("idle_timeout = 1\nserver_lifetime = 2", "idle_timeout = 3", "");
    assert_eq!((mixed.idle_timeout, mixed.server_lifetime), (ms(3), ms(2)));
    let innermost = user("idle_timeout = 1", "idle_timeout = 3", "idle_timeout = 4");
    assert_eq!(innermost.idle_timeout, ms(4));

    // PgCat's connect_timeout is what its clients wait for a server at most.
    assert_eq!(user("connect_timeout = 7", "", "").query_wait_timeout, ms(7));
    assert_eq!(user("connect_timeout = 7", "", "connect_timeout = 9").query_wait_timeout, ms(9));
    let apart = user("query_wait_timeout = 8", "", "connect_timeout = 9");
    assert_eq!(
        (apart.query_wait_timeout, apart.connect_timeout),
        (ms(8), Duration::from_millis(9))
    );

    assert_eq!(user("", "pool_mode = 'SESSION'", "").mode, PoolMode::Session);
    let statement = user("", "pool_mode = 'session'", "pool_mode = 'statement'");
    assert_eq!(statement.mode, PoolMode::Statement);
}

#[test]
fn users_clean_their_servers_as_their_pool_says() {
    for reset_query in ["RESET ALL; CLOSE ALL", ""] {
        let text = format!("[pools.app]\nserver_reset_query = '{reset_query}'\n{SMALL}");
        assert_eq!(parse(&text).pools[0].users[0].reset_query, reset_query);
    }
}

#[test]
fn the_secret_decides_between_md5_and_scram() {
    const MD5: &str = "md5d41d8cd98f00b204e9800998ecf8427e";
    let auth = |method: &str, secret: &str| {
        let text = SMALL.replace("\"secret\"", &format!("'{secret}'\nserver_password = 'x'"));
        parse(&format!("[general]\nauth_type = '{method}'\n{text}")).pools[0].users[0].auth
    };
    assert_eq!(auth("md5", "plain"), AuthMethod::Md5);
    assert_eq!(auth("md5", MD5), AuthMethod::Md5);
    assert_eq!(auth("md5", SCRAM), AuthMethod::ScramSha256);
    assert_eq!(auth("scram-sha-256", "plain"), AuthMethod::ScramSha256);
    assert_eq!(auth("scram-sha-256", SCRAM), AuthMethod::ScramSha256);
    assert_eq!(auth("password", SCRAM), AuthMethod::Password);
    assert_eq!(auth("md5", "md5 is not a hash"), AuthMethod::Md5);

    let config = parse(&SMALL.replace("secret", SCRAM));
    let server_password = &config.pools[0].users[0].server_password;
    assert_eq!(server_password.expose(), "", "a verifier is never sent to a server");
    assert_eq!(
        config.warnings[0].to_string(),
        "f.toml:4: pools.app.users.0.password: a SCRAM verifier cannot log in to a server: without \
         a server_password, only servers that ask for none can be used"
    );
    let user = parse(&SMALL.replace("secret", MD5)).pools.remove(0).users.remove(0);
    assert_eq!(user.server_password.expose(), MD5, "a hash answers a server's md5 request");
}

#[test]
fn the_console_has_an_account_where_it_is_safe() {
    let admin = |general: &str| parse(&format!("[general]\n{general}\n{SMALL}")).general.admin;
    assert_eq!(admin("host = '0.0.0.0'"), None);
    for host in ["127.0.0.1", "127.1.2.3", "::1", "localhost"] {
        let admin = admin(&format!("host = '{host}'")).expect(host);
        assert_eq!((admin.username.as_str(), admin.password.expose()), ("admin", "admin"));
    }
    let admin = admin("admin_username = 'root'\nadmin_password = 'deep'").expect("as given");
    assert_eq!((admin.username.as_str(), admin.password.expose()), ("root", "deep"));
    assert_eq!(admin.auth, AuthMethod::Md5);
}

#[test]
fn trust_is_allowed_on_loopback_or_with_permission() {
    let small = SMALL.replace("password", "# password");
    let unix = "host = ''\nunix_socket_dir = '@here'";
    for allowed in ["host = '127.0.0.1'", unix, "allow_trust_anywhere = true"] {
        let text = format!("[general]\n{allowed}\nauth_type = 'trust'\n{small}");
        let user = parse(&text).pools.remove(0).users.remove(0);
        assert_eq!((user.auth, user.password.expose()), (AuthMethod::Trust, ""));
    }
}

#[test]
fn numbers_order_users_and_shards() {
    let text = r#"
[general]
host = "127.0.0.1"
auth_type = "trust"
[pools.app.users]
10.username = "c"
9.username = "b"
first.username = "d"
0.username = "a"
[pools.app.shards]
10 = { servers = [["h", 3, "primary"]], database = "two" }
2 = { servers = [["h", 1, "replica"], ["h", 2, "primary"]], database = "one" }
"#;
    let pool = parse(text).pools.remove(0);
    let users: String = pool.users.iter().map(|user| user.username.as_str()).collect();
    assert_eq!(users, "abcd");
    let databases: Vec<_> = pool.shards.iter().map(|shard| shard.database.as_str()).collect();
    assert_eq!(databases, ["one", "two"]);
    assert_eq!(pool.served().map(|(_, server)| server.port), Some(2), "the primary");
}

#[test]
fn secrets_are_never_printed() {
    const WORD: &str = "hunter2";
    const SERVERS: &str = r#"[["10.0.0.1", 5432, "primary"]]"#;
    let file = r#"
[general]
host = "127.0.0.1"
admin_username = "root"
admin_password = "hunter2"
auth_query_password = "hunter2"
[pools.app.users.0]
username = "alice"
password = "hunter2"
server_password = "hunter2"
[pools.app.shards.0]
servers = [["10.0.0.1", 5432, "primary"]]
database = "app_db"
"#;
    let config = parse(file);
    assert_eq!(config.pools[0].users[0].password.expose(), WORD);
    assert!(!format!("{config:?}").contains(WORD), "{config:?}");
    let mistakes = [
        ("\"hunter2\"", "hunter2"),
        ("\"hunter2\"", "[\"hunter2\"]"),
        ("\"hunter2\"", "\"hunter2"),
        ("\"hunter2\"", "\"hunter2\" x"),
        ("\"hunter2\"", "\"hunter2\\u0000\""),
        ("password", "pasword"),
        ("10.0.0.1", "postgres://alice:hunter2@10.0.0.1/"),
        (SERVERS, r#""postgres://alice:hunter2@db/app""#),
        (SERVERS, r#"["postgres://alice:hunter2@db/app"]"#),
        (SERVERS, r#"[["db", "alice:hunter2@db", "primary"]]"#),
        (SERVERS, r#"[["db", 5432, "alice:hunter2@db"]]"#),
        (SERVERS, r#""host=db password=hunter2""#),
        ("\"127.0.0.1\"", "\"alice:hunter2@db\""),
        ("[general]", "[general]\nunix_socket_dir = 'postgres://alice:hunter2@db'"),
        ("[general]", "[general]\nport = 'postgres://alice:hunter2'"),
        ("[general]", "[general]\nauth_type = 'postgres://alice:hunter2'"),
        ("[general]", "[general]\nidle_timeout = 'postgres://alice:hunter2'"),
        ("[general]", "[general]\n'postgres://alice:hunter2@db' = 1"),
        ("[general]", "[general]\n'a://hunter2@b' = 1\n'a://hunter2@b' = 1"),
        ("[pools.app.shards.0]", "[pools.app.shards.'postgres://alice:hunter2@db']"),
    ];
    for (from, to) in mistakes {
        let text = file.replace(from, to);
        assert_ne!(text, file, "{to}");
        let errors = Config::parse(&text, Path::new("f.toml")).expect_err(to);
        assert!(!errors.to_string().contains(WORD), "{errors}");
        assert!(!format!("{errors:?}").contains(WORD), "{errors:?}");
    }
}

#[test]
fn errors_print_one_a_line_with_their_place() {
    let text = format!("[general]\nprot = 1\n\nport = 0\n{SMALL}");
    let errors = Config::parse(&text, Path::new("etc/f.toml")).expect_err("two mistakes");
    assert_eq!(
        errors.to_string(),
        "etc/f.toml:2: general.prot: unknown; did you mean \"port\"?\n\
         etc/f.toml:4: general.port: expected a whole number from 1 to 65535, found 0"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_an_error() {
    let path = Path::new("/nonexistent/pgweir.toml");
    let message = Config::load(path).expect_err("there is no such file").to_string();
    let expected = "/nonexistent/pgweir.toml: cannot be read: No such file";
    assert!(message.starts_with(expected), "{message}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a slip of the keyboard makes of a file, it is read or refused in one of its lines.
    #[test]
    fn slips_are_refused_where_they_are(
        at in 0..SMALL.len(),
        len in 0..20_usize,
        slip in "[a-z0-9=\\[\\]\"'.{},\n ]{0,4}",
        general in any::<bool>(),
    ) {
        let head = if general { "[general]\nport = 6432\n" } else { "" };
        let mut text = format!("{head}{SMALL}");
        let end = (at + len).min(text.len());
        text.replace_range(at..end, &slip);
        if let Err(errors) = Config::parse(&text, Path::new("f.toml")) {
            prop_assert!(!errors.problems().is_empty());
            let lines = text.split('\n').count();
            for problem in errors.problems() {
                prop_assert!(problem.line.is_some_and(|line| (1..=lines).contains(&line)));
            }
        }
    }
}

fn parse(text: &str) -> Config {
    Config::parse(text, Path::new("f.toml")).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

#[test]
fn one_server_is_left_for_those_who_keep_none() {
    let most = |max_pinned: &str, pool_size: u32| {
        let own = format!("username = \"alice\"\npool_size = {pool_size}\n{max_pinned}");
        let text = SMALL.replacen("username = \"alice\"", &own, 1);
        parse(&text).pools[0].users[0].max_pinned.of(pool_size)
    };
    let halves = [1, 2, 3, 5, 10].map(|size| most("", size));
    assert_eq!(halves, [1, 1, 2, 3, 5].map(Some));
    let all = [1, 2, 10].map(|size| most("max_pinned = \"100%\"", size));
    assert_eq!(all, [1, 1, 9].map(Some));
    let some = [1, 2, 10].map(|size| most("max_pinned = 3", size));
    assert_eq!(some, [1, 1, 3].map(Some));
    assert_eq!(most("max_pinned = \"off\"", 10), None);
    assert_eq!(most("max_pinned = \"1%\"", 10), Some(1));
}

#[test]
fn kinds_of_pins_are_listed_as_the_console_writes_them() {
    let pool = |lines: &str| format!("[pools.app]\n{lines}\n{SMALL}");
    let lines = "pin_refuse = \" temp table,LISTEN, listen,\"\npin_ignore = \"unclear\"";
    let config = parse(&pool(lines));
    let user = &config.pools[0].users[0];
    assert_eq!(user.pin_refuse, ["listen", "temp table"]);
    assert_eq!(user.pin_ignore, ["unclear"]);
    let wrong = |lines: &str| {
        let read = Config::parse(&pool(lines), Path::new("f.toml"));
        read.expect_err(lines).to_string()
    };
    let said = wrong("pin_refuse = \"advisory_lock\"");
    assert!(said.contains("did you mean \"advisory lock\"?"), "{said}");
    let said = wrong("pin_refuse = \"listen\"\npin_ignore = \"temp table, listen\"");
    assert!(
        said.starts_with("f.toml:3: pools.app.pin_ignore: \"listen\" is in pin_refuse too"),
        "{said}"
    );
    for wrong_share in ["0", "\"0%\"", "\"101%\"", "\"half\"", "-1", "\"50\""] {
        let said = wrong(&format!("max_pinned = {wrong_share}"));
        assert!(said.contains("a percentage such as \"50%\""), "{said}");
    }
}

#[test]
fn how_servers_are_shared_is_said_in_words_or_in_numbers() {
    let read = |value: &str| {
        let text = format!("[general]\npipelining = {value}\n{SMALL}");
        Config::parse(&text, Path::new("f.toml"))
            .map(|config| config.pools[0].users[0].pipelining)
            .map_err(|errors| errors.to_string())
    };
    let fixed = |hot, depth| Ok(Pipelining::Fixed { hot, depth });
    assert_eq!(read("\"off\""), Ok(Pipelining::Off));
    assert_eq!(read("\"auto\""), Ok(Pipelining::Auto));
    assert_eq!(read("4"), fixed(Pipelining::HOT, 4));
    assert_eq!(read("\"3x24\""), fixed(3, 24));
    let texts = ["x", "3x", "0x4", "3x1001", "+3x+8", "on"].map(|text| format!("{text:?}"));
    for wrong in ["0", "1001", "0x24", "true"].into_iter().chain(texts.iter().map(|text| &**text)) {
        let said = read(wrong).expect_err(wrong);
        assert!(said.contains("a whole number from 1 to 1000"), "{said}");
        assert!(said.contains("two of them such as \"3x8\", \"auto\", or \"off\""), "{said}");
    }
}

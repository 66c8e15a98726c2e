//! Who may come in, and how pgweir itself gets in to the server.

use std::sync::LazyLock;

use pgweir_testkit::{
    AuthMethod, Cluster, Login, LoginError, Pgweir, PoolerConfig, WireClient, eventually,
};

use crate::reload::reload;
use crate::stage::{PROGRAM, assert_sound};

/// The methods by their names in both configurations.
const METHODS: [(&str, AuthMethod); 4] = [
    ("trust", AuthMethod::Trust),
    ("password", AuthMethod::Password),
    ("md5", AuthMethod::Md5),
    ("scram-sha-256", AuthMethod::ScramSha256),
];
const PASSWORD: &str = "open, \u{1F511} sesame";
const SERVER_PASSWORD: &str = "the server's own";

/// A cluster where `server_trust`, `server_password` and so on have to log in by that method.
static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| {
    let lines = METHODS.map(|(method, _)| (method, server_role(method)));
    let builder = lines.iter().fold(Cluster::builder(), |builder, (method, role)| {
        builder.hba(&format!("host all {role} 127.0.0.1/32 {method}"))
    });
    let cluster = builder.start();
    for (method, role) in lines {
        let stored = if method == "md5" { "md5" } else { "scram-sha-256" };
        let password = SERVER_PASSWORD.replace('\'', "''");
        cluster.psql(&format!(
            "SET password_encryption = '{stored}'; CREATE ROLE {role} LOGIN PASSWORD '{password}'"
        ));
    }
    cluster
});

fn server_role(method: &str) -> String {
    format!("server_{}", method.replace('-', "_"))
}

fn config() -> PoolerConfig {
    PoolerConfig::new("postgres", &CLUSTER).general("log_client_connections", "true")
}

/// One more user, who logs in to the server as another.
fn user(config: PoolerConfig, name: &str, secret: &str, auth: &str, server: &str) -> PoolerConfig {
    config
        .user(name, secret, 1)
        .user_setting("auth_type", &format!("{auth:?}"))
        .user_setting("server_username", &format!("{:?}", server_role(server)))
        .user_setting("server_password", &format!("{SERVER_PASSWORD:?}"))
}

fn start(config: &PoolerConfig) -> Pgweir {
    Pgweir::start(PROGRAM, |port| config.text(port))
}

fn log_in(pgweir: &Pgweir, name: &str, password: &str) -> Result<WireClient, LoginError> {
    WireClient::login(pgweir.address(), &Login::new(name).password(password))
}

/// The ErrorResponse of a login that must be refused.
#[track_caller]
fn refusal(pgweir: &Pgweir, login: &Login) -> String {
    match WireClient::login(pgweir.address(), login) {
        Err(LoginError::Refused(error)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

/// No secret is in what pgweir logged.
fn assert_discreet(pgweir: &Pgweir) {
    assert_sound(pgweir);
    let log = pgweir.log();
    for secret in [PASSWORD, SERVER_PASSWORD, "wrong password", "SCRAM-SHA-256$"] {
        assert!(!log.contains(secret), "{secret:?} in {log}");
    }
}

#[test]
fn every_method_to_clients_with_every_method_to_servers() {
    let pairs = METHODS.map(|client| METHODS.map(|server| (client, server))).concat();
    let name = |client: &str, server: &str| format!("{client} to {server}");
    let config = pairs.iter().fold(config(), |config, ((client, _), (server, _))| {
        user(config, &name(client, server), PASSWORD, client, server)
    });
    let pgweir = start(&config);
    for ((client, method), (server, _)) in pairs {
        let name = name(client, server);
        let mut client = log_in(&pgweir, &name, PASSWORD).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(client.auth_method(), method);
        assert_eq!(client.query("SELECT session_user"), [server_role(server)]);
        if method != AuthMethod::Trust {
            for wrong in ["wrong password", "", "open"] {
                let refused = log_in(&pgweir, &name, wrong).unwrap_err().to_string();
                assert!(refused.contains("C=\"28P01\""), "{refused}");
            }
        }
    }
    assert_discreet(&pgweir);
}

#[test]
fn strangers_learn_nothing() {
    for (method, _) in METHODS {
        let config = user(config(), "known", PASSWORD, method, "trust");
        let config = config.general("auth_type", &format!("{method:?}"));
        let pgweir = start(&config);
        let login = |name| Login::new(name).password("wrong password");
        let unknown_user = refusal(&pgweir, &login("other"));
        let unknown_database = refusal(&pgweir, &login("known").database("nowhere"));
        let expected = if method == "trust" { "C=\"28000\"" } else { "C=\"28P01\"" };
        assert!(unknown_user.contains(expected), "{unknown_user}");
        if method == "trust" {
            let named = |text: &str, from, to| text.replace(from, to);
            let alike = named(&named(&unknown_user, "other", "known"), "postgres", "nowhere");
            assert_eq!(unknown_database, alike);
        } else {
            let wrong_password = refusal(&pgweir, &login("known"));
            assert_eq!(unknown_database, wrong_password);
            assert_eq!(unknown_user.replace("other", "known"), wrong_password);
        }
        assert_discreet(&pgweir);
    }
}

/// A line of the log is ours, whatever name a stranger gives.
#[test]
fn a_name_forges_no_line_of_the_log() {
    for method in ["trust", "scram-sha-256"] {
        let config = user(config(), "known", PASSWORD, method, "trust");
        let config = config.general("auth_type", &format!("{method:?}"));
        let pgweir = start(&config);
        let forger = Login::new("x\nforged: all is well\u{1b}[2K").password("wrong password");
        let told = refusal(&pgweir, &forger);
        assert!(told.contains(r"x\nforged"), "the client is told its own words: {told}");
        eventually("the refusal in the log", || pgweir.log().contains(r"x\nforged: all is well"));
        let log = pgweir.log();
        assert!(!log.lines().any(|line| line.starts_with("forged")) && !log.contains('\u{1b}'));
        assert_discreet(&pgweir);
    }
}

#[test]
fn secrets_as_postgresql_stores_them() {
    let stored = |role: &str| {
        CLUSTER.psql(&format!("SELECT rolpassword FROM pg_authid WHERE rolname = '{role}'"))
    };
    let verifier = stored("server_scram_sha_256");
    let hash = stored("server_md5");
    assert!(verifier.starts_with("SCRAM-SHA-256$4096:") && hash.starts_with("md5"));
    // md5 with a verifier asks for SCRAM, as PostgreSQL does. An md5 hash is bound to its name.
    let config = user(config(), "verified", &verifier, "md5", "trust");
    let config = user(config, "verified in clear", &verifier, "password", "trust");
    let config = user(config, "server_md5", &hash, "md5", "trust");
    let pgweir = start(&config);
    for (name, method) in [
        ("verified", AuthMethod::ScramSha256),
        ("verified in clear", AuthMethod::Password),
        ("server_md5", AuthMethod::Md5),
    ] {
        let mut client = log_in(&pgweir, name, SERVER_PASSWORD).unwrap();
        assert_eq!(client.auth_method(), method);
        assert_eq!(client.query("SELECT 1"), ["1"]);
        let refused = log_in(&pgweir, name, "wrong password").unwrap_err().to_string();
        assert!(refused.contains("C=\"28P01\""), "{refused}");
        // What is stored is not what is known.
        for stored in [&verifier, &hash] {
            log_in(&pgweir, name, stored).unwrap_err();
        }
    }
    assert!(!pgweir.log().contains(&hash[3..]));
    assert_discreet(&pgweir);
}

#[test]
fn a_wrong_password_for_the_server_is_told_in_its_words() {
    for (method, _) in &METHODS[1..] {
        let role = server_role(method);
        let config = config()
            .user("known", PASSWORD, 1)
            .user_setting("server_username", &format!("{role:?}"))
            .user_setting("server_password", "\"wrong password\"");
        let pgweir = start(&config);
        let told = refusal(&pgweir, &Login::new("known").password(PASSWORD));
        let expected = format!(
            "ErrorResponse S=\"FATAL\" V=\"FATAL\" C=\"28P01\" \
             M=\"password authentication failed for user \\\"{role}\\\"\""
        );
        assert!(told.starts_with(&expected), "{told}");
        assert_discreet(&pgweir);
    }
}

/// One that was logged in to as somebody else, or with another password, serves nobody any more.
#[test]
fn servers_are_logged_in_to_as_the_last_reload_says() {
    let text = |role: &str, password: &str, port: u16| {
        config()
            .user("known", PASSWORD, 1)
            .user_setting("server_username", &format!("{:?}", server_role(role)))
            .user_setting("server_password", &format!("{password:?}"))
            .text(port)
    };
    let pgweir = Pgweir::start(PROGRAM, |port| text("md5", SERVER_PASSWORD, port));
    let mut client = log_in(&pgweir, "known", PASSWORD).unwrap();
    for (role, password) in [
        ("scram-sha-256", SERVER_PASSWORD),
        ("scram-sha-256", "wrong password"),
        ("password", SERVER_PASSWORD),
    ] {
        reload(&pgweir, &text(role, password, pgweir.port()));
        let expected = match password {
            SERVER_PASSWORD => Ok(vec![vec![Some(server_role(role))]]),
            _ => Err("28P01".to_owned()),
        };
        eventually(&format!("{expected:?}"), || {
            let told = client.try_query("SELECT session_user");
            told.map_err(|error| error.sqlstate()) == expected
        });
    }
    assert_discreet(&pgweir);
}

#[test]
fn a_login_has_an_end() {
    let config = user(config(), "known", PASSWORD, "scram-sha-256", "trust");
    let config = config.general("client_login_timeout", "100");
    let pgweir = start(&config);
    let startup = Login::new("known").startup_message();
    for begun in [&b""[..], &startup[..20], &startup] {
        let mut client = WireClient::open(pgweir.address()).unwrap();
        client.send(begun).unwrap();
        let last = client.read_to_end().unwrap().pop().unwrap();
        assert_eq!((last.tag, last.sqlstate().as_str()), (b'E', "08006"));
    }
}

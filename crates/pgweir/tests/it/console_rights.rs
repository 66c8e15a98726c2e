//! Who may do what on the console: its one user everything, everybody else nothing. Nobody is shown
//! a secret.

use pgweir_testkit::{Login, LoginError, Pgweir, PoolerConfig, WireClient};

use crate::console::{psql, shows};
use crate::stage::{CLUSTER, PROGRAM, Stage, assert_sound, create_database};

const CONSOLES: [&str; 3] = ["pgweir", "pgcat", "pgbouncer"];

/// The SQLSTATE of a login that must be refused.
#[track_caller]
fn refusal(pgweir: &Pgweir, login: &Login) -> String {
    match WireClient::login(pgweir.address(), login) {
        Err(LoginError::Refused(error)) => error.sqlstate(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn users_of_pools_have_no_console() {
    let stage = Stage::new("rights_users", 1);
    let mut client = stage.client();
    for console in CONSOLES {
        for password in ["", "admin"] {
            // Though everybody is trusted who comes to the pool.
            let login = stage.login().database(console).password(password);
            assert!(refusal(&stage.pgweir, &login).starts_with("28"), "{console}");
        }
        for password in ["", "Admin", "wrong"] {
            let login = Login::new("admin").database(console).password(password);
            assert_eq!(refusal(&stage.pgweir, &login), "28P01", "{console}");
        }
    }
    // Whose console it is has no pool for that.
    let login = Login::new("admin").database(&stage.name).password("admin");
    assert!(refusal(&stage.pgweir, &login).starts_with("28"));
    // What is a command on the console is bad SQL elsewhere.
    for command in ["SHUTDOWN", "SHUTDOWN WAIT_FOR_CLIENTS"] {
        assert_eq!(client.try_query(command).unwrap_err().sqlstate(), "42601");
    }
    assert_eq!(client.query("SELECT 'still there'"), ["still there"]);
    assert!(stage.pgweir.is_running());
}

/// In our own dialect no password is known to all.
#[test]
fn without_an_account_nobody_has_a_console() {
    create_database(&CLUSTER, "rights_nobody");
    let config = PoolerConfig::new("rights_nobody", &CLUSTER)
        .general("auth_type", "\"trust\"")
        .user("rights_nobody", "", 1);
    let text = |port| format!("config_version = 1\n{}", config.text(port));
    let pgweir = Pgweir::start(PROGRAM, text);
    for console in CONSOLES {
        for user in ["admin", "rights_nobody", "postgres"] {
            let login = Login::new(user).database(console).password("admin");
            assert!(refusal(&pgweir, &login).starts_with("28"), "{console} {user}");
        }
    }
    assert_sound(&pgweir);
}

#[test]
fn no_secret_is_shown() {
    const SECRETS: [&str; 3] = ["s3cret of admin", "s3cret of client", "s3cret of server"];
    let [admin, _, server] = SECRETS.map(|secret| format!("{secret:?}"));
    let stage = Stage::with("rights_secrets", 1, |config| {
        config
            .general("admin_username", "\"admin\"")
            .general("admin_password", &admin)
            .user("other", SECRETS[1], 1)
            .user_setting("auth_type", "\"scram-sha-256\"")
            .user_setting("server_password", &server)
            .user_setting("server_username", "\"rights_secrets\"")
    });
    let login = Login::new("other").database(&stage.name).password(SECRETS[1]);
    stage.client_as(&login).query("SELECT 1");
    let said = |command: &str| {
        let output = psql(&stage, "pgweir", SECRETS[0], command);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
    };
    let help = said("SHOW HELP");
    let shown: String = shows(&help).map(said).collect();
    assert!(shown.contains("users.0.password") && shown.contains("users.0.server_password"));
    for text in [shown, stage.pgweir.log()] {
        for secret in SECRETS {
            assert!(!text.contains(secret), "{secret:?} in {text}");
        }
        assert!(!text.contains("s3cret"), "{text}");
    }
}

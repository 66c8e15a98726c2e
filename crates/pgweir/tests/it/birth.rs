//! Settings that only a server's start can set: each client finds its own, whoever shares the pool
//! with it.

use std::net::SocketAddr;
use std::thread;

use pgweir_testkit::{Login, LoginError, WireClient};

use crate::stage::{self, CLUSTER, Stage};

const SHOW: &str = "SHOW ignore_system_indexes";

fn born(login: Login) -> Login {
    login.parameter("options", "-c ignore_system_indexes=on")
}

/// The list in the engine is that of the PostgreSQL under test.
#[test]
fn these_are_all() {
    let names = "SELECT name FROM pg_settings WHERE context IN ('backend', 'superuser-backend') \
                 ORDER BY name";
    assert_eq!(
        stage::superuser(&CLUSTER, "postgres").query(names),
        [
            "ignore_system_indexes",
            "jit_debugging_support",
            "jit_profiling_support",
            "log_connections",
            "log_disconnections",
            "post_auth_delay"
        ]
    );
}

#[test]
fn clients_with_and_without_share_a_pool() {
    for (name, pool_size) in [("birth_one", 1), ("birth_two", 2)] {
        let stage = Stage::new(name, pool_size);
        thread::scope(|scope| {
            for client in 0..6 {
                let asks = client % 2 == 0;
                let login = if asks { born(stage.login()) } else { stage.login() };
                let stage = &stage;
                scope.spawn(move || {
                    let mut client = stage.client_as(&login);
                    let expected = if asks { ["on"] } else { ["off"] };
                    for _ in 0..15 {
                        assert_eq!(client.query(SHOW), expected);
                        assert_eq!(client.query("RESET ALL"), [""; 0]);
                    }
                });
            }
        });
        assert!(stage.backends("TRUE") <= pool_size as usize, "{name}");
    }
}

/// Those that ask for the same share servers as others do.
#[test]
fn a_server_serves_all_that_ask_for_its_own() {
    let stage = Stage::new("birth_shared", 1);
    let mut clients: Vec<_> = (0..4).map(|_| stage.client_as(&born(stage.login()))).collect();
    let mut servers: Vec<_> = clients
        .iter_mut()
        .flat_map(|client| client.query(&format!("{SHOW}; SELECT pg_backend_pid()")))
        .collect();
    servers.sort();
    servers.dedup();
    assert_eq!(servers.len(), 2, "one server, and what it shows: {servers:?}");
}

#[test]
fn who_may_not_have_it_hears_what_a_direct_connection_hears() {
    let stage = Stage::new("birth_refused", 1);
    let refusal = |address: SocketAddr, (name, value): (&str, &str)| match WireClient::login(
        address,
        &stage.login().parameter(name, value),
    ) {
        Err(LoginError::Refused(error)) => {
            let said = [b'S', b'V', b'C', b'M', b'D', b'H'].map(|field| error.field(field));
            said.map(|text| text.map(|text| format!("{text:?}")))
        }
        other => panic!("{name} = {value}: {other:?}"),
    };
    for setting in [
        ("log_connections", "on"),
        ("log_disconnections", "on"),
        ("jit_debugging_support", "on"),
        ("options", "-c jit_profiling_support=on"),
        ("ignore_system_indexes", "perhaps"),
        ("post_auth_delay", "long"),
        ("post_auth_delay", "-1"),
    ] {
        let direct = refusal(CLUSTER.address(), setting);
        // The second is told what the first was.
        for _ in 0..2 {
            assert_eq!(refusal(stage.address(), setting), direct, "{setting:?}");
        }
        assert_eq!(stage.client().query(SHOW), ["off"]);
    }
}

#[test]
fn a_superuser_has_them_all() {
    let stage = Stage::new("birth_superuser", 1);
    stage.ask("ALTER ROLE birth_superuser SUPERUSER");
    let login = stage.login().parameter("log_connections", "on").parameter("post_auth_delay", "0");
    let mut client = stage.client_as(&login);
    for _ in 0..2 {
        assert_eq!(client.query("SHOW log_connections"), ["on"]);
        assert_eq!(stage.client().query("SHOW log_connections"), ["off"]);
    }
}

#[test]
fn set_is_refused_as_ever() {
    let stage = Stage::new("birth_set", 1);
    let mut client = stage.client_as(&born(stage.login()));
    let error = client.try_query("SET ignore_system_indexes = off").unwrap_err();
    assert_eq!(error.sqlstate(), "55P02");
    assert_eq!(client.query(SHOW), ["on"]);
}

//! What the process is asked to do.

use super::{read, snapshot, state};
use crate::{Order, Rates, answer};

fn order(request: &str) -> (Option<Order>, String) {
    let mut out = Vec::new();
    let (snapshot, rates) = (snapshot(), Rates::new());
    answer(request.as_bytes(), &state(&snapshot, &rates), Ok(()), &mut out);
    (crate::order(request.as_bytes(), &[]), read(&out))
}

/// What was not done is no success.
#[test]
fn a_reload_says_how_it_went() {
    assert_eq!(order("reload"), (Some(Order::Reload), "C RELOAD\nZ I\n".to_owned()));
    let mut out = Vec::new();
    let (snapshot, rates) = (snapshot(), Rates::new());
    answer(b"RELOAD", &state(&snapshot, &rates), Err("a.toml:3: no".to_owned()), &mut out);
    let error = "E ERROR F0000 RELOAD has failed, all stays as it was D a.toml:3: no";
    assert_eq!(read(&out), format!("{error}\nZ I\n"));
}

#[test]
fn shutdown_is_ordered_in_every_spelling() {
    let done = "C SHUTDOWN\nZ I\n".to_owned();
    for request in ["SHUTDOWN", "shutdown ;", r#""Shutdown";"#, "-- now\nSHUTDOWN"] {
        assert_eq!(order(request), (Some(Order::ShutDown), done.clone()), "{request}");
    }
    for request in ["SHUTDOWN WAIT_FOR_CLIENTS", "shutdown wait_for_servers;"] {
        assert_eq!(order(request), (Some(Order::Drain), done.clone()), "{request}");
    }
}

/// A slip of the finger ends nothing.
#[test]
fn what_is_not_quite_an_order_is_none() {
    let refused = |request: &str, hint: &str| {
        let error = format!("E ERROR 08P01 invalid command '{request}', use SHOW HELP;{hint}");
        assert_eq!(order(request), (None, format!("{error}\nZ I\n")));
    };
    refused("SHUTDOWN NOW", "");
    refused("SHUTDOWN WAIT_FOR_CLIENT", " H Perhaps you meant SHUTDOWN WAIT_FOR_CLIENTS.");
    refused("SHUTDOWN WAIT_FOR_CLIENTS NOW", "");
    refused("SHUTDOWN 'WAIT_FOR_CLIENTS'", "");
    refused("SHUTDOWN; SHUTDOWN", "");
    refused("SHUTDWON", " H Perhaps you meant SHUTDOWN.");
    refused("SHOW SHUTDOWN", "");
    refused("SET SHUTDOWN", "");
    assert_eq!(order("/* SHUTDOWN */"), (None, "I\nZ I\n".to_owned()));
    for request in ["SHOW POOLS", "SET timezone = 'SHUTDOWN'", ""] {
        assert_eq!(order(request).0, None, "{request}");
    }
}

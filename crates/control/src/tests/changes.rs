//! SET of what can be changed at once.

use pgweir_config::{Change, Changes, Explained};

use super::{read, snapshot, state};
use crate::{Order, Rates, State, answer};

fn config() -> Vec<Explained> {
    let live = [
        "general.pipelining",
        "pools.app.pipelining",
        "pools.App.pipelining",
        "pools.app.users.0.pipelining",
        "pools.my-app.pipelining",
        "pools.\"to \\\"us\\\"\".pipelining",
    ];
    let others = ["general.port", "pools.app.users.0.pool_size"];
    let one = |key: &str, changes| {
        let key = key.to_owned();
        Explained { key, value: None, line: None, default: None, changes }
    };
    let live = live.into_iter().map(|key| one(key, Changes::Live));
    live.chain(others.into_iter().map(|key| one(key, Changes::AtReload))).collect()
}

/// What a request changes, and what is said to it if that has been done.
fn set(request: &str) -> (Option<Change>, String) {
    let (snapshot, rates, config) = (snapshot(), Rates::new(), config());
    let mut out = Vec::new();
    let state = State { config: &config, ..state(&snapshot, &rates) };
    answer(request.as_bytes(), &state, Ok(()), &mut out);
    let order = crate::order(request.as_bytes(), &config);
    let change = order.map(|order| match order {
        Order::Set(change) => change,
        Order::Drain | Order::Reload | Order::ShutDown => panic!("{order:?}"),
    });
    (change, read(&out))
}

#[test]
fn a_setting_is_named_as_it_is_shown() {
    for (request, key) in [
        ("SET pipelining = 'auto'", "general.pipelining"),
        ("set Pipelining to auto;", "general.pipelining"),
        ("SET general.pipelining = \"auto\"", "general.pipelining"),
        ("SET pools.app.pipelining = auto -- for now", "pools.app.pipelining"),
        ("SET POOLS.app.PIPELINING = auto", "pools.app.pipelining"),
        ("SET pools.App.pipelining = auto", "pools.App.pipelining"),
        ("SET pools . app . users . 0 . pipelining TO 'auto'", "pools.app.users.0.pipelining"),
        ("SET \"pools.app.users.0.pipelining\" = auto", "pools.app.users.0.pipelining"),
        ("SET pools.my-app.pipelining = auto", "pools.my-app.pipelining"),
        ("SET pools.\"to \"\"us\"\"\".pipelining = auto", "pools.\"to \\\"us\\\"\".pipelining"),
    ] {
        let (change, said) = set(request);
        let change = change.unwrap_or_else(|| panic!("{request}: {said}"));
        assert_eq!(change.to_string(), format!("{key} = \"auto\""), "{request}");
        assert_eq!(said, "C SET\nZ I\n", "{request}");
    }
    for (value, expected) in [("3x24", "\"3x24\""), ("4", "\"2x4\""), ("'4'", "\"2x4\"")] {
        let (change, _) = set(&format!("SET pipelining = {value}"));
        assert_eq!(change.unwrap().to_string(), format!("general.pipelining = {expected}"));
    }
}

#[test]
fn what_cannot_be_set_is_refused() {
    let expected = "expected a whole number from 1 to 1000, two of them such as \"3x8\", \"auto\", \
                    or \"off\", found the text \"on\"";
    let unsupported = "is not supported by this console H SHOW HELP lists what is.";
    for (request, error) in [
        (
            "SET pipelining = on",
            format!("22023 invalid value for parameter \"general.pipelining\" D {expected}"),
        ),
        ("SET port = 1", format!("0A000 SET general.port {unsupported}")),
        (
            "SET pools.app.users.0.pool_size = 1",
            format!("0A000 SET pools.app.users.0.pool_size {unsupported}"),
        ),
        ("SET verbose = 1", format!("0A000 SET {unsupported}")),
        (
            "SET pools.of_nobody_at_all.pipelining = off",
            invalid("SET pools.of_nobody_at_all.pipelining = off", ""),
        ),
        ("SET pipelining = ", invalid("SET pipelining = ", "")),
        ("SET pipelining off", invalid("SET pipelining off", "")),
        ("SET pipelining = off off", invalid("SET pipelining = off off", "")),
        ("SET pipelining. = off", invalid("SET pipelining. = off", "")),
        ("SET pipelinig = off", invalid("SET pipelinig = off", "SET pipelining")),
        (
            "SET pools.ap.pipelining = off",
            invalid("SET pools.ap.pipelining = off", "SET pools.app.pipelining"),
        ),
    ] {
        let (change, said) = set(request);
        assert_eq!((change, said), (None, format!("E ERROR {error}\nZ I\n")), "{request}");
    }
}

fn invalid(request: &str, meant: &str) -> String {
    let hint = match meant {
        "" => String::new(),
        meant => format!(" H Perhaps you meant {meant}."),
    };
    format!("08P01 invalid command '{}', use SHOW HELP;{hint}", request.trim())
}

/// What was not done is no success.
#[test]
fn a_change_says_how_it_went() {
    let (snapshot, rates, config) = (snapshot(), Rates::new(), config());
    let mut out = Vec::new();
    let state = State { config: &config, ..state(&snapshot, &rates) };
    answer(b"SET pipelining = off", &state, Err("no".to_owned()), &mut out);
    let error = "E ERROR F0000 SET has failed, all stays as it was D no";
    assert_eq!(read(&out), format!("{error}\nZ I\n"));
}

use std::path::Path;

use pgweir_config::Config;

use super::{EXAMPLES, Listen};

#[test]
fn a_place_to_listen_on_is_host_and_port() {
    let listen = |host: &str, port| Ok(Listen { host: host.to_owned(), port });
    assert_eq!("0.0.0.0:6000".parse(), listen("0.0.0.0", 6000));
    assert_eq!("[::1]:6000".parse(), listen("::1", 6000));
    assert_eq!("localhost:6000".parse(), listen("localhost", 6000));
    for text in ["", "6432", ":6432", "localhost", "localhost:", "localhost:0", "::1:6432", "a:b"] {
        assert!(text.parse::<Listen>().is_err(), "{text}");
    }
}

/// The configuration in the help can be used, and the console as the help says.
#[test]
fn the_first_configuration_is_one() {
    let (_, text) = EXAMPLES.split_once("A first configuration:\n").unwrap();
    let (text, _) = text.split_once("\nIt ends with").unwrap();
    let config = Config::parse(text, Path::new("pgweir.toml"));
    let config = config.unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(config.warnings, []);
    let admin = config.general.admin.expect("the console has an account");
    let console = format!(
        "psql -h {} -p {} -U {} pgweir",
        config.general.host, config.general.port, admin.username
    );
    assert!(EXAMPLES.contains(&console), "{console}");
}

use super::{Actions, Address, Endpoint};
use crate::store::Store;

/// What is logged of a call must not hold what it sends.
#[test]
fn debug_shows_no_password() {
    let mut clients = Store::new();
    let client = clients.insert(crate::client::Client::new(
        crate::time::Time(0),
        None,
        crate::settings::Interner::new().none(),
    ));
    let mut actions = Actions::default();
    actions.inject(Endpoint::Client(client), |out| out.extend_from_slice(b"secret"));
    let text = format!("{actions:?}");
    let bytes = format!("{:?}", b"secret");
    assert!(text.contains("Write") && !text.contains("secret") && !text.contains(&bytes), "{text}");
}

#[test]
fn a_folder_stands_for_a_unix_socket() {
    let address = |host: &str| Address { host: host.to_owned(), port: 5432 };
    assert_eq!(address("/run/pg").to_string(), "/run/pg/.s.PGSQL.5432");
    assert_eq!(address("@pg").to_string(), "@pg/.s.PGSQL.5432");
    assert!(address("/run/pg").unix_socket().is_some());
    for host in ["::1", "127.0.0.1", "db"] {
        assert_eq!(address(host).unix_socket(), None);
    }
}

use super::{Actions, Endpoint};
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

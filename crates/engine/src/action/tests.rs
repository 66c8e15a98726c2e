use super::{Actions, Endpoint};
use crate::store::Store;

/// What is logged of a call must not hold what it sends.
#[test]
fn debug_shows_no_password() {
    let mut servers = Store::new();
    let server = servers.insert(crate::server::Server::new(
        crate::time::Time(0),
        crate::pool::PoolId(0),
        crate::settings::Interner::new().none(),
    ));
    let mut actions = Actions::default();
    actions.inject(Endpoint::Server(server), |out| out.extend_from_slice(b"secret"));
    let text = format!("{actions:?}");
    let bytes = format!("{:?}", b"secret");
    assert!(text.contains("Write") && !text.contains("secret") && !text.contains(&bytes), "{text}");
}

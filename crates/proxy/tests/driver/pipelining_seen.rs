//! What is to be seen of servers that are shared.

use pgweir_engine::ServerView;

use crate::messages::{done, in_block, one_row, query};
use crate::pipelining::{ask, braked, shared};
use crate::stage::Stage;

/// The one server that there is.
fn seen(stage: &Stage) -> ServerView {
    let mut servers = stage.snapshot().servers;
    assert_eq!(servers.len(), 1);
    servers.remove(0)
}

/// The numbers of clients in the order in which they have come.
fn numbers(stage: &Stage) -> Vec<i32> {
    stage.snapshot().clients.iter().map(|client| client.id).collect()
}

#[test]
fn a_shared_server_says_whose_units_are_on_it() {
    let (stage, server, clients) = braked(&shared(1), 3);
    let ids = numbers(&stage);
    assert_eq!(seen(&stage).queue, None, "nobody is on it");
    ask(&clients);
    let here = seen(&stage);
    assert_eq!(here.queue, Some(ids.iter().copied().map(Some).collect()));
    assert_eq!(here.client, Some(ids[0]), "whose unit it runs");
    clients[1].breaks();
    server.says([one_row("a")]);
    let here = seen(&stage);
    assert_eq!(here.queue, Some(vec![None, Some(ids[2])]), "a unit is run though its client left");
    assert_eq!(here.client, None);
    server.says([one_row("b")]);
    assert_eq!(seen(&stage).client, Some(ids[2]));
}

#[test]
fn a_server_that_is_lent_is_not_shared() {
    let (stage, server, clients) = braked(&shared(1), 1);
    clients[0].says([query("BEGIN")]);
    server.says([one_row("")]);
    server.says([done(), in_block()]);
    let here = seen(&stage);
    assert_eq!((here.queue, here.client), (None, Some(numbers(&stage)[0])));
}

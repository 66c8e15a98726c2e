use std::io;

use pgweir_engine::Event;
use pgweir_proxy::News;

/// Sends the log to standard error, a line for each event.
pub(crate) fn start() {
    tracing_subscriber::fmt().with_writer(io::stderr).with_target(false).with_ansi(false).init();
}

/// Writes a line about something that happened on a worker.
pub(crate) fn tell(news: &News) {
    match news {
        News::AcceptFailed(error) => tracing::error!("cannot accept a client: {error}"),
        News::Log(event) => tell_event(event),
        News::Console(..) => {}
    }
}

fn tell_event(event: &Event) {
    match event {
        Event::ClientConnected { client, database, user } => {
            tracing::info!("client {client:?} logged in to {database} as {user}");
        }
        Event::ClientLeft { client, cause } => {
            tracing::info!("client {client:?} left: {cause}");
        }
        Event::LoginRefused { client, message } => {
            tracing::warn!("login of client {client:?} refused: {message}");
        }
        Event::ServerRefused { pool, address, cause } => {
            tracing::warn!("pool {pool}: no connection to {address}: {cause}");
        }
        Event::ServerLost { pool, cause } => {
            tracing::warn!("pool {pool}: a server connection was lost: {cause}");
        }
        Event::Contained { pool, cause } => tracing::error!(
            "pool {pool}: a server connection was closed, because its replies do not fit \
                 what was asked ({cause}); this is a bug of pgweir, please report it"
        ),
    }
}

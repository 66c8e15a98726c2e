use std::fmt::{self, Display, Write};
use std::io;

use pgweir_config::Config;
use pgweir_engine::Event;
use pgweir_proxy::News;

/// Sends the log to standard error, a line for each event.
pub(crate) fn start() {
    tracing_subscriber::fmt().with_writer(io::stderr).with_target(false).with_ansi(false).init();
}

/// Writes a line for each setting of a configuration that has no effect.
pub(crate) fn warn(config: &Config) {
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
}

/// Writes a line about something that happened on a worker.
pub(crate) fn tell(news: &News) {
    match news {
        News::AcceptFailed(error, 1) => tracing::error!("cannot accept a client: {error}"),
        News::AcceptFailed(error, times) => {
            tracing::error!("cannot accept a client: {error} ({times} times since the last line)");
        }
        News::NoSockDiag(error) => tracing::warn!(
            "tcp_user_timeout has no effect: the kernel cannot be asked about connections: {error}"
        ),
        News::Log(event) => tell_event(event),
        News::Console(..) => {}
    }
}

fn tell_event(event: &Event) {
    match event {
        Event::ClientConnected { client, database, user } => {
            let (database, user) = (OneLine(database), OneLine(user));
            tracing::info!("client {client:?} logged in to {database} as {user}");
        }
        Event::ClientLeft { client, cause } => {
            tracing::info!("client {client:?} left: {cause}");
        }
        Event::LoginRefused { client, message } => {
            tracing::warn!("login of client {client:?} refused: {}", OneLine(message));
        }
        Event::ServerRefused { pool, address, cause } => {
            tracing::warn!("pool {pool}: no connection to {address}: {}", OneLine(cause));
        }
        Event::ServerLost { pool, cause } => {
            tracing::warn!("pool {pool}: a server connection was lost: {}", OneLine(cause));
        }
        Event::Contained { pool, cause } => tracing::error!(
            "pool {pool}: a server connection was closed, because its replies do not fit \
                 what was asked ({}); this is a bug of pgweir, please report it",
            OneLine(cause)
        ),
    }
}

/// Text that somebody else has written. What could end a line of the log, or steer the terminal
/// that shows it, is escaped: a user name must not look like a line of ours.
pub(crate) struct OneLine<'a>(pub(crate) &'a str);

impl Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in self.0.chars() {
            match char.is_control() || matches!(char, '\u{2028}' | '\u{2029}') {
                true => write!(f, "{}", char.escape_default())?,
                false => f.write_char(char)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! Answers to what a driver cannot do itself.

use std::sync::Arc;

use pgweir_engine::{ClientId, Database, Loud, Time};

use super::Driver;
use crate::transport::Transport;

impl<T: Transport> Driver<T> {
    /// The answer to [`super::Request::Console`].
    pub fn console_reply(&mut self, now: Time, client: ClientId, reply: &[u8]) {
        self.engine.console_reply(client, reply);
        self.settle(now);
    }

    /// The answer to [`super::Request::JudgeCatalogue`].
    pub fn catalogue_read(
        &mut self,
        now: Time,
        database: &Database,
        read: Result<Arc<Loud>, String>,
    ) {
        self.engine.catalogue_read(now, database, read);
        self.settle(now);
    }
}

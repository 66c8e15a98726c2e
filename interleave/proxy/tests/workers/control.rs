//! What the main thread does for workers: it answers the console, and has catalogues judged.

use std::sync::Arc;

use pgweir_proxy_interleaved::{Mail, Mailboxes, News};
use shuttle::future::block_on;
use shuttle::thread;
use tokio::sync::mpsc;

use crate::line::{Line, answer};

/// What the main thread of `crates/pgweir/src/run.rs` is to workers.
pub(crate) struct Control {
    pub(crate) mailboxes: Mailboxes<Line>,
    pub(crate) inbox: mpsc::UnboundedReceiver<News>,
}

impl Control {
    /// Until all workers have ended.
    pub(crate) fn run(mut self) {
        let mut judges = Vec::new();
        while let Some(news) = block_on(self.inbox.recv()) {
            match news {
                News::Console { worker, client, text, .. } => {
                    // Where one has ended nobody is there to be answered.
                    if block_on(self.mailboxes.snapshot()).is_some() {
                        let reply = Mail::ConsoleReply(client, answer(&text));
                        self.mailboxes.tell(worker, reply);
                        self.carry_out(&text);
                    }
                }
                News::Catalogue { worker, rows } => {
                    let mailboxes = self.mailboxes.clone();
                    judges.push(thread::spawn(move || {
                        let (database, loud) = (rows.database().clone(), Arc::new(rows.loud()));
                        mailboxes.tell(worker, Mail::Catalogue(database, Ok(loud)));
                    }));
                }
                News::Log(_)
                | News::AcceptFailed(..)
                | News::ListenFailed(_)
                | News::NoSockDiag(_)
                | News::Ended(_) => unreachable!("no worker here says that"),
            }
        }
        judges.into_iter().for_each(|judge| judge.join().expect("it ends"));
    }

    fn carry_out(&self, command: &[u8]) {
        match command {
            b"DRAIN" => self.mailboxes.tell_all(|| Mail::Drain),
            b"SHUTDOWN" => self.mailboxes.shut_down(),
            _ => {}
        }
    }
}

use std::io;
use std::thread::JoinHandle;

use pgweir_engine::Member;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::mail::{Mailboxes, News, Renewal};
use crate::worker::{Post, start};

/// The threads of all workers, from outside.
///
/// The first one takes clients in and hands each to the worker that its pool lives on.
#[derive(Debug)]
pub struct Workers {
    mailboxes: Mailboxes,
    threads: Vec<JoinHandle<io::Result<()>>>,
}

impl Workers {
    /// Starts so many threads that serve a configuration; `seed` gives each another one. What
    /// happens there is told to `news`.
    pub fn start(
        count: usize,
        configuration: Renewal,
        mut seed: impl FnMut() -> io::Result<[u8; 32]>,
        clock: Clock,
        news: &mpsc::UnboundedSender<News>,
    ) -> io::Result<Self> {
        let Renewal { plan, tcp, mut listeners } = configuration;
        let (mailboxes, inboxes) = Mailboxes::new(count);
        let mut threads = Vec::new();
        for (member, inbox) in Member::all(count).into_iter().zip(inboxes) {
            // Only the first gets them: they are taken out.
            let listeners = std::mem::take(&mut listeners);
            let renewal = Renewal { plan: plan.clone(), tcp, listeners };
            let peers = mailboxes.clone();
            let post = Post { member, peers, inbox, clock, news: news.clone() };
            threads.push(start(post, renewal, seed()?)?);
        }
        Ok(Self { mailboxes, threads })
    }

    /// Where mail for them goes.
    pub fn mailboxes(&self) -> Mailboxes {
        self.mailboxes.clone()
    }

    /// Waits until all threads have ended. An error or a panic there is one here.
    pub fn join(self) -> io::Result<()> {
        let panicked = |_| io::Error::other("a worker panicked");
        let ends: Vec<_> = self.threads.into_iter().map(JoinHandle::join).collect();
        ends.into_iter().try_for_each(|end| end.map_err(panicked)?)
    }
}

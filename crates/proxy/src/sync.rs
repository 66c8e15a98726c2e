//! What threads talk through: a channel for the letters to a worker, and one for each answer.
//!
//! Both are tokio's. The tests of `interleave/` build this crate a second time, in which another
//! thread may go on before each letter that is sent or read.

pub(crate) use tokio::sync::oneshot;

#[cfg(feature = "interleaved")]
pub use stepwise::Inbox;
#[cfg(feature = "interleaved")]
pub(crate) use stepwise::{Mailbox, mailbox};
/// Where a worker finds its mail.
#[cfg(not(feature = "interleaved"))]
pub use tokio::sync::mpsc::UnboundedReceiver as Inbox;
#[cfg(not(feature = "interleaved"))]
pub(crate) use tokio::sync::mpsc::{UnboundedSender as Mailbox, unbounded_channel as mailbox};

#[cfg(feature = "interleaved")]
mod stepwise {
    use std::sync::Arc;

    use shuttle::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use tokio::sync::mpsc::error::SendError;
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

    /// The way to a worker.
    #[derive(Debug)]
    pub(crate) struct Mailbox<T> {
        letters: UnboundedSender<T>,
        sent: Arc<AtomicUsize>,
    }

    /// Where a worker finds its mail.
    #[derive(Debug)]
    pub struct Inbox<T> {
        letters: UnboundedReceiver<T>,
        sent: Arc<AtomicUsize>,
    }

    /// Both ends of a way to a worker.
    pub(crate) fn mailbox<T>() -> (Mailbox<T>, Inbox<T>) {
        let (sender, receiver) = unbounded_channel();
        let sent = Arc::new(AtomicUsize::new(0));
        (Mailbox { letters: sender, sent: Arc::clone(&sent) }, Inbox { letters: receiver, sent })
    }

    impl<T> Mailbox<T> {
        /// As tokio's, behind a step.
        pub(crate) fn send(&self, letter: T) -> Result<(), SendError<T>> {
            self.sent.fetch_add(1, SeqCst);
            self.letters.send(letter)
        }
    }

    impl<T> Clone for Mailbox<T> {
        fn clone(&self) -> Self {
            Self { letters: self.letters.clone(), sent: Arc::clone(&self.sent) }
        }
    }

    impl<T> Inbox<T> {
        /// As tokio's, behind a step.
        pub async fn recv(&mut self) -> Option<T> {
            self.sent.load(SeqCst);
            self.letters.recv().await
        }
    }
}

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::queue::{Next, Queue};

/// So many bytes wait at most.
const WAITING_BYTES: usize = 1024 * 1024;

/// How long [`Sink::flush`] waits.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

/// Takes lines, one for each call of [`Write::write`]; a thread of its own writes them.
#[derive(Clone)]
pub struct Sink(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Sink {
    /// Starts the thread that writes to `out`. Where lines were lost, it writes what `notice` makes
    /// of their number as soon as it can. Fails if there can be no thread.
    pub fn start(
        out: impl Write + Send + 'static,
        notice: impl Fn(u64) -> Vec<u8> + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Mutex::new(Queue::new(WAITING_BYTES));
        let shared = Arc::new(Shared { queue, changed: Condvar::new() });
        let own = Arc::clone(&shared);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || own.write_all(Lines { out, torn: false }, notice))?;
        Ok(Self(shared))
    }

    /// Waits until all lines are written, but no longer than a second.
    pub fn flush(&self) {
        let queue = self.0.lock();
        let waits = |queue: &mut Queue| !queue.is_settled();
        // Whether or not they are: there is nobody to tell.
        let _ = self.0.changed.wait_timeout_while(queue, FLUSH_PATIENCE, waits);
    }
}

impl Write for Sink {
    /// Never fails: a line for which there is no room is counted.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().put(line);
        self.0.changed.notify_all();
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    /// The life of the thread.
    fn write_all<W: Write>(&self, mut out: Lines<W>, notice: impl Fn(u64) -> Vec<u8>) {
        loop {
            let line = match self.next() {
                Next::Line(line) => line,
                Next::Lost(lines) => notice(lines),
            };
            let written = out.write(&line);
            self.lock().written(written.is_ok());
            self.changed.notify_all();
        }
    }

    /// Waits for what is to be written next.
    fn next(&self) -> Next {
        let mut queue = self.lock();
        loop {
            if let Some(next) = queue.take() {
                return next;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A thread that has panicked with the lock held has left nothing half done.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the lines go.
struct Lines<W> {
    out: W,
    /// The last line was written in part.
    torn: bool,
}

impl<W: Write> Lines<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.torn {
            self.out.write_all(b"\n")?;
            self.torn = false;
        }
        let mut left = line;
        while !left.is_empty() {
            match self.out.write(left) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => left = &left[n..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.torn = left.len() < line.len();
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

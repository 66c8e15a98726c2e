//! Lines on their way to where writing may take long, or be impossible: a pipe that nobody reads,
//! a disk that is full. A thread of its own writes them, and whoever has a line goes on at once.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// So many bytes wait at most; a line that comes on top of them is dropped.
const WAITING_BYTES: usize = 1024 * 1024;

/// How long [`Sink::flush`] waits.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

/// Takes lines, one for each call of [`Write::write`].
#[derive(Clone)]
pub(crate) struct Sink(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    /// Of all lines that wait.
    bytes: usize,
    /// Lines that were lost and that nobody has been told of.
    lost: u64,
    /// The last line could not be written: to tell of it would be as vain.
    failing: bool,
    /// A line is being written.
    writing: bool,
}

impl Sink {
    /// Starts the thread that writes to `out`. Where lines were lost, it writes what `notice` makes
    /// of their number as soon as it can.
    pub(crate) fn start(
        out: impl Write + Send + 'static,
        notice: impl Fn(u64) -> Vec<u8> + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Mutex::new(Queue::default());
        let shared = Arc::new(Shared { queue, changed: Condvar::new() });
        let own = Arc::clone(&shared);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || own.write_all(Lines { out, torn: false }, notice))?;
        Ok(Self(shared))
    }

    /// Waits until all lines are written, but not for long.
    pub(crate) fn flush(&self) {
        let waits = |queue: &mut Queue| queue.writing || !queue.lines.is_empty() || queue.tells();
        let queue = self.0.lock();
        // Whether or not they are: there is nobody to tell.
        let _ = self.0.changed.wait_timeout_while(queue, FLUSH_PATIENCE, waits);
    }
}

impl Write for Sink {
    /// Never fails: a line for which there is no room is counted.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut queue = self.0.lock();
        if queue.bytes + line.len() <= WAITING_BYTES {
            queue.bytes += line.len();
            queue.lines.push_back(line.to_owned());
            self.0.changed.notify_all();
        } else {
            queue.lost += 1;
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Queue {
    /// Whether it is time to tell how many lines were lost.
    fn tells(&self) -> bool {
        self.lost > 0 && !self.failing
    }
}

impl Shared {
    /// The life of the thread.
    fn write_all<W: Write>(&self, mut out: Lines<W>, notice: impl Fn(u64) -> Vec<u8>) {
        loop {
            let (line, stands_for) = self.next(&notice);
            let written = out.write(&line);
            let mut queue = self.lock();
            queue.writing = false;
            queue.failing = written.is_err();
            if queue.failing {
                queue.lost += stands_for;
            }
            self.changed.notify_all();
        }
    }

    /// Waits for the next line to write, and how many are lost if that fails. The notice comes when
    /// no other line waits: those that were lost came behind them.
    fn next(&self, notice: &impl Fn(u64) -> Vec<u8>) -> (Vec<u8>, u64) {
        let rests = |queue: &mut Queue| queue.lines.is_empty() && !queue.tells();
        let waited = self.changed.wait_while(self.lock(), rests);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner);
        queue.writing = true;
        if let Some(line) = queue.lines.pop_front() {
            queue.bytes -= line.len();
            return (line, 1);
        }
        let lost = std::mem::take(&mut queue.lost);
        drop(queue);
        (notice(lost), lost)
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

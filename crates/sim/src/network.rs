use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::rc::Rc;

use pgweir_proxy::Transport;

/// Which connection; numbered in the order in which they were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WireId(pub(crate) usize);

/// One of the two directions of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    /// To pgweir.
    In,
    /// From pgweir.
    Out,
}

/// What the scheduler has to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stir {
    /// Something was put into this direction, and is to be delivered.
    Put(WireId, Direction),
    /// There is room again in this direction: its writer may want to know.
    Room(WireId, Direction),
    /// pgweir's interest in the connection has changed.
    Wake(WireId),
}

/// Where connections leave what they want looked at, in the order in which it happened.
pub(crate) type Stirs = Rc<RefCell<VecDeque<Stir>>>;

/// One end of a simulated connection. As with a socket, dropping it closes it: what was written
/// still arrives, unless there is input that nobody read, which makes it a reset.
pub(crate) struct Stream {
    wire: WireId,
    /// The direction in which this end writes.
    writes: Direction,
    incoming: Rc<RefCell<Pipe>>,
    outgoing: Rc<RefCell<Pipe>>,
    stirs: Stirs,
    /// Whoever had it is gone without a word, and the other side does not know.
    vanished: bool,
}

/// One direction of a connection.
#[derive(Debug)]
pub(crate) struct Pipe {
    bytes: VecDeque<u8>,
    /// Bytes at the front that have arrived.
    arrived: usize,
    /// Most bytes that are under way or have arrived, before any have passed.
    capacity: usize,
    /// The writer has said that nothing follows.
    ended: bool,
    /// The reader can see the end.
    end_arrived: bool,
    reset: Reset,
    /// The reader has closed its end.
    reader_gone: bool,
    /// Bytes that were written to it, and read from it, so far.
    pub(crate) written: u64,
    pub(crate) read: u64,
}

/// For so many bytes that have passed there is room for one more.
const PASSED_FOR_ROOM: usize = 32;

/// What a reset takes away of what was said before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// All of it arrives before.
    Nothing,
    /// What is under way.
    UnderWay,
    /// And what has arrived and was not read.
    Unread,
}

impl Loss {
    pub(crate) const EACH: [Self; 3] = [Self::Nothing, Self::UnderWay, Self::Unread];
}

/// How far a reset has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reset {
    None,
    UnderWay,
    Arrived,
}

/// Makes a connection; both its directions hold so many bytes. The first end is the outside's,
/// the second pgweir's.
pub(crate) fn connection(
    wire: WireId,
    capacity: [usize; 2],
    stirs: &Stirs,
) -> (Stream, Stream, [Rc<RefCell<Pipe>>; 2]) {
    let [to, from] = capacity.map(|capacity| Rc::new(RefCell::new(Pipe::new(capacity))));
    let end = |writes, incoming: &Rc<_>, outgoing: &Rc<_>| Stream {
        wire,
        writes,
        incoming: Rc::clone(incoming),
        outgoing: Rc::clone(outgoing),
        stirs: Rc::clone(stirs),
        vanished: false,
    };
    let outside = end(Direction::In, &from, &to);
    let inside = end(Direction::Out, &to, &from);
    (outside, inside, [to, from])
}

impl Stream {
    /// The connection that this is an end of.
    pub(crate) fn wire(&self) -> WireId {
        self.wire
    }

    /// Breaks the connection off: what is under way may never arrive.
    pub(crate) fn reset(&self) {
        self.outgoing.borrow_mut().break_off();
        self.stir(Stir::Put(self.wire, self.writes));
        let mut incoming = self.incoming.borrow_mut();
        incoming.reader_gone = true;
        incoming.bytes.clear();
        incoming.arrived = 0;
    }

    /// Bytes that were ever written to it.
    pub(crate) fn written(&self) -> u64 {
        self.outgoing.borrow().written
    }

    /// Whether something is there to be read.
    pub(crate) fn has_input(&self) -> bool {
        self.incoming.borrow().arrived > 0
    }

    /// Whether something is there, or is under way, that was not read.
    pub(crate) fn has_more(&self) -> bool {
        self.incoming.borrow().unread() > 0
    }

    /// Whether whoever is at the other end writes or reads no more, whether or not that shows here.
    pub(crate) fn is_left(&self) -> bool {
        let incoming = self.incoming.borrow();
        incoming.ended || incoming.reset != Reset::None || self.outgoing.borrow().reader_gone
    }

    /// The machine of this end is gone: nothing is read or said any more.
    pub(crate) fn vanish(mut self) {
        self.vanished = true;
    }

    fn stir(&self, stir: Stir) {
        self.stirs.borrow_mut().push_back(stir);
    }
}

impl Transport for Stream {
    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut incoming = self.incoming.borrow_mut();
        let n = incoming.arrived.min(buffer.len());
        if n > 0 {
            incoming.bytes.read_exact(&mut buffer[..n])?;
            incoming.arrived -= n;
            incoming.read += n as u64;
            let from = match self.writes {
                Direction::In => Direction::Out,
                Direction::Out => Direction::In,
            };
            self.stir(Stir::Room(self.wire, from));
            Ok(n)
        } else if incoming.reset == Reset::Arrived {
            Err(ErrorKind::ConnectionReset.into())
        } else if incoming.end_arrived || buffer.is_empty() {
            Ok(0)
        } else {
            Err(ErrorKind::WouldBlock.into())
        }
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        if self.incoming.borrow().reset == Reset::Arrived {
            return Err(ErrorKind::BrokenPipe.into());
        }
        let mut outgoing = self.outgoing.borrow_mut();
        if outgoing.ended || outgoing.reset != Reset::None {
            return Err(ErrorKind::BrokenPipe.into());
        }
        if outgoing.reader_gone {
            // The bytes go out, and what comes back is a reset: the next write fails.
            outgoing.reset = Reset::Arrived;
            return Ok(bytes.len());
        }
        let n = outgoing.room().min(bytes.len());
        if n == 0 && !bytes.is_empty() {
            return Err(ErrorKind::WouldBlock.into());
        }
        outgoing.bytes.extend(&bytes[..n]);
        outgoing.written += n as u64;
        self.stir(Stir::Put(self.wire, self.writes));
        Ok(n)
    }

    fn shutdown(&self) {
        let mut outgoing = self.outgoing.borrow_mut();
        if !outgoing.ended {
            outgoing.ended = true;
            self.stir(Stir::Put(self.wire, self.writes));
        }
    }

    fn wake(&self) {
        self.stir(Stir::Wake(self.wire));
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.vanished {
            return;
        }
        let unread = !self.incoming.borrow().bytes.is_empty();
        if unread {
            self.reset();
        } else {
            self.shutdown();
            self.incoming.borrow_mut().reader_gone = true;
            let from = match self.writes {
                Direction::In => Direction::Out,
                Direction::Out => Direction::In,
            };
            self.stir(Stir::Room(self.wire, from));
        }
    }
}

impl Pipe {
    fn new(capacity: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            arrived: 0,
            capacity: capacity.max(1),
            ended: false,
            end_arrived: false,
            reset: Reset::None,
            reader_gone: false,
            written: 0,
            read: 0,
        }
    }

    /// Bytes that were not read yet, whether they have arrived or not.
    pub(crate) fn unread(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.bytes.len() - self.arrived
    }

    /// Lets the first `bytes` of what is under way arrive, and what is behind them if nothing is
    /// left, or a reset with its `loss`. Says how many bytes are still under way.
    pub(crate) fn deliver(&mut self, bytes: usize, loss: Loss) -> usize {
        if self.reader_gone {
            self.bytes.clear();
            self.arrived = 0;
        }
        if self.reset == Reset::UnderWay {
            self.reset = Reset::Arrived;
            self.bytes.truncate(match loss {
                Loss::Nothing => self.bytes.len(),
                Loss::UnderWay => self.arrived,
                Loss::Unread => 0,
            });
            self.arrived = self.bytes.len();
        } else {
            self.arrived += bytes.min(self.under_way());
            self.end_arrived = self.ended && self.under_way() == 0;
        }
        self.under_way()
    }

    /// Breaks this direction off, whoever does it.
    pub(crate) fn break_off(&mut self) {
        if self.reset == Reset::None && !self.end_arrived {
            self.reset = Reset::UnderWay;
        }
    }

    /// The bytes that would arrive next, for the trace.
    pub(crate) fn next(&self, bytes: usize) -> Cow<'_, [u8]> {
        let next = self.arrived..(self.arrived + bytes).min(self.bytes.len());
        match self.bytes.as_slices().0.get(next.clone()) {
            Some(bytes) => Cow::Borrowed(bytes),
            None => Cow::Owned(self.bytes.range(next).copied().collect()),
        }
    }

    /// Whether a read would give something: bytes, the end, or an error.
    pub(crate) fn is_readable(&self) -> bool {
        self.arrived > 0 || self.end_arrived || self.is_broken()
    }

    /// Whether a write would do something: take bytes, or fail.
    pub(crate) fn is_writable(&self) -> bool {
        self.reader_gone || self.reset != Reset::None || self.room() > 0
    }

    /// Whether its reader has seen a reset.
    pub(crate) fn is_broken(&self) -> bool {
        self.reset == Reset::Arrived
    }

    /// It grows with what has passed: the end of a long message in single bytes tells nothing that
    /// its start has not told.
    fn room(&self) -> usize {
        let capacity = self.capacity + self.written as usize / PASSED_FOR_ROOM;
        capacity.saturating_sub(self.bytes.len())
    }
}

#[cfg(test)]
mod tests;

use std::io;

use pgweir_engine::Mark;

use crate::piece::Piece;
use crate::transport::Transport;

/// Above this many bytes that are not out yet, whoever feeds the connection is not read.
pub(crate) const CONGESTED_ABOVE: usize = 64 * 1024;
/// Below this many it is read again.
const CONGESTED_BELOW: usize = 16 * 1024;

/// A connection with this much unconsumed input is not read until some of it is consumed.
pub(crate) const RETAINED_BYTES: usize = 64 * 1024;

/// One connection, with the bytes that are on their way through us.
///
/// At rest it owns no buffer: `retained` and `out` have memory only while they hold something.
pub(crate) struct Link<T> {
    pub(crate) io: T,
    /// Input that the engine has not consumed yet.
    pub(crate) retained: Vec<u8>,
    /// Output that does not go out before the engine says so.
    pub(crate) held: Vec<u8>,
    /// Output, from `out_start` on, that the connection had no room for or that was gathered for
    /// the end of the turn.
    out: Vec<u8>,
    out_start: usize,
    /// The engine does not want to hear from it now.
    pub(crate) paused: bool,
    /// Its stream has ended: there is nothing left to read.
    pub(crate) ended: bool,
    /// It takes no more bytes; what happens next is the engine's to decide.
    pub(crate) broken: bool,
    congested: bool,
    /// Its task knows that there is output to wait for.
    awaited: bool,
    /// It stands in the driver's list of those that are written to at the end of the turn.
    gathered: bool,
}

/// What a connection is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest {
    /// Bytes to read.
    pub read: bool,
    /// Room to write.
    pub write: bool,
    /// That its peer has reset it, which no read would tell: [`crate::Driver::reset`].
    pub reset: bool,
}

/// Whether the amount of unsent output has crossed one of the two marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crossed {
    Above,
    Below,
    Neither,
}

impl<T: Transport> Link<T> {
    pub(crate) fn new(io: T) -> Self {
        Self {
            io,
            retained: Vec::new(),
            held: Vec::new(),
            out: Vec::new(),
            out_start: 0,
            paused: false,
            ended: false,
            broken: false,
            congested: false,
            awaited: false,
            gathered: false,
        }
    }

    /// Bytes that are not out yet.
    pub(crate) fn unsent(&self) -> usize {
        self.out.len() - self.out_start
    }

    /// Bytes of memory that it keeps for others, coming or going.
    pub(crate) fn buffered(&self) -> usize {
        self.retained.capacity() + self.held.capacity() + self.out.capacity()
    }

    /// What it is waited for.
    pub(crate) fn interest(&mut self) -> Interest {
        self.awaited = self.unsent() > 0 && !self.gathered;
        Interest {
            read: !self.paused && !self.ended && self.retained.len() < RETAINED_BYTES,
            write: self.awaited,
            reset: false,
        }
    }

    /// Whether there is output left that its task must be told of.
    pub(crate) fn must_be_awaited(&self) -> bool {
        self.unsent() > 0 && !self.awaited && !self.gathered
    }

    /// Writes `bytes` behind what was written before, now or as soon as there is room.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<Crossed> {
        if self.broken {
            Mark::WrittenToBroken.hit();
            return Ok(Crossed::Neither);
        }
        let sent = if self.unsent() == 0 { write_all(&self.io, bytes)? } else { 0 };
        if sent < bytes.len() {
            self.out.extend_from_slice(&bytes[sent..]);
        }
        Ok(self.crossed())
    }

    /// Keeps `bytes` for the next [`Link::write`] or [`Link::flush`]: more is coming at once, and
    /// one call to the kernel is cheaper than two.
    pub(crate) fn gather(&mut self, bytes: &[u8]) {
        if !self.broken {
            self.out.extend_from_slice(bytes);
        }
    }

    /// Keeps `bytes` for the end of the turn, or until there is room if that is waited for. Says
    /// whether the driver must note it for the end of the turn.
    pub(crate) fn gather_for_turn(&mut self, bytes: &[u8]) -> bool {
        let first = self.unsent() == 0 && !self.broken && !self.gathered;
        self.gather(bytes);
        self.gathered |= first;
        first
    }

    /// The turn ends: says whether there is anything to write.
    pub(crate) fn turn_ends(&mut self) -> bool {
        debug_assert!(self.gathered, "written to twice at the end of a turn");
        self.gathered = false;
        self.unsent() > 0
    }

    /// What is to be written now.
    pub(crate) fn piece(&self) -> Piece<'_, T> {
        Piece { io: &self.io, bytes: &self.out[self.out_start..], written: Ok(0) }
    }

    /// Writes what there is room for now.
    pub(crate) fn flush(&mut self) -> io::Result<Crossed> {
        if self.broken || self.unsent() == 0 {
            return Ok(Crossed::Neither);
        }
        let sent = write_all(&self.io, &self.out[self.out_start..])?;
        Ok(self.sent(sent))
    }

    /// So much of it is out, or nothing for want of room.
    pub(crate) fn written(&mut self, written: io::Result<usize>) -> io::Result<Crossed> {
        match written {
            Ok(sent) => Ok(self.sent(sent)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Mark::TogetherWithoutRoom.hit();
                Ok(self.sent(0))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(self.sent(0)),
            Err(error) => {
                Mark::TogetherInVain.hit();
                Err(error)
            }
        }
    }

    fn sent(&mut self, n: usize) -> Crossed {
        self.out_start += n;
        if self.unsent() == 0 {
            self.out = Vec::new();
            self.out_start = 0;
        } else if self.out_start > CONGESTED_ABOVE {
            Mark::OutputMovedUp.hit();
            self.out.drain(..self.out_start);
            self.out_start = 0;
        }
        self.crossed()
    }

    /// Nothing can be written any more.
    pub(crate) fn break_off(&mut self) {
        self.broken = true;
        self.out = Vec::new();
        self.out_start = 0;
    }

    /// Nothing follows what is out, or what there is room for now; reading goes on.
    pub(crate) fn half_close(&mut self) {
        // If that fails there is nobody left to tell, and reading shows it.
        let _ = self.flush();
        self.break_off();
        self.io.half_close();
        self.io.wake();
    }

    fn crossed(&mut self) -> Crossed {
        if !self.congested && self.unsent() > CONGESTED_ABOVE {
            self.congested = true;
            Crossed::Above
        } else if self.congested && self.unsent() < CONGESTED_BELOW {
            self.congested = false;
            Crossed::Below
        } else {
            Crossed::Neither
        }
    }
}

/// Writes until everything is out or there is no room; says how much is out.
fn write_all(io: &impl Transport, bytes: &[u8]) -> io::Result<usize> {
    let mut sent = 0;
    while sent < bytes.len() {
        match io.try_write(&bytes[sent..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => sent += n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

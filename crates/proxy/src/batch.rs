//! Output for many sockets in one call to the kernel.
//!
//! This is Linux's `io_submit`, older than io_uring and allowed where that is not. For a socket
//! that does not block it is a plain `send`, done before the call returns. What it saves is not
//! so much the calls: a peer on this machine that is woken by a `send` often takes our processor
//! as soon as the call returns, reads the one reply and sleeps again. Woken in the middle of a
//! batch, it runs once the batch is out and finds several.
//!
//! `send` is told not to raise SIGPIPE; here only that Rust's runtime ignores the signal keeps a
//! peer that is gone from ending the process.
#![expect(unsafe_code, reason = "io_submit has no safe interface")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::ptr;
use std::rc::Rc;

use pgweir_engine::Mark;

use crate::piece::Piece;
use crate::socket::Socket;

/// Pieces in one call. A turn with more takes several.
const PIECES: usize = 128;

/// `IOCB_CMD_PWRITE` of `linux/aio_abi.h`.
const PWRITE: u16 = 1;

/// Writes the pieces of a turn. Where the kernel has no `io_submit`, or a container forbids it,
/// each piece is written by a call of its own.
pub(crate) struct Batch {
    context: Option<Context>,
}

impl Batch {
    pub(crate) fn new() -> Self {
        let context = Context::new();
        Mark::NoIoSubmit.hit_if(context.is_none());
        Self { context }
    }

    /// Writes what there is room for.
    pub(crate) fn write(&mut self, pieces: &mut [Piece<'_, Rc<Socket>>]) {
        for chunk in pieces.chunks_mut(PIECES) {
            let done = match (&mut self.context, &*chunk) {
                // It takes two calls, and one piece by itself only one.
                (Some(context), [_, _, ..]) => context.write(chunk),
                (Some(_) | None, _) => Ok(0),
            };
            let done = done.unwrap_or_else(|error| {
                // No mark for the other one: all that the kernel has taken before is collected, and
                // its ring is empty.
                if error.kind() != io::ErrorKind::WouldBlock {
                    // It is forbidden, and will be the next time.
                    Mark::IoSubmitForbidden.hit();
                    self.context = None;
                }
                0
            });
            chunk[done..].iter_mut().for_each(Piece::write);
        }
    }
}

/// A kernel's context for `io_submit`: a ring of [`PIECES`] completions.
struct Context {
    id: libc::c_ulong,
    blocks: Vec<libc::iocb>,
}

/// `struct io_event` of `linux/aio_abi.h`.
#[repr(C)]
struct Completion {
    /// The block's `aio_data`: the piece's place.
    data: u64,
    object: u64,
    /// Bytes, or the negated error.
    result: i64,
    result2: i64,
}

impl Context {
    fn new() -> Option<Self> {
        let mut id: libc::c_ulong = 0;
        // SAFETY: io_setup(2) reads a number and writes to `id`, which lives through the call.
        let made =
            unsafe { libc::syscall(libc::SYS_io_setup, PIECES as libc::c_long, &raw mut id) };
        let context = (made == 0).then(|| Self { id, blocks: Vec::with_capacity(PIECES) })?;
        // Where one of the calls is forbidden, that shows before anything depends on it. No mark
        // but that there is no context: a test forbids all of them, or none.
        context.allows_all().then_some(context)
    }

    /// Whether the calls may be made, tried with nothing to write and nothing to learn.
    fn allows_all(&self) -> bool {
        let none = ptr::null_mut::<libc::c_void>();
        // SAFETY: no pointer is followed for zero blocks and zero completions.
        unsafe {
            libc::syscall(libc::SYS_io_submit, self.id, 0 as libc::c_long, none) == 0
                && libc::syscall(
                    libc::SYS_io_getevents,
                    self.id,
                    0 as libc::c_long,
                    0 as libc::c_long,
                    none,
                    none,
                ) == 0
        }
    }

    /// Writes pieces, at most [`PIECES`] of them, and says how many the kernel has taken.
    fn write(&mut self, pieces: &mut [Piece<'_, Rc<Socket>>]) -> io::Result<usize> {
        self.blocks.clear();
        self.blocks.extend(pieces.iter().enumerate().map(|(place, piece)| block(place, piece)));
        let mut pointers: [*mut libc::iocb; PIECES] = [ptr::null_mut(); PIECES];
        for (pointer, block) in pointers.iter_mut().zip(&mut self.blocks) {
            *pointer = &raw mut *block;
        }
        // SAFETY: the pointers are to as many blocks as is said, and those, and the bytes that
        // they name, are borrowed until `collect` has learned of all that the kernel has taken,
        // or has ended the process. (On Linux nothing is under way even when this call returns: a
        // socket that does not block is written to, or refuses, within the call.)
        let taken = unsafe {
            libc::syscall(
                libc::SYS_io_submit,
                self.id,
                self.blocks.len() as libc::c_long,
                pointers.as_mut_ptr(),
            )
        };
        let Ok(taken) = usize::try_from(taken) else { return Err(io::Error::last_os_error()) };
        self.collect(taken, pieces);
        Ok(taken)
    }

    /// Learns what became of the pieces that the kernel has taken.
    fn collect(&mut self, taken: usize, pieces: &mut [Piece<'_, Rc<Socket>>]) {
        let mut completions = [const { MaybeUninit::<Completion>::uninit() }; PIECES];
        let mut collected = 0;
        while collected < taken {
            let room = &mut completions[collected..taken];
            // SAFETY: `room` is as long as is said and has the layout of io_event; the kernel
            // writes to it and does not keep it.
            let n = unsafe {
                libc::syscall(
                    libc::SYS_io_getevents,
                    self.id,
                    room.len() as libc::c_long,
                    room.len() as libc::c_long,
                    room.as_mut_ptr(),
                    ptr::null_mut::<libc::timespec>(),
                )
            };
            collected += match usize::try_from(n) {
                Ok(n) => n,
                // No mark: nothing is waited for, since all is done when it was taken.
                Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => 0,
                // What was written, and what the kernel still reads, cannot be known any more.
                Err(_) => std::process::abort(),
            };
        }
        for completion in &completions[..collected] {
            // SAFETY: io_getevents has written so many.
            let completion = unsafe { completion.assume_init_ref() };
            pieces[completion.data as usize].written = match u32::try_from(completion.result) {
                Ok(bytes) => Ok(bytes as usize),
                Err(_) => Err(io::Error::from_raw_os_error(-completion.result as i32)),
            };
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is ours, and nothing is under way in it. What this may fail with
        // can only be that there is no such context.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.id) };
    }
}

fn block(place: usize, piece: &Piece<'_, Rc<Socket>>) -> libc::iocb {
    // SAFETY: an iocb is made of integers; zero is the value that the kernel asks for in those
    // that are not set here.
    let mut block: libc::iocb = unsafe { std::mem::zeroed() };
    block.aio_data = place as u64;
    block.aio_lio_opcode = PWRITE;
    block.aio_fildes = piece.io.as_raw_fd() as u32;
    block.aio_buf = piece.bytes.as_ptr() as u64;
    block.aio_nbytes = piece.bytes.len() as u64;
    block
}

#[cfg(test)]
mod tests;

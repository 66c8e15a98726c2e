use std::io;

use crate::transport::Transport;

/// Output for one connection at the end of a turn: see [`crate::Driver::finish`].
pub struct Piece<'a, T> {
    /// The connection.
    pub io: &'a T,
    /// What it is to be sent.
    pub bytes: &'a [u8],
    /// How much of it there was room for, or why it could not be written.
    pub written: io::Result<usize>,
}

impl<T: Transport> Piece<'_, T> {
    /// Writes it by a call of its own.
    pub fn write(&mut self) {
        self.written = self.io.try_write(self.bytes);
    }
}

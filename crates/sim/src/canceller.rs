use std::io::ErrorKind;

use pgweir_proxy::Transport;

use crate::network::Stream;

/// A connection that carries a client's CancelRequest to pgweir, and waits for its end.
pub(crate) struct Canceller {
    stream: Stream,
    unsent: Vec<u8>,
}

impl Canceller {
    pub(crate) fn new(stream: Stream, request: Vec<u8>) -> Self {
        Self { stream, unsent: request }
    }

    /// Does what there is to do. Says whether it is over.
    pub(crate) fn step(&mut self) -> bool {
        while !self.unsent.is_empty() {
            match self.stream.try_write(&self.unsent) {
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(_) => return true,
            }
        }
        let mut buffer = [0; 64];
        match self.stream.try_read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Ok(_) | Err(_) => true,
        }
    }
}

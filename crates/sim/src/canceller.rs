use std::collections::VecDeque;
use std::io::ErrorKind;

use pgweir_proxy::Transport;
use pgweir_wire::{ProtocolVersion, Startup};

use crate::ledger::RequestId;
use crate::network::Stream;
use crate::random::Dice;

/// A connection that is no session: it carries a client's CancelRequest to pgweir, or what a
/// stranger says, and waits for its end.
pub(crate) struct Canceller {
    stream: Stream,
    /// Each is sent when the one before is answered.
    unsent: VecDeque<Vec<u8>>,
    /// Which request it carries, until it was closed for that.
    request: Option<RequestId>,
    /// It was closed in good order.
    closed: bool,
    /// It does not wait for the end.
    hasty: bool,
}

impl Canceller {
    pub(crate) fn new(
        stream: Stream,
        words: Vec<Vec<u8>>,
        request: Option<RequestId>,
        hasty: bool,
    ) -> Self {
        Self { stream, unsent: words.into(), request, closed: false, hasty }
    }

    /// The request that it carries, once pgweir has closed it.
    pub(crate) fn request_over(&mut self) -> Option<RequestId> {
        self.request.take_if(|_| self.closed)
    }

    /// Does what there is to do. Says whether it is over.
    pub(crate) fn step(&mut self) -> bool {
        loop {
            if let Some(words) = self.unsent.front_mut()
                && !words.is_empty()
            {
                match self.stream.try_write(words) {
                    Ok(n) => drop(words.drain(..n)),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                    Err(_) => return true,
                }
                continue;
            }
            if self.hasty {
                return true;
            }
            match self.stream.try_read(&mut [0; 64]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Ok(n) if n > 0 && self.unsent.len() > 1 => drop(self.unsent.pop_front()),
                Ok(n) => {
                    self.closed = n == 0;
                    return true;
                }
                Err(_) => return true,
            }
        }
    }
}

/// What a stranger says who is not to be let in, one thing after the other.
pub(crate) fn stranger(dice: &mut Dice) -> Vec<Vec<u8>> {
    let startup = |parameters: &[(&str, &str)]| {
        let mut packet = Vec::new();
        let pairs = parameters.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        Startup::write(&mut packet, ProtocolVersion::V3_0, pairs);
        packet
    };
    let ssl_request = vec![0, 0, 0, 8, 4, 210, 22, 47];
    match dice.below(6) {
        // The second version of the protocol.
        0 => vec![vec![0, 0, 0, 8, 0, 2, 0, 0]],
        // What stands behind may come late enough to be a login.
        1 => vec![[ssl_request, startup(&[("user", "nobody")])].concat()],
        2 => vec![ssl_request.clone(), ssl_request],
        3 => vec![startup(&[("database", "db0")])],
        4 => vec![startup(&[("user", "app"), ("database", "db0"), ("options", "-x")])],
        _ => vec![startup(&[("user", "nobody"), ("database", "nowhere")])],
    }
}

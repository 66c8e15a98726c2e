//! What goes out, at once or when the turn ends.

use std::io;

use pgweir_engine::{Endpoint, Mark};

use super::Driver;
use crate::link::{Crossed, Link};
use crate::piece::Piece;
use crate::transport::Transport;

/// Output up to this size waits for the end of the turn; what is more goes out at once.
const GATHERED_BYTES: usize = 4 * 1024;

/// Output for fewer connections than this is not worth a wait for the end of the turn, nor a call
/// for all of them together. (Of 16 clients that share 3 servers many turns have it for two only.)
const FEW: usize = 2;

/// So many writes go out at once, behind a turn with few, before gathering is tried again.
const UNGATHERED_WRITES: u32 = 16;

impl<T: Transport> Driver<T> {
    pub(super) fn write(&mut self, to: Endpoint, bytes: &[u8], more: bool) {
        // What is joined on a server goes there when all of it has come: its transaction is not to
        // begin before.
        let goes_on = self.engine.goes_on_writing(to);
        let gathers = self.ungathered == 0;
        if !more {
            self.ungathered = self.ungathered.saturating_sub(1);
        }
        let Some(link) = self.links(to).find(to) else { return };
        if goes_on || gathers && link.unsent() + bytes.len() <= GATHERED_BYTES {
            if link.gather_for_turn(bytes) {
                self.gathered.push(to);
            }
            return;
        }
        if more {
            return link.gather(bytes);
        }
        let written = if link.unsent() > 0 {
            link.gather(bytes);
            link.flush()
        } else {
            link.write(bytes)
        };
        self.written(to, written);
    }

    pub(super) fn write_gathered(&mut self, write: &mut impl FnMut(&mut [Piece<'_, T>])) {
        let mut gathered = std::mem::take(&mut self.gathered);
        gathered.retain(|to| self.links(*to).find(*to).is_some_and(Link::turn_ends));
        gathered.sort_by_key(|to| !matches!(to, Endpoint::Server(_)));
        if gathered.len() < FEW {
            self.ungathered = UNGATHERED_WRITES;
            for &to in &gathered {
                let Some(link) = self.links(to).find(to) else { continue };
                let written = link.flush();
                self.written(to, written);
            }
        } else {
            Mark::WrittenTogether.hit();
            let links = gathered.iter().filter_map(|to| self.link(*to));
            let mut pieces: Vec<_> = links.map(Link::piece).collect();
            assert_eq!(pieces.len(), gathered.len(), "a piece would be taken for another's");
            write(&mut pieces);
            let written: Vec<_> = pieces.into_iter().map(|piece| piece.written).collect();
            for (&to, written) in gathered.iter().zip(written) {
                let Some(link) = self.links(to).find(to) else { continue };
                let written = link.written(written);
                self.written(to, written);
            }
        }
        debug_assert!(self.gathered.is_empty(), "gathered while nobody may be told of it");
        gathered.clear();
        self.gathered = gathered;
    }

    /// Output for a connection was written, as far as there was room.
    pub(super) fn written(&mut self, to: Endpoint, written: io::Result<Crossed>) {
        match written {
            Ok(crossed) => self.crossed(to, crossed),
            Err(_) => return self.break_off(to),
        }
        if let Some(link) = self.links(to).find(to)
            && link.must_be_awaited()
        {
            Mark::PartialWrite.hit();
            link.io.wake();
        }
    }
}

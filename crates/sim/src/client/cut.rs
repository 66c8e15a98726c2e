//! Ends of connections that nobody expects.

use pgweir_proxy::Transport;

use super::script::Farewell;
use super::{Client, Ending, Phase, Wish};
use crate::network::Stream;
use crate::random::Dice;
use crate::world::Site;

/// How a client ends its connection when nobody expects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    Close,
    HalfClose,
    Reset,
    /// Its machine is gone, and nobody says so.
    Vanish,
    /// Not for a long time, in which it takes no notice of anything.
    Deaf,
}

impl Cut {
    pub(super) fn draw(dice: &mut Dice) -> Self {
        dice.weighted(&[
            (4, Self::Close),
            (4, Self::HalfClose),
            (4, Self::Reset),
            (1, Self::Vanish),
            (1, Self::Deaf),
        ])
    }
}

impl Client {
    /// It loses its patience at this time.
    pub(crate) fn leave_at(&mut self, at: u64) {
        self.cut_at = Some((at, Cut::draw(&mut self.dice)));
    }

    /// It asks for a cancel at this time, if it still waits for a reply then.
    pub(crate) fn cancel_at(&mut self, at: u64) {
        self.cancel_at = Some(at);
    }

    /// Cuts its connection off if the time for that has come.
    pub(super) fn lose_patience(&mut self, site: &mut Site, wish: &mut Wish) {
        let now = site.trace.now;
        if let Some((at, how)) = self.cut_at {
            if at > now {
                wish.wake(at);
            } else {
                self.cut_at = None;
                let logs_in = matches!(self.phase, Phase::Login { .. });
                if self.stream.is_some() && (logs_in || !self.is_settled()) {
                    self.cut_off(site, how);
                }
            }
        }
        if let Some(until) = self.deaf_until {
            wish.wake(until);
        }
    }

    /// It has said that it leaves, or will end its connection, behind what it has sent.
    pub(super) fn takes_leave(&mut self, site: &mut Site, how: Farewell) {
        match how {
            Farewell::None => return,
            Farewell::Terminate => self.ending = Ending::Said,
            Farewell::Rude => self.ending = Ending::Rude,
            Farewell::HalfClose => {
                self.ending = Ending::Said;
                self.half_close = true;
                return;
            }
        }
        // With a Terminate: it reads no more.
        site.ledger.breaks_off(self.number);
    }

    /// Ends the connection as nobody expects it.
    pub(super) fn cut_off(&mut self, site: &mut Site, how: Cut) {
        self.cut = None;
        site.trace.note(self.who(), || format!("cuts its connection: {how:?}"));
        self.ending = Ending::Rude;
        site.ledger.breaks_off(self.number);
        self.outgoing.clear();
        match how {
            Cut::Close => self.stream = None,
            Cut::HalfClose => {
                if let Some(stream) = &self.stream {
                    stream.shutdown();
                }
            }
            Cut::Reset => {
                if let Some(stream) = self.stream.take() {
                    stream.reset();
                }
            }
            Cut::Vanish => {
                self.vanished = true;
                self.stream.take().into_iter().for_each(Stream::vanish);
            }
            Cut::Deaf => {
                let patience = 5_000_000 + self.dice.below(20_000_000);
                self.deaf_until = Some(site.trace.now + patience);
            }
        }
    }
}

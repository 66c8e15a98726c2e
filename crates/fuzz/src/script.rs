//! The inputs of the engine targets: what one side sends, and what happens meanwhile.
//!
//! A script is two bytes of [`Scene`], then bytes that the side under test sends. Where [`MARK`]
//! stands among them the byte behind it names an [`Op`]. There are no lengths, so that a script
//! that was cut, spliced or changed anywhere is a script again.

use pgweir_engine::UNIT_HELD_BYTES;

/// Comes before each [`Op`]. No message of the protocol begins like this.
pub const MARK: [u8; 2] = [0xfe, 0xff];

/// Something that happens between two bursts of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Everything that can happen without time passing does: connections are made, servers
    /// answer.
    Settle,
    /// The bytes behind this come from the next of the three clients, which connects if it is
    /// not there.
    NextClient,
    /// The current client's stream ends.
    End,
    /// The current client's connection breaks.
    Break,
    /// The bystander sends a query. (Where no bystander is: the current client does.)
    BystanderQuery,
    /// The bystander sends a batch with the unnamed statement.
    BystanderBatch,
    /// The bystander begins a transaction, or commits it.
    BystanderBlock,
    /// The bystander prepares the unnamed statement and then sends a query that nobody can read.
    BystanderSlip,
    /// Somebody asks to cancel what the current client does.
    Cancel,
    /// A message comes that is too long to be held back until it is whole: at once, or in some
    /// scenes first most of it and the second time its end.
    Long,
    /// The statements that servers sleep over are over.
    Wake,
    /// Connections to servers are refused from here on, or no longer.
    Refuse,
    /// The connection of the first server breaks.
    LoseServer,
    /// What is written to the current client piles up, or no longer does.
    CongestClient,
    /// What is written to the first server piles up, or no longer does.
    CongestServer,
    /// A tenth of a second passes.
    Tick,
    /// Ten seconds pass.
    LongTick,
    /// The engine is asked to drain.
    Drain,
}

impl Op {
    /// Every op, each at the place of its byte.
    pub const ALL: [Self; 18] = [
        Self::Settle,
        Self::NextClient,
        Self::End,
        Self::Break,
        Self::BystanderQuery,
        Self::BystanderBatch,
        Self::BystanderBlock,
        Self::BystanderSlip,
        Self::Cancel,
        Self::Long,
        Self::Wake,
        Self::Refuse,
        Self::LoseServer,
        Self::CongestClient,
        Self::CongestServer,
        Self::Tick,
        Self::LongTick,
        Self::Drain,
    ];

    /// The op that a byte names: every byte names one.
    fn of(byte: u8) -> Self {
        Self::ALL[usize::from(byte) % Self::ALL.len()]
    }

    /// How this op is written.
    pub const fn bytes(self) -> [u8; 3] {
        // `ALL` is in the order of the declaration.
        [MARK[0], MARK[1], self as u8]
    }
}

/// Two bytes that choose among the circumstances of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scene(pub [u8; 2]);

impl Scene {
    /// One of `n` circumstances, at most four: the `nth` of eight independent choices.
    pub(crate) fn choice(self, nth: u32, n: usize) -> usize {
        let bits = u16::from_le_bytes(self.0).rotate_right(2 * nth);
        usize::from(bits & 3) % n
    }
}

/// A piece of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    Send(&'a [u8]),
    Do(Op),
}

/// Takes a script apart.
pub(crate) fn parse(script: &[u8]) -> (Scene, Vec<Step<'_>>) {
    let (scene, mut rest) = match script {
        [a, b, rest @ ..] => (Scene([*a, *b]), rest),
        [a] => (Scene([*a, 0]), &[][..]),
        [] => (Scene([0, 0]), &[][..]),
    };
    let mut steps = Vec::new();
    while !rest.is_empty() {
        let mark = rest.windows(2).position(|pair| pair == MARK).unwrap_or(rest.len());
        let (sent, behind) = rest.split_at(mark);
        if !sent.is_empty() {
            steps.push(Step::Send(sent));
        }
        rest = match behind {
            [_, _, op, behind @ ..] => {
                steps.push(Step::Do(Op::of(*op)));
                behind
            }
            _ => &[],
        };
    }
    (scene, steps)
}

/// A message of 20,000 bytes, perhaps in two parts that come at different times, cut behind what
/// anybody holds back ([`UNIT_HELD_BYTES`]).
#[derive(Debug)]
pub(crate) struct Long {
    parted: bool,
    rest: Vec<u8>,
}

impl Long {
    const BYTES: usize = 20_000;

    pub(crate) fn new(scene: Scene) -> Self {
        Self { parted: scene.choice(5, 2) == 0, rest: Vec::new() }
    }

    /// The next part of a message that begins and ends like this.
    pub(crate) fn part(&mut self, tag: u8, start: &[u8], end: &[u8]) -> Vec<u8> {
        if !self.rest.is_empty() {
            return std::mem::take(&mut self.rest);
        }
        let mut message = vec![tag];
        message.extend_from_slice(&(Self::BYTES as u32 - 1).to_be_bytes());
        message.extend_from_slice(start);
        message.resize(Self::BYTES - end.len(), b'a');
        message.extend_from_slice(end);
        if self.parted {
            self.rest = message.split_off(UNIT_HELD_BYTES + 64);
        }
        message
    }
}

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// All chance in a simulation. The same seed throws the same numbers on every machine.
pub(crate) struct Dice(ChaCha8Rng);

/// Who throws dice of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Whatever there is only one of.
    World,
    Topology,
    /// Each configuration.
    Configuration,
    /// Each pool of a configuration.
    Pool,
    Faults,
    Process,
    Ending,
    /// How long the lines of pgweir's log are, and how long it takes to write them.
    Journal,
    /// Each seat: who sits on it, and when.
    Seat,
    /// Each worker: when it goes on.
    Worker,
    /// Each attempt to connect to a server, and what comes of it.
    Attempt,
    /// Each blow, and how many there are of a kind.
    Blow,
    /// What each server has room for at first.
    Room,
    /// How many clients of the console there are, when each comes and what it says.
    Admin,
    /// Each answer of the console.
    Console,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// The dice of a part, of which there may be several. They show the same whatever others throw,
    /// and whether there are others: so that a simulation from which something is taken away stays
    /// what it was as far as it can.
    pub(crate) fn of(seed: u64, part: Part, number: u64) -> Self {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream((part as u64) << 48 | number);
        Self(generator)
    }

    /// Dice of their own for one part, so that what it throws shifts nobody else's numbers.
    pub(crate) fn fork(&mut self) -> Self {
        Self::new(self.0.next_u64())
    }

    /// 32 bytes for a generator that wants them.
    pub(crate) fn seed(&mut self) -> [u8; 32] {
        let mut seed = [0; 32];
        self.0.fill_bytes(&mut seed);
        seed
    }

    /// A number from 0 to `limit - 1`; 0 if the limit is.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        // The upper half of a 128-bit product: no division, and a bias below 2^-32.
        ((u128::from(self.0.next_u64()) * u128::from(limit)) >> 64) as u64
    }

    pub(crate) fn between(&mut self, range: RangeInclusive<u64>) -> u64 {
        range.start() + self.below(range.end() - range.start() + 1)
    }

    /// A number from 1 to `most`, each order of magnitude as likely as the next.
    pub(crate) fn magnitude(&mut self, most: u64) -> u64 {
        let bits = self.between(0..=u64::from(most.max(1).ilog2()));
        ((1 << bits) + self.below(1 << bits)).min(most)
    }

    /// The die is thrown however improbable it is: a fault that is taken away shifts no numbers.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        ((self.0.next_u64() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// One of these, each as often as its weight says.
    pub(crate) fn weighted<T: Copy>(&mut self, choices: &[(u32, T)]) -> T {
        let total = choices.iter().map(|(weight, _)| u64::from(*weight)).sum();
        let mut left = self.below(total);
        for (weight, choice) in choices {
            match left.checked_sub(u64::from(*weight)) {
                Some(rest) => left = rest,
                None => return *choice,
            }
        }
        choices[choices.len() - 1].1
    }

    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }
}

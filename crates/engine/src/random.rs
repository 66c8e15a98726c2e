use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

/// Unguessable bytes: cancel secrets, nonces, salts.
///
/// The seed is an argument: the operating system's in production, the simulation's in a test.
pub(crate) struct Random(ChaCha20Rng);

impl Random {
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self(ChaCha20Rng::from_seed(seed))
    }

    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.fill_bytes(&mut bytes);
        bytes
    }
}

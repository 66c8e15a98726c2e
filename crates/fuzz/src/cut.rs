use std::hash::{DefaultHasher, Hasher};

/// How a stream of bytes arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// All that was sent at once arrives at once.
    Whole,
    /// Byte by byte, but for what is in front of the last thousand.
    Bytes,
    /// In two pieces, the first of this length; 0 when it has come.
    Once(usize),
    /// In pieces of random lengths, most of them short; the state of the generator.
    Random(u64),
}

impl Cut {
    /// In pieces that depend on the input alone, so that a run can be repeated.
    pub(crate) fn random(input: &[u8]) -> Self {
        Self::Random(hash(input) | 1)
    }

    /// Mostly in two pieces, which takes less time; as they depend on the input alone.
    pub(crate) fn mostly_once(input: &[u8]) -> Self {
        match hash(input) {
            hash if hash % 16 == 0 => Self::random(input),
            hash => Self::Once((hash >> 4) as usize % input.len().max(1)),
        }
    }

    /// The length of the next piece, of the `left` bytes that are on their way.
    pub(crate) fn next(&mut self, left: usize) -> usize {
        match self {
            Self::Whole => left,
            Self::Bytes => left.min(left.saturating_sub(1_000).max(1)),
            Self::Once(0) => left,
            Self::Once(first) => std::mem::take(first).min(left),
            Self::Random(state) => {
                // Marsaglia's xorshift64: its state is never 0.
                *state ^= *state << 13;
                *state ^= *state >> 7;
                *state ^= *state << 17;
                let longest = 1_usize << (*state >> 60 & 7);
                left.min(1 + (*state >> 32) as usize % longest)
            }
        }
    }

    /// The pieces of `bytes`.
    pub(crate) fn pieces(mut self, mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        std::iter::from_fn(move || {
            let piece = bytes.split_off(..self.next(bytes.len()))?;
            (!piece.is_empty()).then_some(piece)
        })
    }
}

fn hash(input: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(input);
    hasher.finish()
}

//! What the lexer keeps of a token that a cut went through.

/// The beginning of a token that did not lie in one piece.
#[derive(Clone)]
pub(super) struct Held {
    bytes: [u8; Self::CAPACITY],
    /// How much of `bytes` is filled.
    length: u8,
    /// There was more than fits.
    over: bool,
}

impl Held {
    /// The longest name in PostgreSQL: NAMEDATALEN - 1.
    pub(super) const CAPACITY: usize = 63;

    /// As much of a name as counts.
    pub(super) fn clip(name: &[u8]) -> &[u8] {
        &name[..name.len().min(Self::CAPACITY)]
    }

    /// Adds what fits and remembers whether something did not.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let length = usize::from(self.length);
        let kept = bytes.len().min(Self::CAPACITY - length);
        self.bytes[length..length + kept].copy_from_slice(&bytes[..kept]);
        // At most CAPACITY, which a byte can hold.
        self.length = (length + kept) as u8;
        self.over |= kept < bytes.len();
    }

    pub(super) fn clear(&mut self) {
        self.length = 0;
        self.over = false;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// All of it, if it fits.
    pub(super) fn whole(&self) -> Option<&[u8]> {
        (!self.over).then(|| self.clipped())
    }

    /// As much of it as fits.
    pub(super) fn clipped(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl Default for Held {
    fn default() -> Self {
        Self { bytes: [0; Self::CAPACITY], length: 0, over: false }
    }
}

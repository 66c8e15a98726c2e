//! What the lexer keeps of a token that a cut went through.

use crate::encoding::Encoding;

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
    pub(super) fn clip(name: &[u8], encoding: Encoding) -> &[u8] {
        match name.get(..Self::CAPACITY) {
            Some(kept) if kept.len() < name.len() => cut_off(kept, encoding),
            Some(_) | None => name,
        }
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

    /// As much of it as counts, if it is a name.
    pub(super) fn name(&self, encoding: Encoding) -> &[u8] {
        if self.over { cut_off(self.clipped(), encoding) } else { self.clipped() }
    }

    /// As much of it as fits.
    pub(super) fn clipped(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// What PostgreSQL keeps of a name that begins with these bytes and has more: in UTF-8 whole
/// characters (`truncate_identifier`, scansup.c). How it reads others is not known here, and a
/// part of one shows that there is one.
fn cut_off(kept: &[u8], encoding: Encoding) -> &[u8] {
    let later = kept.iter().rev().take_while(|&&byte| byte & 0xc0 == 0x80).count();
    let Some(first) = kept.len().checked_sub(later + 1) else { return kept };
    let length = match kept[first] {
        0xf0.. => 4,
        0xe0.. => 3,
        0xc0.. => 2,
        _ => 1,
    };
    let is_whole = encoding != Encoding::Exact || later + 1 >= length;
    if is_whole { kept } else { &kept[..first] }
}

impl Default for Held {
    fn default() -> Self {
        Self { bytes: [0; Self::CAPACITY], length: 0, over: false }
    }
}

use crate::Malformed;

/// Bytes of a header: the tag and the length.
pub const HEADER_LEN: usize = 5;

/// The first five bytes of every message but the startup packets.
///
/// The tag is still a byte here: each direction has its own set of them, and only the side that
/// reads knows which ([`crate::frontend::Tag`], [`crate::backend::Tag`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The first byte.
    pub tag: u8,
    /// Bytes of the body: what the length field says, less the four bytes that it counts itself.
    pub body_len: usize,
}

impl Header {
    /// The header at the front of `bytes`, or `None` while fewer than five are there.
    ///
    /// A length below four is refused here; the limit above depends on the tag and is checked by
    /// the side that knows it, before anything is kept.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, Malformed> {
        let [tag, a, b, c, d, ..] = *bytes else {
            return Ok(None);
        };
        let length = i32::from_be_bytes([a, b, c, d]);
        if length < 4 {
            return Err(Malformed::Length { tag, length });
        }
        Ok(Some(Self { tag, body_len: length as usize - 4 }))
    }

    /// Bytes of the whole message, its header included.
    #[inline]
    pub fn message_len(&self) -> usize {
        HEADER_LEN + self.body_len
    }

    /// The error for a message of this size that its type does not allow.
    pub(crate) fn bad_length(&self) -> Malformed {
        // A header came from an i32, so its length fits one again.
        Malformed::Length { tag: self.tag, length: (self.body_len + 4) as i32 }
    }
}

/// Appends a message to `out`: the tag, a length that is filled in last, and what `body` writes.
pub(crate) fn message(out: &mut Vec<u8>, tag: u8, body: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    untagged(out, body);
}

/// As [`message`], for the startup packets, which have no tag.
pub(crate) fn untagged(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    // Only our own messages are built here, all of them far below 2 GiB.
    let length = (out.len() - start) as i32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends `bytes` and the NUL that ends a string. A NUL inside would cut the string short for
/// the reader and shift every field behind it, so the text ends there for us too.
pub(crate) fn put_str(out: &mut Vec<u8>, bytes: &[u8]) {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    out.extend_from_slice(&bytes[..end]);
    out.push(0);
}

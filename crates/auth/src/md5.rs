//! PostgreSQL's MD5 authentication (protocol message AuthenticationMD5Password).

use std::fmt;

use md5::{Digest, Md5};
use subtle::ConstantTimeEq;

/// The MD5 hash of a password and its user's name, as PostgreSQL stores it.
///
/// It is as good as the password for logging in with MD5, so `Debug` hides it.
#[derive(Clone)]
pub struct Md5Hash(HexDigest);

impl Md5Hash {
    /// Length of a response: `md5` and 32 hex digits.
    pub const RESPONSE_LEN: usize = PREFIX.len() + size_of::<HexDigest>();

    /// Reads the stored form, `md5` and 32 lower-case hex digits, and nothing else
    /// (`get_password_type` in `src/backend/libpq/crypt.c`).
    pub fn parse(stored: &str) -> Option<Self> {
        let digits: HexDigest = stored.strip_prefix(PREFIX)?.as_bytes().try_into().ok()?;
        digits.iter().all(|digit| HEX_DIGITS.contains(digit)).then_some(Self(digits))
    }

    /// Hashes `password` for `user`, whose name PostgreSQL takes as the salt. A hash is therefore
    /// useless after its role was renamed.
    pub fn of(password: &[u8], user: &[u8]) -> Self {
        Self(hex_digest(password, user))
    }

    /// A hash made from a digest of any origin; see [`MockAuth`](crate::MockAuth).
    pub(crate) fn from_digest(digest: [u8; 16]) -> Self {
        Self(hex(digest))
    }

    /// What a client answers to a challenge of `salt`: the body of its PasswordMessage without the
    /// NUL at the end.
    pub fn response(&self, salt: [u8; 4]) -> [u8; Self::RESPONSE_LEN] {
        let mut response = [0; Self::RESPONSE_LEN];
        let (prefix, digits) = response.split_at_mut(PREFIX.len());
        prefix.copy_from_slice(PREFIX.as_bytes());
        digits.copy_from_slice(&hex_digest(&self.0, &salt));
        response
    }

    /// Whether `response`, without the NUL at its end, answers the challenge of `salt`.
    pub fn accepts(&self, salt: [u8; 4], response: &[u8]) -> bool {
        self.response(salt).as_slice().ct_eq(response).into()
    }
}

impl PartialEq for Md5Hash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Md5Hash {}

impl fmt::Debug for Md5Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Md5Hash(..)")
    }
}

/// A digest in lower-case hex. Both hashes of the method are taken over text, not over the bytes.
type HexDigest = [u8; 32];

const PREFIX: &str = "md5";
const HEX_DIGITS: &[u8; 16] = b"0123456789abcdef";

fn hex_digest(text: &[u8], salt: &[u8]) -> HexDigest {
    hex(Md5::new().chain_update(text).chain_update(salt).finalize().into())
}

fn hex(digest: [u8; 16]) -> HexDigest {
    let mut digits = [0; 32];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(digest) {
        pair[0] = HEX_DIGITS[usize::from(byte >> 4)];
        pair[1] = HEX_DIGITS[usize::from(byte & 0xf)];
    }
    digits
}

#[cfg(test)]
mod tests;

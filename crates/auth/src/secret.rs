//! Bytes that must not be seen.

use std::fmt;

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A password, or anything else that lets its holder log in.
///
/// PostgreSQL passwords are bytes: the encoding in which a client types one is not known when it
/// logs in (`src/backend/libpq/auth-scram.c`, "SASLprep usage").
///
/// `Debug` shows nothing of it, not even its length, and `==` takes constant time. Its memory is
/// not wiped when it is dropped: neither is that of the file or message it came from.
#[derive(Clone)]
pub struct Secret(Box<[u8]>);

impl Secret {
    /// Hides `bytes`.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into().into_boxed_slice())
    }

    /// The bytes themselves, to be sent or hashed, never to be printed.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// Whether `candidate` is this secret.
    ///
    /// Digests are compared, because the comparison of two slices gives away whether their lengths
    /// agree.
    pub fn matches(&self, candidate: &[u8]) -> bool {
        Sha256::digest(&self.0).ct_eq(&Sha256::digest(candidate)).into()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.matches(&other.0)
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests;

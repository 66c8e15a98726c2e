//! The keys of SCRAM-SHA-256: what a server stores and what a client logs in with (RFC 5802 §3).

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::saslprep;

/// What a server stores of a user: enough to check a client, not enough to log in.
///
/// The ServerKey in it must stay secret all the same, since with it one can play the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScramKeys {
    iterations: Iterations,
    salt: Box<[u8]>,
    stored_key: Key,
    server_key: Key,
}

impl ScramKeys {
    /// Reads `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`, the form in which PostgreSQL
    /// stores it, with salt and keys in base64 (`scram_build_secret` in
    /// `src/common/scram-common.c`).
    ///
    /// It is as strict as what that function writes is regular; PostgreSQL's own reader also lets a
    /// sign, blanks and doubled separators pass.
    pub fn parse(stored: &str) -> Option<Self> {
        let (iterations, rest) = stored.strip_prefix("SCRAM-SHA-256$")?.split_once(':')?;
        let (salt, keys) = rest.split_once('$')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        let salt = BASE64_STANDARD.decode(salt).ok().filter(|salt| !salt.is_empty())?;
        Some(Self {
            iterations: Iterations::parse(iterations.as_bytes())?,
            salt: salt.into(),
            stored_key: Key::decode(stored_key.as_bytes())?,
            server_key: Key::decode(server_key.as_bytes())?,
        })
    }

    /// Makes the keys of `password`. Takes PBKDF2's time: do it once, not for each login.
    pub fn derive(password: &[u8], salt: &[u8], iterations: Iterations) -> Self {
        LoginKeys::derive(password, salt, iterations).scram_keys()
    }

    /// Keys of any origin; see [`MockAuth`](crate::MockAuth).
    pub(crate) fn from_parts(
        iterations: Iterations,
        salt: &[u8],
        stored_key: [u8; KEY_LEN],
        server_key: [u8; KEY_LEN],
    ) -> Self {
        let (stored_key, server_key) = (Key(stored_key), Key(server_key));
        Self { iterations, salt: salt.into(), stored_key, server_key }
    }

    /// The iteration count that a client is told.
    pub const fn iterations(&self) -> Iterations {
        self.iterations
    }

    /// The salt that a client is told.
    pub const fn salt(&self) -> &[u8] {
        &self.salt
    }

    /// Whether these are the keys of `password`. Takes PBKDF2's time.
    pub fn accepts(&self, password: &[u8]) -> bool {
        Self::derive(password, &self.salt, self.iterations) == *self
    }

    /// Whether the proof is that of a client that has the ClientKey.
    pub(super) fn are_proved(&self, proof: &Key, auth_message: &[u8]) -> bool {
        let client_key = proof.xor(&self.stored_key.sign(auth_message));
        client_key.stored_key() == self.stored_key
    }

    /// The signature by which a server shows that it stores these.
    pub(super) fn server_signature(&self, auth_message: &[u8]) -> Key {
        self.server_key.sign(auth_message)
    }
}

/// What a client logs in with: as good as the password, for every server that stores keys of the
/// same salt and iteration count.
///
/// Keep them for the next login to spare PBKDF2, and ask [`fit`](Self::fit) before using them: a
/// new password comes with a new salt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginKeys {
    iterations: Iterations,
    salt: Box<[u8]>,
    client_key: Key,
    server_key: Key,
}

impl LoginKeys {
    /// Makes the keys of `password`. Takes PBKDF2's time, about a millisecond for 4096 iterations,
    /// so not on a thread that others wait for if there are many.
    pub fn derive(password: &[u8], salt: &[u8], iterations: Iterations) -> Self {
        let salted_password = Key(pbkdf2(&saslprep::prepare(password), salt, iterations));
        Self {
            iterations,
            salt: salt.into(),
            client_key: salted_password.sign(b"Client Key"),
            server_key: salted_password.sign(b"Server Key"),
        }
    }

    /// Whether these keys were made with `salt` and `iterations`.
    pub fn fit(&self, salt: &[u8], iterations: Iterations) -> bool {
        *self.salt == *salt && self.iterations == iterations
    }

    /// What a server stores of them.
    pub fn scram_keys(&self) -> ScramKeys {
        ScramKeys {
            iterations: self.iterations,
            salt: self.salt.clone(),
            stored_key: self.client_key.stored_key(),
            server_key: self.server_key.clone(),
        }
    }

    /// Proves to a server that we have these keys.
    pub(super) fn prove(&self, auth_message: &[u8]) -> Key {
        self.client_key.xor(&self.client_key.stored_key().sign(auth_message))
    }

    /// The signature by which a server shows that it stores keys of these.
    pub(super) fn server_signature(&self, auth_message: &[u8]) -> Key {
        self.server_key.sign(auth_message)
    }
}

/// How often PBKDF2 hashes a password: from 1 to 2,147,483,647, PostgreSQL's `int`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Iterations(u32);

impl Iterations {
    /// PostgreSQL's (`scram_iterations`).
    pub const DEFAULT: Self = Self(4096);

    /// The most that we do for a server when we log in to it: 20 to 40 ms of work. Without a
    /// limit, each login could keep us busy for ten minutes.
    pub const MAX_FROM_SERVER: Self = Self(100_000);

    /// `None` if `count` is out of range.
    pub fn new(count: u32) -> Option<Self> {
        (1..=i32::MAX.unsigned_abs()).contains(&count).then_some(Self(count))
    }

    /// Reads RFC 5802's `posit-number`: digits, the first of them not 0.
    pub fn parse(digits: &[u8]) -> Option<Self> {
        if !digits.iter().all(u8::is_ascii_digit) || digits.starts_with(b"0") {
            return None;
        }
        Self::new(str::from_utf8(digits).ok()?.parse().ok()?)
    }

    /// The count.
    pub const fn count(self) -> u32 {
        self.0
    }
}

/// Length of SHA-256's digests, which all keys, proofs and signatures are.
const KEY_LEN: usize = 32;

/// A key, proof or signature. `==` takes constant time, and `Debug` hides it.
#[derive(Clone)]
pub(super) struct Key([u8; KEY_LEN]);

impl Key {
    /// Reads the base64 of exactly one key.
    pub(super) fn decode(base64: &[u8]) -> Option<Self> {
        let bytes = BASE64_STANDARD.decode(base64).ok()?;
        bytes.try_into().ok().map(Self)
    }

    pub(super) fn encode(&self) -> String {
        BASE64_STANDARD.encode(self.0)
    }

    fn sign(&self, message: &[u8]) -> Self {
        Self(hmac(&self.0, &[message]))
    }

    /// The StoredKey, if this is a ClientKey.
    fn stored_key(&self) -> Self {
        Self(Sha256::digest(self.0).into())
    }

    fn xor(&self, other: &Self) -> Self {
        let mut bytes = self.0;
        xor_into(&mut bytes, &other.0);
        Self(bytes)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Key {}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// HMAC-SHA-256 of `parts`, one after the other.
pub(crate) fn hmac(key: &[u8], parts: &[&[u8]]) -> [u8; KEY_LEN] {
    let keyed = keyed_hmac(key);
    parts.iter().fold(keyed, |mac, part| mac.chain_update(part)).finalize().into_bytes().into()
}

/// RFC 5802's `Hi`: PBKDF2 with HMAC-SHA-256 and one block of output.
fn pbkdf2(password: &[u8], salt: &[u8], iterations: Iterations) -> [u8; KEY_LEN] {
    let keyed = keyed_hmac(password);
    let sign = |message: &[u8]| keyed.clone().chain_update(message).finalize().into_bytes();
    let mut block = sign(&[salt, &1_u32.to_be_bytes()].concat());
    let mut sum = block.into();
    for _ in 1..iterations.count() {
        block = sign(&block);
        xor_into(&mut sum, &block.into());
    }
    sum
}

fn keyed_hmac(key: &[u8]) -> Hmac<Sha256> {
    // HMAC hashes a key that is too long and pads one that is too short (RFC 2104 §2). The error
    // is there for other MACs.
    Hmac::new_from_slice(key).expect("HMAC takes a key of any length")
}

fn xor_into(bytes: &mut [u8; KEY_LEN], other: &[u8; KEY_LEN]) {
    for (byte, other) in bytes.iter_mut().zip(other) {
        *byte ^= other;
    }
}

#[cfg(test)]
mod tests;

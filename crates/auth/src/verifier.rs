//! What we know of a user's secret.

use std::fmt;

use crate::scram::ScramKeys;
use crate::{Md5Hash, MockAuth, Secret};

/// A user's secret in one of the three forms that PostgreSQL's `pg_authid.rolpassword` has had, and
/// that the configuration may hold.
///
/// | | cleartext login | MD5 login | SCRAM login |
/// |---|---|---|---|
/// | [`Plain`](Self::Plain) | yes | yes | yes |
/// | [`Md5`](Self::Md5) | yes | yes | never: MD5 hashes give no SCRAM keys |
/// | [`Scram`](Self::Scram) | yes, costs PBKDF2 | never | yes |
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verifier {
    /// The password itself, never empty.
    Plain(Secret),
    /// `md5` and 32 hex digits.
    Md5(Md5Hash),
    /// `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`.
    Scram(ScramKeys),
}

impl Verifier {
    /// Reads a secret as it stands in the configuration or in `pg_authid`.
    ///
    /// As in PostgreSQL (`get_password_type` in `src/backend/libpq/crypt.c`), what is not exactly a
    /// hash of one of the known forms is a password. A SCRAM secret that was cut short by a copy is
    /// therefore a password, and nobody gets in with the one it was made from: a configuration with
    /// one is refused.
    ///
    /// # Errors
    ///
    /// [`VerifierError::Empty`] and [`VerifierError::NulByte`], which no password in PostgreSQL
    /// can be or have.
    pub fn parse(stored: &str) -> Result<Self, VerifierError> {
        if stored.is_empty() {
            return Err(VerifierError::Empty);
        }
        if stored.contains('\0') {
            return Err(VerifierError::NulByte);
        }
        Ok(Md5Hash::parse(stored)
            .map(Self::Md5)
            .or_else(|| ScramKeys::parse(stored).map(Self::Scram))
            .unwrap_or_else(|| Self::Plain(Secret::new(stored))))
    }

    /// Which form this is.
    pub const fn kind(&self) -> VerifierKind {
        match self {
            Self::Plain(_) => VerifierKind::Plain,
            Self::Md5(_) => VerifierKind::Md5,
            Self::Scram(_) => VerifierKind::Scram,
        }
    }

    /// Whether `password`, sent in clear by `user`, is the right one (`plain_crypt_verify` in
    /// `src/backend/libpq/crypt.c`).
    ///
    /// An empty password never is: PostgreSQL refuses it even if a hash of it is stored
    /// (`recv_password_packet` in `src/backend/libpq/auth.c`).
    pub fn accepts_cleartext(&self, user: &[u8], password: &[u8]) -> bool {
        let accepted = match self {
            Self::Plain(secret) => secret.matches(password),
            Self::Md5(hash) => *hash == Md5Hash::of(password, user),
            Self::Scram(keys) => keys.accepts(password),
        };
        accepted && !password.is_empty()
    }

    /// Whether `response`, without the NUL at its end, is the right answer of `user` to the MD5
    /// challenge of `salt`. With SCRAM keys no answer is.
    pub fn accepts_md5(&self, user: &[u8], salt: [u8; 4], response: &[u8]) -> bool {
        self.md5_hash(user).is_some_and(|hash| hash.accepts(salt, response))
    }

    /// The hash with which `user` logs in to a server that asks for MD5, or which a client is
    /// checked against. `None` for SCRAM keys.
    pub fn md5_hash(&self, user: &[u8]) -> Option<Md5Hash> {
        match self {
            Self::Plain(secret) => Some(Md5Hash::of(secret.expose(), user)),
            Self::Md5(hash) => Some(hash.clone()),
            Self::Scram(_) => None,
        }
    }

    /// The keys against which `user` is checked with SCRAM, or `None` for an MD5 hash, whose user
    /// cannot log in with SCRAM and is treated like an unknown one.
    ///
    /// For a password this is PBKDF2, to be done once when the configuration is loaded. Its salt is
    /// the one that `mock` would show for this name if it were unknown, so that nobody can tell
    /// from the salt whether, and since when, the user exists.
    pub fn scram_keys(&self, user: &[u8], mock: &MockAuth) -> Option<ScramKeys> {
        match self {
            Self::Plain(secret) => {
                Some(ScramKeys::derive(secret.expose(), &mock.salt(user), mock.iterations()))
            }
            Self::Md5(_) => None,
            Self::Scram(keys) => Some(keys.clone()),
        }
    }
}

/// The form of a [`Verifier`], without the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifierKind {
    /// A password.
    Plain,
    /// An MD5 hash.
    Md5,
    /// SCRAM keys.
    Scram,
}

/// Why a string is no secret of any form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifierError {
    /// It is empty. PostgreSQL lets nobody in with an empty password.
    Empty,
    /// It has a NUL byte, which ends a string in PostgreSQL's protocol.
    NulByte,
}

impl fmt::Display for VerifierError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the password is empty",
            Self::NulByte => "the password has a NUL byte in it",
        })
    }
}

impl std::error::Error for VerifierError {}

#[cfg(test)]
mod tests;

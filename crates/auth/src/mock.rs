//! Authentication of users that do not exist.

use std::{fmt, hint::black_box};

use crate::scram::{self, Iterations, ScramKeys};
use crate::{Md5Hash, Secret, Verifier, VerifierKind};

/// Makes up secrets for unknown users, so that a client cannot find out who exists: PostgreSQL's
/// "mock authentication" (`src/backend/libpq/auth-scram.c`, "Error handling").
///
/// An unknown name gets a [`Verifier`] or [`ScramKeys`] like a known one, made from the name and a
/// secret of ours. The exchange then runs the same code and fails as with a wrong password. No flag
/// says that it must: to pass, a client would have to invert SHA-256 or guess 128 bits.
///
/// SCRAM shows the client a salt, which has to be the same at every attempt, as a stored one is.
/// So the secret should outlive a restart and be the same for all processes behind one
/// address; PostgreSQL keeps its own, the `mock_authentication_nonce`, in `pg_control`.
#[derive(Clone)]
pub struct MockAuth {
    secret: [u8; 32],
    iterations: Iterations,
}

impl MockAuth {
    /// `secret` is 32 random bytes that no client may learn. `iterations` is the count that unknown
    /// users are shown; it should be the one that most known users have.
    pub const fn new(secret: [u8; 32], iterations: Iterations) -> Self {
        Self { secret, iterations }
    }

    /// The iteration count of users whose keys we make.
    pub const fn iterations(&self) -> Iterations {
        self.iterations
    }

    /// The salt of `user`, always the same for the same name. It has 16 bytes, as PostgreSQL's have
    /// (`SCRAM_DEFAULT_SALT_LEN` in `src/include/common/scram-common.h`).
    pub fn salt(&self, user: &[u8]) -> [u8; 16] {
        first_half(self.digest("salt", user))
    }

    /// The keys for a SCRAM exchange: those of a `known` user, or made up.
    ///
    /// They are made up in both cases, so that the time taken is the same.
    pub fn scram_keys(&self, known: Option<&ScramKeys>, user: &[u8]) -> ScramKeys {
        let mock = black_box(self.mock_keys(user));
        known.cloned().unwrap_or(mock)
    }

    /// The secret for a cleartext or MD5 exchange: that of a `known` user, or one made up.
    ///
    /// `kind` is the form of what is made up. Checking a cleartext password costs a thousand times
    /// more with SCRAM keys than with the others, so give the kind that most known users have.
    pub fn verifier(&self, known: Option<&Verifier>, kind: VerifierKind, user: &[u8]) -> Verifier {
        let mock = black_box(match kind {
            VerifierKind::Plain => Verifier::Plain(Secret::new(self.digest("plain", user))),
            VerifierKind::Md5 => {
                Verifier::Md5(Md5Hash::from_digest(first_half(self.digest("md5", user))))
            }
            VerifierKind::Scram => Verifier::Scram(self.mock_keys(user)),
        });
        known.cloned().unwrap_or(mock)
    }

    fn mock_keys(&self, user: &[u8]) -> ScramKeys {
        let stored_key = self.digest("stored key", user);
        let server_key = self.digest("server key", user);
        ScramKeys::from_parts(self.iterations, &self.salt(user), stored_key, server_key)
    }

    /// Independent bytes for each purpose. No purpose holds the NUL that ends it.
    fn digest(&self, purpose: &str, user: &[u8]) -> [u8; 32] {
        scram::hmac(&self.secret, &[purpose.as_bytes(), b"\0", user])
    }
}

impl fmt::Debug for MockAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockAuth").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

fn first_half(digest: [u8; 32]) -> [u8; 16] {
    std::array::from_fn(|i| digest[i])
}

#[cfg(test)]
mod tests;

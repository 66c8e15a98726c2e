//! A stored secret, and what is sent by somebody who has to know it.

use pgweir_auth::scram::Iterations;
use pgweir_auth::{Md5Hash, MockAuth, Verifier};

const SALT: [u8; 4] = [1, 2, 3, 4];

/// More work than this for one password is not done here.
const CHEAP_ITERATIONS: u32 = 16;

/// A user, what is stored for it, and what it sends, a line each.
pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.splitn(3, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (user, stored, sent) = (line().as_bytes(), line(), line().as_bytes());
    let verifier = match Verifier::parse(stored) {
        Ok(verifier) => verifier,
        Err(error) => {
            assert!(stored.is_empty() || stored.contains('\0'), "{error}");
            return;
        }
    };
    shows_nothing(&verifier);
    let hash = verifier.md5_hash(user);
    let response = hash.as_ref().map(|hash| hash.response(SALT));
    assert_eq!(verifier.accepts_md5(user, SALT, sent), response.is_some_and(|own| own == sent));
    if let Some(own) = response {
        assert!(verifier.accepts_md5(user, SALT, &own), "the right answer is refused");
        let other = Md5Hash::of(b"other", user).response(SALT);
        assert_eq!(verifier.accepts_md5(user, SALT, &other), other == own);
    }
    let right = match &verifier {
        Verifier::Plain(_) => sent == stored.as_bytes(),
        Verifier::Md5(hash) => *hash == Md5Hash::of(sent, user) && !sent.is_empty(),
        Verifier::Scram(keys) if keys.iterations().count() > CHEAP_ITERATIONS => return,
        Verifier::Scram(keys) => keys.accepts(sent) && !sent.is_empty(),
    };
    assert_eq!(verifier.accepts_cleartext(user, sent), right);
}

/// It looks like any other of its kind.
fn shows_nothing(verifier: &Verifier) {
    let mock = MockAuth::new([7; 32], Iterations::DEFAULT);
    let other = mock.verifier(None, verifier.kind(), b"other");
    match verifier {
        // The salt and the count are no secret.
        Verifier::Scram(_) => {}
        Verifier::Plain(_) | Verifier::Md5(_) => {
            assert_eq!(format!("{verifier:?}"), format!("{other:?}"), "a secret is shown");
        }
    }
}

//! The URL of a server, in one line of somebody who has perhaps a password in the wrong place.

use pgweir_config::Url;

/// A password is where the input has this byte.
const STANDS_FOR_PASSWORD: char = '\u{1}';

/// No word, number or name, so that nobody has a reason to show it.
const PASSWORD: &str = "q7!Xz*";

/// Any text; bytes that are no UTF-8 stand for the replacement character.
pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data).replace(STANDS_FOR_PASSWORD, PASSWORD);
    let read = Url::parse(&text, None);
    assert_eq!(Url::parse(&text, None), read, "the same text gives the same result");
    match read {
        Ok(url) => {
            assert!(url.port > 0 && url.connect_timeout_s != Some(0));
            assert!(!url.user.is_empty() && !url.host.is_empty() && !url.database.is_empty());
            let password = url.password.as_ref().map(|secret| secret.expose());
            assert!(password.is_none_or(|secret| !secret.is_empty() && !secret.contains('\0')));
            let shown = [&url.user, &url.host, &url.database];
            if !shown.into_iter().any(|part| part.contains(PASSWORD)) {
                assert!(!format!("{url} {url:?}").contains(PASSWORD), "a password is shown");
            }
            let outside = Url::parse(&text, Some(PASSWORD.to_owned())).map(|url| url.password);
            let expected = password.unwrap_or(PASSWORD);
            let found = outside.as_ref().ok().and_then(Option::as_ref);
            assert_eq!(found.map(|secret| secret.expose()), Some(expected));
        }
        Err(error) => {
            assert!(!error.is_empty(), "refused without a word");
            assert!(!error.contains(PASSWORD), "a password is shown: {error}");
        }
    }
}

use std::env::{self, VarError};

use pgweir_config::Url;

/// Reads a URL of the command line; the password is PGPASSWORD where it has none. The error says
/// what is wrong and what would be right.
pub(crate) fn read(text: &str) -> Result<Url, String> {
    let password = match env::var("PGPASSWORD") {
        Ok(password) => Some(password),
        Err(VarError::NotPresent) => None,
        Err(VarError::NotUnicode(_)) => return Err("PGPASSWORD: expected UTF-8".to_owned()),
    };
    Url::parse(text, password).map_err(|error| format!("the URL cannot be used: {error}"))
}

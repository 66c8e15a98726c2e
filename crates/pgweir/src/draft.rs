//! Text of a configuration in our own dialect, for whoever has only a URL. There is one way to a
//! configuration: what is written here is read like any file.

use pgweir_config::Url;

use crate::cli::Listen;

/// `[general]`: where to listen, and how clients prove who they are.
pub(crate) fn general(url: &Url, listen: &Listen) -> String {
    let mut text = format!("[general]\nhost = {}\nport = {}\n", quoted(&listen.host), listen.port);
    if url.password.is_none() {
        text += "\n# There is no password: whoever reaches the port is let in as any user below.\n";
        text += "auth_type = \"trust\"\n";
    }
    if let Some(seconds) = url.connect_timeout_s {
        text += &format!("\nconnect_timeout = \"{seconds}s\"\n");
    }
    text
}

/// `[pools.DATABASE]` for one of the server's databases, with the URL's user. `size` stands for the
/// line with pool_size, and may be empty; `role` is that of the server.
pub(crate) fn pool(url: &Url, database: &str, size: &str, role: &str) -> String {
    let (key, name, user) = (key(database), quoted(database), quoted(&url.user));
    let password = url.password.as_ref().map(|secret| quoted(secret.expose()));
    let password = password.map(|text| format!("password = {text}\n")).unwrap_or_default();
    let server = format!("[{}, {}, \"{role}\"]", quoted(&url.host), url.port);
    format!(
        "[pools.{key}]\npool_mode = \"transaction\"\n\n\
         [pools.{key}.users.0]\nusername = {user}\n{password}{size}\n\
         [pools.{key}.shards.0]\nservers = [{server}]\ndatabase = {name}\n"
    )
}

/// `text` as a part of a header, in quotes where TOML asks for them.
fn key(text: &str) -> String {
    let bare = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    match !text.is_empty() && text.bytes().all(bare) {
        true => text.to_owned(),
        false => quoted(text),
    }
}

/// `text` as a basic string of TOML, on one line.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            _ if letter.is_control() => quoted += &format!("\\u{:04X}", u32::from(letter)),
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests;

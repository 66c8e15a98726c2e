use std::fmt;
use std::path::{Path, PathBuf};

/// The longest name, in bytes: libpq takes none that is longer (`UNIXSOCK_PATH_BUFLEN`), and has
/// that from the kernel.
const NAME_MAX: usize = 107;

/// What stands between a folder and a port.
const MIDDLE: &str = "/.s.PGSQL.";

/// The name of a unix socket, as libpq makes it of a host and a port (`UNIXSOCK_PATH`, pqcomm.h):
/// `FOLDER/.s.PGSQL.PORT`. One that begins with `@` is abstract: no file stands for it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SocketName(String);

impl SocketName {
    /// The longest folder, in bytes: with any port behind it the name fits.
    pub const FOLDER_MAX: usize = NAME_MAX - MIDDLE.len() - "65535".len();

    /// The name in this folder; `None` if it is none, but a name or an address for TCP.
    pub fn in_folder(folder: &str, port: u16) -> Option<Self> {
        Self::is_folder(folder).then(|| Self(format!("{folder}{MIDDLE}{port}")))
    }

    /// Whether a host stands for a folder of unix sockets, or with an `@` for the beginning of
    /// abstract names.
    pub fn is_folder(host: &str) -> bool {
        let begins = host.starts_with('/') || host.starts_with('@') && host.len() > 1;
        begins && host.len() <= Self::FOLDER_MAX && !host.contains('\0')
    }

    /// The file that stands for it.
    pub fn file(&self) -> Option<&Path> {
        (!self.0.starts_with('@')).then(|| Path::new(&self.0))
    }

    /// What the kernel knows it by: an abstract name begins with a zero byte.
    pub fn address(&self) -> PathBuf {
        match self.0.strip_prefix('@') {
            Some(name) => PathBuf::from(format!("\0{name}")),
            None => PathBuf::from(&self.0),
        }
    }
}

impl fmt::Display for SocketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;

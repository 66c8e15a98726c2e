//! What ends a measurement early.

use std::fmt;
use std::io;

/// Why the harness, or one case of it, could not go on.
#[derive(Debug)]
pub(crate) enum Error {
    /// Ctrl-C or SIGTERM: everything is taken down and nothing more is tried.
    Interrupted,
    /// The operating system refused something that the harness needs.
    Io { doing: String, source: io::Error },
    /// A program or a result was not what the measurement needs; the text says what and why.
    Unfit(String),
}

pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn unfit(text: impl Into<String>) -> Self {
        Self::Unfit(text.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Interrupted => f.write_str("interrupted"),
            Self::Io { doing, source } => write!(f, "{doing}: {source}"),
            Self::Unfit(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

/// Says what was being done when an I/O error came.
pub(crate) trait Doing<T> {
    /// Turns the error into [`Error::Io`] with what was being done, as in "read /proc/1/stat".
    fn doing(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: Into<io::Error>> Doing<T> for std::result::Result<T, E> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Error::Io { doing: what(), source: error.into() })
    }
}

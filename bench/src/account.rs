//! The user that PostgreSQL and PgBouncer run as: both refuse to run as root.

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;

use crate::error::{Doing, Error, Result};

/// A user without privileges, taken when the harness itself runs as root.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Account {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Account {
    /// `postgres`, or `nobody`, when we are root; `None` when we are not and need no other user.
    pub(crate) fn unprivileged() -> Result<Option<Self>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let passwd = fs::read_to_string("/etc/passwd").doing(|| "read /etc/passwd".into())?;
        ["postgres", "nobody"]
            .iter()
            .find_map(|name| Self::named(name, &passwd))
            .map(Some)
            .ok_or_else(|| Error::unfit("/etc/passwd has neither postgres nor nobody"))
    }

    /// The user's line in the text of a passwd(5) file.
    fn named(name: &str, passwd: &str) -> Option<Self> {
        passwd.lines().find_map(|line| {
            let mut fields = line.split(':');
            if fields.next()? != name {
                return None;
            }
            Some(Self { uid: fields.nth(1)?.parse().ok()?, gid: fields.next()?.parse().ok()? })
        })
    }

    pub(crate) fn own(self, path: &Path) -> Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
            .doing(|| format!("give {} to user {}", path.display(), self.uid))
    }
}

#[cfg(test)]
mod tests;

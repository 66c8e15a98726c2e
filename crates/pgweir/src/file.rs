use std::path::{Path, PathBuf};

use pgweir_config::{Config, Errors};

/// The file that pgweir was started with.
pub(crate) struct File {
    path: PathBuf,
    /// What it held when it was read last; `None` if it could not be read.
    text: Option<String>,
}

impl File {
    /// The file at `path`, and the configuration in it.
    pub(crate) fn open(path: PathBuf) -> Result<(Self, Config), Errors> {
        let mut file = Self { path, text: None };
        let config = file.load()?;
        Ok((file, config))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What it says now.
    pub(crate) fn load(&mut self) -> Result<Config, Errors> {
        self.text = None;
        let text = Config::read(&self.path)?;
        let config = Config::parse(&text, &self.path);
        self.text = Some(text);
        config
    }

    /// Whether it holds something else than when it was read last. It is read, and not asked for
    /// its time: a link on the way to it may lead elsewhere now, as Kubernetes changes its files.
    pub(crate) fn has_changed(&self) -> bool {
        let text = Config::read(&self.path).ok();
        text.is_some() && text != self.text
    }
}

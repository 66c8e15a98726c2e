use std::path::PathBuf;

use pgweir_config::{Config, Errors, Explained};

/// A configuration, and where its values come from.
pub(crate) type Loaded = (Config, Vec<Explained>);

/// The file that pgweir was started with.
pub(crate) struct File {
    path: PathBuf,
    /// What it held when it was read last; `None` if it could not be read.
    text: Option<String>,
}

impl File {
    /// The file at `path`, and the configuration in it.
    pub(crate) fn open(path: PathBuf) -> Result<(Self, Loaded), Errors> {
        let mut file = Self { path, text: None };
        let loaded = file.load()?;
        Ok((file, loaded))
    }

    /// What it says now.
    pub(crate) fn load(&mut self) -> Result<Loaded, Errors> {
        self.text = None;
        let text = Config::read(&self.path)?;
        let loaded = Config::parse_explained(&text, &self.path);
        self.text = Some(text);
        loaded
    }

    /// Whether it holds something else than when it was read last. It is read, and not asked for
    /// its time: a link on the way to it may lead elsewhere now, as Kubernetes changes its files.
    pub(crate) fn has_changed(&self) -> bool {
        let text = Config::read(&self.path).ok();
        text.is_some() && text != self.text
    }
}

use std::net::ToSocketAddrs;
use std::path::{Path, PathBuf};

use pgweir_config::{Change, Config, Errors, Explained, General, Problem};

use crate::listen::{group_id, socket_name};
use crate::run::{processors, worker_threads};

/// A configuration, where its values come from, and what it was made of.
pub(crate) struct Loaded {
    pub(crate) config: Config,
    pub(crate) explained: Vec<Explained>,
    pub(crate) source: Source,
}

/// A text that can be used, and what was changed of it since.
#[derive(Clone)]
pub(crate) struct Source {
    path: PathBuf,
    text: String,
    changes: Vec<Change>,
}

impl Source {
    /// What it comes to with one more change; the names in it were looked up before.
    pub(crate) fn changed(&self, change: Change) -> Result<Loaded, Errors> {
        let mut source = self.clone();
        source.changes.retain(|other| other.key() != change.key());
        source.changes.push(change);
        source.load()
    }

    /// Its name in messages: of a file, that on the command line.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn load(self) -> Result<Loaded, Errors> {
        let (config, explained) = Config::parse_changed(&self.text, &self.path, &self.changes)?;
        let mut loaded = Loaded { config, explained, source: self };
        correct_folder(&mut loaded);
        count_workers(&mut loaded);
        Ok(loaded)
    }
}

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
        let loaded = parse(&text, &self.path);
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

/// What the file at `path` says, as far as this machine can do it.
pub(crate) fn load(path: &Path) -> Result<Loaded, Errors> {
    parse(&Config::read(path)?, path)
}

/// The same of a text; `path` is its name in messages.
pub(crate) fn parse(text: &str, path: &Path) -> Result<Loaded, Errors> {
    let (path, text) = (path.to_owned(), text.to_owned());
    let loaded = Source { path, text, changes: Vec::new() }.load()?;
    check_names(&loaded.config).map_err(|(key, message)| {
        let line = loaded.explained.iter().find(|one| one.key == key).and_then(|one| one.line);
        Problem { file: loaded.source.path.clone(), line, key: key.to_owned(), message }
    })?;
    Ok(loaded)
}

/// The default of our own dialect does not hold where that folder is not there.
fn correct_folder(Loaded { config, explained, .. }: &mut Loaded) {
    if socket_name(&config.general).is_none() {
        let folder = explained.iter_mut().find(|one| one.key == "general.unix_socket_dir");
        folder.into_iter().for_each(|one| one.value = None);
    }
}

/// Where the file says nothing about workers there are as many as the machine has processors.
fn count_workers(Loaded { config, explained, .. }: &mut Loaded) {
    let count = worker_threads(&config.general);
    config.general.worker_threads = u32::try_from(count).ok();
    for one in explained.iter_mut().filter(|one| one.key == "general.worker_threads") {
        one.value.get_or_insert_with(|| count.to_string());
        one.default.get_or_insert_with(|| processors().to_string());
    }
}

/// The names in a file that only the machine can know. Of what is wrong: the key, and why.
fn check_names(config: &Config) -> Result<(), (&'static str, String)> {
    let General { host, port, unix_socket, .. } = &config.general;
    if let Some(group) = &unix_socket.group {
        group_id(group).map_err(|error| ("general.unix_socket_group", error.to_string()))?;
    }
    if !host.is_empty() {
        let unknown = |error| ("general.host", format!("{host:?} has no address: {error}"));
        (host.as_str(), *port).to_socket_addrs().map_err(unknown)?;
    }
    Ok(())
}

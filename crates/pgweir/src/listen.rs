//! Where clients come in: a TCP port, a unix socket, or both.

use std::error::Error;
use std::fmt;
use std::fs::{self, Permissions};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use nix::unistd::Group;
use pgweir_config::{General, SocketName, TcpOptions, UnixSocket};
use pgweir_proxy::{Listener, Listeners, configure};
use rustix::fs::{Access, access};
use socket2::{Domain, SockAddr, Socket, Type};

/// Connections that the kernel queues for us; a storm of clients is longer than the usual 128.
const BACKLOG: i32 = 4_096;

/// Where clients connect to.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    /// The names of the sockets, as the configuration has them.
    pub(crate) names: Vec<String>,
    /// The TCP port, if there is one.
    port: Option<Port>,
    /// The file of the unix socket, which goes with this value.
    pub(crate) file: Option<SocketFile>,
}

/// A TCP port that is listened on.
#[derive(Debug)]
pub(crate) struct Port {
    name: String,
    address: SocketAddr,
}

/// Why what a configuration asks for could not be opened: what it is, and the cause.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The port that we have at another address, and that is not asked for any more.
    InOwnWay(String),
    /// Anything else.
    Other(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::InOwnWay(text) | Self::Other(text)) = self;
        f.write_str(text)
    }
}

impl Error for Refused {}

impl Listening {
    /// Opens what the configuration asks for and is not open yet: all that is to be listened on
    /// from now on, with the sockets that are new. What is open and not asked for any more is left
    /// to be closed by whoever has it. Where that is refused nothing has changed.
    pub(crate) fn open(&mut self, general: &General) -> Result<Listeners, Refused> {
        let mut listeners = Listeners::new();
        let mut port = None;
        if !general.host.is_empty() {
            let name = format!("{}:{}", general.host, general.port);
            let (listener, address) = match &self.port {
                Some(open) if open.name == name => (None, open.address),
                _ => {
                    let (socket, address) = self.over_tcp(general)?;
                    (Some(Listener::Tcp(socket.into())), address)
                }
            };
            listeners.push((name.clone(), listener));
            port = Some(Port { name, address });
        }
        let mut other_file = None;
        if let Some(name) = socket_name(general) {
            let refused =
                |cause: io::Error| Refused::Other(format!("cannot listen on {name}: {cause}"));
            let listener = if self.names.contains(&name.to_string()) {
                give(self.file.as_ref(), &general.unix_socket).map_err(refused)?;
                None
            } else {
                let (socket, file) = over_unix(&name, &general.unix_socket).map_err(refused)?;
                other_file = Some(file);
                Some(Listener::Unix(socket.into(), general.port))
            };
            listeners.push((name.to_string(), listener));
        } else {
            other_file = Some(None);
        }
        self.names = listeners.iter().map(|(name, _)| name.clone()).collect();
        self.port = port;
        if let Some(file) = other_file {
            self.file = file;
        }
        Ok(listeners)
    }

    /// All that is listened on, as it is.
    pub(crate) fn unchanged(&self) -> Listeners {
        self.names.iter().map(|name| (name.clone(), None)).collect()
    }

    /// Goes on without the TCP port, which is for somebody else to close: which it was, and all
    /// that is listened on besides.
    pub(crate) fn without_port(&mut self) -> (Option<Port>, Listeners) {
        let port = self.port.take();
        self.names.retain(|name| port.as_ref().is_none_or(|port| port.name != *name));
        (port, self.unchanged())
    }

    /// Opens a port again that was closed: all that is listened on then.
    pub(crate) fn with_port(
        &mut self,
        port: Port,
        options: &TcpOptions,
    ) -> Result<Listeners, String> {
        let Port { name, address } = &port;
        let refused = |error| format!("cannot listen on {address} again: {error}");
        let socket = bind(*address, options).map_err(refused)?;
        let (_, mut listeners) = self.without_port();
        listeners.push((name.clone(), Some(Listener::Tcp(socket.into()))));
        self.names.push(name.clone());
        self.port = Some(port);
        Ok(listeners)
    }

    /// The first address of the host that can be listened on.
    fn over_tcp(&self, general: &General) -> Result<(Socket, SocketAddr), Refused> {
        let host = &general.host;
        let mut last = format!("{host} has no address");
        let resolved = (host.as_str(), general.port).to_socket_addrs();
        let unknown = |error| Refused::Other(format!("cannot listen on {host}: {error}"));
        for address in resolved.map_err(unknown)? {
            let error = match bind(address, &general.tcp) {
                Ok(socket) => return Ok((socket, address)),
                Err(error) => error,
            };
            last = format!("cannot listen on {address}: {error}");
            let in_own_way = self.port.as_ref().is_some_and(|own| overlap(own.address, address));
            if in_own_way && error.kind() == io::ErrorKind::AddrInUse {
                return Err(Refused::InOwnWay(last));
            }
        }
        Err(Refused::Other(last))
    }
}

/// Whether both may be the same port of one machine.
fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    let everywhere = a.ip().is_unspecified() || b.ip().is_unspecified();
    a.port() == b.port() && (everywhere || a.ip() == b.ip())
}

/// The file of a unix socket, which is removed with this value.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    identity: Identity,
    /// The group that it was made with, where none is asked for.
    group: u32,
}

/// What tells a file from another of the same name: the place of one that is gone may be taken
/// again, but not at the same time.
type Identity = ((u64, u64), (i64, i64));

impl SocketFile {
    /// The socket that was just made there.
    fn at(path: &Path) -> io::Result<Self> {
        let group = fs::symlink_metadata(path)?.gid();
        Ok(Self { path: path.to_owned(), identity: identity(path)?, group })
    }
}

impl Drop for SocketFile {
    /// While our last clients finish, another pgweir may have taken the place: its socket stays.
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            // What cannot be removed is found by whoever listens there next.
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<Identity> {
    let found = fs::symlink_metadata(path)?;
    Ok(((found.dev(), found.ino()), (found.mtime(), found.mtime_nsec())))
}

/// Who connects before a worker has the socket inherits its options too.
fn bind(address: SocketAddr, options: &TcpOptions) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    configure(&socket, options)?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

/// The unix socket that is to be there. A folder that nobody has asked for may be missing.
pub(crate) fn socket_name(general: &General) -> Option<SocketName> {
    let UnixSocket { folder, required, .. } = &general.unix_socket;
    let folder = folder.as_ref()?;
    let usable = || access(folder.as_str(), Access::WRITE_OK | Access::EXEC_OK).is_ok();
    let wanted = *required || usable();
    wanted.then(|| SocketName::in_folder(folder, general.port)).flatten()
}

fn over_unix(name: &SocketName, options: &UnixSocket) -> io::Result<(Socket, Option<SocketFile>)> {
    let socket = bind_unix(name)?;
    let file = name.file().map(SocketFile::at).transpose()?;
    // Nobody can connect before it listens, so nobody finds it with other permissions.
    give(file.as_ref(), options)?;
    socket.listen(BACKLOG)?;
    Ok((socket, file))
}

/// Gives the file of a socket to whom it is for.
fn give(file: Option<&SocketFile>, options: &UnixSocket) -> io::Result<()> {
    let Some(SocketFile { path, group, .. }) = file else { return Ok(()) };
    let refused = |error| io::Error::other(format!("unix_socket_group: {error}"));
    let group = options.group.as_deref().map_or(Ok(*group), group_id);
    group.and_then(|id| chown(path, None, Some(id))).map_err(refused)?;
    fs::set_permissions(path, Permissions::from_mode(options.mode))
}

fn bind_unix(name: &SocketName) -> io::Result<Socket> {
    let address = SockAddr::unix(name.address())?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.bind(&address) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            make_way(name, &address)?;
            socket.bind(&address)?;
        }
        bound => bound?,
    }
    Ok(socket)
}

/// Removes the socket of a process that is gone.
fn make_way(name: &SocketName, address: &SockAddr) -> io::Result<()> {
    let taken = || Err(io::Error::other("another process listens there"));
    let Some(path) = name.file() else { return taken() };
    if !fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(io::Error::other("something of that name is there, and is no socket"));
    }
    let visitor = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    visitor.set_nonblocking(true)?;
    match visitor.connect(address).map_err(|error| (error.kind(), error)) {
        Err((io::ErrorKind::ConnectionRefused, _)) => fs::remove_file(path),
        // Its queue is full.
        Ok(()) | Err((io::ErrorKind::WouldBlock, _)) => taken(),
        Err((_, error)) => Err(error),
    }
}

/// The number of a group, which may be given as such.
pub(crate) fn group_id(name: &str) -> io::Result<u32> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    match Group::from_name(name)? {
        Some(group) => Ok(group.gid.as_raw()),
        None => Err(io::Error::other(format!("there is no group {name:?} on this machine"))),
    }
}

#[cfg(test)]
mod tests;

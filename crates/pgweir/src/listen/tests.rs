use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use pgweir_config::Config;
use socket2::SockRef;

use super::*;

/// What a file says that listens on a unix socket only.
fn general(lines: &str) -> General {
    let text = format!(
        "config_version = 1\n[general]\nhost = ''\n{lines}\n\
         [pools.app.users.0]\nusername = 'app'\npassword = 'secret'\n\
         [pools.app.shards.0]\nservers = [['db', 5432, 'primary']]\ndatabase = 'app'\n"
    );
    Config::parse(&text, Path::new("test.toml")).unwrap().general
}

fn in_folder(folder: &Path, lines: &str) -> General {
    general(&format!("unix_socket_dir = {:?}\n{lines}", folder.to_str().unwrap()))
}

#[test]
fn the_file_comes_and_goes_with_the_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".s.PGSQL.6432");
    let mut opened = Listening::default();
    let listeners = opened.open(&in_folder(folder.path(), "")).unwrap();
    assert_eq!(opened.names, [path.to_str().unwrap()]);
    assert!(matches!(listeners[..], [(_, Some(Listener::Unix(_, 6432)))]));
    UnixStream::connect(&path).unwrap();
    drop(opened);
    assert!(!path.exists());
}

#[test]
fn an_abstract_name_needs_no_folder() {
    let name = format!("@pgweir-listen-{}", std::process::id());
    let asked = general(&format!("unix_socket_dir = '{name}'"));
    let mut opened = Listening::default();
    let _listeners = opened.open(&asked).unwrap();
    assert_eq!(opened.names, [format!("{name}/.s.PGSQL.6432")]);
    assert!(opened.file.is_none());
    let refused = Listening::default().open(&asked).unwrap_err().to_string();
    let expected = format!("cannot listen on {name}/.s.PGSQL.6432: another process listens there");
    assert_eq!(refused, expected);
}

#[test]
fn the_file_has_the_permissions_that_are_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let own_group = rustix::process::getegid().as_raw();
    for (lines, mode) in [("", 0o777), ("unix_socket_mode = '0700'", 0o700)] {
        let lines = format!("{lines}\nunix_socket_group = '{own_group}'");
        let mut opened = Listening::default();
        let _listeners = opened.open(&in_folder(folder.path(), &lines)).unwrap();
        let found = fs::metadata(folder.path().join(".s.PGSQL.6432")).unwrap();
        assert_eq!((found.mode() & 0o777, found.gid()), (mode, own_group));
    }
    let nobody = in_folder(folder.path(), "unix_socket_group = 'no such group'");
    let refused = Listening::default().open(&nobody).unwrap_err().to_string();
    assert!(refused.contains("there is no group \"no such group\""), "{refused}");
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

/// Without `unix_socket_group` it is that of the process again.
#[test]
fn a_group_can_be_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let own = rustix::process::getegid().as_raw();
    let groups = rustix::process::getgroups().unwrap();
    let as_root = rustix::process::geteuid().is_root().then_some(1);
    let others = groups.iter().map(|group| group.as_raw()).chain(as_root);
    // Who is in one group only, and may not give anything to another, has nothing to take back.
    for other in others.filter(|group| *group != own) {
        let mut opened = Listening::default();
        for (lines, group) in
            [(format!("unix_socket_group = '{other}'"), other), (String::new(), own)]
        {
            let _listeners = opened.open(&in_folder(folder.path(), &lines)).unwrap();
            let found = fs::metadata(folder.path().join(".s.PGSQL.6432")).unwrap();
            assert_eq!(found.gid(), group);
        }
    }
}

#[test]
fn groups_have_names() {
    let root = Group::from_gid(0.into()).unwrap().unwrap();
    assert_eq!(group_id(&root.name).unwrap(), 0);
}

#[test]
fn the_socket_of_a_process_that_is_gone_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".s.PGSQL.6432");
    drop(UnixListener::bind(&path).unwrap());
    UnixStream::connect(&path).unwrap_err();
    let mut opened = Listening::default();
    let _listeners = opened.open(&in_folder(folder.path(), "")).unwrap();
    UnixStream::connect(&path).unwrap();
}

#[test]
fn what_somebody_else_uses_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".s.PGSQL.6432");
    let asked = in_folder(folder.path(), "");
    let other = UnixListener::bind(&path).unwrap();
    let refused = Listening::default().open(&asked).unwrap_err().to_string();
    assert!(refused.ends_with("another process listens there"), "{refused}");
    drop(other);
    fs::remove_file(&path).unwrap();
    fs::write(&path, "a letter").unwrap();
    let refused = Listening::default().open(&asked).unwrap_err().to_string();
    assert!(refused.ends_with("is no socket"), "{refused}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "a letter");
}

/// As when the next pgweir starts while the last clients of this one finish.
#[test]
fn the_socket_of_whoever_came_next_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".s.PGSQL.6432");
    let asked = in_folder(folder.path(), "");
    let mut first = Listening::default();
    drop(first.open(&asked).unwrap());
    let mut next = Listening::default();
    let _listeners = next.open(&asked).unwrap();
    drop(first);
    UnixStream::connect(&path).unwrap();
}

#[test]
fn a_folder_is_missed_only_if_it_was_asked_for() {
    let missing = Path::new("/nonexistent/pgweir");
    let mut asked = in_folder(missing, "");
    let refused = Listening::default().open(&asked).unwrap_err().to_string();
    let expected = "cannot listen on /nonexistent/pgweir/.s.PGSQL.6432: No such file";
    assert!(refused.starts_with(expected), "{refused}");
    asked.unix_socket.required = false;
    assert!(Listening::default().open(&asked).unwrap().is_empty());
    let folder = tempfile::tempdir().unwrap();
    let mut asked = in_folder(folder.path(), "");
    asked.unix_socket.required = false;
    assert_eq!(Listening::default().open(&asked).unwrap().len(), 1);
}

/// What is open stays open, what is new is opened, and a mistake changes nothing.
#[test]
fn another_configuration_opens_what_is_missing() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let paths = folders.each_ref().map(|folder| folder.path().join(".s.PGSQL.6432"));
    let mut opened = Listening::default();
    let _first = opened.open(&in_folder(folders[0].path(), "")).unwrap();
    let again = opened.open(&in_folder(folders[0].path(), "unix_socket_mode = '0700'")).unwrap();
    assert!(matches!(again[..], [(_, None)]));
    assert_eq!(fs::metadata(&paths[0]).unwrap().mode() & 0o777, 0o700);
    let missing = in_folder(&folders[0].path().join("missing"), "");
    assert!(opened.open(&missing).is_err());
    assert!(paths[0].exists());
    let _second = opened.open(&in_folder(folders[1].path(), "")).unwrap();
    assert_eq!((paths[0].exists(), paths[1].exists()), (false, true));
}

/// From the first connection on, which may come before any worker looks at the socket.
#[test]
fn connections_inherit_what_is_configured() {
    let mut asked = general("unix_socket_dir = '@unused'\ntcp_keepalives_idle = '123s'");
    (asked.host, asked.port, asked.unix_socket.folder) = ("127.0.0.1".to_owned(), 0, None);
    let listeners = Listening::default().open(&asked).unwrap();
    let [(_, Some(Listener::Tcp(listener)))] = &listeners[..] else { panic!("{listeners:?}") };
    let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = SockRef::from(listener).accept().unwrap();
    assert!(accepted.tcp_nodelay().unwrap() && accepted.keepalive().unwrap());
    assert_eq!(accepted.tcp_keepalive_time().unwrap(), Duration::from_secs(123));
}

/// All addresses are in the way of one, and one of all; what is our own can be given up.
#[test]
fn a_port_of_our_own_may_be_in_the_way() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    let at = |host: &str| {
        let mut asked = general("unix_socket_dir = '@unused'");
        (asked.host, asked.port, asked.unix_socket.folder) = (host.to_owned(), port, None);
        asked
    };
    let refused = Listening::default().open(&at("0.0.0.0")).unwrap_err();
    assert!(matches!(refused, Refused::Other(_)), "{refused}");
    drop(other);
    let mut opened = Listening::default();
    let first = opened.open(&at("127.0.0.1")).unwrap();
    let refused = opened.open(&at("0.0.0.0")).unwrap_err();
    assert!(matches!(refused, Refused::InOwnWay(_)), "{refused}");
    let expected = format!("cannot listen on 0.0.0.0:{port}: Address already in use");
    assert!(refused.to_string().starts_with(&expected), "{refused}");
    assert_eq!(opened.names, [format!("127.0.0.1:{port}")]);
    let (before, others) = opened.without_port();
    assert!(others.is_empty() && opened.names.is_empty());
    drop(first);
    let second = opened.open(&at("0.0.0.0")).unwrap();
    assert_eq!(opened.names, [format!("0.0.0.0:{port}")]);
    let refused = opened.open(&at("127.0.0.1")).unwrap_err();
    assert!(matches!(refused, Refused::InOwnWay(_)), "{refused}");
    let _ = opened.without_port();
    drop(second);
    let again = opened.with_port(before.unwrap(), &at("").tcp).unwrap();
    assert!(matches!(again[..], [(_, Some(Listener::Tcp(_)))]));
    assert_eq!(opened.names, [format!("127.0.0.1:{port}")]);
}

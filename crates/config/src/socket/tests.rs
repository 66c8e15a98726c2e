use super::*;

#[test]
fn names_are_those_of_libpq() {
    let name = SocketName::in_folder("/run/postgresql", 5432).expect("a folder");
    assert_eq!(name.to_string(), "/run/postgresql/.s.PGSQL.5432");
    assert_eq!(name.file(), Some(Path::new("/run/postgresql/.s.PGSQL.5432")));
    assert_eq!(name.address(), Path::new("/run/postgresql/.s.PGSQL.5432"));

    let name = SocketName::in_folder("@pooler", 6432).expect("an abstract name");
    assert_eq!(name.to_string(), "@pooler/.s.PGSQL.6432");
    assert_eq!((name.file(), name.address()), (None, PathBuf::from("\0pooler/.s.PGSQL.6432")));
}

#[test]
fn hosts_are_no_folders() {
    for host in ["", "@", "db.example.com", "127.0.0.1", "::1", "run/postgresql", "/a\0b"] {
        assert_eq!(SocketName::in_folder(host, 1), None, "{host:?}");
    }
}

#[test]
fn no_name_is_too_long() {
    let longest = format!("/{}", "x".repeat(SocketName::FOLDER_MAX - 1));
    let name = SocketName::in_folder(&longest, u16::MAX).expect("it fits");
    assert_eq!(name.to_string().len(), NAME_MAX);
    assert!(std::os::unix::net::SocketAddr::from_pathname(name.address()).is_ok());
    assert_eq!(SocketName::in_folder(&format!("{longest}x"), 1), None);
}

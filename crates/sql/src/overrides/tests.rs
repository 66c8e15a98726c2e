use super::{Overrides, overrides};

#[test]
fn texts_that_override() {
    for (text, name) in [
        ("RESET ROLE", "role"),
        ("set role none;", "role"),
        ("SET SESSION ROLE x", "role"),
        ("/* a */ RESET SESSION AUTHORIZATION", "session_authorization"),
        ("SET SESSION AUTHORIZATION DEFAULT", "session_authorization"),
        ("SET default_tablespace = ''", "default_tablespace"),
        ("set \"Work_Mem\" to '1MB'", "work_mem"),
        ("SET app.tenant = 'x'", "app.tenant"),
        ("SET TIME ZONE 'UTC'", "timezone"),
        ("RESET TIME ZONE", "timezone"),
        ("SET NAMES 'UTF8'", "client_encoding"),
        ("SET SCHEMA 'x'", "search_path"),
    ] {
        assert_eq!(overrides(text.as_bytes()), Some(Overrides::One(name.into())), "{text}");
    }
    assert_eq!(overrides(b"reset all"), Some(Overrides::AllButRights));
    assert_eq!(overrides(b"DISCARD ALL;"), Some(Overrides::All));
}

#[test]
fn texts_that_do_not() {
    for text in [
        "",
        "SELECT 1",
        "SET LOCAL ROLE x",
        "SET TRANSACTION READ ONLY",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "SET CONSTRAINTS ALL DEFERRED",
        "RESET ROLE; SELECT 1",
        "DISCARD PLANS",
        "SET",
        "SET TIME",
        "UPDATE t SET role = 1",
    ] {
        assert_eq!(overrides(text.as_bytes()), None, "{text}");
    }
}

use super::{Overrides, Scope, overrides, taken_back};
use crate::Encoding;

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
    // Names of settings, which there are not, and no keywords.
    for name in ["all", "discard all"] {
        let text = format!("RESET \"{name}\"");
        assert_eq!(overrides(text.as_bytes()), Some(Overrides::One(name.into())));
    }
}

#[test]
fn texts_that_do_not() {
    for text in [
        "",
        "SELECT 1",
        "SET LOCAL ROLE x",
        "SET LOCAL SESSION AUTHORIZATION DEFAULT",
        "SET work_mem = 1; SET work_mem = 2",
        "SELECT set_config('work_mem', '1', false)",
        "SET TRANSACTION READ ONLY",
        "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
        "SET CONSTRAINTS ALL DEFERRED",
        "RESET ROLE; SELECT 1",
        "DISCARD PLANS",
        "DISCARD \"all\"",
        "SET",
        "SET TIME",
        "UPDATE t SET role = 1",
    ] {
        assert_eq!(overrides(text.as_bytes()), None, "{text}");
    }
}

/// What a text takes back, with a star what is for the transaction; `None`: it cannot be read.
fn back(text: &str) -> Option<String> {
    let mut words = Vec::new();
    let mut each = |what: Overrides, scope| {
        let name = match what {
            Overrides::All => "ALL!".to_owned(),
            Overrides::AllButRights => "ALL".to_owned(),
            Overrides::One(name) => String::from_utf8(name).unwrap(),
        };
        words.push(name + if scope == Scope::Transaction { "*" } else { "" });
    };
    taken_back(text.as_bytes(), Encoding::Superset, &mut each).then(|| words.join(" "))
}

#[test]
fn what_is_taken_back() {
    for (text, names) in [
        ("RESET work_mem", "work_mem"),
        ("RESET ALL; SELECT 1", "ALL"),
        ("DISCARD ALL", "ALL!"),
        ("DISCARD PLANS", ""),
        ("RESET ROLE; reset session authorization;", "role session_authorization"),
        ("SET work_mem TO DEFAULT", "work_mem"),
        ("SET work_mem = DEFAULT; SET app.x to default", "work_mem app.x"),
        ("SET SESSION work_mem = DEFAULT", "work_mem"),
        ("SET LOCAL work_mem = DEFAULT", "work_mem*"),
        ("SET work_mem = 'default'", ""),
        ("SET work_mem = \"default\"", ""),
        ("SET search_path = a, b", ""),
        ("SET TIME ZONE LOCAL", "timezone"),
        ("SET LOCAL TIME ZONE DEFAULT", "timezone*"),
        ("SET TIME ZONE 'UTC'", ""),
        ("RESET TIME ZONE", "timezone"),
        ("SET NAMES", "client_encoding"),
        ("SET LOCAL NAMES", "client_encoding*"),
        ("SET NAMES DEFAULT", "client_encoding"),
        ("SET NAMES 'UTF8'", ""),
        ("SET SESSION AUTHORIZATION DEFAULT", "session_authorization"),
        ("SET LOCAL SESSION AUTHORIZATION DEFAULT", "session_authorization*"),
        ("SET SESSION SESSION AUTHORIZATION DEFAULT", "session_authorization"),
        ("SET SESSION AUTHORIZATION joe", ""),
        ("SET ROLE NONE", ""),
        ("SET role TO DEFAULT", "role"),
        ("SET local.x TO DEFAULT; SET session.y TO DEFAULT", "local.x session.y"),
        ("SET LOCAL local.x TO DEFAULT", "local.x*"),
        ("SET TRANSACTION READ ONLY", ""),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", ""),
        ("ALTER ROLE joe RESET ALL; ALTER SYSTEM SET work_mem TO DEFAULT", ""),
        ("SELECT set_config('work_mem', NULL, false)", "work_mem"),
        (
            "SELECT set_config('Work_Mem', NULL, true), pg_catalog.set_config('a.b', $1, $2)",
            "work_mem* a.b",
        ),
        ("SELECT set_config($1, NULL, false)", ""),
        ("INSERT INTO t DEFAULT VALUES; UPDATE t SET a = DEFAULT", ""),
    ] {
        assert_eq!(back(text).as_deref(), Some(names), "{text}");
    }
    assert_eq!(back("SET U&\"work\\005fmem\" TO DEFAULT"), None);
    assert_eq!(back(r"SELECT 'a\'; RESET ALL"), None);
}

use super::{Secret, Url};

/// User, password, host, port and database.
type Parts<'a> = (&'a str, &'a str, &'a str, u16, &'a str);

fn parse(text: &str) -> Result<Url, String> {
    Url::parse(text, None)
}

#[track_caller]
fn assert_is(text: &str, (user, password, host, port, database): Parts<'_>) {
    let expected = Url {
        host: host.to_owned(),
        port,
        database: database.to_owned(),
        user: user.to_owned(),
        password: (!password.is_empty()).then(|| Secret::new(password)),
        connect_timeout_s: None,
    };
    assert!(parse(text).as_ref() == Ok(&expected), "{text}: {:?}", parse(text));
}

#[test]
fn what_is_left_out_is_as_for_psql() {
    assert_is("postgres://app@db", ("app", "", "db", 5432, "app"));
    assert_is("postgresql://app@db/", ("app", "", "db", 5432, "app"));
    assert_is("postgres://app@/shop", ("app", "", "localhost", 5432, "shop"));
    assert_is("postgres://app:@db:/shop", ("app", "", "db", 5432, "shop"));
    assert_is("postgres://app:secret@db:6000/shop", ("app", "secret", "db", 6000, "shop"));
}

#[test]
fn percent_signs_are_decoded() {
    let text = "postgres://a%40b:p%3Aw%2F%25%C3%A9@db%2D1/my%20shop";
    assert_is(text, ("a@b", "p:w/%é", "db-1", 5432, "my shop"));
    assert_is("postgres://app:a+b?c:d@db", ("app", "a+b?c:d", "db", 5432, "app"));
    for text in ["postgres://app:p%@db", "postgres://app:p%4@db", "postgres://app:p%zz@db"] {
        let error = parse(text).expect_err(text);
        assert!(error.starts_with("password: expected two hexadecimal digits"), "{error}");
    }
    assert_eq!(parse("postgres://app:%00@db"), Err("password: expected no %00".to_owned()));
    assert_eq!(parse("postgres://app@db/%FF"), Err("dbname: expected UTF-8".to_owned()));
}

#[test]
fn an_ipv6_address_is_in_brackets() {
    assert_is("postgres://app@[::1]/shop", ("app", "", "::1", 5432, "shop"));
    assert_is("postgres://app@[fe80::1]:6000", ("app", "", "fe80::1", 6000, "app"));
    for text in ["[::1", "[db]", "[::1]5432"] {
        let error = parse(&format!("postgres://app@{text}/shop")).expect_err(text);
        assert!(error.starts_with("expected"), "{error}");
    }
    let url = parse("postgres://app:secret@[::1]/shop").map(|url| url.to_string());
    assert_eq!(url.as_deref(), Ok("postgres://app@[::1]:5432/shop"));
}

#[test]
fn parameters_win_over_what_stands_before_them() {
    let text = "postgres:///?host=db&port=6000&user=app&password=p%26w&dbname=shop";
    assert_is(text, ("app", "p&w", "db", 6000, "shop"));
    assert_is("postgres://app@db/shop?host=other&", ("app", "", "other", 5432, "shop"));
    for mode in ["disable", "allow", "prefer"] {
        assert_is(&format!("postgres://app@db?sslmode={mode}"), ("app", "", "db", 5432, "app"));
    }
    let url = parse("postgres://app@db?connect_timeout=3");
    assert_eq!(url.map(|url| url.connect_timeout_s), Ok(Some(3)));
}

#[test]
fn what_is_wrong_is_said() {
    let wrong = [
        ("mysql://app@db", "expected postgres:// or postgresql://, found mysql://"),
        ("postgres://db/shop", "expected a user: postgres://USER@HOST/DATABASE"),
        ("postgres://app@db:0", "expected a port from 1 to 65535 behind the host"),
        ("postgres://app@db:65536", "expected a port from 1 to 65535 behind the host"),
        ("postgres://app@a,b", "expected one host, found a list"),
        ("postgres://app@db?sslmod=disable", "did you mean \"sslmode\"?"),
        ("postgres://app@db?application_name=x", "known are connect_timeout, dbname, host, "),
        ("postgres://app@db?sslmode=require", "sslmode=require asks for TLS"),
        ("postgres://app@db?sslmode=on", "sslmode: expected disable, allow, prefer"),
        ("postgres://app@db?connect_timeout=0", "connect_timeout: expected whole seconds"),
        ("postgres://app@db?sslmode", "expected name=value behind the ?"),
    ];
    for (text, expected) in wrong {
        let error = parse(text).expect_err(text);
        assert!(error.contains(expected), "{text}: {error}");
    }
}

/// Wherever a slip puts it.
#[test]
fn no_password_is_in_a_message() {
    let wrong = [
        "postgres://app:hunter2",
        "postgres://app:hunter2/shop",
        "postgres://app:hunter2/x@db/shop",
        "postgres://app:x@hunter2@db/shop",
        "postgres://app:x/@hunter2@db",
        "postgres://app:5?hunter2/x@db/shop",
        "postgres://app:hunter2%@db",
        "postgres://app:hunter2@db:x",
        "postgres://app:hunter2@[db]",
        "postgres://app@db?password=hunter2%",
        "postgres://app@db?pasword=hunter2",
        "postgres://app@db?hunter2",
        "app:hunter2://app@db",
    ];
    for text in wrong {
        let error = parse(text).expect_err(text);
        assert!(!error.contains("hunter2"), "{text}: {error}");
    }
    let url = parse("postgres://app:hunter2@db").expect("it is one");
    assert!(!format!("{url} {url:?}").contains("hunter2"));
}

#[test]
fn a_password_may_come_from_outside() {
    let password = |text: &str, outside: &str| {
        let url = Url::parse(text, Some(outside.to_owned())).expect(text);
        url.password.map(|secret| secret.expose().to_owned())
    };
    assert_eq!(password("postgres://app@db", "outer").as_deref(), Some("outer"));
    assert_eq!(password("postgres://app:@db", "outer").as_deref(), Some("outer"));
    assert_eq!(password("postgres://app:inner@db", "outer").as_deref(), Some("inner"));
    assert_eq!(password("postgres://app@db", ""), None);
}

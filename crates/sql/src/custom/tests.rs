use super::*;

/// The names that a text may set, in their order; `None` if it cannot be read.
fn named(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut each = |name: &[u8]| names.push(String::from_utf8_lossy(name).into_owned());
    custom_settings(text.as_bytes(), Encoding::Superset, &mut each).then_some(names)
}

#[test]
fn names_with_a_dot_are_found() {
    for (text, names) in [
        ("SET app.tenant = '7'", &["app.tenant"][..]),
        ("SET SESSION app.tenant TO 7", &["app.tenant"]),
        ("set local app.tenant TO DEFAULT", &["app.tenant"]),
        ("SET local.name = 1", &["local.name"]),
        ("SET session.name = 1", &["session.name"]),
        ("SET a . b /* … */ . c = 1", &["a.b.c"]),
        ("RESET \"App\".x", &["App.x"]),
        ("RESET app.x", &["app.x"]),
        ("SELECT set_config('app.tenant', '7', false)", &["app.tenant"]),
        (
            "SELECT set_config('app.a', $1, true), set_config('app.b', $2, false)",
            &["app.a", "app.b"],
        ),
        ("SET a.b = 1; RESET c.d; SET e = 'f.g'", &["a.b", "c.d", "f.g"]),
        ("SET search_path = a, b", &[]),
        ("SET TimeZone = 'UTC'", &[]),
        ("SET x = 1.5", &[]),
        ("SELECT a.b FROM c.d", &[]),
        ("RESET ALL", &[]),
        ("SET TIME ZONE INTERVAL '-08:00' HOUR TO MINUTE", &[]),
        ("SELECT set_config('app.x y', '', false), '.x', 'x.', 'a..b', '1.a', 'a.1'", &[]),
    ] {
        assert_eq!(
            named(text).as_deref(),
            Some(&names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>()[..]),
            "{text}"
        );
    }
}

#[test]
fn what_cannot_be_read_says_so() {
    assert_eq!(named("SET U&\"app\\002Ex\" = 1"), None);
    assert_eq!(named(r"SELECT set_config('a\', 'b.c', false)"), None);
    let part = "x".repeat(63);
    assert_eq!(named(&format!("SET {part}.{part}.{part}.y = 1")), None);
}

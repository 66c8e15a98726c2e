use std::path::Path;

use super::*;
use crate::{Config, Pipelining};

const FILE: &str = r#"
[pools.app.users.0]
username = "alice"
password = "secret"
[pools.app.users.1]
username = "bob"
password = "secret"
pipelining = 4
[pools.app.shards.0]
servers = [["10.0.0.1", 5432, "primary"]]
database = "app_db"
[pools."my app"]
pipelining = "off"
[pools."my app".users.0]
username = "alice"
password = "secret"
[pools."my app".shards.0]
servers = [["10.0.0.1", 5432, "primary"]]
database = "app_db"
"#;

/// What holds in [general], and for each user, with these changes made one after the other.
fn changed(text: &str, changes: &[(&str, &str)]) -> Vec<String> {
    let file = Path::new("f.toml");
    let (_, explained) = Config::parse_explained(text, file).unwrap();
    let change = |(key, value): &(&str, &str)| {
        let one = explained.iter().find(|one| one.key == *key).expect("it is shown");
        Change::new(one, value).unwrap()
    };
    let changes: Vec<_> = changes.iter().map(change).collect();
    let (config, explained) = Config::parse_changed(text, file, &changes).unwrap();
    let general = explained.iter().find(|one| one.key == "general.pipelining").unwrap();
    let users = config.pools.iter().flat_map(|pool| &pool.users);
    let users = users.map(|user| user.pipelining.to_string());
    general.value.clone().into_iter().chain(users).collect()
}

#[test]
fn a_change_holds_where_no_section_says_otherwise() {
    let general = "general.pipelining";
    assert_eq!(changed(FILE, &[]), [r#""auto""#, r#""auto""#, r#""2x4""#, r#""off""#]);
    assert_eq!(
        changed(FILE, &[(general, "3x8")]),
        [r#""3x8""#, r#""3x8""#, r#""2x4""#, r#""off""#]
    );
    let with_section = FILE.replacen('[', "[general]\nport = 1\n[", 1);
    assert_eq!(changed(&with_section, &[(general, "3x8")]), changed(FILE, &[(general, "3x8")]));
    let all = [
        (general, "3x8"),
        ("pools.app.pipelining", "4"),
        ("pools.app.users.1.pipelining", "off"),
        (r#"pools."my app".pipelining"#, "\"1x2\""),
        (general, "auto"),
    ];
    assert_eq!(changed(FILE, &all), [r#""auto""#, r#""2x4""#, r#""off""#, r#""1x2""#]);
}

#[test]
fn the_flat_form_has_its_own_keys() {
    let flat = r#"
[user]
name = "alice"
password = "secret"
[shards.0]
servers = [["10.0.0.1", 5432, "primary"]]
database = "app_db"
"#;
    let (_, explained) = Config::parse_explained(flat, Path::new("f.toml")).unwrap();
    let live = explained.iter().filter(|one| one.changes == Changes::Live);
    let keys: Vec<_> = live.map(|one| one.key.as_str()).collect();
    assert_eq!(keys, ["general.pipelining", "query_router.pipelining", "user.pipelining"]);
    for key in keys {
        assert_eq!(changed(flat, &[(key, "auto")]).last().unwrap(), r#""auto""#, "{key}");
    }
}

#[test]
fn what_cannot_be_is_no_change() {
    let (_, explained) = Config::parse_explained(FILE, Path::new("f.toml")).unwrap();
    let one = |key: &str| explained.iter().find(|one| one.key == key).unwrap();
    let pipelining = one("pools.app.pipelining");
    for wrong in ["", "on", "0", "0x8", "true", "[1]", "'", "3x8 3x8"] {
        let said = Change::new(pipelining, wrong).expect_err(wrong);
        assert!(said.starts_with("expected a whole number from 1 to 1000"), "{said}");
    }
    assert!(Change::new(one("pools.app.users.0.pool_size"), "4").is_err());
    let change = Change::new(pipelining, "4").unwrap();
    let fixed = Pipelining::Fixed { hot: Pipelining::HOT, depth: 4 };
    assert_eq!(change.to_string(), format!("pools.app.pipelining = {fixed}"));
}

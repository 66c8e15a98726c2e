use std::fs;

use super::*;
use crate::results::tests::TestFolder;

#[test]
fn a_commit_has_a_mark_where_the_tree_is_not_clean() {
    let folder = TestFolder::of("commit");
    let write = |name: &str, text: &str| fs::write(folder.0.join(name), text).unwrap();
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(&folder.0).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        assert!(command.args(args).output().unwrap().status.success(), "{args:?}");
    };
    fs::create_dir_all(folder.0.join("docs")).unwrap();
    assert_eq!(of_checkout(&folder.0), None);

    git(&["init"]);
    write("code", "1");
    write("docs/benchmarks.md", "1");
    git(&["add", "."]);
    git(&["-c", "commit.gpgsign=false", "commit", "-m", "first"]);
    let clean = of_checkout(&folder.0).unwrap();
    assert_eq!(clean.len(), 10);
    assert!(clean.chars().all(|digit| digit.is_ascii_hexdigit()), "{clean}");

    write("docs/benchmarks.md", "2");
    assert_eq!(of_checkout(&folder.0), Some(clean.clone()));
    write("code", "2");
    assert_eq!(of_checkout(&folder.0.join("docs")), Some(clean + "+"));
}

use super::*;
use crate::results::tests::result;

#[test]
fn a_result_is_found_again_in_the_report() {
    let folder = std::env::temp_dir().join(format!("pgweir-report-{}", std::process::id()));
    let (raw, docs) = (folder.join("raw"), folder.join("docs"));
    let rows = [[9000.0, 4000.0, 5000.0, 6000.0], [9000.0, 5000.0, 99.0, 5100.0]];
    result("simple-64", &rows).store(&raw).unwrap();
    write(&raw, &docs).unwrap();
    let text = fs::read_to_string(docs.join(FILE)).unwrap();
    assert!(text.contains("1 rounds of 8 s, 1 dropped"));
    assert!(text.contains("| pgweir | 1.25 (1.25–1.25) |"));
    assert!(text.contains("| **1.25** (1.25–1.25) | yes |"));
    assert!(docs.join(PICTURES).join("tps-simple.svg").exists());
    fs::remove_dir_all(folder).unwrap();
}

use super::*;
use crate::results::tests::{TestFolder, result};

#[test]
fn a_result_is_found_again_in_the_report() {
    let folder = TestFolder::of("report");
    let (raw, docs) = (folder.0.join("raw"), folder.0.join("docs"));
    let mut rows = [[9000.0, 4000.0, 5000.0, 6000.0]; 8];
    rows[1] = [9000.0, 5000.0, 99.0, 5100.0];
    result("simple-64", &rows).store(&raw).unwrap();
    write(&raw, &docs).unwrap();
    let text = fs::read_to_string(docs.join(FILE)).unwrap();
    assert!(text.contains("7 of 8 rounds of 8 s count"));
    assert!(text.contains("| pgweir | 1.25 (1.25–1.25) |"));
    assert!(text.contains("| **1.25** (1.25–1.25) | yes |"));
    assert!(text.contains("| workers-4, tps | – | needs 16 cores |"));
    assert!(docs.join(PICTURES).join("tps-simple.svg").exists());
}

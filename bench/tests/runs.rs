//! The whole program, on a PostgreSQL of its own: a case is run, its raw results are kept, and the
//! report is written from them. What it measures in a second is of no account.

use std::fs;
use std::process::Command;

use serde_json::Value;

#[test]
fn a_case_is_measured_kept_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let [results, docs] = ["results", "docs"].map(|name| folder.path().join(name));
    let output = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(["--case", "simple-1", "--contenders", "direct,relay"])
        .args(["--rounds", "2", "--seconds", "1", "--results"])
        .arg(&results)
        .arg("--docs")
        .arg(&docs)
        .env_remove("CASE")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));

    let kept = fs::read_to_string(results.join("simple-1.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    let rounds = kept["rounds"].as_array().unwrap();
    assert_eq!(rounds.len(), 2, "{kept}");
    for round in rounds {
        for contender in ["direct", "relay"] {
            let tps = round["samples"][contender]["tps"].as_f64();
            assert!(tps.is_some_and(|tps| tps > 0.0), "{contender}: {round}");
        }
    }
    let page = fs::read_to_string(docs.join("benchmarks.md")).unwrap();
    assert!(page.contains("### simple-1: ") && page.contains("2 of 2 rounds of 1 s"), "{page}");
}

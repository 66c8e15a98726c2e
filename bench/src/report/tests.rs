use super::*;
use crate::cli::{DOCS, RESULTS};
use crate::grid::Pair;
use crate::results::tests::{TestFolder, result, sweep};

#[test]
fn a_result_is_found_again_in_the_report() {
    let folder = TestFolder::of("report");
    let (raw, docs) = (folder.0.join("raw"), folder.0.join("docs"));
    let mut rows = [[9000.0, 4000.0, 5000.0, 6000.0]; 8];
    rows[1] = [9000.0, 5000.0, 99.0, 5100.0];
    result("simple-64", &rows).store(&raw).unwrap();
    write(&raw, &docs).unwrap();
    let text = fs::read_to_string(docs.join(FILE)).unwrap();
    let origin = "measured 2026-01-31T23:59:59Z of `0123456789`";
    assert!(text.contains(&format!("7 of 8 rounds of 8 s count; {origin}.")));
    assert!(text.contains("All cases are of commit `0123456789`.\n\n"));
    assert!(text.contains("| pgweir | 1.25 (1.25–1.25) |"));
    assert!(text.contains("| **1.25** (1.25–1.25) | yes |"));
    assert!(!text.contains("beside fixed pairs"));
    assert!(text.contains("| workers-4, tps | – | needs 16 cores |"));
    assert!(text.contains("| simple-1, rate-25, rate-50 | – | not measured |"));
    assert!(docs.join(PICTURES).join("tps-simple.svg").exists());
}

/// The report of these results.
fn text_of(results: &[CaseResult]) -> String {
    Report::of(&Case::all(), results).text(&[], "")
}

#[test]
fn cases_of_several_commits_are_told_apart() {
    let of = |case, commit: Option<&str>| CaseResult {
        commit: commit.map(str::to_owned),
        ..result(case, &[[9.0, 4.0, 5.0, 6.0]])
    };
    let first = of("simple-1", Some("0123456789"));
    let same = of("simple-16", Some("0123456789"));
    let changed = of("simple-64", Some("0123456789+"));
    let old = CaseResult { measured_at: None, ..of("connect", None) };
    assert!(!text_of(&[first.clone(), same.clone()]).contains("different commits"));
    let text = text_of(&[first, same, changed, old]);
    assert!(text.contains(
        "**The cases are of different commits**: of an unknown commit (connect); \
         of commit `0123456789` (simple-1, simple-16); of commit `0123456789+` (simple-64).\n\
         A `+` says"
    ));
    assert!(text.contains("; measured at an unknown time of an unknown commit."));
}

#[test]
fn a_rate_says_what_it_is_a_part_of() {
    let old = result("rate-25", &[[9.0, 4.0, 5.0, 6.0]]);
    let new = CaseResult { direct_maximum_tps: Some(45_612.3), ..old.clone() };
    assert!(text_of(&[new]).contains("`-n -S`, 25% of 45,612; 1 of 1"));
    assert!(text_of(&[old]).contains("`-n -S`, 25% of an unknown maximum; 1 of 1"));
    let other = text_of(&[result("simple-1", &[[9.0, 4.0, 5.0, 6.0]])]);
    assert!(other.contains("`-n -S`; 1 of 1"));
}

#[test]
fn a_far_server_says_what_bounds_a_pool() {
    let old = result("remote-64", &[[9.0, 4.0, 5.0, 6.0]]);
    let new = CaseResult { pool_maximum_tps: Some(10_612.3), ..old.clone() };
    assert!(text_of(&[new]).contains("\n10 direct connections reach 10,612 tps.\n\n"));
    assert!(!text_of(&[old]).contains("10 direct connections"));
}

#[test]
fn a_missing_yardstick_is_named() {
    let mut result = result("simple-64", &[[9.0, 4.0, 5.0, 6.0]; 7]);
    assert!(!text_of(&[result.clone()]).contains("No yardstick"));
    result.rounds[0].samples.remove(&Contender::Relay);
    let text = text_of(&[result]);
    assert!(text.contains("No yardstick: the relay or PgBouncer did not run in every round."));
    assert!(text.contains("| no yardstick |"));
}

/// So no figure is there that was not measured, and none is written by hand.
#[test]
fn the_page_says_what_its_rounds_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = TestFolder::of("page");
    write(&root.join(RESULTS), &folder.0).unwrap();
    let pictures = fs::read_dir(folder.0.join(PICTURES)).unwrap();
    let pictures = pictures.map(|entry| Path::new(PICTURES).join(entry.unwrap().file_name()));
    for file in pictures.chain([FILE.into()]) {
        let of = |docs: &Path| fs::read_to_string(docs.join(&file)).unwrap();
        let is_same = of(&folder.0) == of(&root.join(DOCS));
        assert!(is_same, "docs/{}: write it anew with `bench report`", file.display());
    }
}

#[test]
fn a_sweep_is_a_row_of_its_own_table() {
    let pairs = [Pair::of(1, 8), Pair::of(3, 16)];
    let swept = sweep("sweep-64", pairs, &[[500.0, 1100.0]; 3], &[[1000.0, 990.0]; 5]);
    let text = text_of(&[swept]);
    assert!(text.contains(
        "\n| sweep-64 | 990 | pgweir, 3x16: 1,000 | **0.99** (0.99–0.99) | 2 | pgweir, 3x16: 1,100 \
         | pgweir, 1x8: 500 | `-n -S`, pool of 10; 3 and 5 rounds of 8 s; measured"
    ));
    assert!(text.contains("| sweep-64, tps | **0.99** (0.99–0.99) | yes |"));
    assert!(!text.contains("### sweep-64"));
}

#[test]
fn what_another_machine_says_stands_apart() {
    let folder = TestFolder::of("elsewhere");
    let (raw, docs) = (folder.0.join("raw"), folder.0.join("docs"));
    result("simple-64", &[[9000.0, 4000.0, 5000.0, 6000.0]; 7]).store(&raw).unwrap();
    write(&raw, &docs).unwrap();
    let page = || fs::read_to_string(docs.join(FILE)).unwrap();
    let alone = page();
    assert!(!alone.contains("another machine"));
    let elsewhere = raw.join(ELSEWHERE);
    result("simple-64", &[[9000.0, 4000.0, 10000.0, 6000.0]; 7]).store(&elsewhere).unwrap();
    fs::write(elsewhere.join("about.md"), "Its memory is slow.\n").unwrap();
    write(&raw, &docs).unwrap();
    let both = page();
    let at = both.find("## On another machine\n\nIts memory is slow.\n\n- ").unwrap();
    let end = at + both[at..].find("## Cases").unwrap();
    let chapter = &both[at..end];
    assert!(chapter.contains("All cases are of commit `0123456789`."));
    assert!(chapter.contains("| **2.50** (2.50–2.50) | yes |"));
    assert!(!chapter.contains("not measured"));
    assert_eq!(format!("{}{}", &both[..at], &both[end..]), alone);
}

use super::play;
use crate::corpus;
use crate::cut::Cut;

/// What a server is told before it is shared, and when it is not to be any more.
const BRAKE: &str = "pg_catalog.set_config('statement_timeout', '50', false)";

#[test]
fn servers_are_shared_where_the_scene_says_so() {
    for (path, script) in corpus::inputs("engine_client").expect("it is there") {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name of letters");
        let shared = play(&script, Cut::Whole).counts(BRAKE) > 0;
        match name {
            _ if name.starts_with("shared") => assert!(shared, "{name}"),
            "query" | "batch" | "pipeline" => assert!(!shared, "{name}"),
            _ => {}
        }
    }
}

#[test]
fn what_takes_too_long_on_a_shared_server_is_run_again_alone() {
    let script = corpus::folder("engine_client").join("shared_overrun");
    let outcome = play(&std::fs::read(script).expect("it is there"), Cut::Whole);
    assert!(outcome.counts("SELECT SLEEP") == 2, "{outcome:?}");
}

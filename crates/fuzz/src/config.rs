//! The configuration file: text of whoever may write it, read before anything else is known.

use std::path::Path;

use pgweir_config::{Change, Changes, Config, Problem};
use pgweir_engine::Plan;

/// Any text; bytes that are no UTF-8 stand for the replacement character.
pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let file = Path::new("pgweir.toml");
    let read = Config::parse(&text, file);
    // What is missing at the end is missed behind the last line.
    let last_line = text.matches('\n').count() + 1;
    match read {
        Ok(config) => {
            // It takes as long again.
            if text.len().is_multiple_of(4) {
                is_changed(&text, file, &config);
            }
            for warning in &config.warnings {
                is_in_the_file(&warning.0, last_line);
            }
            assert!(!config.pools.is_empty(), "a configuration without a pool");
            for pool in &config.pools {
                assert!(!pool.users.is_empty(), "a pool without a user");
                assert!(pool.served().is_some(), "a pool without a server");
            }
            assert!(
                Plan::new(&config, "0.0.0", [6; 32]).is_ok(),
                "a valid configuration is refused"
            );
        }
        Err(errors) => {
            assert!(!errors.problems().is_empty(), "refused without a word");
            for problem in errors.problems() {
                is_in_the_file(problem, last_line);
            }
        }
    }
}

/// A setting that is changed to what it is changes nothing, whether it stands in the file or not:
/// one of those that can be changed; which one says the text's length.
fn is_changed(text: &str, file: &Path, config: &Config) {
    let (_, settings) = Config::parse_explained(text, file).expect("it was read before");
    let live = settings.iter().filter(|setting| setting.changes == Changes::Live);
    let live: Vec<_> = live.filter(|setting| setting.value.is_some()).collect();
    let Some(setting) = live.get(text.len() / 4 % live.len().max(1)) else { return };
    let value = setting.value.as_ref().expect("the others are left out");
    let change = Change::new(setting, value).expect("it is what it is");
    let (changed, _) = Config::parse_changed(text, file, &[change]).expect("as it was");
    assert_eq!(changed.general, config.general, "{}", setting.key);
    assert_eq!(changed.pools, config.pools, "{}", setting.key);
}

fn is_in_the_file(problem: &Problem, last_line: usize) {
    let line = problem.line.expect("a problem of a text has a place in it");
    assert!((1..=last_line).contains(&line), "{problem} (of {last_line} lines)");
    assert!(!problem.message.is_empty());
}

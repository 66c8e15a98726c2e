use std::io::{self, Write};
use std::process::ExitCode;

use pgweir_config::{Config, Errors};

use crate::UNUSABLE;
use crate::cli::Check;

/// `pgweir check`: what is wrong, what has no effect, and with `--explain` all that holds.
pub(crate) fn run(check: &Check) -> ExitCode {
    match report(check) {
        Ok(text) => match io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            // Whoever reads has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        Err(errors) => {
            eprintln!("{errors}");
            ExitCode::from(UNUSABLE)
        }
    }
}

fn report(check: &Check) -> Result<String, Errors> {
    let config = Config::load(&check.config)?;
    let file = check.config.display();
    let mut text = String::new();
    for warning in &config.warnings {
        text += &format!("warning: {warning}\n");
    }
    if check.explain {
        for explained in Config::explain(&check.config)? {
            let origin = match explained.line {
                Some(line) => format!("{file}:{line}"),
                None => "default".to_owned(),
            };
            text += &format!("{:<60}  # {origin}\n", explained.to_string());
        }
    } else {
        text += &format!("{file} can be used\n");
    }
    Ok(text)
}

use std::io::{self, Write};
use std::process::ExitCode;

use pgweir_config::{Config, Explained, Url};

use crate::cli::Check;
use crate::file::{self, Loaded};
use crate::{UNUSABLE, connect, descriptors};

/// `pgweir check`: what is wrong, what has no effect, with `--explain` all that holds, and with
/// `--connect` what the servers say.
pub(crate) fn run(check: &Check) -> ExitCode {
    let Loaded { mut config, mut explained, .. } = match load(check) {
        Ok(loaded) => loaded,
        Err(complaint) => {
            eprintln!("{complaint}");
            return ExitCode::from(UNUSABLE);
        }
    };
    let fits = descriptors::settle(&mut config, &mut explained);
    match report(check, &config, &explained, fits, &mut io::stdout().lock()) {
        Ok(true) => ExitCode::SUCCESS,
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Ok(false) | Err(_) => ExitCode::FAILURE,
    }
}

fn load(check: &Check) -> Result<Loaded, String> {
    let path = &check.config;
    // Such a file would be named in the error, and a URL with its password.
    if Url::in_argument(path).is_some() {
        return Err("expected a file; pgweir init writes one for a URL".to_owned());
    }
    file::load(path).map_err(|errors| errors.to_string())
}

/// `fits`: why it cannot be used here, with so many file descriptors. `false`: that, or a server
/// cannot be used as the configuration asks for.
fn report(
    check: &Check,
    config: &Config,
    explained: &[Explained],
    fits: Result<(), String>,
    out: &mut impl Write,
) -> io::Result<bool> {
    let file = check.config.display();
    for warning in &config.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    for one in explained.iter().filter(|_| check.explain) {
        let origin = match one.line {
            Some(line) => format!("{file}:{line}"),
            None => "default".to_owned(),
        };
        writeln!(out, "{:<60}  # {origin}", one.to_string())?;
    }
    if let Err(why) = &fits {
        writeln!(out, "{file} cannot be used here: {why}")?;
    }
    let well = (!check.connect || connect::run(config, out)?) && fits.is_ok();
    if well && !check.explain {
        writeln!(out, "{file} can be used")?;
    }
    Ok(well)
}

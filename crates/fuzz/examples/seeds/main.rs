//! Writes the inputs from which fuzzing starts into `corpus/`, each under a name that says what
//! it is. Run it after a change here: `cargo run -p pgweir-fuzz --example seeds`.

mod clients;
mod messages;
mod servers;
mod texts;

use std::fs;
use std::io;

use pgweir_fuzz::corpus;
use pgweir_fuzz::script::Op;

fn main() -> io::Result<()> {
    for (target, seeds) in [
        ("backend", messages::backend()),
        ("catalogue", texts::catalogue()),
        ("config", texts::config()),
        ("console", texts::console()),
        ("engine_client", clients::scripts()),
        ("engine_server", servers::scripts()),
        ("frontend", messages::frontend()),
        ("scram_client", texts::scram_client()),
        ("scram_server", texts::scram_server()),
        ("secret", texts::secret()),
        ("sql", texts::sql()),
        ("startup", messages::startup()),
        ("url", texts::url()),
    ] {
        let folder = corpus::folder(target);
        fs::create_dir_all(&folder)?;
        for (name, input) in seeds {
            fs::write(folder.join(name), input)?;
        }
    }
    Ok(())
}

/// A name and an input.
type Seed = (&'static str, Vec<u8>);

/// The bytes of a script: its scene, then its items, which stand between `|`. An item is an op by
/// its name, or what `message` makes of it.
fn script(scene: [u8; 2], items: &str, message: fn(&str) -> Vec<u8>) -> Vec<u8> {
    let item = |text: &str| match Op::ALL.into_iter().find(|op| format!("{op:?}") == text) {
        Some(op) => op.bytes().to_vec(),
        None => message(text),
    };
    let items = items.split('|').flat_map(|text| item(text.trim()));
    scene.into_iter().chain(items).collect()
}

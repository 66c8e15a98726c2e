//! What libFuzzer is told of a target: writes its words into a dictionary, in libFuzzer's format,
//! and prints the options. `cargo run -p pgweir-fuzz --example libfuzzer -- TARGET FILE`.

use std::fmt::Write;
use std::io;

use pgweir_fuzz::{target, words};

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("TARGET FILE"));
    };
    let target = target(&name).ok_or_else(|| io::Error::other(format!("no target: {name}")))?;
    let mut dictionary = String::new();
    for word in words(target.language) {
        let bytes = word.iter().fold(String::new(), |text, byte| text + &format!("\\x{byte:02x}"));
        writeln!(dictionary, "\"{bytes}\"").map_err(io::Error::other)?;
    }
    std::fs::write(&file, dictionary)?;
    println!("-max_len={} -dict={file}", target.longest);
    Ok(())
}

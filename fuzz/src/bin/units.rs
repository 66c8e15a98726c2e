#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pgweir_fuzz::run("units", input));

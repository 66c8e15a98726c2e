#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| pgweir_fuzz::run("engine_units", input));

#![no_main]

#[path = "../readings_checks.rs"]
#[allow(dead_code)]
mod readings_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| readings_checks::histogram(data));

#![no_main]

#[path = "../balance_checks.rs"]
#[allow(dead_code)]
mod balance_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| balance_checks::balance_toml(data));

#![no_main]

#[path = "../journal_checks.rs"]
#[allow(dead_code)]
mod journal_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| journal_checks::journal(data));

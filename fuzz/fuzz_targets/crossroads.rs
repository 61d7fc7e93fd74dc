#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::balance_checks::crossroads(data));

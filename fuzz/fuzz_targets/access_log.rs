#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::requests_checks::access_log(data));

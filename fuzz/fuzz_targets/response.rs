#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::checks::response(data, fuzz::checks::Cuts::Some));

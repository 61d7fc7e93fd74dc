#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::checks::http2(data, fuzz::checks::Cuts::Some));

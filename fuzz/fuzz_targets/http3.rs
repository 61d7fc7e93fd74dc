#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::checks::http3(data, fuzz::checks::Cuts::Some));

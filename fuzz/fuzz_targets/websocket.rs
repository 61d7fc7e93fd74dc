#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::checks::websocket(data, fuzz::checks::Cuts::Some));

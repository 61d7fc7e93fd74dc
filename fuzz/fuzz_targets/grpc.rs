#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::checks::grpc(data, fuzz::checks::Cuts::Some));

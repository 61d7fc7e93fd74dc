#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::checks::proxy_protocol(
    data,
    fuzz::checks::Cuts::Some
));

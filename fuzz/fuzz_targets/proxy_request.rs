#![no_main]

#[path = "../proxy_checks.rs"]
#[allow(dead_code)]
mod proxy_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| proxy_checks::proxy_request(data));

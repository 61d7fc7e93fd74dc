#![no_main]

#[path = "../crawl_checks.rs"]
#[allow(dead_code)]
mod crawl_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| crawl_checks::crawl_page(data));

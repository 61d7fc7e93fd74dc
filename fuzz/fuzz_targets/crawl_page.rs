#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::crawl_checks::crawl_page(data));

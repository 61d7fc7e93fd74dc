#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::tool_checks::tool_output(data));

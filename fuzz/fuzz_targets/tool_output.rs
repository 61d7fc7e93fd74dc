#![no_main]

#[path = "../tool_checks.rs"]
#[allow(dead_code)]
mod tool_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| tool_checks::tool_output(data));

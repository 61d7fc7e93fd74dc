#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::agent_checks::agent_wire(data));

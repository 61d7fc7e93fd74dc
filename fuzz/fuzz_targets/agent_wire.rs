#![no_main]

#[path = "../agent_checks.rs"]
#[allow(dead_code)]
mod agent_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| agent_checks::agent_wire(data));

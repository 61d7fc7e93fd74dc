#![no_main]

#[path = "../packet_checks.rs"]
#[allow(dead_code)]
mod packet_checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| packet_checks::tun_packet(data));

//! Runs the checks of the fuzz targets without a fuzzer: over the corpora, and over randomly
//! mutated copies of them.
#![allow(clippy::unwrap_used)]

#[path = "../../../fuzz/packet_checks.rs"]
mod packet_checks;
#[path = "../../../fuzz/replay.rs"]
mod replay;

const TUN_PACKET: &[&str] = &["fuzz/corpus/tun_packet"];

#[test]
fn every_packet_is_translated_there_and_back() {
    replay::files_hold(TUN_PACKET, packet_checks::tun_packet);
}

#[test]
fn mutated_packets_are_too() {
    replay::mutated_copies_hold(TUN_PACKET, packet_checks::tun_packet, 2000);
}

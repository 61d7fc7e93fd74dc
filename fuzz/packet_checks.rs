//! What has to hold for any packet that comes from a TUN device.

use std::net::Ipv4Addr;

use hosts::link::packet::{addresses, translate};

/// A packet: translated there and back it is unchanged, except for the two forms of a checksum that
/// mean the same.
pub fn tun_packet(data: &[u8]) {
    let mut packet = data.to_vec();
    let (one, two) = (
        Ipv4Addr::new(10, 1, 2, 3),
        Ipv4Addr::new(192, 168, 255, 254),
    );
    let Some((source, destination)) = addresses(data) else {
        translate(&mut packet, one, two);
        assert_eq!(packet, data, "it is no IPv4 packet");
        return;
    };
    translate(&mut packet, one, two);
    assert_eq!(addresses(&packet), Some((one, two)));
    translate(&mut packet, source, destination);
    assert_eq!(packet.len(), data.len());
    let header = usize::from(data[0] & 0x0f) * 4;
    let sums = [10, header + 6, header + 16];
    for (at, (now, before)) in packet.iter().zip(data).enumerate() {
        let is_sum = sums.iter().any(|sum| (*sum..sum + 2).contains(&at));
        assert!(is_sum || now == before, "byte {at}");
    }
}

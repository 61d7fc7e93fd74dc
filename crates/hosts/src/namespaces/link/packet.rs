//! Reading and translating addresses in IPv4 packets.

use std::net::Ipv4Addr;

/// Offsets in an IPv4 header.
const SOURCE: usize = 12;
const DESTINATION: usize = 16;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// Source and destination of an IPv4 packet; `None` for other packets.
pub fn addresses(packet: &[u8]) -> Option<(Ipv4Addr, Ipv4Addr)> {
    // With a shorter header length, the checksum of the payload would lie inside the addresses.
    if packet.len() < 20 || packet[0] >> 4 != 4 || packet[0] & 0x0f < 5 {
        return None;
    }
    let at = |place: usize| {
        Ipv4Addr::new(
            packet[place],
            packet[place + 1],
            packet[place + 2],
            packet[place + 3],
        )
    };
    Some((at(SOURCE), at(DESTINATION)))
}

/// Replaces a packet's addresses, as NAT does, and updates the checksums of its headers. Packets
/// quoted in ICMP errors stay unchanged.
pub fn translate(packet: &mut [u8], source: Ipv4Addr, destination: Ipv4Addr) {
    if addresses(packet).is_none() {
        return;
    }
    let mut change = ChecksumUpdate::default();
    for (place, new) in [(SOURCE, source), (DESTINATION, destination)] {
        let new = new.octets();
        change.add(&packet[place..place + 4], &new);
        packet[place..place + 4].copy_from_slice(&new);
    }
    change.update(packet, 10);
    let header = usize::from(packet[0] & 0x0f) * 4;
    // Only the first fragment has the transport header.
    let first = u16::from_be_bytes([packet[6], packet[7]]) & 0x1fff == 0;
    let checksum = match packet[9] {
        TCP => header + 16,
        UDP => header + 6,
        _ => return,
    };
    let Some(sum) = packet.get(checksum..checksum + 2).filter(|_| first) else {
        return;
    };
    let none = packet[9] == UDP && sum == [0, 0];
    if !none {
        change.update(packet, checksum);
        if packet[9] == UDP && packet[checksum..checksum + 2] == [0, 0] {
            packet[checksum..checksum + 2].copy_from_slice(&[0xff, 0xff]);
        }
    }
}

/// An incremental checksum update (RFC 1624, equation 3).
#[derive(Default)]
struct ChecksumUpdate {
    sum: u32,
}

impl ChecksumUpdate {
    fn add(&mut self, old: &[u8], new: &[u8]) {
        for (old, new) in old.chunks_exact(2).zip(new.chunks_exact(2)) {
            self.sum += u32::from(!u16::from_be_bytes([old[0], old[1]]));
            self.sum += u32::from(u16::from_be_bytes([new[0], new[1]]));
        }
    }

    fn update(&self, packet: &mut [u8], place: usize) {
        let old = u16::from_be_bytes([packet[place], packet[place + 1]]);
        let mut sum = u32::from(!old) + self.sum;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        packet[place..place + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The checksum of RFC 1071, from scratch.
    fn checksum(parts: &[&[u8]]) -> u16 {
        let bytes = parts.concat();
        let mut sum: u32 = bytes
            .chunks(2)
            .map(|two| u32::from(two[0]) << 8 | u32::from(two.get(1).copied().unwrap_or(0)))
            .sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    fn packet(from: u32, to: u32, protocol: u8, payload: &[u8]) -> Vec<u8> {
        let place = if protocol == TCP { 16 } else { 6 };
        let mut inner = vec![0_u8; 20];
        inner.extend(payload);
        let length = (20 + inner.len()) as u16;
        let mut header = vec![0x45, 0, 0, 0, 0, 9, 0x40, 0, 64, protocol, 0, 0];
        header[2..4].copy_from_slice(&length.to_be_bytes());
        header.extend(from.to_be_bytes());
        header.extend(to.to_be_bytes());
        let sum = checksum(&[&header]);
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        let pseudo = [0, protocol, 0, 0];
        let mut pseudo = pseudo.to_vec();
        pseudo[2..4].copy_from_slice(&(inner.len() as u16).to_be_bytes());
        let sum = checksum(&[&header[12..20], &pseudo, &inner]);
        inner[place..place + 2].copy_from_slice(&sum.to_be_bytes());
        [header, inner].concat()
    }

    proptest! {
        #[test]
        fn checksums_are_right_after_a_translation(
            from: u32, to: u32, source: u32, destination: u32,
            tcp: bool, payload in proptest::collection::vec(any::<u8>(), 0..64),
        ) {
            let protocol = if tcp { TCP } else { UDP };
            let mut one = packet(from, to, protocol, &payload);
            translate(&mut one, source.into(), destination.into());
            let expected = packet(source, destination, protocol, &payload);
            // 0 and 0xffff are equal in one's complement.
            let place = 20 + if tcp { 16 } else { 6 };
            for place in [10, place] {
                let found = u16::from_be_bytes([one[place], one[place + 1]]);
                let wanted = u16::from_be_bytes([expected[place], expected[place + 1]]);
                prop_assert!(found == wanted || found ^ wanted == 0xffff);
            }
            prop_assert_eq!(addresses(&one), Some((source.into(), destination.into())));
            prop_assert_eq!(&one[40..], &payload[..]);
        }

        #[test]
        fn any_bytes_are_accepted(mut bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            translate(&mut bytes, Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST);
        }
    }

    #[test]
    fn datagrams_without_a_checksum_stay_without() {
        let mut one = packet(1, 2, UDP, b"x");
        one[26..28].copy_from_slice(&[0, 0]);
        translate(&mut one, 3.into(), 4.into());
        assert_eq!(one[26..28], [0, 0]);
    }
}

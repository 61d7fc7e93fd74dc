//! A direction of a link by the kernel's netem.

use agent::netlink::Message;
use readings::{LinkSpec, PACKET_BYTES_MAX};

pub(crate) const KIND: &str = "netem";

const TCA_NETEM_RATE: u16 = 6;
/// Time unit of `struct tc_netem_qopt`.
const TICK_NS: u64 = 64;
/// An Ethernet header: a link's rate counts IP packets, netem's frames.
const FRAME_HEADER: i32 = -14;

/// Whether netem can make a link. With jitter it reorders packets, which a link does not.
pub(crate) fn supports(spec: &LinkSpec) -> bool {
    spec.jitter_ns == 0
}

/// Adds the options of a direction of a link: `struct tc_netem_qopt` and `struct tc_netem_rate` of
/// `linux/pkt_sched.h`.
pub(crate) fn options(spec: &LinkSpec, message: &mut Message) {
    let delay_ns = spec.rtt_ns / 2;
    let delay_ticks = u32::try_from(delay_ns / TICK_NS).unwrap_or(u32::MAX);
    let loss = (spec.loss * f64::from(u32::MAX)).round() as u32;
    let mut header = Vec::new();
    for number in [delay_ticks, packets(spec), loss, 0, 0, 0] {
        header.extend(number.to_ne_bytes());
    }
    message.raw(&header);
    if let Some(rate) = spec.rate_bits_per_s {
        let bytes_per_s = u32::try_from(rate / 8).unwrap_or(u32::MAX).max(1);
        let mut value = bytes_per_s.to_ne_bytes().to_vec();
        value.extend(FRAME_HEADER.to_ne_bytes());
        value.extend([0; 8]);
        message.attribute(TCA_NETEM_RATE, &value);
    }
}

/// Queue limit, packets: those in flight, and those that wait for the rate.
fn packets(spec: &LinkSpec) -> u32 {
    let Some(rate) = spec.rate_bits_per_s else {
        return 1_000_000;
    };
    let in_flight = rate as f64 / 8.0 * (spec.rtt_ns as f64 / 2e9);
    let bytes = LinkSpec::queue_bytes(rate) as f64 + in_flight;
    (bytes / PACKET_BYTES_MAX as f64).ceil() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent::route::discipline_bytes;

    /// What `tc qdisc add dev lo root netem limit 50 delay 10ms loss 1% rate 10mbit -14` of
    /// iproute2 6.1 sends to the kernel, as strace shows it; its sequence number is zero here.
    #[cfg(target_endian = "little")]
    const TC: [u8; 96] = [
        0x60, 0, 0, 0, 0x24, 0, 0x05, 0x06, 0, 0, 0, 0, 0, 0, 0, 0, //
        0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, //
        0, 0, 0, 0, 0x0a, 0, 1, 0, b'n', b'e', b't', b'e', b'm', 0, 0, 0, //
        0x30, 0, 2, 0, 0x5a, 0x62, 0x02, 0, 0x32, 0, 0, 0, 0x29, 0x5c, 0x8f, 0x02, //
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x14, 0, 6, 0, //
        0xd0, 0x12, 0x13, 0, 0xf2, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    #[test]
    #[cfg(target_endian = "little")]
    fn the_message_is_that_of_tc() {
        let spec = LinkSpec {
            rtt_ns: 20_000_000,
            jitter_ns: 0,
            loss: 0.01,
            rate_bits_per_s: Some(10_000_000),
        };
        let bytes = discipline_bytes(1, KIND, |message| options(&spec, message));
        assert_eq!(bytes, TC);
    }
}

//! A direction of a link by the kernel's netem.

use crate::kernel::netlink::Message;
use readings::{LinkSpec, PACKET_BYTES_MAX};

/// Its name.
pub const KIND: &str = "netem";

const TCA_NETEM_RATE: u16 = 6;
/// Time unit of `struct tc_netem_qopt`.
const TICK_NS: u64 = 64;
/// Bytes of an Ethernet header.
pub const ETHERNET_HEADER: u32 = 14;

/// Whether netem can make a link. With jitter it reorders packets, which a link does not.
pub fn supports(spec: &LinkSpec) -> bool {
    spec.jitter_ns == 0
}

/// Adds the options of a direction of a link: `struct tc_netem_qopt` and `struct tc_netem_rate` of
/// `linux/pkt_sched.h`. A link's rate counts IP packets, netem's frames, which have a header of
/// `header_bytes`.
pub fn options(spec: &LinkSpec, header_bytes: u32, message: &mut Message) {
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
        value.extend(0_u32.wrapping_sub(header_bytes).to_ne_bytes());
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
    use crate::kernel::netlink::NEW;
    use crate::kernel::netlink::traffic_control::tests::assert_sent_by_tc;
    use crate::kernel::netlink::traffic_control::{ROOT, discipline};

    #[test]
    #[cfg(target_endian = "little")]
    fn the_message_is_that_of_tc() {
        let spec = LinkSpec {
            rtt_ns: 20_000_000,
            jitter_ns: 0,
            loss: 0.01,
            rate_bits_per_s: Some(10_000_000),
        };
        // tc qdisc add dev lo root netem limit 50 delay 10ms loss 1% rate 10mbit -14
        assert_sent_by_tc(
            discipline(1, ROOT, 0, KIND, NEW, |message| {
                options(&spec, ETHERNET_HEADER, message)
            }),
            "60000000 24000506 00000000 00000000 00000000 01000000 00000000 ffffffff 00000000
             0a000100 6e657465 6d000000 30000200 5a620200 32000000 295c8f02 00000000 00000000
             00000000 14000600 d0121300 f2ffffff 00000000 00000000",
        );
    }
}

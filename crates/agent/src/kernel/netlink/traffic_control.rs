//! Queueing disciplines and filters by rtnetlink(7), with the numbers of `linux/rtnetlink.h`,
//! `linux/pkt_sched.h` and `linux/pkt_cls.h`. What `tc` of iproute2 does.

use std::io;
use std::net::IpAddr;

use crate::kernel::netlink::route::Route;
use crate::kernel::netlink::{Message, NEW, attribute, text, u32_at};

const RTM_NEWQDISC: u16 = 36;
const RTM_DELQDISC: u16 = 37;
const RTM_GETQDISC: u16 = 38;
const RTM_NEWTFILTER: u16 = 44;

const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;
const TCA_U32_CLASSID: u16 = 1;
const TCA_U32_SEL: u16 = 5;

/// The parent of a device's outermost queueing discipline.
pub(crate) const ROOT: u32 = 0xffff_ffff;
/// Which of the bands of `prio` gets a packet by its priority, if no filter takes it: the kernel's
/// default.
const PRIORITY_MAP: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
const ETH_P_IP: u16 = 0x0800;
const ETH_P_IPV6: u16 = 0x86dd;
/// Where the destination address begins in an IP header.
const DESTINATION_IP: u32 = 16;
const DESTINATION_IPV6: u32 = 24;
const U32_TERMINAL: u8 = 1;

/// A device's outermost queueing discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RootDiscipline {
    /// 0 for the one that the kernel chose itself.
    pub(crate) handle: u32,
    pub(crate) kind: String,
}

impl Route {
    /// Adds a queueing discipline to a device; `fill` adds its options.
    pub fn discipline(
        &mut self,
        device: u32,
        kind: &str,
        fill: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        self.order(discipline(device, ROOT, 0, kind, NEW, fill))
    }

    /// Changes the options of a device's queueing discipline; fails where it has another kind.
    pub fn change_discipline(
        &mut self,
        device: u32,
        kind: &str,
        fill: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        self.order(discipline(device, ROOT, 0, kind, 0, fill))
    }

    /// The outermost queueing discipline of a device; `None` if the kernel lists none.
    pub(crate) fn root_discipline(&mut self, device: u32) -> io::Result<Option<RootDiscipline>> {
        let mut found = None;
        let mut request = Message::dump(RTM_GETQDISC, &header(device, 0, 0, 0));
        self.0.list(&mut request, |body| {
            if body.len() < HEADER || u32_at(body, 4) != device || u32_at(body, 12) != ROOT {
                return;
            }
            found = Some(RootDiscipline {
                handle: u32_at(body, 8),
                kind: attribute(&body[HEADER..], TCA_KIND).map_or_else(String::new, text),
            });
        })?;
        Ok(found)
    }

    /// Removes the outermost queueing discipline of a device if it has this handle; the kernel then
    /// chooses one itself.
    pub(crate) fn remove_discipline(&mut self, device: u32, handle: u32) -> io::Result<()> {
        let header = header(device, handle, ROOT, 0);
        self.order(Message::acknowledged(RTM_DELQDISC, 0, &header))
    }
}

const HEADER: usize = 20;

/// `struct tcmsg`.
fn header(device: u32, handle: u32, parent: u32, info: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    for (offset, number) in [(4, device), (8, handle), (12, parent), (16, info)] {
        header[offset..offset + 4].copy_from_slice(&number.to_ne_bytes());
    }
    header
}

/// The message that adds a queueing discipline below `parent`, or without flags changes its options.
pub(crate) fn discipline(
    device: u32,
    parent: u32,
    handle: u32,
    kind: &str,
    flags: u16,
    fill: impl FnOnce(&mut Message),
) -> Message {
    let header = header(device, handle, parent, 0);
    let mut message = Message::acknowledged(RTM_NEWQDISC, flags, &header);
    message.name(TCA_KIND, kind).nest(TCA_OPTIONS, fill);
    message
}

/// The message that makes `prio` with this many bands the outermost queueing discipline of a device.
pub(crate) fn prio(device: u32, handle: u32, bands: u32) -> Message {
    discipline(device, ROOT, handle, "prio", NEW, |message| {
        // `struct tc_prio_qopt`, and no further attributes.
        message.raw(&bands.to_ne_bytes()).raw(&PRIORITY_MAP);
        message.attribute(TCA_OPTIONS, &[]);
    })
}

/// The message that puts packets to an address into a class of a queueing discipline.
pub(crate) fn filter(device: u32, handle: u32, class: u32, address: IpAddr) -> Message {
    // All filters of one priority have one protocol.
    let (priority, protocol, first, bytes) = match address {
        IpAddr::V4(address) => (1, ETH_P_IP, DESTINATION_IP, address.octets().to_vec()),
        IpAddr::V6(address) => (2, ETH_P_IPV6, DESTINATION_IPV6, address.octets().to_vec()),
    };
    let info = priority << 16 | u32::from(protocol.to_be());
    let header = header(device, 0, handle, info);
    let mut message = Message::acknowledged(RTM_NEWTFILTER, NEW, &header);
    message.name(TCA_KIND, "u32").nest(TCA_OPTIONS, |options| {
        options.number(TCA_U32_CLASSID, class);
        options.attribute(TCA_U32_SEL, &selector(first, &bytes));
    });
    message
}

/// `struct tc_u32_sel`, with a `struct tc_u32_key` for each word of an address.
fn selector(first: u32, address: &[u8]) -> Vec<u8> {
    let words = address.chunks_exact(4);
    let mut selector = vec![0; 16];
    selector[0] = U32_TERMINAL;
    selector[2] = words.len() as u8;
    for (offset, word) in (first..).step_by(4).zip(words) {
        selector.extend([0xff; 4]);
        selector.extend(word);
        selector.extend(offset.to_ne_bytes());
        selector.extend([0; 4]);
    }
    selector
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const ROOT_HANDLE: u32 = 0x7765_0000;

    /// Compares a message with what `tc` of iproute2 6.1 sends to the kernel, as strace shows it. In
    /// `hex` its sequence number is zero.
    #[cfg(target_endian = "little")]
    pub(crate) fn assert_sent_by_tc(mut message: Message, hex: &str) {
        let sent: String = message
            .finish()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let expected: String = hex.split_whitespace().collect();
        assert_eq!(sent, expected);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn the_messages_are_those_of_tc() {
        // tc qdisc add dev lo root handle 7765: prio bands 5
        assert_sent_by_tc(
            prio(1, ROOT_HANDLE, 5),
            "4c000000 24000506 00000000 00000000 00000000 01000000 00006577 ffffffff 00000000
             09000100 7072696f 00000000 1c000200 05000000 01020202 01020000 01010101 01010101
             04000200",
        );
        // tc filter add dev lo parent 7765: protocol ip prio 1 u32 match ip dst 10.9.0.2/32
        // classid 7765:4
        assert_sent_by_tc(
            filter(1, ROOT_HANDLE, ROOT_HANDLE | 4, "10.9.0.2".parse().unwrap()),
            "5c000000 2c000506 00000000 00000000 00000000 01000000 00000000 00006577 08000100
             08000100 75333200 30000200 08000100 04006577 24000500 01000100 00000000 00000000
             00000000 ffffffff 0a090002 10000000 00000000",
        );
        // tc filter add dev lo parent 7765: protocol ipv6 prio 2 u32 match ip6 dst fd00::2/128
        // classid 7765:5
        assert_sent_by_tc(
            filter(1, ROOT_HANDLE, ROOT_HANDLE | 5, "fd00::2".parse().unwrap()),
            "8c000000 2c000506 00000000 00000000 00000000 01000000 00000000 00006577 86dd0200
             08000100 75333200 60000200 08000100 05006577 54000500 01000400 00000000 00000000
             00000000 ffffffff fd000000 18000000 00000000 ffffffff 00000000 1c000000 00000000
             ffffffff 00000000 20000000 00000000 ffffffff 00000002 24000000 00000000",
        );
        // tc qdisc add dev lo parent 7765:4 netem limit 1000000 delay 10ms loss 1%
        let link = readings::LinkSpec {
            rtt_ns: 20_000_000,
            loss: 0.01,
            ..Default::default()
        };
        let fill =
            |message: &mut Message| crate::kernel::netlink::netem::options(&link, 14, message);
        assert_sent_by_tc(
            discipline(
                1,
                ROOT_HANDLE | 4,
                0,
                crate::kernel::netlink::netem::KIND,
                NEW,
                fill,
            ),
            "4c000000 24000506 00000000 00000000 00000000 01000000 00000000 04006577 00000000
             0a000100 6e657465 6d000000 1c000200 5a620200 40420f00 295c8f02 00000000 00000000
             00000000",
        );
    }

    #[test]
    fn the_kernels_own_choice_has_no_handle_and_cannot_be_removed() {
        let mut route = Route::open().unwrap();
        let lo = route.index("lo").unwrap();
        // Where somebody has configured `lo`, there is nothing to see.
        let root = route.root_discipline(lo).unwrap();
        if let Some(root) = root.filter(|root| root.handle == 0) {
            assert_eq!(root.kind, "noqueue");
            assert!(route.remove_discipline(lo, ROOT_HANDLE).is_err());
        }
    }
}

//! The links of a host that is a machine: the kernel's netem holds back and drops the packets that
//! go from it to the other hosts. Packets to other addresses, such as those of the pipe, pass.
//!
//! On each device on the way to another host, `prio` takes the place of the queueing discipline that
//! the kernel chose. Its first three bands are those that `prio` has by default, and get all other
//! packets. Each host has a further band: a u32 filter puts packets to its address there, and below
//! the band is a netem.

use std::io;
use std::net::IpAddr;
use std::path::Path;

use crate::kernel::netlink::netem;
use crate::kernel::netlink::route::{Device, Route};
use crate::kernel::netlink::traffic_control::RootDiscipline;
use crate::links::kernel::{LinkKernel, LinkedDevice, ROOT_HANDLE, ShapedPeer};
use crate::links::record::{self, LinkRecord};
use crate::protocol::wire::PeerLink;

/// Bands for packets to other addresses.
const STANDARD_BANDS: u32 = 3;
/// The most bands that `prio` has.
const BANDS_MAX: u32 = 16;

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EOPNOTSUPP: i32 = 95;

/// The links of this host. Dropping them removes them.
pub(crate) struct PeerLinks<K: LinkKernel = Route> {
    kernel: K,
    record: LinkRecord,
    shaped: Vec<ShapedPeer>,
}

/// Makes the links to other hosts in place of `links`, or changes them; without any, removes them.
///
/// # Errors
/// When the kernel or the rights for it are missing, or the previous links cannot be removed. Then no
/// new links are made.
pub(crate) fn set(
    links: &mut Option<PeerLinks>,
    address: IpAddr,
    peers: Vec<PeerLink>,
) -> Result<(), String> {
    if let Some(made) = links.as_mut().filter(|made| made.are_to(&peers)) {
        return made.change(peers);
    }
    *links = None;
    record::undo_own().map_err(|e| format!("cannot remove the previous links: {e}"))?;
    if !peers.is_empty() {
        record::sweep();
        let route = Route::open().map_err(|e| format!("cannot make links: {e}"))?;
        let made = PeerLinks::make(route, &std::env::temp_dir(), address, peers)?;
        *links = Some(made);
    }
    Ok(())
}

impl<K: LinkKernel> PeerLinks<K> {
    /// Makes links of the host with an address; records in `folder` what is changed.
    fn make(
        mut kernel: K,
        folder: &Path,
        address: IpAddr,
        peers: Vec<PeerLink>,
    ) -> Result<Self, String> {
        let mut devices: Vec<(u32, Device)> = Vec::new();
        let mut shaped: Vec<ShapedPeer> = Vec::new();
        for peer in peers {
            let index = device_to(&mut kernel, address, &peer)?;
            let known = devices.iter().find(|(number, _)| *number == index);
            let device = match known {
                Some((_, device)) => device.clone(),
                None => {
                    let device = free_device(&mut kernel, index)?;
                    devices.push((index, device.clone()));
                    device
                }
            };
            let before = shaped.iter().filter(|one| one.device == index).count();
            shaped.push(ShapedPeer {
                peer,
                device: index,
                band: STANDARD_BANDS + 1 + before as u32,
                header_bytes: match device.is_ethernet {
                    true => netem::ETHERNET_HEADER,
                    false => 0,
                },
            });
        }
        if shaped.iter().any(|one| one.band > BANDS_MAX) {
            let most = BANDS_MAX - STANDARD_BANDS;
            return Err(format!(
                "it has links to {} hosts; expected at most {most}",
                shaped.len()
            ));
        }
        let linked = devices.iter().map(|(_, device)| LinkedDevice {
            name: device.name.clone(),
            gso_max_segs: device.gso_max_segs,
        });
        let record = LinkRecord::write(folder, linked.collect())
            .map_err(|e| format!("cannot record its links in {}: {e}", folder.display()))?;
        // From here on, dropping it undoes what was done.
        let mut links = Self {
            kernel,
            record,
            shaped,
        };
        for (index, device) in &devices {
            links.add(*index, device)?;
        }
        Ok(links)
    }

    fn add(&mut self, index: u32, device: &Device) -> Result<(), String> {
        let Self { kernel, shaped, .. } = self;
        let refused = |what| move |error| refusal(what, &device.name, &error);
        // netem would hold back or drop a packet of many segments as one.
        kernel
            .set_gso_max_segs(index, 1)
            .map_err(refused("switch off segmentation offload of"))?;
        let of_device = || shaped.iter().filter(|one| one.device == index);
        let bands = STANDARD_BANDS + of_device().count() as u32;
        kernel
            .add_bands(index, bands)
            .map_err(refused("add prio to"))?;
        for one in of_device() {
            kernel.add_netem(one).map_err(refused("add netem to"))?;
            kernel.add_filter(one).map_err(refused("add a filter to"))?;
        }
        Ok(())
    }

    fn are_to(&self, peers: &[PeerLink]) -> bool {
        let made = self.shaped.iter().map(|one| one.peer.address);
        made.eq(peers.iter().map(|one| one.address))
    }

    /// Changes those links that differ from the present ones.
    fn change(&mut self, peers: Vec<PeerLink>) -> Result<(), String> {
        for (one, peer) in self.shaped.iter_mut().zip(peers) {
            if one.peer.link != peer.link {
                let changed = self.kernel.change_netem(one, &peer.link);
                changed.map_err(|e| format!("cannot change the link to `{}`: {e}", peer.host))?;
            }
            one.peer = peer;
        }
        Ok(())
    }
}

impl<K: LinkKernel> Drop for PeerLinks<K> {
    fn drop(&mut self) {
        // If that fails, the record stays; the next `set_peer_links` or the next run tries again.
        let _ = self.record.undo(&mut self.kernel);
    }
}

/// The device on the way to another host.
fn device_to(kernel: &mut impl LinkKernel, own: IpAddr, peer: &PeerLink) -> Result<u32, String> {
    let PeerLink { host, address, .. } = peer;
    let to = kernel
        .route_to(*address)
        .map_err(|e| format!("there is no route to host `{host}` ({address}): {e}"))?;
    if to.is_local {
        return Err(format!(
            "host `{host}` is at an address of the same machine ({address}), and a link needs a \
             network between them"
        ));
    }
    // Otherwise the answers would not pass the link, which filters by the declared address.
    match to.source {
        Some(source) if source != own => Err(format!(
            "its packets to host `{host}` come from {source}, not from its address {own}; a link \
             needs address = \"{source}\""
        )),
        _ => Ok(to.device),
    }
}

/// A device whose queueing discipline is the kernel's own choice.
fn free_device(kernel: &mut impl LinkKernel, index: u32) -> Result<Device, String> {
    let unreadable = |e: io::Error| format!("cannot read the properties of a device: {e}");
    let device = kernel.device(index).map_err(unreadable)?;
    let name = &device.name;
    match kernel.root(index).map_err(unreadable)? {
        Some(RootDiscipline {
            handle: ROOT_HANDLE,
            ..
        }) => Err(format!(
            "its device {name} has the links of another run; if none is under way, remove them: \
             tc qdisc del dev {name} root; ip link set dev {name} gso_max_segs 65535"
        )),
        Some(RootDiscipline { handle, kind }) if handle != 0 => Err(format!(
            "its device {name} has a queueing discipline that somebody has configured ({kind} \
             {:x}:), and a link would replace it; remove it first: tc qdisc del dev {name} root",
            handle >> 16
        )),
        _ => Ok(device),
    }
}

/// Why the kernel refuses a link.
fn refusal(what: &str, device: &str, error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(EPERM) => "a link needs CAP_NET_ADMIN there: reach the host as root, or give its \
                        container that capability"
            .to_owned(),
        Some(ENOENT | EOPNOTSUPP) if what.starts_with("add ") => format!(
            "cannot {what} {device}: its kernel has no netem (module sch_netem), or not what a link \
             needs beside it (modules sch_prio and cls_u32); some systems have them in a package \
             such as linux-modules-extra or kernel-modules-extra"
        ),
        _ => format!("cannot {what} {device}: {error}"),
    }
}

#[cfg(test)]
pub(crate) mod tests;

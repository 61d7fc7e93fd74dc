//! What links to other hosts do in the kernel, and how a device gets back what it had.

use std::io;
use std::net::IpAddr;

use readings::LinkSpec;
use serde::{Deserialize, Serialize};

use crate::kernel::netlink::route::{Device, Route, RouteTo};
use crate::kernel::netlink::traffic_control::{RootDiscipline, discipline, filter, prio};
use crate::kernel::netlink::{Message, NEW, netem};
use crate::protocol::wire::PeerLink;

/// The handle of the `prio` of this program: "we" in ASCII.
pub(crate) const ROOT_HANDLE: u32 = 0x7765_0000;
pub(crate) const ENODEV: i32 = 19;

/// What links need of the kernel; a fake takes its place in tests.
pub(crate) trait LinkKernel {
    fn index(&mut self, device: &str) -> io::Result<u32>;
    fn route_to(&mut self, address: IpAddr) -> io::Result<RouteTo>;
    fn device(&mut self, index: u32) -> io::Result<Device>;
    fn root(&mut self, device: u32) -> io::Result<Option<RootDiscipline>>;
    fn set_gso_max_segs(&mut self, device: u32, segments: u32) -> io::Result<()>;
    fn add_bands(&mut self, device: u32, bands: u32) -> io::Result<()>;
    /// Removes the bands with all that is below them.
    fn remove_bands(&mut self, device: u32) -> io::Result<()>;
    fn add_netem(&mut self, shaped: &ShapedPeer) -> io::Result<()>;
    fn change_netem(&mut self, shaped: &ShapedPeer, link: &LinkSpec) -> io::Result<()>;
    fn add_filter(&mut self, shaped: &ShapedPeer) -> io::Result<()>;
}

/// A host whose packets have a band.
pub(crate) struct ShapedPeer {
    pub(crate) peer: PeerLink,
    pub(crate) device: u32,
    /// From 1.
    pub(crate) band: u32,
    pub(crate) header_bytes: u32,
}

impl ShapedPeer {
    fn class(&self) -> u32 {
        ROOT_HANDLE | self.band
    }
}

impl LinkKernel for Route {
    fn index(&mut self, device: &str) -> io::Result<u32> {
        Route::index(self, device)
    }

    fn route_to(&mut self, address: IpAddr) -> io::Result<RouteTo> {
        self.to(address)
    }

    fn device(&mut self, index: u32) -> io::Result<Device> {
        Route::device(self, index)
    }

    fn root(&mut self, device: u32) -> io::Result<Option<RootDiscipline>> {
        self.root_discipline(device)
    }

    fn set_gso_max_segs(&mut self, device: u32, segments: u32) -> io::Result<()> {
        Route::set_gso_max_segs(self, device, segments)
    }

    fn add_bands(&mut self, device: u32, bands: u32) -> io::Result<()> {
        self.order(prio(device, ROOT_HANDLE, bands))
    }

    fn remove_bands(&mut self, device: u32) -> io::Result<()> {
        self.remove_discipline(device, ROOT_HANDLE)
    }

    fn add_netem(&mut self, shaped: &ShapedPeer) -> io::Result<()> {
        self.order(netem_of(shaped, &shaped.peer.link, NEW))
    }

    fn change_netem(&mut self, shaped: &ShapedPeer, link: &LinkSpec) -> io::Result<()> {
        self.order(netem_of(shaped, link, 0))
    }

    fn add_filter(&mut self, shaped: &ShapedPeer) -> io::Result<()> {
        let class = shaped.class();
        self.order(filter(
            shaped.device,
            ROOT_HANDLE,
            class,
            shaped.peer.address,
        ))
    }
}

/// The message for the netem below a host's band.
fn netem_of(shaped: &ShapedPeer, link: &LinkSpec, flags: u16) -> Message {
    let class = shaped.class();
    discipline(shaped.device, class, 0, netem::KIND, flags, |message| {
        netem::options(link, shaped.header_bytes, message);
    })
}

/// A device with links, as it was before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinkedDevice {
    pub(crate) name: String,
    pub(crate) gso_max_segs: u32,
}

/// Removes links and restores the devices.
///
/// # Errors
/// The first one; the other devices are restored all the same.
pub(crate) fn undo(kernel: &mut impl LinkKernel, devices: &[LinkedDevice]) -> io::Result<()> {
    let mut undone = Ok(());
    for device in devices {
        let restored = match restore(kernel, device) {
            // A device that is gone has no links.
            Err(error) if error.raw_os_error() == Some(ENODEV) => Ok(()),
            other => other,
        };
        undone = undone.and(restored);
    }
    undone
}

fn restore(kernel: &mut impl LinkKernel, before: &LinkedDevice) -> io::Result<()> {
    let index = kernel.index(&before.name)?;
    let bands = match kernel.root(index)? {
        Some(root) if root.handle == ROOT_HANDLE => kernel.remove_bands(index),
        _ => Ok(()),
    };
    if kernel.device(index)?.gso_max_segs == 1 && before.gso_max_segs != 1 {
        kernel.set_gso_max_segs(index, before.gso_max_segs)?;
    }
    bands
}

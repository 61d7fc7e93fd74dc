//! Links on a kernel that is faked.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use readings::LinkSpec;

use super::*;
use crate::kernel::fixtures::TemporaryFolder;
use crate::kernel::netlink::route::RouteTo;
use crate::links::kernel::{ENODEV, undo};

const MS: u64 = 1_000_000;
const OWN: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

/// Two devices: 1 is `lo`, 2 is `eth0`.
pub(crate) struct FakeKernel {
    pub(crate) devices: BTreeMap<u32, Device>,
    /// Handles of the outermost queueing disciplines.
    pub(crate) roots: BTreeMap<u32, u32>,
    /// What was done, in this order.
    log: Vec<String>,
    /// What fails, and its errno.
    pub(crate) fails: Option<(&'static str, i32)>,
}

impl Default for FakeKernel {
    fn default() -> Self {
        let device = |name: &str| Device {
            name: name.to_owned(),
            gso_max_segs: 65_535,
            is_ethernet: name == "eth0",
        };
        Self {
            devices: [(1, device("lo")), (2, device("eth0"))].into(),
            roots: BTreeMap::new(),
            log: Vec::new(),
            fails: None,
        }
    }
}

impl FakeKernel {
    fn does(&mut self, what: &'static str, with: String) -> io::Result<()> {
        match self.fails {
            Some((fails, errno)) if fails == what => Err(io::Error::from_raw_os_error(errno)),
            _ => {
                self.log.push(format!("{what} {with}"));
                Ok(())
            }
        }
    }
}

fn words(link: &LinkSpec) -> String {
    format!("{} ms, {}", link.rtt_ns / MS, link.loss)
}

/// A kernel that a test shares with the links on it.
pub(crate) type SharedKernel = Rc<RefCell<FakeKernel>>;

impl LinkKernel for SharedKernel {
    fn index(&mut self, device: &str) -> io::Result<u32> {
        let kernel = self.borrow();
        let found = kernel.devices.iter().find(|(_, one)| one.name == device);
        let found = found.map(|(index, _)| *index);
        found.ok_or(io::Error::from_raw_os_error(ENODEV))
    }

    fn route_to(&mut self, address: IpAddr) -> io::Result<RouteTo> {
        let is_local = address == OWN;
        let device = if is_local { 1 } else { 2 };
        Ok(RouteTo {
            device,
            is_local,
            source: Some(OWN),
        })
    }

    fn device(&mut self, index: u32) -> io::Result<Device> {
        Ok(self.borrow().devices[&index].clone())
    }

    fn root(&mut self, device: u32) -> io::Result<Option<RootDiscipline>> {
        if let Some(("root", errno)) = self.borrow().fails {
            return Err(io::Error::from_raw_os_error(errno));
        }
        let handle = self.borrow().roots.get(&device).copied();
        Ok(handle.map(|handle| RootDiscipline {
            handle,
            kind: "htb".to_owned(),
        }))
    }

    fn set_gso_max_segs(&mut self, device: u32, segments: u32) -> io::Result<()> {
        let mut kernel = self.borrow_mut();
        kernel.does("gso", format!("{device} {segments}"))?;
        kernel.devices.get_mut(&device).unwrap().gso_max_segs = segments;
        Ok(())
    }

    fn add_bands(&mut self, device: u32, bands: u32) -> io::Result<()> {
        let mut kernel = self.borrow_mut();
        kernel.does("prio", format!("{device} {bands}"))?;
        kernel.roots.insert(device, ROOT_HANDLE);
        Ok(())
    }

    fn remove_bands(&mut self, device: u32) -> io::Result<()> {
        let mut kernel = self.borrow_mut();
        kernel.does("remove", device.to_string())?;
        kernel.roots.remove(&device);
        Ok(())
    }

    fn add_netem(&mut self, shaped: &ShapedPeer) -> io::Result<()> {
        let link = words(&shaped.peer.link);
        let with = format!("{}: {link}, {}", shaped.band, shaped.header_bytes);
        self.borrow_mut().does("netem", with)
    }

    fn change_netem(&mut self, shaped: &ShapedPeer, link: &LinkSpec) -> io::Result<()> {
        let with = format!("{}: {}", shaped.band, words(link));
        self.borrow_mut().does("change", with)
    }

    fn add_filter(&mut self, shaped: &ShapedPeer) -> io::Result<()> {
        let with = format!("{}: {}", shaped.band, shaped.peer.address);
        self.borrow_mut().does("filter", with)
    }
}

/// A link of a round trip to the host with that last byte of its address.
fn peer(last: u8, rtt_ms: u64) -> PeerLink {
    PeerLink {
        host: format!("h{last}"),
        address: IpAddr::from([10, 0, 0, last]),
        link: LinkSpec {
            rtt_ns: rtt_ms * MS,
            ..LinkSpec::default()
        },
    }
}

#[test]
fn links_are_made_changed_and_removed() {
    let folder = TemporaryFolder::new();
    let kernel = SharedKernel::default();
    let peers = vec![peer(2, 20), peer(3, 0)];
    let mut links = PeerLinks::make(kernel.clone(), &folder.0, OWN, peers).unwrap();
    assert_eq!(folder.count(), 1);
    assert!(links.are_to(&[peer(2, 1), peer(3, 1)]) && !links.are_to(&[peer(2, 20)]));
    links.change(vec![peer(2, 20), peer(3, 5)]).unwrap();
    links.change(vec![peer(2, 20), peer(3, 5)]).unwrap();
    drop(links);
    assert_eq!(
        kernel.borrow().log,
        [
            "gso 2 1",
            "prio 2 5",
            "netem 4: 20 ms, 0, 14",
            "filter 4: 10.0.0.2",
            "netem 5: 0 ms, 0, 14",
            "filter 5: 10.0.0.3",
            "change 5: 5 ms, 0",
            "remove 2",
            "gso 2 65535",
        ]
    );
    assert_eq!(folder.count(), 0);
}

#[test]
fn what_was_done_before_a_failure_is_undone() {
    for (fails, errno, says, log) in [
        ("gso", EPERM, "CAP_NET_ADMIN", &[][..]),
        (
            "prio",
            ENOENT,
            "no netem (module sch_netem)",
            &["gso 2 1", "gso 2 65535"],
        ),
        (
            "netem",
            ENOENT,
            "no netem (module sch_netem)",
            &["gso 2 1", "prio 2 4", "remove 2", "gso 2 65535"],
        ),
        (
            "filter",
            105,
            "cannot add a filter to eth0: No buffer space",
            &[
                "gso 2 1",
                "prio 2 4",
                "netem 4: 20 ms, 0, 14",
                "remove 2",
                "gso 2 65535",
            ],
        ),
    ] {
        let folder = TemporaryFolder::new();
        let kernel = SharedKernel::default();
        kernel.borrow_mut().fails = Some((fails, errno));
        let made = PeerLinks::make(kernel.clone(), &folder.0, OWN, vec![peer(2, 20)]);
        let why = made.err().unwrap();
        assert!(why.contains(says), "{why}");
        assert_eq!(kernel.borrow().log, log, "{fails}");
        assert_eq!(folder.count(), 0);
    }
}

#[test]
fn a_record_stays_until_everything_is_undone() {
    let folder = TemporaryFolder::new();
    let mut kernel = SharedKernel::default();
    let links = PeerLinks::make(kernel.clone(), &folder.0, OWN, vec![peer(2, 20)]).unwrap();
    kernel.borrow_mut().fails = Some(("remove", 16));
    drop(links);
    assert_eq!(folder.count(), 1);
    let device = || LinkedDevice {
        name: "eth0".to_owned(),
        gso_max_segs: 3,
    };
    // It is not known whether there are links.
    kernel.borrow_mut().fails = Some(("root", 105));
    let failed = undo(&mut kernel, &[device()]).unwrap_err();
    assert_eq!(failed.raw_os_error(), Some(105));
    // With the device, its links are gone.
    kernel.borrow_mut().devices.remove(&2);
    undo(&mut kernel, &[device()]).unwrap();
}

#[test]
fn nothing_is_changed_where_a_link_cannot_be() {
    let folder = TemporaryFolder::new();
    let refused = |peers: Vec<PeerLink>, root: Option<u32>, says: &str| {
        let kernel = SharedKernel::default();
        kernel.borrow_mut().roots.extend(root.map(|root| (2, root)));
        let made = PeerLinks::make(kernel.clone(), &folder.0, OWN, peers);
        let why = made.err().unwrap();
        assert!(why.contains(says), "{why}");
        assert_eq!(kernel.borrow().log, [""; 0]);
        assert_eq!(folder.count(), 0);
    };
    let one = || vec![peer(2, 20)];
    refused(
        vec![peer(2, 0), peer(1, 20)],
        None,
        "host `h1` is at an address of the same machine (10.0.0.1)",
    );
    refused(
        one(),
        Some(0x8001_0000),
        "(htb 8001:), and a link would replace it",
    );
    refused(one(), Some(ROOT_HANDLE), "has the links of another run");
    let other = IpAddr::from([10, 0, 0, 9]);
    let made = PeerLinks::make(SharedKernel::default(), &folder.0, other, one());
    let why = made.err().unwrap();
    assert!(
        why.contains("come from 10.0.0.1, not from its address 10.0.0.9"),
        "{why}"
    );
    refused(
        (2..16).map(|last| peer(last, 0)).collect(),
        None,
        "links to 14 hosts; expected at most 13",
    );
    // The kernel's own choice is replaced.
    let kernel = SharedKernel::default();
    kernel.borrow_mut().roots.insert(2, 0);
    assert!(PeerLinks::make(kernel, &folder.0, OWN, one()).is_ok());
}

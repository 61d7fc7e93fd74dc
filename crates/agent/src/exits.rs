//! Threads that end, as the kernel tells of each by taskstats: also of those that came and went
//! between two looks. For root of the machine alone, who is not in a container.

use std::fs::{self, File};
use std::os::unix::process::parent_id;

use super::taskstats::{Exit, TASKSTATS_CMD_GET, open};
use crate::netlink::{Message, Netlink};

const TASKSTATS_CMD_ATTR_REGISTER_CPUMASK: u16 = 3;

/// Room for what is told between two looks: some 5,000 ends.
const ROOM: usize = 8 << 20;

/// Hears of threads that end, of all programs.
pub(super) struct Exits(Netlink);

impl Exits {
    /// `None` where this process is not told.
    pub(super) fn open() -> Option<Self> {
        // The kernel tells in its first network namespace only. This process may have been started
        // in one of a host, but not the one that did so.
        let listener = std::thread::spawn(|| {
            let _ = File::open(format!("/proc/{}/ns/net", parent_id()))
                .and_then(|namespace| net::namespace::enter(&namespace));
            Self::listen()
        });
        let mut exits = listener.join().ok()??;
        // That thread has ended.
        let me = std::process::id();
        let told = exits.take();
        let is_told = told.iter().any(|exit| exit.process as u32 == me);
        is_told.then_some(exits)
    }

    fn listen() -> Option<Self> {
        let (mut netlink, family) = open()?;
        let cpus = fs::read_to_string("/sys/devices/system/cpu/possible").ok()?;
        let mut wish = Message::acknowledged(family, 0, &[TASKSTATS_CMD_GET, 1, 0, 0]);
        wish.name(TASKSTATS_CMD_ATTR_REGISTER_CPUMASK, cpus.trim());
        netlink.request(wish).ok()?;
        netlink.listen(ROOM).ok()?;
        Some(Self(netlink))
    }

    /// Those that have ended since this was asked last, in that order.
    pub(super) fn take(&mut self) -> Vec<Exit> {
        let mut exits = Vec::new();
        self.0.hear(|told| exits.extend(Exit::read(told)));
        exits
    }
}

//! Threads that exit, as the kernel reports each by taskstats: also those that came and went between
//! two samples. Only for root outside of containers.

use std::fs::{self, File};
use std::os::unix::process::parent_id;

use crate::kernel::netlink::taskstats::{TASKSTATS_CMD_GET, ThreadExit, open};
use crate::kernel::netlink::{Message, Netlink};

const TASKSTATS_CMD_ATTR_REGISTER_CPUMASK: u16 = 3;
const TASKSTATS_CMD_ATTR_DEREGISTER_CPUMASK: u16 = 4;

/// Room for what is reported between two samples: some 5,000 exits.
const ROOM: usize = 8 << 20;

/// Receives exits of threads of all programs.
pub(crate) struct ThreadExits {
    netlink: Netlink,
    family: u16,
    cpus: String,
}

impl ThreadExits {
    /// `None` where the kernel does not report to this process.
    pub(crate) fn open() -> Option<Self> {
        // The kernel reports in its first network namespace only. This process may have been started
        // in that of a host; its parent was not.
        let listener = net::os::start_thread("which hears of exits", || {
            let _ = File::open(format!("/proc/{}/ns/net", parent_id()))
                .and_then(|namespace| net::namespace::enter(&namespace));
            Self::listen()
        });
        let mut exits = listener.ok()?.join().ok()??;
        // That thread has exited.
        let me = std::process::id();
        let reports = exits.take().iter().any(|exit| exit.pid as u32 == me);
        reports.then_some(exits)
    }

    fn listen() -> Option<Self> {
        let (mut netlink, family) = open()?;
        let cpus = fs::read_to_string("/sys/devices/system/cpu/possible").ok()?;
        let mut request = Message::acknowledged(family, 0, &[TASKSTATS_CMD_GET, 1, 0, 0]);
        request.name(TASKSTATS_CMD_ATTR_REGISTER_CPUMASK, cpus.trim());
        netlink.request(request).ok()?;
        netlink.listen(ROOM).ok()?;
        Some(Self {
            netlink,
            family,
            cpus,
        })
    }

    /// Exits since the last call, in order.
    pub(crate) fn take(&mut self) -> Vec<ThreadExit> {
        let mut exits = Vec::new();
        self.netlink
            .drain(|report| exits.extend(ThreadExit::read(report)));
        exits
    }
}

/// The kernel keeps a listener by its port. The next socket of this process may get the same port, and
/// would mistake reports for answers.
impl Drop for ThreadExits {
    fn drop(&mut self) {
        let mut request = Message::question(self.family, &[TASKSTATS_CMD_GET, 1, 0, 0]);
        request.name(TASKSTATS_CMD_ATTR_DEREGISTER_CPUMASK, self.cpus.trim());
        let _ = self.netlink.send(&mut request);
    }
}

//! CPU time that other programs or the hypervisor took during the closed loops.

use readings::Reading;
use serde::Serialize;

/// If they take this many CPUs, they disturb what is measured.
const MANY_CPUS: f64 = 0.25;

/// The CPUs that other programs and the hypervisor took on average while closed loops were measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CpusOfOthers {
    pub cpus: f64,
    pub of_cpus: u32,
}

impl CpusOfOthers {
    /// Whether they took so much that they disturb what was measured.
    pub(crate) fn are_many(&self) -> bool {
        self.cpus > MANY_CPUS
    }
}

/// How many CPUs other programs took during a trial's closed loop; nothing where it was not measured.
///
/// Open loops are left out: a client that polls takes CPU time that it does not count.
pub(crate) fn of_reading(reading: &Reading) -> Option<CpusOfOthers> {
    let (load, seen) = (reading.throughput.as_ref()?, reading.probed.as_ref()?);
    // Without samples of the servers, and with another load generator, these would count as others.
    if seen.servers.is_empty() || reading.driver.is_some() || seen.looked_s <= 0.0 {
        return None;
    }
    let servers = seen.servers.values().map(|one| one.user_s + one.system_s);
    let beside = reading
        .beside
        .values()
        .filter_map(|one| one.throughput.as_ref());
    let beside: f64 = beside.map(|load| load.client.cpu_s).sum();
    let ours = servers.sum::<f64>() + load.client.cpu_s + beside + seen.cpu_s;
    let others = (seen.machine.busy_s? - ours).max(0.0) + seen.machine.steal_s;
    Some(CpusOfOthers {
        cpus: others / seen.looked_s,
        of_cpus: seen.machine.cpus,
    })
}

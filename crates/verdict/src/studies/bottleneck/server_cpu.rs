//! The CPU time of the servers: which of it is full, and whether the throughput follows it.

use readings::Change;

use super::effects::{Effects, of_change};
use super::evidence::{CpuUse, Evidence, Full, HalvedCpu, ServerEvidence};
use super::unchanged::{FULL, Unchanged};
use super::{Bottleneck, Standing, Suspect};

/// Half the CPU time must leave no more than this: exactly half where the CPU was full, and a
/// server that was busy for up to three quarters of its time keeps more.
const CPU_LEFT: f64 = 0.67;
/// A server that takes at least this share of what a CPU gave fills it alone.
const ALONE: f64 = 0.8;

/// CPUs, and the servers that may use them.
struct Group<'a> {
    /// The host, if it is on another machine than the load.
    host: Option<&'a str>,
    cpus: Vec<u32>,
    servers: Vec<&'a String>,
    /// CPUs that the servers used, together.
    used: f64,
}

impl Group<'_> {
    fn is_full(&self) -> bool {
        !self.cpus.is_empty() && self.used >= FULL * self.cpus.len() as f64
    }

    /// The server that uses the most, and its share of what all use.
    fn most<'b>(&'b self, loads: &Unchanged<'_>) -> Option<(&'b String, f64)> {
        let of = |name: &&String| loads.server(name);
        let most = self
            .servers
            .iter()
            .copied()
            .max_by(|a, b| of(a).total_cmp(&of(b)))?;
        Some((most, loads.server(most) / self.used.max(1e-9)))
    }

    fn cpu_use(&self) -> CpuUse {
        CpuUse {
            host: self.host.map(str::to_owned),
            cpus: self.cpus.clone(),
            used: self.used,
        }
    }
}

pub(super) fn server(loads: &Unchanged<'_>, effects: &Effects) -> Option<Suspect> {
    let groups = groups(loads);
    let lost = effects.lowered(Change::HalfTheServerCpu, CPU_LEFT);
    let full = groups
        .iter()
        .filter(|group| group.is_full())
        .max_by(|a, b| a.used.total_cmp(&b.used));
    // Threads that always want a CPU are full wherever the CPU went to.
    let full_thread = groups
        .iter()
        .flat_map(|group| group.servers.iter().map(move |name| (group, *name)))
        .map(|(group, name)| (group, name, loads.threads(name)))
        .filter(|(_, _, threads)| threads.wanted >= FULL)
        .max_by(|a, b| a.2.had.total_cmp(&b.2.had));
    let shared = full.filter(|group| {
        group.servers.len() > 1 && group.most(loads).is_some_and(|(_, share)| share < ALONE)
    });
    let (group, name, full) = match (shared, full, full_thread) {
        (Some(group), _, _) => (group, None, Some(Full::SharedCpus)),
        (None, Some(group), _) => {
            let (name, _) = group.most(loads)?;
            let threads = loads.threads(name).count;
            (group, Some(name), Some(Full::Cpus { threads }))
        }
        (None, None, Some((group, name, threads))) => {
            (group, Some(name), Some(Full::Thread(threads)))
        }
        // Without half of the time of a CPU that was half idle nothing is lost: see CPU_LEFT.
        (None, None, None) => {
            lost?;
            let group = groups.iter().max_by(|a, b| a.used.total_cmp(&b.used))?;
            (group, Some(group.most(loads)?.0), None)
        }
    };
    let (bottleneck, each) = match name {
        None => (Bottleneck::SharedCpu, group.servers.clone()),
        Some(_) => (Bottleneck::Server, loads.server_names()),
    };
    let standing = match (lost, full) {
        (Some(_), None) => Standing::Sensitive,
        (Some(_), _) => Standing::Confirmed,
        (None, _) => Standing::Suspected,
    };
    let halved = lost.map(|left| HalvedCpu {
        quota_cpus: of_change(loads.reading, Change::HalfTheServerCpu)
            .find_map(|probe| probe.quota_cpus)
            .unwrap_or(0.5),
        left,
    });
    let each = each.into_iter();
    Some(Suspect {
        bottleneck,
        standing,
        server: name.cloned(),
        evidence: Evidence::Server(ServerEvidence {
            cpus: group.cpu_use(),
            full,
            each: each
                .map(|name| (name.clone(), loads.server(name)))
                .collect(),
            halved,
        }),
    })
}

/// The servers by the CPUs that they may use.
fn groups<'a>(loads: &Unchanged<'a>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for name in loads.server_names() {
        let of = loads.reading.cpus_of_servers.get(name);
        let cpus = of.unwrap_or(&loads.reading.server_cpus).clone();
        let used = loads.server(name);
        let host = loads.reading.apart(name);
        let is_one = |group: &&mut Group<'a>| group.cpus == cpus && group.host == host;
        match groups.iter_mut().find(is_one) {
            Some(group) => {
                group.servers.push(name);
                group.used += used;
            }
            None => groups.push(Group {
                host,
                cpus,
                servers: vec![name],
                used,
            }),
        }
    }
    groups
}

//! What lies between the load and the servers where hosts are apart: links, ports, bounds.

use std::collections::{BTreeMap, BTreeSet};

use crate::testbed::Testbed;
use agent::AgentError;
use experiment::{ResolvedCondition, SubjectSpec, Upstream};

/// The first port that any program may have.
const FIRST_PORT: u16 = 1024;
/// How many times the ports a wider range has, where there are so many.
const WIDER: u32 = 10;

/// Servers whose CPU time is bounded together.
pub(crate) struct Bounded {
    /// The host whose control group does it.
    pub(crate) host: Option<String>,
    /// CPUs; `None` for no bound.
    pub(crate) quota: Option<f64>,
    pub(crate) servers: BTreeSet<String>,
}

impl Testbed {
    /// How many ports a host's outgoing connections may have, where that is known and they run
    /// out: with `tcp_tw_reuse=1` a port is used again a second after its connection has ended.
    pub(crate) fn ports_that_run_out(&self, host: Option<&str>) -> Option<u32> {
        let ports = self.hosts.get(host)?.outgoing_ports()?;
        let (low, high) = ports.range;
        (!ports.are_reused).then(|| u32::from(high - low) + 1)
    }

    /// A wider range for a host that has one of its own.
    pub(crate) fn wider_ports(&self, host: Option<&str>) -> Option<(u16, u16)> {
        let ports = self.hosts.get(host)?.outgoing_ports()?;
        wider(ports.range).filter(|_| ports.are_own)
    }

    /// The ports of a condition's servers whose connections are not counted with the load's.
    pub(crate) fn ports_of_servers(&self, resolved: &ResolvedCondition) -> BTreeMap<String, u32> {
        let from = self.hosts.key(resolved.load.host.as_deref());
        resolved
            .servers
            .iter()
            .filter(|server| self.hosts.key(server.host.as_deref()) != from)
            .filter_map(|server| {
                let range = self.ports_that_run_out(server.host.as_deref())?;
                Some((server.name.clone(), range))
            })
            .collect()
    }

    /// The CPUs that a host's control group keeps its programs to; empty for all.
    pub(crate) fn cpus_of(&self, host: Option<&str>) -> &[u32] {
        self.hosts.get(host).map_or(&[], |host| host.cpus())
    }

    /// A condition's servers by the host whose control group bounds their CPU time, which a
    /// process loses when it is put under another one; last, without a host, those that have no
    /// such host.
    pub(crate) fn bounded(&self, resolved: &ResolvedCondition) -> Vec<Bounded> {
        let mut all: Vec<Bounded> = Vec::new();
        for server in &resolved.servers {
            let host = self.hosts.get(server.host.as_deref());
            let quota = host.and_then(|host| host.cpu_quota());
            let name = quota.and(host).map(|host| host.name().to_owned());
            match all.iter_mut().find(|one| one.host == name) {
                Some(one) => {
                    one.servers.insert(server.name.clone());
                }
                None => all.push(Bounded {
                    host: name,
                    quota: quota.flatten(),
                    servers: BTreeSet::from([server.name.clone()]),
                }),
            }
        }
        all.sort_by_key(|one| one.host.is_none());
        all
    }

    /// Bounds the CPU time of hosts to so many CPUs each, or gives back the declared bounds.
    pub(crate) fn bound_hosts(
        &self,
        hosts: &[(String, f64)],
        bounded: bool,
    ) -> Result<(), AgentError> {
        for (name, cpus) in hosts {
            let host = self.hosts.get(Some(name));
            let host =
                host.ok_or_else(|| AgentError::Lost(format!("there is no host `{name}`")))?;
            host.set_cpu_quota(bounded.then_some(*cpus))
                .map_err(|e| AgentError::Failed(e.to_string()))?;
        }
        Ok(())
    }

    /// The rate of the slowest link that every answer to a subject passes, bits per second; nothing
    /// where no link on the way has one.
    pub(crate) fn slowest_link(
        &self,
        resolved: &ResolvedCondition,
        subject: &SubjectSpec,
    ) -> Option<f64> {
        let host_of = |name: &str| {
            let server = resolved.servers.iter().find(|server| server.name == name);
            server.and_then(|server| server.host.as_deref())
        };
        let mut at = resolved.load.host.as_deref();
        let mut next = subject.through.first().map(String::as_str);
        let mut slowest: Option<u64> = None;
        let mut steps = subject.through.len();
        while let Some(name) = next.filter(|_| steps > 0) {
            let host = host_of(name);
            if host != at {
                let ends = [at, host]
                    .into_iter()
                    .filter_map(|host| self.hosts.get(host));
                let rates = ends.filter_map(|host| host.link()?.rate_bits_per_s);
                slowest = slowest.into_iter().chain(rates).min();
            }
            at = host;
            steps -= 1;
            // Behind a server with several upstreams the answers take several ways.
            let server = resolved.servers.iter().find(|server| server.name == name);
            next = match server.map(|server| server.upstreams.as_slice()) {
                Some([Upstream::Server(only)]) => Some(only),
                _ => None,
            };
        }
        slowest.map(|rate| rate as f64)
    }
}

/// Up to [`WIDER`] times as many ports, those of the range among them; nothing where there are none
/// to add.
fn wider((low, high): (u16, u16)) -> Option<(u16, u16)> {
    let wanted = (u32::from(high) - u32::from(low) + 1) * WIDER;
    let last = (u32::from(low) + wanted - 1).min(u32::from(u16::MAX));
    let first = (last + 1).saturating_sub(wanted).max(u32::from(FIRST_PORT));
    let first = u16::try_from(first).ok()?.min(low);
    let last = u16::try_from(last).ok()?;
    ((first, last) != (low, high)).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wider_range_holds_the_old_one_and_stays_within_what_there_is() {
        assert_eq!(wider((40_000, 40_199)), Some((40_000, 41_999)));
        assert_eq!(wider((65_000, 65_199)), Some((63_536, 65_535)));
        assert_eq!(wider((32_768, 60_999)), Some((1_024, 65_535)));
        assert_eq!(wider((1_024, 65_535)), None);
    }
}

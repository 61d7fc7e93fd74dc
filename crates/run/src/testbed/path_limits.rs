//! Limits between load and servers: links, ports, CPU quotas.

use std::collections::{BTreeMap, BTreeSet};

use crate::testbed::Testbed;
use agent::AgentError;
use agent::wire::Order;
use experiment::{ResolvedCondition, SubjectSpec, Upstream};

const PORT_MIN: u16 = 1024;
const WIDEN_FACTOR: u32 = 10;

/// Servers under one CPU quota.
pub(crate) struct QuotaGroup {
    /// The host whose control group sets it.
    pub(crate) host: Option<String>,
    /// CPUs; `None` for no quota.
    pub(crate) quota: Option<f64>,
    pub(crate) servers: BTreeSet<String>,
}

/// The CPU quota of a server, which its agent sets.
pub(crate) struct ServerQuota {
    pub(crate) host: Option<String>,
    pub(crate) server: String,
    pub(crate) cpus: f64,
}

impl Testbed {
    /// The number of a host's ephemeral ports, if known and exhaustible: with `tcp_tw_reuse=1` a
    /// port is reused a second after its connection ended.
    pub(crate) fn ports_that_run_out(&self, host: Option<&str>) -> Option<u32> {
        let ports = self.hosts.get(host)?.outgoing_ports()?;
        let (low, high) = ports.range;
        (!ports.are_reused).then(|| u32::from(high - low) + 1)
    }

    /// A wider port range, for a host with a network of its own.
    pub(crate) fn wider_ports(&self, host: Option<&str>) -> Option<(u16, u16)> {
        let ports = self.hosts.get(host)?.outgoing_ports()?;
        widened(ports.range).filter(|_| ports.are_own)
    }

    /// The ephemeral ports of servers that are not on the load's host.
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

    /// The CPUs of a host's control group; empty for all.
    pub(crate) fn cpus_of(&self, host: Option<&str>) -> &[u32] {
        self.hosts.get(host).map_or(&[], |host| host.cpus())
    }

    /// A condition's servers by quota. Servers stay in their host's control group if that sets the
    /// quota, since a process loses it when moved to another one; servers without such a host come
    /// last.
    pub(crate) fn quota_groups(&self, resolved: &ResolvedCondition) -> Vec<QuotaGroup> {
        let mut all: Vec<QuotaGroup> = Vec::new();
        for server in &resolved.servers {
            let host = self.hosts.get(server.host.as_deref());
            let quota = host.and_then(|host| host.cpu_quota());
            let name = quota.and(host).map(|host| host.name().to_owned());
            match all.iter_mut().find(|one| one.host == name) {
                Some(one) => {
                    one.servers.insert(server.name.clone());
                }
                None => all.push(QuotaGroup {
                    host: name,
                    quota: quota.flatten(),
                    servers: BTreeSet::from([server.name.clone()]),
                }),
            }
        }
        all.sort_by_key(|one| one.host.is_none());
        all
    }

    /// Sets the CPU quotas of hosts, or restores the declared ones.
    pub(crate) fn set_host_quotas(
        &self,
        hosts: &[(String, f64)],
        set: bool,
    ) -> Result<(), AgentError> {
        for (name, cpus) in hosts {
            let host = self.hosts.get(Some(name));
            let host =
                host.ok_or_else(|| AgentError::Lost(format!("there is no host `{name}`")))?;
            host.set_cpu_quota(set.then_some(*cpus))
                .map_err(|e| AgentError::Failed(e.to_string()))?;
        }
        Ok(())
    }

    /// Sets the CPU quotas of servers, or ends them.
    pub(crate) fn set_server_quotas(
        &mut self,
        servers: &[ServerQuota],
        set: bool,
    ) -> Result<(), AgentError> {
        for one in servers {
            self.agent(one.host.as_deref())?.ask(&Order::Quota {
                server: one.server.clone(),
                cpus: set.then_some(one.cpus),
            })?;
        }
        Ok(())
    }

    /// The CPUs that programs on a host's machine may use.
    pub(crate) fn usable_cpus(&self, host: Option<&str>) -> Vec<u32> {
        let host = self.hosts.get(host);
        host.map(|host| host.usable_cpus()).unwrap_or_default()
    }

    /// The rate of the slowest link that every answer to a subject passes, bits per second; `None`
    /// if no link on the path has a rate.
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
            // Behind a server with several upstreams, paths differ.
            let server = resolved.servers.iter().find(|server| server.name == name);
            next = match server.map(|server| server.upstreams.as_slice()) {
                Some([Upstream::Server(only)]) => Some(only),
                _ => None,
            };
        }
        slowest.map(|rate| rate as f64)
    }
}

/// The range extended to up to [`WIDEN_FACTOR`] times its ports; `None` if there are no more.
fn widened((low, high): (u16, u16)) -> Option<(u16, u16)> {
    let wanted = (u32::from(high) - u32::from(low) + 1) * WIDEN_FACTOR;
    let last = (u32::from(low) + wanted - 1).min(u32::from(u16::MAX));
    let first = (last + 1).saturating_sub(wanted).max(u32::from(PORT_MIN));
    let first = u16::try_from(first).ok()?.min(low);
    let last = u16::try_from(last).ok()?;
    ((first, last) != (low, high)).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wider_range_contains_the_old_one_and_only_valid_ports() {
        assert_eq!(widened((40_000, 40_199)), Some((40_000, 41_999)));
        assert_eq!(widened((65_000, 65_199)), Some((63_536, 65_535)));
        assert_eq!(widened((32_768, 60_999)), Some((1_024, 65_535)));
        assert_eq!(widened((1_024, 65_535)), None);
    }
}

//! What lies between the load and the servers where hosts are apart: links, ports, bounds.

use std::collections::{BTreeMap, BTreeSet};

use crate::agents::Agents;
use agent::{self, AgentError, ends_of, range_of};
use experiment::{ResolvedCondition, SubjectSpec, Upstream};
use hosts::BuiltHost;

const PORT_RANGE: &str = "net.ipv4.ip_local_port_range";
const REUSE: &str = "net.ipv4.tcp_tw_reuse";
/// The first port that any program may have.
const FIRST_PORT: u16 = 1024;
/// How many times the ports a wider range has, where there are so many.
const WIDER: u32 = 10;

/// Servers whose CPU time is bounded together.
pub(super) struct Bounded {
    /// The host whose control group does it.
    pub(super) host: Option<String>,
    /// CPUs; `None` for no bound.
    pub(super) quota: Option<f64>,
    pub(super) servers: BTreeSet<String>,
}

impl Agents {
    /// A host that is a namespace of this machine.
    fn built(&self, host: Option<&str>) -> Option<&BuiltHost> {
        self.topology.as_ref()?.host(host?).ok()
    }

    /// The CPUs that a host's control group keeps its programs to; empty for all.
    pub(super) fn cpus_of(&self, host: Option<&str>) -> &[u32] {
        self.built(host).map_or(&[], |host| &host.spec.cpus)
    }

    /// How many ports a host's outgoing connections may have, where that is known and they run
    /// out: with `tcp_tw_reuse=1` a port is had again a second after its connection has ended.
    pub(super) fn ports_that_run_out(&self, host: Option<&str>) -> Option<u32> {
        let (range, reuse) = match self.is_world() {
            true => {
                let settings = &self.built(host)?.settings;
                let range = range_of(settings.get(PORT_RANGE)?)?;
                (range, settings.get(REUSE).cloned())
            }
            false => (agent::port_range()?, agent::port_reuse()),
        };
        let used_again = reuse.is_some_and(|value| value.trim() == "1");
        (!used_again).then_some(range)
    }

    /// A wider range for a host that has one of its own.
    pub(super) fn wider_ports(&self, host: Option<&str>) -> Option<(u16, u16)> {
        wider(ends_of(self.built(host)?.settings.get(PORT_RANGE)?)?)
    }

    /// The same for those of a resolved's servers that have other ports than the load.
    pub(super) fn ports_of_servers(&self, resolved: &ResolvedCondition) -> BTreeMap<String, u32> {
        let from = resolved.load.host.as_deref();
        resolved
            .servers
            .iter()
            .filter(|server| self.is_world() && server.host.as_deref() != from)
            .filter_map(|server| {
                let range = self.ports_that_run_out(server.host.as_deref())?;
                Some((server.name.clone(), range))
            })
            .collect()
    }

    /// The servers of a resolved by the host whose control group bounds their CPU time, which a
    /// process loses when it is put under another one, and that bound, CPUs; last, with no host,
    /// those that have no such host.
    pub(super) fn bounded(&self, resolved: &ResolvedCondition) -> Vec<Bounded> {
        let mut all: Vec<Bounded> = Vec::new();
        for server in &resolved.servers {
            let host = self.built(server.host.as_deref());
            let host = host.filter(|host| host.bounds_cpu_time());
            let name = host.map(|host| host.spec.name.clone());
            match all.iter_mut().find(|one| one.host == name) {
                Some(one) => {
                    one.servers.insert(server.name.clone());
                }
                None => all.push(Bounded {
                    host: name,
                    quota: host.and_then(|host| host.spec.quota),
                    servers: BTreeSet::from([server.name.clone()]),
                }),
            }
        }
        all.sort_by_key(|one| one.host.is_none());
        all
    }

    /// Bounds the CPU time of hosts to so many CPUs each, or gives back what they shall have.
    pub(super) fn bound_hosts(
        &self,
        hosts: &[(String, f64)],
        bounded: bool,
    ) -> Result<(), AgentError> {
        let Some(topology) = &self.topology else {
            return Ok(());
        };
        for (host, cpus) in hosts {
            topology
                .bound_cpu_time(host, bounded.then_some(*cpus))
                .map_err(|e| AgentError::Failed(e.to_string()))?;
        }
        Ok(())
    }

    /// The rate of the slowest link that every answer to a subject passes, bits per second; nothing
    /// where no link on the way has one.
    pub(super) fn slowest_link(
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
                let ends = [at, host].into_iter().filter_map(|host| self.built(host));
                let rates = ends.filter_map(|host| host.spec.link?.rate_bits_per_s);
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

    /// Gives every link with a rate so many times that; 1 gives back the one that it shall have.
    pub(super) fn scale_link_rates(&mut self, factor: f64) -> Result<(), AgentError> {
        match &mut self.topology {
            Some(topology) => topology
                .scale_rates(factor)
                .map_err(|e| AgentError::Failed(e.to_string())),
            None => Err(AgentError::Failed("there are no links".into())),
        }
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

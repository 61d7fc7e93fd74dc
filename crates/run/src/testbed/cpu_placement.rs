//! The CPUs of load and servers, the servers' start order, and their declared ports.

use std::net::TcpListener;

use experiment::{Experiment, ServerSpec, Upstream};
use readings::Placement;

/// Why the CPUs or ports that an experiment names cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PlacementError {
    #[error(
        "server `{server}` is to listen on port {port}, which is in use; stop what listens there, or remove `port` so that a free one is chosen"
    )]
    Port { server: String, port: u16 },
    #[error(
        "host `{host}` is bound to CPU {cpu}, which does not exist or may not be used here (available: {have})"
    )]
    Cpu {
        host: String,
        cpu: u32,
        have: String,
    },
}

/// The CPUs of the load, and of servers on hosts without CPUs of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuPlacement {
    /// CPUs of the load; empty for all.
    pub load_cpus: Vec<u32>,
    /// CPUs of servers whose host names none; empty for all.
    pub server_cpus: Vec<u32>,
    /// Whether no server shares the load's CPUs.
    pub load_alone: bool,
    /// Warnings about shared CPUs.
    pub warnings: Vec<String>,
    /// CPUs that the load's CPU is drawn from in each block; empty where the experiment binds the
    /// load or a server, or has no servers of its own.
    pub load_candidates: Vec<u32>,
}

impl CpuPlacement {
    /// Assigns load and servers to this machine's CPUs: the load gets its own if there are at least
    /// two.
    ///
    /// # Errors
    /// When a host is bound to a CPU that cannot be used.
    pub fn of(experiment: &Experiment) -> Result<Self, PlacementError> {
        let first = experiment.conditions().into_iter().next();
        let resolved = experiment.under(&first.unwrap_or_default());
        Self::from_host(experiment, resolved.load.host)
    }

    /// [`Self::of`] for a load on the given host.
    fn from_host(
        experiment: &Experiment,
        load_host: Option<String>,
    ) -> Result<Self, PlacementError> {
        let allowed = net::os::allowed_cpus().unwrap_or_default();
        for host in experiment.hosts.iter().filter(|host| !host.is_elsewhere()) {
            if let Some(&cpu) = host.cpus.iter().find(|cpu| !allowed.contains(cpu)) {
                let list: Vec<String> = allowed.iter().map(u32::to_string).collect();
                return Err(PlacementError::Cpu {
                    host: host.name.clone(),
                    cpu,
                    have: list.join(", "),
                });
            }
        }
        let cpus_of = |host: Option<&String>| {
            experiment
                .hosts
                .iter()
                .find(|one| Some(&one.name) == host)
                .map(|one| one.cpus.clone())
                .unwrap_or_default()
        };
        if experiment.hosts_are_machines() {
            return Ok(Self::on_machines(experiment, load_host.as_ref(), cpus_of));
        }
        let mut named_servers: Vec<u32> = experiment
            .servers
            .iter()
            .flat_map(|server| cpus_of(server.host.as_ref()))
            .collect();
        named_servers.sort_unstable();
        named_servers.dedup();
        let mut load_cpus = cpus_of(load_host.as_ref());
        let is_named = !load_cpus.is_empty();
        let is_free = !is_named && named_servers.is_empty() && !experiment.servers.is_empty();
        let load_candidates = if is_free { allowed.clone() } else { Vec::new() };
        if !is_named && allowed.len() > 1 {
            let mut last = allowed.iter().rev();
            load_cpus.extend(last.find(|cpu| !named_servers.contains(cpu)));
        }
        let loads = experiment.loads.iter();
        let of_loads: Vec<u32> = loads
            .flat_map(|one| cpus_of(one.load.host.as_ref()))
            .collect();
        let mut without_load = allowed.clone();
        without_load.retain(|cpu| !load_cpus.contains(cpu));
        let mut server_cpus = without_load.clone();
        server_cpus.retain(|cpu| !of_loads.contains(cpu));
        if server_cpus.is_empty() {
            server_cpus = without_load;
        }
        let mut warnings = Vec::new();
        let shared = load_cpus.iter().any(|cpu| named_servers.contains(cpu));
        if allowed.len() < 2 {
            warnings.push(
                "load and servers share the only CPU: they take CPU time from each other, and \
                 throughput and latency include the client's cost"
                    .to_string(),
            );
        } else if shared || load_cpus.is_empty() {
            warnings.push(
                "load and servers share a CPU, and take CPU time from each other".to_string(),
            );
        }
        Ok(Self {
            // Servers outside the experiment may be on any CPU, unless the load's were named.
            load_alone: warnings.is_empty()
                && !load_cpus.is_empty()
                && (!experiment.servers.is_empty() || is_named && !server_cpus.is_empty()),
            load_cpus,
            server_cpus,
            warnings,
            load_candidates,
        })
    }

    /// Where hosts are machines, only the CPUs that the experiment names are known.
    fn on_machines(
        experiment: &Experiment,
        load_host: Option<&String>,
        cpus_of: impl Fn(Option<&String>) -> Vec<u32>,
    ) -> Self {
        let load_cpus = cpus_of(load_host);
        let mut servers = experiment.servers.iter();
        let beside = servers.any(|server| server.host.as_ref() == load_host);
        let mut warnings = Vec::new();
        if beside {
            // Load and servers of one host have the same CPUs.
            let host = load_host.map_or("", String::as_str);
            warnings.push(format!(
                "load and servers share the CPUs of host `{host}`, and take CPU time from each other"
            ));
        }
        Self {
            load_alone: !beside && !load_cpus.is_empty(),
            load_cpus,
            server_cpus: Vec::new(),
            warnings,
            load_candidates: Vec::new(),
        }
    }

    /// The CPUs of the load and of these servers.
    pub(crate) fn of_servers(&self, servers: &[ServerSpec]) -> Placement {
        let cpus = |server: &ServerSpec| match server.cpus.is_empty() {
            true => self.server_cpus.clone(),
            false => server.cpus.clone(),
        };
        let of_each = servers.iter();
        Placement {
            client_cpus: self.load_cpus.clone(),
            server_cpus: of_each.map(|one| (one.name.clone(), cpus(one))).collect(),
        }
    }

    /// The placement for one block: where nothing binds the load, its CPU is drawn, since CPUs
    /// differ in other work such as interrupts. The servers get the others.
    pub(crate) fn drawn(&self, seed: u64) -> Self {
        let mut placement = self.clone();
        if self.load_candidates.len() > 1 {
            let mut random = fastrand::Rng::with_seed(seed ^ 0x0c90);
            let drawn = random.choice(&self.load_candidates);
            placement.load_cpus = drawn.into_iter().copied().collect();
            placement.server_cpus = self.load_candidates.clone();
            let load_cpus = &placement.load_cpus;
            placement.server_cpus.retain(|cpu| !load_cpus.contains(cpu));
        }
        placement
    }
}

/// The placements, by the load's host.
pub(crate) struct LoadHostPlacements {
    all: Vec<(Option<String>, CpuPlacement)>,
}

impl LoadHostPlacements {
    /// Finds the placements for every condition.
    ///
    /// # Errors
    /// When a host is bound to a CPU that cannot be used.
    pub(crate) fn of(experiment: &Experiment) -> Result<Self, PlacementError> {
        let mut all = vec![(None, CpuPlacement::of(experiment)?)];
        for condition in experiment.conditions() {
            let host = experiment.under(&condition).load.host;
            if host.is_some() && !all.iter().any(|(known, _)| *known == host) {
                let placement = CpuPlacement::from_host(experiment, host.clone())?;
                all.push((host, placement));
            }
        }
        Ok(Self { all })
    }

    pub(crate) fn first(&self) -> &CpuPlacement {
        &self.all[0].1
    }

    /// Warnings about the hosts of several loads, beyond those of the first placement.
    pub(crate) fn warnings_beside(&self, experiment: &Experiment) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let hosts = experiment.loads.iter().map(|one| one.load.host.clone());
        for host in hosts.filter(Option::is_some) {
            let placement = CpuPlacement::from_host(experiment, host);
            let warnings = placement.map(|one| one.warnings).unwrap_or_default();
            found.extend(warnings);
        }
        found.retain(|one| !self.first().warnings.contains(one));
        found.dedup();
        found
    }

    /// The placement for a load on the given host.
    pub(crate) fn from(&self, host: Option<&String>) -> &CpuPlacement {
        let found = self.all.iter().find(|(known, _)| known.as_ref() == host);
        &found.unwrap_or(&self.all[0]).1
    }
}

/// Keeps the calling thread, which only orchestrates, off the load's CPUs until dropped.
pub(crate) struct AffinityGuard {
    before: Vec<u32>,
}

impl AffinityGuard {
    pub(crate) fn of(placement: &CpuPlacement) -> Self {
        let before = net::os::allowed_cpus().unwrap_or_default();
        // Without server CPUs the load is on another machine.
        if placement.load_alone && !placement.server_cpus.is_empty() {
            // If this fails, the load's schedule lag shows the disturbance.
            let _ = net::os::bind_to_cpus(&placement.server_cpus);
        }
        Self { before }
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        let _ = net::os::bind_to_cpus(&self.before);
    }
}

/// The servers in a random order in which each comes after its upstreams. The start order
/// influences memory layout, CPUs and ports.
pub(crate) fn start_order<'a>(
    servers: &'a [ServerSpec],
    random: &mut fastrand::Rng,
) -> Vec<&'a ServerSpec> {
    let mut left: Vec<&ServerSpec> = servers.iter().collect();
    let mut order = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let waits = |server: &ServerSpec| {
            server.upstreams.iter().any(|upstream| {
                matches!(upstream, Upstream::Server(name) if left.iter().any(|one| one.name == *name))
            })
        };
        let can: Vec<usize> = (0..left.len()).filter(|&at| !waits(left[at])).collect();
        // A cycle was refused when the file was read; the declared order is the fallback.
        let at = random.choice(&can).copied().unwrap_or(0);
        order.push(left.remove(at));
    }
    order
}

/// Checks that the ports that the experiment names are free.
///
/// # Errors
/// When one is in use.
pub(crate) fn check_ports(experiment: &Experiment) -> Result<(), PlacementError> {
    for server in experiment.start_order() {
        if let Some(port) = server.port
            && !is_free(port)
        {
            return Err(PlacementError::Port {
                server: server.name.clone(),
                port,
            });
        }
    }
    Ok(())
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn server(name: &str, upstreams: &[&str]) -> ServerSpec {
        ServerSpec {
            name: name.to_owned(),
            recipe: "origin".to_owned(),
            host: None,
            cpus: Vec::new(),
            port: None,
            upstreams: upstreams
                .iter()
                .map(|name| Upstream::Server((*name).to_owned()))
                .collect(),
            params: BTreeMap::new(),
        }
    }

    #[test]
    fn servers_start_in_any_order_that_their_upstreams_allow() {
        let servers = [server("a", &[]), server("b", &[]), server("p", &["a"])];
        let mut random = fastrand::Rng::with_seed(5);
        let orders: BTreeSet<Vec<&str>> = (0..200)
            .map(|_| {
                let order = start_order(&servers, &mut random);
                order.into_iter().map(|one| one.name.as_str()).collect()
            })
            .collect();
        let all = BTreeSet::from([
            vec!["a", "b", "p"],
            vec!["a", "p", "b"],
            vec!["b", "a", "p"],
        ]);
        assert_eq!(orders, all);
    }

    #[test]
    fn the_loads_cpu_is_drawn_where_nothing_binds_it() {
        let mut placement = CpuPlacement {
            load_cpus: vec![1],
            server_cpus: vec![0],
            load_candidates: vec![0, 1],
            ..CpuPlacement::default()
        };
        let drawn: BTreeSet<(Vec<u32>, Vec<u32>)> = (0..50)
            .map(|seed| placement.drawn(seed))
            .map(|one| (one.load_cpus, one.server_cpus))
            .collect();
        assert_eq!(
            drawn,
            BTreeSet::from([(vec![0], vec![1]), (vec![1], vec![0])])
        );
        assert_eq!(placement.drawn(7), placement.drawn(7));
        placement.load_candidates.clear();
        assert_eq!(placement.drawn(7).load_cpus, [1]);
    }
}

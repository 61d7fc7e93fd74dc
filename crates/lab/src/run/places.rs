//! Which CPUs and ports the programs of a run get.

use std::net::TcpListener;

use crate::experiment::Experiment;
use crate::run::RunError;

/// The CPUs of the load and of servers that no host binds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// CPUs of the load; empty leaves it free.
    pub load_cpus: Vec<u32>,
    /// CPUs of servers whose host names none; empty leaves them free.
    pub server_cpus: Vec<u32>,
    /// Whether the load's CPUs are its own.
    pub load_alone: bool,
    /// What the reader of the result should know about them.
    pub warnings: Vec<String>,
}

impl Places {
    /// Finds places on this machine: the load gets a CPU of its own where there is more than one.
    ///
    /// # Errors
    /// When a host is bound to a CPU that cannot be used.
    pub fn of(experiment: &Experiment) -> Result<Self, RunError> {
        let first = experiment.conditions().into_iter().next();
        let setting = experiment.under(&first.unwrap_or_default());
        Self::from_host(experiment, setting.load.host)
    }

    /// The same for a load that is made on a host.
    fn from_host(experiment: &Experiment, load_host: Option<String>) -> Result<Self, RunError> {
        let have = net::os::allowed_cpus().unwrap_or_default();
        for host in &experiment.hosts {
            if let Some(&cpu) = host.cpus.iter().find(|cpu| !have.contains(cpu)) {
                let list: Vec<String> = have.iter().map(u32::to_string).collect();
                return Err(RunError::Cpu {
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
        let mut named_servers: Vec<u32> = experiment
            .servers
            .iter()
            .flat_map(|server| cpus_of(server.host.as_ref()))
            .collect();
        named_servers.sort_unstable();
        named_servers.dedup();
        let mut load_cpus = cpus_of(load_host.as_ref());
        if load_cpus.is_empty() {
            let free: Vec<u32> = have
                .iter()
                .copied()
                .filter(|cpu| !named_servers.contains(cpu))
                .collect();
            if have.len() > 1 {
                load_cpus.extend(free.last().copied());
            }
        }
        let server_cpus: Vec<u32> = have
            .iter()
            .copied()
            .filter(|cpu| !load_cpus.contains(cpu))
            .collect();
        let mut warnings = Vec::new();
        let shared = load_cpus.iter().any(|cpu| named_servers.contains(cpu));
        if have.len() < 2 {
            warnings.push(
                "the load shares its only CPU with the servers: what it takes, they lack; \
                 throughput and latency are those of the pair"
                    .to_string(),
            );
        } else if shared || load_cpus.is_empty() {
            warnings.push(
                "the load and the servers share a CPU: what the load takes, the servers lack"
                    .to_string(),
            );
        }
        Ok(Self {
            // Servers that run already may be on any CPU.
            load_alone: warnings.is_empty()
                && !load_cpus.is_empty()
                && !experiment.servers.is_empty(),
            load_cpus,
            server_cpus,
            warnings,
        })
    }
}

/// Places by the host that the load is made on.
pub(super) struct Vantages {
    all: Vec<(Option<String>, Places)>,
}

impl Vantages {
    /// Finds places for every condition.
    ///
    /// # Errors
    /// When a host is bound to a CPU that cannot be used.
    pub(super) fn of(experiment: &Experiment) -> Result<Self, RunError> {
        let mut all = vec![(None, Places::of(experiment)?)];
        for condition in experiment.conditions() {
            let host = experiment.under(&condition).load.host;
            if host.is_some() && !all.iter().any(|(known, _)| *known == host) {
                let places = Places::from_host(experiment, host.clone())?;
                all.push((host, places));
            }
        }
        Ok(Self { all })
    }

    /// Those of the first condition.
    pub(super) fn first(&self) -> &Places {
        &self.all[0].1
    }

    /// Those of a load that is made on a host.
    pub(super) fn from(&self, host: Option<&String>) -> &Places {
        let found = self.all.iter().find(|(known, _)| known.as_ref() == host);
        &found.unwrap_or(&self.all[0]).1
    }
}

/// Keeps the calling thread, which only looks on, off the load's CPUs until it is dropped.
pub(super) struct OutOfTheWay {
    before: Vec<u32>,
}

impl OutOfTheWay {
    pub(super) fn of(places: &Places) -> Self {
        let before = net::os::allowed_cpus().unwrap_or_default();
        if places.load_alone && !places.server_cpus.is_empty() {
            // Where it cannot be done the load is disturbed a little, and its lag shows it.
            let _ = net::os::bind_to_cpus(&places.server_cpus);
        }
        Self { before }
    }
}

impl Drop for OutOfTheWay {
    fn drop(&mut self) {
        let _ = net::os::bind_to_cpus(&self.before);
    }
}

/// Looks whether the ports that the experiment names are free.
///
/// # Errors
/// When one is not.
pub(super) fn check_ports(experiment: &Experiment) -> Result<(), RunError> {
    for server in experiment.start_order() {
        if let Some(port) = server.port
            && !is_free(port)
        {
            return Err(RunError::Port {
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

/// A free port below the range that the kernel gives to outgoing connections, so that the load's
/// own connections cannot take it.
pub(super) fn free_port(random: &mut fastrand::Rng, apart: bool) -> u16 {
    for _ in 0..1_000 {
        let port = random.u16(18_000..32_000);
        // What is apart from this machine has all ports to itself.
        if apart || is_free(port) {
            return port;
        }
    }
    // All taken: the server will say so itself.
    18_000
}

//! What servers did on other machines while a load was made on one.

use std::collections::{BTreeMap, BTreeSet};

use readings::Probed;

use crate::testbed::Testbed;
use agent::wire::{Answer, Driven, Loaded, Order};
use agent::{AgentError, Samples, Window};

/// Machines that note what their servers use while a load is made on another.
pub(crate) struct Watching {
    /// How far the load's clock was ahead when that began; hosts and theirs.
    load_ahead_ns: i64,
    hosts: Vec<(String, i64)>,
}

/// What was noted, by the clock of the machine that made the load.
#[derive(Default)]
pub(crate) struct Noted {
    all: Vec<NotedOf>,
}

/// What one machine has noted.
struct NotedOf {
    host: String,
    samples: Samples,
    /// How far its clock is ahead of the load's.
    ahead_ns: i64,
    /// Whether its network is none that another has counted.
    network_counts: bool,
    /// The same of the machine.
    machine_counts: bool,
}

impl Noted {
    fn cpu_s(&self, windows: &[Window]) -> BTreeMap<String, f64> {
        let mut used = BTreeMap::new();
        for one in &self.all {
            used.extend(one.samples.cpu_s_in(&shifted(windows, one.ahead_ns)));
        }
        used
    }

    fn accepted(&self, windows: &[Window]) -> Option<u64> {
        let counted = self.all.iter().filter(|one| one.network_counts);
        let counts = counted.map(|one| {
            let windows = shifted(windows, one.ahead_ns);
            one.samples.accepted_in(&windows)
        });
        counts.sum()
    }

    /// Adds what was seen there to what was seen where the load was made.
    fn add_seen(&self, number: usize, probed: &mut Option<Probed>) {
        let Some(probed) = probed else {
            return;
        };
        for one in &self.all {
            let Some(seen) = one.samples.probed.get(number).cloned() else {
                continue;
            };
            probed.looks += seen.looks;
            probed.cpu_s += seen.cpu_s;
            probed.servers.extend(seen.servers);
            if one.network_counts {
                probed.networks.extend(seen.networks);
            }
            if one.machine_counts {
                probed.others.insert(one.host.clone(), seen.machine);
            }
        }
    }

    /// Adds it to what a load has measured.
    pub(crate) fn add_to(&self, loaded: &mut Loaded) {
        for (used, windows) in loaded.cpu_s.iter_mut().zip(&loaded.windows) {
            used.extend(self.cpu_s(windows));
        }
        for (accepted, segments) in loaded.accepted.iter_mut().zip(&loaded.segments) {
            *accepted = accepted.zip(self.accepted(segments)).map(|(a, b)| a + b);
        }
        for (number, probed) in loaded.probed.iter_mut().enumerate() {
            self.add_seen(number, probed);
        }
    }

    /// Adds it to what a driver's run came to.
    pub(crate) fn add_to_driven(&self, driven: &mut Driven) {
        let window = [driven.window];
        driven.servers_cpu_s.extend(self.cpu_s(&window));
        let accepted = driven.accepted.zip(self.accepted(&window));
        driven.accepted = accepted.map(|(a, b)| a + b);
        self.add_seen(0, &mut driven.probed);
    }
}

/// Windows by a clock that is ahead by so much.
fn shifted(windows: &[Window], ahead_ns: i64) -> Vec<Window> {
    windows.iter().map(|one| one.shifted(ahead_ns)).collect()
}

/// The windows of each reading that were looked at where the load was made.
pub(crate) fn looked_at(loaded: &Loaded) -> Vec<Vec<Window>> {
    let readings = loaded.windows.iter().zip(&loaded.looked_at);
    let chosen = readings.map(|(windows, looked_at)| {
        let both = windows.iter().zip(looked_at);
        both.filter(|(_, looked_at)| **looked_at)
            .map(|(window, _)| *window)
            .collect()
    });
    chosen.collect()
}

impl Testbed {
    /// Has the machines that the load is not made on sample their servers.
    pub(crate) fn watch_far(&mut self, from: Option<&str>) -> Result<Option<Watching>, AgentError> {
        let far = self.hosts_apart_from(from);
        if far.is_empty() {
            return Ok(None);
        }
        let load_ahead_ns = self.agent(from)?.clock()?.monotonic_ahead_ns;
        let mut hosts = Vec::new();
        for host in far {
            let agent = self.agent(Some(&host))?;
            let ahead_ns = agent.clock()?.monotonic_ahead_ns;
            agent.ask(&Order::Sample)?;
            hosts.push((host, ahead_ns));
        }
        Ok(Some(Watching {
            load_ahead_ns,
            hosts,
        }))
    }

    /// Ends that. `windows` are those of each reading that were looked at.
    pub(crate) fn noted(
        &mut self,
        from: Option<&str>,
        watching: Option<Watching>,
        windows: &[Vec<Window>],
    ) -> Result<Noted, AgentError> {
        let Some(watching) = watching else {
            return Ok(Noted::default());
        };
        // Clocks run at slightly different rates: the middle of before and after counts.
        let middle = |before: i64, after: i64| before + (after - before) / 2;
        let agent = self.agent(from)?;
        let load_ahead_ns = middle(watching.load_ahead_ns, agent.clock()?.monotonic_ahead_ns);
        let mut networks = BTreeSet::from([agent.network().to_owned()]);
        let mut machines = BTreeSet::from([machine_of(agent.network())]);
        let mut noted = Noted::default();
        for (host, before_ns) in watching.hosts {
            let agent = self.agent(Some(&host))?;
            let ahead_ns = middle(before_ns, agent.clock()?.monotonic_ahead_ns) - load_ahead_ns;
            let windows = windows.iter().map(|of_one| shifted(of_one, ahead_ns));
            let order = Order::Sampled {
                windows: windows.collect(),
            };
            let Answer::Samples(samples) = agent.ask(&order)? else {
                return Err(AgentError::Lost("it has noted nothing".into()));
            };
            let network = agent.network().to_owned();
            noted.all.push(NotedOf {
                host,
                samples: *samples,
                ahead_ns,
                machine_counts: machines.insert(machine_of(&network)),
                network_counts: networks.insert(network),
            });
        }
        Ok(noted)
    }
}

/// The part of a network's name that tells its machine.
fn machine_of(network: &str) -> String {
    let machine = network
        .split_once('/')
        .map_or(network, |(machine, _)| machine);
    machine.to_owned()
}

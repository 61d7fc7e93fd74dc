//! Hosts that are machines, behind ssh or this one: their agents, and what is on them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::RunError;
use crate::agents::Agents;
use agent::wire::{Answer, DriveOrder, FindOrder, Order};
use agent::{Agent, AgentError, Clock, Far, Program};
use experiment::Experiment;
use experiment::Recipes;
use experiment::driver::Driver;
use experiment::recipe::Recipe;
use readings::HostSpec;

/// The pauses before further attempts to reach a machine whose connection was lost.
const AGAIN_AFTER: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
];
/// A program that does not tell its version by then is not asked further, ms.
const VERSION_LONGEST_MS: u64 = 3_000;

/// Machines of an experiment.
pub(super) struct Machines {
    hosts: BTreeMap<String, Machine>,
}

struct Machine {
    spec: HostSpec,
    /// Why there is no agent on it.
    lost: Option<String>,
    clock: Clock,
    /// As it describes itself.
    about: Value,
}

impl Machines {
    /// The address by which a host's servers are reached.
    pub(super) fn address(&self, host: &str) -> Option<IpAddr> {
        self.hosts.get(host)?.spec.address
    }

    /// Why a host has no agent.
    pub(super) fn why_lost(&self, host: &str) -> String {
        let lost = self.hosts.get(host).and_then(|one| one.lost.clone());
        lost.unwrap_or_else(|| format!("there is none on host `{host}`"))
    }

    /// The hosts, for `hosts.json`.
    pub(super) fn described(&self) -> Value {
        let hosts: BTreeMap<&str, Value> = self
            .hosts
            .iter()
            .map(|(name, one)| {
                let described = json!({
                    "ssh": one.spec.ssh,
                    "address": one.spec.address,
                    "cpus": one.spec.cpus,
                    "clock_ahead_s": one.clock.ahead_ns as f64 / 1e9,
                    "clock_round_trip_s": one.clock.round_trip_ns as f64 / 1e9,
                    "machine": one.about,
                });
                (name.as_str(), described)
            })
            .collect();
        json!(hosts)
    }
}

/// Opens the agent of one machine and asks it what it is.
fn open(spec: &HostSpec, weigh: &Path) -> Result<(Agent, Clock, Value), AgentError> {
    let mut agent = match &spec.ssh {
        None => Agent::start(weigh)?,
        Some(destination) => {
            let path = spec.ssh_binary.as_deref().unwrap_or(weigh);
            let program = Program::read(path).map_err(AgentError::Failed)?;
            let far = Far {
                host: &spec.name,
                destination,
            };
            let mut agent = Agent::start_over_ssh(far, &program)?;
            agent.ask(&Order::Sweep)?;
            agent
        }
    };
    let clock = agent.clock()?;
    let Answer::Machine { machine } = agent.ask(&Order::Describe)? else {
        return Err(AgentError::Lost("it does not describe itself".into()));
    };
    Ok((agent, clock, machine))
}

/// The reason alone, without the words that an error begins with.
fn reason(error: AgentError) -> String {
    match error {
        AgentError::Lost(why) | AgentError::Failed(why) => why,
    }
}

impl Agents {
    /// Starts an agent on each machine.
    pub(super) fn on_machines(weigh: &Path, experiment: &Experiment) -> Result<Self, RunError> {
        let mut agents = BTreeMap::new();
        let mut hosts = BTreeMap::new();
        for spec in &experiment.hosts {
            let (agent, clock, about) = open(spec, weigh).map_err(|error| RunError::Host {
                host: spec.name.clone(),
                why: reason(error),
            })?;
            agents.insert(spec.name.clone(), agent);
            let machine = Machine {
                spec: spec.clone(),
                lost: None,
                clock,
                about,
            };
            hosts.insert(spec.name.clone(), machine);
        }
        Ok(Self::with_machines(agents, Machines { hosts }))
    }

    /// Starts them all afresh after one was lost. A machine that cannot be reached, after some
    /// attempts, is left out: what needs it fails, and is tried again by the next such call.
    pub(super) fn on_machines_again(mut self, weigh: &Path, stop: &AtomicBool) -> Self {
        // What is left of them goes first: servers have the same names again.
        let Some(mut machines) = self.take_all() else {
            return self;
        };
        let mut agents = BTreeMap::new();
        for (name, machine) in &mut machines.hosts {
            let mut opened = open(&machine.spec, weigh);
            for pause in AGAIN_AFTER {
                if opened.is_ok() || !wait(pause, stop) {
                    break;
                }
                opened = open(&machine.spec, weigh);
            }
            match opened {
                Ok((agent, clock, about)) => {
                    machine.lost = None;
                    machine.clock = clock;
                    machine.about = about;
                    agents.insert(name.clone(), agent);
                }
                Err(error) => {
                    machine.lost = Some(format!(
                        "host `{name}` cannot be reached any more: {}",
                        reason(error)
                    ));
                }
            }
        }
        Self::with_machines(agents, machines)
    }

    /// What of an experiment's needs is missing on machines behind ssh, a sentence each.
    pub(super) fn missing(
        &mut self,
        experiment: &Experiment,
        recipes: &Recipes,
    ) -> Result<Vec<String>, AgentError> {
        let mut sentences = Vec::new();
        let loads: BTreeSet<Option<String>> = experiment
            .conditions()
            .iter()
            .map(|condition| experiment.under(condition).load.host)
            .collect();
        let far = experiment.hosts.iter().filter(|host| host.ssh.is_some());
        for host in far {
            let name = Some(host.name.as_str());
            let mut wanted = Vec::new();
            for server in experiment.start_order() {
                let recipe = recipes.get(&server.recipe);
                if server.host.as_deref() == name {
                    wanted.extend(recipe.map(wants));
                }
            }
            if loads.contains(&Some(host.name.clone())) {
                let drivers = recipes.drivers_of(experiment);
                wanted.extend(drivers.into_iter().map(driver_wants));
            }
            for order in wanted {
                let (_, missing) = self.find(name, order)?;
                let sentence = missing.map(|it| format!("host `{}`: {it}", host.name));
                sentences.extend(sentence.filter(|one| !sentences.contains(one)));
            }
        }
        Ok(sentences)
    }

    fn find(
        &mut self,
        host: Option<&str>,
        order: FindOrder,
    ) -> Result<(BTreeMap<String, PathBuf>, Option<String>), AgentError> {
        match self.of(host)?.ask(&Order::Find(order))? {
            Answer::Found { programs, missing } => Ok((programs, missing)),
            other => Err(AgentError::Lost(format!("unexpected answer: {other:?}"))),
        }
    }

    /// The programs of a recipe on the machine of a host.
    ///
    /// # Errors
    /// When something is missing there.
    pub(super) fn programs(
        &mut self,
        host: Option<&str>,
        recipe: &Recipe,
    ) -> Result<BTreeMap<String, PathBuf>, AgentError> {
        let (programs, missing) = if self.is_elsewhere(host) {
            self.find(host, wants(recipe))?
        } else {
            let available = recipe.available();
            let missing = available.sentence();
            (available.programs, missing)
        };
        missing.map_or(Ok(programs), |it| Err(AgentError::Failed(it)))
    }

    /// The programs of a driver there.
    pub(super) fn driver_programs(
        &mut self,
        host: Option<&str>,
        driver: &Driver,
    ) -> Result<BTreeMap<String, PathBuf>, AgentError> {
        if self.is_elsewhere(host) {
            return Ok(self.find(host, driver_wants(driver))?.0);
        }
        Ok(driver.available().programs)
    }

    /// A driver's version there.
    pub(super) fn driver_version(
        &mut self,
        host: Option<&str>,
        driver: &Driver,
        weigh: &Path,
    ) -> Option<String> {
        if !self.is_elsewhere(host) {
            return driver.version(weigh);
        }
        let programs = self.driver_programs(host, driver).ok()?;
        let weigh = self.program(host)?;
        let words = driver.version_words(&programs, &weigh)?;
        driver.version_in(&self.printed(host, words)?)
    }

    /// The versions of servers on machines behind ssh, by recipe; `configurations` are those of
    /// `hosts.json`.
    pub(super) fn versions(
        &mut self,
        configurations: &BTreeMap<String, Value>,
        recipes: &Recipes,
    ) -> BTreeMap<String, Option<String>> {
        let mut versions = BTreeMap::new();
        for configuration in configurations.values() {
            let (host, recipe) = (&configuration["host"], &configuration["recipe"]);
            let (Some(host), Some(name)) = (host.as_str(), recipe.as_str()) else {
                continue;
            };
            if !self.is_elsewhere(Some(host)) || versions.contains_key(name) {
                continue;
            }
            let words = serde_json::from_value(configuration["version_command"].clone()).ok();
            let printed = words.and_then(|words| self.printed(Some(host), words));
            let version = printed
                .zip(recipes.get(name))
                .and_then(|(text, recipe)| recipe.version_in(&text));
            versions.insert(name.to_owned(), version);
        }
        versions
    }

    /// What a command prints there.
    fn printed(&mut self, host: Option<&str>, command: Vec<String>) -> Option<String> {
        let order = DriveOrder {
            command,
            env: Vec::new(),
            cpus: Vec::new(),
            limit_ms: VERSION_LONGEST_MS,
            watch: Vec::new(),
            watch_others: Vec::new(),
        };
        let driven = self.of(host).ok()?.drive(order, &AtomicBool::new(false));
        driven.ok().map(|driven| driven.output + &driven.errors)
    }

    /// Whether a server could listen there. Where hosts are no machines, that is known without
    /// asking.
    pub(super) fn is_free(&mut self, host: Option<&str>, address: SocketAddr) -> bool {
        match self.of(host).map(|it| it.ask(&Order::IsFree { address })) {
            Ok(Ok(Answer::Free { free })) => free,
            // Then the server says so itself.
            _ => true,
        }
    }
}

fn wants(recipe: &Recipe) -> FindOrder {
    FindOrder {
        programs: recipe.programs.clone(),
        files: recipe
            .needs
            .iter()
            .map(|need| (need.file.clone(), need.package.clone()))
            .collect(),
        packages: recipe.packages.clone(),
        homepage: recipe.homepage.clone(),
    }
}

fn driver_wants(driver: &Driver) -> FindOrder {
    FindOrder {
        programs: driver.programs.clone(),
        files: Vec::new(),
        packages: driver.packages.clone(),
        homepage: driver.homepage.clone(),
    }
}

/// Waits, unless it is stopped meanwhile.
fn wait(time: Duration, stop: &AtomicBool) -> bool {
    let end = Instant::now() + time;
    while Instant::now() < end {
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        sleep(Duration::from_millis(20));
    }
    true
}

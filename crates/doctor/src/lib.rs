//! What on this machine would spoil a measurement, each with the command that fixes it.
//!
//! [`examine`] reads the machine once (`/proc`, `/sys`, a fifth of a second of what its CPUs do, and
//! a second of what a polling thread misses), and judges what it read. `machine` reads, its `proc`
//! parses the kernel's texts, and `findings` are pure functions of that. Every threshold is explained
//! in `docs/src/how-to/doctor.md`. Nothing is changed: the commands are for the reader.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod findings;
pub mod listing;
mod machine;
mod missing;
mod needs;

#[cfg(test)]
mod fixtures;

use std::path::Path;

use serde::Serialize;

use experiment::{Experiment, Recipes};
use findings::{cpus, hosted, installed, instructions, network, pauses, resources};
use machine::Machine;
pub use missing::missing;
use needs::Needs;

/// How much a finding matters, from nothing to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// As it should be.
    Fine,
    /// Worth knowing; the result stands.
    Note,
    /// It shifts or blurs the result.
    Warning,
    /// The experiment cannot run like this.
    Blocker,
}

impl Level {
    /// The word, as in the JSON document.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fine => "fine",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Blocker => "blocker",
        }
    }
}

/// What a finding is about. There can be several findings on one topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// Programs and files that servers need.
    Installed,
    /// Ports that the experiment names.
    FixedPort,
    /// How many CPUs there are, and who gets which.
    Cpus,
    /// Hardware threads that share a core.
    CoreSharing,
    /// A limit of CPU time, as containers have.
    CpuQuota,
    /// How the clock rate follows the load.
    Governor,
    /// Clock rates that depend on heat.
    Turbo,
    /// A virtual machine, and what its host takes.
    Virtualisation,
    /// Times in which a runnable thread does not have its CPU.
    Pauses,
    /// What else runs now.
    OtherWork,
    /// What ran in the last minute.
    LoadAverage,
    /// Memory that is left.
    Memory,
    /// Memory that was moved to disk.
    Swap,
    /// What the kernel reads the time from.
    Clock,
    /// The kernel interface of the load engine.
    EventLoop,
    /// The limit of open files and connections.
    OpenFiles,
    /// Connections that wait for a server to accept them.
    AcceptQueue,
    /// Connections that are half open.
    SynBacklog,
    /// Ports for outgoing connections.
    LocalPorts,
    /// Ports of connections that were closed.
    TimeWait,
    /// The kernel's table of connections.
    Conntrack,
    /// Other kernel settings that the experiment recommends.
    Sysctl,
    /// Network namespaces and virtual interfaces.
    Namespaces,
    /// Counters of instructions.
    Instructions,
    /// A runner of continuous integration.
    Runner,
}

impl Topic {
    /// The topic in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::FixedPort => "fixed port",
            Self::Cpus => "CPUs",
            Self::CoreSharing => "core sharing",
            Self::CpuQuota => "CPU quota",
            Self::Governor => "governor",
            Self::Turbo => "turbo",
            Self::Virtualisation => "virtualisation",
            Self::Pauses => "pauses",
            Self::OtherWork => "other work",
            Self::LoadAverage => "load average",
            Self::Memory => "memory",
            Self::Swap => "swap",
            Self::Clock => "clock",
            Self::EventLoop => "event loop",
            Self::OpenFiles => "open files",
            Self::AcceptQueue => "accept queue",
            Self::SynBacklog => "SYN backlog",
            Self::LocalPorts => "local ports",
            Self::TimeWait => "time-wait",
            Self::Conntrack => "conntrack",
            Self::Sysctl => "sysctl",
            Self::Namespaces => "namespaces",
            Self::Instructions => "instructions",
            Self::Runner => "CI runner",
        }
    }
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub topic: Topic,
    /// How much it matters.
    pub level: Level,
    /// What was found, as a phrase.
    pub found: String,
    /// What is wanted, as a phrase.
    pub wanted: String,
    /// What it does to a measurement, in a sentence or two.
    pub why: String,
    /// The command that fixes it, to be pasted into a shell; it holds until the machine reboots.
    /// Absent where nothing needs fixing, or no command can.
    pub mend: Option<String>,
    /// Of a blocker, whether a run would surely fail; otherwise some of its servers may work.
    #[serde(skip)]
    pub is_certain: bool,
}

impl Finding {
    fn new(
        topic: Topic,
        level: Level,
        found: impl Into<String>,
        wanted: impl Into<String>,
        why: impl Into<String>,
    ) -> Self {
        Self {
            topic,
            level,
            found: found.into(),
            wanted: wanted.into(),
            why: why.into(),
            mend: None,
            is_certain: false,
        }
    }

    fn mend(mut self, command: impl Into<String>) -> Self {
        self.mend = Some(command.into());
        self
    }
}

/// All findings on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Examination {
    /// The name of the experiment that the machine was examined for.
    pub experiment: Option<String>,
    /// The highest level of the findings.
    pub worst: Level,
    /// The findings, the worst first.
    pub findings: Vec<Finding>,
}

impl Examination {
    /// Puts findings in order.
    pub fn of(experiment: Option<String>, mut findings: Vec<Finding>) -> Self {
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
        Self {
            experiment,
            worst: findings
                .first()
                .map_or(Level::Fine, |finding| finding.level),
            findings,
        }
    }

    /// How many findings are of a level.
    pub fn count(&self, level: Level) -> usize {
        self.findings.iter().filter(|f| f.level == level).count()
    }
}

/// Examines this machine, for an experiment or in general. Takes a little more than a second,
/// in which all CPUs are busy.
///
/// What this kernel lacks, or the user may not read, is skipped.
///
/// Drivers are asked for their versions; `weigh` is the running program.
pub fn examine(experiment: Option<&Experiment>, recipes: &Recipes, weigh: &Path) -> Examination {
    judge(&Machine::read(), experiment, recipes, weigh)
}

/// The limits of this machine that an experiment would meet, of the blockers that [`examine`] finds:
/// what is asked before a run. It takes no time worth mentioning. What is missing, and CPUs that do not
/// exist, a run reports by itself. Nothing of other machines.
pub fn blockers(experiment: &Experiment) -> Vec<Finding> {
    if experiment.hosts_are_machines() {
        return Vec::new();
    }
    let machine = Machine::read_limits();
    let needs = Needs::of(experiment, &machine.cpus);
    let mut findings = resources::findings(&machine, &needs);
    findings.extend(network::findings(&machine, &needs));
    // Those of namespaces are reported by the run.
    findings.retain(|one| one.level == Level::Blocker && one.topic != Topic::Namespaces);
    findings
}

fn judge(
    machine: &Machine,
    experiment: Option<&Experiment>,
    recipes: &Recipes,
    weigh: &Path,
) -> Examination {
    let needs = match experiment {
        Some(experiment) => Needs::of(experiment, &machine.cpus),
        None => Needs::default(),
    };
    let mut findings = match experiment {
        Some(experiment) => installed::of_experiment(experiment, recipes, machine.root, weigh),
        None => installed::in_general(recipes, machine.root),
    };
    findings.extend(installed::ports(&needs.ports));
    findings.extend(cpus::findings(machine, &needs));
    findings.extend(hosted::finding(machine));
    findings.extend(machine.pauses.map(pauses::finding));
    findings.extend(resources::findings(machine, &needs));
    findings.extend(instructions::finding(machine));
    findings.extend(network::findings(machine, &needs));
    Examination::of(experiment.map(|e| e.name.clone()), findings)
}

/// `sudo ` where the caller is not root.
fn sudo(root: bool) -> &'static str {
    if root { "" } else { "sudo " }
}

/// A word as a shell takes it, in quotes where it needs them.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The command that gives a kernel setting a value.
fn set_sysctl(root: bool, name: &str, value: &str) -> String {
    format!(
        "{}sysctl -w {}",
        sudo(root),
        quoted(&format!("{name}={value}"))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_can_be_examined() {
        let recipes = Recipes::embedded().unwrap();
        let examination = examine(None, &recipes, Path::new("weigh"));
        for topic in [Topic::Cpus, Topic::OpenFiles, Topic::EventLoop] {
            assert!(
                examination.findings.iter().any(|f| f.topic == topic),
                "nothing is said on {topic:?}: {examination:#?}"
            );
        }
        let levels: Vec<Level> = examination.findings.iter().map(|f| f.level).collect();
        assert!(levels.is_sorted_by(|a, b| a >= b), "{levels:?}");
        assert_eq!(examination.worst, levels[0]);
    }

    #[test]
    fn the_experiments_of_the_catalogue_can_be_examined_for() {
        let (machine, recipes) = (Machine::read(), Recipes::embedded().unwrap());
        for name in experiment::catalogue::names() {
            let experiment =
                experiment::catalogue::open_experiment(name, &[], false, &recipes).unwrap();
            let examination = judge(&machine, Some(&experiment), &recipes, Path::new("weigh"));
            assert_eq!(examination.experiment.as_deref(), Some(name));
            // Findings that a command can fix have that command.
            for finding in &examination.findings {
                assert!(!finding.found.is_empty() && !finding.why.is_empty());
                assert!(finding.level > Level::Fine || finding.mend.is_none());
            }
        }
    }

    #[test]
    fn the_document_has_words_for_levels_and_topics() {
        let finding =
            Finding::new(Topic::AcceptQueue, Level::Warning, "128", "4096", "it is").mend("true");
        let examination = Examination::of(Some("x".into()), vec![finding]);
        assert_eq!(
            serde_json::to_value(&examination).unwrap(),
            serde_json::json!({
                "experiment": "x",
                "worst": "warning",
                "findings": [{
                    "topic": "accept_queue",
                    "level": "warning",
                    "found": "128",
                    "wanted": "4096",
                    "why": "it is",
                    "mend": "true",
                }],
            })
        );
    }

    #[test]
    fn commands_can_be_pasted_whatever_an_experiment_holds() {
        assert_eq!(
            set_sysctl(true, "net.core.somaxconn", "65535"),
            "sysctl -w net.core.somaxconn=65535"
        );
        assert_eq!(
            set_sysctl(false, "net.ipv4.ip_local_port_range", "32768 60999"),
            "sudo sysctl -w 'net.ipv4.ip_local_port_range=32768 60999'"
        );
        assert_eq!(
            set_sysctl(true, "x", "1; rm 'y'"),
            "sysctl -w 'x=1; rm '\\''y'\\'''"
        );
    }
}

//! What will be measured, in which order, and how long it will take.

mod estimate;
pub mod within;
mod words;

pub use estimate::SEARCH;

use std::time::Duration;

use readings::Condition;

use crate::spec::Experiment;

/// Most groups that [`Plan::describe`] lists.
const GROUPS_SHOWN: usize = 30;

/// All trials of a run, in the order in which they are made.
///
/// The same experiment and seed give the same plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The experiment's title.
    pub title: String,
    /// The seed of the order.
    pub seed: u64,
    /// The baseline subject.
    pub baseline: String,
    /// Every condition, as declared.
    pub conditions: Vec<Condition>,
    /// The blocks, in the order in which they are made.
    pub blocks: Vec<Block>,
    /// The servers to start for each group, each after its upstreams.
    pub servers: Vec<String>,
    /// Servers of the experiment that no subject reaches; they are not started.
    pub unused_servers: Vec<String>,
    /// About how long the blocks will take.
    pub estimated: Duration,
    /// About how long the searches for bottlenecks after them will take.
    pub searches: Duration,
    /// Whether the estimate is a lower limit, as with several loads: the time between their slices
    /// depends on how long answers take.
    pub is_least: bool,
    /// What will be compared, each in a phrase; empty if nothing will be.
    pub compared: Vec<String>,
    /// What makes the load: each driver with its parameters, and the subjects that it is for.
    pub drivers: Vec<DriverUse>,
}

/// What makes the load of some subjects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverUse {
    /// The driver's name.
    pub name: String,
    /// Its name, and its parameters that are not at their defaults.
    pub label: String,
    /// The subjects that it is for, under all conditions or some; empty where it is for all.
    pub subjects: Vec<String>,
}

/// Everything started afresh and measured once under each condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Its number, from 1.
    pub number: u32,
    /// Its conditions, in random order.
    pub groups: Vec<Group>,
}

/// One condition in one block: all its subjects are up at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub condition: Condition,
    /// The trials, in random order.
    pub trials: Vec<PlannedTrial>,
}

/// One trial: a subject, under the group's condition, in the block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedTrial {
    /// Its number within the run, from 1, in the order of the plan.
    pub trial: u32,
    pub subject: String,
    /// Whether it is the baseline's second copy, measured for the noise floor.
    pub baseline_copy: bool,
}

impl Plan {
    /// Plans a run: for each block, every condition in random order, and in each all subjects and
    /// the baseline's second copy in random order.
    pub fn new(experiment: &Experiment, seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let conditions = experiment.conditions();
        let mut trial = 0;
        let mut blocks = Vec::new();
        for number in 1..=experiment.design.blocks {
            let mut order = conditions.clone();
            random.shuffle(&mut order);
            let groups = order
                .into_iter()
                .map(|condition| Group {
                    condition,
                    trials: trials(experiment, &mut random, &mut trial),
                })
                .collect();
            blocks.push(Block { number, groups });
        }
        let servers: Vec<String> = experiment
            .start_order()
            .iter()
            .map(|server| server.name.clone())
            .collect();
        let unused_servers = experiment
            .servers
            .iter()
            .map(|server| &server.name)
            .filter(|name| !servers.contains(name))
            .cloned()
            .collect();
        Self {
            title: experiment.title.clone(),
            seed,
            baseline: experiment.design.baseline.clone(),
            conditions,
            blocks,
            servers,
            unused_servers,
            estimated: experiment
                .block_time()
                .saturating_mul(experiment.design.blocks)
                .saturating_add(experiment.looks_time()),
            searches: experiment.searches_time(),
            is_least: experiment.has_loads_together(),
            compared: words::compared(experiment),
            drivers: drivers(experiment),
        }
    }

    /// How many trials there are.
    pub fn trials(&self) -> usize {
        self.groups().map(|(_, group)| group.trials.len()).sum()
    }

    /// The groups with the numbers of their blocks, in the order in which they are made.
    pub fn groups(&self) -> impl Iterator<Item = (u32, &Group)> {
        self.blocks
            .iter()
            .flat_map(|block| block.groups.iter().map(|group| (block.number, group)))
    }

    /// The plan for a person to read: how much, how long, in which order, and what is missing.
    ///
    /// `missing` has a sentence for each thing that is not installed.
    pub fn describe(&self, missing: &[String]) -> String {
        let mut out = format!("{}\n\n", self.title);
        let count = |number: usize, noun: &str| {
            format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
        };
        out.push_str(&format!(
            "{}: {} x {} x {}\n",
            count(self.trials(), "trial"),
            count(self.blocks.len(), "block"),
            count(self.conditions.len(), "condition"),
            count(self.trials_per_group(), "trial"),
        ));
        out.push_str(&format!("{}; seed {}\n", self.time(), self.seed));
        if self.servers.is_empty() {
            out.push_str("no servers to start: what is measured runs already\n");
        } else {
            out.push_str(&format!(
                "servers, in the order they start: {}\n",
                self.servers.join(", ")
            ));
        }
        if !self.unused_servers.is_empty() {
            out.push_str(&format!(
                "not started, since no subject reaches them: {}\n",
                self.unused_servers.join(", ")
            ));
        }
        out.push_str(&words::compared_line(&self.compared));
        for driver in &self.drivers {
            let of = match driver.subjects.as_slice() {
                [] => String::new(),
                some => format!(" for {}", some.join(", ")),
            };
            out.push_str(&format!("driver: {}{of}\n", driver.label));
        }
        out.push('\n');
        let mut left_out = 0;
        for (at, (block, group)) in self.groups().enumerate() {
            if at >= GROUPS_SHOWN {
                left_out += 1;
                continue;
            }
            out.push_str(&line(block, group));
        }
        if left_out > 0 {
            out.push_str(&format!(
                "and {} like these\n",
                count(left_out, "more line")
            ));
        }
        if missing.is_empty() {
            out.push_str("\neverything it needs is installed\n");
        } else {
            out.push_str("\nnot ready to run:\n");
            for sentence in missing {
                out.push_str(&format!("  {sentence}\n"));
            }
        }
        out
    }

    /// About how long the run will take, as `about 20 min`.
    pub fn time(&self) -> String {
        time_words(self.is_least, self.estimated + self.searches)
    }

    fn trials_per_group(&self) -> usize {
        self.groups()
            .next()
            .map_or(0, |(_, group)| group.trials.len())
    }
}

fn drivers(experiment: &Experiment) -> Vec<DriverUse> {
    let mut found: Vec<DriverUse> = Vec::new();
    for condition in experiment.conditions() {
        for subject in experiment.under(&condition).subjects {
            let label = subject.driver.label();
            let at = found.iter().position(|one| one.label == label);
            let at = at.unwrap_or_else(|| {
                found.push(DriverUse {
                    name: subject.driver.name.clone(),
                    label,
                    subjects: Vec::new(),
                });
                found.len() - 1
            });
            if !found[at].subjects.contains(&subject.name) {
                found[at].subjects.push(subject.name);
            }
        }
    }
    for one in &mut found {
        if one.subjects.len() == experiment.subjects.len() {
            one.subjects.clear();
        }
    }
    found
}

fn trials(
    experiment: &Experiment,
    random: &mut fastrand::Rng,
    trial: &mut u32,
) -> Vec<PlannedTrial> {
    let mut subjects: Vec<(&str, bool)> = experiment
        .subjects
        .iter()
        .map(|subject| (subject.name.as_str(), false))
        .collect();
    subjects.push((&experiment.design.baseline, true));
    random.shuffle(&mut subjects);
    subjects
        .into_iter()
        .map(|(subject, baseline_copy)| {
            *trial += 1;
            PlannedTrial {
                trial: *trial,
                subject: subject.to_owned(),
                baseline_copy,
            }
        })
        .collect()
}

fn line(block: u32, group: &Group) -> String {
    let trials = match group.trials.as_slice() {
        [first, .., last] => format!("trials {}-{}", first.trial, last.trial),
        [only] => format!("trial {}", only.trial),
        [] => String::new(),
    };
    let condition = group
        .condition
        .iter()
        .map(|(factor, level)| format!("{factor}={level}"))
        .collect::<Vec<_>>()
        .join(" ");
    let subjects = group
        .trials
        .iter()
        .map(|planned| {
            if planned.baseline_copy {
                format!("{} again", planned.subject)
            } else {
                planned.subject.clone()
            }
        })
        .collect::<Vec<_>>()
        .join(", ");
    let condition = if condition.is_empty() {
        String::new()
    } else {
        format!("{condition}: ")
    };
    format!("block {block:>3}, {trials}: {condition}{subjects}\n")
}

/// A rounded duration as an estimate, such as `about 20 min`.
pub(crate) fn time_words(is_least: bool, time: Duration) -> String {
    let about = if is_least { "at least" } else { "about" };
    format!("{about} {}", rough(time))
}

/// A rounded duration.
fn rough(time: Duration) -> String {
    let s = time.as_secs_f64();
    if s < 90.0 {
        format!("{s:.0} s")
    } else if s < 5400.0 {
        format!("{:.0} min", s / 60.0)
    } else {
        format!("{:.1} h", s / 3600.0)
    }
}

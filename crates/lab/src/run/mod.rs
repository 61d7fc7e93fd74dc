//! Carries a plan out: block after block, condition after condition.

mod agents;
mod apart;
mod between;
mod bottleneck;
mod described;
mod earlier;
mod events;
mod folder;
mod given;
mod group;
mod judge;
mod lost;
mod machines;
mod noted;
mod outside;
mod places;
mod rate;
mod schedule;
mod servers;
mod settings;
mod told;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use readings::{Condition, JournalRow, RateChoice, Trial};

use crate::agent::AgentError;
use crate::driver::Driver;
use crate::experiment::{Experiment, ExperimentError};
use crate::hosts::{self, WorldError};
use crate::journal::{JournalError, JournalWriter};
use crate::plan::{Group, Plan};
use crate::recipe::{RecipeError, Recipes};

pub use folder::{default_folder, machine};
pub use judge::Judge;
pub use places::Places;

use agents::Agents;
use described::Description;
use earlier::{Done, Opened};
use places::Vantages;

/// What a run tells while it goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent {
    /// It begins.
    Begins {
        /// Trials still to make.
        trials: usize,
        /// Groups (a condition in a block) still to make.
        groups: usize,
        /// Groups of one block.
        groups_per_block: usize,
        /// Blocks of the whole run, at most.
        blocks: u32,
        /// About how long it takes, s.
        estimated_s: f64,
        /// Where everything is kept.
        folder: PathBuf,
    },
    /// A condition in a block begins.
    GroupBegins {
        /// The block.
        block: u32,
        /// Blocks of the run.
        blocks: u32,
        /// The condition.
        condition: Condition,
    },
    /// What is being done now, such as "starting servers".
    Phase {
        /// The words.
        what: String,
    },
    /// Load goes on.
    Load {
        /// The subject.
        subject: String,
        /// Good answers since the last event.
        requests: u64,
        /// Failures since the last event.
        errors: u64,
    },
    /// A trial's row was written.
    TrialEnds {
        /// The row.
        trial: Box<Trial>,
    },
    /// A condition in a block is done.
    GroupEnds,
    /// A condition in a block is made again, since some of its trials cannot be used.
    Again {
        /// What cannot be used, a sentence fragment each.
        reasons: Vec<String>,
        /// How often it can still be made.
        left: u32,
    },
    /// After the last block: what limits a subject is looked for.
    BottleneckBegins {
        /// The condition.
        condition: Condition,
        /// The subject.
        subject: String,
        /// Subjects and conditions that are left, this one among them.
        left: usize,
    },
    /// All that was declared is settled: the blocks that are left are not made.
    Settled {
        /// Blocks that were made.
        block: u32,
        /// Blocks that were planned.
        blocks: u32,
    },
    /// The rate at which latency is compared was chosen.
    RateChosen(RateChoice),
    /// Something to know.
    Warning {
        /// The sentence.
        text: String,
    },
}

/// Why a run cannot begin or go on. Trials that fail are rows, not errors.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run's folder cannot be used.
    #[error("cannot write the run's folder {}: {why}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Something that the experiment needs is not on this machine.
    #[error("this experiment cannot run here:\n  {}", sentences.join("\n  "))]
    Missing {
        /// What is missing, with the command that installs it.
        sentences: Vec<String>,
    },
    /// A port that the experiment names is taken.
    #[error(
        "server `{server}` shall listen on port {port}, which is in use; stop what listens there, or leave `port` out so that a free one is chosen"
    )]
    Port {
        /// The server.
        server: String,
        /// The port.
        port: u16,
    },
    /// A host without a usable CPU.
    #[error(
        "host `{host}` is bound to CPU {cpu}, which this machine does not have or may not use (it has {have})"
    )]
    Cpu {
        /// The host.
        host: String,
        /// The CPU.
        cpu: u32,
        /// The CPUs that can be used.
        have: String,
    },
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The experiment in the folder cannot be read.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// A recipe cannot be used.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The agent cannot be started.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A machine cannot be used.
    #[error("host `{host}`: {why}")]
    Host {
        /// The host.
        host: String,
        /// Why.
        why: String,
    },
    /// The hosts cannot be made.
    #[error("the hosts of this experiment cannot be made here: {0}")]
    World(WorldError),
}

impl RunError {
    /// Whether the caller's words or files are at fault, rather than the machine.
    pub fn is_callers(&self) -> bool {
        match self {
            RunError::World(WorldError::Setting(_)) => true,
            RunError::Agent(_) | RunError::World(_) | RunError::Host { .. } => false,
            RunError::Journal(JournalError::GoingOn { .. }) => false,
            // A run that shall go on, but is not there.
            RunError::Journal(JournalError::Io { source, .. }) => {
                source.kind() == std::io::ErrorKind::NotFound
            }
            _ => true,
        }
    }
}

/// What to run and where.
pub struct RunOptions<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The recipes that it may use.
    pub recipes: &'a Recipes,
    /// Seed of every random choice.
    pub seed: u64,
    /// The run's folder.
    pub folder: &'a Path,
    /// Whether the folder holds a run that shall go on.
    pub resume: bool,
    /// The `weigh` program, for agents and the built-in servers.
    pub weigh: &'a Path,
    /// What judges the rows while the run goes on.
    pub judge: &'a dyn Judge,
}

/// What is missing on this machine for an experiment, a sentence each. What has to be on others is
/// seen only there.
pub fn missing(experiment: &Experiment, recipes: &Recipes) -> Vec<String> {
    let mut sentences = Vec::new();
    let servers = experiment.start_order();
    let here = |host: &Option<String>| !experiment.is_behind_ssh(host.as_deref());
    for server in servers.into_iter().filter(|server| here(&server.host)) {
        let sentence = recipes
            .get(&server.recipe)
            .and_then(|recipe| recipe.available().sentence());
        if let Some(sentence) = sentence
            && !sentences.contains(&sentence)
        {
            sentences.push(sentence);
        }
    }
    let conditions = experiment.conditions();
    let mut loads = conditions.iter().map(|one| experiment.under(one).load.host);
    if !loads.any(|host| here(&host)) {
        return sentences;
    }
    for driver in drivers(experiment, recipes) {
        let sentence = driver.available().sentence();
        sentences.extend(sentence.filter(|sentence| !sentences.contains(sentence)));
    }
    sentences
}

/// The outside drivers that an experiment runs under any of its conditions, each once.
pub fn drivers<'r>(experiment: &Experiment, recipes: &'r Recipes) -> Vec<&'r Driver> {
    let mut found: Vec<&Driver> = Vec::new();
    for choice in experiment.drivers() {
        let driver = recipes.driver(&choice.name);
        found.extend(driver.filter(|one| !found.iter().any(|known| known.name == one.name)));
    }
    found
}

/// Runs an experiment until its plan is done or `stop` is set. Returns whether it was completed;
/// what was measured is in the folder's journal either way.
///
/// # Errors
/// When it cannot begin, or the journal can no longer be written.
pub fn run(
    options: &RunOptions<'_>,
    stop: &AtomicBool,
    mut tell: impl FnMut(RunEvent),
) -> Result<bool, RunError> {
    let experiment = options.experiment;
    // Before all else: a run that goes on has taken the ports that it names.
    let earlier = match options.resume {
        true => Some(JournalWriter::resume(options.folder)?),
        false => None,
    };
    let sentences = missing(experiment, options.recipes);
    if !sentences.is_empty() {
        return Err(RunError::Missing { sentences });
    }
    hosts::sweep();
    if !experiment.hosts_are_apart() && !experiment.hosts_are_machines() {
        places::check_ports(experiment)?;
    }
    let vantages = Vantages::of(experiment)?;
    let places = vantages.first();
    let Opened {
        mut journal,
        header,
        before,
        made,
    } = match earlier {
        Some(earlier) => earlier.into(),
        None => earlier::begin(options)?,
    };
    let seed = header.seed;
    let plan = Plan::new(experiment, seed);
    let done = Done::of(before.as_ref(), &plan);
    let mut rates = done.rates.clone();
    let mut kept = judge::Kept::of(options.judge, &header, done.trials.clone());
    let mut groups: VecDeque<(u32, &Group)> = plan
        .groups()
        .filter(|(block, group)| !done.has(*block, group))
        .collect();
    // What an earlier part has not reached is left out where all is settled without it; what has
    // failed there is made again in any case.
    let failed_before = |one: Option<&(u32, &Group)>| {
        one.is_some_and(|(block, group)| done.has_tried(*block, group))
    };
    if options.resume && !failed_before(groups.front()) && kept.is_settled() {
        groups.clear();
    }
    tell(RunEvent::Begins {
        trials: groups.iter().map(|(_, group)| group.lanes.len()).sum(),
        groups: groups.len(),
        groups_per_block: plan.conditions.len(),
        blocks: experiment.design.blocks,
        estimated_s: plan.estimated.as_secs_f64() * groups.len() as f64
            / plan.groups().count().max(1) as f64,
        folder: options.folder.to_path_buf(),
    });
    let drivers = drivers(experiment, options.recipes);
    let mut notices = places.warnings.clone();
    if !options.resume {
        notices.extend(
            drivers
                .iter()
                .filter_map(|driver| outside::clock_notice(driver)),
        );
    }
    let mut agents = match Agents::ready(options, places, seed) {
        Ok(agents) => agents,
        Err(error) => {
            if let Some(made) = made {
                made.take_back(journal);
            }
            return Err(error);
        }
    };
    let from = plan.conditions.first().map(|it| experiment.under(it).load);
    let from = from.and_then(|load| load.host);
    let versions: BTreeMap<String, Option<String>> = drivers
        .iter()
        .map(|driver| {
            let version = agents.driver_version(from.as_deref(), driver, options.weigh);
            (driver.name.clone(), version)
        })
        .collect();
    notices.extend(agents.notices());
    for text in &notices {
        tell(RunEvent::Warning { text: text.clone() });
        journal.append(&JournalRow::Warning { text: text.clone() })?;
    }
    let mut apart = apart::Conditions::default();
    let mut told = settings::Told::of(before.as_ref());
    let mut description = Description::of(options, &versions);
    while let Some((block, group)) = groups.pop_front() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        tell(RunEvent::GroupBegins {
            block,
            blocks: experiment.design.blocks,
            condition: group.condition.clone(),
        });
        let group_seed = kept.seed(block, group);
        let vantage = vantages.from(experiment.under(&group.condition).load.host.as_ref());
        let drawn = vantage.drawn(group_seed);
        let _out_of_the_way = places::OutOfTheWay::of(&drawn);
        let mut runner = group::Runner {
            options,
            places: &drawn,
            agents: &mut agents,
            stop,
            seed: group_seed,
            block,
            tell: &mut tell,
            configurations: BTreeMap::new(),
            versions: &versions,
            apart: &mut apart,
        };
        let known = rates.get(&group.condition).copied();
        let result = runner.group(group, known);
        let configurations = std::mem::take(&mut runner.configurations);
        let setting = experiment.under(&group.condition);
        let row = told.row(&group.condition, &setting, &configurations, options.recipes);
        if let Some(row) = row {
            journal.append(&row)?;
        }
        if let Some(choice) = &result.rate {
            rates.insert(group.condition.clone(), choice.rate_per_s);
            tell(RunEvent::RateChosen(choice.clone()));
            journal.append(&JournalRow::Rate(choice.clone()))?;
        }
        for (lane, outcome) in result.outcomes {
            let trial = Trial {
                trial: lane.trial,
                block,
                condition: group.condition.clone(),
                subject: lane.subject,
                baseline_copy: lane.again,
                outcome,
            };
            journal.append(&JournalRow::Trial(Box::new(trial.clone())))?;
            kept.take(&trial);
            tell(RunEvent::TrialEnds {
                trial: Box::new(trial),
            });
        }
        for (lane, files) in result.logs {
            folder::write_logs(options.folder, lane, &files);
        }
        for text in result.warnings {
            tell(RunEvent::Warning { text: text.clone() });
            journal.append(&JournalRow::Warning { text })?;
        }
        if !stop.load(Ordering::Relaxed) {
            description.take(&group.condition, &configurations, &drawn, &mut agents)?;
        }
        tell(RunEvent::GroupEnds);
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if result.agent_lost {
            agents = agents.again(options.weigh, experiment, places, seed, stop)?;
        }
        if let Some((reasons, left)) = kept.again(block, group, experiment.design.retries) {
            tell(RunEvent::Again { reasons, left });
            groups.push_front((block, group));
        }
        let next = groups.front();
        let block_ends = next.is_some_and(|(next, _)| *next != block);
        if block_ends && !failed_before(next) && kept.is_settled() {
            tell(RunEvent::Settled {
                block,
                blocks: experiment.design.blocks,
            });
            groups.clear();
        }
    }
    // Of other machines neither threads nor counters are seen, and nothing can be changed there.
    let bottleneck = experiment.design.bottleneck && !agents.are_machines();
    if bottleneck && !stop.load(Ordering::Relaxed) {
        let wanted: Vec<(Condition, String)> = bottleneck::wanted(experiment)
            .into_iter()
            .filter(|one| !done.bottlenecks.contains(one))
            .collect();
        for (number, (condition, subject)) in wanted.iter().enumerate() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            tell(RunEvent::BottleneckBegins {
                condition: condition.clone(),
                subject: subject.clone(),
                left: wanted.len() - number,
            });
            let vantage = vantages.from(experiment.under(condition).load.host.as_ref());
            let _out_of_the_way = places::OutOfTheWay::of(vantage);
            let mut runner = group::Runner {
                options,
                places: vantage,
                agents: &mut agents,
                stop,
                seed: seed ^ (1 << 60) ^ (number as u64),
                block: 0,
                tell: &mut tell,
                configurations: BTreeMap::new(),
                versions: &versions,
                apart: &mut apart,
            };
            match runner.bottleneck(condition, subject) {
                Ok(Some(reading)) => {
                    journal.append(&JournalRow::Bottleneck(Box::new(reading)))?;
                }
                Ok(None) => {}
                Err(_) => {
                    agents = agents.again(options.weigh, experiment, places, seed, stop)?;
                }
            }
        }
    }
    for text in agents.faults_of_links() {
        tell(RunEvent::Warning { text: text.clone() });
        journal.append(&JournalRow::Warning { text })?;
    }
    drop(agents);
    let complete = !stop.load(Ordering::Relaxed);
    journal.append(&JournalRow::End { complete })?;
    Ok(complete)
}

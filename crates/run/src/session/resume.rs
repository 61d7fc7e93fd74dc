//! Opening a run's journal, and reading the results of an earlier part of the run.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use readings::{
    Condition, CurveChoice, DeclaredLoad, Journal, JournalRow, Outcome, Published, RateChoice,
    RunHeader, Trial, condition_of_load,
};

use crate::journal::JournalWriter;
use crate::journal::folder::NewFolder;
use crate::{RunError, RunOptions};
use experiment::plan::{Group, Plan};
use experiment::{LoadRole, Rate};

pub(crate) struct OpenedJournal {
    pub(crate) journal: JournalWriter,
    pub(crate) header: RunHeader,
    /// The rows of an earlier part of the run.
    pub(crate) earlier: Option<Journal>,
    /// The created folder of a new run.
    pub(crate) new_folder: Option<NewFolder>,
}

impl From<(JournalWriter, Journal)> for OpenedJournal {
    fn from((journal, earlier): (JournalWriter, Journal)) -> Self {
        Self {
            journal,
            header: earlier.header.clone(),
            earlier: Some(earlier),
            new_folder: None,
        }
    }
}

/// Creates the folder and the journal of a new run.
pub(crate) fn begin(options: &RunOptions<'_>) -> Result<OpenedJournal, RunError> {
    let experiment = options.experiment;
    let (new_folder, mut journal) = NewFolder::create(options.folder, experiment)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let header = RunHeader {
        weigh_version: env!("CARGO_PKG_VERSION").to_string(),
        experiment: experiment.name.clone(),
        title: experiment.title.clone(),
        seed: options.seed,
        baseline: experiment.design.baseline.clone(),
        subjects: experiment.subjects.iter().map(|s| s.name.clone()).collect(),
        conditions: experiment.conditions(),
        blocks: experiment.design.blocks,
        matters: experiment.design.matters,
        matters_failures: experiment.design.matters_failures,
        matters_ms: experiment
            .design
            .matters_latency
            .map(|time| time.as_secs_f64() * 1e3),
        primary: experiment.design.primary.clone(),
        max_error: experiment.design.max_error,
        published: experiment
            .published
            .iter()
            .map(|figure| Published {
                what: figure.what.clone(),
                value: figure.value,
                unit: figure.unit.clone(),
                source: figure.source.clone(),
            })
            .collect(),
        started_unix_s: now.map_or(0, |time| time.as_secs()),
        open_loop_factors: experiment.open_loop_factors(),
        reference: experiment.design.reference.clone(),
        growth: experiment.design.growth.clone(),
        loads: experiment
            .loads
            .iter()
            .map(|load| DeclaredLoad {
                name: load.name.clone(),
                background: load.role == LoadRole::Background,
            })
            .collect(),
        gates: experiment.gates.clone(),
        label: options.label.map(str::to_owned),
        revision: options.revision.map(str::to_owned),
    };
    journal.append(&JournalRow::Run(header.clone()))?;
    let mut declared = vec![(None, &experiment.load)];
    let compared = experiment.loads.iter();
    let compared = compared.filter(|one| one.role == LoadRole::Compared);
    // The first one is the experiment's main load.
    declared.extend(compared.skip(1).map(|one| (Some(&one.name), &one.load)));
    for (name, load) in declared {
        let Rate::PerSecond(rate_per_s) = load.rate else {
            continue;
        };
        for condition in experiment.conditions() {
            journal.append(&JournalRow::Rate(RateChoice {
                condition: match name {
                    Some(name) => condition_of_load(&condition, name),
                    None => condition,
                },
                rate_per_s,
                slowest_per_s: None,
                of_users: load.has_users(),
            }))?;
        }
    }
    Ok(OpenedJournal {
        journal,
        header,
        earlier: None,
        new_folder: Some(new_folder),
    })
}

/// The results of an earlier part of the run.
#[derive(Default)]
pub(crate) struct EarlierResults {
    pub(crate) trials: Vec<Trial>,
    pub(crate) rates: BTreeMap<Condition, f64>,
    pub(crate) curves: BTreeMap<Condition, CurveChoice>,
    pub(crate) bottlenecks: Vec<(Condition, String)>,
}

impl EarlierResults {
    pub(crate) fn of(journal: Option<&Journal>, plan: &Plan) -> Self {
        let mut results = EarlierResults::default();
        let Some(journal) = journal else {
            return results;
        };
        results.trials = journal.trials().cloned().collect();
        results.bottlenecks = journal
            .bottlenecks()
            .into_iter()
            .map(|reading| (reading.condition.clone(), reading.subject.clone()))
            .collect();
        let curves = journal.curves().into_iter();
        results.curves = curves
            .filter(|choice| plan.conditions.contains(&choice.condition))
            .map(|choice| (choice.condition.clone(), choice.clone()))
            .collect();
        for row in &journal.rows {
            if let JournalRow::Rate(choice) = row
                && plan.conditions.contains(&choice.condition)
            {
                results
                    .rates
                    .insert(choice.condition.clone(), choice.rate_per_s);
            }
        }
        results
    }

    /// Whether every trial of a group was measured successfully.
    pub(crate) fn has_all(&self, block: u32, group: &Group) -> bool {
        group.trials.iter().all(|planned| {
            self.trials.iter().any(|trial| {
                trial.block == block
                    && trial.condition == group.condition
                    && trial.subject == planned.subject
                    && trial.baseline_copy == planned.baseline_copy
                    && matches!(trial.outcome, Outcome::Done(_))
            })
        })
    }
}

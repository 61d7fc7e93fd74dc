//! A run's journal, and what an earlier part of the run has done.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use readings::{Condition, JournalRow, Outcome, Published, RateChoice, RunHeader, Trial};

use crate::folder::Made;
use crate::journal::{Journal, JournalWriter};
use crate::{RunError, RunOptions};
use experiment::Rate;
use experiment::plan::{Group, Plan};

/// A run's journal, open for writing.
pub(crate) struct Opened {
    pub(crate) journal: JournalWriter,
    pub(crate) header: RunHeader,
    /// What an earlier part of the run has written there.
    pub(crate) before: Option<Journal>,
    /// What was made for it, where it is a new one.
    pub(crate) made: Option<Made>,
}

impl From<(JournalWriter, Journal)> for Opened {
    fn from((journal, before): (JournalWriter, Journal)) -> Self {
        Self {
            journal,
            header: before.header.clone(),
            before: Some(before),
            made: None,
        }
    }
}

/// Makes the folder of a new run and begins its journal.
pub(crate) fn begin(options: &RunOptions<'_>) -> Result<Opened, RunError> {
    let experiment = options.experiment;
    let (made, mut journal) = Made::make(options.folder, experiment)?;
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
    };
    journal.append(&JournalRow::Run(header.clone()))?;
    if let Rate::PerSecond(rate_per_s) = experiment.load.rate {
        for condition in experiment.conditions() {
            journal.append(&JournalRow::Rate(RateChoice {
                condition,
                rate_per_s,
                slowest_per_s: None,
            }))?;
        }
    }
    Ok(Opened {
        journal,
        header,
        before: None,
        made: Some(made),
    })
}

/// What an earlier part of the run has done.
#[derive(Default)]
pub(crate) struct Done {
    pub(crate) trials: Vec<Trial>,
    pub(crate) rates: BTreeMap<Condition, f64>,
    pub(crate) bottlenecks: Vec<(Condition, String)>,
}

impl Done {
    pub(crate) fn of(journal: Option<&Journal>, plan: &Plan) -> Self {
        let mut done = Done::default();
        let Some(journal) = journal else { return done };
        done.trials = journal.trials();
        done.bottlenecks = journal
            .bottlenecks()
            .into_iter()
            .map(|reading| (reading.condition.clone(), reading.subject.clone()))
            .collect();
        for row in &journal.rows {
            if let JournalRow::Rate(choice) = row
                && plan.conditions.contains(&choice.condition)
            {
                done.rates
                    .insert(choice.condition.clone(), choice.rate_per_s);
            }
        }
        done
    }

    /// Whether a group was made, well or not.
    pub(crate) fn has_tried(&self, block: u32, group: &Group) -> bool {
        let is_of = |trial: &Trial| trial.block == block && trial.condition == group.condition;
        self.trials.iter().any(is_of)
    }

    /// Whether every trial of a group was measured. A group with a failed trial is made again.
    pub(crate) fn has(&self, block: u32, group: &Group) -> bool {
        group.trials.iter().all(|lane| {
            self.trials.iter().any(|trial| {
                trial.block == block
                    && trial.condition == group.condition
                    && trial.subject == lane.subject
                    && trial.again == lane.baseline_copy
                    && matches!(trial.outcome, Outcome::Done(_))
            })
        })
    }
}

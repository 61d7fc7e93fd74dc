//! Levels of a factor against each other: versions, worker counts and settings of one subject.
//!
//! Under the names of its levels, such as `workers=4`, a subject's trials are those of several
//! subjects, and the reference level is their baseline. So levels are compared, corrected, decided
//! and ranked as subjects are, pair by pair of a block. Three things differ:
//!
//! - Levels are measured one after the other and not in turns, so nothing is taken from their slices.
//!   A drift of the machine within a block is in the ratios, and so in the spread of the blocks; the
//!   order of the conditions is drawn for each block, so it favours no level.
//! - The reference level's second copy was measured in turns with the first. So it says nothing of how
//!   far levels differ by chance, and shares no variance with them.
//! - Each condition of a block is repeated on its own. Of a block's attempts at a level the one that
//!   counts is paired; the others count as starts only.
//!
//! What the open loop measures is compared only where its rate was the same, or is the factor.
//!
//! With one subject the levels of every factor are compared, with several those of the factors whose
//! reference level is declared: whether what subjects cost depends on a factor, interactions say.

use readings::{Condition, Outcome, RunHeader, Trial};
use serde::Serialize;

use crate::comparison::compare::comparisons;
use crate::comparison::draft::in_run;
use crate::comparison::tiers::tiers;
use crate::metric::of_trial::offered;
use crate::summary::ranking::rankings;
use crate::summary::table::table;
use crate::trial::cells::Cells;
use crate::{Comparison, Ranking, Rules};

/// A level of a factor against its reference level, of one subject.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelComparison {
    pub factor: String,
    pub subject: String,
    pub level: String,
    pub reference: String,
    /// Its condition has the other factors; its subject and baseline are the names of the levels, such
    /// as `workers=4`, and `nginx, workers=4` where the run has several subjects.
    pub comparison: Comparison,
}

/// What a run says on the levels of its factors.
#[derive(Debug, Default)]
pub(crate) struct Levels {
    /// By factor, then subject, then as comparisons of subjects are.
    pub comparisons: Vec<LevelComparison>,
    pub rankings: Vec<Ranking>,
}

/// Compares the levels of factors.
pub(crate) fn levels(header: &RunHeader, rules: &Rules, cells: &Cells<'_>) -> Levels {
    let mut found = Levels::default();
    for question in questions(header, cells) {
        question.answer(header, rules, cells, &mut found);
    }
    found
}

/// The levels of a factor, of one subject.
struct Question<'c> {
    factor: &'c str,
    subject: &'c str,
    /// As declared, each with the name that it has in comparisons.
    levels: Vec<(&'c str, String)>,
    reference: usize,
}

fn questions<'c>(header: &RunHeader, cells: &'c Cells<'_>) -> Vec<Question<'c>> {
    let mut factors: Vec<(&str, Vec<&str>)> = Vec::new();
    for (factor, level) in cells.conditions.iter().flatten() {
        match factors.iter_mut().find(|(name, _)| name == factor) {
            None => factors.push((factor, vec![level])),
            Some((_, levels)) if levels.contains(&level.as_str()) => {}
            Some((_, levels)) => levels.push(level),
        }
    }
    let is_alone = cells.subjects.len() == 1;
    factors.retain(|(factor, levels)| {
        let is_asked = is_alone || header.reference.contains_key(*factor);
        is_asked && levels.len() > 1 && !cells.names_loads(factor)
    });
    let mut all = Vec::new();
    for (factor, levels) in &factors {
        let declared = header.reference.get(*factor);
        let reference = levels
            .iter()
            .position(|level| Some(*level) == declared.map(|d| &**d));
        for subject in &cells.subjects {
            let name = |level: &&'c str| match is_alone {
                true => (*level, format!("{factor}={level}")),
                false => (*level, format!("{subject}, {factor}={level}")),
            };
            all.push(Question {
                factor,
                subject,
                levels: levels.iter().map(name).collect(),
                reference: reference.unwrap_or(0),
            });
        }
    }
    all
}

impl Question<'_> {
    fn answer(&self, header: &RunHeader, rules: &Rules, cells: &Cells<'_>, found: &mut Levels) {
        let (reference, baseline) = &self.levels[self.reference];
        let rows = cells.all();
        let trials = rows.filter_map(|(cell, counts)| self.named(cell.trial, counts));
        let trials: Vec<Trial> = trials.collect();
        let mut conditions: Vec<Condition> = Vec::new();
        for condition in &cells.conditions {
            let mut others = condition.clone();
            if others.remove(self.factor).is_some() && !conditions.contains(&others) {
                conditions.push(others);
            }
        }
        let mut of_rate = cells.open_loop_factors.iter();
        let is_of_rate = of_rate.any(|one| one == self.factor);
        let header = RunHeader {
            baseline: baseline.clone(),
            subjects: self.levels.iter().map(|(_, name)| name.clone()).collect(),
            conditions,
            ..header.clone()
        };
        let rules = Rules {
            baseline: baseline.clone(),
            ..rules.clone()
        };
        let cells = Cells::of(&header, &trials).not_in_turns();
        let (compared, ranked) = in_run(&rules, &cells, |run| {
            let (mut compared, _) = comparisons(run);
            compared.retain(|one| match is_of_rate {
                // What the closed loop measures cannot differ between them.
                true => !one.metric.is_of_closed_loop(),
                false => !one.metric.is_of_open_loop() || is_at_one_rate(&trials, one),
            });
            let ranked = rankings(
                &table(&cells),
                &compared,
                &[],
                &tiers(run, &compared),
                &header.primary,
            );
            (compared, ranked)
        });
        found
            .rankings
            .extend(ranked.into_iter().map(|ranking| Ranking {
                factor: Some(self.factor.to_owned()),
                ..ranking
            }));
        let of_level = |comparison: Comparison| {
            let mut levels = self.levels.iter();
            let (level, _) = levels.find(|(_, name)| *name == comparison.subject)?;
            Some(LevelComparison {
                factor: self.factor.to_owned(),
                subject: self.subject.to_owned(),
                level: (*level).to_owned(),
                reference: (*reference).to_owned(),
                comparison,
            })
        };
        found
            .comparisons
            .extend(compared.into_iter().filter_map(of_level));
    }

    /// A trial of the subject under the name of its level; of second copies only the reference
    /// level's. Rows that count are of one attempt, so that they are paired with each other.
    fn named(&self, trial: &Trial, counts: bool) -> Option<Trial> {
        let level = trial.condition.get(self.factor)?;
        let at = self.levels.iter().position(|(one, _)| one == level)?;
        if trial.subject != self.subject || (trial.baseline_copy && at != self.reference) {
            return None;
        }
        let mut trial = trial.clone();
        trial.condition.remove(self.factor);
        trial.subject = self.levels[at].1.clone();
        trial.attempt = if counts { u32::MAX } else { trial.attempt };
        if let Outcome::Done(reading) = &mut trial.outcome {
            reading.separate_copy = false;
            reading.curve.clear();
        }
        Some(trial)
    }
}

/// Whether two levels had the same rate in the open loop. Where it is chosen for each condition, a
/// level that carries more has to carry more, and latencies say nothing of it.
fn is_at_one_rate(trials: &[Trial], one: &Comparison) -> bool {
    let is_its = |trial: &&Trial| {
        let condition = &one.condition;
        let mut named = trial.condition.iter();
        [&one.subject, &one.baseline].contains(&&trial.subject)
            && condition
                .keys()
                .all(|factor| trial.condition.contains_key(factor))
            && named.all(|(factor, level)| condition.get(factor).is_none_or(|own| own == level))
    };
    let rates = trials.iter().filter(is_its);
    let mut rates = rates.filter_map(|trial| offered(trial.reading()?.latency.as_ref()?));
    let first = rates.next();
    first.is_none_or(|first| rates.all(|rate| (rate / first - 1.0).abs() < 0.005))
}

#[cfg(test)]
mod tests;

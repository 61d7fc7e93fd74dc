//! Interactions: whether what a subject costs depends on a factor.
//!
//! Each level of a factor is compared with its first one, all other factors equal. The figure of a
//! block is the difference of the two log ratios of subject to baseline; the interval is the t
//! interval of their mean.
//! Whether a metric depends on a factor is one question, over which Holm's procedure goes.

pub(crate) mod words;

use std::collections::BTreeMap;

use readings::Condition;
use serde::Serialize;

use crate::comparison::decide::decide;
use crate::comparison::draft::p_value;
use crate::comparison::pairs::Pairs;
use crate::comparison::pairs::pooling::{Pool, is_declared, pools};
use crate::stats::family::{Test, Together, family};
use crate::stats::sample::Sample;
use crate::trial::cells::Cells;
use crate::{FEWEST_BLOCKS, Metric, Rules, Verdict};

/// Whether what a subject costs depends on a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dependence {
    /// It differs between the levels by more than the margin.
    Differs,
    /// It is the same, within the margin.
    Same,
    /// The blocks do not settle it.
    Inconclusive,
    /// The client was the bottleneck, so that a ratio is known on one side only.
    ClientLimited,
}

/// A subject against the baseline under two levels of a factor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interaction {
    pub condition: Condition,
    pub metric: Metric,
    pub subject: String,
    pub baseline: String,
    pub factor: String,
    pub level: Level,
    /// The first level of the factor.
    pub reference: Level,
    /// The ratio of subject to baseline at the level, over that at the reference.
    pub ratio: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    pub confidence: f64,
    /// Blocks that could be used at both levels.
    pub blocks: usize,
    pub p_value: Option<f64>,
    /// The p value after Holm's correction over the interactions of the metric and factor.
    pub p_adjusted: Option<f64>,
    /// The smallest difference that matters, as a fraction.
    pub matters: f64,
    pub dependence: Dependence,
}

/// What was found at a level of a factor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Level {
    pub level: String,
    /// Subject over baseline.
    pub ratio: f64,
    /// Geometric mean of the baseline, in the metric's unit.
    pub baseline_value: f64,
    /// Geometric mean of the subject, in the metric's unit.
    pub subject_value: f64,
}

impl Interaction {
    /// Both ends of the interval of the ratio.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }
}

struct Draft {
    found: Interaction,
    sample: Sample,
}

/// All interactions with at least [`FEWEST_BLOCKS`] usable blocks. Events have none. Whether a metric
/// depends on a factor is one question.
pub(crate) fn interactions(rules: &Rules, cells: &Cells<'_>) -> Vec<Interaction> {
    let mut questions: BTreeMap<(usize, String), Vec<Draft>> = BTreeMap::new();
    for (place, metric) in Metric::ALL
        .into_iter()
        .enumerate()
        .filter(|(_, m)| !m.is_of_events())
    {
        let mut pools = pools(cells, metric);
        pools.retain(|pool| is_declared(cells, pool, metric, &rules.baseline));
        if pools.len() < 2 {
            continue;
        }
        let mut contrasts = contrasts(&pools);
        contrasts.retain(|(_, _, factor)| !cells.names_loads(factor));
        for subject in cells.subjects.iter().filter(|s| **s != rules.baseline) {
            let costs: Vec<Pairs> = pools
                .iter()
                .map(|pool| pool.pairs(cells, metric, (subject, false), (&rules.baseline, false)))
                .collect();
            for (level, reference, factor) in &contrasts {
                let pairs = (&costs[*level], &costs[*reference]);
                let about = (metric, subject.as_str(), *factor);
                let places = (&pools[*level].condition, &pools[*reference].condition);
                let question = questions.entry((place, (*factor).to_owned())).or_default();
                question.extend(draft(rules, about, places, pairs));
            }
        }
    }
    let tests = questions
        .into_values()
        .flat_map(|drafts| family(drafts, |d| d.found.p_value, Together::Any));
    tests.map(|test| finish(rules, test)).collect()
}

/// Each condition with the first one that differs from it in one factor only, by their places, and
/// that factor.
fn contrasts<'p>(pools: &'p [Pool<'_>]) -> Vec<(usize, usize, &'p str)> {
    let mut found = Vec::new();
    for (place, pool) in pools.iter().enumerate() {
        for factor in pool.condition.keys() {
            let others = |condition: &'p Condition| condition.iter().filter(|(f, _)| *f != factor);
            let is_like = |one: &'p Pool<'_>| {
                one.condition.contains_key(factor)
                    && others(&one.condition).eq(others(&pool.condition))
            };
            if let Some(first) = pools
                .iter()
                .position(is_like)
                .filter(|first| *first != place)
            {
                found.push((place, first, factor.as_str()));
            }
        }
    }
    found
}

fn draft(
    rules: &Rules,
    (metric, subject, factor): (Metric, &str, &str),
    (place, reference): (&Condition, &Condition),
    (ours, theirs): (&Pairs, &Pairs),
) -> Option<Draft> {
    if ours.unresolved + theirs.unresolved > 0 {
        return None;
    }
    // Each of the two levels has to allow a comparison of its own.
    let p = |pairs: &Pairs| p_value(pairs, &pairs.sample()?);
    p(ours).zip(p(theirs))?;
    let mut logs = Vec::new();
    let (mut at_level, mut at_reference) = (0.0, 0.0);
    for one in &ours.ratios {
        if let Some(other) = theirs.ratios.iter().find(|other| other.block == one.block) {
            let both = (one.ratio.ln(), other.ratio.ln());
            logs.push(both.0 - both.1);
            at_level += both.0;
            at_reference += both.1;
        }
    }
    if logs.len() < FEWEST_BLOCKS {
        return None;
    }
    let sample = Sample::of(&logs)?;
    let level = |condition: &Condition, pairs: &Pairs, logs_sum: f64| {
        let (subject_value, baseline_value) = pairs.values()?;
        Some(Level {
            level: condition.get(factor)?.clone(),
            ratio: (logs_sum / logs.len() as f64).exp(),
            baseline_value,
            subject_value,
        })
    };
    let interval = sample.interval(rules.look_confidence());
    let mut others = place.clone();
    others.remove(factor);
    let limited = |pairs: &Pairs| pairs.client_limited.0 + pairs.client_limited.1 > 0;
    let is_limited = metric == Metric::RequestsPerS
        && [ours, theirs]
            .iter()
            .any(|p| limited(p) && !p.drivers_differ());
    Some(Draft {
        found: Interaction {
            condition: others,
            metric,
            subject: subject.to_owned(),
            baseline: rules.baseline.clone(),
            factor: factor.to_owned(),
            level: level(place, ours, at_level)?,
            reference: level(reference, theirs, at_reference)?,
            ratio: sample.mean.exp(),
            low: interval.map(|(low, _)| low.exp()),
            high: interval.map(|(_, high)| high.exp()),
            confidence: rules.confidence,
            blocks: sample.blocks,
            p_value: sample.p_value().filter(|_| !is_limited),
            p_adjusted: None,
            matters: rules.matters,
            dependence: match is_limited {
                true => Dependence::ClientLimited,
                false => Dependence::Inconclusive,
            },
        },
        sample,
    })
}

fn finish(rules: &Rules, test: Test<Draft>) -> Interaction {
    let Draft { mut found, sample } = test.draft;
    if found.dependence == Dependence::ClientLimited {
        return found;
    }
    found.p_adjusted = test.p_adjusted;
    let higher = found.metric.higher_is_better();
    let adjusted = test.p_adjusted.unwrap_or(1.0);
    found.dependence = match decide(&sample, rules, adjusted, test.of, higher).verdict {
        Verdict::Faster | Verdict::Slower => Dependence::Differs,
        Verdict::Same => Dependence::Same,
        Verdict::Inconclusive | Verdict::Invalid => Dependence::Inconclusive,
    };
    found
}

#[cfg(test)]
mod tests;

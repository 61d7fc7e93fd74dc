//! A comparison before it is decided, and what its blocks alone say.

use readings::Condition;

use crate::comparison::decide::{Decision, decide};
use crate::comparison::events;
use crate::comparison::floor::noise_floor;
use crate::comparison::pairs::spread::Spreads;
use crate::comparison::pairs::{Pairs, Whose};
use crate::stats::sample::Sample;
use crate::trial::cells::Cells;
use crate::{CpusOfOthers, Metric, NoiseFloor, Note, Rules, Starts, Verdict};

/// A comparison before it is decided.
pub(crate) struct Draft<'a> {
    pub condition: Condition,
    pub metric: Metric,
    pub subject: &'a str,
    pub pairs: Pairs,
    pub subject_starts: Starts,
    pub baseline_starts: Starts,
    /// The blocks' log ratios, summarised.
    pub sample: Option<Sample>,
    /// What other programs took, if it is more than on a quiet machine.
    pub others: Option<CpusOfOthers>,
    pub events: Option<events::Evidence>,
}

#[derive(Clone, Copy)]
pub(crate) struct Run<'r, 'a> {
    pub rules: &'r Rules,
    pub cells: &'r Cells<'a>,
    pub floors: &'r [NoiseFloor],
    pub spreads: &'r Spreads<'r>,
}

/// Does something with all that the comparisons of a run rest on.
pub(crate) fn in_run<T>(
    rules: &Rules,
    cells: &Cells<'_>,
    use_it: impl FnOnce(&Run<'_, '_>) -> T,
) -> T {
    let spreads = Spreads::of(rules, cells);
    let floors = noise_floor(rules, cells, &spreads);
    use_it(&Run {
        rules,
        cells,
        floors: &floors,
        spreads: &spreads,
    })
}

pub(crate) struct Case<'c> {
    pub run: &'c Run<'c, 'c>,
    /// The rules for the comparison: its margin may be a time.
    pub rules: &'c Rules,
    pub draft: &'c Draft<'c>,
    pub p_adjusted: Option<f64>,
    pub comparisons: usize,
}

impl Case<'_> {
    /// The noise floor of its condition and metric.
    pub fn floor(&self) -> Option<&NoiseFloor> {
        let mut floors = self.run.floors.iter();
        floors.find(|f| f.condition == self.draft.condition && f.metric == self.draft.metric)
    }

    /// The logarithm of the ratio of subject to baseline.
    pub fn log_ratio(&self) -> Option<f64> {
        Some(self.draft.sample.as_ref()?.mean)
    }
}

fn is_invalid(pairs: &Pairs) -> bool {
    pairs.unusable * 2 > pairs.tried
}

/// The p value of pairs with this sample, where they may be decided at all.
pub(crate) fn p_value(pairs: &Pairs, sample: &Sample) -> Option<f64> {
    sample.p_value().filter(|_| !is_invalid(pairs))
}

impl Draft<'_> {
    pub fn p_value(&self) -> Option<f64> {
        match &self.events {
            Some(_) if is_invalid(&self.pairs) => None,
            Some(events) => events.p_value(),
            None => p_value(&self.pairs, self.sample.as_ref()?),
        }
    }

    /// What the blocks alone say.
    pub fn decision(&self, rules: &Rules, p_adjusted: Option<f64>, comparisons: usize) -> Decision {
        if is_invalid(&self.pairs) {
            return invalid(&self.pairs, self.subject, &rules.baseline);
        }
        let too_few = || too_few(&self.pairs);
        let Some(p) = p_adjusted else {
            return too_few();
        };
        match (&self.events, &self.sample) {
            (Some(events), _) => events.decide(rules, p, comparisons).unwrap_or_else(too_few),
            (None, Some(sample)) => {
                let higher = self.metric.higher_is_better();
                decide(sample, rules, p, comparisons, higher)
            }
            (None, None) => too_few(),
        }
    }
}

fn invalid(pairs: &Pairs, subject: &str, baseline: &str) -> Decision {
    let (name, reason) = match &pairs.reason {
        Some((Whose::Subject, reason)) => (subject, Some(reason.clone())),
        Some((Whose::Baseline, reason)) => (baseline, Some(reason.clone())),
        None => (subject, None),
    };
    Decision {
        verdict: Verdict::Invalid,
        notes: vec![Note::Unusable {
            blocks: pairs.unusable,
            tried: pairs.tried,
            subject: name.to_owned(),
            reason,
        }],
    }
}

fn too_few(pairs: &Pairs) -> Decision {
    let note = match pairs.tried {
        0 => Note::NothingMeasured,
        _ => Note::TooFewBlocks {
            usable: pairs.ratios.len(),
            reason: pairs.reason.as_ref().map(|(_, reason)| reason.clone()),
        },
    };
    Decision {
        verdict: Verdict::Inconclusive,
        notes: vec![note],
    }
}

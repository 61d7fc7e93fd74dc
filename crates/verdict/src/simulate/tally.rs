//! How often the verdicts on a scenario were right.

use std::collections::{BTreeMap, BTreeSet};

use readings::Condition;

use super::scenario::Scenario;
use crate::{Analysis, Comparison, Metric, Tiers, Verdict};

/// What the experiments of a scenario came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    /// Experiments carried out.
    pub experiments: u32,
    /// Experiments in which any subject was falsely called faster or slower: one that is as fast
    /// as the baseline, or one that differs the other way.
    pub with_false_difference: u32,
    /// Questions over all experiments: a metric under a condition.
    pub questions: u32,
    pub questions_with_false: u32,
    /// Those in which any pair of equal subjects was told apart, and the pairs that truly differ by
    /// at least a factor of two, with how many of them were told apart; only where pairs are judged.
    pub questions_with_false_pair: u32,
    pub pairs_of_twofold: u32,
    pub pairs_of_twofold_found: u32,
    /// Experiments whose noise floor was called biased.
    pub with_biased_floor: u32,
    /// The comparisons, by subject, over all conditions and metrics.
    pub subjects: Vec<SubjectTally>,
    /// How many experiments ended after so many blocks.
    pub ended_after: BTreeMap<u32, u32>,
}

/// What the comparisons of one subject with the baseline came to.
#[derive(Clone, Debug, PartialEq)]
pub struct SubjectTally {
    /// Its true speed over the baseline's.
    pub speed: f64,
    /// What matters, as a fraction.
    pub matters: f64,
    pub comparisons: u32,
    pub faster: u32,
    pub slower: u32,
    pub same: u32,
    pub inconclusive: u32,
    pub invalid: u32,
    /// Comparisons whose published interval holds the true ratio.
    pub covered: u32,
    /// Comparisons whose plain 95% interval, as if there were no looks, holds the true ratio.
    pub covered_plainly: u32,
}

impl Tally {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let subject = |&speed: &f64| SubjectTally {
            speed,
            matters: scenario.matters,
            comparisons: 0,
            faster: 0,
            slower: 0,
            same: 0,
            inconclusive: 0,
            invalid: 0,
            covered: 0,
            covered_plainly: 0,
        };
        Self {
            experiments: 0,
            with_false_difference: 0,
            questions: 0,
            questions_with_false: 0,
            questions_with_false_pair: 0,
            pairs_of_twofold: 0,
            pairs_of_twofold_found: 0,
            with_biased_floor: 0,
            subjects: scenario.speeds.iter().map(subject).collect(),
            ended_after: BTreeMap::new(),
        }
    }

    pub(super) fn count(&mut self, analysis: &Analysis) {
        self.experiments += 1;
        *self
            .ended_after
            .entry(analysis.stage.blocks_done)
            .or_default() += 1;
        let mut wrong: BTreeSet<(&Condition, Metric)> = BTreeSet::new();
        let mut questions: BTreeSet<(&Condition, Metric)> = BTreeSet::new();
        for comparison in &analysis.comparisons {
            let question = (&comparison.condition, comparison.metric);
            questions.insert(question);
            let subject = number(&comparison.subject);
            // Comparisons are of the subjects that the scenario's header named, from 1.
            let Some(tally) = self.subjects.get_mut(subject.wrapping_sub(1)) else {
                continue;
            };
            if tally.count(comparison) {
                wrong.insert(question);
            }
        }
        self.with_false_difference += u32::from(!wrong.is_empty());
        self.questions += questions.len() as u32;
        self.questions_with_false += wrong.len() as u32;
        for tiers in &analysis.tiers {
            self.count_pairs(tiers);
        }
        let biased = |f: &crate::NoiseFloor| {
            f.is_biased(analysis.comparisons.first().map_or(0.0, |c| c.matters))
        };
        self.with_biased_floor += u32::from(analysis.noise_floor.iter().any(biased));
    }

    fn count_pairs(&mut self, tiers: &Tiers) {
        let speed = |name: &str| match number(name) {
            0 => 1.0,
            subject => self.subjects[subject - 1].speed,
        };
        let (mut wrong, mut twofold, mut found) = (false, 0, 0);
        for pair in &tiers.pairs {
            let truth = speed(&pair.first) / speed(&pair.second);
            wrong |= pair.told_apart && truth <= 1.0;
            if truth.max(1.0 / truth) > 1.999 {
                twofold += 1;
                found += u32::from(pair.told_apart && truth > 1.0);
            }
        }
        self.questions_with_false_pair += u32::from(wrong);
        self.pairs_of_twofold += twofold;
        self.pairs_of_twofold_found += found;
    }

    /// The share of questions with any false 'faster' or 'slower'.
    pub fn false_in_question(&self) -> f64 {
        share(self.questions_with_false, self.questions)
    }

    /// The share of experiments with any false 'faster' or 'slower'.
    pub fn false_difference(&self) -> f64 {
        share(self.with_false_difference, self.experiments)
    }

    /// The mean number of blocks that the experiments took.
    pub fn mean_blocks(&self) -> f64 {
        let blocks: f64 = self
            .ended_after
            .iter()
            .map(|(blocks, n)| f64::from(*blocks) * f64::from(*n))
            .sum();
        blocks / f64::from(self.experiments.max(1))
    }
}

impl SubjectTally {
    /// Counts a comparison; whether it is a false difference.
    fn count(&mut self, comparison: &Comparison) -> bool {
        let higher_is_better = comparison.metric.higher_is_better();
        self.comparisons += 1;
        match comparison.verdict {
            Verdict::Faster => self.faster += 1,
            Verdict::Slower => self.slower += 1,
            Verdict::Same => self.same += 1,
            Verdict::Inconclusive => self.inconclusive += 1,
            Verdict::Invalid => self.invalid += 1,
        }
        let truth = if higher_is_better {
            self.speed
        } else {
            1.0 / self.speed
        };
        let holds = |(low, high): (f64, f64)| low <= truth && truth <= high;
        self.covered += u32::from(comparison.interval().is_some_and(holds));
        let logs: Vec<f64> = comparison.by_block.iter().map(|b| b.ratio.ln()).collect();
        let plain = crate::stats::sample::Sample::of(&logs).and_then(|s| s.interval(0.95));
        let plain = plain.map(|(low, high)| (low.exp(), high.exp()));
        self.covered_plainly += u32::from(plain.is_some_and(holds));
        match comparison.verdict {
            Verdict::Faster => self.speed <= 1.0,
            Verdict::Slower => self.speed >= 1.0,
            _ => false,
        }
    }

    /// The share of comparisons that were called faster or slower in the true direction.
    pub fn found(&self) -> f64 {
        let found = if self.speed > 1.0 {
            self.faster
        } else {
            self.slower
        };
        share(found, self.comparisons)
    }

    /// The share of comparisons that were called faster or slower, in whichever direction.
    pub fn different(&self) -> f64 {
        share(self.faster + self.slower, self.comparisons)
    }

    /// The share of comparisons that were called the same.
    pub fn same(&self) -> f64 {
        share(self.same, self.comparisons)
    }

    /// The share of comparisons whose published interval holds the truth.
    pub fn coverage(&self) -> f64 {
        share(self.covered, self.comparisons)
    }

    /// The share of comparisons whose plain 95% interval holds the truth.
    pub fn plain_coverage(&self) -> f64 {
        share(self.covered_plainly, self.comparisons)
    }
}

/// The number of a subject; 0 for the baseline.
fn number(subject: &str) -> usize {
    let last = subject.rsplit('-').next();
    last.and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn share(part: u32, whole: u32) -> f64 {
    f64::from(part) / f64::from(whole.max(1))
}

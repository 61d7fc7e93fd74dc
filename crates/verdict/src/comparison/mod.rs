//! Comparisons of subjects with the baseline, over blocks.

pub(crate) mod words;

pub(crate) mod decide;
pub(crate) mod events;
pub(crate) mod floor;
pub(crate) mod interactions;
pub(crate) mod pairs;
pub(crate) mod record;
pub(crate) mod tiers;
pub(crate) mod withhold;

use readings::Condition;
use serde::Serialize;

use crate::comparison::decide::{Decision, FEWEST_BLOCKS, decide};
use crate::comparison::pairs::pooling::{Pool, pool_of};
use crate::comparison::pairs::{Pairs, Whose, is_measured};
use crate::stats::family::{Test, Undecidable, family};
use crate::stats::sample::Sample;
use crate::trial::cells::{Cell, Cells};
use crate::trial::others::{self, FEWEST_BLOCKS_BESIDE_OTHERS, cpus_of_others, widened};
use crate::{Bound, CpusOfOthers, Metric, NoiseFloor, Note, Robust, Rules, Starts, Verdict};

/// One block's evidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BlockRatio {
    /// The block's number, from 1.
    pub block: u32,
    /// Subject over baseline.
    pub ratio: f64,
    /// Subject minus baseline, in the metric's unit; only with fault injection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
}

/// A subject against the baseline, on one metric under one condition. Ratios are subject over
/// baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The condition it holds for.
    pub condition: Condition,
    /// What was compared.
    pub metric: Metric,
    pub subject: String,
    pub baseline: String,
    /// The geometric mean of the blocks' ratios; absent when no block can be used.
    pub ratio: Option<f64>,
    /// Lower end of the interval of the ratio; absent with too few blocks, and where no lower end
    /// is known.
    pub low: Option<f64>,
    /// Upper end of the interval of the ratio; absent with too few blocks, and where no upper end
    /// is known.
    pub high: Option<f64>,
    /// Which end alone is known, where the client was the bottleneck for one side.
    pub bound: Option<Bound>,
    /// Confidence of the interval, wherever the run stops: at one of several looks the interval
    /// is wider than it would be at the only one.
    pub confidence: f64,
    /// Blocks used.
    pub blocks: usize,
    /// The smallest difference that matters, as a fraction.
    pub matters: f64,
    /// What it came to.
    pub verdict: Verdict,
    /// What qualifies the verdict.
    #[serde(skip)]
    pub notes: Vec<Note>,
    /// Geometric mean of the baseline over the blocks used, in the metric's unit; of events the
    /// share over all of them, or the mean time.
    pub baseline_value: Option<f64>,
    /// The same of the subject.
    pub subject_value: Option<f64>,
    /// Whether the whole interval lies beyond what matters, in the direction of a verdict 'faster' or
    /// 'slower': the difference surely matters.
    pub surely: bool,
    /// The probability that the difference, in the direction of the estimate, exceeds what matters.
    pub p_beyond_matters: Option<f64>,
    /// The Hodges-Lehmann estimate with its interval of the same confidence, which a few wild blocks
    /// move little. Both ends are absent where so few blocks allow no such interval.
    pub robust: Option<Robust>,
    /// The correlation of each block with the next that the interval allows for.
    pub block_correlation: Option<f64>,
    /// Two-sided p value of 'no difference'; absent where none can be had.
    pub p_value: Option<f64>,
    /// The p value after Holm's correction over all comparisons of the run.
    pub p_adjusted: Option<f64>,
    /// The open loop's rate, where it was the same in all blocks.
    pub rate_per_s: Option<f64>,
    /// The subject's starts under the condition.
    pub subject_starts: Starts,
    /// The baseline's.
    pub baseline_starts: Starts,
    /// The ratio of each block used.
    pub by_block: Vec<BlockRatio>,
    /// The subject's value less the baseline's, in the metric's unit; what figures of events are
    /// judged by.
    pub difference: Option<f64>,
    /// Lower end of the interval of the difference.
    pub difference_low: Option<f64>,
    /// Upper end of the interval of the difference.
    pub difference_high: Option<f64>,
    /// The smallest difference that matters, in the metric's unit.
    pub difference_matters: Option<f64>,
    /// Blocks used in which the ratio of the closed loops still changed in the second half of the
    /// slices; 0 for latencies, and where there were fewer than 60 slices.
    pub unsettled_blocks: usize,
}

impl Comparison {
    /// Both ends of the interval of the ratio.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }

    /// Both ends of the interval of the difference.
    pub fn difference_interval(&self) -> Option<(f64, f64)> {
        self.difference_low.zip(self.difference_high)
    }
}

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

/// What all comparisons of a run rest on.
pub(crate) struct Run<'r, 'a> {
    pub rules: &'r Rules,
    pub cells: &'r Cells<'a>,
    pub floors: &'r [NoiseFloor],
}

/// What decides a comparison.
pub(crate) struct Case<'c> {
    pub run: &'c Run<'c, 'c>,
    /// The rules for the comparison: its margin may be a time.
    pub rules: &'c Rules,
    pub draft: &'c Draft<'c>,
    pub p_adjusted: Option<f64>,
    /// The comparisons of its family.
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

/// A comparison that was left out because its quantile has too few requests behind it.
pub(crate) struct Unresolved {
    pub condition: Condition,
    pub metric: Metric,
    pub subject: String,
    pub blocks: usize,
}

/// All comparisons of a run, and those that were left out as unresolved.
pub(crate) fn comparisons(
    rules: &Rules,
    cells: &Cells<'_>,
    floors: &[NoiseFloor],
) -> (Vec<Comparison>, Vec<Unresolved>) {
    let mut drafts = Vec::new();
    let mut unresolved = Vec::new();
    for condition in &cells.conditions {
        for metric in Metric::ALL {
            let Some(pool) = pool_of(cells, condition, metric) else {
                continue;
            };
            if !is_declared(cells, &pool, metric, &rules.baseline) {
                continue;
            }
            let others = cpus_of_others(cells, pool.members.iter().copied());
            let baseline = rules.baseline.as_str();
            let floor_sd = others.and_then(|_| floor_sd(cells, &pool, metric, baseline));
            for subject in cells.subjects.iter().filter(|s| **s != rules.baseline) {
                let pairs = pool.pairs(cells, metric, (subject, false), (&rules.baseline, false));
                if is_left_out(cells, &pool, metric, subject, &pairs) {
                    continue;
                }
                if pairs.unresolved > 0 {
                    unresolved.push(Unresolved {
                        condition: pool.condition.clone(),
                        metric,
                        subject: subject.clone(),
                        blocks: pairs.unresolved,
                    });
                    continue;
                }
                let sample = widened_sample(&pairs, others, floor_sd);
                drafts.push(Draft {
                    sample,
                    others,
                    condition: pool.condition.clone(),
                    metric,
                    subject,
                    events: events::Evidence::of(metric, &pairs.events),
                    pairs,
                    subject_starts: pool.starts(cells, subject),
                    baseline_starts: pool.starts(cells, &rules.baseline),
                });
            }
        }
    }
    let run = Run {
        rules,
        cells,
        floors,
    };
    let tests = family(drafts, Draft::p_value, Undecidable::Counts);
    let comparisons = tests.into_iter().map(|test| finish(&run, test)).collect();
    (comparisons, unresolved)
}

/// The standard deviation of the noise floor over blocks.
pub(crate) fn floor_sd(
    cells: &Cells<'_>,
    pool: &Pool<'_>,
    metric: Metric,
    baseline: &str,
) -> Option<f64> {
    let copies = pool.pairs(cells, metric, (baseline, true), (baseline, false));
    Some(copies.sample()?.sd)
}

/// The log ratios, summarised; beside other programs their spread is no smaller than that of the
/// floor and of the slices.
pub(crate) fn widened_sample(
    pairs: &Pairs,
    others: Option<CpusOfOthers>,
    floor_sd: Option<f64>,
) -> Option<Sample> {
    let sample = pairs.sample()?;
    Some(match others {
        Some(_) => widened(sample, floor_sd, pairs.sd_of_slices()),
        None => sample,
    })
}

/// Whether a metric was not measured of a subject: its driver does not report it, or servers were
/// not sampled in a single block.
fn is_left_out(
    cells: &Cells<'_>,
    pool: &Pool<'_>,
    metric: Metric,
    subject: &str,
    pairs: &Pairs,
) -> bool {
    if metric.is_cost() {
        return pairs.ratios.is_empty();
    }
    let outside = |cell: &Cell<'_>| {
        cell.trial.subject == subject && cell.reading().is_some_and(|r| r.driver.is_some())
    };
    let mut members = pool.members.iter();
    pairs.tried == 0 && members.any(|c| cells.of_condition(c).any(outside))
}

/// Whether a run has anything to say on a metric under a condition. Throughput is what a
/// condition is about when nothing of it was measured.
///
/// With events no latency is compared: that of the remaining answers would favour a subject whose
/// other requests failed.
///
/// Drivers are compared where they differ; latency only at quantiles that the baseline's driver
/// reports.
pub(crate) fn is_declared(
    cells: &Cells<'_>,
    pool: &Pool<'_>,
    metric: Metric,
    baseline: &str,
) -> bool {
    let members = || pool.members.iter().copied();
    if metric.is_of_driver() && !members().any(|c| cells.drivers_differ(c)) {
        return false;
    }
    if metric.is_cost() {
        let mut trials = members().flat_map(|c| cells.of_condition(c));
        return !members().any(|c| cells.drivers_differ(c))
            && trials.any(|cell| cell.trial.subject == baseline && is_measured(metric, cell));
    }
    let mut measured_nothing = true;
    for cell in members().flat_map(|c| cells.of_condition(c)) {
        let Some(reading) = cell.reading() else {
            continue;
        };
        measured_nothing = false;
        if metric.is_of_events() || reading.events.is_some() {
            let noticed = reading.events.as_ref().filter(|_| metric.is_of_events());
            if noticed.is_some_and(|noticed| events::value(metric, noticed).is_some()) {
                return true;
            }
            continue;
        }
        let is_there = match (metric.quantile(), &reading.driver) {
            (Some(q), Some(driver)) => {
                cell.trial.subject == baseline && driver.latency_us(q).is_some()
            }
            (Some(_), None) => reading.latency.is_some(),
            (None, _) => reading.throughput.is_some(),
        };
        if is_there {
            return true;
        }
    }
    measured_nothing && metric == Metric::RequestsPerS
}

fn is_invalid(pairs: &Pairs) -> bool {
    pairs.unusable * 2 > pairs.tried
}

/// The p value, where the comparison may be decided at all.
pub(crate) fn p_value(pairs: &Pairs) -> Option<f64> {
    p_of_sample(pairs, &pairs.sample()?, None)
}

fn p_of_sample(pairs: &Pairs, sample: &Sample, others: Option<CpusOfOthers>) -> Option<f64> {
    let too_few = sample.blocks < FEWEST_BLOCKS || others::are_too_few(sample.blocks, others);
    if is_invalid(pairs) || too_few {
        return None;
    }
    sample.p_value()
}

impl Draft<'_> {
    fn p_value(&self) -> Option<f64> {
        match &self.events {
            Some(_) if is_invalid(&self.pairs) => None,
            Some(events) => events.p_value(),
            None => p_of_sample(&self.pairs, self.sample.as_ref()?, self.others),
        }
    }

    /// What the blocks alone say.
    fn decision(&self, rules: &Rules, p_adjusted: Option<f64>, comparisons: usize) -> Decision {
        if is_invalid(&self.pairs) {
            return invalid(&self.pairs, self.subject, &rules.baseline);
        }
        let too_few = || too_few(&self.pairs, self.others);
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

/// Decides a comparison: first by its blocks, then by the rules that [withhold] verdicts.
fn finish(run: &Run<'_, '_>, test: Test<Draft<'_>>) -> Comparison {
    let baseline_value = test.draft.pairs.values().map(|(_, baseline)| baseline);
    let rules = run.rules.of_comparison(test.draft.metric, baseline_value);
    let first = test.draft.decision(&rules, test.p_adjusted, test.of);
    let usable = first.verdict != Verdict::Invalid;
    let case = Case {
        run,
        rules: &rules,
        draft: &test.draft,
        p_adjusted: test.p_adjusted,
        comparisons: test.of,
    };
    let decision = withhold::revised(&case, first);
    let bound = withhold::bound(&test.draft).filter(|_| usable);
    let Draft {
        condition,
        metric,
        subject,
        pairs,
        subject_starts,
        baseline_starts,
        sample,
        events,
        ..
    } = test.draft;
    // Figures of an invalid comparison would be read as if they meant something.
    let sample = sample.as_ref().filter(|_| usable);
    let confidence = rules.look_confidence();
    let interval = sample
        .filter(|_| !withhold::is_unbounded(metric, &pairs))
        .and_then(|s| s.interval(confidence));
    let delta = rules.delta();
    let differs = matches!(decision.verdict, Verdict::Faster | Verdict::Slower);
    let surely = differs && interval.is_some_and(|(low, high)| low > delta || high < -delta);
    let robust = sample.filter(|s| s.blocks >= FEWEST_BLOCKS).map(|s| {
        let (estimate, interval) = s.robust(confidence);
        Robust {
            ratio: estimate.exp(),
            low: interval.map(|(low, _)| low.exp()),
            high: interval.map(|(_, high)| high.exp()),
        }
    });
    let values = pairs.values().filter(|_| usable);
    let mut comparison = Comparison {
        condition,
        metric,
        subject: subject.to_owned(),
        baseline: rules.baseline.clone(),
        ratio: sample.map(|s| s.mean.exp()),
        low: interval
            .filter(|_| bound != Some(Bound::AtMost))
            .map(|(low, _)| low.exp()),
        high: interval
            .filter(|_| bound != Some(Bound::AtLeast))
            .map(|(_, high)| high.exp()),
        bound,
        confidence: rules.confidence,
        blocks: pairs.ratios.len(),
        matters: rules.matters,
        verdict: decision.verdict,
        notes: decision.notes,
        baseline_value: values.map(|(_, b)| b),
        subject_value: values.map(|(s, _)| s),
        surely,
        p_beyond_matters: sample.and_then(|s| s.p_beyond(delta)),
        robust,
        block_correlation: interval.and(sample).map(|s| s.correlation),
        p_value: test.p,
        p_adjusted: test.p_adjusted,
        rate_per_s: pairs.rate_per_s,
        subject_starts,
        baseline_starts,
        by_block: pairs.ratios,
        difference: None,
        difference_low: None,
        difference_high: None,
        difference_matters: None,
        unsettled_blocks: pairs.unsettled,
    };
    if let Some(events) = events.filter(|_| usable) {
        events.figures(&rules).fill(&mut comparison);
    }
    comparison
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

fn too_few(pairs: &Pairs, others: Option<CpusOfOthers>) -> Decision {
    let blocks = pairs.ratios.len();
    let note = match (pairs.tried, others) {
        (0, _) => Note::NothingMeasured,
        (_, Some(others)) if blocks >= FEWEST_BLOCKS => Note::TooFewBesideOthers {
            usable: blocks,
            needed: FEWEST_BLOCKS_BESIDE_OTHERS,
            others,
        },
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

/// Whose clock a latency was taken with, where it was not the engine's own.
fn whose_clock(pairs: &Pairs) -> Option<Note> {
    let (subject, baseline) = pairs.drivers.clone()?;
    Some(Note::Clock {
        subject,
        baseline,
        closed_loop: pairs.rate_per_s.is_none(),
    })
}

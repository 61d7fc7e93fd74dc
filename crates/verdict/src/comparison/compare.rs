//! All comparisons of a run: drafted, corrected together, and decided.

use readings::{Condition, EventsReading};

use crate::comparison::draft::{Case, Draft, Run};
use crate::comparison::events;
use crate::comparison::pairs::Pairs;
use crate::comparison::pairs::pooling::{Pool, is_declared, pool_of};
use crate::comparison::withhold;
use crate::metric::quantile::{QuantileFigure, ResolvedBy};
use crate::stats::family::{Test, Together, family};
use crate::trial::cells::Cell;
use crate::{Bound, Comparison, FEWEST_BLOCKS, Metric, Robust, Verdict};

/// A comparison that was left out because too few answers stand behind its quantile.
#[derive(Clone, Debug, PartialEq)]
pub struct Unresolved {
    pub condition: Condition,
    pub metric: Metric,
    pub subject: String,
    pub baseline: String,
    /// The open loop's rate, where it was one for all.
    pub rate_per_s: Option<f64>,
    /// Blocks that do not resolve it.
    pub blocks: usize,
    /// What is known of the subject's quantile and of the baseline's; nothing by outside drivers.
    pub quantiles: Option<(QuantileFigure, QuantileFigure)>,
}

impl Unresolved {
    /// What would resolve it.
    pub fn resolved_by(&self) -> Option<ResolvedBy> {
        ResolvedBy::of(self.quantiles.as_ref()?)
    }
}

/// All comparisons of a run, and those that were left out as unresolved.
///
/// A question is one metric under one condition; its comparisons are a family.
pub(crate) fn comparisons(run: &Run<'_, '_>) -> (Vec<Comparison>, Vec<Unresolved>) {
    let Run {
        rules,
        cells,
        spreads,
        ..
    } = *run;
    let mut comparisons = Vec::new();
    let mut unresolved = Vec::new();
    for condition in &cells.conditions {
        for metric in Metric::ALL {
            let Some(pool) = pool_of(cells, condition, metric) else {
                continue;
            };
            if !is_declared(cells, &pool, metric, &rules.baseline) {
                continue;
            }
            let mut drafts = Vec::new();
            for subject in cells.subjects.iter().filter(|s| **s != rules.baseline) {
                let pairs = pool.pairs(cells, metric, (subject, false), (&rules.baseline, false));
                if is_left_out(cells, &pool, metric, (subject, &rules.baseline), &pairs) {
                    continue;
                }
                if pairs.unresolved > 0 {
                    unresolved.push(Unresolved {
                        condition: pool.condition.clone(),
                        metric,
                        subject: subject.clone(),
                        baseline: rules.baseline.clone(),
                        rate_per_s: pairs.rate_per_s,
                        blocks: pairs.unresolved,
                        quantiles: pairs.quantiles,
                    });
                    continue;
                }
                drafts.push(Draft {
                    sample: spreads.sample(metric, &pool.condition, &pairs),
                    others: spreads.others(metric, &pool.condition),
                    condition: pool.condition.clone(),
                    metric,
                    subject,
                    events: events::Evidence::of(metric, &pairs.events),
                    pairs,
                    subject_starts: pool.starts(cells, subject),
                    baseline_starts: pool.starts(cells, &rules.baseline),
                });
            }
            let tests = together(run, metric, &drafts);
            let tests = family(drafts, Draft::p_value, tests);
            comparisons.extend(tests.into_iter().map(|test| finish(run, test)));
        }
    }
    (comparisons, unresolved)
}

/// Comparisons of several subjects share the baseline. Counts of events are not told by their spread.
fn together(run: &Run<'_, '_>, metric: Metric, drafts: &[Draft<'_>]) -> Together {
    if metric.is_of_events() {
        return Together::Any;
    }
    let blocks = drafts.iter().map(|draft| draft.pairs.ratios.len()).max();
    let pairs = (1..=drafts.len()).map(|one| (one, 0)).collect();
    run.spreads.together(metric, pairs, blocks.unwrap_or(0))
}

/// Whether a metric was not measured of a subject: its driver does not report it, servers were not
/// sampled in a single block, or what happened to both has no figure of it.
fn is_left_out(
    cells: &crate::trial::cells::Cells<'_>,
    pool: &Pool<'_>,
    metric: Metric,
    (subject, baseline): (&str, &str),
    pairs: &Pairs,
) -> bool {
    if metric.is_cost() {
        return pairs.ratios.is_empty();
    }
    if metric.is_of_events() {
        return pairs.tried == 0 || !is_applicable(cells, pool, metric, subject, baseline);
    }
    let outside = |cell: &Cell<'_>| {
        cell.trial.subject == subject && cell.reading().is_some_and(|r| r.driver.is_some())
    };
    let mut members = pool.members.iter();
    pairs.tried == 0 && members.any(|c| cells.of_condition(c).any(outside))
}

/// Whether what happened to the two subjects has a figure of this metric.
fn is_applicable(
    cells: &crate::trial::cells::Cells<'_>,
    pool: &Pool<'_>,
    metric: Metric,
    subject: &str,
    baseline: &str,
) -> bool {
    let trials = pool.members.iter().flat_map(|c| cells.of_condition(c));
    let trials = trials.filter(|cell| [subject, baseline].contains(&&*cell.trial.subject));
    let noticed: Vec<&EventsReading> = trials
        .filter_map(|cell| cell.reading()?.events.as_ref())
        .collect();
    events::is_applicable(metric, noticed.into_iter())
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
    let is_surely = withhold::is_surely(&case);
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
    let surely = differs && is_surely;
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
        pooled: pairs.is_pooled,
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
        of_users: pairs.of_users,
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

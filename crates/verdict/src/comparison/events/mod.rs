//! Failures and recovery around events: compared as absolute differences.

use readings::EventsReading;

mod counts;
mod judged;
mod simulate;
mod times;

pub use simulate::{FailureScenario, FailureTally, simulate_failures};

use crate::comparison::decide::Decision;
use crate::trial::cells::Cell;
use crate::{Comparison, FEWEST_BLOCKS, FailuresOf, FullRateOf, Metric, Note, Rules, Verdict};
use counts::{Block, Counts};
pub(crate) use counts::{Side, poisson_at_most};
use judged::Judged;
use times::Times;

/// With no failure in n, at most 3 in n are to be expected, with 95% confidence: the rule of three
/// (Hanley, Lippman-Hand: If Nothing Goes Wrong, Is Everything All Right?, JAMA 1983).
const RULE_OF_THREE: f64 = 3.0;

/// What a block shows: the subject's figure less the baseline's; nothing where one was not recorded.
pub(crate) fn difference(
    metric: Metric,
    ours: &EventsReading,
    theirs: &EventsReading,
) -> Option<f64> {
    let figure = |noticed: &EventsReading| match metric.event_time() {
        Some(time) => time.of(noticed),
        None => Some(side(noticed).share()),
    };
    Some(figure(ours)? - figure(theirs)?)
}

fn side(noticed: &EventsReading) -> Side {
    Side {
        failed: noticed.failed,
        requests: noticed.requests,
    }
}

/// What two subjects' blocks say on a metric of events.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Evidence {
    Failures(Counts),
    Times(Times),
}

/// The figures of a comparison, subject less or over baseline.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub ratio: Option<f64>,
    pub ratio_interval: Option<(f64, f64)>,
    pub difference: Option<f64>,
    pub difference_interval: Option<(f64, f64)>,
    /// The smallest difference that matters.
    pub difference_matters: Option<f64>,
    /// Subject, baseline.
    pub values: Option<(f64, f64)>,
}

impl Evidence {
    /// Of the blocks that are used, subject and baseline; nothing for a metric that is not of events.
    pub fn of(metric: Metric, pairs: &[(EventsReading, EventsReading)]) -> Option<Self> {
        if !metric.is_of_events() {
            return None;
        }
        let pairs = pairs.iter();
        let Some(time) = metric.event_time() else {
            let blocks = pairs.map(|(ours, theirs)| Block {
                subject: side(ours),
                baseline: side(theirs),
            });
            return Some(Self::Failures(Counts {
                blocks: blocks.collect(),
            }));
        };
        let is_open = |noticed: &EventsReading| {
            metric == Metric::FullRateAfterS && noticed.full_rate_after_s.is_none()
        };
        Some(Self::Times(Times {
            both_open: pairs.clone().any(|(a, b)| is_open(a) && is_open(b)),
            blocks: pairs
                .filter_map(|(a, b)| time.of(a).zip(time.of(b)))
                .collect(),
            resolution_s: time.step_s,
        }))
    }

    fn blocks(&self) -> usize {
        match self {
            Self::Failures(counts) => counts.blocks.len(),
            Self::Times(times) => times.blocks.len(),
        }
    }

    /// The two-sided p value of 'no difference', where there are enough blocks for a decision.
    pub fn p_value(&self) -> Option<f64> {
        if self.blocks() < FEWEST_BLOCKS {
            return None;
        }
        match self {
            Self::Failures(counts) => counts.p_value(),
            Self::Times(times) => times.p_value(),
        }
    }

    fn judged(&self, rules: &Rules) -> Option<Judged> {
        match self {
            Self::Failures(counts) => counts.judged(rules),
            Self::Times(times) => times.judged(rules),
        }
    }

    /// Decides; nothing where there are too few blocks.
    pub fn decide(&self, rules: &Rules, p_adjusted: f64, comparisons: usize) -> Option<Decision> {
        let decision = self.judged(rules)?.decide(rules, p_adjusted, comparisons);
        let both_open = matches!(self, Self::Times(times) if times.both_open);
        // How much longer each would have taken is not known, and no more blocks tell.
        Some(match (decision.verdict, both_open) {
            (Verdict::Same | Verdict::Inconclusive, true) => Decision {
                verdict: Verdict::Inconclusive,
                notes: Vec::new(),
            },
            _ => decision,
        })
    }

    pub fn figures(&self, rules: &Rules) -> Figures {
        if self.blocks() == 0 {
            return Figures::default();
        }
        let confidence = rules.look_confidence();
        let (values, ratio) = match self {
            Self::Failures(counts) => (counts.shares(), counts.ratio(confidence)),
            Self::Times(times) => (times.means(), times.ratio(confidence)),
        };
        let judged = self.judged(rules);
        Figures {
            ratio: Some(ratio.0),
            ratio_interval: ratio.1,
            difference: Some(values.0 - values.1),
            difference_interval: judged.map(|judged| judged.interval),
            difference_matters: judged.map(|judged| judged.matters),
            values: Some(values),
        }
    }
}

impl Figures {
    pub fn fill(self, comparison: &mut Comparison) {
        comparison.ratio = self.ratio;
        comparison.low = self.ratio_interval.map(|(low, _)| low);
        comparison.high = self.ratio_interval.map(|(_, high)| high);
        comparison.difference = self.difference;
        comparison.difference_low = self.difference_interval.map(|(low, _)| low);
        comparison.difference_high = self.difference_interval.map(|(_, high)| high);
        comparison.difference_matters = self.difference_matters;
        comparison.subject_value = self.values.map(|(ours, _)| ours);
        comparison.baseline_value = self.values.map(|(_, theirs)| theirs);
    }
}

/// One side of a comparison, over blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Noticed {
    requests: u64,
    failed: u64,
    /// Trials whose rate was full all the time, and those whose rate was not full at the end.
    always_full: usize,
    never_full: usize,
}

impl Noticed {
    pub fn add(&mut self, cell: &Cell<'_>) {
        let Some(noticed) = cell.reading().and_then(|reading| reading.events.as_ref()) else {
            return;
        };
        self.requests += noticed.requests;
        self.failed += noticed.failed;
        self.always_full += usize::from(noticed.full_rate_after_s == Some(0.0));
        self.never_full += usize::from(noticed.full_rate_after_s.is_none());
    }
}

/// The upper bound of the share of failures when there were none, as a fraction.
pub(crate) fn at_most(requests: u64) -> f64 {
    (RULE_OF_THREE / requests.max(1) as f64).min(1.0)
}

/// The counts behind a difference.
pub(crate) fn note(
    metric: Metric,
    (ours, theirs): &(Noticed, Noticed),
    subject: &str,
    baseline: &str,
) -> Option<Note> {
    let sides = [(subject, ours), (baseline, theirs)].into_iter();
    match metric {
        Metric::FailedShare => {
            let sides = sides.filter(|(_, side)| side.requests > 0);
            let sides = sides.map(|(subject, side)| FailuresOf {
                subject: subject.to_owned(),
                requests: side.requests,
                failed: side.failed,
                share_at_most: at_most(side.requests),
            });
            some(sides.collect()).map(Note::Failures)
        }
        Metric::FullRateAfterS => {
            let sides = sides.filter(|(_, side)| (side.always_full, side.never_full) != (0, 0));
            let sides = sides.map(|(subject, side)| FullRateOf {
                subject: subject.to_owned(),
                always: side.always_full,
                never: side.never_full,
            });
            some(sides.collect()).map(Note::FullRate)
        }
        _ => None,
    }
}

fn some<T>(items: Vec<T>) -> Option<Vec<T>> {
    (!items.is_empty()).then_some(items)
}

#[cfg(test)]
mod tests;

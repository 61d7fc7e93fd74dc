//! Failures and recovery around events: compared as absolute differences.

use readings::{EventReading, EventsReading};

mod counts;
mod judged;
mod simulate;
mod times;

pub use simulate::{FailureScenario, FailureTally, simulate_failures};

use crate::comparison::decide::Decision;
use crate::trial::cells::Cell;
use crate::trial::validity::TRANSPORT_SHARE;
use crate::{Comparison, FEWEST_BLOCKS, FailuresOf, FullRateOf, Metric, Note, Rules, Verdict};
use counts::{Block, Counts, Per};
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
    Some(match metric.event_time() {
        Some(time) => time.of(ours)? - time.of(theirs)?,
        None => {
            let block = block(metric, ours, theirs);
            block.subject.share() - block.baseline.share()
        }
    })
}

/// The failures of a block, for its requests or for its events. A side to which nothing happened is
/// a control, which counts for as many events as the other.
fn block(metric: Metric, ours: &EventsReading, theirs: &EventsReading) -> Block {
    if metric == Metric::FailedShare {
        return Block {
            subject: side(ours),
            baseline: side(theirs),
        };
    }
    let of = |noticed: &EventsReading, other: &EventsReading| Side {
        failed: noticed.failed,
        requests: events_of(noticed.events.len(), other.events.len()) as u64,
    };
    Block {
        subject: of(ours, theirs),
        baseline: of(theirs, ours),
    }
}

fn events_of(own: usize, others: usize) -> usize {
    if own == 0 { others } else { own }
}

/// Whether failures of these two are counted for each event, and not as a share of the requests: all
/// that happened was meant to lose none.
fn are_graceful<'e>(all: impl Iterator<Item = &'e EventsReading>) -> bool {
    let mut events = all.flat_map(|noticed| &noticed.events).peekable();
    events.peek().is_some() && events.all(EventReading::is_graceful)
}

/// Whether what happened in trials that are compared has a figure of this metric: failures are either
/// counted for each event or as a share, and a control has no time since an event.
pub(crate) fn is_applicable<'e>(
    metric: Metric,
    all: impl Iterator<Item = &'e EventsReading> + Clone,
) -> bool {
    match metric {
        Metric::FailedShare => !are_graceful(all),
        Metric::FailuresPerEvent => are_graceful(all),
        _ => metric.event_time().is_none() || all.into_iter().all(EventsReading::has_events),
    }
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
            let blocks = pairs.map(|(ours, theirs)| block(metric, ours, theirs));
            return Some(Self::Failures(Counts {
                blocks: blocks.collect(),
                per: match metric {
                    Metric::FailuresPerEvent => Per::Event,
                    _ => Per::Request,
                },
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
        // Of log ratios, on which no verdict rests here.
        comparison.robust = None;
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
    events: usize,
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
        self.events += noticed.events.len();
        self.always_full += usize::from(noticed.full_rate_after_s == Some(0.0));
        let is_open = noticed.has_events() && noticed.full_rate_after_s.is_none();
        self.never_full += usize::from(is_open);
    }
}

/// The upper bound of the share of failures when there were none, as a fraction.
pub(crate) fn at_most(requests: u64) -> f64 {
    (RULE_OF_THREE / requests.max(1) as f64).min(1.0)
}

/// How many of all its requests a side failed.
fn failures_of(subject: &str, side: &Noticed) -> FailuresOf {
    FailuresOf {
        subject: subject.to_owned(),
        requests: side.requests,
        failed: side.failed,
        events: None,
        at_most: at_most(side.requests),
    }
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
            let sides = sides.map(|(subject, side)| failures_of(subject, side));
            some(sides.collect()).map(Note::Failures)
        }
        Metric::FailuresPerEvent => {
            let both = [(subject, ours, theirs), (baseline, theirs, ours)].into_iter();
            let sides = both.map(|(subject, side, other)| {
                let events = events_of(side.events, other.events);
                FailuresOf {
                    subject: subject.to_owned(),
                    requests: side.requests,
                    failed: side.failed,
                    events: Some(events),
                    at_most: RULE_OF_THREE / events.max(1) as f64,
                }
            });
            let sides = sides.filter(|side| side.requests > 0);
            some(sides.collect()).map(Note::Failures)
        }
        Metric::LongestResponseS => {
            let fails =
                |side: &Noticed| side.failed as f64 > TRANSPORT_SHARE * side.requests as f64;
            if !fails(ours) && !fails(theirs) {
                return None;
            }
            let sides = sides.filter(|(_, side)| side.failed > 0);
            let sides = sides.map(|(subject, side)| failures_of(subject, side));
            some(sides.collect()).map(Note::LeavesOut)
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

//! Comparisons of subjects with the baseline, over blocks.

use readings::Condition;
use serde::Serialize;

use crate::cells::{Cell, Cells};
use crate::decide::{Decision, FEWEST_BLOCKS, decide};
use crate::pairs::{Pairs, Whose};
use crate::{Note, Rules, Verdict, events, holm};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum Metric {
    /// Good answers per second in a closed loop; more is better.
    #[serde(rename = "requests_per_s")]
    RequestsPerS,
    /// Median response latency in an open loop, microseconds; less is better.
    #[serde(rename = "latency_us_p50")]
    LatencyUsP50,
    /// 99th percentile of response latency in an open loop, microseconds; less is better.
    #[serde(rename = "latency_us_p99")]
    LatencyUsP99,
    /// CPU time of the load generator per complete answer, microseconds; less is better. Compared
    /// only where subjects have different drivers.
    #[serde(rename = "driver_cpu_us_per_request")]
    DriverCpuUsPerRequest,
    /// Peak memory of the load generator, bytes; less is better. Compared only where subjects have
    /// different drivers.
    #[serde(rename = "driver_max_rss_bytes")]
    DriverMaxRssBytes,
    /// The share of requests that failed around an event; less is better.
    #[serde(rename = "failed_share")]
    FailedShare,
    /// Time from the first event until the rate of good answers was full again, seconds; less is
    /// better.
    #[serde(rename = "full_rate_after_s")]
    FullRateAfterS,
    /// The longest time without any good answer, from the first event on, seconds; less is better.
    #[serde(rename = "longest_silence_s")]
    LongestSilenceS,
    /// The longest that a good answer took which came after the first event, seconds; less is
    /// better.
    #[serde(rename = "longest_response_s")]
    LongestResponseS,
}

impl Metric {
    /// Every metric, throughput first.
    pub const ALL: [Metric; 9] = [
        Metric::RequestsPerS,
        Metric::LatencyUsP50,
        Metric::LatencyUsP99,
        Metric::DriverCpuUsPerRequest,
        Metric::DriverMaxRssBytes,
        Metric::FailedShare,
        Metric::FullRateAfterS,
        Metric::LongestSilenceS,
        Metric::LongestResponseS,
    ];

    /// The name in the JSON document.
    pub fn name(self) -> &'static str {
        match self {
            Metric::RequestsPerS => "requests_per_s",
            Metric::LatencyUsP50 => "latency_us_p50",
            Metric::LatencyUsP99 => "latency_us_p99",
            Metric::DriverCpuUsPerRequest => "driver_cpu_us_per_request",
            Metric::DriverMaxRssBytes => "driver_max_rss_bytes",
            Metric::FailedShare => "failed_share",
            Metric::FullRateAfterS => "full_rate_after_s",
            Metric::LongestSilenceS => "longest_silence_s",
            Metric::LongestResponseS => "longest_response_s",
        }
    }

    /// The words in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Metric::RequestsPerS => "throughput",
            Metric::LatencyUsP50 => "median latency",
            Metric::LatencyUsP99 => "99th percentile of latency",
            Metric::DriverCpuUsPerRequest => "driver's CPU time per request",
            Metric::DriverMaxRssBytes => "driver's peak memory",
            Metric::FailedShare => "share of failed requests",
            Metric::FullRateAfterS => "time until the rate is full again",
            Metric::LongestSilenceS => "longest silence",
            Metric::LongestResponseS => "longest response",
        }
    }

    /// Whether more is better.
    pub fn higher_is_better(self) -> bool {
        self == Metric::RequestsPerS
    }

    /// The quantile of the latency, between 0 and 1; nothing for what is no latency.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Metric::LatencyUsP50 => Some(0.5),
            Metric::LatencyUsP99 => Some(0.99),
            _ => None,
        }
    }

    /// Whether it is measured around events.
    pub fn is_of_events(self) -> bool {
        matches!(
            self,
            Metric::FailedShare
                | Metric::FullRateAfterS
                | Metric::LongestSilenceS
                | Metric::LongestResponseS
        )
    }

    /// Whether it is about the load generator and not about the servers.
    pub fn is_of_driver(self) -> bool {
        matches!(
            self,
            Metric::DriverCpuUsPerRequest | Metric::DriverMaxRssBytes
        )
    }
}

/// One block's evidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BlockRatio {
    /// The block's number, from 1.
    pub block: u32,
    /// Subject over baseline.
    pub ratio: f64,
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
    /// Lower end of the interval of the ratio; absent with fewer than two blocks.
    pub low: Option<f64>,
    /// Upper end of the interval of the ratio; absent with fewer than two blocks.
    pub high: Option<f64>,
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
    /// Two-sided p value of 'no difference'; absent where none can be had.
    pub p_value: Option<f64>,
    /// The p value after Holm's correction over all comparisons of the run.
    pub p_adjusted: Option<f64>,
    /// The open loop's rate, where it was the same in all blocks.
    pub rate_per_s: Option<f64>,
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

struct Draft<'a> {
    condition: &'a Condition,
    metric: Metric,
    subject: &'a str,
    pairs: Pairs,
    events: Option<events::Evidence>,
}

/// A comparison that was left out because its quantile has too few requests behind it.
pub(crate) struct Unresolved {
    pub condition: Condition,
    pub metric: Metric,
    pub subject: String,
    pub blocks: usize,
}

/// All comparisons of a run, and those that were left out as unresolved.
pub(crate) fn comparisons(rules: &Rules, cells: &Cells<'_>) -> (Vec<Comparison>, Vec<Unresolved>) {
    let mut drafts = Vec::new();
    let mut unresolved = Vec::new();
    for condition in &cells.conditions {
        for metric in Metric::ALL {
            if !is_declared(cells, condition, metric, &rules.baseline) {
                continue;
            }
            let baseline = cells.of_subject(condition, &rules.baseline, false);
            for subject in cells.subjects.iter().filter(|s| **s != rules.baseline) {
                let ours = cells.of_subject(condition, subject, false);
                let pairs = Pairs::of(metric, &ours, &baseline);
                // The driver does not report it.
                let outside = |cell: &&Cell<'_>| cell.reading().is_some_and(|r| r.driver.is_some());
                if pairs.tried == 0 && ours.values().any(outside) {
                    continue;
                }
                if pairs.unresolved > 0 {
                    unresolved.push(Unresolved {
                        condition: condition.clone(),
                        metric,
                        subject: subject.clone(),
                        blocks: pairs.unresolved,
                    });
                    continue;
                }
                drafts.push(Draft {
                    condition,
                    metric,
                    subject,
                    events: events::Evidence::of(metric, &ours, &baseline, &pairs.ratios),
                    pairs,
                });
            }
        }
    }
    let p_values: Vec<Option<f64>> = drafts.iter().map(Draft::p_value).collect();
    let known: Vec<f64> = p_values.iter().map(|p| p.unwrap_or(1.0)).collect();
    let adjusted = holm::adjust(&known);
    let count = drafts.len();
    let comparisons = drafts
        .into_iter()
        .zip(p_values)
        .zip(adjusted)
        .map(|((draft, p), adjusted)| draft.finish(rules, p, p.map(|_| adjusted), count))
        .collect();
    (comparisons, unresolved)
}

/// Whether a run has anything to say on a metric under a condition. Throughput is what a
/// condition is about when nothing of it was measured.
///
/// With events no latency is compared: that of the remaining answers would favour a subject whose
/// other requests failed.
///
/// Drivers are compared where they differ; latency only at quantiles that the baseline's driver
/// reports.
fn is_declared(cells: &Cells<'_>, condition: &Condition, metric: Metric, baseline: &str) -> bool {
    if metric.is_of_driver() && !cells.drivers_differ(condition) {
        return false;
    }
    let mut measured_nothing = true;
    for cell in cells.of_condition(condition) {
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
fn p_value(pairs: &Pairs) -> Option<f64> {
    let sample = pairs.sample()?;
    if is_invalid(pairs) || sample.blocks < FEWEST_BLOCKS {
        return None;
    }
    sample.p_value()
}

impl Draft<'_> {
    fn p_value(&self) -> Option<f64> {
        match &self.events {
            Some(_) if is_invalid(&self.pairs) => None,
            Some(events) => events.p_value(),
            None => p_value(&self.pairs),
        }
    }

    fn finish(
        self,
        rules: &Rules,
        p_value: Option<f64>,
        p_adjusted: Option<f64>,
        comparisons: usize,
    ) -> Comparison {
        let pairs = self.pairs;
        let mut decision = if is_invalid(&pairs) {
            invalid(&pairs, self.subject, &rules.baseline)
        } else {
            match (&self.events, pairs.sample(), p_adjusted) {
                (Some(events), _, Some(p)) => events
                    .decide(rules, p, comparisons)
                    .unwrap_or_else(|| too_few(&pairs)),
                (None, Some(sample), Some(p)) => decide(
                    &sample,
                    rules,
                    p,
                    comparisons,
                    self.metric.higher_is_better(),
                ),
                _ => too_few(&pairs),
            }
        };
        let usable = decision.verdict != Verdict::Invalid;
        let of_drivers = pairs.drivers_differ();
        let notes = [
            // Where drivers are compared, the client is meant to be the bottleneck.
            (!of_drivers)
                .then(|| client_limit(&pairs, self.subject, &rules.baseline))
                .flatten(),
            self.metric.quantile().and_then(|_| whose_clock(&pairs)),
            events::note(self.metric, &pairs, self.subject, &rules.baseline),
        ];
        let notes = notes.into_iter().flatten().filter(|_| usable);
        decision.notes.extend(notes);
        // Figures of an invalid comparison would be read as if they meant something.
        let sample = pairs.sample().filter(|_| usable);
        let interval = sample.and_then(|s| s.interval(rules.look_confidence()));
        let values = pairs.values().filter(|_| usable);
        let of_events = self.events.as_ref().filter(|_| usable);
        let of_events = of_events.map(|events| events.figures(rules));
        let mut comparison = Comparison {
            condition: self.condition.clone(),
            metric: self.metric,
            subject: self.subject.to_owned(),
            baseline: rules.baseline.clone(),
            ratio: sample.map(|s| s.mean.exp()),
            low: interval.map(|(low, _)| low.exp()),
            high: interval.map(|(_, high)| high.exp()),
            confidence: rules.confidence,
            blocks: pairs.ratios.len(),
            matters: rules.matters,
            verdict: decision.verdict,
            notes: decision.notes,
            baseline_value: values.map(|(_, b)| b),
            subject_value: values.map(|(s, _)| s),
            p_value,
            p_adjusted,
            rate_per_s: pairs.rate_per_s,
            by_block: pairs.ratios,
            difference: None,
            difference_low: None,
            difference_high: None,
            difference_matters: None,
            unsettled_blocks: pairs.unsettled,
        };
        if let Some(figures) = of_events {
            figures.fill(&mut comparison);
        }
        comparison
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

/// Whose clock a latency was taken with, where it was not the engine's own.
fn whose_clock(pairs: &Pairs) -> Option<Note> {
    let (subject, baseline) = pairs.drivers.clone()?;
    Some(Note::Clock {
        subject,
        baseline,
        closed_loop: pairs.rate_per_s.is_none(),
    })
}

/// For which side the client was the bottleneck in most blocks.
fn client_limit(pairs: &Pairs, subject: &str, baseline: &str) -> Option<Note> {
    let most = |blocks: usize| blocks * 2 > pairs.ratios.len();
    let (ours, theirs) = pairs.client_limited;
    match (most(ours), most(theirs)) {
        (true, true) => Some(Note::ClientLimits(None)),
        (false, true) => Some(Note::ClientLimits(Some(baseline.to_owned()))),
        (true, false) => Some(Note::ClientLimits(Some(subject.to_owned()))),
        (false, false) => None,
    }
}

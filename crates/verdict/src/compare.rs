use readings::Condition;
use serde::Serialize;

use crate::cells::Cells;
use crate::decide::{Decision, FEWEST_BLOCKS, decide};
use crate::pairs::{Pairs, Whose};
use crate::sentence::{Figures, sentence};
use crate::text::counted;
use crate::{Rules, Verdict, holm};

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
}

impl Metric {
    /// Every metric, throughput first.
    pub const ALL: [Metric; 3] = [
        Metric::RequestsPerS,
        Metric::LatencyUsP50,
        Metric::LatencyUsP99,
    ];

    /// The name in the JSON document.
    pub fn name(self) -> &'static str {
        match self {
            Metric::RequestsPerS => "requests_per_s",
            Metric::LatencyUsP50 => "latency_us_p50",
            Metric::LatencyUsP99 => "latency_us_p99",
        }
    }

    /// The words in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Metric::RequestsPerS => "throughput",
            Metric::LatencyUsP50 => "median latency",
            Metric::LatencyUsP99 => "99th percentile of latency",
        }
    }

    /// Whether more is better.
    pub fn higher_is_better(self) -> bool {
        self == Metric::RequestsPerS
    }

    /// The quantile of the latency, between 0 and 1; nothing for throughput.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Metric::RequestsPerS => None,
            Metric::LatencyUsP50 => Some(0.5),
            Metric::LatencyUsP99 => Some(0.99),
        }
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
    /// The subject.
    pub subject: String,
    /// The baseline.
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
    pub note: Option<String>,
    /// The verdict as a sentence.
    pub sentence: String,
    /// Geometric mean of the baseline over the blocks used, in the metric's unit.
    pub baseline_value: Option<f64>,
    /// Geometric mean of the subject over the blocks used, in the metric's unit.
    pub subject_value: Option<f64>,
    /// Two-sided p value of 'no difference'; absent where none can be had.
    pub p_value: Option<f64>,
    /// The p value after Holm's correction over all comparisons of the run.
    pub p_adjusted: Option<f64>,
    /// The open loop's rate, where it was the same in all blocks.
    pub rate_per_s: Option<f64>,
    /// The ratio of each block used.
    pub by_block: Vec<BlockRatio>,
    /// Blocks used in which the ratio of the closed loops still changed in the second half of the
    /// slices; 0 for latencies, and where there were fewer than 60 slices.
    pub unsettled_blocks: usize,
}

impl Comparison {
    /// Both ends of the interval of the ratio.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.low.zip(self.high)
    }
}

struct Draft<'a> {
    condition: &'a Condition,
    metric: Metric,
    subject: &'a str,
    pairs: Pairs,
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
            if !is_declared(cells, condition, metric) {
                continue;
            }
            let baseline = cells.of_subject(condition, &rules.baseline, false);
            for subject in cells.subjects.iter().filter(|s| **s != rules.baseline) {
                let ours = cells.of_subject(condition, subject, false);
                let pairs = Pairs::of(metric, &ours, &baseline);
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
                    pairs,
                });
            }
        }
    }
    let p_values: Vec<Option<f64>> = drafts.iter().map(|d| p_value(&d.pairs)).collect();
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
fn is_declared(cells: &Cells<'_>, condition: &Condition, metric: Metric) -> bool {
    let mut measured_nothing = true;
    for reading in cells.of_condition(condition).filter_map(|c| c.reading()) {
        measured_nothing = false;
        let load = match metric {
            Metric::RequestsPerS => &reading.throughput,
            Metric::LatencyUsP50 | Metric::LatencyUsP99 => &reading.latency,
        };
        if load.is_some() {
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
            match (pairs.sample(), p_adjusted) {
                (Some(sample), Some(p)) => decide(
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
        if usable && let Some(limit) = client_limit(&pairs, self.subject, &rules.baseline) {
            decision.note = Some(match decision.note {
                Some(note) => format!("{note}; {limit}"),
                None => limit,
            });
        }
        // Figures of an invalid comparison would be read as if they meant something.
        let sample = pairs.sample().filter(|_| usable);
        let interval = sample.and_then(|s| s.interval(rules.look_confidence()));
        let values = pairs.values().filter(|_| usable);
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
            note: decision.note,
            sentence: String::new(),
            baseline_value: values.map(|(_, b)| b),
            subject_value: values.map(|(s, _)| s),
            p_value,
            p_adjusted,
            rate_per_s: pairs.rate_per_s,
            by_block: pairs.ratios,
            unsettled_blocks: pairs.unsettled,
        };
        comparison.sentence = sentence(&Figures::of(&comparison));
        comparison
    }
}

fn invalid(pairs: &Pairs, subject: &str, baseline: &str) -> Decision {
    let (name, reason) = match &pairs.reason {
        Some((Whose::Subject, reason)) => (subject, reason.as_str()),
        Some((Whose::Baseline, reason)) => (baseline, reason.as_str()),
        None => (subject, "no reason was recorded"),
    };
    Decision {
        verdict: Verdict::Invalid,
        note: Some(format!(
            "{} of {} cannot be used; {name}: {reason}",
            pairs.unusable,
            counted(pairs.tried, "block")
        )),
    }
}

fn too_few(pairs: &Pairs) -> Decision {
    let note = match (pairs.tried, &pairs.reason) {
        (0, _) => "no block was measured".to_owned(),
        (_, reason) => {
            let have = pairs.ratios.len();
            let mut note = format!(
                "{} can be used, and a decision wants at least {FEWEST_BLOCKS}",
                match have {
                    0 => "no block".to_owned(),
                    have => format!("only {}", counted(have, "block")),
                }
            );
            if let Some((_, reason)) = reason {
                note.push_str("; ");
                note.push_str(reason);
            }
            note
        }
    };
    Decision {
        verdict: Verdict::Inconclusive,
        note: Some(note),
    }
}

/// What it means for a ratio that the client held the throughput of one side or of both.
fn client_limit(pairs: &Pairs, subject: &str, baseline: &str) -> Option<String> {
    let most = |blocks: usize| blocks * 2 > pairs.ratios.len();
    let (ours, theirs) = pairs.client_limited;
    match (most(ours), most(theirs)) {
        (true, true) => Some(
            "the client was the bottleneck for both, so this says little about the servers"
                .to_owned(),
        ),
        (false, true) => Some(format!(
            "the client was the bottleneck for {baseline}, whose figure is 'at least'"
        )),
        (true, false) => Some(format!(
            "the client was the bottleneck for {subject}, whose figure is 'at least'"
        )),
        (false, false) => None,
    }
}

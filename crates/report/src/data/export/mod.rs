//! A run's figures in the formats that other programs follow over time.
//!
//! Each format has a figure of a subject under a condition: what the ranking shows, or else the table.

mod bencher;
mod github;
mod openmetrics;
mod otava;

use readings::{Condition, RunHeader};
use verdict::{Analysis, Bound, Comparison, Metric, Ranked, SubjectRow, Unit};

pub use bencher::bencher;
pub use github::{Better, github};
pub use openmetrics::{openmetrics, openmetrics_labels};
pub use otava::otava;

/// A figure of a subject under a condition.
struct Figure<'a> {
    condition: &'a Condition,
    subject: &'a str,
    metric: Metric,
    /// In the metric's unit.
    value: f64,
    /// The ends of its interval, as far as they are known; never beyond the value.
    low: Option<f64>,
    high: Option<f64>,
    /// Whether the client was the bottleneck, so that the value is a lower bound.
    is_at_least: bool,
    /// Against the baseline; absent for the baseline, and where it was not compared.
    comparison: Option<&'a Comparison>,
}

impl Figure<'_> {
    /// `SUBJECT` or `SUBJECT/FACTOR=LEVEL/...`: the same in every run of an experiment.
    fn place(&self) -> String {
        let levels = self.condition.iter();
        let levels = levels.map(|(factor, level)| format!("/{factor}={level}"));
        format!("{}{}", self.subject, levels.collect::<String>())
    }
}

/// All figures, by condition and subject. A quantile of which only a bound is known has none.
fn figures<'a>(header: &RunHeader, analysis: &'a Analysis) -> Vec<Figure<'a>> {
    let rows = analysis.table.iter();
    let of_row = |row: &'a SubjectRow| {
        let metrics = Metric::ALL.into_iter();
        metrics.filter_map(move |metric| figure(header, analysis, row, metric))
    };
    rows.flat_map(of_row).collect()
}

fn figure<'a>(
    header: &RunHeader,
    analysis: &'a Analysis,
    row: &'a SubjectRow,
    metric: Metric,
) -> Option<Figure<'a>> {
    let mut its_metric = analysis.comparisons.iter();
    let is_its = |c: &&Comparison| (&c.condition, c.metric) == (&row.condition, metric);
    let is_baseline = row.subject == header.baseline;
    let comparison = its_metric.find(|c| is_its(c) && (is_baseline || c.subject == row.subject));
    let own = match metric.quantile() {
        Some(_) if metric == Metric::LatencyUsP50 => row.latency_us_p50,
        Some(_) => row.latency_us_p99,
        None => row.figures.get(&metric).copied(),
    };
    let ranked = ranked(analysis, row, metric);
    let is_bound = |one: &&Ranked| metric.quantile().is_some() && one.bound == Some(Bound::AtMost);
    if ranked.as_ref().is_some_and(is_bound) {
        return None;
    }
    let of_events = comparison.and_then(|c| match is_baseline {
        true => c.baseline_value,
        false => c.subject_value,
    });
    let value = ranked.map(|one| one.value).or(own).or(of_events)?;
    let is_throughput = metric == Metric::RequestsPerS;
    Some(Figure {
        condition: &row.condition,
        subject: &row.subject,
        metric,
        value,
        low: ranked.and_then(|one| one.low).filter(|low| low.is_finite()),
        high: ranked
            .and_then(|one| one.high)
            .filter(|high| high.is_finite()),
        is_at_least: match ranked {
            Some(one) => one.bound == Some(Bound::AtLeast),
            None => is_throughput && row.at_least,
        },
        comparison: comparison.filter(|_| !is_baseline),
    })
    .filter(|figure| figure.value.is_finite())
}

fn ranked<'a>(analysis: &'a Analysis, row: &SubjectRow, metric: Metric) -> Option<&'a Ranked> {
    let mut rankings = analysis.rankings.iter();
    let ranking = rankings.find(|one| {
        one.factor.is_none() && one.condition == row.condition && one.metric == metric
    })?;
    ranking.rows.iter().find(|one| one.subject == row.subject)
}

/// A unit as programs show it.
fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::RequestsPerS => "requests/s",
        Unit::MessagesPerS => "messages/s",
        Unit::Us => "us",
        Unit::UsPerRequest => "us/request",
        Unit::UsPerMessage => "us/message",
        Unit::InstructionsPerRequest => "instructions/request",
        Unit::Bytes => "bytes",
        Unit::Share => "share",
        Unit::PerEvent => "per event",
        Unit::S => "s",
    }
}

//! The columns: metrics, rates within bounds of latency, growths, and what else a row has.

use readings::text::{once, rate};
use serde::Serialize;
use verdict::{Analysis, Growth, Metric, SubjectRow, Unit, words};

#[derive(Serialize)]
pub(crate) struct Column {
    /// In documents; ends in its unit or tells it.
    pub name: String,
    pub head: String,
    /// What it is, in words.
    pub words: String,
    /// Absent where neither is better.
    pub higher_is_better: Option<bool>,
    #[serde(skip)]
    pub what: What,
}

pub(crate) enum What {
    Metric(Metric),
    /// The highest rate at which a quantile of the latency stays within a bound.
    Bound {
        quantile: f64,
        bound_us: f64,
    },
    /// A metric for each 1 of a factor.
    Growth {
        metric: Metric,
        factor: String,
    },
    /// The median of full TLS handshakes.
    Handshake,
    Figure(&'static Figure),
}

/// A figure of a row that is no metric.
pub(crate) struct Figure {
    name: &'static str,
    head: &'static str,
    words: &'static str,
    pub value: fn(&SubjectRow) -> Option<f64>,
    pub text: fn(f64) -> String,
}

static FIGURES: [Figure; 5] = [
    Figure {
        name: "offered_per_s",
        head: "offered/s",
        words: "requests per second at which the latency was measured",
        value: |row| row.rate_per_s,
        text: rate,
    },
    Figure {
        name: "upstream_connections_per_request",
        head: "upstream/req",
        words: "connections opened behind the subject, per request",
        value: |row| row.upstream_connections_per_request,
        text: |value| format!("{value:.3}"),
    },
    Figure {
        name: "bytes_per_answer",
        head: "bytes/answer",
        words: "bytes received per answer, head included",
        value: |row| row.bytes_per_answer,
        text: readings::text::compact::bytes,
    },
    Figure {
        name: "failed_trials",
        head: "failed trials",
        words: "trials that failed because of the subject",
        value: |row| (row.starts.failed > 0).then_some(row.starts.failed as f64),
        text: rate,
    },
    Figure {
        name: "errors",
        head: "errors",
        words: "requests that failed in measured time, invalid trials included",
        value: |row| (row.errors.total() > 0).then_some(row.errors.total() as f64),
        text: rate,
    },
];

/// The columns that any row has something for, the most important first.
pub(super) fn columns(analysis: &Analysis) -> Vec<Column> {
    let mut all: Vec<Column> = metrics(analysis).collect();
    all.extend(bounds(analysis));
    for growth in &analysis.growth {
        let column = growing(growth);
        if !all.iter().any(|known| known.name == column.name) {
            all.push(column);
        }
    }
    if analysis.tls.iter().any(|one| one.handshake_us.count > 0) {
        all.push(Column {
            name: "handshake_us_p50".to_owned(),
            head: "TLS handshake".to_owned(),
            words: "median time of full TLS handshakes".to_owned(),
            higher_is_better: Some(false),
            what: What::Handshake,
        });
    }
    let figures = FIGURES.iter();
    let figures = figures.filter(|one| analysis.table.iter().any(|row| (one.value)(row).is_some()));
    all.extend(figures.map(|one| Column {
        name: one.name.to_owned(),
        head: one.head.to_owned(),
        words: one.words.to_owned(),
        higher_is_better: None,
        what: What::Figure(one),
    }));
    all
}

fn metrics(analysis: &Analysis) -> impl Iterator<Item = Column> {
    let mut all = Metric::ALL;
    all.sort_by_key(|metric| metric.rank());
    let is_there = |metric: &Metric| {
        let compared = analysis.comparisons.iter().any(|c| c.metric == *metric);
        let left_out = analysis.unresolved.iter().any(|one| one.metric == *metric);
        let measured = || {
            analysis
                .table
                .iter()
                .any(|row| row.figure(*metric).is_some())
        };
        compared || left_out || measured()
    };
    all.into_iter().filter(is_there).map(|metric| Column {
        name: metric.name().to_owned(),
        head: head(analysis, metric),
        words: metric.words().to_owned(),
        higher_is_better: Some(metric.higher_is_better()),
        what: What::Metric(metric),
    })
}

/// `p50 at 1,000/s`, where the rate is one for all.
fn head(analysis: &Analysis, metric: Metric) -> String {
    let words = words::short(metric);
    let rates = analysis.table.iter().filter_map(|row| row.rate_per_s);
    let mut rates: Vec<String> = rates.map(rate).collect();
    rates.dedup();
    match rates.as_slice() {
        [one] if metric.is_of_open_loop() => {
            format!("{} at {one}/s", words.trim_end_matches(" at that rate"))
        }
        _ => words.to_owned(),
    }
}

fn bounds(analysis: &Analysis) -> Vec<Column> {
    let subjects = analysis.curves.iter().flat_map(|curves| &curves.subjects);
    let bounds = subjects.flat_map(|subject| &subject.bounds);
    let mut found = once(bounds.map(|bound| (bound.quantile, bound.bound_us)));
    found.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let column = |(quantile, bound_us): (f64, f64)| {
        let (percentile, within) = (quantile * 100.0, words::tidy(bound_us));
        Column {
            name: format!("per_s_with_p{percentile:.0}_within_{bound_us:.0}_us"),
            head: format!("rate with p{percentile:.0} \u{2264} {within}"),
            words: format!("highest rate at which p{percentile:.0} stays within {within}"),
            higher_is_better: Some(true),
            what: What::Bound { quantile, bound_us },
        }
    };
    found.into_iter().map(column).collect()
}

fn growing(growth: &Growth) -> Column {
    let (metric, factor) = (growth.metric, &growth.factor);
    Column {
        name: format!("{}_per_{factor}", metric.name()),
        head: format!("{} per {factor}", words::short(metric)),
        words: format!("growth of {} with each {factor}", metric.words()),
        higher_is_better: Some(false),
        what: What::Growth {
            metric,
            factor: factor.clone(),
        },
    }
}

/// The text of a metric's growth, in its unit for each 1 of the factor.
pub(super) fn slope(metric: Metric, value: f64) -> String {
    match metric.unit() {
        // Fractions of a byte, too.
        Unit::Bytes if value.abs() < 10.0 => format!("{value:.1} B"),
        _ if value < 0.0 => format!("-{}", words::value(metric, -value)),
        _ => words::value(metric, value),
    }
}

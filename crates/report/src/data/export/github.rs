//! The custom formats of `github-action-benchmark`.

use readings::RunHeader;
use serde_json::{Value, json as object};
use verdict::{Analysis, words};

use super::{figures, unit};

/// Which figures: the action follows them in two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Its tool `customBiggerIsBetter`.
    Bigger,
    /// Its tool `customSmallerIsBetter`.
    Smaller,
}

/// A run's figures as the action's custom tools read them: a list of `name`, `unit`, `value`, and,
/// where the subject was compared, `range` (the interval) and `extra` (the verdict in words).
///
/// Source: <https://github.com/benchmark-action/github-action-benchmark>, its README and the type
/// `BenchmarkResult` in `src/extract.ts`.
pub fn github(header: &RunHeader, analysis: &Analysis, better: Better) -> Value {
    let figures = figures(header, analysis).into_iter();
    let its = figures.filter(|figure| match better {
        Better::Bigger => figure.metric.higher_is_better(),
        Better::Smaller => !figure.metric.higher_is_better(),
    });
    let entries = its.map(|figure| {
        let metric = figure.metric;
        let mut entry = object!({
            "name": format!("{}/{}/{}", header.experiment, figure.place(), metric.name()),
            "unit": unit(metric.unit()),
            "value": figure.value,
        });
        let end = |end: Option<f64>| end.map_or_else(|| "...".to_owned(), |end| end.to_string());
        if figure.low.is_some() || figure.high.is_some() {
            entry["range"] = format!("{} to {}", end(figure.low), end(figure.high)).into();
        }
        if let Some(comparison) = figure.comparison {
            entry["extra"] = words::comparison(comparison).into();
        }
        entry
    });
    entries.collect()
}

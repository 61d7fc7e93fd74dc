//! The Bencher Metric Format.

use readings::RunHeader;
use serde_json::{Map, Value, json as object};
use verdict::Analysis;

use super::figures;

/// A run as Bencher Metric Format: for each benchmark (`EXPERIMENT/SUBJECT/FACTOR=LEVEL`) its
/// measures, each with `value` and, as far as they are known, `lower_value` and `upper_value`. Measures
/// are metrics by their names with hyphens, as Bencher makes its slugs, in the metric's unit.
///
/// Source: <https://bencher.dev/docs/reference/bencher-metric-format>.
pub fn bencher(header: &RunHeader, analysis: &Analysis) -> Value {
    let mut benchmarks = Map::new();
    for figure in figures(header, analysis) {
        let mut values = Map::from_iter([("value".to_owned(), object!(figure.value))]);
        for (name, end) in [("lower_value", figure.low), ("upper_value", figure.high)] {
            if let Some(end) = end {
                values.insert(name.to_owned(), object!(end));
            }
        }
        let name = format!("{}/{}", header.experiment, figure.place());
        let measures = benchmarks.entry(name).or_insert_with(|| object!({}));
        measures[figure.metric.name().replace('_', "-")] = Value::Object(values);
    }
    Value::Object(benchmarks)
}

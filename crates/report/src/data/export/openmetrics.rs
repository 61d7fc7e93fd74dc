//! A run in the text format of OpenMetrics.

use std::collections::BTreeMap;

use readings::{Condition, RunHeader};
use verdict::{Analysis, Metric};

use super::{Figure, figures};
use crate::section::run::capitalised;
use crate::text::visible::visible;

type Sample = fn(&Figure<'_>) -> Option<f64>;

/// The families of a metric: what follows its name, and what it is.
const OF_METRIC: [(&str, &str, Sample); 4] = [
    ("", "", |figure| Some(figure.value)),
    ("_low", ", lower end of the interval", |figure| figure.low),
    ("_high", ", upper end of the interval", |figure| figure.high),
    ("_at_least", ", 1 where it is a lower bound", |figure| {
        figure.is_at_least.then_some(1.0)
    }),
];

/// The families of ratios, for all metrics.
const OF_RATIOS: [(&str, &str, Sample); 3] = [
    (
        "weighstation_ratio",
        "Subject over the baseline of the same run.",
        |figure| figure.comparison?.ratio,
    ),
    (
        "weighstation_ratio_low",
        "Lower end of the interval of the ratio.",
        |figure| figure.comparison?.low,
    ),
    (
        "weighstation_ratio_high",
        "Upper end of the interval of the ratio.",
        |figure| figure.comparison?.high,
    ),
];

/// A run as OpenMetrics text, without times, so that a gateway or a file collector takes it: gauges
/// `weighstation_METRIC` with `_low`, `_high` and `_at_least`, in the metric's unit;
/// `weighstation_ratio` with `_low` and `_high`; and the time at which the run began.
///
/// Source: OpenMetrics 1.0, <https://prometheus.io/docs/specs/om/open_metrics_spec/>.
pub fn openmetrics(header: &RunHeader, analysis: &Analysis) -> String {
    let figures = figures(header, analysis);
    let mut out = String::new();
    let started = "weighstation_run_start_timestamp_seconds";
    out.push_str(&format!(
        "# TYPE {started} gauge\n# UNIT {started} seconds\n# HELP {started} When the run began.\n\
         {started}{{{}}} {}\n",
        openmetrics_labels(&Condition::new(), &[("experiment", &header.experiment)]),
        header.started_unix_s
    ));
    for metric in Metric::ALL {
        for (end, what, sample) in OF_METRIC {
            let name = format!("weighstation_{}{end}", metric.name());
            let help = format!("{}{what}.", capitalised(metric.words()));
            let its = figures.iter().filter(|figure| figure.metric == metric);
            let samples = its.filter_map(|figure| {
                let named: [(&str, &str); 2] = [
                    ("experiment", &header.experiment),
                    ("subject", figure.subject),
                ];
                let labels = openmetrics_labels(figure.condition, &named);
                Some((labels, sample(figure).filter(|value| value.is_finite())?))
            });
            put(&mut out, &name, &help, samples);
        }
    }
    for (name, help, sample) in OF_RATIOS {
        let samples = figures.iter().filter_map(|figure| {
            let named: [(&str, &str); 4] = [
                ("experiment", &header.experiment),
                ("subject", figure.subject),
                ("baseline", &header.baseline),
                ("metric", figure.metric.name()),
            ];
            let labels = openmetrics_labels(figure.condition, &named);
            Some((labels, sample(figure).filter(|value| value.is_finite())?))
        });
        put(&mut out, name, help, samples);
    }
    out.push_str("# EOF\n");
    out
}

/// A family, where it has samples.
fn put(out: &mut String, name: &str, help: &str, samples: impl Iterator<Item = (String, f64)>) {
    let mut samples = samples.peekable();
    if samples.peek().is_some() {
        out.push_str(&format!("# TYPE {name} gauge\n# HELP {name} {help}\n"));
    }
    for (labels, value) in samples {
        out.push_str(&format!("{name}{{{labels}}} {value}\n"));
    }
}

/// Labels of a sample, without braces: `named` ones, and `factor_NAME` for each factor. Letters that a
/// label's name cannot have become `_`; of two factors that come to the same, the second has `_2`.
pub fn openmetrics_labels(condition: &Condition, named: &[(&str, &str)]) -> String {
    let mut labels: BTreeMap<String, &str> = BTreeMap::new();
    for (factor, level) in condition {
        let name = factor
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
        let name = format!("factor_{}", name.collect::<String>());
        let others = (2..).map(|number| format!("{name}_{number}"));
        let mut names = std::iter::once(name.clone()).chain(others);
        if let Some(free) = names.find(|name| !labels.contains_key(name)) {
            labels.insert(free, level);
        }
    }
    for (name, value) in named {
        labels.insert((*name).to_owned(), value);
    }
    let written = labels.iter().map(|(name, value)| {
        let value = visible(value);
        let value = value
            .replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('\n', "\\n");
        format!("{name}=\"{value}\"")
    });
    written.collect::<Vec<_>>().join(",")
}

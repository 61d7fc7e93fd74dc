//! A history in the text format of OpenMetrics, with the time of each run.

use std::collections::BTreeSet;

use report::openmetrics_labels;

use crate::timeline::{History, Series, SeriesRun};

type Value = fn(&Series, usize) -> Option<f64>;

fn run(series: &Series, at: usize) -> &SeriesRun {
    &series.runs[at]
}

const FAMILIES: [(&str, &str, Value); 7] = [
    (
        "weighstation_ratio",
        "Subject over the baseline of the same session.",
        |s, at| Some(run(s, at).figure.log_ratio.exp()),
    ),
    (
        "weighstation_ratio_low",
        "Lower end of the 95% interval of the ratio.",
        |s, at| Some(run(s, at).figure.interval().0.exp()),
    ),
    (
        "weighstation_ratio_high",
        "Upper end of the 95% interval of the ratio.",
        |s, at| Some(run(s, at).figure.interval().1.exp()),
    ),
    (
        "weighstation_log_standard_error",
        "Standard error of the log of the ratio, from the spread of the blocks.",
        |s, at| Some(run(s, at).figure.standard_error_of_blocks),
    ),
    (
        "weighstation_noise_floor_ratio",
        "The baseline's copy over the baseline.",
        |s, at| Some(run(s, at).figure.noise_floor?.log_ratio.exp()),
    ),
    (
        "weighstation_level_ratio",
        "The level that the run belongs to, between changes.",
        |s, at| {
            let line = run(s, at).line;
            let mut levels = s.levels.iter();
            let holds = |l: &&crate::timeline::LevelLine| {
                l.from <= at && at <= l.to && run(s, l.to).line == line
            };
            Some(levels.find(holds)?.log_ratio.exp())
        },
    ),
    (
        "weighstation_change_confirmed",
        "1 at the first run of a confirmed change, 0 at that of a possible one.",
        |s, at| {
            let change = s.changes.iter().find(|c| c.at == at)?;
            Some(f64::from(u8::from(change.change.confirmed)))
        },
    ),
];

/// A history as OpenMetrics text: gauges with labels and times.
pub fn openmetrics(history: &History) -> String {
    let mut out = String::new();
    for (name, help, value) in FAMILIES {
        out.push_str(&format!("# TYPE {name} gauge\n# HELP {name} {help}\n"));
        for series in &history.series {
            let labels = labels(series);
            let mut times = BTreeSet::new();
            for (at, run) in series.runs.iter().enumerate() {
                // A time has only one value: of two runs in the same second, the first is taken.
                if let Some(value) = value(series, at).filter(|value| value.is_finite())
                    && times.insert(run.started_unix_s)
                {
                    out.push_str(&format!(
                        "{name}{{{labels}}} {value} {}\n",
                        run.started_unix_s
                    ));
                }
            }
        }
    }
    out.push_str("# EOF\n");
    out
}

fn labels(series: &Series) -> String {
    let key = &series.key;
    let named: [(&str, &str); 4] = [
        ("experiment", &key.experiment),
        ("subject", &key.subject),
        ("baseline", &key.baseline),
        ("metric", &key.metric),
    ];
    openmetrics_labels(&key.condition, &named)
}

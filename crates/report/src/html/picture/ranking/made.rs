//! Rankings that are made up.

use readings::Condition;
use verdict::{Metric, Ranked, Ranking, Verdict};

pub const NAMES: [&str; 8] = [
    "nginx", "haproxy", "balance", "envoy", "caddy", "apache", "traefik", "h2o",
];

/// So many subjects, the first of them the baseline, each with a `step` of the one before, or with so
/// many times as much where less is better. The third and the fourth share their places.
pub fn ranking(
    condition: &[(&str, &str)],
    metric: Metric,
    subjects: usize,
    (first, step): (f64, f64),
) -> Ranking {
    let levels = condition.iter();
    let levels = levels.map(|(name, level)| ((*name).to_owned(), (*level).to_owned()));
    let rows = (0..subjects).map(|at| {
        let factor = match metric.higher_is_better() {
            true => step.powi(at as i32),
            false => step.powi(at as i32).recip(),
        };
        let value = first * factor;
        let compared = at > 0;
        Ranked {
            subject: name(at),
            is_baseline: !compared,
            value,
            low: compared.then_some(value * 0.93),
            high: compared.then_some(value * 1.08),
            bound: None,
            places: match at {
                2 | 3 => (3, 4),
                at => (at + 1, at + 1),
            },
            ratio: compared.then_some(factor),
            verdict: compared.then_some(Verdict::Slower),
            surely: false,
        }
    });
    Ranking {
        factor: None,
        open: Vec::new(),
        condition: levels.collect::<Condition>(),
        metric,
        rate_per_s: (metric != Metric::RequestsPerS).then_some(5_000.0),
        rows: rows.collect(),
    }
}

/// The name of a subject.
pub fn name(at: usize) -> String {
    match at / NAMES.len() {
        0 => NAMES[at].to_owned(),
        round => format!("{}-{round}", NAMES[at % NAMES.len()]),
    }
}

/// Throughput under every pair of levels, in rows and columns; each row has its part of the first.
pub fn grid(rows: &[&str], columns: &[&str], part: f64) -> Vec<Ranking> {
    let each = rows.iter().enumerate().flat_map(|(row, body)| {
        columns
            .iter()
            .enumerate()
            .map(move |(column, connections)| {
                let condition = [("body", *body), ("connections", *connections)];
                let first = 30_000.0 * part.powi(row as i32) * 1.2_f64.powi(column as i32);
                ranking(&condition, Metric::RequestsPerS, 6, (first, 0.8))
            })
    });
    each.collect()
}

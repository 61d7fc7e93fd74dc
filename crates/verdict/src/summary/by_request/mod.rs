//! Each request of a load by its name.

pub(crate) mod words;

use serde::Serialize;

use crate::Place;
use crate::trial::cells::Cells;

/// What one of several requests cost a subject under a condition, over its valid trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RequestRow {
    #[serde(flatten)]
    pub at: Place,
    pub name: String,
    /// Whether the times are those of the open loops; otherwise they hold the closed loops' queues.
    pub in_open_loop: bool,
    pub trials: u64,
    /// Good answers in all trials.
    pub requests: u64,
    /// Failures in all trials.
    pub errors: u64,
    /// The median over the trials of each trial's; `None` if no answer was good.
    pub latency_us_p50: Option<f64>,
    /// As `latency_us_p50`.
    pub latency_us_p99: Option<f64>,
}

/// The requests of every subject whose load has several, in the order of conditions, requests and
/// subjects.
pub(crate) fn rows(cells: &Cells<'_>) -> Vec<RequestRow> {
    let mut rows = Vec::new();
    for condition in &cells.conditions {
        let mut here: Vec<(usize, RequestRow)> = Vec::new();
        for subject in &cells.subjects {
            let trials = cells.of_subject(condition, subject, false);
            let open: Vec<_> = trials.values().filter_map(|cell| cell.latency()).collect();
            let in_open_loop = open.iter().any(|load| !load.per_request.is_empty());
            let loads = match in_open_loop {
                true => open,
                false => trials
                    .values()
                    .filter_map(|cell| cell.throughput())
                    .collect(),
            };
            let count = loads.iter().map(|load| load.per_request.len()).max();
            for number in 0..count.unwrap_or(0) {
                let each = loads.iter().filter_map(|load| load.per_request.get(number));
                let each: Vec<_> = each.collect();
                let good = each.iter().filter(|one| one.requests > 0);
                let (p50, p99) = good
                    .map(|one| (one.latency_us.p50, one.latency_us.p99))
                    .unzip();
                let row = RequestRow {
                    at: Place {
                        subject: subject.clone(),
                        condition: condition.clone(),
                    },
                    name: each[0].name.clone(),
                    in_open_loop,
                    trials: each.len() as u64,
                    requests: each.iter().map(|one| one.requests).sum(),
                    errors: each.iter().map(|one| one.errors).sum(),
                    latency_us_p50: median(p50),
                    latency_us_p99: median(p99),
                };
                here.push((number, row));
            }
        }
        // Subjects are read beside each other.
        here.sort_by_key(|(number, _)| *number);
        rows.extend(here.into_iter().map(|(_, row)| row));
    }
    rows
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    match values.len() % 2 {
        1 => Some(upper),
        _ => Some(f64::midpoint(values[values.len() / 2 - 1], upper)),
    }
}

#[cfg(test)]
mod tests {
    use readings::{Journal, JournalRow, LoadReading, Quantiles, RequestReading};

    use super::*;
    use crate::analyse;
    use crate::fixtures::{closed, done, header, open, trial};

    fn with_requests(load: LoadReading, requests: &[(&str, u64, f64)]) -> LoadReading {
        let request = |(name, errors, p50): &(&str, u64, f64)| RequestReading {
            name: (*name).to_owned(),
            requests: 10,
            errors: *errors,
            latency_us: Quantiles {
                p50: *p50,
                p99: 2.0 * p50,
                ..Quantiles::default()
            },
            response: readings::Histogram::empty(),
        };
        LoadReading {
            per_request: requests.iter().map(request).collect(),
            ..load
        }
    }

    #[test]
    fn subjects_stand_beside_each_other_for_each_request() {
        let mut rows = Vec::new();
        for block in 1..=3 {
            for (subject, times) in [("direct", 1.0), ("balance", 2.0)] {
                let p50 = times * f64::from(block) * 100.0;
                let requests = [("login", 0, p50), ("cart", 1, 10.0 * p50)];
                let closed = with_requests(closed(1_000.0), &[("login", 9, 1.0), ("cart", 9, 1.0)]);
                let open = with_requests(open(500.0, p50), &requests);
                let outcome = done(Some(closed), Some(open));
                let trial = trial(block, subject, false, outcome);
                rows.push(JournalRow::Trial(Box::new(trial)));
            }
        }
        let analysis = analyse(&Journal {
            header: header(3),
            rows,
            whole_bytes: 0,
        });
        let found = analysis.by_request.iter().map(|row| {
            let times = (row.latency_us_p50, row.latency_us_p99);
            (
                row.name.as_str(),
                row.at.subject.as_str(),
                row.errors,
                times,
            )
        });
        let found: Vec<_> = found.collect();
        let us = |p50: f64| (Some(p50), Some(2.0 * p50));
        assert_eq!(
            found,
            [
                ("login", "direct", 0, us(200.0)),
                ("login", "balance", 0, us(400.0)),
                ("cart", "direct", 3, us(2_000.0)),
                ("cart", "balance", 3, us(4_000.0)),
            ]
        );
        assert!(
            analysis
                .by_request
                .iter()
                .all(|row| row.requests == 30 && row.in_open_loop)
        );
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_two() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }
}

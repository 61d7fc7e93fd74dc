//! What an outside driver measured.

mod tool;

pub use tool::{FigureTable, ProcessLine, Tool, ToolLatency, ToolReading, ToolTls};

use serde::{Deserialize, Serialize};

use crate::{ErrorCounts, Pacing};

/// A latency of an outside driver is used only if it is at least this many times the step to which
/// the driver rounds it.
const STEPS: f64 = 10.0;

/// What an outside load generator reported of a trial, and what it cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DriverReading {
    pub driver: String,
    /// Its parameters that were not at their defaults, as `name=value`.
    pub settings: Vec<String>,
    pub version: Option<String>,
    /// The steps in which it prints latencies, in microseconds.
    pub latency_step_us: Option<f64>,
    /// Its runs, in order.
    pub runs: Vec<DriverRun>,
}

/// One run of an outside load generator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DriverRun {
    /// How requests were timed.
    pub pacing: Pacing,
    pub command: Vec<String>,
    /// Complete answers, by its own count.
    pub requests: u64,
    /// Length of its measurement, by its own clock.
    pub duration_s: f64,
    /// Failures, as far as it tells them apart.
    pub errors: ErrorCounts,
    /// Time of a request, by its own clock and as far as it tells.
    pub latency: ToolLatency,
    /// Time from its start to its end.
    pub wall_s: f64,
    /// CPU time of it and of all that it started, from start to end.
    pub cpu_s: f64,
    /// The most memory that its largest process held, where that could be read.
    pub max_rss_bytes: Option<u64>,
}

impl DriverReading {
    /// The driver's name, and its parameters that were not at their defaults:
    /// `name (key=value)`.
    pub fn label(&self) -> String {
        if self.settings.is_empty() {
            return self.driver.clone();
        }
        format!("{} ({})", self.driver, self.settings.join(", "))
    }

    /// The loop that its latency is taken from: the open one where it made one, the closed one
    /// otherwise.
    pub fn latency_loop(&self) -> Pacing {
        let open = self.runs.iter().find(|run| run.pacing != Pacing::Closed);
        open.map_or(Pacing::Closed, |run| run.pacing)
    }

    fn latency_runs(&self) -> impl Iterator<Item = &DriverRun> {
        let pacing = self.latency_loop();
        self.runs.iter().filter(move |run| run.pacing == pacing)
    }

    /// A quantile of the time of a request in microseconds: the median of what the runs say.
    /// `None` where a run does not say it, or where the driver prints it too coarsely: in steps of
    /// more than a tenth of it.
    pub fn latency_us(&self, quantile: f64) -> Option<f64> {
        let mut values = self
            .latency_runs()
            .map(|run| {
                let known = run.latency.quantiles_us.iter();
                known
                    .clone()
                    .find(|(share, _)| (share - quantile).abs() < 1e-9)
                    .map(|(_, us)| *us)
            })
            .collect::<Option<Vec<f64>>>()?;
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        let value = match values.len() {
            0 => return None,
            count if count % 2 == 1 => values[middle],
            _ => (values[middle - 1] + values[middle]) / 2.0,
        };
        let least = STEPS * self.latency_step_us.unwrap_or(0.0);
        (value > 0.0 && value >= least).then_some(value)
    }

    /// The number of answers behind a latency: that of the run with the fewest.
    pub fn latency_requests(&self) -> u64 {
        let requests = self.latency_runs().map(|run| run.requests);
        requests.min().unwrap_or(0)
    }

    /// CPU time of the driver per complete answer of the closed loop, in microseconds; `None`
    /// without an answer.
    pub fn cpu_us_per_request(&self) -> Option<f64> {
        let closed = || self.runs.iter().filter(|run| run.pacing == Pacing::Closed);
        let requests = closed().map(|run| run.requests);
        let requests = requests.fold(0, u64::saturating_add);
        let cpu_s: f64 = closed().map(|run| run.cpu_s).sum();
        (requests > 0 && cpu_s > 0.0).then(|| cpu_s * 1e6 / requests as f64)
    }

    /// The most memory of the closed loop's runs, in bytes; `None` where it could not be read.
    pub fn max_rss_bytes(&self) -> Option<u64> {
        let closed = self.runs.iter().filter(|run| run.pacing == Pacing::Closed);
        closed.filter_map(|run| run.max_rss_bytes).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(median_us: Option<f64>, requests: u64, cpu_s: f64) -> DriverRun {
        DriverRun {
            pacing: Pacing::Closed,
            command: vec!["tool".into()],
            requests,
            duration_s: 1.0,
            errors: ErrorCounts::default(),
            latency: ToolLatency {
                quantiles_us: median_us.map(|us| (0.5, us)).into_iter().collect(),
                ..ToolLatency::default()
            },
            wall_s: 1.1,
            cpu_s,
            max_rss_bytes: Some(requests * 10),
        }
    }

    #[test]
    fn a_quantile_is_the_middle_of_what_the_runs_say_and_absent_where_one_says_none() {
        let mut reading = DriverReading {
            driver: "tool".into(),
            runs: [900.0, 100.0, 110.0]
                .map(|us| run(Some(us), 500, 0.1))
                .into(),
            ..DriverReading::default()
        };
        assert_eq!(reading.latency_us(0.5), Some(110.0));
        assert_eq!(reading.latency_us(0.99), None);
        reading.latency_step_us = Some(12.0);
        assert_eq!(reading.latency_us(0.5), None, "too coarse to be compared");
        reading.latency_step_us = None;
        reading.runs.push(run(None, 500, 0.1));
        assert_eq!(reading.latency_us(0.5), None);
    }

    #[test]
    fn what_a_driver_costs_is_that_of_its_closed_loop() {
        let mut reading = DriverReading {
            runs: vec![run(None, 1000, 0.01), run(None, 3000, 0.03)],
            ..DriverReading::default()
        };
        let mut open = run(Some(70.0), 9, 5.0);
        open.pacing = Pacing::Open { rate_per_s: 10.0 };
        open.max_rss_bytes = Some(1 << 40);
        reading.runs.push(open);
        assert!((reading.cpu_us_per_request().unwrap() - 10.0).abs() < 1e-9);
        assert_eq!(reading.max_rss_bytes(), Some(30_000));
        assert_eq!(reading.latency_us(0.5), Some(70.0), "the open loop's");
        assert_eq!(reading.latency_requests(), 9);
    }
}

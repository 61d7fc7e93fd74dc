//! The bounds of a closed loop: N connections that each wait R for an answer, at a target that
//! carries no more than a certain rate.
//!
//! X(N) = min(N / R, most): the asymptotic bounds of a closed queueing network (P. J. Denning,
//! J. P. Buzen, The operational analysis of queueing network models, Computing Surveys 10, 1978).

use fastrand::Rng;
use serde::Serialize;

use super::{Bootstrap, Drawn, Estimate, Point, Prediction, resample};

/// Places of the knee that are tried, in a first pass and between the two around the best.
const PLACES: u32 = 240;

/// The bounds' two figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    /// Throughput of one connection, requests per second: 1 / R.
    per_one: f64,
    /// The concurrency from which on the throughput stays.
    knee: f64,
}

impl Bounds {
    pub(super) fn at(&self, concurrency: f64) -> f64 {
        self.per_one * concurrency.min(self.knee)
    }

    /// Least squares of the logarithms.
    fn fit(points: &[Point]) -> Self {
        let logs: Vec<f64> = points.iter().map(|p| p.concurrency.ln()).collect();
        let low = logs.iter().copied().fold(f64::INFINITY, f64::min);
        let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let of = |log_knee: f64| -> (f64, f64) {
            let rest = |(p, log): (&Point, &f64)| p.requests_per_s.ln() - log.min(log_knee);
            let n = points.len() as f64;
            let rests = || points.iter().zip(&logs).map(rest);
            let mean = rests().sum::<f64>() / n;
            (mean, rests().map(|r| (r - mean).powi(2)).sum())
        };
        let best = |from: f64, to: f64| {
            (0..=PLACES)
                .map(|i| from + (to - from) * f64::from(i) / f64::from(PLACES))
                .min_by(|a, b| of(*a).1.total_cmp(&of(*b).1))
                .unwrap_or(to)
        };
        let near = best(low, high);
        let step = (high - low) / f64::from(PLACES);
        let log_knee = best((near - step).max(low), (near + step).min(high));
        Self {
            per_one: of(log_knee).0.exp(),
            knee: log_knee.exp(),
        }
    }
}

/// Fitted bounds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClosedLoop {
    /// How long an answer takes below the knee, in microseconds.
    pub response_us: Estimate,
    /// What the target carries, requests per second; absent where it was never reached.
    pub most_per_s: Option<Estimate>,
    /// The concurrency at which it is reached; absent likewise.
    pub knee: Option<Estimate>,
    /// The smallest and the largest concurrency that were measured.
    pub measured: (f64, f64),
    #[serde(skip)]
    pub(super) best: Bounds,
    #[serde(skip)]
    drawn: Drawn<Bounds>,
}

impl ClosedLoop {
    /// Fits the bounds to points that [`Usl::fit`](super::Usl::fit) accepts.
    pub(super) fn fit(points: &[Point], measured: (f64, f64), random: &mut Rng) -> Self {
        let best = Bounds::fit(points);
        let (_, drawn): (Bootstrap, Drawn<Bounds>) = resample(
            points,
            &best,
            2,
            &Bounds::at,
            &|drawn, _| Bounds::fit(drawn),
            random,
        );
        let is_reached = best.knee < measured.1 * (1.0 - 1e-9);
        let of = |value, figure: &dyn Fn(&Bounds) -> f64| drawn.estimate(value, figure);
        Self {
            response_us: of(1e6 / best.per_one, &|b| 1e6 / b.per_one),
            most_per_s: is_reached.then(|| of(best.per_one * best.knee, &|b| b.per_one * b.knee)),
            knee: is_reached.then(|| of(best.knee, &|b| b.knee)),
            measured,
            best,
            drawn,
        }
    }

    /// What the bounds say of a concurrency.
    pub fn predict(&self, concurrency: f64) -> Prediction {
        let value = self.best.at(concurrency);
        Prediction {
            concurrency,
            requests_per_s: self.drawn.estimate(value, &|b| b.at(concurrency)),
            beyond_measured: concurrency > self.measured.1,
        }
    }
}

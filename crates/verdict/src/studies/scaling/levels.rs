//! What a fitted law says about scaling.

use fastrand::Rng;
use readings::LoadReading;
use serde::Serialize;

use super::{ClosedLoop, LackOfFit, Point, Prediction, Usl, UslError};
use crate::studies::capacity::Spread;
use crate::{Flaw, load_flaws};

/// A closed loop at one concurrency in one round.
#[derive(Clone, Debug)]
pub struct LevelStep {
    pub connections: u32,
    pub round: u32,
    pub load: LoadReading,
}

impl LevelStep {
    /// Why it cannot be used; empty when it can.
    pub fn flaws(&self) -> Vec<Flaw> {
        load_flaws(&self.load)
    }
}

/// All rounds of one concurrency.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Level {
    pub connections: u32,
    /// Rounds that were measured and valid.
    pub rounds: u32,
    /// Throughput of the rounds; absent where none was valid.
    pub requests_per_s: Option<Spread>,
    /// The client was the limit in more than half of them: the throughput is a lower bound, and is
    /// left out of the fit.
    pub at_least: bool,
    /// The median latency of the rounds, in microseconds.
    pub latency_us_p50: Option<Spread>,
    /// The 99th percentile of the rounds, in microseconds.
    pub latency_us_p99: Option<Spread>,
    /// Why rounds were not valid.
    #[serde(skip)]
    pub problems: Vec<Flaw>,
}

/// Why the universal scalability law was not fitted.
#[derive(Clone, Debug, PartialEq)]
pub enum NoFit {
    Error(UslError),
    /// It misses the points by more than their noise explains.
    Misses(LackOfFit),
}

/// Throughput over concurrency, and the law that fits it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// By concurrency, ascending.
    pub levels: Vec<Level>,
    /// The universal scalability law; absent where there is none, or where it does not fit.
    pub fit: Option<Usl>,
    /// Whether the law fits; absent where levels were not repeated.
    pub lack_of_fit: Option<LackOfFit>,
    /// The bounds of a closed loop, where the law does not fit and they do.
    pub closed_loop: Option<ClosedLoop>,
    pub closed_loop_lack_of_fit: Option<LackOfFit>,
    /// Why there is no law, or not that one.
    pub no_fit: Option<NoFit>,
    /// What the law says between the smallest and the largest concurrency that went into it,
    /// ascending; nothing beyond.
    pub expected: Vec<Prediction>,
}

/// Points of the drawn curve.
const DRAWN: u32 = 40;

impl Scaling {
    /// From the steps of some rounds; the seed draws the bootstrap.
    pub fn of(steps: &[LevelStep], seed: u64) -> Self {
        let mut connections: Vec<u32> = steps.iter().map(|s| s.connections).collect();
        connections.sort_unstable();
        connections.dedup();
        let levels: Vec<Level> = connections.iter().map(|c| level(*c, steps)).collect();
        let taken = |c: u32| levels.iter().any(|l| l.connections == c && !l.at_least);
        let points: Vec<Point> = steps
            .iter()
            .filter(|s| taken(s.connections) && is_valid(s))
            .map(|s| Point {
                concurrency: f64::from(s.connections),
                requests_per_s: s.load.requests_per_s(),
                block: Some(s.round),
            })
            .collect();
        let mut found = Self {
            levels,
            fit: None,
            lack_of_fit: None,
            closed_loop: None,
            closed_loop_lack_of_fit: None,
            no_fit: None,
            expected: Vec::new(),
        };
        match Usl::fit(&points, seed) {
            Ok(fit) => found.take_law(fit, &points, seed),
            Err(e) => found.no_fit = Some(NoFit::Error(e)),
        }
        found.expected = found.drawn();
        found
    }

    /// Keeps the law if it fits, and the bounds of a closed loop if those do.
    fn take_law(&mut self, fit: Usl, points: &[Point], seed: u64) {
        self.lack_of_fit = fit.lack_of_fit(points);
        let Some(test) = self.lack_of_fit.filter(|test| !test.fits()) else {
            self.fit = Some(fit);
            return;
        };
        self.no_fit = Some(NoFit::Misses(test));
        let bounds = ClosedLoop::fit(points, fit.measured, &mut Rng::with_seed(seed));
        let figures = if bounds.knee.is_some() { 2 } else { 1 };
        let best = bounds.best;
        let test = LackOfFit::of(points, &|n| best.at(n), figures);
        self.closed_loop_lack_of_fit = test;
        self.closed_loop = test.is_some_and(|test| test.fits()).then_some(bounds);
    }

    /// What the law that stands says of a concurrency; nothing where none stands, and beyond what
    /// went into it.
    pub fn predict(&self, concurrency: f64) -> Option<Prediction> {
        let within = |(from, to): (f64, f64)| (from..=to).contains(&concurrency);
        match (&self.fit, &self.closed_loop) {
            (Some(fit), _) => within(fit.measured).then(|| fit.predict(concurrency)),
            (None, Some(bounds)) => within(bounds.measured).then(|| bounds.predict(concurrency)),
            (None, None) => None,
        }
    }

    fn drawn(&self) -> Vec<Prediction> {
        let of_fit = self.fit.as_ref().map(|fit| fit.measured);
        let Some((from, to)) = of_fit.or(self.closed_loop.as_ref().map(|it| it.measured)) else {
            return Vec::new();
        };
        let ratio = (to / from).powf(1.0 / f64::from(DRAWN));
        let mut at: Vec<f64> = (0..DRAWN).map(|i| from * ratio.powi(i as i32)).collect();
        at.push(to);
        at.into_iter().filter_map(|n| self.predict(n)).collect()
    }
}

fn is_valid(step: &LevelStep) -> bool {
    step.load.requests > 0 && load_flaws(&step.load).is_empty()
}

fn level(connections: u32, steps: &[LevelStep]) -> Level {
    let here = || steps.iter().filter(|s| s.connections == connections);
    let valid: Vec<&LevelStep> = here().filter(|s| is_valid(s)).collect();
    let spread = |value: &dyn Fn(&LoadReading) -> f64| {
        Spread::of(valid.iter().map(|s| value(&s.load)).collect())
    };
    let busy = valid.iter().filter(|s| s.load.client.saturated).count();
    Level {
        connections,
        rounds: valid.len() as u32,
        requests_per_s: spread(&LoadReading::requests_per_s),
        at_least: 2 * busy > valid.len(),
        latency_us_p50: spread(&|l| l.response.quantile_us(0.5)),
        latency_us_p99: spread(&|l| l.response.quantile_us(0.99)),
        problems: here().flat_map(|s| load_flaws(&s.load)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::closed;
    use crate::studies::scaling::{Estimate, Parameters};

    const LAW: Parameters = Parameters {
        lambda_per_s: 1000.0,
        sigma: 0.05,
        kappa: 0.0005,
    };

    /// Rounds of a server that keeps to the law, within a percent.
    fn steps(levels: &[u32]) -> Vec<LevelStep> {
        let mut steps = Vec::new();
        for round in 0..5 {
            for connections in levels {
                let off = 1.0 + 0.01 * f64::from((round * 7 + connections * 3) % 5) - 0.02;
                steps.push(LevelStep {
                    connections: *connections,
                    round,
                    load: closed(LAW.at(f64::from(*connections)) * off),
                });
            }
        }
        steps
    }

    #[test]
    fn the_law_is_found_and_drawn_only_where_it_was_measured() {
        let scaling = Scaling::of(&steps(&[1, 2, 4, 8, 16]), 1);
        assert_eq!(scaling.levels.len(), 5);
        assert!(scaling.levels.iter().all(|l| l.rounds == 5 && !l.at_least));
        let fit = scaling.fit.as_ref().unwrap();
        assert!(
            (fit.lambda_per_s.value / 1000.0 - 1.0).abs() < 0.03,
            "{fit:?}"
        );
        assert!(fit.peak.unwrap().beyond_measured);
        let drawn: Vec<f64> = scaling.expected.iter().map(|p| p.concurrency).collect();
        assert_eq!((drawn[0], drawn[drawn.len() - 1]), (1.0, 16.0));
        assert!(scaling.expected.iter().all(|p| !p.beyond_measured));
        let wide = Scaling::of(&steps(&[1, 4, 16, 64, 256]), 1);
        assert!(!wide.fit.unwrap().peak.unwrap().beyond_measured);
    }

    /// Rounds of a closed loop of 2 ms at a target that carries 5,000 requests/s, within 0.4%.
    fn closed_loop(levels: &[u32], rounds: u32, off: f64) -> Vec<LevelStep> {
        let mut steps = Vec::new();
        for round in 0..rounds {
            for connections in levels {
                let exact = (f64::from(*connections) * 500.0).min(5000.0);
                let wobble = f64::from((round * 7 + connections * 3) % 5) / 2.0 - 1.0;
                steps.push(LevelStep {
                    connections: *connections,
                    round,
                    load: closed(exact * (1.0 + off * wobble)),
                });
            }
        }
        steps
    }

    const LEVELS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

    #[test]
    fn a_closed_loop_of_2_ms_and_5000_a_second_is_found_as_that_without_a_peak() {
        for off in [0.004, 0.0] {
            let scaling = Scaling::of(&closed_loop(&LEVELS, 5, off), 1);
            assert!(scaling.fit.is_none());
            assert!(!scaling.lack_of_fit.unwrap().fits());
            let bounds = scaling.closed_loop.as_ref().unwrap();
            let near = |e: &Estimate, value: f64| (e.value / value - 1.0).abs() < 0.01;
            assert!(near(&bounds.response_us, 2000.0), "{bounds:?}");
            assert!(near(&bounds.most_per_s.unwrap(), 5000.0), "{bounds:?}");
            assert!(near(&bounds.knee.unwrap(), 10.0), "{bounds:?}");
            assert_eq!(scaling.expected.len(), DRAWN as usize + 1);
        }
    }

    #[test]
    fn what_no_law_fits_has_none() {
        // Less at 8 connections than at 4 and at 16, far beyond the noise.
        let mut steps = closed_loop(&LEVELS, 5, 0.004);
        for step in steps.iter_mut().filter(|s| s.connections == 8) {
            step.load = closed(1200.0 * (1.0 + 0.002 * f64::from(step.round)));
        }
        let scaling = Scaling::of(&steps, 1);
        assert!(scaling.fit.is_none() && scaling.closed_loop.is_none());
        assert!(scaling.expected.is_empty());
        assert!(matches!(scaling.no_fit, Some(NoFit::Misses(_))));
        assert!(scaling.closed_loop_lack_of_fit.is_some());
    }

    #[test]
    fn without_repetitions_the_fit_is_not_tested() {
        let scaling = Scaling::of(&closed_loop(&LEVELS, 1, 0.004), 1);
        assert!(scaling.fit.is_some() && scaling.lack_of_fit.is_none());
    }

    #[test]
    fn a_busy_client_is_left_out_of_the_fit() {
        let mut steps = steps(&[1, 2, 4, 8, 16]);
        for step in steps.iter_mut().filter(|s| s.connections == 16) {
            step.load.client.saturated = true;
        }
        let scaling = Scaling::of(&steps, 1);
        assert!(scaling.levels[4].at_least);
        assert_eq!(scaling.fit.as_ref().unwrap().measured, (1.0, 8.0));
    }

    #[test]
    fn too_few_levels_have_no_fit() {
        let scaling = Scaling::of(&steps(&[1, 2, 4]), 1);
        assert!(scaling.fit.is_none() && scaling.expected.is_empty());
        let few = NoFit::Error(UslError::TooFew { found: 3 });
        assert_eq!(scaling.no_fit, Some(few));
        assert!(Scaling::of(&[], 1).levels.is_empty());
    }

    #[test]
    fn rounds_with_wrong_answers_do_not_count() {
        let mut steps = steps(&[1, 2, 4, 8]);
        steps[0].load.errors.status = steps[0].load.requests;
        steps[0].load.errors_all = steps[0].load.errors;
        let scaling = Scaling::of(&steps, 1);
        assert_eq!(scaling.levels[0].rounds, 4);
        assert!(!scaling.levels[0].problems.is_empty());
    }
}

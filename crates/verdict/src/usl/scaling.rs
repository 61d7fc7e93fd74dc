//! What a fitted law says about scaling.

use readings::LoadReading;
use serde::Serialize;

use super::{Estimate, Point, Prediction, Usl};
use crate::capacity::Spread;
use crate::text::{counted, number, percent, rate};
use crate::validity::reasons;

/// A closed loop at one concurrency in one round.
#[derive(Clone, Debug)]
pub struct LevelStep {
    pub connections: u32,
    /// The round, which is the block.
    pub round: u32,
    /// What was measured.
    pub load: LoadReading,
}

/// All rounds of one concurrency.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Level {
    pub connections: u32,
    /// Rounds that were measured and valid.
    pub rounds: u32,
    /// Throughput of the rounds; absent where none was valid.
    pub requests_per_s: Option<Spread>,
    /// The client was the limit in more than half of them: the throughput is 'at least' that, and
    /// is left out of the fit.
    pub at_least: bool,
    /// The median latency of the rounds, in microseconds.
    pub latency_us_p50: Option<Spread>,
    /// The 99th percentile of the rounds, in microseconds.
    pub latency_us_p99: Option<Spread>,
    /// Why rounds were not valid, each reason once.
    pub problems: Vec<String>,
}

/// Throughput over concurrency, and the law that fits it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scaling {
    /// By concurrency, ascending.
    pub levels: Vec<Level>,
    /// The fit; absent where there is none.
    pub fit: Option<Usl>,
    /// Why there is no fit.
    pub no_fit: Option<String>,
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
        let (fit, no_fit) = match Usl::fit(&points, seed) {
            Ok(fit) => (Some(fit), None),
            Err(e) => (None, Some(e.to_string())),
        };
        let expected = fit.as_ref().map_or(Vec::new(), |fit| {
            let (from, to) = fit.measured;
            let ratio = (to / from).powf(1.0 / f64::from(DRAWN));
            let mut at: Vec<f64> = (0..DRAWN).map(|i| from * ratio.powi(i as i32)).collect();
            at.push(to);
            at.into_iter().map(|n| fit.predict(n)).collect()
        });
        Self {
            levels,
            fit,
            no_fit,
            expected,
        }
    }

    /// What was found.
    pub fn sentences(&self) -> Vec<String> {
        let mut said = Vec::new();
        let known = |l: &&Level| l.requests_per_s.is_some();
        let best = self.levels.iter().filter(known).max_by(|a, b| {
            let value = |l: &Level| l.requests_per_s.map_or(0.0, |s| s.middle);
            value(a).total_cmp(&value(b))
        });
        if let Some((best, spread)) = best.and_then(|l| Some((l, l.requests_per_s?))) {
            said.push(format!(
                "The most was {}{} requests/s, at {}.",
                if best.at_least { "at least " } else { "" },
                rate(spread.middle),
                counted(best.connections as usize, "connection")
            ));
        }
        let limited: Vec<String> = self
            .levels
            .iter()
            .filter(|l| l.at_least)
            .map(|l| l.connections.to_string())
            .collect();
        if !limited.is_empty() {
            said.push(format!(
                "At {} connections the client was the limit: their throughput is 'at least', and \
                 is left out of the fit.",
                limited.join(", ")
            ));
        }
        match (&self.fit, &self.no_fit) {
            (Some(fit), _) => said.extend(of_fit(fit)),
            (None, Some(why)) => said.push(format!("No law was fitted: {why}.")),
            (None, None) => {}
        }
        said
    }
}

fn is_valid(step: &LevelStep) -> bool {
    step.load.requests > 0 && reasons(&step.load).is_empty()
}

fn level(connections: u32, steps: &[LevelStep]) -> Level {
    let here = || steps.iter().filter(|s| s.connections == connections);
    let valid: Vec<&LevelStep> = here().filter(|s| is_valid(s)).collect();
    let spread = |value: &dyn Fn(&LoadReading) -> f64| {
        Spread::of(valid.iter().map(|s| value(&s.load)).collect())
    };
    let busy = valid.iter().filter(|s| s.load.client.saturated).count();
    let mut problems: Vec<String> = Vec::new();
    for reason in here().flat_map(|s| reasons(&s.load)) {
        if !problems.contains(&reason) {
            problems.push(reason);
        }
    }
    Level {
        connections,
        rounds: valid.len() as u32,
        requests_per_s: spread(&LoadReading::requests_per_s),
        at_least: 2 * busy > valid.len(),
        latency_us_p50: spread(&|l| l.response.quantile_us(0.5)),
        latency_us_p99: spread(&|l| l.response.quantile_us(0.99)),
        problems,
    }
}

fn of_fit(fit: &Usl) -> Vec<String> {
    let interval = |e: &Estimate, write: &dyn Fn(f64) -> String| {
        let high = e.high.map_or("no upper end".to_owned(), write);
        format!("{} [{}, {high}]", write(e.value), write(e.low))
    };
    let share = |v: f64| percent(v * 100.0, 2, false);
    let mut said = vec![format!(
        "The universal scalability law with one connection at {} requests/s, contention {} and \
         coherency {} fits the measured points to {}.",
        interval(&fit.lambda_per_s, &rate),
        interval(&fit.sigma, &share),
        interval(&fit.kappa, &share),
        percent(fit.residual * 100.0, 1, false),
    )];
    let last = number(fit.measured.1, 0, false);
    said.push(match &fit.peak {
        Some(peak) if peak.beyond_measured => format!(
            "Up to {last} connections more bring more; where that ends lies beyond what was \
             measured, and is not known."
        ),
        Some(peak) => format!(
            "By the law the most is reached at {} connections; more bring less.",
            interval(&peak.concurrency, &|v| number(v, 0, false))
        ),
        None => format!(
            "Up to {last} connections nothing says that more would bring less; beyond them nothing \
             is known."
        ),
    });
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::closed;
    use crate::usl::Parameters;

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
        let said = scaling.sentences().join(" ");
        assert!(
            said.contains("beyond what was measured, and is not known"),
            "{said}"
        );
        let wide = Scaling::of(&steps(&[1, 4, 16, 64, 256]), 1)
            .sentences()
            .join(" ");
        assert!(wide.contains("more bring less"), "{wide}");
    }

    #[test]
    fn a_busy_client_is_named_and_left_out_of_the_fit() {
        let mut steps = steps(&[1, 2, 4, 8, 16]);
        for step in steps.iter_mut().filter(|s| s.connections == 16) {
            step.load.client.saturated = true;
        }
        let scaling = Scaling::of(&steps, 1);
        assert!(scaling.levels[4].at_least);
        assert_eq!(scaling.fit.as_ref().unwrap().measured, (1.0, 8.0));
        let said = scaling.sentences().join(" ");
        assert!(
            said.contains("At 16 connections the client was the limit"),
            "{said}"
        );
        assert!(said.contains("The most was at least "), "{said}");
    }

    #[test]
    fn too_few_levels_have_no_fit_and_say_why() {
        let scaling = Scaling::of(&steps(&[1, 2, 4]), 1);
        assert!(scaling.fit.is_none() && scaling.expected.is_empty());
        let said = scaling.sentences().join(" ");
        assert!(
            said.contains("at least 4 different concurrencies, found 3"),
            "{said}"
        );
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

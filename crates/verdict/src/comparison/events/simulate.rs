//! Counts of failures drawn from known shares, judged as a run's are.

use super::counts::{Block, Counts, Side};
use crate::stats::normal::chi_square;
use crate::{Rules, Verdict};

/// What is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FailureScenario {
    pub blocks: usize,
    /// Requests of each side in a block.
    pub requests: u64,
    /// Failures to be expected in a block: subject, baseline.
    pub expected: (f64, f64),
    /// The variance of a block's count over that of independent failures: 1 is Poisson's, more is a
    /// negative binomial distribution.
    pub overdispersion: f64,
}

/// How often each verdict came.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FailureTally {
    pub experiments: u32,
    pub different: u32,
    pub same: u32,
    /// Intervals that held the true difference.
    pub covered: u32,
}

impl FailureTally {
    pub fn share(&self, count: u32) -> f64 {
        f64::from(count) / f64::from(self.experiments.max(1))
    }
}

/// Carries out so many experiments from a seed.
pub fn simulate_failures(
    rules: &Rules,
    scenario: &FailureScenario,
    experiments: u32,
    seed: u64,
) -> FailureTally {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut tally = FailureTally::default();
    let truth = (scenario.expected.0 - scenario.expected.1) / scenario.requests as f64;
    for _ in 0..experiments {
        let mut side = |expected| Side {
            failed: count(&mut random, expected, scenario.overdispersion).min(scenario.requests),
            requests: scenario.requests,
        };
        let blocks = (0..scenario.blocks).map(|_| Block {
            subject: side(scenario.expected.0),
            baseline: side(scenario.expected.1),
        });
        let counts = Counts {
            blocks: blocks.collect(),
            per: super::counts::Per::Request,
        };
        tally.experiments += 1;
        let (Some(judged), Some(p)) = (counts.judged(rules), counts.p_value()) else {
            continue;
        };
        let (low, high) = judged.interval;
        tally.covered += u32::from(low <= truth && truth <= high);
        match judged.decide(rules, p, 1).verdict {
            Verdict::Faster | Verdict::Slower => tally.different += 1,
            Verdict::Same => tally.same += 1,
            Verdict::Inconclusive | Verdict::Invalid => {}
        }
    }
    tally
}

/// A count with this mean, whose variance is so many times the mean.
fn count(random: &mut fastrand::Rng, mean: f64, overdispersion: f64) -> u64 {
    if mean <= 0.0 {
        return 0;
    }
    if overdispersion <= 1.0 {
        return poisson(random, mean);
    }
    // Poisson's, with a mean from a gamma distribution.
    let scale = overdispersion - 1.0;
    let mean = scale * chi_square(random, 2.0 * mean / scale) / 2.0;
    poisson(random, mean)
}

/// By the product of uniform numbers (Knuth), in parts whose mean is small enough for it.
fn poisson(random: &mut fastrand::Rng, mut mean: f64) -> u64 {
    let mut count = 0;
    while mean > 0.0 {
        let part = mean.min(30.0);
        mean -= part;
        let limit = (-part).exp();
        let mut product = random.f64();
        while product > limit {
            count += 1;
            product *= random.f64();
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::header;

    fn rules(matters_failures: f64) -> Rules {
        Rules {
            matters_failures,
            ..Rules::of(&header(10))
        }
    }

    /// The example `failure_rates` has more of each, and more experiments.
    const EXPERIMENTS: u32 = 400;
    /// Two standard errors of a share of 5% over so many.
    const SLACK: f64 = 0.022;

    #[test]
    fn counts_have_the_mean_and_variance_that_were_asked_for() {
        let mut random = fastrand::Rng::with_seed(3);
        for overdispersion in [1.0, 4.0, 10.0] {
            let drawn: Vec<f64> = (0..5_000)
                .map(|_| count(&mut random, 12.0, overdispersion) as f64)
                .collect();
            let mean = drawn.iter().sum::<f64>() / 5_000.0;
            let squares: f64 = drawn.iter().map(|x| (x - mean).powi(2)).sum();
            let ratio = squares / 5_000.0 / mean;
            assert!((mean / 12.0 - 1.0).abs() < 0.07, "{mean}");
            assert!((ratio / overdispersion - 1.0).abs() < 0.2, "{ratio}");
        }
    }

    #[track_caller]
    fn assert_equal_shares_are_rarely_called_different(overdispersion: f64, most: f64) {
        // Every difference matters here, so that nothing but the test protects.
        let rules = rules(1e-9);
        for blocks in [3, 10] {
            for expected in [0.3, 3.0, 30.0] {
                let scenario = FailureScenario {
                    blocks,
                    requests: 20_000,
                    expected: (expected, expected),
                    overdispersion,
                };
                let tally = simulate_failures(&rules, &scenario, EXPERIMENTS, 15);
                let different = tally.share(tally.different);
                assert!(different < most + SLACK, "{scenario:?}: {different}");
            }
        }
    }

    #[test]
    fn equal_shares_of_independent_failures_are_rarely_called_different() {
        assert_equal_shares_are_rarely_called_different(1.0, 0.05);
    }

    #[test]
    fn equal_shares_of_clustered_failures_are_rarely_called_different() {
        assert_equal_shares_are_rarely_called_different(5.0, 0.08);
    }

    #[test]
    fn shares_that_differ_by_what_matters_are_rarely_called_the_same() {
        for overdispersion in [1.0, 5.0] {
            let most = if overdispersion > 1.0 { 0.08 } else { 0.05 };
            for blocks in [3, 10] {
                for baseline in [0.0, 10.0] {
                    let scenario = FailureScenario {
                        blocks,
                        requests: 20_000,
                        expected: (baseline + 20.0, baseline),
                        overdispersion,
                    };
                    let tally = simulate_failures(&rules(0.001), &scenario, EXPERIMENTS, 15);
                    let same = tally.share(tally.same);
                    assert!(same < most + SLACK, "{scenario:?}: {same}");
                }
            }
        }
    }

    #[test]
    fn a_difference_that_matters_is_found() {
        let scenario = FailureScenario {
            blocks: 5,
            requests: 20_000,
            expected: (100.0, 10.0),
            overdispersion: 3.0,
        };
        let tally = simulate_failures(&rules(0.001), &scenario, 200, 15);
        assert!(tally.share(tally.different) > 0.9, "{tally:?}");
        assert!(tally.share(tally.covered) > 0.92, "{tally:?}");
    }
}

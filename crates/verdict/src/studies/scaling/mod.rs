//! The universal scalability law: throughput over concurrency.
//!
//! X(N) = λ N / (1 + σ (N - 1) + κ N (N - 1)), where λ is the throughput of one, σ the share of
//! the work that waits for others (contention), and κ the cost of keeping each two of them
//! consistent (coherency). With κ > 0 the throughput has a peak at N = √((1 - σ) / κ), after which
//! more concurrency brings less.
//!
//! The curve is fitted to the logarithms of the throughput, since noise is in proportion to it, by
//! the Gauss-Newton method from a linear start, with σ and κ kept from going below zero. Intervals
//! are bootstrap percentiles: blocks are drawn where the points have blocks, residuals otherwise.
//! Percentiles of few blocks are too narrow, so they are taken further out, as Student's t lies
//! beyond the normal distribution; with 12 blocks, 95% intervals then held the truth in 92 to 96
//! of 100 simulated fits, plain ones in 89 to 93; with residuals of 7 points in 92 to 94, plain
//! ones in 82 to 88.
//! A law can be fitted to anything, so [`LackOfFit`] tests it against what repetitions differ by.
//! Where it fails, the bounds of a [`ClosedLoop`] are fitted and tested, and where those fail, there
//! is no law.
//! A figure beyond the last measured concurrency is marked as such: the law says nothing of what
//! was not measured, such as a queue that is full at the next connection.
//!
//! Sources: N. J. Gunther, Guerrilla Capacity Planning, Springer 2007; N. J. Gunther, A general
//! theory of computational scalability based on rational functions, arXiv:0808.1431; B. Efron,
//! R. J. Tibshirani, An Introduction to the Bootstrap, Chapman and Hall 1993; T. C. Hesterberg,
//! What teachers should know about the bootstrap, The American Statistician 69 (2015), for the
//! expanded percentiles.

pub mod words;

mod closed_loop;
mod fit;
mod lack_of_fit;
mod levels;

use fastrand::Rng;
use serde::Serialize;

use crate::stats::student::{t_quantile, t_two_sided_p};

pub use closed_loop::ClosedLoop;
pub use lack_of_fit::LackOfFit;
pub use levels::{Level, LevelStep, NoFit, Scaling};

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// How many work at the same time: connections, threads.
    pub concurrency: f64,
    /// Throughput at that concurrency.
    pub requests_per_s: f64,
    /// The block that it was measured in, where there are blocks.
    pub block: Option<u32>,
}

/// The law's three figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Parameters {
    /// Throughput of one, requests per second.
    pub lambda_per_s: f64,
    /// Contention, a fraction; at least 0.
    pub sigma: f64,
    /// Coherency; at least 0.
    pub kappa: f64,
}

/// An estimate and the ends of its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    /// Upper end; absent where it has none.
    pub high: Option<f64>,
}

/// Where the throughput is highest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Peak {
    /// The concurrency. Its upper end is absent where too many bootstrap fits have no peak.
    pub concurrency: Estimate,
    /// Whether it lies beyond the last measured concurrency, so that nobody has seen it.
    pub beyond_measured: bool,
}

/// A throughput that the law expects.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prediction {
    pub concurrency: f64,
    /// The throughput of the curve, not of a single measurement.
    pub requests_per_s: Estimate,
    /// Whether the concurrency lies beyond what was measured.
    pub beyond_measured: bool,
}

/// A fitted law.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Usl {
    /// The best figures.
    pub parameters: Parameters,
    /// λ with its interval.
    pub lambda_per_s: Estimate,
    /// σ with its interval.
    pub sigma: Estimate,
    /// κ with its interval.
    pub kappa: Estimate,
    /// The peak; absent where the best fit has none.
    pub peak: Option<Peak>,
    /// The smallest and the largest concurrency that were measured.
    pub measured: (f64, f64),
    /// The typical deviation of a point from the curve, as a fraction.
    pub residual: f64,
    /// What was drawn for the intervals.
    pub bootstrap: Bootstrap,
    #[serde(skip)]
    drawn: Drawn<Parameters>,
}

/// The figures of all bootstrap fits.
#[derive(Clone, Debug, PartialEq)]
struct Drawn<T> {
    fits: Vec<T>,
    /// The share of them that lies beyond each end of an interval.
    tail: f64,
}

/// What a bootstrap draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bootstrap {
    /// Whole blocks: what varies from block to block is in the interval.
    Blocks,
    /// Deviations from the curve.
    Residuals,
}

/// Why there is no fit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum UslError {
    /// Three figures want three concurrencies, and a fourth to tell whether they fit.
    #[error(
        "expected at least 4 different concurrencies, found {found}; measure more of them, such as 1, 2, 4, 8, 16"
    )]
    TooFew { found: usize },
    /// A point that is none.
    #[error(
        "expected concurrencies of at least 1 and throughputs above 0, found {requests_per_s} requests/s at {concurrency}"
    )]
    Point {
        concurrency: f64,
        requests_per_s: f64,
    },
}

/// Fits of resampled points for the intervals.
const RESAMPLES: usize = 1000;
/// Degrees of freedom at which Student's t is the normal distribution.
const NORMAL: f64 = 1e6;
/// Fewer blocks than this are too few to draw from.
const FEWEST_BLOCKS: usize = 4;

impl Parameters {
    /// The throughput at a concurrency, requests per second.
    pub fn at(&self, concurrency: f64) -> f64 {
        self.lambda_per_s * concurrency / self.load(concurrency)
    }

    fn load(&self, n: f64) -> f64 {
        1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0)
    }

    /// The concurrency with the highest throughput; nothing where more always brings more, 1 where
    /// more brings less from the start.
    pub fn peak(&self) -> Option<f64> {
        (self.kappa > 0.0).then(|| ((1.0 - self.sigma).max(0.0) / self.kappa).sqrt().max(1.0))
    }
}

impl Usl {
    /// Fits the law. The same points and seed give the same figures.
    ///
    /// # Errors
    /// When the points are too few or not positive.
    pub fn fit(points: &[Point], seed: u64) -> Result<Self, UslError> {
        let concurrencies = check(points)?;
        let best = fit::fit(points);
        let mut random = Rng::with_seed(seed);
        let (bootstrap, drawn) = resample(
            points,
            &best,
            3,
            &Parameters::at,
            &|drawn, best| fit::fit_from(drawn, *best),
            &mut random,
        );
        let measured = (concurrencies[0], concurrencies[concurrencies.len() - 1]);
        let of = |value, figure: &dyn Fn(&Parameters) -> f64| drawn.estimate(value, figure);
        let peak = best.peak().map(|value| Peak {
            concurrency: of(value, &|p| p.peak().unwrap_or(f64::INFINITY)),
            beyond_measured: value > measured.1,
        });
        Ok(Self {
            parameters: best,
            lambda_per_s: of(best.lambda_per_s, &|p| p.lambda_per_s),
            sigma: of(best.sigma, &|p| p.sigma),
            kappa: of(best.kappa, &|p| p.kappa),
            peak,
            measured,
            residual: fit::residual(points, &best),
            bootstrap,
            drawn,
        })
    }

    /// The test of the law against the points that it was fitted to; nothing without repetitions.
    /// Figures at the edge of what they may be were not fitted.
    pub fn lack_of_fit(&self, points: &[Point]) -> Option<LackOfFit> {
        let free = [self.parameters.sigma, self.parameters.kappa];
        let free = free.iter().filter(|figure| **figure > 0.0).count();
        LackOfFit::of(points, &|n| self.parameters.at(n), 1 + free)
    }

    /// What the curve says of a concurrency.
    pub fn predict(&self, concurrency: f64) -> Prediction {
        let value = self.parameters.at(concurrency);
        Prediction {
            concurrency,
            requests_per_s: self.drawn.estimate(value, &|p| p.at(concurrency)),
            beyond_measured: concurrency > self.measured.1,
        }
    }
}

/// The different concurrencies, ascending.
fn check(points: &[Point]) -> Result<Vec<f64>, UslError> {
    for p in points {
        let counts = p.concurrency >= 1.0 && p.concurrency.is_finite();
        if !counts || p.requests_per_s <= 0.0 || !p.requests_per_s.is_finite() {
            return Err(UslError::Point {
                concurrency: p.concurrency,
                requests_per_s: p.requests_per_s,
            });
        }
    }
    let mut concurrencies: Vec<f64> = points.iter().map(|p| p.concurrency).collect();
    concurrencies.sort_by(f64::total_cmp);
    concurrencies.dedup();
    match concurrencies.len() {
        found @ ..4 => Err(UslError::TooFew { found }),
        _ => Ok(concurrencies),
    }
}

impl<T> Drawn<T> {
    /// `spread` is how many normal standard deviations the ends of an interval are to lie out.
    fn of(fits: Vec<T>, spread: f64) -> Self {
        let tail = t_two_sided_p(spread, NORMAL) / 2.0;
        Self { fits, tail }
    }

    /// A value with the interval of what was drawn.
    fn estimate(&self, value: f64, figure: &dyn Fn(&T) -> f64) -> Estimate {
        let mut drawn: Vec<f64> = self.fits.iter().map(figure).collect();
        drawn.sort_by(f64::total_cmp);
        let at = |share: f64| drawn[((drawn.len() - 1) as f64 * share).round() as usize];
        let high = at(1.0 - self.tail);
        Estimate {
            value,
            // The best value may lie outside the middle of a skewed bootstrap.
            low: at(self.tail).min(value),
            high: high.is_finite().then_some(high.max(value)),
        }
    }
}

/// Fits to points drawn anew, of a curve with so many figures.
fn resample<T: Clone>(
    points: &[Point],
    best: &T,
    figures: u32,
    at: &dyn Fn(&T, f64) -> f64,
    refit: &dyn Fn(&[Point], &T) -> T,
    random: &mut Rng,
) -> (Bootstrap, Drawn<T>) {
    let mut blocks: Vec<u32> = points.iter().filter_map(|p| p.block).collect();
    blocks.sort_unstable();
    blocks.dedup();
    let by_blocks = points.iter().all(|p| p.block.is_some()) && blocks.len() >= FEWEST_BLOCKS;
    let mut resamples = Vec::with_capacity(RESAMPLES);
    if by_blocks {
        let blocks: Vec<Vec<Point>> = blocks
            .into_iter()
            .map(|block| {
                let of_block = |p: &&Point| p.block == Some(block);
                points.iter().filter(of_block).copied().collect()
            })
            .collect();
        while resamples.len() < RESAMPLES {
            let drawn: Vec<Point> = (0..blocks.len())
                .flat_map(|_| blocks[random.usize(..blocks.len())].iter().copied())
                .collect();
            // Where blocks differ in what they hold, a draw may lack too much for a fit.
            resamples.push(match check(&drawn) {
                Ok(_) => refit(&drawn, best),
                Err(_) => best.clone(),
            });
        }
        let n = blocks.len() as f64;
        let spread = t_quantile(0.975, n - 1.0) * (n / (n - 1.0)).sqrt();
        return (Bootstrap::Blocks, Drawn::of(resamples, spread));
    }
    // Residuals are smaller than the noise, by the figures that were fitted to them.
    let n = points.len() as f64;
    let free = n - f64::from(figures);
    let inflate = (n / free).sqrt();
    let residuals: Vec<f64> = points
        .iter()
        .map(|p| inflate * (p.requests_per_s / at(best, p.concurrency)).ln())
        .collect();
    while resamples.len() < RESAMPLES {
        let drawn: Vec<Point> = points
            .iter()
            .map(|p| Point {
                requests_per_s: at(best, p.concurrency)
                    * residuals[random.usize(..residuals.len())].exp(),
                ..*p
            })
            .collect();
        resamples.push(refit(&drawn, best));
    }
    let spread = t_quantile(0.975, free);
    (Bootstrap::Residuals, Drawn::of(resamples, spread))
}

#[cfg(test)]
mod tests;

//! Simulated series, for the tests and for `examples/changes.rs`.

use history::change::{Point, changes};

/// Normal numbers from a seed.
pub struct Random(fastrand::Rng);

impl Random {
    pub fn with_seed(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub fn normal(&mut self) -> f64 {
        let (a, b) = (1.0 - self.0.f64(), self.0.f64());
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    #[allow(dead_code, reason = "the tests use it, the example does not")]
    pub fn below(&mut self, n: usize) -> usize {
        self.0.usize(..n)
    }

    pub fn chance(&mut self, p: f64) -> bool {
        self.0.f64() < p
    }
}

const BLOCKS: usize = 5;
pub const RUNS: usize = 60;
/// Runs before a step.
pub const BEFORE: usize = 30;
/// The runs after a step after which the history is read.
pub const AFTER: [usize; 4] = [1, 2, 3, 5];

/// A run: the mean of its blocks' log ratios, whose standard error is `se`, and what runs differ by
/// beside that.
pub fn run(random: &mut Random, level: f64, se: f64, between: f64) -> Point {
    let sd = se * (BLOCKS as f64).sqrt();
    let start = level + between * random.normal();
    let blocks: Vec<f64> = (0..BLOCKS).map(|_| start + sd * random.normal()).collect();
    let mean = blocks.iter().sum::<f64>() / BLOCKS as f64;
    let squares: f64 = blocks.iter().map(|x| (x - mean).powi(2)).sum();
    let degrees = BLOCKS as f64 - 1.0;
    Point {
        value: mean,
        standard_error: (squares / degrees / BLOCKS as f64).sqrt(),
        degrees,
    }
}

/// Independent runs of one line, with a step after run 30.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// The new level over the old one, less 1; 0 for none.
    pub step: f64,
    /// The standard error of a run, as its blocks show it.
    pub standard_error: f64,
    /// The standard deviation between runs beside that, in standard errors.
    pub between: f64,
}

impl Scenario {
    pub fn series(&self, seed: u64) -> Vec<Point> {
        let random = &mut Random::with_seed(seed);
        let level = |i| if i < BEFORE { 0.0 } else { self.step.ln_1p() };
        let between = self.between * self.standard_error;
        (0..RUNS)
            .map(|i| run(random, level(i), self.standard_error, between))
            .collect()
    }

    /// The shares of series in which the step is reported, at its run or one beside it, and in which
    /// it is confirmed, each after so many runs of [`AFTER`].
    pub fn found(&self, series: u64, level: f64) -> [[f64; 4]; 2] {
        let mut counts = [[0; 4]; 2];
        for seed in 0..series {
            let points = self.series(seed);
            for (i, after) in AFTER.into_iter().enumerate() {
                let found = changes(&points[..BEFORE + after], level, true);
                let step = found.iter().find(|c| c.at.abs_diff(BEFORE) <= 1);
                counts[0][i] += u32::from(step.is_some());
                counts[1][i] += u32::from(step.is_some_and(|c| c.confirmed));
            }
        }
        counts.map(|one| one.map(|count| f64::from(count) / series as f64))
    }
}

/// Shares of series in which a change is confirmed after the last run, in which one was confirmed
/// after any, and in which one was reported after any, if the history is read after each run.
pub fn alarms(
    series: u64,
    level: f64,
    mut make: impl FnMut(&mut Random) -> Vec<Point>,
) -> [f64; 3] {
    let mut counts = [0; 3];
    for seed in 0..series {
        let points = make(&mut Random::with_seed(seed));
        let mut any = [false; 3];
        for runs in 4..=points.len() {
            let found = changes(&points[..runs], level, true);
            any[0] = found.iter().any(|c| c.confirmed);
            any[1] |= any[0];
            any[2] |= !found.is_empty();
        }
        for (count, any) in counts.iter_mut().zip(any) {
            *count += u32::from(any);
        }
    }
    counts.map(|count| f64::from(count) / series as f64)
}

//! Whether a curve deviates from repeated measurements by more than their noise: the F test for
//! lack of fit against pure error.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use super::Point;

/// Below this p value a curve does not fit...
const ALPHA: f64 = 0.05;
/// ...unless it deviates by less than this (root of the mean square of the logarithm): noise may be
/// so small that any simple law shows a deviation.
const IRRELEVANT: f64 = 0.005;
/// Rounds of taking levels and blocks out in turn; balanced designs need one.
const TURNS: usize = 30;

/// How far a curve lies from the levels' means, against what repetitions differ by.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LackOfFit {
    /// The mean square of the deviations over that of the noise; absent where there was no noise.
    pub f: Option<f64>,
    /// The chance of a ratio at least as large if the curve were right.
    pub p: f64,
    /// Degrees of freedom of the deviations and of the noise.
    pub degrees: (u32, u32),
    /// The typical deviation of a level from the curve, as a fraction.
    pub deviation: f64,
}

impl LackOfFit {
    /// Tests a curve of so many fitted figures. Nothing where levels were not repeated, or where
    /// there are no more levels than figures.
    ///
    /// What blocks have in common is no noise: it is taken out of the repetitions.
    pub(super) fn of(points: &[Point], curve: &dyn Fn(f64) -> f64, figures: usize) -> Option<Self> {
        let levels = numbered(points, |p| p.concurrency.to_bits());
        let blocks = numbered(points, |p| p.block.map_or(0, u64::from));
        let (level_count, block_count) = (count(&levels), count(&blocks));
        let of_levels = level_count.checked_sub(figures).filter(|d| *d > 0)?;
        let of_noise = (points.len() + 1).checked_sub(level_count + block_count)?;
        if of_noise == 0 {
            return None;
        }
        let logs: Vec<f64> = points.iter().map(|p| p.requests_per_s.ln()).collect();
        let (mut level, mut block) = (vec![0.0; level_count], vec![0.0; block_count]);
        for _ in 0..TURNS {
            let rest: Vec<f64> = logs
                .iter()
                .zip(&blocks)
                .map(|(y, b)| y - block[*b])
                .collect();
            level = means(&rest, &levels, level_count);
            let rest: Vec<f64> = logs
                .iter()
                .zip(&levels)
                .map(|(y, l)| y - level[*l])
                .collect();
            block = means(&rest, &blocks, block_count);
        }
        let mut noise = 0.0;
        let mut deviations = 0.0;
        for (i, point) in points.iter().enumerate() {
            noise += (logs[i] - level[levels[i]] - block[blocks[i]]).powi(2);
            deviations += (level[levels[i]] - curve(point.concurrency).ln()).powi(2);
        }
        let deviation = (deviations / points.len() as f64).sqrt();
        let (d1, d2) = (of_levels as f64, of_noise as f64);
        let f = (noise > 1e-18).then(|| (deviations / d1) / (noise / d2));
        let p = match f {
            Some(f) => FisherSnedecor::new(d1, d2).map_or(f64::NAN, |dist| dist.sf(f)),
            None if deviation > IRRELEVANT => 0.0,
            None => 1.0,
        };
        Some(Self {
            f,
            p,
            degrees: (of_levels as u32, of_noise as u32),
            deviation,
        })
    }

    /// Whether the curve deviates by no more than noise explains, or by too little to matter.
    pub fn fits(&self) -> bool {
        self.p >= ALPHA || self.deviation < IRRELEVANT
    }
}

/// Numbers from 0 for equal keys.
fn numbered(points: &[Point], key: impl Fn(&Point) -> u64) -> Vec<usize> {
    let mut keys: Vec<u64> = points.iter().map(&key).collect();
    keys.sort_unstable();
    keys.dedup();
    points
        .iter()
        .map(|p| keys.partition_point(|k| *k < key(p)))
        .collect()
}

fn count(numbers: &[usize]) -> usize {
    numbers.iter().max().map_or(0, |most| most + 1)
}

fn means(values: &[f64], groups: &[usize], count: usize) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); count];
    for (value, group) in values.iter().zip(groups) {
        sums[*group].0 += value;
        sums[*group].1 += 1.0;
    }
    sums.into_iter().map(|(sum, n)| sum / n).collect()
}

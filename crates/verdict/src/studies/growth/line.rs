//! Lines through the levels of blocks, their slopes, and whether they are lines.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

/// Below this p value the levels do not lie on a line...
const ALPHA: f64 = 0.05;
/// ...unless they deviate from it by less than this share of the rise over the measured range: where
/// there is hardly any noise, any line fails.
const IRRELEVANT: f64 = 0.02;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) slope: f64,
    intercept: f64,
}

impl Line {
    pub(super) fn at(self, x: f64) -> f64 {
        self.intercept + self.slope * x
    }
}

/// The line of least squares through points; `None` where all have the same x.
pub(super) fn fit(points: &[(f64, f64)]) -> Option<Line> {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|p| p.0).sum::<f64>() / count;
    let mean_y = points.iter().map(|p| p.1).sum::<f64>() / count;
    let squares: f64 = points.iter().map(|p| (p.0 - mean_x).powi(2)).sum();
    let products: f64 = (points.iter())
        .map(|p| (p.0 - mean_x) * (p.1 - mean_y))
        .sum();
    (squares > 0.0).then(|| {
        let slope = products / squares;
        let intercept = mean_y - slope * mean_x;
        Line { slope, intercept }
    })
}

/// How far levels lie from a line, against what blocks differ by.
///
/// Each block's deviations from its own line have as many degrees of freedom as it has levels beyond
/// two. Their mean over the blocks is what the blocks have in common, the rest is noise: with normal
/// noise the ratio of the two mean squares has the F distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bend {
    /// The mean square of the common deviations over that of the noise; absent where there was no
    /// noise.
    pub f: Option<f64>,
    /// The chance of a ratio at least as large if the levels were on a line.
    pub p: f64,
    /// Degrees of freedom of the deviations and of the noise.
    pub degrees: (u32, u32),
    /// The largest deviation of a level from the line, in the metric's unit.
    pub deviation: f64,
    /// Whether the levels do not lie on a line, by more than 2% of the rise.
    pub is_bent: bool,
}

impl Bend {
    /// Tests blocks that all have the same levels; `None` with fewer than two blocks or three levels.
    pub(super) fn of(blocks: &[Vec<(f64, f64)>]) -> Option<Self> {
        let (count, levels) = (blocks.len(), blocks.first()?.len());
        let free = u32::try_from(levels.checked_sub(2).filter(|free| *free > 0)?).ok()?;
        let of_noise = u32::try_from(count.checked_sub(1).filter(|free| *free > 0)?).ok()? * free;
        let deviations = blocks.iter().map(|points| deviations(points));
        let deviations = deviations.collect::<Option<Vec<_>>>()?;
        let n = count as f64;
        let common: Vec<f64> = (0..levels)
            .map(|at| deviations.iter().map(|block| block[at]).sum::<f64>() / n)
            .collect();
        let of_common: f64 = common.iter().map(|d| n * d * d).sum();
        let apart = |block: &Vec<f64>| -> f64 {
            let pairs = block.iter().zip(&common);
            pairs.map(|(own, common)| (own - common).powi(2)).sum()
        };
        let noise: f64 = deviations.iter().map(apart).sum::<f64>() / f64::from(of_noise);
        let f = (noise > 0.0).then(|| of_common / f64::from(free) / noise);
        let deviation = common.iter().fold(0.0_f64, |most, d| most.max(d.abs()));
        let p = match f {
            Some(f) => FisherSnedecor::new(f64::from(free), f64::from(of_noise))
                .map_or(f64::NAN, |distribution| distribution.sf(f)),
            None if deviation > 0.0 => 0.0,
            None => 1.0,
        };
        let slopes = blocks.iter().filter_map(|points| fit(points));
        let slope = slopes.map(|line| line.slope).sum::<f64>() / n;
        let (first, last) = (blocks[0][0].0, blocks[0][levels - 1].0);
        let rise = (slope * (last - first)).abs();
        Some(Self {
            f,
            p,
            degrees: (free, of_noise),
            deviation,
            is_bent: p < ALPHA && deviation > IRRELEVANT * rise,
        })
    }
}

fn deviations(points: &[(f64, f64)]) -> Option<Vec<f64>> {
    let line = fit(points)?;
    let deviation = |p: &(f64, f64)| p.1 - line.at(p.0);
    Some(points.iter().map(deviation).collect())
}

//! What a run will not be able to tell, said while there is still time to stop it.

use readings::{RunHeader, Trial, trials_by_load};

use crate::comparison::floor::noise_floor;
use crate::comparison::pairs::spread::Spreads;
use crate::stats::dependence::Widening;
use crate::stats::sample::{Sample, error_of_mean};
use crate::stats::student::t_quantile;
use crate::trial::cells::Cells;
use crate::{Metric, NoiseFloor, Rules};

/// From fewer blocks than this, the spread is too uncertain.
const BLOCKS_MIN: usize = 5;

/// A noise floor that will still be wider than the margin after the run's last block.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlook {
    /// The noise floor so far.
    pub floor: NoiseFloor,
    /// Blocks of the whole run.
    pub blocks_planned: u32,
    /// Half the width of its interval after all planned blocks, as a log ratio.
    pub half_width: f64,
    /// What matters, as a fraction.
    pub matters: f64,
}

/// Forecasts the noise floors of throughput and median latency after the last block. Returns the
/// widest, if it is wider than the margin; `None` with fewer than five blocks and after the last
/// one. The remaining blocks are assumed to have the spread of the blocks so far.
pub fn outlook(header: &RunHeader, trials: &[Trial]) -> Option<Outlook> {
    if let Some((header, trials)) = trials_by_load(header, trials) {
        return outlook(&header, &trials);
    }
    let rules = Rules::of(header);
    let cells = Cells::of(header, trials);
    let spreads = Spreads::of(&rules, &cells);
    let wide = noise_floor(&rules, &cells, &spreads)
        .into_iter()
        .filter_map(|floor| {
            let judged = matches!(floor.metric, Metric::RequestsPerS | Metric::LatencyUsP50);
            if !judged || floor.blocks < BLOCKS_MIN || floor.blocks >= header.blocks as usize {
                return None;
            }
            let half_width = half_width_after(&floor, &rules, header.blocks as usize)?;
            (half_width > rules.matters.max(0.0).ln_1p()).then_some(Outlook {
                floor,
                blocks_planned: header.blocks,
                half_width,
                matters: rules.matters,
            })
        });
    wide.max_by(|a, b| a.half_width.total_cmp(&b.half_width))
}

/// Half the width of the floor's interval after `blocks` blocks, as a log ratio.
pub(crate) fn half_width_after(floor: &NoiseFloor, rules: &Rules, blocks: usize) -> Option<f64> {
    let log_ratios: Vec<f64> = floor.by_block.iter().map(|one| one.ratio.ln()).collect();
    let sample = Sample::of(&log_ratios)?;
    let degrees = Widening::of(blocks, sample.correlation).degrees(blocks as f64 - 1.0);
    let t = t_quantile(0.5 + rules.look_confidence() / 2.0, degrees);
    Some(t * error_of_mean(sample.sd, blocks, sample.correlation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{Normal, closed, done, header, trial};

    /// The outlook of so many blocks of a run of 30, whose ratios have this spread.
    fn after(blocks: u32, spread: f64) -> Option<Outlook> {
        let mut normal = Normal::with_seed(7);
        let mut trials = Vec::new();
        for block in 1..=blocks {
            for copy in [false, true] {
                let per_s = 10_000.0 * (spread * normal.next()).exp();
                let outcome = done(Some(closed(per_s)), None);
                trials.push(trial(block, "direct", copy, outcome));
            }
        }
        outlook(&header(30), &trials)
    }

    #[test]
    fn a_floor_that_stays_too_wide_is_told_and_one_that_becomes_narrow_is_not() {
        let wide = after(5, 0.3).unwrap();
        assert_eq!((wide.blocks_planned, wide.floor.blocks), (30, 5));
        // 30 blocks: 2.05 standard errors of 0.3 / sqrt(30), and somewhat more for the correlation.
        assert!((0.05..0.4).contains(&wide.half_width), "{wide:?}");
        assert_eq!(after(5, 0.02), None, "30 blocks narrow it");
        assert_eq!(after(4, 0.3), None, "too early");
        assert_eq!(after(30, 0.3), None, "too late");
    }
}

//! The smallest difference that a planned run finds.

use serde::Serialize;

use super::noise::{Noise, NoiseFrom, planned_metric};
use crate::stats::forecast::POWER;
use crate::stats::moderation::{Group, Member, Shared};
use crate::stats::normal::Normal;
use crate::stats::sample::Sample;
use crate::stats::student::chi_square_quantile;
use crate::{FEWEST_BLOCKS, Looks, Metric, Rules};

/// Differences beyond this factor are not looked for.
const LARGEST: f64 = 100.0;
/// Comparisons that are drawn for a forecast, and the seed of their draws: the same for all plans, so
/// that these differ by what is planned alone.
const DRAWS: usize = 400;
/// More subjects and conditions than this lend each other hardly more.
const MOST_DRAWN: usize = 8;
const SEED: u64 = 1908;

/// A run as it is planned, as far as it matters to what it can decide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedRun {
    pub blocks: u32,
    pub window_s: f64,
    pub has_closed_loop: bool,
    /// Subjects that are compared with the baseline: a question, corrected together.
    pub compared: usize,
    /// Conditions, whose comparisons share their variances.
    pub conditions: usize,
    /// The margin, as a fraction.
    pub matters: f64,
}

/// What a planned run decides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Decides {
    pub blocks: u32,
    pub window_s: f64,
    pub metric: Metric,
    /// The smallest true difference that is found four times in five, as a fraction: 0.4 is 40% more.
    /// Absent where it is beyond a factor of 100, and with fewer than three blocks.
    pub difference: Option<f64>,
    /// The standard deviation of a block's log ratio.
    pub sd: f64,
    #[serde(skip)]
    pub from: NoiseFrom,
}

impl PlannedRun {
    /// The smallest difference that this run finds four times in five where its blocks vary so, with the
    /// intervals of the result and at Bonferroni's level over the question, the strictest.
    ///
    /// Found by simulation: an interval allows for a correlation of blocks that few blocks do not show
    /// well, so its width varies. If the spread was measured in a few blocks, its uncertainty counts,
    /// too: four times in five holds over what it may truly be.
    pub fn decides(self, noise: &Noise) -> Decides {
        let sd = noise.sd(self.window_s);
        let smallest = self.smallest(noise.degrees, sd);
        Decides {
            blocks: self.blocks,
            window_s: self.window_s,
            metric: planned_metric(self.has_closed_loop),
            difference: smallest.map(f64::exp_m1),
            sd,
            from: noise.from,
        }
    }

    /// As a log ratio.
    fn smallest(self, degrees: Option<f64>, sd: f64) -> Option<f64> {
        let blocks = self.blocks as usize;
        if blocks < FEWEST_BLOCKS {
            return None;
        }
        let rules = Rules {
            baseline: String::new(),
            matters: self.matters,
            matters_failures: 0.0,
            matters_ms: None,
            confidence: 0.95,
            looks: Looks::of(self.blocks),
        };
        let alpha = rules.look_alpha();
        let strictest = 1.0 - alpha / self.compared.max(1) as f64;
        let mut random = Normal::with_seed(SEED);
        let mut needed: Vec<f64> = (0..DRAWS)
            .filter_map(|at| {
                // The true deviation over the measured one, of which a share `p` lies below.
                let p = (at as f64 + 0.5) / DRAWS as f64;
                let factor = degrees.map_or(1.0, |degrees| {
                    (degrees / chi_square_quantile(1.0 - p, degrees)).sqrt()
                });
                let sample = self.drawn(&mut random, factor * sd)?;
                shift_that_is_found(&sample, strictest, &rules)
            })
            .collect();
        needed.sort_by(f64::total_cmp);
        let at = (POWER * needed.len() as f64).ceil() as usize;
        let smallest = needed.get(at.saturating_sub(1)).copied()?;
        Some(smallest.max(rules.delta())).filter(|log_ratio| *log_ratio < LARGEST.ln())
    }
}

impl PlannedRun {
    /// The first comparison of a run whose log ratios have this deviation, with what the others lend it.
    fn drawn(self, random: &mut Normal, sd: f64) -> Option<Sample> {
        let arms = self.compared.clamp(1, MOST_DRAWN) + 1;
        let blocks = self.blocks as usize;
        let groups: Vec<Group> = (0..self.conditions.clamp(1, MOST_DRAWN))
            .map(|_| {
                // The baseline, what is compared with it, and the baseline's second copy.
                let all: Vec<Vec<f64>> = (0..=arms)
                    .map(|_| {
                        let each = (0..blocks).map(|_| sd * random.next() / 2f64.sqrt());
                        each.collect()
                    })
                    .collect();
                // All pairs, or those with the baseline.
                let with = if self.compared > 1 { arms } else { 1 };
                let pairs = (0..with).flat_map(|a| (a + 1..=arms).map(move |b| (a, b)));
                let members = pairs.filter_map(|(a, b)| {
                    let both = all[b].iter().zip(&all[a]);
                    let logs: Vec<f64> = both.map(|(b, a)| b - a).collect();
                    Some(Member {
                        sample: Sample::of(&logs)?,
                        of_slices: None,
                    })
                });
                Group {
                    compared: self.compared,
                    arms: arms + 1,
                    members: members.collect(),
                }
            })
            .collect();
        let own = &groups.first()?.members.first()?.sample;
        let shared = Shared::of(&groups);
        Some(shared.map_or_else(|| own.clone(), |shared| shared.moderated(own, None)))
    }
}

/// How far the blocks of a sample have to shift upwards for a difference to be found: beyond zero in
/// their interval at the strictest level and in the robust one, beyond the margin in both estimates.
fn shift_that_is_found(sample: &Sample, strictest: f64, rules: &Rules) -> Option<f64> {
    let (low, _) = sample.interval(strictest)?;
    let (estimate, robust) = sample.robust(rules.look_confidence());
    let margin = rules.delta();
    let beyond_zero = (-low).max(robust.map_or(f64::MIN, |(low, _)| -low));
    let beyond_margin = (margin - sample.mean).max(margin - estimate);
    Some(beyond_zero.max(beyond_margin))
}

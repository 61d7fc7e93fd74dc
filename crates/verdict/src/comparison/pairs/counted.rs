//! Figures that are counted in coarse steps, such as CPU time in ticks of 10 ms.
//!
//! A window of 3 ms has a tick in three cases of ten and none in the others. Its logarithm is far
//! off or does not exist, but the sum over windows is right on average, since a tick falls where it
//! does by chance. So the ratio is that of the sums over blocks, blocks with nothing counted
//! included, and its spread is that of the jackknife over blocks.
//!
//! Source: R. G. Miller, The jackknife: a review, Biometrika 61 (1974), for the ratio of sums.

use std::collections::BTreeMap;

use crate::metric::Value;
use crate::metric::figures::half_log;
use crate::stats::sample::Sample;

/// What was counted of the subject and of the baseline.
#[derive(Debug, Default)]
pub(super) struct Counted {
    blocks: BTreeMap<u32, [f64; 2]>,
    /// How many figures of a side were added, and their half steps together.
    figures: usize,
    half_steps: [f64; 2],
    /// Whether one of them has so few steps that its logarithm says little.
    is_coarse: bool,
}

impl Counted {
    pub fn add(&mut self, block: u32, values: [Value; 2]) {
        let sums = self.blocks.entry(block).or_default();
        for (side, value) in values.iter().enumerate() {
            sums[side] += value.counted();
            self.half_steps[side] += value.half_step;
            self.is_coarse |= value.is_coarse();
        }
        self.figures += 1;
    }

    /// Those of several conditions together.
    pub fn pooled<'c>(all: impl Iterator<Item = &'c Counted>) -> Self {
        let mut pooled = Counted::default();
        for one in all {
            for (block, values) in &one.blocks {
                let sums = pooled.blocks.entry(*block).or_default();
                (0..2).for_each(|side| sums[side] += values[side]);
            }
            (0..2).for_each(|side| pooled.half_steps[side] += one.half_steps[side]);
            pooled.figures += one.figures;
            pooled.is_coarse |= one.is_coarse;
        }
        pooled
    }

    fn sums(&self, without: Option<u32>) -> [f64; 2] {
        let kept = self.blocks.iter();
        let kept = kept.filter(|(block, _)| Some(**block) != without);
        kept.fold([0.0; 2], |[a, b], (_, one)| [a + one[0], b + one[1]])
    }

    /// The pseudo-values of the logarithm of the ratio, one for each block, with half a step on each
    /// side; nothing where steps are fine, or where a sum is zero, so that there is no ratio.
    pub fn sample(&self) -> Option<Sample> {
        if !self.is_coarse {
            return None;
        }
        let log = |[ours, theirs]: [f64; 2]| (ours / theirs).ln();
        let (sums, blocks) = (self.sums(None), self.blocks.len() as f64);
        let pseudo = |block: &u32| {
            let value = blocks * log(sums) - (blocks - 1.0) * log(self.sums(Some(*block)));
            value.is_finite().then_some(value)
        };
        let logs: Option<Vec<f64>> = self.blocks.keys().map(pseudo).collect();
        let half_steps: f64 = (0..2)
            .map(|side| half_log(sums[side], self.half_steps[side]))
            .sum();
        Some(Sample::of(&logs?)?.with_resolution(half_steps))
    }

    /// The means of both sides, where there is a sample of the sums.
    pub fn means(&self) -> Option<(f64, f64)> {
        let [ours, theirs] = self.sums(None).map(|sum| sum / self.figures as f64);
        self.sample().map(|_| (ours, theirs))
    }
}

#[cfg(test)]
mod tests {
    use readings::{CPU_TICK_S, ServerReading, Trial};

    use crate::fixtures::{analyse, closed, done, header, measured, trial};
    use crate::{Comparison, Metric, Verdict};

    /// What the kernel tells of a server in the windows of a trial: ticks that have passed in each.
    fn in_ticks(random: &mut fastrand::Rng, windows: usize, mean_s: f64) -> f64 {
        let of_window = |_| {
            let from_s = random.f64() * CPU_TICK_S;
            let used_s = mean_s * (0.95 + 0.1 * random.f64());
            ((from_s + used_s) / CPU_TICK_S).floor() * CPU_TICK_S
        };
        (0..windows).map(of_window).sum()
    }

    /// The CPU time per request of a subject that takes `means_s[0]` in a window, against a baseline
    /// that takes `means_s[1]`.
    fn compared(seed: u64, blocks: u32, windows: usize, means_s: [f64; 2]) -> Option<Comparison> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut trials: Vec<Trial> = Vec::new();
        for block in 1..=blocks {
            for (subject, copy, mean_s) in [
                ("direct", false, means_s[1]),
                ("direct", true, means_s[1]),
                ("balance", false, means_s[0]),
            ] {
                let mut outcome = done(Some(closed(100.0)), None);
                let reading = measured(&mut outcome);
                reading.servers = vec![ServerReading {
                    server: "cgi".into(),
                    cpu_s: in_ticks(&mut random, windows, mean_s),
                    cpu_step_s: CPU_TICK_S,
                }];
                trials.push(trial(block, subject, copy, outcome));
            }
        }
        let mut all = analyse(&header(blocks), &trials).comparisons.into_iter();
        all.find(|c| c.metric == Metric::ServerCpuUsPerRequest)
    }

    /// Runs of a design: how many intervals have the ratio, how many say *same*, and how many tell
    /// the sides apart.
    fn runs(blocks: u32, windows: usize, means_s: [f64; 2]) -> (usize, usize, usize) {
        let truth = means_s[0] / means_s[1];
        let (mut covered, mut same, mut decided) = (0, 0, 0);
        for seed in 0..39 {
            let Some(c) = compared(seed, blocks, windows, means_s) else {
                continue;
            };
            assert_eq!(c.blocks, blocks as usize, "a block without a tick counts");
            let (low, high) = c.interval().unwrap();
            covered += usize::from(low <= truth && truth <= high);
            same += usize::from(c.verdict == Verdict::Same);
            decided += usize::from(matches!(c.verdict, Verdict::Faster | Verdict::Slower));
        }
        (covered, same, decided)
    }

    #[test]
    fn a_true_ratio_of_four_in_ticks_is_within_the_interval_and_never_the_same() {
        for (blocks, windows) in [(5, 1), (10, 1), (30, 1), (5, 10), (10, 10), (10, 30)] {
            for means_s in [[0.003, 0.012], [0.012, 0.003]] {
                let (covered, same, decided) = runs(blocks, windows, means_s);
                let what = format!(
                    "{blocks} blocks, {windows} windows, {means_s:?}: {covered} covered, {decided} decided"
                );
                println!("{what}");
                assert!(covered >= 36, "{what}");
                assert_eq!(same, 0, "{what}");
                if windows >= 10 && blocks >= 10 {
                    assert!(decided >= 30, "{what}");
                }
            }
        }
    }

    #[test]
    fn what_takes_less_than_a_tick_everywhere_is_not_known() {
        let c = compared(1, 6, 1, [0.0, 0.012]).unwrap();
        assert_eq!(c.verdict, Verdict::Inconclusive);
        let (low, high) = c.interval().unwrap();
        assert!(low < 1e-3 && high > 0.5, "{low} {high}");
    }
}

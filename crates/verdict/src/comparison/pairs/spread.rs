//! How far blocks of a run differ: what its comparisons share, and what other programs add.
//!
//! A program that takes a CPU in bursts disturbs blocks in a way that few of them do not show: the
//! spread of three to five ratios can be small by luck. So beside such programs the spread counts as
//! no smaller than that of the noise floor, and no smaller than what the slices imply.

use std::cell::OnceCell;

use readings::Condition;

use crate::comparison::pairs::Pairs;
use crate::comparison::pairs::others::cpus_of_others;
use crate::comparison::pairs::pooling::{Pool, Who, is_declared, pools};
use crate::stats::family::Together;
use crate::stats::joint::Joint;
use crate::stats::moderation::{Group, Member, Shared};
use crate::stats::sample::Sample;
use crate::trial::cells::Cells;
use crate::{CpusOfOthers, Metric, Rules};

/// The spread of the blocks of each metric that is asked for.
pub(crate) struct Spreads<'r> {
    rules: &'r Rules,
    cells: &'r Cells<'r>,
    /// In the order of [`Metric::ALL`].
    of_metrics: [OnceCell<Spread>; Metric::ALL.len()],
}

struct Spread {
    shared: Option<Shared>,
    /// The conditions under which other programs took more than on a quiet machine.
    beside: Vec<Beside>,
}

struct Beside {
    condition: Condition,
    others: CpusOfOthers,
    floor_sd: Option<f64>,
}

impl<'r> Spreads<'r> {
    pub fn of(rules: &'r Rules, cells: &'r Cells<'r>) -> Self {
        Self {
            rules,
            cells,
            of_metrics: std::array::from_fn(|_| OnceCell::new()),
        }
    }

    /// The spread of a metric; nothing around events.
    fn spread(&self, metric: Metric) -> Option<&Spread> {
        let (_, spread) = Metric::ALL
            .iter()
            .zip(&self.of_metrics)
            .find(|(one, _)| **one == metric && !metric.is_of_events())?;
        Some(spread.get_or_init(|| Spread::of(self.rules, self.cells, metric)))
    }

    /// The metrics whose spread was asked for.
    #[cfg(test)]
    pub fn asked(&self) -> Vec<Metric> {
        let all = Metric::ALL.into_iter().zip(&self.of_metrics);
        let asked = all.filter(|(_, spread)| spread.get().is_some());
        asked.map(|(metric, _)| metric).collect()
    }

    fn beside(&self, metric: Metric, condition: &Condition) -> Option<&Beside> {
        let mut beside = self.spread(metric)?.beside.iter();
        beside.find(|beside| beside.condition == *condition)
    }

    /// What other programs took under a condition, if it is more than on a quiet machine.
    pub fn others(&self, metric: Metric, condition: &Condition) -> Option<CpusOfOthers> {
        Some(self.beside(metric, condition)?.others)
    }

    /// The log ratios of pairs under a condition, with the spread that they may be taken to have.
    pub fn sample(&self, metric: Metric, condition: &Condition, pairs: &Pairs) -> Option<Sample> {
        let own = pairs.sample()?;
        let mut sample = self.moderated(metric, &own, pairs);
        if let Some(beside) = self.beside(metric, condition) {
            let least = [beside.floor_sd, pairs.sd_of_slices()];
            sample.sd = least.into_iter().flatten().fold(sample.sd, f64::max);
        }
        Some(sample)
    }

    /// Service times differ from block to block as the latencies do that hold them.
    pub fn service_sample(&self, metric: Metric, pairs: &Pairs) -> Option<Sample> {
        Some(self.moderated(metric, &pairs.service_sample()?, pairs))
    }

    /// What tests that compare these pairs of subjects have in common.
    pub fn together(&self, metric: Metric, pairs: Vec<(usize, usize)>, blocks: usize) -> Together {
        let shared = self.spread(metric).and_then(|spread| spread.shared);
        Together::Pairs(Joint {
            prior: shared.map_or(0.0, |shared| shared.prior_degrees(blocks)),
            pairs,
            blocks,
        })
    }

    fn moderated(&self, metric: Metric, sample: &Sample, pairs: &Pairs) -> Sample {
        let shared = self.spread(metric).and_then(|spread| spread.shared);
        shared.map_or_else(
            || sample.clone(),
            |shared| shared.moderated(sample, variance_of_slices(pairs)),
        )
    }
}

impl Spread {
    fn of(rules: &Rules, cells: &Cells<'_>, metric: Metric) -> Self {
        let (mut groups, mut beside) = (Vec::new(), Vec::new());
        for pool in pools(cells, metric) {
            if !is_declared(cells, &pool, metric, &rules.baseline) {
                continue;
            }
            let baseline = rules.baseline.as_str();
            let copies = pool.pairs(cells, metric, (baseline, true), (baseline, false));
            if let Some(others) = cpus_of_others(cells, pool.members.iter().copied()) {
                beside.push(Beside {
                    condition: pool.condition.clone(),
                    others,
                    floor_sd: copies.sample().map(|sample| sample.sd),
                });
            }
            let copies = is_separate(cells, &pool, baseline).then_some(copies);
            groups.push(group(cells, &pool, metric, baseline, copies));
        }
        Self {
            shared: Shared::of(&groups),
            beside,
        }
    }
}

/// All pairs of the subjects and of the baseline's second copy: enough to estimate the spread from as
/// well as it can be.
fn group(
    cells: &Cells<'_>,
    pool: &Pool<'_>,
    metric: Metric,
    baseline: &str,
    copies: Option<Pairs>,
) -> Group {
    let copy = (baseline, true);
    let subjects = cells.subjects.iter().map(|s| &**s);
    let subjects: Vec<Who<'_>> = subjects
        .filter(|subject| *subject != baseline)
        .map(|subject| (subject, false))
        .collect();
    let of = |ours, theirs| member(&pool.pairs(cells, metric, ours, theirs));
    let with_baseline = subjects.iter();
    let with_baseline = with_baseline.filter_map(|one| of(*one, (baseline, false)));
    let mut members: Vec<Member> = with_baseline.collect();
    let compared = members.len();
    members.extend(copies.iter().filter_map(member));
    let arms = members.len() + 1;
    if compared > 1 {
        for (at, one) in subjects.iter().enumerate() {
            members.extend(subjects[..at].iter().filter_map(|other| of(*one, *other)));
            members.extend(copies.as_ref().and_then(|_| of(*one, copy)));
        }
    }
    Group {
        compared,
        arms,
        members,
    }
}

fn member(pairs: &Pairs) -> Option<Member> {
    let sample = pairs.sample().filter(|_| pairs.unresolved == 0)?;
    Some(Member {
        of_slices: variance_of_slices(pairs),
        sample,
    })
}

fn variance_of_slices(pairs: &Pairs) -> Option<f64> {
    pairs.sd_of_slices().map(|sd| sd * sd)
}

/// Whether the baseline's second copy had servers of its own: only then do its blocks differ as those
/// of two subjects do.
pub(crate) fn is_separate(cells: &Cells<'_>, pool: &Pool<'_>, baseline: &str) -> bool {
    let copies = pool.members.iter();
    let mut copies = copies.flat_map(|c| cells.of_subject(c, baseline, true).into_values());
    copies.all(|cell| cell.reading().is_none_or(|reading| reading.separate_copy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{header, throughput_blocks};

    #[test]
    fn only_the_metrics_that_were_measured_are_computed() {
        let (header, trials) = (header(3), throughput_blocks(&[(1000.0, 900.0); 3]));
        let (rules, cells) = (Rules::of(&header), Cells::of(&header, &trials));
        let spreads = Spreads::of(&rules, &cells);
        assert!(spreads.asked().is_empty());
        crate::comparison::floor::noise_floor(&rules, &cells, &spreads);
        assert_eq!(spreads.asked(), [Metric::RequestsPerS]);
    }
}

//! What the comparisons of one metric share: how far their blocks differ, and how they follow each
//! other.
//!
//! Three blocks estimate a variance within a factor of ten, and five within four. The comparisons of
//! a run have blocks of one machine, load and time, so each takes its variance from all: the
//! variances are taken for draws from a scaled inverse chi-square distribution. Its scale and its
//! degrees of freedom come from the mean and the variance of their logarithms, and each comparison's
//! variance is the mean of its own and of the scale, weighted by degrees of freedom.
//!
//! - Where slices were taken in turns, a block's variance has two parts: what its slices show within
//!   it, and what starts add, which comparisons share. If that describes the variances better than
//!   one scale for all, it is their scale.
//! - A variance that is large beside the others', as an outlier makes it, keeps to itself.
//! - Comparisons with one baseline are not independent, so the degrees of freedom that they may lend
//!   each other are limited.
//! - The correlation of neighbouring blocks is estimated over all of them too, and no comparison is
//!   taken for less correlated; where each question has one comparison, so that no correction goes to
//!   the tails, for less than 0.6 of it.
//!
//! Sources: G. K. Smyth, Linear models and empirical Bayes methods for assessing differential
//! expression in microarray experiments, Statistical Applications in Genetics and Molecular Biology 3
//! (2004); for the outliers B. Phipson et al., Robust hyperparameter estimation protects against
//! hypervariable genes, Annals of Applied Statistics 10 (2016). The limits come from the simulations
//! of `error_rates`.

use statrs::distribution::{ContinuousCDF, FisherSnedecor};
use statrs::function::gamma::digamma;

use crate::stats::dependence;
use crate::stats::gamma::{trigamma, trigamma_inverse};
use crate::stats::sample::{FEWEST_BLOCKS, FINEST, Sample};
use crate::stats::student::chi_square_quantile;

/// A variance that is exceeded by chance in fewer than this share of comparisons takes less from the
/// others.
const USUAL: f64 = 0.05;
/// A variance that is smaller by chance in fewer than this share of comparisons counts as if it were
/// as small as that: blocks that are alike by luck do not show that spreads differ.
const SMALLEST: f64 = 0.01;
/// The share of the common correlation that a comparison alone in its question is taken to have.
const OF_ONE: f64 = 0.6;
/// How many more arms double what a comparison with a shared one is worth.
const ARMS_ALIKE: f64 = 8.0;
/// What each arm but one adds at least where all pairs are known, of the two degrees of freedom that
/// three blocks have.
const LEAST_OF_ARM: f64 = 0.8;

/// A comparison's log ratios, and the part of their variance that the slices show.
pub(crate) struct Member {
    pub sample: Sample,
    /// Variance of a block's log ratio from its slices alone; absent where they were not taken in
    /// turns.
    pub of_slices: Option<f64>,
}

/// Comparisons of one condition: they share their blocks.
pub(crate) struct Group {
    /// How many subjects are compared with the baseline. With two or more, `members` are all pairs of
    /// arms.
    pub compared: usize,
    /// What is compared with each other: subjects, and the baseline's second copy.
    pub arms: usize,
    pub members: Vec<Member>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared {
    scale: Scale,
    /// The most degrees of freedom of a moderated variance.
    most_degrees: f64,
    /// The correlation of neighbouring blocks, and the share of it that each has at least.
    correlation: f64,
    least_share: f64,
}

/// The distribution that variances are drawn from.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// Relative to the location of each.
    variance: f64,
    degrees: f64,
    /// Where the scale is that of starts and slices: the variance from starts.
    starts: Option<f64>,
}

impl Scale {
    /// The location of a member's variance.
    fn location(&self, of_slices: Option<f64>) -> Option<f64> {
        match self.starts {
            None => Some(self.variance),
            Some(starts) => Some(self.variance * (starts + of_slices?)),
        }
    }

    /// Fits the distribution to variances by the moments of their logarithms, and says how far those
    /// vary beyond their degrees of freedom.
    fn fit(members: &[&Member], starts: Option<f64>) -> Option<(Self, f64)> {
        let mut logs = Vec::with_capacity(members.len());
        let (mut by_chance, mut sum, mut degrees) = (0.0, 0.0, 0.0);
        for member in members {
            let location = match starts {
                None => 1.0,
                Some(starts) => starts + member.of_slices?,
            };
            let half = own_degrees(&member.sample) / 2.0;
            let relative = variance(&member.sample) / location.max(FINEST * FINEST);
            logs.push(relative.ln() - digamma(half) + half.ln());
            by_chance += trigamma(half);
            sum += relative;
            degrees += 2.0 * half;
        }
        let n = logs.len() as f64;
        let degrees = degrees / n;
        let mut sorted = logs.clone();
        sorted.sort_by(f64::total_cmp);
        let from_middle = |p| chi_square_quantile(p, degrees).ln();
        let smallest = sorted[sorted.len() / 2] + from_middle(SMALLEST) - from_middle(0.5);
        logs.iter_mut().for_each(|log| *log = log.max(smallest));
        let mean = logs.iter().sum::<f64>() / n;
        let spread = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let excess = spread - by_chance / n;
        let (variance, degrees) = if excess > 1e-3 {
            let half = trigamma_inverse(excess);
            ((mean + digamma(half) - half.ln()).exp(), 2.0 * half)
        } else {
            (sum / n, f64::INFINITY)
        };
        let scale = Self {
            variance,
            degrees,
            starts,
        };
        Some((scale, excess))
    }
}

impl Shared {
    /// What these comparisons share; nothing with fewer than two of at least three blocks.
    pub fn of(groups: &[Group]) -> Option<Self> {
        let has_interval = |member: &&Member| member.sample.blocks >= FEWEST_BLOCKS;
        let all = groups.iter().flat_map(|group| &group.members);
        let members: Vec<&Member> = all.filter(has_interval).collect();
        if members.len() < 2 {
            return None;
        }
        let (mut scale, excess) = Scale::fit(&members, None)?;
        let n = members.len() as f64;
        let of_slices: Option<f64> = members.iter().map(|member| member.of_slices).sum();
        if let Some(of_slices) = of_slices {
            let all: f64 = members.iter().map(|m| variance(&m.sample)).sum();
            let starts = ((all - of_slices) / n).max(0.0);
            if let Some((by_parts, left)) = Scale::fit(&members, Some(starts))
                && left < excess
            {
                scale = by_parts;
            }
        }
        let most_degrees = groups.iter().map(degrees_of).sum();
        let blocks = members.iter().map(|m| m.sample.blocks as f64).sum::<f64>() / n;
        let worth = most_degrees / (blocks - 1.0);
        let logs = members.iter().map(|member| member.sample.log_ratios());
        Some(Self {
            scale,
            most_degrees,
            correlation: dependence::shared_correlation(logs, worth),
            least_share: match groups.iter().all(|group| group.compared <= 1) {
                true => OF_ONE,
                false => 1.0,
            },
        })
    }

    /// Degrees of freedom that the others lend to a comparison of so many blocks, unless it is an
    /// outlier.
    pub fn prior_degrees(&self, blocks: usize) -> f64 {
        let most = self.most_degrees - (blocks as f64 - 1.0);
        self.scale.degrees.min(most).max(0.0)
    }

    /// The sample with the variance and the correlation that the others let it have.
    pub fn moderated(&self, sample: &Sample, of_slices: Option<f64>) -> Sample {
        let mut moderated = sample.clone();
        moderated.correlation =
            dependence::correlation_beside(sample.log_ratios(), self.correlation, self.least_share);
        let own = own_degrees(sample);
        let prior = self.prior_degrees(sample.blocks);
        let Some(location) = self.scale.location(of_slices) else {
            return moderated;
        };
        if sample.blocks < FEWEST_BLOCKS || prior <= 0.0 || location <= 0.0 {
            return moderated;
        }
        let own_variance = variance(sample);
        let by_chance =
            FisherSnedecor::new(own, prior).map_or(0.0, |f| f.sf(own_variance / location)) / USUAL;
        let prior = prior * by_chance.min(1.0);
        let variance = (prior * location + own * own_variance) / (prior + own);
        moderated.sd = variance.sqrt();
        moderated.shared_degrees = prior;
        moderated
    }
}

fn own_degrees(sample: &Sample) -> f64 {
    sample.blocks as f64 - 1.0
}

fn variance(sample: &Sample) -> f64 {
    sample.sd.max(FINEST).powi(2)
}

/// The degrees of freedom of a condition's comparisons together.
fn degrees_of(group: &Group) -> f64 {
    let of_each = group
        .members
        .iter()
        .map(|m| own_degrees(&m.sample).max(0.0));
    let mean = of_each.sum::<f64>() / group.members.len().max(1) as f64;
    let arms = group.arms as f64;
    let of_many = mean * (arms - 1.0) / (1.0 + (arms - 2.0).max(0.0) / ARMS_ALIKE);
    // All pairs of arms estimate a scale as well as all arms do.
    let of_few_blocks = match group.compared > 1 {
        true => LEAST_OF_ARM * mean.min(2.0) * (arms - 1.0),
        false => 0.0,
    };
    of_many.max(of_few_blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::Normal;

    fn member(logs: &[f64]) -> Member {
        Member {
            sample: Sample::of(logs).unwrap(),
            of_slices: None,
        }
    }

    /// Twenty comparisons of three blocks with a deviation of 0.1, and one with `last`.
    fn shared(last: &[f64]) -> (Shared, Sample) {
        let mut normal = Normal::with_seed(2);
        let mut members: Vec<Member> = (0..20)
            .map(|_| {
                member(&[
                    0.1 * normal.next(),
                    0.1 * normal.next(),
                    0.1 * normal.next(),
                ])
            })
            .collect();
        members.push(member(last));
        let sample = members[20].sample.clone();
        let groups = [Group {
            compared: 21,
            arms: 22,
            members,
        }];
        (Shared::of(&groups).unwrap(), sample)
    }

    #[test]
    fn blocks_that_are_alike_by_luck_take_the_spread_of_the_others() {
        let (shared, lucky) = shared(&[0.500, 0.501, 0.502]);
        let moderated = shared.moderated(&lucky, None);
        assert!(moderated.sd > 0.07, "{moderated:?}");
        assert!(moderated.degrees() > 2.0 * lucky.degrees());
    }

    #[test]
    fn an_outlier_keeps_its_spread_to_itself() {
        let (shared, wild) = shared(&[0.0, 0.0, -0.9]);
        let moderated = shared.moderated(&wild, None);
        assert!(moderated.sd > 0.9 * wild.sd, "{} {}", moderated.sd, wild.sd);
        assert!(moderated.shared_degrees < 1.0, "{moderated:?}");
    }

    #[test]
    fn slices_tell_a_loud_comparison_from_a_quiet_one() {
        let mut normal = Normal::with_seed(9);
        let members = (0..20).map(|at| {
            let sd = if at % 2 == 0 { 0.01 } else { 0.2 };
            let logs: Vec<f64> = (0..4).map(|_| sd * normal.next()).collect();
            Member {
                of_slices: Some(sd * sd),
                ..member(&logs)
            }
        });
        let groups = [Group {
            compared: 20,
            arms: 21,
            members: members.collect(),
        }];
        let shared = Shared::of(&groups).unwrap();
        let sd = |at: usize| {
            let one = &groups[0].members[at];
            shared.moderated(&one.sample, one.of_slices).sd
        };
        assert!((0..20).step_by(2).all(|quiet| sd(quiet) < 0.05));
        assert!((1..20).step_by(2).all(|loud| sd(loud) > 0.05));
    }

    #[test]
    fn one_comparison_shares_nothing() {
        let alone = [Group {
            compared: 1,
            arms: 2,
            members: vec![member(&[0.1, 0.2, 0.3])],
        }];
        assert!(Shared::of(&alone).is_none());
    }
}

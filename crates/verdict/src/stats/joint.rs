//! Tests that are asked together, corrected by what their subjects would show by chance.
//!
//! The pairs of a question share their subjects and the distribution that their variances are drawn
//! from, so their p values are far from independent. Where nothing differs, the largest t of all
//! pairs is known as soon as the subjects' blocks are: so these are drawn, from the model of
//! [`moderation`](crate::stats::moderation) and from a fixed seed. A test's p value is then the share
//! of draws in which any test that is no more significant shows as much (step-down min P).
//!
//! Sources: P. H. Westfall, S. S. Young, Resampling-Based Multiple Testing (Wiley 1993); J. P. Romano,
//! M. Wolf, Exact and approximate stepdown methods for multiple hypothesis testing, Journal of the
//! American Statistical Association 100 (2005).

use fastrand::Rng;

use crate::stats::normal::{chi_square, standard_normal};
use crate::stats::student::t_quantile;

/// At 5% the share is known to within 0.35%.
const DRAWS: usize = 4000;
const SEED: u64 = 1993;

/// Subjects that are compared in pairs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Joint {
    /// The two subjects of each test, by number.
    pub pairs: Vec<(usize, usize)>,
    /// The most blocks of a test.
    pub blocks: usize,
    /// Degrees of freedom of the distribution that variances are drawn from; zero if each pair knows
    /// no more than its own blocks.
    pub prior: f64,
}

impl Joint {
    /// The p values after the correction, in the order of `p_values`, which are those of `pairs`.
    pub fn adjust(&self, p_values: &[f64]) -> Vec<f64> {
        let mut order: Vec<usize> = (0..p_values.len()).collect();
        order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
        let own = self.blocks.saturating_sub(1).max(1) as f64;
        let squared = |&at: &usize| match p_values[at] < 1.0 {
            true => t_quantile(1.0 - p_values[at] / 2.0, own + self.prior).powi(2),
            false => 0.0,
        };
        let squares: Vec<f64> = order.iter().map(squared).collect();
        let mut at_least = vec![0usize; order.len()];
        let mut drawn = Drawn::of(self);
        for _ in 0..DRAWS {
            drawn.next();
            let mut largest: f64 = 0.0;
            for (rank, &test) in order.iter().enumerate().rev() {
                largest = largest.max(drawn.t_squared(self.pairs[test]));
                at_least[rank] += usize::from(largest >= squares[rank]);
            }
        }
        let mut adjusted = vec![1.0; p_values.len()];
        let mut so_far: f64 = 0.0;
        for (rank, &test) in order.iter().enumerate() {
            // What was observed counts as one draw more: so few draws show no p value of zero.
            let share = (at_least[rank] + 1) as f64 / (DRAWS + 1) as f64;
            so_far = so_far.max(share).max(p_values[test]);
            adjusted[test] = so_far;
        }
        adjusted
    }
}

/// Blocks of subjects that do not differ.
struct Drawn {
    random: Rng,
    blocks: usize,
    prior: f64,
    means: Vec<f64>,
    /// Of each subject in turn, without its mean.
    deviations: Vec<f64>,
}

impl Drawn {
    fn of(joint: &Joint) -> Self {
        let subjects = joint.pairs.iter().map(|(a, b)| 1 + *a.max(b)).max();
        let (subjects, blocks) = (subjects.unwrap_or(0), joint.blocks.max(2));
        Self {
            random: Rng::with_seed(SEED),
            blocks,
            prior: joint.prior,
            means: vec![0.0; subjects],
            deviations: vec![0.0; subjects * blocks],
        }
    }

    fn next(&mut self) {
        let of_subjects = self.deviations.chunks_exact_mut(self.blocks);
        for (mean, blocks) in self.means.iter_mut().zip(of_subjects) {
            let variance = match self.prior > 0.0 && self.prior.is_finite() {
                true => self.prior / chi_square(&mut self.random, self.prior),
                false => 1.0,
            };
            let sd = variance.sqrt();
            blocks.fill_with(|| sd * standard_normal(&mut self.random));
            *mean = blocks.iter().sum::<f64>() / blocks.len() as f64;
            blocks.iter_mut().for_each(|block| *block -= *mean);
        }
    }

    /// The square of the moderated t of two subjects.
    fn t_squared(&self, (a, b): (usize, usize)) -> f64 {
        let of = |subject: usize| &self.deviations[subject * self.blocks..][..self.blocks];
        let squares = of(a).iter().zip(of(b)).map(|(x, y)| (x - y).powi(2));
        let (sum, own) = (squares.sum::<f64>(), self.blocks as f64 - 1.0);
        // The scale of a pair is twice that of a subject, which is 1.
        let variance = match self.prior.is_finite() {
            true => (2.0 * self.prior + sum) / (self.prior + own),
            false => 2.0,
        };
        (self.means[a] - self.means[b]).powi(2) * self.blocks as f64 / variance
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_pairs(subjects: usize) -> Vec<(usize, usize)> {
        let pairs = (0..subjects).flat_map(|a| (a + 1..subjects).map(move |b| (a, b)));
        pairs.collect()
    }

    /// The adjusted p value of the first test, whose t is this, where no other shows anything.
    fn first(pairs: Vec<(usize, usize)>, blocks: usize, prior: f64, t: f64) -> f64 {
        let degrees = blocks as f64 - 1.0 + prior;
        let mut p_values = vec![1.0; pairs.len()];
        p_values[0] = crate::stats::student::t_two_sided_p(t, degrees);
        let joint = Joint {
            pairs,
            blocks,
            prior,
        };
        joint.adjust(&p_values)[0]
    }

    /// Where variances are known, the largest t is the studentised range over the root of two
    /// (all pairs), and Dunnett's (all against one).
    #[test]
    fn quantiles_are_those_of_tukeys_and_dunnetts_tables() {
        let prior = 1e6;
        for (subjects, range) in [(3, 3.314), (6, 4.030), (14, 4.739)] {
            let p = first(all_pairs(subjects), 3, prior, range / 2f64.sqrt());
            assert!((p - 0.05).abs() < 0.012, "{p} of {subjects}");
        }
        for (compared, dunnett) in [(2, 2.21), (5, 2.51), (9, 2.69)] {
            let pairs = (1..=compared).map(|one| (0, one)).collect();
            let p = first(pairs, 3, prior, dunnett);
            assert!((p - 0.05).abs() < 0.012, "{p} of {compared}");
        }
    }

    #[test]
    fn one_test_is_left_alone_and_the_last_of_many_nearly() {
        let one = Joint {
            pairs: vec![(0, 1)],
            blocks: 5,
            prior: 6.0,
        };
        let adjusted = one.adjust(&[0.04])[0];
        assert!((adjusted - 0.04).abs() < 0.012, "{adjusted}");
        let three = Joint {
            pairs: all_pairs(3),
            ..one
        };
        let adjusted = three.adjust(&[0.001, 0.04, 0.0001]);
        assert!(adjusted[0] < 0.005 && adjusted[2] < 0.002, "{adjusted:?}");
        assert!((adjusted[1] - 0.04).abs() < 0.012, "{adjusted:?}");
        assert!(adjusted[1] >= 0.04);
    }

    #[test]
    fn what_shows_nothing_stays_at_one_and_what_is_certain_near_zero() {
        let joint = Joint {
            pairs: all_pairs(4),
            blocks: 3,
            prior: 2.0,
        };
        let adjusted = joint.adjust(&[1.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
        let least = 1.0 / (DRAWS as f64 + 1.0);
        assert_eq!(adjusted, [1.0, least, 1.0, 1.0, 1.0, 1.0]);
    }

    /// With few degrees of freedom Bonferroni's bound is far off: p values as small as one of ninety
    /// are rare for variances that differ, but then several pairs of a subject have them.
    #[test]
    fn ninety_one_pairs_count_for_far_fewer() {
        for (blocks, prior) in [(3, 2.0), (3, 20.0), (5, 8.0)] {
            let mut p_values = vec![1.0; 91];
            p_values[0] = 0.001;
            let pairs = all_pairs(14);
            let joint = Joint {
                pairs,
                blocks,
                prior,
            };
            let adjusted = joint.adjust(&p_values)[0];
            assert!((0.01..0.062).contains(&adjusted), "{adjusted}");
        }
    }
}

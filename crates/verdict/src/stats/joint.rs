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
use statrs::function::gamma::digamma;

use crate::stats::gamma::trigamma;
use crate::stats::normal::{chi_square, standard_normal};
use crate::stats::student::t_quantile;

/// At 5% the share is known to within 0.35%.
const DRAWS: usize = 4000;
/// After so many draws the rest are left out if even the most significant test is far from it.
const FEW_DRAWS: usize = 400;
const FAR: f64 = 0.6;
/// Fewer degrees of freedom count as none: variances that differ by so much exceed what numbers hold.
const LEAST_PRIOR: f64 = 0.5;
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
        if p_values.iter().all(|p| *p >= 1.0) {
            return vec![1.0; p_values.len()];
        }
        let mut order: Vec<usize> = (0..p_values.len()).collect();
        order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
        let mut drawn = Drawn::of(self);
        let degrees = drawn.own + drawn.prior;
        let squared = |&at: &usize| match p_values[at] < 1.0 {
            true => t_quantile(1.0 - p_values[at] / 2.0, degrees).powi(2),
            false => 0.0,
        };
        let squares: Vec<f64> = order.iter().map(squared).collect();
        let mut at_least = vec![0usize; order.len()];
        let mut draws = 0;
        while draws < DRAWS {
            drawn.next();
            draws += 1;
            let mut largest: f64 = 0.0;
            for (rank, &test) in order.iter().enumerate().rev() {
                largest = largest.max(drawn.t_squared(self.pairs[test]));
                at_least[rank] += usize::from(largest >= squares[rank]);
            }
            if draws == FEW_DRAWS && at_least[0] as f64 > FAR * FEW_DRAWS as f64 {
                break;
            }
        }
        let mut adjusted = vec![1.0; p_values.len()];
        let mut so_far: f64 = 0.0;
        for (rank, &test) in order.iter().enumerate() {
            // What was observed counts as one draw more: so few draws show no p value of zero.
            let share = (at_least[rank] + 1) as f64 / (draws + 1) as f64;
            so_far = so_far.max(share).max(p_values[test]);
            adjusted[test] = so_far;
        }
        adjusted
    }
}

/// Blocks of subjects that do not differ: of each subject its mean, and what its blocks differ by.
///
/// Differences are given by their coordinates, in a basis that makes most of them zero: the sum of
/// squares of two subjects' difference is that of their coordinates' (Bartlett's decomposition).
struct Drawn {
    random: Rng,
    blocks: f64,
    /// Degrees of freedom of a pair's own blocks, and of what the others lend it.
    own: f64,
    prior: f64,
    of_subjects: Option<Variances>,
    means: Vec<f64>,
    /// Of each subject in turn: `width` coordinates.
    coordinates: Vec<f64>,
    width: usize,
}

impl Drawn {
    fn of(joint: &Joint) -> Self {
        let subjects = joint.pairs.iter().map(|(a, b)| 1 + *a.max(b)).max();
        let (subjects, blocks) = (subjects.unwrap_or(0), joint.blocks.max(2));
        let prior = if joint.prior < LEAST_PRIOR {
            0.0
        } else {
            joint.prior
        };
        let is_spread = prior > 0.0 && prior.is_finite();
        let width = subjects.min(blocks - 1);
        Self {
            random: Rng::with_seed(SEED),
            blocks: blocks as f64,
            own: blocks as f64 - 1.0,
            prior,
            of_subjects: is_spread.then(|| Variances::of_pairs(prior)),
            means: vec![0.0; subjects],
            coordinates: vec![0.0; subjects * width],
            width,
        }
    }

    fn next(&mut self) {
        let random = &mut self.random;
        let of_subjects = self.coordinates.chunks_exact_mut(self.width.max(1));
        for (number, (mean, coordinates)) in self.means.iter_mut().zip(of_subjects).enumerate() {
            let variance = self.of_subjects.as_ref().map_or(1.0, |of| of.draw(random));
            let sd = variance.sqrt();
            *mean = sd * standard_normal(random) / self.blocks.sqrt();
            for (at, coordinate) in coordinates.iter_mut().enumerate().take(number + 1) {
                *coordinate = sd
                    * match at < number {
                        true => standard_normal(random),
                        false => chi_square(random, self.own - at as f64).sqrt(),
                    };
            }
        }
    }

    /// The square of the moderated t of two subjects.
    fn t_squared(&self, (a, b): (usize, usize)) -> f64 {
        let of = |subject: usize| &self.coordinates[subject * self.width..][..self.width];
        let squares = of(a).iter().zip(of(b)).map(|(x, y)| (x - y).powi(2));
        // The scale of a pair is twice that of a subject, which is 1.
        let variance = match self.prior.is_finite() {
            true => (2.0 * self.prior + squares.sum::<f64>()) / (self.prior + self.own),
            false => 2.0,
        };
        let t_squared = (self.means[a] - self.means[b]).powi(2) * self.blocks / variance;
        // `f64::max` would pass over it.
        debug_assert!(t_squared.is_finite(), "{t_squared}");
        t_squared
    }
}

/// The inverse chi-square distribution of one subject's variance.
struct Variances {
    scale: f64,
    degrees: f64,
}

impl Variances {
    /// Such that the sum of two has twice the inverse chi-square distribution with `prior` degrees of
    /// freedom, by the mean and the variance of its logarithm, as it was fitted to pairs.
    ///
    /// With h half of the degrees, the sum of two is h / (S U (1 - U)), where S has a gamma distribution
    /// of shape 2 h and U a beta distribution of shapes h and h, independent of it. So the variance of
    /// its logarithm is 2 trigamma(h) - 3 trigamma(2 h), which must be
    /// trigamma(prior / 2): h is a quarter of `prior` where that is large, 0.56 of it where it is
    /// small.
    fn of_pairs(prior: f64) -> Self {
        let wanted = trigamma(prior / 2.0);
        let (mut low, mut high) = (prior / 4.0, 0.6 * prior);
        for _ in 0..50 {
            let half = 0.5 * (low + high);
            match 2.0 * trigamma(half) - 3.0 * trigamma(2.0 * half) > wanted {
                true => low = half,
                false => high = half,
            }
        }
        let half = 0.5 * (low + high);
        let of_pair = (prior / 2.0).ln() - digamma(prior / 2.0);
        let of_sum = half.ln() - 2.0 * digamma(half) + digamma(2.0 * half);
        Self {
            // The scale of a pair is 2.
            scale: 2.0 * (of_pair - of_sum).exp(),
            degrees: 2.0 * half,
        }
    }

    fn draw(&self, random: &mut Rng) -> f64 {
        self.scale * self.degrees / chi_square(random, self.degrees)
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

    /// As from the moments of simulated logarithms.
    #[test]
    fn variances_of_pairs_are_spread_as_they_were_fitted() {
        for prior in [0.5, 2.0, 8.0, 40.0] {
            let joint = Joint {
                pairs: vec![(0, 1)],
                blocks: 400,
                prior,
            };
            let mut drawn = Drawn::of(&joint);
            let mut log = || {
                drawn.next();
                let (a, b) = drawn.coordinates.split_at(drawn.width);
                let squares = a.iter().zip(b).map(|(x, y)| (x - y).powi(2));
                (squares.sum::<f64>() / drawn.own / 2.0).ln()
            };
            let logs: Vec<f64> = (0..20_000).map(|_| log()).collect();
            let mean = logs.iter().sum::<f64>() / 2e4;
            let variance = logs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 2e4;
            // The blocks of a pair tell its variance nearly, but not quite.
            let wanted = trigamma(prior / 2.0) + trigamma(drawn.own / 2.0);
            assert!(
                (variance / wanted - 1.0).abs() < 0.07,
                "{variance} {wanted}"
            );
            let wanted = (prior / 2.0).ln() - digamma(prior / 2.0);
            let error = (variance / 2e4).sqrt();
            assert!(
                (mean - wanted).abs() < 5.0 * error + 0.01,
                "{mean} {wanted}"
            );
        }
    }

    #[test]
    fn hardly_any_prior_is_none() {
        for subjects in [3, 8] {
            let of = |prior| first(all_pairs(subjects), 3, prior, 12.0);
            let (none, hardly) = (of(0.0), of(0.01));
            assert!((none - hardly).abs() < 0.005, "{none} {hardly}");
        }
    }
}

//! Families of tests: what is asked in one question is corrected together.

use std::collections::BTreeSet;

/// How many tests of a family can be of no difference at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Together {
    /// Any number of them (Holm).
    Any,
    /// Those of all pairs of so many subjects: where two differ, a third differs from one of them
    /// (Shaffer).
    PairsOf(usize),
}

/// A test of a family.
#[derive(Clone, Debug)]
pub(crate) struct Test<D> {
    pub draft: D,
    /// Absent where it cannot be decided.
    pub p: Option<f64>,
    /// The p value after the correction over the family.
    pub p_adjusted: Option<f64>,
    /// The tests of the family.
    pub of: usize,
}

/// Corrects the p values of drafts that are asked together, in their order. One that cannot be decided
/// counts as a test that shows nothing: it was declared, and more blocks may decide it. So the
/// correction does not depend on how the blocks came out.
pub(crate) fn family<D>(
    drafts: Vec<D>,
    p_value: impl Fn(&D) -> Option<f64>,
    together: Together,
) -> Vec<Test<D>> {
    let p_values: Vec<Option<f64>> = drafts.iter().map(p_value).collect();
    let counted: Vec<f64> = p_values.iter().map(|p| p.unwrap_or(1.0)).collect();
    let of = counted.len();
    let adjusted = adjust(&counted, together);
    let tests = drafts.into_iter().zip(p_values).zip(adjusted);
    let tests = tests.map(|((draft, p), adjusted)| Test {
        draft,
        p,
        p_adjusted: p.map(|_| adjusted),
        of,
    });
    tests.collect()
}

/// Step-down adjustment: `adjusted[i] < alpha` for all comparisons that may be called different while
/// the chance of even one false call stays below alpha. Each p value is multiplied by the number of
/// tests that can still be of no difference.
///
/// Sources: S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal
/// of Statistics 6 (1979); J. P. Shaffer, Modified sequentially rejective multiple test procedures,
/// Journal of the American Statistical Association 81 (1986), her procedure S1.
fn adjust(p_values: &[f64], together: Together) -> Vec<f64> {
    let possible = match together {
        Together::Any => Vec::new(),
        Together::PairsOf(subjects) => equal_pairs(subjects),
    };
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut so_far: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        let left = p_values.len() - rank;
        let at_once = possible.iter().rev().find(|count| **count <= left);
        let remaining = at_once.copied().unwrap_or(left).max(1);
        so_far = so_far.max((p_values[i] * remaining as f64).min(1.0));
        adjusted[i] = so_far;
    }
    adjusted
}

/// The numbers of equal pairs that so many subjects can have, ascending: those of all ways to part
/// them into groups of equals.
fn equal_pairs(subjects: usize) -> Vec<usize> {
    let mut of: Vec<BTreeSet<usize>> = vec![BTreeSet::from([0])];
    for all in 1..=subjects {
        let counts = (1..=all).flat_map(|group| {
            let rest = &of[all - group];
            rest.iter()
                .map(move |pairs| pairs + group * (group - 1) / 2)
        });
        let counts = counts.collect();
        of.push(counts);
    }
    of.swap_remove(subjects).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_example() {
        let got = adjust(&[0.01, 0.04, 0.03, 0.005], Together::Any);
        let expected = [0.03, 0.06, 0.06, 0.02];
        for (g, e) in got.iter().zip(expected) {
            assert!((g - e).abs() < 1e-12, "{got:?}");
        }
    }

    #[test]
    fn what_cannot_be_decided_counts() {
        let tests = family(vec![Some(0.01), None, Some(0.02)], |p| *p, Together::Any);
        let tests = tests.iter().map(|test| (test.p_adjusted, test.of));
        let expected = [(Some(0.03), 3), (None, 3), (Some(0.04), 3)];
        assert_eq!(tests.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_single_comparison_is_left_alone() {
        let holm = |p_values: &[f64]| adjust(p_values, Together::Any);
        assert_eq!(holm(&[0.049]), [0.049]);
        assert!(holm(&[]).is_empty());
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }

    #[test]
    fn once_two_of_three_subjects_differ_one_pair_can_be_equal() {
        assert_eq!(equal_pairs(3), [0, 1, 3]);
        assert_eq!(equal_pairs(4), [0, 1, 2, 3, 6]);
        let got = adjust(&[0.001, 0.02, 0.04], Together::PairsOf(3));
        for (g, e) in got.iter().zip([0.003, 0.02, 0.04]) {
            assert!((g - e).abs() < 1e-12, "{got:?}");
        }
    }
}

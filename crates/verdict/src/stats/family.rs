//! Families of tests: what is asked in one question is corrected together.

use crate::stats::joint::Joint;

/// What is known of the tests of a family together.
#[derive(Clone, Debug)]
pub(crate) enum Together {
    /// Nothing (Holm).
    Any,
    /// They compare subjects in pairs.
    Pairs(Joint),
}

#[derive(Clone, Debug)]
pub(crate) struct Test<D> {
    pub draft: D,
    /// Absent where it cannot be decided.
    pub p: Option<f64>,
    /// The p value after the correction over the family.
    pub p_adjusted: Option<f64>,
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
    let adjusted = adjust(&counted, &together);
    let tests = drafts.into_iter().zip(p_values).zip(adjusted);
    let tests = tests.map(|((draft, p), adjusted)| Test {
        draft,
        p,
        p_adjusted: p.map(|_| adjusted),
        of,
    });
    tests.collect()
}

/// Adjusted p values: all comparisons below alpha may be called different while the chance of even one
/// false call stays below alpha.
fn adjust(p_values: &[f64], together: &Together) -> Vec<f64> {
    match together {
        Together::Pairs(joint) if p_values.len() > 1 => joint.adjust(p_values),
        Together::Pairs(_) | Together::Any => holm(p_values),
    }
}

/// Each p value is multiplied by the number of tests that can still be of no difference.
///
/// Source: S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of
/// Statistics 6 (1979).
fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut so_far: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        let left = p_values.len() - rank;
        so_far = so_far.max((p_values[i] * left as f64).min(1.0));
        adjusted[i] = so_far;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_example() {
        let got = holm(&[0.01, 0.04, 0.03, 0.005]);
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
        assert_eq!(holm(&[0.049]), [0.049]);
        assert!(holm(&[]).is_empty());
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
    }
}

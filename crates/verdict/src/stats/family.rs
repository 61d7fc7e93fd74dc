//! Families of tests: what is asked together is corrected together, by Holm's procedure.

/// How a test that cannot be decided counts in its family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undecidable {
    /// As a test that shows nothing: it was declared, and more blocks may decide it. So the correction
    /// does not depend on how the blocks came out.
    Counts,
    /// Not at all: what cannot be judged fails in its own way, as a gate does.
    IsLeftOut,
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

/// Corrects the p values of drafts that are asked together, in their order.
pub(crate) fn family<D>(
    drafts: Vec<D>,
    p_value: impl Fn(&D) -> Option<f64>,
    undecidable: Undecidable,
) -> Vec<Test<D>> {
    let p_values: Vec<Option<f64>> = drafts.iter().map(p_value).collect();
    let counted = |p: &Option<f64>| match undecidable {
        Undecidable::Counts => Some(p.unwrap_or(1.0)),
        Undecidable::IsLeftOut => *p,
    };
    let known: Vec<f64> = p_values.iter().filter_map(counted).collect();
    let of = known.len();
    let mut adjusted = adjust(&known).into_iter();
    let tests = drafts.into_iter().zip(p_values).map(|(draft, p)| {
        let own = counted(&p).and_then(|_| adjusted.next());
        Test {
            draft,
            p,
            p_adjusted: own.filter(|_| p.is_some()),
            of,
        }
    });
    tests.collect()
}

/// Holm's step-down adjustment: `adjusted[i] < alpha` for all comparisons that may be called
/// different while the chance of even one false call stays below alpha.
///
/// Source: S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal
/// of Statistics 6 (1979).
fn adjust(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut so_far: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        let remaining = (p_values.len() - rank) as f64;
        so_far = so_far.max((p_values[i] * remaining).min(1.0));
        adjusted[i] = so_far;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_example() {
        let got = adjust(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        for (g, e) in got.iter().zip(expected) {
            assert!((g - e).abs() < 1e-12, "{got:?}");
        }
    }

    #[test]
    fn what_cannot_be_decided_counts_as_the_family_says() {
        let adjusted = |undecidable| {
            let tests = family(vec![Some(0.01), None, Some(0.02)], |p| *p, undecidable);
            let tests = tests.iter().map(|test| (test.p_adjusted, test.of));
            tests.collect::<Vec<_>>()
        };
        let counted = [(Some(0.03), 3), (None, 3), (Some(0.04), 3)];
        assert_eq!(adjusted(Undecidable::Counts), counted);
        let left_out = [(Some(0.02), 2), (None, 2), (Some(0.02), 2)];
        assert_eq!(adjusted(Undecidable::IsLeftOut), left_out);
    }

    #[test]
    fn a_single_comparison_is_left_alone() {
        assert_eq!(adjust(&[0.049]), [0.049]);
        assert!(adjust(&[]).is_empty());
        assert_eq!(adjust(&[0.9, 0.8]), [1.0, 1.0]);
    }
}

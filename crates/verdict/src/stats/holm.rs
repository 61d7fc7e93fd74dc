//! Holm's procedure over several comparisons.

/// Holm's step-down adjustment: `adjusted[i] < alpha` for all comparisons that may be called
/// different while the chance of even one false call stays below alpha.
///
/// Source: S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal
/// of Statistics 6 (1979).
pub(crate) fn adjust(p_values: &[f64]) -> Vec<f64> {
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
    fn a_single_comparison_is_left_alone() {
        assert_eq!(adjust(&[0.049]), [0.049]);
        assert!(adjust(&[]).is_empty());
        assert_eq!(adjust(&[0.9, 0.8]), [1.0, 1.0]);
    }
}

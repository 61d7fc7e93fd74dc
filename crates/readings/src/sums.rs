//! Sums of counts.

/// Adds a count. Those of hosts that are at fault do not wrap around.
pub(crate) fn add_count(sum: &mut u64, part: u64) {
    *sum = sum.saturating_add(part);
}

/// Whether a field is left out.
pub(crate) fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

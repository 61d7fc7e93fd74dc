//! Sums of counts.

/// Adds a count. Those of hosts that are at fault do not wrap around.
pub(crate) fn add_count(sum: &mut u64, part: u64) {
    *sum = sum.saturating_add(part);
}

/// Whether a count is left out.
pub(crate) fn is_none(count: &u64) -> bool {
    *count == 0
}

/// Whether a field is left out.
pub(crate) fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

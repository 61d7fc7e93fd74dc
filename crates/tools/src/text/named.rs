//! Figures with names: rows of a table below their heads, lists, and objects of a document.

use serde_json::Value;

use super::units;
use crate::ToolLatency;
use crate::reading::set_named;

/// The cells of a row between the bars of a drawn table.
pub(crate) fn cells(text: &str) -> Option<Vec<&str>> {
    let inner = text.strip_prefix('│')?.strip_suffix('│')?;
    Some(inner.split('│').map(str::trim).collect())
}

/// Whether a line is the frame of a drawn table, or a rule.
pub(crate) fn is_rule(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| matches!(c, '─'..='╿' | '-' | '=' | '|'))
}

/// Names and values of `Label [a, b]  1, 2`.
pub(crate) fn listed(text: &str) -> Option<(&str, impl Iterator<Item = (&str, &str)>)> {
    let (label, rest) = text.split_once('[')?;
    let (names, values) = rest.split_once(']')?;
    let parts = |text| str::split(text, ',').map(str::trim);
    Some((label.trim(), parts(names).zip(parts(values))))
}

/// A figure in which commas part the thousands: `14,471.5`.
pub(crate) fn grouped(text: &str) -> Option<f64> {
    units::number(&text.replace(',', "")).filter(|n| *n >= 0.0)
}

/// The number at the start of a text, and the rest.
pub(crate) fn leading(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    Some((units::count(&text[..end])?, text[end..].trim()))
}

/// The times of a document's object by their names, in units of so many microseconds.
pub(crate) fn times(object: &Value, unit_us: f64) -> ToolLatency {
    let mut latency = ToolLatency::default();
    for (name, value) in object.as_object().into_iter().flatten() {
        if let Some(value) = units::figure(value) {
            set_named(&mut latency, name, value * unit_us);
        }
    }
    latency
}

/// The counts of a document's object by their names.
pub(crate) fn counts(object: &Value) -> impl Iterator<Item = (&str, u64)> {
    let entries = object.as_object().into_iter().flatten();
    entries.filter_map(|(name, count)| Some((name.as_str(), count.as_u64()?)))
}

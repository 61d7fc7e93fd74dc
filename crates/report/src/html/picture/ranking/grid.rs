//! How wide the parts of a row are, and the scale of its bar.

use verdict::{Metric, Unit};

use super::canvas::{DOT, THEN};
use super::content::{Panel, Row, range};
use super::layout::Format;
use super::measure::Font;
use crate::html::picture::axis::{Tick, time_ticks};

/// Between a bar and its figure, between a name and its bar.
pub(super) const GAP: f64 = 8.0;
/// How long the open end of an interval is.
pub(super) const OPEN: f64 = 18.0;
/// Panels from this width on say how each subject differs.
const WITH_CHANGES: f64 = 560.0;
/// The share of a panel that names may take; where they need more and the panel is narrow, they
/// stand above their bars.
const NAMES_MAX: f64 = 0.34;
const NARROW: f64 = 400.0;

/// What the rows of one scale have in common.
#[derive(Debug)]
pub(super) struct Grid {
    /// From the panel's left side to the names, and to the bars.
    pub names: f64,
    pub bars: f64,
    pub names_above: bool,
    pub with_changes: bool,
    pub scale: Scale,
    /// The largest value.
    pub most: f64,
    pub row: f64,
    pub bar: f64,
}

/// Maps a value to the distance from the left end of the bars.
#[derive(Debug)]
pub(super) enum Scale {
    Linear { per_unit: f64 },
    Logarithmic { low: f64, per_unit: f64, to: f64 },
}

impl Scale {
    pub fn place(&self, value: f64) -> f64 {
        match self {
            Scale::Linear { per_unit } => value * per_unit,
            Scale::Logarithmic { low, per_unit, .. } => (value / low).ln().max(0.0) * per_unit,
        }
    }
}

impl Grid {
    pub fn of(panels: &[&Panel<'_>], width: f64, format: &Format) -> Self {
        let is_logarithmic = panels.iter().any(|panel| panel.is_logarithmic);
        let rows: Vec<&Row<'_>> = panels.iter().flat_map(|panel| &panel.rows).collect();
        let names = Font::plain(format.size);
        let places = Font::plain(format.size - 2.0);
        let widest = |widths: &mut dyn Iterator<Item = f64>| widths.fold(0.0, f64::max);
        let place = widest(&mut rows.iter().map(|row| places.width(&row.place))) + GAP;
        let name = widest(&mut rows.iter().map(|row| names.width(row.subject)));
        let names_above = width < NARROW && format.widths.len() == 1 && name > NAMES_MAX * width;
        let bars = match names_above {
            true => place,
            false => place + name.min(NAMES_MAX * width) + GAP,
        };
        let room = width - bars;
        let with_changes = width >= WITH_CHANGES
            && widest(&mut rows.iter().map(|row| label(row, true, format))) < 0.5 * room;
        let (most, least) = range(rows.iter().map(|row| row.value));
        let dot = if is_logarithmic { DOT } else { 0.0 };
        let label = |row: &Row<'_>| dot + GAP + label(row, with_changes, format);
        let end = |row: &Row<'_>| row.ends(most).1.unwrap_or(row.value).max(row.value);
        let open = |row: &Row<'_>| match row.is_at_least() || row.goes_on(most) {
            true => OPEN,
            false => 0.0,
        };
        let scale = match is_logarithmic {
            false => {
                let each = rows
                    .iter()
                    .map(|row| (room - label(row) - open(row)) / end(row));
                Scale::Linear {
                    per_unit: each.fold(f64::INFINITY, f64::min).clamp(0.0, 1e12),
                }
            }
            true => {
                let low = rows
                    .iter()
                    .filter_map(|row| row.low)
                    .filter(|low| *low > 0.0);
                let low = low.fold(least, f64::min).max(least / 3.0) / 1.3;
                let each = rows
                    .iter()
                    .map(|row| (room - label(row) - open(row)) / (end(row) / low).ln());
                let per_unit = each.fold(f64::INFINITY, f64::min).max(0.0);
                let to = widest(&mut rows.iter().map(|row| end(row)));
                Scale::Logarithmic { low, per_unit, to }
            }
        };
        let longest = panels.iter().map(|panel| panel.rows.len()).max();
        let (row, bar) = match longest.unwrap_or(0) {
            0..=15 => (2.0 * format.size, 1.2 * format.size),
            _ => (1.6 * format.size, 1.0 * format.size),
        };
        Self {
            names: place,
            bars,
            names_above,
            with_changes,
            scale,
            most,
            row: if names_above {
                row + 0.9 * format.size
            } else {
                row
            },
            bar: if names_above { 0.9 * format.size } else { bar },
        }
    }
}

/// The width of a row's figure, with what stands behind it.
fn label(row: &Row<'_>, with_change: bool, format: &Format) -> f64 {
    let change = row.change.as_ref().filter(|_| with_change);
    let change = change.map_or(0.0, |text| {
        THEN + Font::plain(format.size - 1.0).width(text)
    });
    Font::bold(format.size).width(&row.figure) + change
}

/// The decades of a logarithmic scale.
pub(super) fn ticks(metric: Metric, low: f64, to: f64) -> Vec<Tick> {
    if matches!(
        metric.unit(),
        Unit::Us | Unit::UsPerRequest | Unit::UsPerMessage
    ) {
        let ticks = time_ticks(low.log10(), to.log10().max(low.log10() + 2.6));
        let ticks = ticks
            .into_iter()
            .map(|(value, text)| (10.0_f64.powf(value), text));
        return ticks.filter(|(value, _)| *value <= to).collect();
    }
    let decades = low.log10().ceil() as i32..=to.log10().floor() as i32;
    let decades = decades.map(|decade| 10.0_f64.powi(decade));
    decades
        .map(|value| (value, verdict::words::value(metric, value)))
        .collect()
}

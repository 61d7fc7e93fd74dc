//! Interval plots of what events did: absolute differences, by which these figures are judged.

use readings::text::fraction;
use verdict::{Analysis, BlockRatio, Comparison, Metric, NoiseFloor};

use super::{OfMetric, Plot, Row};
use crate::html::picture::axis::difference_ticks;
use verdict::words::{self, Unit};

pub(super) fn plot(analysis: &Analysis, metric: Metric) -> Option<Plot<'_>> {
    let OfMetric {
        comparisons,
        floors,
    } = OfMetric::find(analysis, metric)?;
    let unit = words::unit_of_difference(metric);
    let matters = shared(&comparisons);
    let rows = comparisons.iter();
    let rows = rows.map(|(number, c)| compared(*number, c, &unit));
    let floors = floors.into_iter().map(|floor| noise(floor, &unit));
    let confidence = analysis.comparisons.first().map_or(0.95, |c| c.confidence);
    Some(Plot {
        rows: rows.chain(floors).collect(),
        what: match unit.difference {
            "" => format!("Difference in {}", metric.words()),
            unit => format!("Difference in {},{unit}", metric.words()),
        },
        shaded: match matters {
            Some(matters) => format!("differences within {} do not matter", unit.matters(matters)),
            None => "differences that do not matter".to_owned(),
        },
        confidence: fraction(confidence),
        half_range_min: 1e-3,
        ticks: difference_ticks,
    })
}

/// What matters in every comparison, if it is the same.
fn shared(comparisons: &[(usize, &Comparison)]) -> Option<f64> {
    let mut all = comparisons.iter().filter_map(|(_, c)| c.difference_matters);
    let first = all.next()?;
    all.all(|one| one == first).then_some(first)
}

fn compared<'a>(number: usize, c: &'a Comparison, unit: &Unit) -> Row<'a> {
    let interval = c.difference_interval();
    let bound = words::upper_bound(c).map(|most| (f64::NEG_INFINITY, most));
    let (ours, theirs) = words::are_censored(c);
    Row {
        estimate: c.difference.map(|one| one * unit.factor),
        interval: scaled(interval.or(bound), unit),
        // What the baseline took longer lowers the difference.
        is_censored: (theirs, ours),
        matters: c.difference_matters.map(|one| one * unit.factor),
        blocks: differences(&c.by_block, unit),
        figure: words::difference_at_most(c).or_else(|| words::difference(c)),
        ..Row::of_comparison(number, c)
    }
}

fn noise<'a>(floor: &'a NoiseFloor, unit: &Unit) -> Row<'a> {
    let interval = floor.difference_low.zip(floor.difference_high);
    Row {
        estimate: floor.difference.map(|one| one * unit.factor),
        interval: scaled(interval, unit),
        matters: floor.difference_matters.map(|one| one * unit.factor),
        blocks: differences(&floor.by_block, unit),
        figure: words::floor_difference(floor),
        ..Row::of_noise(floor)
    }
}

fn scaled(interval: Option<(f64, f64)>, unit: &Unit) -> Option<(f64, f64)> {
    interval.map(|(low, high)| (low * unit.factor, high * unit.factor))
}

fn differences(blocks: &[BlockRatio], unit: &Unit) -> Vec<f64> {
    let known = blocks.iter().filter_map(|block| block.difference);
    known.map(|one| one * unit.factor).collect()
}

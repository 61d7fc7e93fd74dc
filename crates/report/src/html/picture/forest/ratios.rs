//! Interval plots of ratios.

use readings::text::fraction;
use verdict::{Analysis, BlockRatio, Comparison, Metric, NoiseFloor};

use super::{OfMetric, Plot, Row};
use crate::html::picture::axis::ratio_ticks;
use verdict::words::{change_of, shown_change};

pub(super) fn plot(analysis: &Analysis, metric: Metric, matters: f64) -> Option<Plot<'_>> {
    let OfMetric {
        comparisons,
        floors,
    } = OfMetric::find(analysis, metric)?;
    let rows = comparisons.iter().map(|(number, c)| compared(*number, c));
    let floors = floors.into_iter().map(noise);
    let delta = matters.max(0.0).ln_1p();
    let rows = rows.chain(floors).map(|row| Row {
        matters: Some(delta),
        ..row
    });
    Some(Plot {
        rows: rows.collect(),
        what: format!("Change of {}", metric.words()),
        shaded: format!("differences within {} do not matter", fraction(matters)),
        confidence: fraction(analysis.comparisons.first().map_or(0.95, |c| c.confidence)),
        half_range_min: 0.02,
        ticks: ratio_ticks,
    })
}

fn compared(number: usize, c: &Comparison) -> Row<'_> {
    Row {
        estimate: log(c.ratio),
        // One end alone is known where the client was the bottleneck for one side.
        interval: match (log(c.low), log(c.high)) {
            (None, None) => None,
            (low, high) => Some((
                low.unwrap_or(f64::NEG_INFINITY),
                high.unwrap_or(f64::INFINITY),
            )),
        },
        blocks: logs(&c.by_block),
        figure: c.ratio.map(|_| change_of(c)),
        ..Row::of_comparison(number, c)
    }
}

fn noise(floor: &NoiseFloor) -> Row<'_> {
    Row {
        estimate: log(Some(floor.ratio)),
        interval: log(floor.low).zip(log(floor.high)),
        blocks: logs(&floor.by_block),
        figure: Some(shown_change(floor.ratio, floor.low.zip(floor.high))),
        ..Row::of_noise(floor)
    }
}

fn log(ratio: Option<f64>) -> Option<f64> {
    ratio.filter(|ratio| *ratio > 0.0).map(f64::ln)
}

fn logs(blocks: &[BlockRatio]) -> Vec<f64> {
    blocks
        .iter()
        .filter_map(|one| log(Some(one.ratio)))
        .collect()
}

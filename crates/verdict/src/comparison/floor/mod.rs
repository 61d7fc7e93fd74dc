//! The noise floor: the baseline against itself.

use std::collections::BTreeSet;

use readings::Condition;

use crate::comparison::events;
use crate::comparison::pairs::pooling::pool_of;
use crate::comparison::pairs::spread::{Spreads, is_separate};
use crate::stats::dependence::Widening;
use crate::stats::sample::{Sample, error_of_mean};
use crate::stats::student::t_quantile;
use crate::trial::cells::{Cell, Cells};
use crate::{FEWEST_BLOCKS, Metric, NoiseFloor, Rules};

/// The noise floor of every condition and metric that the baseline's second copy was measured for.
pub(crate) fn noise_floor(
    rules: &Rules,
    cells: &Cells<'_>,
    spreads: &Spreads<'_>,
) -> Vec<NoiseFloor> {
    let mut floors = Vec::new();
    for place in &cells.conditions {
        let of_drivers = cells.drivers_differ(place);
        let compared = |metric: &Metric| {
            (of_drivers || !metric.is_of_driver())
                && !metric.is_uncompared()
                && cells.shows(*metric)
                && (*metric != Metric::ServerRssBytesMax
                    || !shares_all_servers(cells, place, rules))
        };
        for metric in Metric::ALL.into_iter().filter(compared) {
            let Some(pool) = pool_of(cells, place, metric) else {
                continue;
            };
            let baseline = rules.baseline.as_str();
            let pairs = pool.pairs(cells, metric, (baseline, true), (baseline, false));
            let sample = spreads.sample(metric, &pool.condition, &pairs);
            let Some(sample) = sample.filter(|_| pairs.unresolved == 0) else {
                continue;
            };
            let interval = sample
                .interval(rules.look_confidence())
                .filter(|_| sample.blocks >= FEWEST_BLOCKS)
                .map(|(low, high)| (low.exp(), high.exp()));
            let ratio = sample.mean.exp();
            let separate = is_separate(cells, &pool, baseline);
            let of_events = events::Evidence::of(metric, &pairs.events);
            let of_events = of_events.map(|events| events.figures(rules));
            let figures = of_events.unwrap_or_default();
            let interval = figures.ratio_interval.or(interval);
            floors.push(NoiseFloor {
                condition: pool.condition,
                metric,
                ratio: figures.ratio.unwrap_or(ratio),
                difference: figures.difference,
                difference_low: figures.difference_interval.map(|(low, _)| low),
                difference_high: figures.difference_interval.map(|(_, high)| high),
                difference_matters: figures.difference_matters,
                low: interval.map(|(low, _)| low),
                high: interval.map(|(_, high)| high),
                blocks: sample.blocks,
                client_limited: metric == Metric::RequestsPerS && pairs.client_limited != (0, 0),
                separate,
                baseline: rules.baseline.clone(),
                by_block: pairs.ratios,
            });
        }
    }
    floors
}

/// Whether other subjects use all servers of the baseline under a condition: their memory may grow with
/// the requests of all, while the copy, a second back end then, has its own requests alone.
fn shares_all_servers(cells: &Cells<'_>, place: &Condition, rules: &Rules) -> bool {
    let its = |cell: &Cell<'_>| !cell.trial.baseline_copy && cell.trial.condition == *place;
    let servers = |is_baseline: bool| -> BTreeSet<&String> {
        let own = cells.counted().filter(|cell| its(cell));
        let own = own.filter(|cell| (cell.trial.subject == rules.baseline) == is_baseline);
        let probed = own.filter_map(|cell| cell.reading()?.probed.as_ref());
        probed.flat_map(|seen| seen.servers.keys()).collect()
    };
    let (own, others) = (servers(true), servers(false));
    !own.is_empty() && own.is_subset(&others)
}

/// Half the width of the floor's interval after `blocks` blocks, as a log ratio.
pub(crate) fn half_width_after(floor: &NoiseFloor, rules: &Rules, blocks: usize) -> Option<f64> {
    let log_ratios: Vec<f64> = floor.by_block.iter().map(|one| one.ratio.ln()).collect();
    let sample = Sample::of(&log_ratios)?;
    let degrees = Widening::of(blocks, sample.correlation).degrees(blocks as f64 - 1.0);
    let t = t_quantile(0.5 + rules.look_confidence() / 2.0, degrees);
    Some(t * error_of_mean(sample.sd, blocks, sample.correlation))
}

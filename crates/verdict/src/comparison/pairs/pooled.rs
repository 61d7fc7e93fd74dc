//! Pairs under conditions that cannot differ, as one.

use std::collections::BTreeMap;

use super::Pairs;
use super::counted::Counted;
use crate::comparison::record::ratio::BlockRatio;

impl Pairs {
    /// One ratio per block out of those of several conditions: the mean of their logarithms. A block
    /// counts as usable where it is usable under one of them.
    pub fn pooled(all: Vec<Pairs>) -> Pairs {
        let mut by_block: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for one in all.iter().flat_map(|pairs| &pairs.ratios) {
            by_block.entry(one.block).or_default().push(one.ratio.ln());
        }
        let most = |count: fn(&Pairs) -> usize| all.iter().map(count).max().unwrap_or(0);
        let tried = most(|pairs| pairs.tried).max(by_block.len());
        let unresolved = match by_block.is_empty() {
            true => most(|pairs| pairs.unresolved),
            false => 0,
        };
        let client_limited = (
            most(|pairs| pairs.client_limited.0),
            most(|pairs| pairs.client_limited.1),
        );
        let unsettled = most(|pairs| pairs.unsettled);
        let values: Vec<(f64, f64)> = all.iter().filter_map(Pairs::values).collect();
        let blocks = by_block.len() as f64;
        let sum_of_logs = |value: fn(&(f64, f64)) -> f64| {
            let logs = values.iter().map(|both| value(both).ln());
            logs.sum::<f64>() / values.len().max(1) as f64 * blocks
        };
        let half_steps = all.iter().map(|pairs| pairs.half_steps).fold(0.0, f64::max);
        let of_slices = all.iter().map(|one| one.sd_of_slices().map(|sd| sd * sd));
        // The variance of a mean of independent log ratios.
        let slices_variance = of_slices.sum::<Option<f64>>().map_or((0.0, 0), |sum| {
            let variance = sum / (all.len() as f64).powi(2);
            (variance * blocks, by_block.len())
        });
        Pairs {
            half_steps,
            slices_variance,
            counted: Counted::pooled(all.iter().map(|pairs| &pairs.counted)),
            tried,
            unusable: tried - by_block.len() - unresolved.min(tried - by_block.len()),
            unresolved,
            client_limited,
            unsettled,
            subject_logs: sum_of_logs(|both| both.0),
            baseline_logs: sum_of_logs(|both| both.1),
            ratios: by_block
                .into_iter()
                .map(|(block, logs)| BlockRatio {
                    block,
                    ratio: (logs.iter().sum::<f64>() / logs.len() as f64).exp(),
                    // Events have no pooled conditions.
                    difference: None,
                })
                .collect(),
            // Its reason and its drivers are those of the first condition that has any.
            reason: all.iter().find_map(|pairs| pairs.reason.clone()),
            drivers: all.iter().find_map(|pairs| pairs.drivers.clone()),
            ..Pairs::default()
        }
    }
}

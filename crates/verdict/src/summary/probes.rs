//! What sampling servers and machine cost.

use serde::Serialize;

use crate::trial::cells::Cells;

/// What it cost over the whole run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProbesCost {
    /// Samples per second of measured time.
    pub looks_per_s: f64,
    /// CPU time of sampling over measured time: 0.01 is 1% of a core.
    pub share_of_core: f64,
}

/// `None` without samples.
pub(crate) fn cost(cells: &Cells<'_>) -> Option<ProbesCost> {
    let (mut measured_s, mut looks, mut cpu_s) = (0.0, 0, 0.0);
    for reading in cells.counted().filter_map(|cell| cell.reading()) {
        let loads = [
            (&reading.throughput, &reading.probed),
            (&reading.latency, &reading.latency_probed),
        ];
        for (load, probed) in loads {
            if let (Some(load), Some(probed)) = (load, probed) {
                // A driver is sampled from its start to its end.
                measured_s += load.duration_s.max(probed.looked_s);
                looks += probed.looks;
                cpu_s += probed.cpu_s;
            }
        }
    }
    if looks == 0 || measured_s <= 0.0 {
        return None;
    }
    Some(ProbesCost {
        looks_per_s: looks as f64 / measured_s,
        share_of_core: cpu_s / measured_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{closed, done, header, measured, trial};
    use readings::SystemMetrics;

    #[test]
    fn the_cost_is_that_of_the_measured_time() {
        let mut outcome = done(Some(closed(1000.0)), None);
        let reading = measured(&mut outcome);
        reading.probed = Some(SystemMetrics {
            looked_s: 10.0,
            looks: 70,
            cpu_s: 0.05,
            ..SystemMetrics::default()
        });
        let trials = [trial(1, "direct", false, outcome)];
        let header = header(1);
        let cost = cost(&Cells::of(&header, &trials)).unwrap();
        assert!((cost.looks_per_s - 7.0).abs() < 1e-9, "{cost:?}");
        assert!((cost.share_of_core - 0.005).abs() < 1e-9, "{cost:?}");
    }
}

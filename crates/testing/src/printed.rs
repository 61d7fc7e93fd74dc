//! Readings of what other load generators print.

use readings::{Tool, ToolReading};

/// A run of wrk of 30 s, as it prints it, without a script: latencies in milliseconds (mean, standard deviation, maximum).
pub fn wrk(url: &str, connections: u64, requests_per_s: f64, ms: [f64; 3]) -> ToolReading {
    let mut r = ToolReading::new(Tool::Wrk);
    r.url = Some(url.into());
    r.connections = Some(connections);
    r.requests_per_s = Some(requests_per_s);
    (r.duration_s, r.depth, r.closed_loop) = (Some(30.0), Some(1), Some(true));
    r.latency.mean_us = Some(ms[0] * 1e3);
    r.latency.stdev_us = Some(ms[1] * 1e3);
    r.latency.max_us = Some(ms[2] * 1e3);
    r
}

/// A run of ab whose percentiles are known, in milliseconds, and nothing else.
pub fn ab(percentiles_ms: &[(f64, f64)]) -> ToolReading {
    let mut r = ToolReading::new(Tool::Ab);
    r.latency.quantiles_us = percentiles_ms
        .iter()
        .map(|(p, ms)| (p / 100.0, ms * 1e3))
        .collect();
    r
}

//! The segments of a load: windows on one target, and the opening of connections before them.

use std::time::Duration;

use load::{Segment, Stop};
use readings::Pacing;

/// The window of an opening; in an open loop each connection has a request due in it.
const OPENING_MS: f64 = 1.0;

/// A segment on a target: a ramp-up, then a window.
pub(crate) fn segment(
    target: usize,
    pacing: Pacing,
    ramp_up_ms: f64,
    window_ms: f64,
    reading: Option<usize>,
) -> Segment {
    let duration = |ms: f64| Duration::from_secs_f64((ms / 1e3).clamp(0.0, 1e9));
    Segment {
        pacing,
        ramp_up: duration(ramp_up_ms),
        ..Segment::closed(Stop::After(duration(window_ms))).on(target, reading)
    }
}

/// Opens the connections of all targets with one request each. All are answered before the next
/// segment starts, even after lost packets.
pub(crate) fn opening(targets: usize, connections: u32, pacing: Pacing) -> Vec<Segment> {
    let pacing = opening_pacing(connections, pacing);
    (0..targets)
        .map(|target| segment(target, pacing, 0.0, OPENING_MS, None))
        .collect()
}

/// The pacing of the segments that open connections, for a load with this pacing.
pub(crate) fn opening_pacing(connections: u32, pacing: Pacing) -> Pacing {
    match pacing {
        Pacing::Closed => Pacing::Closed,
        Pacing::Open { .. } => Pacing::Open {
            rate_per_s: f64::from(connections) / (OPENING_MS / 1e3),
        },
    }
}

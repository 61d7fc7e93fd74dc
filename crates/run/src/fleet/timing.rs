//! When loads begin that are made at the same time, and how much time lies between their segments.

use std::time::Duration;

use agent::wire::Loaded;
use load::{Segment, Stop};
use readings::START_LATE_US;

/// Time for all hosts to ask for reference answers and to open their event loops.
const LEAD: Duration = Duration::from_millis(700);
/// The gap between two segments as a share of the longest window. The last answers arrive in it.
const GAP_SHARE: f64 = 0.25;
/// The limits of that gap.
const GAP_MIN: Duration = Duration::from_millis(20);
const GAP_MAX: Duration = Duration::from_secs(2);
/// The time for the last answers is what they took before, times this, ...
const DRAIN_FACTOR: f64 = 1.5;
/// ... plus this.
const DRAIN_MARGIN: Duration = Duration::from_millis(50);
/// The same, for the time before the first segment.
const LEAD_MARGIN: Duration = Duration::from_millis(200);

/// When loads begin, and the time between their segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timing {
    /// Time from the orders to the first segment.
    pub(crate) lead: Duration,
    /// Time from the end of a segment to the next one.
    pub(crate) gap: Duration,
    /// Whether a late start is accepted, as in a warm-up.
    pub(crate) may_be_late: bool,
}

impl Timing {
    /// The timing for segments of these lengths.
    pub(crate) fn of(segments: &[Segment]) -> Self {
        let longest = segments
            .iter()
            .map(planned_window)
            .max()
            .unwrap_or_default();
        Self {
            lead: LEAD,
            gap: longest.mul_f64(GAP_SHARE).clamp(GAP_MIN, GAP_MAX),
            may_be_late: false,
        }
    }
}

/// The longest times that loads needed so far around their windows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NeededTimes {
    /// The longest time after a window, in which the last answers came.
    drain: Duration,
    /// The longest time before the first segment.
    ready: Duration,
}

impl NeededTimes {
    pub(crate) fn learn(&mut self, loaded: &Loaded) {
        self.drain = self.drain.max(Duration::from_nanos(loaded.drain_ns));
        self.ready = self.ready.max(Duration::from_nanos(loaded.ready_ns));
    }

    /// A timing with room for what earlier loads needed.
    pub(crate) fn timing(&self, segments: &[Segment]) -> Timing {
        let usual = Timing::of(segments);
        Timing {
            lead: usual
                .lead
                .max(self.ready.mul_f64(DRAIN_FACTOR) + LEAD_MARGIN),
            gap: self.drain.mul_f64(DRAIN_FACTOR) + DRAIN_MARGIN,
            may_be_late: false,
        }
    }
}

/// The planned length of a segment's window; zero where it ends after a number of requests.
pub(crate) fn planned_window(segment: &Segment) -> Duration {
    match segment.stop {
        Stop::After(window) => window,
        Stop::Requests(_) | Stop::EachConnection(_) => Duration::ZERO,
    }
}

/// Whether a load began a segment later than a result allows.
pub(crate) fn is_late(loaded: &Loaded) -> bool {
    loaded.late_ns as f64 / 1e3 > START_LATE_US
}

//! How long the slices of a load take, compared with the plan.

use std::time::{Duration, Instant};

use load::Segment;

use crate::event::RunEvent;
use crate::fleet::timing::planned_window;

/// Times the slices of a load under way.
pub(crate) struct SliceTimes {
    /// The planned length of each segment.
    planned: Vec<Duration>,
    /// Number of the first segment that has not been reported yet.
    next: usize,
    since: Instant,
}

impl SliceTimes {
    /// Of a load that begins now.
    pub(crate) fn of(segments: &[Segment]) -> Self {
        let planned = segments.iter();
        Self {
            planned: planned
                .map(|one| one.idle_before + one.ramp_up + planned_window(one))
                .collect(),
            next: 0,
            since: Instant::now(),
        }
    }

    /// The event for the segments before this one, once they have ended.
    pub(crate) fn begins(&mut self, segment: usize) -> Option<RunEvent> {
        let ended = self.planned.get(self.next..segment)?;
        if ended.is_empty() {
            return None;
        }
        let planned: Duration = ended.iter().sum();
        let since = std::mem::replace(&mut self.since, Instant::now());
        self.next = segment;
        Some(RunEvent::SlicesEnd {
            planned_s: planned.as_secs_f64(),
            took_s: since.elapsed().as_secs_f64(),
        })
    }

    /// The event for the segments that are left, at the end of the load.
    pub(crate) fn ends(mut self) -> Option<RunEvent> {
        self.begins(self.planned.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::Stop;

    #[test]
    fn each_slice_is_reported_once_with_its_planned_length() {
        let slice = Segment {
            ramp_up: Duration::from_millis(10),
            ..Segment::closed(Stop::After(Duration::from_millis(90)))
        };
        let mut times = SliceTimes::of(&[slice.clone(), slice.clone(), slice.clone(), slice]);
        let planned_ms = |event: Option<RunEvent>| match event? {
            RunEvent::SlicesEnd { planned_s, took_s } => {
                assert!(took_s >= 0.0);
                Some((planned_s * 1e3).round())
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(planned_ms(times.begins(0)), None);
        assert_eq!(planned_ms(times.begins(2)), Some(200.0));
        // A late progress report of an earlier segment.
        assert_eq!(planned_ms(times.begins(1)), None);
        assert_eq!(planned_ms(times.begins(2)), None);
        assert_eq!(planned_ms(times.ends()), Some(200.0));
    }
}

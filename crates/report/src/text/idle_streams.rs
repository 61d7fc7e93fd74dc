//! Streams that a closed loop asked for and that carried nothing.

use readings::text::grouped;
use readings::{LoadReading, Pacing};

/// Streams that are busy for less than this share of the time stood still.
const BUSY_SHARE: f64 = 0.8;
/// By Little's law the rest of the requests count only where they are short against the load: those
/// that its edges cut off are not in the mean latency.
const SHORT_SHARE: f64 = 0.1;

/// The streams that were busy, by Little's law, where those of a closed loop were far fewer than it
/// asked for.
pub(crate) fn busy(reading: &LoadReading) -> Option<f64> {
    let asked = reading.connections as f64 * f64::from(reading.streams?);
    let mean_s = reading.response.quantiles().mean / 1e6;
    let shortest_s = reading.slices.iter().map(|slice| slice.duration_s);
    let shortest_s = shortest_s.fold(reading.duration_s, f64::min);
    let busy = reading.requests_per_s() * mean_s;
    let is_told = reading.pacing == Pacing::Closed
        && busy > 0.0
        && mean_s < SHORT_SHARE * shortest_s
        && busy < BUSY_SHARE * asked;
    is_told.then_some(busy)
}

/// A note on a closed loop in which far fewer streams were busy than it asked for: a server may allow
/// fewer, and the requests that wait for a stream then are in no latency.
pub fn idle_streams(reading: &LoadReading) -> Option<String> {
    let asked = reading.connections * u64::from(reading.streams?);
    let busy = busy(reading)?;
    Some(format!(
        "only about {} of the {} streams that --streams asks for were busy at a time (throughput \
         times mean latency): a server allows so many at once and no more, or leaves requests \
         without an answer. The latency is that of the answered ones; the time that requests wait \
         for a stream is not in it. Ask for at most {} streams per connection",
        grouped(busy.round() as u64),
        grouped(asked),
        grouped((busy / reading.connections as f64).ceil() as u64),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load_terminal;
    use testing::Text as _;
    use testing::journals::load;

    /// Two connections of so many streams, of which 200 are busy on average.
    fn reading(streams: u32) -> LoadReading {
        let mut reading = load(20_000.0, 1_000.0, None);
        let mean_s = reading.response.quantiles().mean / 1e6;
        reading.connections = 2;
        reading.streams = Some(streams);
        reading.requests = (200.0 / mean_s * reading.duration_s) as u64;
        reading
    }

    #[test]
    fn streams_that_the_server_does_not_allow_are_told() {
        let limited = reading(1_000);
        let note = idle_streams(&limited).unwrap();
        note.has_all([
            "only about 200 of the 2,000 streams",
            "at most 100 streams per connection",
        ]);
        let text = load_terminal(&verdict::JudgedLoad::of(&limited), "http://h/", &[]);
        text.has("queueing, some 200 streams over the throughput");
        text.lacks("2,000 streams over");
    }

    #[test]
    fn streams_that_are_busy_and_loads_of_which_the_law_says_nothing_are_not_told() {
        assert_eq!(idle_streams(&reading(110)), None);
        let mut open = reading(1_000);
        open.pacing = Pacing::Open { rate_per_s: 2e4 };
        assert_eq!(idle_streams(&open), None);
        let mut short = reading(1_000);
        short.requests /= 1_000;
        short.duration_s /= 1_000.0;
        assert_eq!(idle_streams(&short), None);
        let mut http1 = reading(1_000);
        http1.streams = None;
        assert_eq!(idle_streams(&http1), None);
    }
}

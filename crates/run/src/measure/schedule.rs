//! How load alternates between subjects inside a block.

use std::time::Duration;

use load::{Segment, Stop};
use readings::{LoadReading, Pacing};

use experiment::SliceLength;

/// Shortest slice; in a shorter one its edges would dominate.
const SLICE_MIN_MS: f64 = 100.0;
/// Median response times per slice.
const ANSWERS_PER_SLICE: f64 = 25.0;
/// Shortest open-loop slice, so that a stall stays within one.
const LATENCY_SLICE_MIN_MS: f64 = 1_000.0;
/// A slice's ramp-up is the longest of this share of it, ...
const RAMP_UP_SHARE: f64 = 0.1;
/// ... this many median response times ...
const RAMP_UP_ANSWERS: f64 = 2.0;
/// ... and this.
const RAMP_UP_MIN_MS: f64 = 5.0;

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

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

/// The warm-up: one segment per target.
pub(crate) fn warm_up(targets: usize, warmup: Duration) -> Vec<Segment> {
    let (ramp_up_ms, window_ms) = (ms(warmup) * 0.3, ms(warmup) * 0.7);
    (0..targets)
        .map(|target| segment(target, Pacing::Closed, ramp_up_ms, window_ms, Some(target)))
        .collect()
}

/// The window of an opening; in an open loop each connection has a request due in it.
const OPENING_MS: f64 = 1.0;

/// Opens the connections of all targets with one request each. All are answered before the next
/// segment starts, even after lost packets.
pub(crate) fn opening(targets: usize, connections: u32, pacing: Pacing) -> Vec<Segment> {
    let pacing = match pacing {
        Pacing::Closed => Pacing::Closed,
        Pacing::Open { .. } => Pacing::Open {
            rate_per_s: f64::from(connections) / (OPENING_MS / 1e3),
        },
    };
    (0..targets)
        .map(|target| segment(target, pacing, 0.0, OPENING_MS, None))
        .collect()
}

/// Most runs per window for an outside driver.
const RUNS_MAX: f64 = 3.0;

/// The number of runs of an outside driver per window, and their length in whole seconds, since
/// drivers take whole seconds.
pub(crate) fn outside_runs(window: Duration, slice: SliceLength) -> (usize, u64) {
    let window_s = window.as_secs_f64();
    let count = match slice {
        SliceLength::Fixed(length) => (window_s / length.as_secs_f64().max(1.0)).round(),
        SliceLength::Auto => window_s.floor().min(RUNS_MAX),
    }
    .max(1.0);
    (count as usize, (window_s / count).round().max(1.0) as u64)
}

/// An outside driver's warm-up in whole seconds.
pub(crate) fn outside_warm_up_s(warmup: Duration) -> u64 {
    warmup.as_secs_f64().ceil() as u64
}

/// The slowest target's median response time in a warm-up, ms.
pub(crate) fn median_ms(warm: &[LoadReading]) -> f64 {
    warm.iter()
        .map(|reading| reading.response.quantile_us(0.5) / 1e3)
        .fold(0.0, f64::max)
}

/// Rounds of slices: each has every target once, in random order.
fn rounds(
    targets: usize,
    count: usize,
    window_ms: f64,
    ramp_up_ms: f64,
    pacing: Pacing,
    random: &mut fastrand::Rng,
) -> Vec<Segment> {
    let mut segments = Vec::with_capacity(count * targets);
    let mut order: Vec<usize> = (0..targets).collect();
    for _ in 0..count {
        random.shuffle(&mut order);
        for &target in &order {
            segments.push(segment(target, pacing, ramp_up_ms, window_ms, Some(target)));
        }
    }
    segments
}

/// The closed-loop slices of a block.
///
/// With [`SliceLength::Auto`], rounds of two lengths alternate in random order, the long slices
/// twice the short ones: the difference of their ratios shows whether the result depends on the
/// length.
pub(crate) fn throughput(
    targets: usize,
    window: Duration,
    slice: SliceLength,
    median_ms: f64,
    random: &mut fastrand::Rng,
) -> Vec<Segment> {
    let wanted = match slice {
        SliceLength::Fixed(length) => ms(length),
        SliceLength::Auto => SLICE_MIN_MS.max(ANSWERS_PER_SLICE * median_ms),
    };
    let pairs = (ms(window) / (3.0 * wanted)).round();
    if slice == SliceLength::Auto && pairs >= 2.0 {
        let short_ms = ms(window) / (3.0 * pairs);
        let ramp_up_ms = ramp_up_ms(short_ms, median_ms);
        let mut segments = Vec::new();
        for _ in 0..pairs as usize {
            let mut lengths = [short_ms, 2.0 * short_ms];
            random.shuffle(&mut lengths);
            for length in lengths {
                segments.extend(rounds(
                    targets,
                    1,
                    length,
                    ramp_up_ms,
                    Pacing::Closed,
                    random,
                ));
            }
        }
        return segments;
    }
    let count = (ms(window) / wanted).round().max(1.0);
    let window_ms = ms(window) / count;
    let ramp_up_ms = ramp_up_ms(window_ms, median_ms);
    rounds(
        targets,
        count as usize,
        window_ms,
        ramp_up_ms,
        Pacing::Closed,
        random,
    )
}

/// The open-loop slices of a block.
pub(crate) fn latency(
    targets: usize,
    window: Duration,
    rate_per_s: f64,
    median_ms: f64,
    random: &mut fastrand::Rng,
) -> Vec<Segment> {
    let wanted = LATENCY_SLICE_MIN_MS.max(ANSWERS_PER_SLICE * median_ms);
    let count = (ms(window) / wanted).floor().max(1.0);
    let window_ms = ms(window) / count;
    let ramp_up_ms =
        ramp_up_ms(window_ms, median_ms).min(250.0_f64.max(RAMP_UP_ANSWERS * median_ms));
    let pacing = Pacing::Open { rate_per_s };
    rounds(
        targets,
        count as usize,
        window_ms,
        ramp_up_ms,
        pacing,
        random,
    )
}

fn ramp_up_ms(window_ms: f64, median_ms: f64) -> f64 {
    (window_ms * RAMP_UP_SHARE)
        .max(RAMP_UP_ANSWERS * median_ms)
        .max(RAMP_UP_MIN_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window_ms(segment: &Segment) -> f64 {
        match segment.stop {
            Stop::After(window) => ms(window),
            _ => panic!("{segment:?}"),
        }
    }

    #[test]
    fn slices_fill_the_window_and_every_round_has_every_target() {
        let mut random = fastrand::Rng::with_seed(3);
        let window = Duration::from_millis(1_530);
        let segments = throughput(3, window, SliceLength::Auto, 0.6, &mut random);
        // Five pairs of a slice and one of twice the length.
        assert_eq!(segments.len(), 10 * 3);
        for round in segments.chunks(3) {
            assert!(round.iter().all(|s| s.stop == round[0].stop));
        }
        let long = segments.iter().filter(|s| window_ms(s) > 150.0).count();
        assert_eq!(long, 5 * 3);
        for target in 0..3 {
            let own: Vec<_> = segments.iter().filter(|s| s.target == target).collect();
            let sum: f64 = own.iter().map(|s| window_ms(s)).sum();
            assert!((sum - 1_530.0).abs() < 1e-3);
        }
        for round in segments.chunks(3) {
            let mut targets: Vec<_> = round.iter().map(|s| s.target).collect();
            targets.sort_unstable();
            assert_eq!(targets, [0, 1, 2]);
        }
        let orders: std::collections::BTreeSet<Vec<usize>> = segments
            .chunks(3)
            .map(|round| round.iter().map(|s| s.target).collect())
            .collect();
        assert!(orders.len() > 2, "the order varies");
    }

    #[test]
    fn slow_answers_get_long_slices() {
        let mut random = fastrand::Rng::with_seed(3);
        let window = Duration::from_secs(20);
        let segments = throughput(2, window, SliceLength::Auto, 170.0, &mut random);
        assert!(window_ms(&segments[0]) >= 3_000.0, "{segments:?}");
        assert!(ms(segments[0].ramp_up) >= 340.0);
    }

    #[test]
    fn a_window_is_cut_into_few_runs_of_whole_seconds() {
        let runs = |ms, slice| outside_runs(Duration::from_millis(ms), slice);
        assert_eq!(runs(10_000, SliceLength::Auto), (3, 3));
        assert_eq!(runs(6_000, SliceLength::Auto), (3, 2));
        assert_eq!(runs(2_000, SliceLength::Auto), (2, 1));
        assert_eq!(runs(1_500, SliceLength::Auto), (1, 2));
        assert_eq!(runs(200, SliceLength::Auto), (1, 1));
        let fixed = |ms| SliceLength::Fixed(Duration::from_millis(ms));
        assert_eq!(runs(12_000, fixed(4_000)), (3, 4));
        assert_eq!(runs(5_000, fixed(100)), (5, 1));
        assert_eq!(outside_warm_up_s(Duration::from_millis(300)), 1);
        assert_eq!(outside_warm_up_s(Duration::ZERO), 0);
    }
}

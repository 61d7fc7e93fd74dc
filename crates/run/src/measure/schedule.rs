//! How load alternates between subjects inside a block.

use std::time::Duration;

use load::Segment;
use readings::requests::Replay;
use readings::{LoadReading, Pacing};

use crate::context::segments::segment;
use experiment::SliceLength;

/// Shortest slice; in a shorter one its edges would dominate.
const SLICE_MIN_MS: f64 = 100.0;
/// Median response times per slice, where the window has room for [`ROUNDS_MIN`] of such slices, ...
const ANSWERS_PER_SLICE: f64 = 25.0;
/// ... and at least.
const ANSWERS_MIN: f64 = 5.0;
/// Rounds per window: with fewer, one disturbance decides a block.
const ROUNDS_MIN: f64 = 10.0;
/// A subject does not fit the others' slices if fewer of its median response times fill one, ...
const ANSWERS_TO_FIT: f64 = 10.0;
/// ... and its median is this many times theirs.
const SLOWER_TO_NOT_FIT: f64 = 4.0;
/// Open-loop slices where the window has room for more than [`ROUNDS_MIN`] of them.
const LATENCY_SLICE_MS: f64 = 500.0;
/// Shortest open-loop slice.
const LATENCY_SLICE_MIN_MS: f64 = 10.0;
/// Requests per open-loop slice at least.
const REQUESTS_PER_SLICE: f64 = 5.0;
/// A slice's ramp-up is the longest of this share of it, ...
const RAMP_UP_SHARE: f64 = 0.1;
/// ... this many median response times ...
const RAMP_UP_ANSWERS: f64 = 2.0;
/// ... and this.
const RAMP_UP_MIN_MS: f64 = 5.0;

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The warm-up: one segment per target.
pub(crate) fn warm_up(targets: usize, warmup: Duration) -> Vec<Segment> {
    let all: Vec<usize> = (0..targets).collect();
    warm_up_of(&all, warmup)
}

/// The warm-up of some targets.
pub(crate) fn warm_up_of(targets: &[usize], warmup: Duration) -> Vec<Segment> {
    let (ramp_up_ms, window_ms) = (ms(warmup) * 0.3, ms(warmup) * 0.7);
    let of_one = |&target: &usize| {
        let reading = Some(target);
        segment(target, Pacing::Closed, ramp_up_ms, window_ms, reading)
    };
    targets.iter().map(of_one).collect()
}

/// Slices of a check of servers that may not be warm yet.
const CHECK_SLICES: usize = 10;
/// The shortest of them, ...
const CHECK_SLICE_MIN_MS: f64 = 50.0;
/// ... and how many median response times fill one at least.
const CHECK_ANSWERS: f64 = 2.0;
/// A check longer than this per target is not worth its time: answers are slow.
const CHECK_MAX_MS: f64 = 5_000.0;

/// A check, of about this length per target, of servers that may not be warm yet; nothing where their
/// answers take too long for one.
pub(crate) fn warmth_check(
    targets: usize,
    length: Duration,
    median_ms: f64,
    random: &mut fastrand::Rng,
) -> Option<Vec<Segment>> {
    let window_ms = (ms(length) / CHECK_SLICES as f64)
        .max(CHECK_SLICE_MIN_MS)
        .max(CHECK_ANSWERS * median_ms);
    let ramp_up_ms = ramp_up_ms(window_ms, median_ms);
    let is_worth_it =
        CHECK_SLICES as f64 * (window_ms + ramp_up_ms) <= CHECK_MAX_MS.max(2.0 * ms(length));
    let targets: Vec<usize> = (0..targets).collect();
    is_worth_it.then(|| {
        rounds(
            &targets,
            CHECK_SLICES,
            window_ms,
            ramp_up_ms,
            Pacing::Closed,
            random,
        )
    })
}

/// Most runs per window for an outside driver.
const RUNS_MAX: f64 = 3.0;
/// Answers per connection in a run of an outside driver, where the window has room for them. In shorter
/// runs, connecting at the start and unanswered requests at the end distort the throughput.
const ANSWERS_PER_RUN: f64 = 25.0;
/// With fewer there is a warning.
pub(super) const ANSWERS_PER_RUN_MIN: f64 = 20.0;

/// The number of runs of an outside driver per window, and their length in whole seconds, since
/// drivers take whole seconds. `answer_s` is the slowest subject's mean response time, or 0 if that
/// is not known.
pub(crate) fn outside_runs(window: Duration, slice: SliceLength, answer_s: f64) -> (usize, u64) {
    let window_s = window.as_secs_f64();
    let count = match slice {
        SliceLength::Fixed(length) => (window_s / length.as_secs_f64().max(1.0)).round(),
        SliceLength::Auto => {
            let run_s = (ANSWERS_PER_RUN * answer_s).ceil().max(1.0);
            (window_s / run_s).floor().min(RUNS_MAX)
        }
    }
    .max(1.0);
    (count as usize, (window_s / count).round().max(1.0) as u64)
}

/// An outside driver's warm-up in whole seconds.
pub(crate) fn outside_warm_up_s(warmup: Duration) -> u64 {
    warmup.as_secs_f64().ceil() as u64
}

/// The longest median response time that an open loop is expected to have, ms. Those of a closed loop
/// are those of a saturated path, where each request waits for all others: with many connections they
/// say how many there are, not how long the path takes. Slices and ramp-ups that were sized for them
/// would fill the window.
const UNSATURATED_MS_MAX: f64 = 40.0;

/// The median response time to expect under light load, from that of a closed loop, ms.
pub(super) fn unsaturated_ms(median_ms: f64) -> f64 {
    median_ms.min(UNSATURATED_MS_MAX)
}

/// The slowest target's median response time in a warm-up, ms.
pub(crate) fn median_ms(warm: &[LoadReading]) -> f64 {
    warm.iter()
        .map(|reading| reading.response.quantile_us(0.5) / 1e3)
        .fold(0.0, f64::max)
}

/// Each target's median response time in a warm-up, ms. A target that was asked and has neither
/// answered nor failed takes at least as long as the warm-up.
pub(crate) fn medians_ms(warm: &[LoadReading], warmup: Duration) -> Vec<f64> {
    let of_one = |reading: &LoadReading| match reading.response.count() {
        0 if reading.errors_all.timeout > 0 => ms(warmup),
        0 if reading.connections > 0 && reading.errors_all.total() == 0 => ms(warmup),
        _ => reading.response.quantile_us(0.5) / 1e3,
    };
    warm.iter().map(of_one).collect()
}

/// Rounds of slices: each has every target once, in random order.
fn rounds(
    targets: &[usize],
    count: usize,
    window_ms: f64,
    ramp_up_ms: f64,
    pacing: Pacing,
    random: &mut fastrand::Rng,
) -> Vec<Segment> {
    let mut segments = Vec::with_capacity(count * targets.len());
    let mut order = targets.to_vec();
    for _ in 0..count {
        random.shuffle(&mut order);
        for &target in &order {
            segments.push(segment(target, pacing, ramp_up_ms, window_ms, Some(target)));
        }
    }
    segments
}

/// The closed-loop slices of a block.
pub(crate) struct ClosedSlices {
    pub(crate) segments: Vec<Segment>,
    /// Targets that answer too slowly for the others' slices. They are measured after those, in
    /// slices of their own.
    pub(crate) apart: Vec<usize>,
}

/// The closed-loop slices of a block, for targets with these median response times.
///
/// With [`SliceLength::Auto`], rounds of two lengths alternate in random order, the long slices
/// twice the short ones: the difference of their ratios shows whether the result depends on the
/// length.
pub(crate) fn throughput(
    medians_ms: &[f64],
    window: Duration,
    slice: SliceLength,
    random: &mut fastrand::Rng,
) -> ClosedSlices {
    let all: Vec<usize> = (0..medians_ms.len()).collect();
    if let SliceLength::Fixed(length) = slice {
        let slowest_ms = slowest_ms(medians_ms, &all);
        let segments = fixed(&all, window, ms(length), slowest_ms, random);
        let apart = Vec::new();
        return ClosedSlices { segments, apart };
    }
    let apart = apart(medians_ms, window, slice);
    let mut together = all;
    together.retain(|target| !apart.contains(target));
    let slowest_ms = slowest_ms(medians_ms, &together);
    let mut segments = alternating(&together, window, slowest_ms, random);
    for &target in &apart {
        segments.extend(alternating(&[target], window, medians_ms[target], random));
    }
    ClosedSlices { segments, apart }
}

/// The targets whose answers take too long for the slices of the others.
pub(crate) fn apart(medians_ms: &[f64], window: Duration, slice: SliceLength) -> Vec<usize> {
    if matches!(slice, SliceLength::Fixed(_)) {
        return Vec::new();
    }
    let slice_ms = short_slice_ms(window).max(SLICE_MIN_MS);
    let fits = |target: &usize| ANSWERS_TO_FIT * medians_ms[*target] <= slice_ms;
    let (quick, mut apart): (Vec<usize>, Vec<usize>) = (0..medians_ms.len()).partition(fits);
    let limit_ms = SLOWER_TO_NOT_FIT * slowest_ms(medians_ms, &quick);
    apart.retain(|target| !quick.is_empty() && medians_ms[*target] > limit_ms);
    apart
}

fn slowest_ms(medians_ms: &[f64], targets: &[usize]) -> f64 {
    let medians = targets.iter().map(|&target| medians_ms[target]);
    medians.fold(0.0, f64::max)
}

/// The short slices' length with [`ROUNDS_MIN`] rounds, of which every second is twice as long.
fn short_slice_ms(window: Duration) -> f64 {
    ms(window) / (1.5 * ROUNDS_MIN)
}

fn alternating(
    targets: &[usize],
    window: Duration,
    median_ms: f64,
    random: &mut fastrand::Rng,
) -> Vec<Segment> {
    let room_ms = short_slice_ms(window).max(ANSWERS_MIN * median_ms);
    let wanted = SLICE_MIN_MS.max((ANSWERS_PER_SLICE * median_ms).min(room_ms));
    let pairs = (ms(window) / (3.0 * wanted)).round();
    if pairs < 2.0 {
        return fixed(targets, window, wanted, median_ms, random);
    }
    let short_ms = ms(window) / (3.0 * pairs);
    let ramp_up_ms = ramp_up_ms(short_ms, median_ms);
    let mut segments = Vec::new();
    for _ in 0..pairs as usize {
        let mut lengths = [short_ms, 2.0 * short_ms];
        random.shuffle(&mut lengths);
        for length in lengths {
            let round = rounds(targets, 1, length, ramp_up_ms, Pacing::Closed, random);
            segments.extend(round);
        }
    }
    segments
}

/// Slices of one length.
fn fixed(
    targets: &[usize],
    window: Duration,
    wanted_ms: f64,
    median_ms: f64,
    random: &mut fastrand::Rng,
) -> Vec<Segment> {
    let count = (ms(window) / wanted_ms).round().max(1.0);
    let window_ms = ms(window) / count;
    let ramp_up_ms = ramp_up_ms(window_ms, median_ms);
    let count = count as usize;
    rounds(
        targets,
        count,
        window_ms,
        ramp_up_ms,
        Pacing::Closed,
        random,
    )
}

/// The open-loop slices of a block: at least [`ROUNDS_MIN`] rounds, unless a slice would then have
/// next to no requests, or next to no answers of the loads that are made at the same time.
/// `median_ms` and `beside_ms` are the median response times of this load and of the slowest other.
pub(crate) fn latency(
    targets: usize,
    window: Duration,
    rate_per_s: f64,
    (median_ms, beside_ms): (f64, f64),
    random: &mut fastrand::Rng,
) -> Vec<Segment> {
    let count = (ms(window) / LATENCY_SLICE_MS).floor().max(ROUNDS_MIN);
    let shortest_ms = LATENCY_SLICE_MIN_MS
        .max(REQUESTS_PER_SLICE / rate_per_s * 1e3)
        .max(ANSWERS_MIN * beside_ms);
    let count = count.min((ms(window) / shortest_ms).floor()).max(1.0);
    let window_ms = ms(window) / count;
    let slower_ms = median_ms.max(beside_ms);
    let ramp_up_ms =
        ramp_up_ms(window_ms, slower_ms).min(250.0_f64.max(RAMP_UP_ANSWERS * slower_ms));
    let pacing = Pacing::Open { rate_per_s };
    let targets: Vec<usize> = (0..targets).collect();
    let count = count as usize;
    rounds(&targets, count, window_ms, ramp_up_ms, pacing, random)
}

/// The whole log once on each target, in random order. A log has its own beginning: nothing is left out
/// as a ramp-up.
pub(crate) fn replay(targets: usize, replay: &Replay, random: &mut fastrand::Rng) -> Vec<Segment> {
    let mut order: Vec<usize> = (0..targets).collect();
    random.shuffle(&mut order);
    let segment = Segment::replay(replay);
    let on = |target| segment.clone().on(target, Some(target));
    order.into_iter().map(on).collect()
}

fn ramp_up_ms(window_ms: f64, median_ms: f64) -> f64 {
    (window_ms * RAMP_UP_SHARE)
        .max(RAMP_UP_ANSWERS * median_ms)
        .max(RAMP_UP_MIN_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::Stop;

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
        let slices = throughput(&[0.6; 3], window, SliceLength::Auto, &mut random);
        assert!(slices.apart.is_empty());
        let segments = slices.segments;
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
    fn slow_answers_get_long_slices_and_still_ten_rounds() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut slices = |medians: &[f64], window_s| {
            let window = Duration::from_secs(window_s);
            let slices = throughput(medians, window, SliceLength::Auto, &mut random);
            assert!(slices.apart.is_empty());
            slices.segments
        };
        let segments = slices(&[30.0; 2], 20);
        assert_eq!(segments.len(), 2 * 18, "25 answers");
        let segments = slices(&[170.0; 2], 20);
        assert_eq!(segments.len(), 2 * 10, "fewer answers each");
        assert!(window_ms(&segments[0]) > 1_300.0, "{segments:?}");
        assert!(ms(segments[0].ramp_up) >= 340.0);
        // The window has no room for more.
        let segments = slices(&[1_000.0; 2], 30);
        assert_eq!(segments.len(), 2 * 4);
    }

    #[test]
    fn a_slow_subject_does_not_stretch_the_slices_of_the_others() {
        let mut random = fastrand::Rng::with_seed(3);
        let window = Duration::from_secs(10);
        let slices = throughput(&[0.5, 400.0, 0.6], window, SliceLength::Auto, &mut random);
        assert_eq!(slices.apart, [1]);
        let of = |target: usize| slices.segments.iter().filter(move |s| s.target == target);
        assert!(of(0).count() >= 60 && of(0).count() == of(2).count());
        assert!(of(0).all(|s| window_ms(s) < 250.0));
        assert!(of(1).all(|s| window_ms(s) > 1_500.0));
        // After the others, not between them.
        let first = slices.segments.iter().position(|s| s.target == 1).unwrap();
        assert!(slices.segments[first..].iter().all(|s| s.target == 1));
        let sum: f64 = of(1).map(window_ms).sum();
        assert!((sum - 10_000.0).abs() < 1e-3);
        // The slices of a short window are longer than a fifteenth of it, so these answers fit.
        let short = Duration::from_secs(1);
        let slices = throughput(&[0.5, 9.0], short, SliceLength::Auto, &mut random);
        assert!(slices.apart.is_empty());
        assert!(slices.segments.iter().all(|one| window_ms(one) > 100.0));
        // One that is slower, but fits.
        let slices = throughput(&[0.5, 40.0], window, SliceLength::Auto, &mut random);
        assert!(slices.apart.is_empty());
    }

    #[test]
    fn open_loops_alternate_ten_times_also_in_quick_runs() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut slices = |window_ms: u64, rate_per_s: f64| {
            let window = Duration::from_millis(window_ms);
            latency(2, window, rate_per_s, (0.5, 0.0), &mut random)
        };
        for window_ms in [200, 1_500, 5_000] {
            let segments = slices(window_ms, 2_000.0);
            assert_eq!(segments.len(), 2 * 10, "{window_ms} ms");
            for round in segments.chunks(2) {
                assert_ne!(round[0].target, round[1].target);
            }
            let first = &segments[0];
            assert!(ms(first.ramp_up) >= 5.0 && 2.0 * ms(first.ramp_up) < window_ms as f64);
        }
        assert_eq!(slices(10_000, 2_000.0).len(), 2 * 20);
        // Every slice has some requests.
        assert_eq!(slices(5_000, 4.0).len(), 2 * 4);
        assert_eq!(slices(1_000, 0.5).len(), 2);
        // And some answers of a slow load that is made at the same time.
        let window = Duration::from_secs(5);
        let beside = latency(2, window, 2_000.0, (0.5, 300.0), &mut random);
        assert_eq!(beside.len(), 2 * 3);
        assert!(beside.iter().all(|one| ms(one.ramp_up) >= 600.0));
    }

    #[test]
    fn a_target_that_did_not_answer_in_the_warm_up_is_slow() {
        let mut silent = LoadReading::default();
        silent.errors_all.timeout = 3;
        let warmup = Duration::from_millis(300);
        // Its answers take longer than the warm-up, and shorter than the time limit.
        let late = LoadReading {
            connections: 16,
            ..LoadReading::default()
        };
        let mut refused = late.clone();
        refused.errors_all.connect = 16;
        let unasked = LoadReading::default();
        let medians = medians_ms(&[silent, late, refused, unasked], warmup);
        assert_eq!(medians, [300.0, 300.0, 0.0, 0.0]);
    }

    #[test]
    fn a_window_is_cut_into_few_runs_of_whole_seconds() {
        let runs = |ms, slice| outside_runs(Duration::from_millis(ms), slice, 0.001);
        assert_eq!(runs(10_000, SliceLength::Auto), (3, 3));
        assert_eq!(runs(6_000, SliceLength::Auto), (3, 2));
        assert_eq!(runs(2_000, SliceLength::Auto), (2, 1));
        assert_eq!(runs(1_500, SliceLength::Auto), (1, 2));
        assert_eq!(runs(200, SliceLength::Auto), (1, 1));
        let fixed = |ms| SliceLength::Fixed(Duration::from_millis(ms));
        assert_eq!(runs(12_000, fixed(4_000)), (3, 4));
        assert_eq!(runs(5_000, fixed(100)), (5, 1));
        // Runs are long compared with their answers, as far as the window allows.
        let slow = |ms, slice| outside_runs(Duration::from_millis(ms), slice, 0.2);
        assert_eq!(slow(12_000, SliceLength::Auto), (2, 6));
        assert_eq!(slow(3_000, SliceLength::Auto), (1, 3));
        // Rounding does not make them shorter than 25 answers.
        let window = Duration::from_secs(10);
        assert_eq!(outside_runs(window, SliceLength::Auto, 0.132), (2, 5));
        assert_eq!(slow(5_000, fixed(1_000)), (5, 1));
        assert_eq!(outside_warm_up_s(Duration::from_millis(300)), 1);
        assert_eq!(outside_warm_up_s(Duration::ZERO), 0);
    }
}

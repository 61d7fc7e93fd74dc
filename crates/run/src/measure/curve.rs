//! Latency against offered rate: open loops with Poisson arrivals at several rates, each in slices
//! that alternate between the subjects.

use std::collections::BTreeMap;
use std::time::Duration;

use load::Segment;
use readings::{CurveChoice, CurvePoint, LoadReading, Pacing};

use super::{Findings, GroupSetup, rate, schedule};
use crate::context::Context;
use crate::context::segments::segment;
use crate::testbed::ReadySubject;
use agent::AgentError;
use experiment::ResolvedCondition;
use experiment::plan::Group;

/// Shares of the slowest subject's capacity that make the rates, where none are given ...
const OF_THE_SLOWEST: [f64; 6] = [0.1, 0.3, 0.5, 0.7, 0.8, 0.9];
/// ... and of the fastest one's, as far as they are beyond those by [`APART`].
const OF_THE_FASTEST: [f64; 3] = [0.5, 0.7, 0.9];
const APART: f64 = 1.1;
/// A subject is offered rates up to this multiple of its capacity: the first point beyond it shows
/// the overload, and any further one only takes the time to work the backlog off.
const OFFERED_MAX: f64 = 1.5;
/// A paced request may cost the client twice what it costs in a closed loop. The common rate
/// leaves a larger reserve; here a late client spoils one point, which then says so.
const CLIENT_RESERVE: f64 = 2.5;
/// Slices of a point for each subject, and the shortest.
const SLICES: f64 = 10.0;
const SLICE_MIN_MS: f64 = 100.0;
/// Median response times per slice.
const ANSWERS_PER_SLICE: f64 = 25.0;
/// Slices are longer than queues take to settle by what one subject carries in the first block, as the
/// other blocks differ from it.
const SETTLING_RESERVE: f64 = 1.5;
/// The ramp-up as a share of the window: a queue near capacity takes long to reach its length.
const RAMP_UP_SHARE: f64 = 0.25;

/// One rate, or one share of each subject's own capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Point {
    Rate(f64),
    Share(f64),
}

impl Point {
    /// The rate that a subject is offered; `None` beyond what it or the client can carry.
    fn rate_of(self, subject: &str, choice: &CurveChoice) -> Option<f64> {
        let capacity = choice.capacities_per_s.get(subject).copied();
        let most = choice.client_per_s.unwrap_or(f64::INFINITY);
        match self {
            Point::Rate(rate) => {
                let fits = capacity.is_none_or(|capacity| rate <= OFFERED_MAX * capacity);
                fits.then_some(rate)
            }
            Point::Share(share) => Some(share * capacity?).filter(|rate| *rate <= most),
        }
    }

    fn share(self) -> Option<f64> {
        match self {
            Point::Rate(_) => None,
            Point::Share(share) => Some(share),
        }
    }

    fn words(self) -> String {
        match self {
            Point::Rate(rate) => format!("{rate} requests/s"),
            Point::Share(share) => format!("{:.0}% of each subject's capacity", share * 100.0),
        }
    }
}

/// The curve of each ready subject, in their order; empty ones where no curve is asked for. The
/// baseline's second copy has none.
pub(super) fn measure(
    cx: &mut Context<'_>,
    setup: &GroupSetup<'_>,
    closed: &[LoadReading],
    random: &mut fastrand::Rng,
    found: &mut Findings,
) -> Result<Vec<Vec<CurvePoint>>, AgentError> {
    let (resolved, ready) = (setup.resolved, setup.ready);
    let mut curves = vec![Vec::new(); ready.len()];
    if resolved.load.curve.is_none() || setup.wanted.closed_only || cx.stopped() {
        return Ok(curves);
    }
    let trials = setup.group.trials.len();
    // If subjects are measured one after the other, none may choose the rates for all.
    if cx.curve.is_none() && trials > 1 && ready.len() == trials {
        let measured = ready.iter().zip(closed);
        let measured: Vec<(String, LoadReading)> = measured
            .map(|(one, load)| (one.planned.subject.clone(), load.clone()))
            .collect();
        cx.curve = choose_curve(setup.group, resolved, &measured);
        found.curve.clone_from(&cx.curve);
    }
    let Some(choice) = cx.curve.clone() else {
        return Ok(curves);
    };
    let rates = choice.rates_per_s.iter().map(|rate| Point::Rate(*rate));
    let shares = choice.shares.iter().map(|share| Point::Share(*share));
    let mut points: Vec<Point> = rates.chain(shares).collect();
    random.shuffle(&mut points);
    let slow_ms = schedule::unsaturated_ms(schedule::median_ms(closed));
    for point in points {
        let offered = ready.iter().enumerate().filter_map(|(number, one)| {
            let planned = &one.planned;
            let rate = point.rate_of(&planned.subject, &choice)?;
            (!planned.baseline_copy).then_some((number, rate))
        });
        let (numbers, rates): (Vec<usize>, Vec<f64>) = offered.unzip();
        if numbers.is_empty() {
            continue;
        }
        if cx.stopped() {
            break;
        }
        cx.phase(&format!("latency at {}", point.words()));
        let targets: Vec<ReadySubject> = numbers.iter().map(|n| ready[*n].clone()).collect();
        let window = cx.options.experiment.design.curve_window;
        let settling = numbers.iter().zip(&rates).map(|(number, rate)| {
            let capacities = &choice.capacities_per_s;
            let capacity = capacities.get(&ready[*number].planned.subject);
            capacity.map_or(0.0, |capacity| settling_ms(*rate, *capacity))
        });
        let least_ms = settling.fold(SLICE_MIN_MS.max(ANSWERS_PER_SLICE * slow_ms), f64::max);
        let segments = slices(&rates, window, least_ms, random);
        let salt = random.u64(..);
        let loaded = cx.load_poisson(resolved, &targets, segments, salt)?;
        for (number, load) in numbers.iter().zip(&loaded.readings) {
            let ramp_up_s = load.duration_s * RAMP_UP_SHARE;
            curves[*number].push(CurvePoint {
                share: point.share(),
                ..CurvePoint::of(load, ramp_up_s)
            });
        }
    }
    for curve in &mut curves {
        curve.sort_by(|a, b| {
            let key = |one: &CurvePoint| (one.share.is_some(), one.rate_per_s);
            let (a, b) = (key(a), key(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
    }
    Ok(curves)
}

/// The rates of a curve from the closed loops of all subjects; `None` where nothing was carried.
pub(crate) fn choose_curve(
    group: &Group,
    resolved: &ResolvedCondition,
    closed: &[(String, LoadReading)],
) -> Option<CurveChoice> {
    let spec = resolved.load.curve.as_ref()?;
    let due_requests = rate::due_requests(resolved);
    let mut capacities: BTreeMap<String, f64> = BTreeMap::new();
    for (planned, (subject, load)) in group.trials.iter().zip(closed) {
        let is_copy = planned.subject == *subject && planned.baseline_copy;
        if !is_copy || !capacities.contains_key(subject) {
            let per_s = load.requests_per_s() / due_requests;
            capacities.insert(subject.clone(), per_s);
        }
    }
    capacities.retain(|_, per_s| per_s.is_finite() && *per_s > 0.0);
    let slowest = capacities.values().copied().reduce(f64::min)?;
    let fastest = capacities.values().copied().reduce(f64::max)?;
    let client = closed.iter().map(|(_, load)| rate::client_rate(load));
    let client = CLIENT_RESERVE * client.fold(f64::INFINITY, f64::min) / due_requests;
    let rates_per_s = match &spec.rates_per_s {
        Some(given) => given.clone(),
        None => chosen(slowest, fastest, client),
    };
    let bounds = spec.bounds.iter();
    Some(CurveChoice {
        condition: group.condition.clone(),
        rates_per_s,
        shares: spec.shares.clone(),
        capacities_per_s: capacities,
        client_per_s: client.is_finite().then_some(client),
        bounds_us: bounds.map(|bound| bound.as_secs_f64() * 1e6).collect(),
    })
}

/// Rates that cover the slowest subject's range and the fastest one's, as far as the client goes.
fn chosen(slowest: f64, fastest: f64, client: f64) -> Vec<f64> {
    let mut rates: Vec<f64> = OF_THE_SLOWEST.map(|share| share * slowest).to_vec();
    for rate in OF_THE_FASTEST.map(|share| share * fastest) {
        if rate > APART * rates.last().copied().unwrap_or(0.0) {
            rates.push(rate);
        }
    }
    let all = rates.len();
    rates.retain(|rate| *rate <= client);
    if rates.len() < all && rates.last().is_none_or(|last| APART * last < client) {
        rates.push(client);
    }
    let mut rates: Vec<f64> = rates.into_iter().map(rate::round_down).collect();
    rates.dedup();
    rates
}

/// How long a slice has to be for the queue to settle; 0 where it never does.
fn settling_ms(rate_per_s: f64, capacity_per_s: f64) -> f64 {
    let requests = verdict::settling_requests(rate_per_s / capacity_per_s);
    match requests.is_finite() {
        true => SETTLING_RESERVE * requests / rate_per_s * 1e3,
        false => 0.0,
    }
}

/// Rounds of slices, each with every target once in random order.
fn slices(
    rates: &[f64],
    window: Duration,
    least_ms: f64,
    random: &mut fastrand::Rng,
) -> Vec<Segment> {
    let window_ms = window.as_secs_f64() * 1e3;
    let count = (window_ms / least_ms).floor().clamp(2.0, SLICES);
    let slice_ms = window_ms / count;
    let ramp_up_ms = slice_ms * RAMP_UP_SHARE;
    let mut order: Vec<usize> = (0..rates.len()).collect();
    let mut segments = Vec::new();
    for _ in 0..count as usize {
        random.shuffle(&mut order);
        for &target in &order {
            let pacing = Pacing::Open {
                rate_per_s: rates[target],
            };
            let segment = segment(target, pacing, ramp_up_ms, slice_ms, Some(target));
            segments.push(segment);
        }
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_cover_the_slowest_and_the_fastest_subject() {
        assert_eq!(
            chosen(10_000.0, 40_000.0, f64::INFINITY),
            [1e3, 3e3, 5e3, 7e3, 8e3, 9e3, 20e3, 28e3, 36e3]
        );
        let equal = chosen(10_000.0, 10_050.0, f64::INFINITY);
        assert_eq!(equal.len(), 6, "{equal:?}");
        assert_eq!(
            chosen(10_000.0, 40_000.0, 12_500.0).last(),
            Some(&12_000.0),
            "as far as the client goes"
        );
        assert!(
            chosen(0.5, 0.5, f64::INFINITY)
                .iter()
                .all(|rate| *rate > 0.0)
        );
    }

    #[test]
    fn a_subject_is_offered_little_more_than_it_carries() {
        let choice = CurveChoice {
            condition: Default::default(),
            rates_per_s: Vec::new(),
            shares: Vec::new(),
            capacities_per_s: BTreeMap::from([("a".to_owned(), 1000.0)]),
            client_per_s: Some(800.0),
            bounds_us: Vec::new(),
        };
        assert_eq!(Point::Rate(1400.0).rate_of("a", &choice), Some(1400.0));
        assert_eq!(Point::Rate(1600.0).rate_of("a", &choice), None);
        assert_eq!(Point::Share(0.5).rate_of("a", &choice), Some(500.0));
        assert_eq!(Point::Share(0.9).rate_of("a", &choice), None, "the client");
    }

    #[test]
    fn slices_alternate_and_fill_the_window() {
        let mut random = fastrand::Rng::with_seed(1);
        let window = Duration::from_secs(2);
        let segments = slices(&[100.0, 200.0], window, 100.0, &mut random);
        assert_eq!(segments.len(), 20);
        for round in segments.chunks(2) {
            assert_ne!(round[0].target, round[1].target);
        }
        let slow = slices(&[100.0], window, 1_000.0, &mut random);
        assert_eq!(slow.len(), 2);
    }

    #[test]
    fn slices_near_the_capacity_are_longer() {
        // By M/M/1 at half of 10,000/s a queue forgets its start in 6 requests, at 95% in 1,480.
        assert!(settling_ms(5_000.0, 10_000.0) < 10.0);
        let near = settling_ms(9_500.0, 10_000.0);
        assert!((1_000.0..1_300.0).contains(&near), "{near} ms");
        assert_eq!(settling_ms(14_000.0, 10_000.0), 0.0, "it never does");
    }
}

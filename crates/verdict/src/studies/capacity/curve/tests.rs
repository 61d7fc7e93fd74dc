use super::*;
use crate::fixtures::open;
use crate::studies::capacity::{Outcome, Search, SearchOptions};

fn objective() -> Objective {
    "p99<10ms".parse().unwrap()
}

/// A trial whose answers take that long at the client's own pace.
fn step(rate_per_s: f64, median_us: f64) -> RateStep {
    let load = open(rate_per_s, median_us);
    let judgement = objective().judge_load(&load);
    RateStep {
        rate_per_s,
        load,
        judgement,
    }
}

fn capacity(steps: &[RateStep]) -> Capacity {
    let mut search = Search::new(SearchOptions::around(2000.0)).unwrap();
    for step in steps {
        search.record(step.rate_per_s, Outcome::from(&step.judgement));
    }
    search.so_far()
}

#[test]
fn the_curve_has_a_point_for_each_rate_with_the_spread_of_its_trials() {
    let steps = [
        step(2000.0, 3000.0),
        step(1000.0, 1000.0),
        step(2000.0, 9000.0),
    ];
    let points = curve(&steps, &quantiles_of(&objective()));
    assert_eq!(points.len(), 2);
    assert_eq!(points[0].rate_per_s, 1000.0);
    assert_eq!(
        (points[1].held, points[1].missed, points[1].unusable),
        (1, 1, 0)
    );
    let p99 = points[1].quantiles[1];
    assert_eq!(p99.quantile, 0.99);
    assert!(p99.resolved);
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.01;
    assert!(near(p99.latency_us.low, 6000.0), "{p99:?}");
    assert!(near(p99.latency_us.middle, 12_000.0), "{p99:?}");
    assert!(near(p99.latency_us.high, 18_000.0), "{p99:?}");
    let [Judgement::Missed(missed)] = &points[1].unmet[..] else {
        panic!("{points:?}");
    };
    assert!(near(missed[0].1, 18_000.0), "{missed:?}");
    assert!(!points[1].client_limited);
}

#[test]
fn quantiles_that_are_not_limited_are_the_median_and_p99() {
    assert_eq!(quantiles_of(&objective()), [0.5, 0.99]);
    assert_eq!(
        quantiles_of(&"p90<5ms, p99.9<9ms".parse().unwrap()),
        [0.5, 0.9, 0.999]
    );
    assert_eq!(quantiles_of(&"mean<5ms".parse().unwrap()), [0.5, 0.99]);
}

#[test]
fn a_rate_that_the_client_could_not_offer_is_limited_by_it() {
    let mut late = step(4000.0, 30_000.0);
    late.load.client.saturated = true;
    late.judgement = objective().judge_load(&late.load);
    let points = curve(&[step(2000.0, 3000.0), late.clone(), late], &[0.5]);
    assert!(points[1].client_limited && !points[0].client_limited);
}

#[test]
fn connections_that_are_all_busy_with_a_server_that_is_not_are_named() {
    let with_service = |mut step: RateStep, us: u64| {
        for _ in 0..1000 {
            step.load.service.record_ns(us * 1000);
        }
        step
    };
    // 8 connections, 4 ms each: 2,000 requests/s is all they can carry.
    let steps = [
        with_service(step(500.0, 4000.0), 4000),
        with_service(step(2000.0, 30_000.0), 4000),
    ];
    let bound = |steps: &[RateStep], connections| all_busy_at(&capacity(steps), steps, connections);
    assert_eq!(bound(&steps, 8), Some(2000.0));
    assert_eq!(bound(&steps, 16), None);
    // A server that slows down is the limit itself.
    let slow = [
        with_service(step(500.0, 1000.0), 1000),
        with_service(step(2000.0, 30_000.0), 4000),
    ];
    assert_eq!(bound(&slow, 8), None);
}

use super::*;
use crate::capacity::{Outcome, Search, SearchOptions};
use crate::fixtures::open;

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
    assert_eq!(points[1].reasons.len(), 1, "{points:?}");
    assert!(
        points[1].reasons[0].contains("18.006 ms, not p99 < 10 ms"),
        "{points:?}"
    );
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
fn bounds_are_named_with_their_trials() {
    let steps = [step(2000.0, 3000.0), step(2040.0, 9000.0)];
    let said = sentences(&capacity(&steps), &objective(), &steps, 64);
    assert!(
        said[0].starts_with("The highest rate that keeps p99 < 10 ms in 90% of the trials is 1,"),
        "{said:?}"
    );
    assert_eq!(
        said[1],
        "About half of the trials hold between 2,000 (1 of 1 trial held) and 2,040 requests/s (0 \
         of 1 trial held)."
    );
    // What the objective's text does not say stands apart from it.
    assert_eq!(
        said[2],
        "A trial also has to keep errors < 0.1% and achieved >= 99%."
    );
    assert!(said[3].contains("not finished"), "{said:?}");
    assert_eq!(said.len(), 4, "{said:?}");
}

#[test]
fn what_the_client_could_not_offer_makes_it_at_least() {
    let mut late = step(4000.0, 30_000.0);
    late.load.client.saturated = true;
    late.judgement = objective().judge_load(&late.load);
    let steps = [step(2000.0, 3000.0), late.clone(), late];
    let said = sentences(&capacity(&steps), &objective(), &steps, 64);
    assert!(
        said[0].starts_with(
            "At least 2,000 requests/s keep p99 < 10 ms (1 of 1 trial held, so at least 5% of all \
             do, with 95% confidence): "
        ) && said[0].ends_with("the client could not offer 4,000 on time, so more is not known."),
        "{said:?}"
    );
    let points = curve(&steps, &[0.5]);
    assert!(points[1].client_limited && !points[0].client_limited);
    let said = sentences(&capacity(&steps[1..]), &objective(), &steps[1..], 64);
    assert!(said[0].starts_with("Nothing can be said"), "{said:?}");
    let said = sentences(&capacity(&steps[..1]), &objective(), &steps[..1], 64);
    assert!(said[0].ends_with("nothing higher was offered."), "{said:?}");
    let none = [step(2000.0, 30_000.0)];
    let said = sentences(&capacity(&none), &objective(), &none, 64);
    assert!(said[0].starts_with("No rate kept p99 < 10 ms"), "{said:?}");
    let said = sentences(&capacity(&[]), &objective(), &[], 64);
    assert!(said[0].starts_with("Nothing was measured"), "{said:?}");
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
    let bound = |steps: &[RateStep], connections| {
        let said = sentences(&capacity(steps), &objective(), steps, connections);
        said.iter()
            .any(|s| s.contains("all 8 connections were busy"))
    };
    assert!(bound(&steps, 8));
    assert!(!bound(&steps, 16));
    // A server that slows down is the limit itself.
    let slow = [
        with_service(step(500.0, 1000.0), 1000),
        with_service(step(2000.0, 30_000.0), 4000),
    ];
    assert!(!bound(&slow, 8));
}

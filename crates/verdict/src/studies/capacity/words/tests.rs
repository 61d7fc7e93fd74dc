use super::*;
use crate::capacity::{Outcome, RateStep, Search, SearchOptions, UndetectedOverload};
use readings::LoadReading;
use testing::Text as _;
use testing::journals::load;

fn objective() -> Objective {
    "p99<50ms".parse().unwrap()
}

fn judged(load: LoadReading, rate_per_s: f64) -> RateStep {
    RateStep {
        rate_per_s,
        judgement: objective().judge_load(&load),
        load,
    }
}

/// A trial whose answers take about this long.
fn step(rate_per_s: f64, median_us: f64) -> RateStep {
    judged(load(rate_per_s, median_us, Some(rate_per_s)), rate_per_s)
}

fn said(steps: &[RateStep], connections: u32) -> Vec<String> {
    said_of(steps, connections, None)
}

fn said_of(
    steps: &[RateStep],
    connections: u32,
    undetected: Option<UndetectedOverload>,
) -> Vec<String> {
    let mut search = Search::new(SearchOptions::around(2000.0)).unwrap();
    for step in steps {
        search.record(step.rate_per_s, Outcome::from(&step.judgement));
    }
    capacity(&CapacityView {
        url: "http://h/",
        objective: &objective(),
        capacity: &search.so_far(),
        steps,
        precision: 0.02,
        undetected,
        points: &[],
        connections,
        seed: 1,
        stopped: false,
    })
}

#[test]
fn bounds_are_named_with_their_trials() {
    let said = said(&[step(2000.0, 2_000.0), step(2040.0, 30_000.0)], 64);
    said[0].begins("The highest rate that keeps p99 < 50 ms in 90% of the trials is 1,");
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
    let mut late = load(4000.0, 30_000.0, Some(4000.0));
    late.client.saturated = true;
    let late = judged(late, 4000.0);
    let steps = [step(2000.0, 2_000.0), late.clone(), late];
    let first = |steps: &[RateStep]| said(steps, 64).swap_remove(0);
    let text = first(&steps);
    text.begins(
        "At least 2,000 requests/s keep p99 < 50 ms (1 of 1 trial held, so at least 5% of all \
             do, with 95% confidence): ",
    );
    text.ends("the client could not offer 4,000 on time, so more is not known.");
    assert!(first(&steps[1..]).starts_with("Nothing can be said on p99 < 50 ms"));
    assert!(first(&steps[..1]).ends_with("nothing higher was offered."));
    assert!(first(&[step(2000.0, 30_000.0)]).starts_with("No rate kept p99 < 50 ms"));
    assert!(first(&[]).starts_with("Nothing was measured"));
}

#[test]
fn connections_that_were_all_busy_are_named() {
    let steps = [step(500.0, 4_000.0), step(2000.0, 30_000.0)].map(|mut one| {
        one.load.service.clear();
        one.load.service.record_many_ns(4_000_000, 1_000);
        one
    });
    let named = |connections| {
        let said = said(&steps, connections);
        said.iter()
            .any(|text| text.contains("all 8 connections were busy"))
    };
    assert!(named(8) && !named(16));
}

#[test]
fn steps_too_short_for_a_queue_to_grow_are_named() {
    let told = |overload: f64, exceeds_target: bool| {
        let undetected = UndetectedOverload {
            overload,
            measured_s: 0.5,
            exceeds_target,
        };
        let said = said_of(&[step(2000.0, 2_000.0)], 64, Some(undetected));
        let of_steps = |text: &String| text.starts_with("Steps of ");
        said.into_iter().find(of_steps)
    };
    assert_eq!(told(0.24, false), None);
    let text = told(0.24, true).unwrap();
    text.begins(
        "Steps of 500 ms end before the queue is long enough: trials can meet the objective at \
             rates up to 24% above the saturation throughput;",
    );
    let text = told(0.0039, true).unwrap();
    text.has("at rates up to 0.4% above");
    let text = told(2.4, true).unwrap();
    text.has("at rates up to 3.4 times the saturation");
    let text = told(f64::INFINITY, true).unwrap();
    text.has("at rates however far above the saturation");
}

#[test]
fn why_a_trial_did_not_hold() {
    let missed = |text: &str, load: &LoadReading| {
        let objective: Objective = text.parse().unwrap();
        why_unmet(&objective.judge_load(load))
    };
    let mut failing = load(1_500.0, 400.0, Some(2_000.0));
    failing.errors.timeout = 5_000;
    assert_eq!(
        missed("p50<1ms and errors < 0.1%", &failing),
        ["25%, not errors < 0.1%", "75%, not achieved >= 99%"]
    );
    assert_eq!(
        missed("p99.9<1ms", &load(500.0, 100.0, Some(500.0))),
        ["too few requests stand behind p99.9: 5,000 of the 100,000 that it takes"]
    );
    assert_eq!(
        missed("p50<1ms", &load(500.0, 100.0, None)),
        ["a closed loop offers no rate"]
    );
}

#[test]
fn streams_are_named_as_what_they_are() {
    let objective = objective().of_streams();
    let mut search = Search::new(SearchOptions::around(400.0)).unwrap();
    search.record(400.0, Outcome::Met);
    search.record(404.0, Outcome::Missed);
    let said = found(&search.so_far(), &objective);
    assert_eq!(
        said.last().unwrap(),
        "About half of the trials hold between 400 (1 of 1 trial held) and 404 streams (0 of 1 \
         trial held)."
    );
}

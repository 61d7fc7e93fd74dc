use super::*;
use crate::fixtures::{Normal, open};
use crate::{Flaw, load_flaws};
use readings::Slice;

/// An open loop of so many seconds at 2,000/s that carries 1,000/s from the start on.
fn twice(seconds: f64) -> LoadReading {
    let mut load = open(2_000.0, 400.0);
    load.connections = 4;
    load.duration_s = seconds;
    load.requests = (2_000.0 * seconds) as u64;
    load.slices = vec![Slice {
        duration_s: seconds,
        answered: Some(Answered {
            within: load.requests / 2,
            after: load.requests / 2,
            after_s: seconds,
        }),
        ..Slice::default()
    }];
    load.response.clear();
    for request in 0..load.requests {
        load.response.record_ns(400_000 + request * 500_000);
    }
    let quarter = (250.0 * seconds) as u64;
    load.offered = Some(Offered {
        due: load.requests,
        answered_within: load.requests / 2,
        backlog: [0, quarter, 2 * quarter, 3 * quarter, 4 * quarter],
    });
    load
}

#[test]
fn offered_twice_what_is_carried_is_an_overload_however_short() {
    for seconds in [0.1, 1.0, 10.0] {
        let load = twice(seconds);
        let found = overload(&load).unwrap();
        assert_eq!(
            (found.carried_per_s, found.offered_per_s),
            (Some(1_000.0), 2_000.0)
        );
        // All were answered in the end.
        assert!(load.answered_per_s() > 1_990.0);
        assert_eq!(load.requests_per_s(), 1_000.0);
    }
    let found = overload(&twice(10.0)).unwrap();
    assert_eq!((found.backlog_end, found.stage), (10_000, None));
    assert_eq!(load_flaws(&twice(10.0)), [Flaw::Overload(found)]);
}

#[test]
fn users_offer_the_requests_of_their_rounds() {
    // 500 users/s, each of whom makes four requests.
    let mut load = twice(10.0);
    load.pacing = Pacing::Open { rate_per_s: 500.0 };
    load.users = Some(Box::new(readings::UsersReading {
        arrived: 5_000,
        ..readings::UsersReading::default()
    }));
    assert_eq!(overload(&load), overload(&twice(10.0)));
}

/// Ten slices of 0.1 s at 2,000/s on 32 connections. The server carries 300/s and answers in
/// bursts of 32, of which two in three miss the short window.
fn bursts() -> LoadReading {
    let mut load = twice(1.0);
    load.connections = 32;
    let slice = |number: usize| Slice {
        duration_s: 0.1,
        answered: Some(Answered {
            within: if number.is_multiple_of(3) { 16 } else { 0 },
            after: 340,
            after_s: 340.0 / 300.0 - 0.05,
        }),
        ..Slice::default()
    };
    load.slices = (0..10).map(slice).collect();
    load.offered = Some(Offered {
        due: 2_000,
        answered_within: 64,
        backlog: [1_524, 2_005, 2_481, 2_955, 3_453],
    });
    load
}

#[test]
fn bursts_of_answers_that_miss_a_short_window_do_not_lower_the_carried_rate() {
    let mut load = bursts();
    let carried = overload(&load).unwrap().carried_per_s.unwrap();
    assert!((270.0..330.0).contains(&carried), "{carried}");
    // Nothing is said where it is not known: in older journals ...
    for slice in &mut load.slices {
        slice.answered = None;
    }
    let found = overload(&load).unwrap();
    assert_eq!((found.carried_per_s, found.share()), (None, None));
    assert_eq!((found.offered_per_s, found.backlog_end), (2_000.0, 3_453));
    // ... and where hardly more than the bursts came.
    let mut load = bursts();
    load.connections = 200;
    assert_eq!(overload(&load).unwrap().carried_per_s, None);
}

#[test]
fn the_backlog_of_a_slow_server_is_none() {
    for latency_s in [0.2f64, 1.0, 2.4] {
        let mut load = twice(4.0);
        let level = |at_s: f64| (2_000.0 * latency_s.min(at_s)) as u64;
        let backlog = [0.0, 1.0, 2.0, 3.0, 4.0].map(level);
        load.offered = Some(Offered {
            due: 8_000,
            answered_within: 8_000 - backlog[4],
            backlog,
        });
        load.response.clear();
        load.response
            .record_many_ns((latency_s * 1e9) as u64, 8_000);
        assert_eq!(overload(&load), None, "{latency_s}");
    }
}

#[test]
fn a_pause_at_the_end_is_none() {
    let mut load = twice(10.0);
    load.offered = Some(Offered {
        due: 20_000,
        answered_within: 18_000,
        backlog: [0, 1, 0, 1, 2_000],
    });
    assert_eq!(overload(&load), None);
}

#[test]
fn the_queue_of_a_busy_server_seldom_is() {
    // A walk of the backlog at 99% of the capacity, Poisson arrivals and services, in windows
    // of 2 s at 2,000/s.
    let mut normal = Normal::with_seed(7);
    let mut false_alarms = 0;
    let mut load = open(2_000.0, 400.0);
    load.duration_s = 2.0;
    for _ in 0..500 {
        let mut backlog = [0u64; 5];
        let mut level = 20.0f64;
        for at in 0..4_000 {
            // A millisecond: two arrivals, 2.02 services.
            if at % 1_000 == 0 {
                backlog[at / 1_000] = level as u64;
            }
            level = (level - 0.02 + 2.0 * normal.next()).max(0.0);
        }
        backlog[4] = level as u64;
        load.offered = Some(Offered {
            due: 4_000,
            answered_within: (4_000 + backlog[0]).saturating_sub(backlog[4]),
            backlog,
        });
        false_alarms += u32::from(overload(&load).is_some());
    }
    assert!(false_alarms <= 15, "{false_alarms} of 500");
}

#[test]
fn a_backlog_that_time_limits_end_is_one() {
    let mut load = twice(60.0);
    load.connections = 100;
    load.errors.timeout = 60_000;
    load.offered = Some(Offered {
        due: 120_000,
        answered_within: 60_000,
        backlog: [0, 10_000, 10_000, 10_050, 9_990],
    });
    assert!(overload(&load).is_some());
    load.connections = 20_000;
    assert_eq!(
        overload(&load),
        None,
        "they wait for answers, not for connections"
    );
}

/// A stage of 10 s whose answers take `us` at least and at most.
fn stage([from_per_s, to_per_s]: [f64; 2], backlog: [u64; 5], us: [f64; 2]) -> StageReading {
    let due = (5.0 * (from_per_s + to_per_s)) as u64;
    StageReading {
        duration_s: 10.0,
        from_per_s,
        to_per_s,
        due,
        requests: 1,
        errors: 0,
        latency_us: quantiles(us),
        offered: Some(Offered {
            due,
            answered_within: due - backlog[4],
            backlog,
        }),
        response: Histogram::empty(),
    }
}

fn quantiles([min, max]: [f64; 2]) -> Quantiles {
    Quantiles {
        min,
        p50: min,
        max,
        ..Quantiles::default()
    }
}

#[test]
fn stages_are_judged_one_by_one() {
    let mut load = open(1_000.0, 400.0);
    // A server that takes half a second: its backlog follows the rate.
    let ramp = stage([0.0, 2_000.0], [0, 250, 500, 750, 1_000], [5e5; 2]);
    load.stages = vec![ramp.clone(), stage([2_000.0; 2], [1_000; 5], [5e5; 2])];
    assert_eq!(overload(&load), None);
    let growing = [1_000, 5_000, 9_000, 13_000, 17_000];
    let third = stage([4_000.0; 2], growing, [2e6; 2]);
    load.stages = vec![ramp, third];
    let found = overload(&load).unwrap();
    assert_eq!(found.stage, Some(1));
}

#[test]
fn a_stage_with_few_answers_in_its_time_has_the_rate_until_its_last_answer() {
    // 1 s at 2,000/s on 400 connections, after a stage that left 100 waiting. The server carries
    // 1,000/s, in bursts of 400, of which two fall into the second.
    let overloaded = StageReading {
        duration_s: 1.0,
        due: 2_000,
        requests: 2_000,
        latency_us: Quantiles {
            min: 100_000.0,
            p50: 600_000.0,
            p90: 1e6,
            max: 1.1e6,
            ..Quantiles::default()
        },
        offered: Some(Offered {
            due: 2_000,
            answered_within: 800,
            backlog: [100, 400, 700, 1_000, 1_300],
        }),
        ..stage([2_000.0; 2], [0; 5], [0.0; 2])
    };
    let mut load = open(2_000.0, 400.0);
    load.connections = 400;
    load.stages = vec![overloaded];
    let carried_per_s = |load: &LoadReading| overload(load).unwrap().carried_per_s;
    assert_eq!(carried_per_s(&load), Some(1_000.0));
    // Hardly more than the bursts.
    load.connections = 500;
    assert_eq!(carried_per_s(&load), None);
}

/// Ten slices of 0.2 s after a ramp-up of 50 ms at 5,000/s, each from an empty queue, with the
/// backlog at a time since the load began.
fn ten_slices(backlog_at: impl Fn(f64) -> f64, response_s: impl Fn(f64) -> f64) -> CurvePoint {
    let mark = |quarter: f64| (10.0 * backlog_at(0.05 + 0.05 * quarter)) as u64;
    let backlog = [0.0, 1.0, 2.0, 3.0, 4.0].map(mark);
    let mut point = CurvePoint {
        rate_per_s: 5_000.0,
        duration_s: 2.0,
        ramp_up_s: 0.5,
        slices: 10,
        connections: 16,
        due: 10_000,
        answered: 10_000,
        offered: Some(Offered {
            due: 10_000,
            answered_within: 10_000 + backlog[0] - backlog[4],
            backlog,
        }),
        ..CurvePoint::default()
    };
    for at in 0..10_000 {
        let s = response_s((f64::from(at) + 0.5) / 10_000.0);
        point.response.record_ns((s * 1e9) as u64);
    }
    point
}

#[test]
fn a_point_that_carries_less_than_it_is_offered_is_overloaded_by_any_factor() {
    for times in [1.1, 1.3, 2.0, 2.5, 2.6, 2.7, 3.0, 5.0, 10.0, 50.0] {
        // A request that is due t after the start waits (times - 1) t.
        let waits = |share: f64| 0.0002 + (times - 1.0) * (0.05 + 0.2 * share);
        let point = ten_slices(|at_s| 5_000.0 * at_s * (1.0 - 1.0 / times), waits);
        let found = overload_of_point(&point).unwrap_or_else(|| panic!("{times} times"));
        if let Some(carried_per_s) = found.carried_per_s {
            let off = carried_per_s * times / 5_000.0 - 1.0;
            assert!(off.abs() < 0.05, "{times} times: {carried_per_s}");
        }
    }
    let twice = ten_slices(|at_s| 2_500.0 * at_s, |share| 0.05 + 0.2 * share);
    assert_eq!(
        overload_of_point(&twice).and_then(|found| found.carried_per_s),
        Some(2_500.0)
    );
}

#[test]
fn a_point_whose_answers_take_long_is_none_however_short_its_slices() {
    for latency_s in [0.05, 0.1, 0.15, 0.2, 0.23, 0.3, 1.0] {
        let backlog = |at_s: f64| 5_000.0 * at_s.min(latency_s);
        let point = ten_slices(backlog, |_| latency_s);
        assert_eq!(overload_of_point(&point), None, "always {latency_s} s");
    }
    for mean_s in [0.02, 0.05, 0.1, 0.2, 0.3] {
        let backlog = |at_s: f64| 5_000.0 * mean_s * (1.0 - f64::exp(-at_s / mean_s));
        let point = ten_slices(backlog, |share| -mean_s * (1.0 - share).ln());
        assert_eq!(overload_of_point(&point), None, "{mean_s} s on average");
    }
}

#[test]
fn a_stage_that_follows_a_lower_rate_fills_up_and_is_none() {
    // Answers take 12 s; the rate doubles, and the backlog with it.
    let stage = |rate_per_s: f64, backlog: [u64; 5]| {
        let mut one = stage([rate_per_s; 2], [0; 5], [12e6; 2]);
        let offered = one.offered.as_mut().unwrap();
        (offered.answered_within, offered.backlog) = (10_000, backlog);
        one
    };
    let mut load = open(1_000.0, 400.0);
    let growing = [12_000, 14_500, 17_000, 19_500, 22_000];
    load.stages = vec![stage(1_000.0, [12_000; 5]), stage(2_000.0, growing)];
    assert_eq!(overload(&load), None);
    load.stages[1].latency_us = quantiles([4e6, 8e6]);
    assert_eq!(overload(&load).and_then(|found| found.stage), Some(1));
}

#[test]
fn blocks_are_counted_with_what_was_carried_in_the_overloaded_ones() {
    let mut other = twice(1.0);
    other.offered = other.offered.map(|offered| Offered {
        answered_within: 640,
        ..offered
    });
    let well = open(2_000.0, 400.0);
    let found = overloaded_blocks([&twice(1.0), &well, &other]).unwrap();
    assert_eq!((found.overloaded, found.blocks), (2, 3));
    assert_eq!(found.offered_per_s, 2_000.0);
    let carried = found.carried_per_s.unwrap();
    assert!((carried - 800.0).abs() < 1e-6, "{carried}");
    assert_eq!(overloaded_blocks([&well]), None);
}

#[test]
fn a_load_of_an_old_journal_is_not_judged() {
    assert_eq!(overload_of_point(&CurvePoint::default()), None);
    assert_eq!(overload(&open(2_000.0, 400.0)), None);
}

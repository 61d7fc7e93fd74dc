//! Whether an open loop offered more than was carried.

use readings::{LoadReading, Offered, Pacing, StageReading};

/// A backlog that grows by less than this share of the requests is no overload.
const GROWTH_SHARE: f64 = 0.02;
/// And by less than so many standard deviations of a Poisson count of the requests.
const SIGMAS: f64 = 3.0;
/// The share of the growth over the second half that each of its quarters has at least: a pause at
/// the end fills the last quarter only, answers that take long the first.
const QUARTER_SHARE: f64 = 0.2;
/// If all answers take about the same time, and that is at least this share of a slice, the server
/// is slow, not overloaded: within so short a slice every backlog grows.
const SLOW_SHARE: f64 = 0.5;
const SLOW_SPREAD: f64 = 1.5;
/// Answers may come in bursts of one per connection, and a burst near an edge of the window may fall
/// on either side of it. With fewer answers than this for each answer of such a burst, their count
/// does not tell the rate.
const ANSWERS_PER_BURST: f64 = 5.0;
/// Below this share of answers an overload is taken for granted where requests wait for a
/// connection: time limits keep such a backlog from growing.
const KEPT_SHARE: f64 = 0.95;

/// More requests became due than were answered, and the difference waits: latency then depends on
/// the length of the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overload {
    /// Good answers per second while requests waited; `None` where it is not known.
    pub carried_per_s: Option<f64>,
    pub offered_per_s: f64,
    /// Requests that waited for their answers at the end; the sum over all slices.
    pub backlog_end: u64,
    /// The stage, from 0, where the load has several.
    pub stage: Option<usize>,
}

impl Overload {
    /// The share of the offered rate that was carried, as far as it is known.
    pub fn share(&self) -> Option<f64> {
        Some(self.carried_per_s? / self.offered_per_s)
    }
}

/// What a span of an open loop is judged by, apart from its counts.
struct Span {
    offered: Offered,
    /// Requests that were due and failed.
    failed: u64,
    mean_per_s: f64,
    /// Change of the rate over the second half.
    ramp_per_s: f64,
    /// Length of one slice.
    slice_s: f64,
    latency_us: Latency,
}

struct Latency {
    low: f64,
    median: f64,
    high: f64,
}

/// Whether an open loop offered more than was carried; of several stages the first in which it
/// did. Nothing for loads of which that was not recorded.
///
/// What was answered *within* the windows counts, not what was answered in the end, and the backlog
/// has to grow until the end: a slow server has a backlog too, of its latency times the rate, but
/// one that stays.
pub fn overload(load: &LoadReading) -> Option<Overload> {
    let Pacing::Open { rate_per_s } = load.pacing else {
        return None;
    };
    let staged = load.stages.iter().enumerate();
    let of_stages = staged.filter_map(|(number, stage)| Some((number, stage, stage.offered?)));
    let mut found = of_stages.filter_map(|(number, stage, offered)| {
        let overload = of_span(&of_stage(stage, offered), load.connections)?;
        let until_last = || until_the_last_answer_of(stage, offered, load.connections);
        Some(Overload {
            stage: Some(number),
            carried_per_s: overload.carried_per_s.or_else(until_last),
            ..overload
        })
    });
    if !load.stages.is_empty() {
        return found.next();
    }
    let slices = load.slices.len().max(1) as f64;
    let span = Span {
        offered: load.offered?,
        failed: load.errors.total(),
        mean_per_s: rate_per_s,
        ramp_per_s: 0.0,
        slice_s: load.duration_s / slices,
        latency_us: Latency {
            low: load.response.quantile_us(0.05),
            median: load.response.quantile_us(0.5),
            high: load.response.quantile_us(0.95),
        },
    };
    let found = of_span(&span, load.connections * slices as u64)?;
    Some(Overload {
        carried_per_s: found.carried_per_s.or_else(|| until_the_last_answer(load)),
        ..found
    })
}

/// The rate from the start of each window until the last answer of its segment: throughout that time
/// an overloaded server has requests waiting.
fn until_the_last_answer(load: &LoadReading) -> Option<f64> {
    let answered = load.answered()?;
    let count = answered.within + answered.after;
    let bursts = load.connections * load.slices.len() as u64;
    let is_known = count as f64 >= ANSWERS_PER_BURST * bursts as f64;
    is_known.then(|| count as f64 / (load.duration_s + answered.after_s))
}

/// The same from the start of a stage until the last answer to a request that was due in it. While the
/// backlog grows, the last request due also waits longest, so the longest latency of the stage marks its
/// last answer. Requests that waited when the stage began are answered first, and are counted too.
fn until_the_last_answer_of(
    stage: &StageReading,
    offered: Offered,
    connections: u64,
) -> Option<f64> {
    let count = (offered.backlog_start() + stage.requests) as f64;
    let is_known = count >= ANSWERS_PER_BURST * connections as f64;
    is_known.then(|| count / (stage.duration_s + stage.latency_us.max / 1e6))
}

fn of_stage(stage: &StageReading, offered: Offered) -> Span {
    Span {
        offered,
        failed: stage.errors,
        mean_per_s: (stage.from_per_s + stage.to_per_s) / 2.0,
        ramp_per_s: (stage.to_per_s - stage.from_per_s) / 2.0,
        slice_s: stage.duration_s,
        latency_us: Latency {
            low: stage.latency_us.min,
            median: stage.latency_us.p50,
            high: stage.latency_us.p90,
        },
    }
}

fn of_span(span: &Span, connections: u64) -> Option<Overload> {
    let Offered {
        due,
        answered_within,
        backlog,
    } = span.offered;
    if due == 0 || !(grows(span) || is_capped(span, connections)) {
        return None;
    }
    // A burst at each edge.
    let is_known = answered_within as f64 >= 2.0 * ANSWERS_PER_BURST * connections as f64;
    let carried_per_s = span.mean_per_s * answered_within as f64 / due as f64;
    Some(Overload {
        carried_per_s: is_known.then_some(carried_per_s),
        offered_per_s: span.mean_per_s,
        backlog_end: backlog[4],
        stage: None,
    })
}

/// The least share of the requests due that has to wait in a growing backlog before that counts as an
/// overload.
pub(crate) fn least_share(due: f64) -> f64 {
    GROWTH_SHARE.max(SIGMAS * (2.0 / due).sqrt())
}

/// Whether the backlog grew until the end.
fn grows(span: &Span) -> bool {
    let due = span.offered.due as f64;
    let backlog = span.offered.backlog.map(|count| count as f64);
    let (third, fourth) = (backlog[3] - backlog[2], backlog[4] - backlog[3]);
    // A rate that rises takes a larger backlog with it.
    let steady = span.ramp_per_s.max(0.0) * span.latency_us.median / 1e6;
    let growth = backlog[4] - backlog[2] - steady;
    if growth <= least_share(due) * due / 2.0 {
        return false;
    }
    if (span.offered.answered_within as f64) >= due {
        return false;
    }
    let slow_us = SLOW_SHARE * span.slice_s * 1e6;
    let Latency { low, high, .. } = span.latency_us;
    if low > slow_us && high < SLOW_SPREAD * low {
        return false;
    }
    third.min(fourth) >= QUARTER_SHARE * growth
}

/// Whether time limits end the requests that wait: from the middle on every connection was busy
/// and further requests waited.
fn is_capped(span: &Span, connections: u64) -> bool {
    let Offered {
        due,
        answered_within,
        backlog,
    } = span.offered;
    let wait = backlog[2..].iter().all(|&waiting| waiting > connections);
    wait && span.failed > 0 && (answered_within as f64) < KEPT_SHARE * due as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{Normal, open};
    use crate::{Flaw, load_flaws};
    use readings::{Answered, Histogram, Quantiles, Slice};

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

    #[test]
    fn stages_are_judged_one_by_one() {
        let stage = |from_per_s: f64, to_per_s: f64, backlog: [u64; 5], p50: f64| StageReading {
            duration_s: 10.0,
            from_per_s,
            to_per_s,
            due: (5.0 * (from_per_s + to_per_s)) as u64,
            requests: 1,
            errors: 0,
            latency_us: Quantiles {
                p50,
                ..Quantiles::default()
            },
            offered: Some(Offered {
                due: (5.0 * (from_per_s + to_per_s)) as u64,
                answered_within: (5.0 * (from_per_s + to_per_s)) as u64 - backlog[4],
                backlog,
            }),
            response: Histogram::empty(),
        };
        let mut load = open(1_000.0, 400.0);
        // A server that takes half a second: its backlog follows the rate.
        let ramp = stage(0.0, 2_000.0, [0, 250, 500, 750, 1_000], 500_000.0);
        load.stages = vec![ramp.clone(), stage(2_000.0, 2_000.0, [1_000; 5], 500_000.0)];
        assert_eq!(overload(&load), None);
        let third = stage(4_000.0, 4_000.0, [1_000, 5_000, 9_000, 13_000, 17_000], 2e6);
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
            from_per_s: 2_000.0,
            to_per_s: 2_000.0,
            due: 2_000,
            requests: 2_000,
            errors: 0,
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
            response: Histogram::empty(),
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

    #[test]
    fn a_load_of_an_old_journal_is_not_judged() {
        assert_eq!(overload(&open(2_000.0, 400.0)), None);
    }
}

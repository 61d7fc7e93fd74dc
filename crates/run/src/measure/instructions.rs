//! Counts the servers' instructions per request, where the kernel counts them.
//!
//! Counters take time at each context switch. So instructions are counted in a load of their own,
//! after all else of a group has been measured.

use std::collections::BTreeMap;
use std::time::Duration;

use load::Segment;
use readings::{InstructionScope, InstructionsReading, LoadReading, Pacing};

use crate::context::Context;
use crate::context::segments::{opening, segment};
use crate::fleet::orders::unwatched;
use crate::measure::{Findings, GroupSetup, schedule};
use crate::testbed::copies::original;
use crate::testbed::{ReadySubject, View, running_behind, unexpected};
use agent::wire::{Answer, IdleTimes, Loaded, Order};
use agent::{AgentError, Window};
use experiment::ResolvedCondition;

/// The load on each subject. `experiment`'s estimate has this and the idle time around it.
const LOAD: Duration = Duration::from_millis(300);
/// The shortest idle time before and after it, in which the counters are read.
const IDLE_MIN: Duration = Duration::from_millis(50);
/// Median response times that the idle time lasts: the threads of a load get their last answers at
/// different times.
const IDLE_ANSWERS: f64 = 2.0;
/// The longest idle time.
const IDLE_MAX: Duration = Duration::from_secs(1);

/// The instructions of each ready subject's servers, in their order. `closed` are the closed loops.
///
/// # Errors
/// When an agent is lost. What fails otherwise is a warning: the rest of the group is measured.
pub(crate) fn count(
    cx: &mut Context<'_>,
    setup: &GroupSetup<'_>,
    closed: &[LoadReading],
    random: &mut fastrand::Rng,
    found: &mut Findings,
) -> Result<Vec<Option<InstructionsReading>>, AgentError> {
    let (resolved, ready) = (setup.resolved, setup.ready);
    let nothing = vec![None; ready.len()];
    if cx.testbed.counting_support.are_refused || setup.wanted.closed_only || cx.stopped() {
        return Ok(nothing);
    }
    if resolved.load.traffic.is_paced_by_sender() {
        // Counted per request, and of streams too few end in so short a load.
        return Ok(nothing);
    }
    let views = views(cx, resolved, ready);
    let Some(scope) = common_scope(cx, &views)? else {
        return Ok(nothing);
    };
    match load_counted(cx, setup, closed, random, (&views, scope)) {
        Ok((loaded, counts)) if !cx.stopped() => {
            let ready = ready.iter().enumerate();
            let reading = ready.map(|(number, one)| {
                let load = loaded.readings.get(number)?;
                reading_of(one, scope, load, counts.get(number)?)
            });
            Ok(reading.collect())
        }
        Ok(_) => Ok(nothing),
        Err(AgentError::Failed(why)) => {
            let warning = format!("instructions were not counted: {why}");
            found.warnings.push(warning);
            Ok(nothing)
        }
        Err(lost) => Err(lost),
    }
}

/// The hosts that count, with the servers that each of them counts.
fn views(cx: &Context<'_>, resolved: &ResolvedCondition, ready: &[ReadySubject]) -> Vec<View> {
    let from = resolved.load.host.as_deref();
    let mut views = cx.testbed.views(from, resolved);
    let outside = running_behind(ready);
    let of_load = views.iter_mut().find(|(host, ..)| host.as_deref() == from);
    match of_load {
        Some((_, _, others)) => others.extend(outside),
        None if outside.is_empty() => {}
        None => views.push((from.map(str::to_owned), Vec::new(), outside)),
    }
    views
}

/// What all hosts count; `None` where one counts nothing, or there is nothing to count.
fn common_scope(
    cx: &mut Context<'_>,
    views: &[View],
) -> Result<Option<InstructionScope>, AgentError> {
    let mut common: Option<InstructionScope> = None;
    for (host, ..) in views {
        let key = cx.testbed.hosts.key(host.as_deref());
        let scope = match cx.testbed.counting_support.scopes.get(&key) {
            Some(known) => *known,
            None => {
                let agent = cx.testbed.agent(host.as_deref())?;
                let scope = match agent.ask(&Order::InstructionScope) {
                    Ok(Answer::InstructionScope { scope }) => scope,
                    Ok(other) => return Err(unexpected(&other)),
                    Err(AgentError::Failed(_)) => None,
                    Err(lost) => return Err(lost),
                };
                cx.testbed.counting_support.scopes.insert(key, scope);
                scope
            }
        };
        let Some(scope) = scope else {
            return Ok(None);
        };
        common = Some(common.map_or(scope, |common| common.min(scope)));
    }
    Ok(common)
}

/// Makes the load with counters on the servers; returns the instructions of each server in the load
/// on each subject. The counters are closed again in any case.
fn load_counted(
    cx: &mut Context<'_>,
    setup: &GroupSetup<'_>,
    closed: &[LoadReading],
    random: &mut fastrand::Rng,
    (views, scope): (&[View], InstructionScope),
) -> Result<(Loaded, Vec<BTreeMap<String, u64>>), AgentError> {
    cx.phase("counting instructions");
    let (resolved, ready) = (setup.resolved, setup.ready);
    let from = resolved.load.host.as_deref();
    if let Err(error) = open(cx, views, scope) {
        cx.testbed.counting_support.are_refused = true;
        close(cx, views, from, &[])?;
        return Err(error);
    }
    let idle = idle_time(closed);
    let segments = segments(ready.len(), resolved.load.connections, idle, random);
    let order = unwatched(cx.order(resolved, ready, segments));
    let loaded = cx.load_order(order, ready);
    let times = match &loaded {
        Ok(loaded) => idle_times(ready.len(), loaded, idle),
        Err(_) => Vec::new(),
    };
    let counts = close(cx, views, from, &times);
    Ok((loaded?, counts?))
}

fn open(cx: &mut Context<'_>, views: &[View], scope: InstructionScope) -> Result<(), AgentError> {
    for (host, servers, others) in views {
        let order = Order::StartCounting {
            servers: servers.clone(),
            others: others.clone(),
            scope,
        };
        cx.testbed.agent(host.as_deref())?.ask(&order)?;
    }
    Ok(())
}

/// Closes the counters on all hosts; the times are by the clock of the load's host.
fn close(
    cx: &mut Context<'_>,
    views: &[View],
    from: Option<&str>,
    times: &[IdleTimes],
) -> Result<Vec<BTreeMap<String, u64>>, AgentError> {
    let mut all = vec![BTreeMap::new(); times.len()];
    let load_ahead_ns = cx.testbed.agent(from)?.clock()?.monotonic_ahead_ns;
    for (host, ..) in views {
        let agent = cx.testbed.agent(host.as_deref())?;
        let ahead_ns = match host.as_deref() == from {
            true => 0,
            false => agent.clock()?.monotonic_ahead_ns - load_ahead_ns,
        };
        let loads = times.iter().map(|one| one.shifted(ahead_ns)).collect();
        let counted = match agent.ask(&Order::StopCounting { loads })? {
            Answer::Counted { loads } => loads,
            other => return Err(unexpected(&other)),
        };
        for (counts, there) in all.iter_mut().zip(counted) {
            counts.extend(there);
        }
    }
    Ok(all)
}

/// The time without load on each side of a load.
fn idle_time(closed: &[LoadReading]) -> Duration {
    let answers = IDLE_ANSWERS * schedule::median_ms(closed) / 1e3;
    let answers = Duration::try_from_secs_f64(answers).unwrap_or(IDLE_MAX);
    answers.clamp(IDLE_MIN, IDLE_MAX)
}

/// For each target the connections are opened with a request each, since opening them costs more than
/// other requests; then comes the load that is counted. All answers of one are awaited before the
/// next: only slices, which these are not, may overlap.
fn segments(
    targets: usize,
    connections: u32,
    idle: Duration,
    random: &mut fastrand::Rng,
) -> Vec<Segment> {
    let opening = opening(targets, connections, Pacing::Closed);
    let load_ms = LOAD.as_secs_f64() * 1e3;
    let counted = |target| segment(target, Pacing::Closed, 0.0, load_ms, Some(target));
    let pairs = opening.into_iter().enumerate();
    let mut pairs: Vec<[Segment; 2]> = pairs
        .map(|(target, opening)| [opening, counted(target)])
        .collect();
    random.shuffle(&mut pairs);
    let mut segments = pairs.concat();
    for segment in &mut segments {
        segment.idle_before = idle;
    }
    segments
}

/// When the servers were idle around each load. The span recorded for a segment starts with its
/// idle time (`Segment::idle_before`). The beginning of each such time is left to the last answers, and its end
/// to errors of clocks.
fn idle_times(targets: usize, loaded: &Loaded, idle: Duration) -> Vec<IdleTimes> {
    let idle_ns = idle.as_nanos() as i64;
    let part = |begin_ns: i64| Window {
        from_ns: begin_ns + idle_ns / 4,
        to_ns: begin_ns + idle_ns * 9 / 10,
    };
    let of_target = |target: usize| {
        let segment = loaded.measured.get(target)?.spans.segments.first()?;
        Some(IdleTimes {
            before: part(segment.from_ns),
            after: part(segment.to_ns),
        })
    };
    (0..targets)
        .map(|target| of_target(target).unwrap_or_default())
        .collect()
}

/// `None` where a server of the path was not counted, or nothing was answered.
fn reading_of(
    one: &ReadySubject,
    scope: InstructionScope,
    load: &LoadReading,
    counts: &BTreeMap<String, u64>,
) -> Option<InstructionsReading> {
    let through = one.subject.through.iter();
    let servers: Option<BTreeMap<String, u64>> = through
        .map(|server| Some((original(server).to_owned(), *counts.get(server)?)))
        .collect();
    let servers = servers.filter(|servers| !servers.is_empty())?;
    (load.requests_all > 0).then_some(InstructionsReading {
        scope,
        requests: load.requests_all,
        servers,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_load_comes_after_its_connections_were_opened_with_idle_time_around_it() {
        let mut random = fastrand::Rng::with_seed(3);
        let idle = Duration::from_millis(50);
        let segments = segments(3, 8, idle, &mut random);
        assert!(segments.iter().all(|one| one.idle_before == idle));
        let mut counted = Vec::new();
        for pair in segments.chunks(2) {
            assert_eq!((pair[0].reading, pair[0].target), (None, pair[1].target));
            assert_eq!(pair[1].reading, Some(pair[1].target));
            assert!(pair[1].ramp_up.is_zero());
            counted.push(pair[1].target);
        }
        counted.sort_unstable();
        assert_eq!(counted, [0, 1, 2]);
    }

    #[test]
    fn slow_answers_make_the_idle_time_longer_within_bounds() {
        let idle_ms = |median_us: u64| {
            let mut load = LoadReading::default();
            load.response.record_many_ns(median_us * 1_000, 100);
            idle_time(&[load]).as_millis()
        };
        assert_eq!(idle_ms(300), 50);
        assert!((198..203).contains(&idle_ms(100_000)));
        assert_eq!(idle_ms(30_000_000), 1_000);
    }

    #[test]
    fn the_idle_times_are_those_around_a_segment_with_the_one_before_it() {
        let mut loaded = Loaded::default();
        let segment = Window {
            from_ns: 1_000,
            to_ns: 9_000,
        };
        let spans = agent::Spans {
            segments: vec![segment],
            ..agent::Spans::default()
        };
        loaded.measured.push(agent::Measured {
            spans,
            ..agent::Measured::default()
        });
        let times = idle_times(2, &loaded, Duration::from_nanos(100));
        let window = |from_ns, to_ns| Window { from_ns, to_ns };
        assert_eq!(times[0].before, window(1_025, 1_090));
        assert_eq!(times[0].after, window(9_025, 9_090));
        assert_eq!(times[1], IdleTimes::default());
    }
}

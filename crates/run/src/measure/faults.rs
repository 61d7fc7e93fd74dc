//! Open loops with faults of servers, and their effect on clients.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use load::{Segment, Stop};
use readings::{
    EventReading, EventsReading, LATE_S, LoadReading, LoadRow, Outcome, Reading, Silence,
};

use super::{GroupSetup, Measurer, metrics_of};
use crate::RunEvent;
use crate::context::Context;
use crate::group::{GroupResult, ReadySubject};
use crate::servers::StartedServer;
use crate::testbed::Testbed;
use agent::wire::{Answer, Loaded, Order};
use agent::{AgentError, LoadObserver};
use experiment::{EventSpec, Fault, ResolvedCondition};

/// Length of the load's rows.
const ROW_MS: u64 = 100;
/// Interval at which due faults are checked for.
const TICK: Duration = Duration::from_millis(5);
/// Interval at which a faulty server is sampled.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(200);
/// A second is at the full rate if at least this share of its due requests succeeded.
const FULL: f64 = 0.95;
/// Rows after a second whose late answers count for it.
const LATE_ROWS: usize = 3;
/// Consecutive samples that must show it: queued requests arrive in a burst, and starting a server
/// takes CPU time as well.
const SAMPLES_IN_A_ROW: usize = 5;
/// Share of its CPU time before the fault at which a server counts as back in rotation.
const IN_ROTATION: f64 = 0.5;

pub(super) struct Faults;

impl Measurer for Faults {
    fn measure(
        &self,
        cx: &mut Context<'_>,
        setup: &GroupSetup<'_>,
        ready: &[ReadySubject],
        _: &mut fastrand::Rng,
        result: &mut GroupResult,
    ) -> Result<(), AgentError> {
        // Events require a rate; the experiment was checked.
        let Some(rate_per_s) = setup.rate else {
            return Ok(());
        };
        for one in ready {
            if cx.stopped() {
                return Ok(());
            }
            cx.phase(&format!("{rate_per_s} requests/s with events"));
            let (loaded, events) = load_with_faults(cx, setup, one, rate_per_s)?;
            let reading = Reading {
                latency: loaded.readings.first().cloned(),
                latency_probed: metrics_of(0, one, &loaded),
                events: Some(events),
                ..Reading::default()
            };
            let outcome = Outcome::Done(Box::new(reading));
            result.outcomes.push((one.planned.clone(), outcome));
        }
        Ok(())
    }
}

/// Injects faults while a load runs.
struct Observer<'s, 'c> {
    schedule: FaultSchedule<'s>,
    subject: &'s str,
    testbed: &'c mut Testbed,
    stop: &'c AtomicBool,
    emit: &'c mut dyn FnMut(RunEvent),
}

impl LoadObserver for Observer<'_, '_> {
    fn progress(&mut self, _: usize, requests: u64, errors: u64) {
        (self.emit)(RunEvent::Load {
            subject: self.subject.to_owned(),
            requests,
            errors,
        });
    }

    fn tick(&mut self, opened: bool) {
        self.schedule.advance(self.testbed, self.stop, opened);
    }

    fn interval(&self) -> Duration {
        TICK
    }
}

fn load_with_faults(
    cx: &mut Context<'_>,
    setup: &GroupSetup<'_>,
    one: &ReadySubject,
    rate_per_s: f64,
) -> Result<(Loaded, EventsReading), AgentError> {
    let (resolved, up) = (setup.resolved, setup.up);
    let design = &cx.options.experiment.design;
    let window = design.latency_window;
    let segment = Segment {
        ramp_up: design.warmup,
        ..Segment::open(rate_per_s, Stop::After(window))
    };
    let mut order = cx.order(resolved, std::slice::from_ref(one), vec![segment]);
    let has_faults = |name: &str| resolved.events.iter().any(|event| event.server == name);
    let is_sampled = |name: &str| {
        let through = &one.subject.through;
        through.iter().any(|server| server == name) && !has_faults(name)
    };
    order.watch = Vec::new();
    order.watch_others = cx.testbed.as_others(is_sampled);
    order.job.rows = Some(Duration::from_millis(ROW_MS));
    order.report_windows = true;
    let from = one.from.as_deref();
    let mut loader = cx.testbed.take_loader(from)?;
    let schedule = FaultSchedule::of(resolved, up, window);
    let mut observer = Observer {
        schedule,
        subject: &one.subject.name,
        testbed: &mut *cx.testbed,
        stop: cx.stop,
        emit: &mut *cx.emit,
    };
    let loaded = loader.load(order, cx.stop, &mut observer);
    let schedule = observer.schedule;
    // Undo all faults even if the load failed.
    let undone = schedule.undo_all(cx.testbed, cx.stop);
    if !matches!(loaded, Err(AgentError::Lost(_))) {
        cx.testbed.put_loader(from, loader);
    }
    // A server that could not be restored matters more than why the load failed.
    let (loaded, faults) = match (loaded, undone) {
        (_, Err(lost @ AgentError::Lost(_))) => return Err(lost),
        (loaded, undone) => (loaded?, undone?),
    };
    let load = loaded.readings.first();
    let events = load.map(|load| events_reading(load, faults, window));
    Ok((loaded, events.unwrap_or_default()))
}

/// The effect of the faults on clients.
fn events_reading(
    load: &LoadReading,
    events: Vec<EventReading>,
    window: Duration,
) -> EventsReading {
    let failed = load.errors_all.total();
    let first_s = events.iter().map(|event| event.at_s);
    let first_s = first_s.fold(window.as_secs_f64(), f64::min);
    let silence = longest_silence(&load.silences, first_s);
    EventsReading {
        requests: load.requests_all + failed,
        failed,
        full_rate_after_s: full_rate_after_s(&load.rows, &load.silences, first_s),
        longest_silence_s: silence.map(|one| one.duration_s),
        longest_silence_at_s: silence.map(|one| one.start_s),
        longest_response_s: longest_response_s(&load.rows, first_s),
        observed_s: window.as_secs_f64() - first_s,
        events,
    }
}

/// The longest silence from `since_s` on; of one that began before, the rest.
fn longest_silence(silences: &[Silence], since_s: f64) -> Option<Silence> {
    let rest = |silence: &Silence| {
        let start_s = silence.start_s.max(since_s);
        Silence {
            start_s,
            duration_s: silence.end_s() - start_s,
        }
    };
    let after = silences.iter().filter(|silence| silence.end_s() > since_s);
    after
        .map(rest)
        .max_by(|a, b| a.duration_s.total_cmp(&b.duration_s))
}

/// The longest response among the rows from `since_s` on.
fn longest_response_s(rows: &[LoadRow], since_s: f64) -> Option<f64> {
    let after = rows
        .iter()
        .filter(|row| row.requests > 0 && row.start_s + row.duration_s > since_s);
    after
        .map(|row| row.latency_us.max / 1e6)
        .max_by(f64::total_cmp)
}

/// Time from `since_s` until 95% of the requests of every second up to the last row have a good
/// answer within [`LATE_S`]; `None` if it never is again.
///
/// An answer that comes later counts for no second: what had waited at a stopped server comes in a
/// burst, which is no rate. A machine that stalls briefly delays answers without losing them.
/// Surplus answers in the next [`LATE_ROWS`] rows therefore count as well, up to the requests due
/// in that many rows. The last seconds, whose following rows are cut off, are not judged.
///
/// Requests of the last moments of a stop have their answers in time, and so the rate is full only
/// from the end of a silence on that is longer than that.
fn full_rate_after_s(rows: &[LoadRow], silences: &[Silence], since_s: f64) -> Option<f64> {
    let first = rows
        .iter()
        .position(|row| row.start_s + row.duration_s > since_s)?;
    let rows = &rows[first..];
    let second = (1000 / ROW_MS as usize).min(rows.len());
    let in_time = |row: &LoadRow| row.requests.saturating_sub(row.late);
    let is_full = |begin: usize| {
        let (own, after) = rows[begin..].split_at(second);
        let due: u64 = own.iter().map(|row| row.due).sum();
        let good: u64 = own.iter().map(in_time).sum();
        let next = after.iter().take(LATE_ROWS);
        let late = next.map(|row| in_time(row).saturating_sub(row.due));
        let late = late
            .sum::<u64>()
            .min(due * LATE_ROWS as u64 / second as u64);
        (good + late) as f64 >= FULL * due as f64
    };
    let full: Vec<bool> = (0..=rows.len() - second).map(is_full).collect();
    let judged = full.len().saturating_sub(LATE_ROWS).max(1);
    let Some(last) = full[..judged].iter().rposition(|full| !full) else {
        return Some(0.0);
    };
    let back = last + 1 + full[last + 1..].iter().position(|full| *full)?;
    let back_s = rows[back].start_s;
    let silence = silences.iter().find(|silence| {
        silence.duration_s > LATE_S && silence.start_s <= back_s && back_s < silence.end_s()
    });
    let back_s = silence.map_or(back_s, Silence::end_s);
    Some((back_s - since_s).max(0.0))
}

struct FaultSchedule<'s> {
    faults: Vec<ScheduledFault<'s>>,
    opened: Option<Instant>,
    window: Duration,
    failure: Option<AgentError>,
}

struct ScheduledFault<'s> {
    event: &'s EventSpec,
    server: &'s StartedServer,
    state: State,
    reading: EventReading,
    /// When the server was sampled last, and its CPU time then.
    before: Option<(Instant, f64)>,
    /// CPU time per second before the fault.
    usual_per_s: Option<f64>,
    /// Start of the current series of samples with a full share, s, and their number.
    since: Option<(f64, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Pending,
    Active,
    Undone,
}

impl<'s> FaultSchedule<'s> {
    /// Schedules the faults of servers that are up; a subject that does not use a faulty server has
    /// none.
    fn of(resolved: &'s ResolvedCondition, up: &'s [StartedServer], window: Duration) -> Self {
        let fault = |event: &'s EventSpec| {
            let server = up.iter().find(|one| one.name == event.server)?;
            Some(ScheduledFault {
                event,
                server,
                state: State::Pending,
                reading: EventReading {
                    server: event.server.clone(),
                    what: event.fault.word().to_owned(),
                    ..EventReading::default()
                },
                before: None,
                usual_per_s: None,
                since: None,
            })
        };
        Self {
            faults: resolved.events.iter().filter_map(fault).collect(),
            opened: None,
            window,
            failure: None,
        }
    }

    /// Injects and undoes what is due. `opens` marks the opening of the window.
    fn advance(&mut self, testbed: &mut Testbed, stop: &AtomicBool, opens: bool) {
        if opens {
            self.opened = Some(Instant::now());
        }
        let Some(opened) = self.opened else { return };
        // The window is over: answers are still awaited, and active faults are undone afterwards.
        if self.failure.is_some() || opened.elapsed() >= self.window {
            return;
        }
        for fault in &mut self.faults {
            if let Err(e) = fault.advance(testbed, stop, opened) {
                self.failure = Some(e);
                return;
            }
        }
    }

    /// Undoes active faults and waits until all servers are ready. If a server cannot be restored,
    /// the agents are reported lost, so that everything is restarted.
    fn undo_all(
        self,
        testbed: &mut Testbed,
        stop: &AtomicBool,
    ) -> Result<Vec<EventReading>, AgentError> {
        let mut readings = Vec::new();
        let lost = |name: &str, e: AgentError| {
            AgentError::Lost(format!("server `{name}` could not be restored: {e}"))
        };
        let mut result = self.failure.map_or(Ok(()), Err);
        for fault in self.faults {
            let name = &fault.server.name;
            if fault.state == State::Active
                && let Err(e) = fault.undo(testbed)
            {
                result = Err(lost(name, e));
            } else if fault.state != State::Pending
                && let Err(e) = fault.await_ready(testbed, stop)
            {
                result = result.and(Err(e));
            }
            readings.push(fault.reading);
        }
        result.map(|()| readings)
    }
}

impl ScheduledFault<'_> {
    fn advance(
        &mut self,
        testbed: &mut Testbed,
        stop: &AtomicBool,
        opened: Instant,
    ) -> Result<(), AgentError> {
        let now = opened.elapsed();
        match self.state {
            State::Pending if self.before.is_none() => self.sample_cpu(testbed),
            State::Pending if now >= self.event.at => {
                let first = self.before;
                self.sample_cpu(testbed);
                self.usual_per_s = first.zip(self.before).and_then(per_s);
                // Set first: a partly injected fault has to be undone too.
                self.state = State::Active;
                self.inject(testbed)?;
                self.reading.at_s = opened.elapsed().as_secs_f64();
                self.before = None;
            }
            State::Active if self.event.until.is_some_and(|until| now >= until) => {
                self.undo(testbed)?;
                self.state = State::Undone;
                if self.event.fault == Fault::Kill {
                    self.await_ready(testbed, stop)?;
                }
                self.reading.back_s = Some(opened.elapsed().as_secs_f64());
                self.before = None;
                self.sample_cpu(testbed);
            }
            State::Active if self.event.fault == Fault::Stop => self.sample_connections(testbed),
            State::Undone => self.sample_share(testbed, opened),
            State::Pending | State::Active => {}
        }
        Ok(())
    }

    fn ask(&self, testbed: &mut Testbed, order: &Order) -> Result<Answer, AgentError> {
        testbed.agent(self.server.host.as_deref())?.ask(order)
    }

    fn inject(&self, testbed: &mut Testbed) -> Result<(), AgentError> {
        let server = self.server.name.clone();
        let order = match self.event.fault {
            // Without signals, the server's control group is killed at once.
            Fault::Kill => Order::Stop {
                server,
                signals: Vec::new(),
            },
            Fault::Stop => Order::Freeze {
                server,
                frozen: true,
            },
            Fault::Cut => Order::Link {
                up: false,
                routed: testbed
                    .hosts
                    .at(self.server.host.as_deref())?
                    .routes_into_link(),
            },
        };
        self.ask(testbed, &order).map(drop)
    }

    fn undo(&self, testbed: &mut Testbed) -> Result<(), AgentError> {
        let order = match self.event.fault {
            Fault::Kill => {
                let host = self.server.host.as_deref();
                return testbed.start_server(host, self.server.start.clone());
            }
            Fault::Stop => Order::Freeze {
                server: self.server.name.clone(),
                frozen: false,
            },
            Fault::Cut => Order::Link {
                up: true,
                routed: testbed
                    .hosts
                    .at(self.server.host.as_deref())?
                    .routes_into_link(),
            },
        };
        self.ask(testbed, &order).map(drop)
    }

    fn await_ready(&self, testbed: &mut Testbed, stop: &AtomicBool) -> Result<(), AgentError> {
        let order = Order::Await(self.server.ready.clone());
        let agent = testbed.agent(self.server.host.as_deref())?;
        agent.ask_unless(&order, stop).map(drop)
    }

    /// Samples the server's CPU time, at most once per interval. Errors are ignored: another fault
    /// may have stopped the server.
    fn sample_usage(
        &mut self,
        testbed: &mut Testbed,
        port: Option<u16>,
    ) -> Option<(f64, Option<u64>)> {
        if self
            .before
            .is_some_and(|(when, _)| when.elapsed() < SAMPLE_INTERVAL)
        {
            return None;
        }
        let order = Order::Usage {
            server: self.server.name.clone(),
            port,
        };
        match self.ask(testbed, &order) {
            Ok(Answer::Usage { cpu_s, connections }) => {
                self.before = Some((Instant::now(), cpu_s));
                Some((cpu_s, connections))
            }
            _ => None,
        }
    }

    fn sample_cpu(&mut self, testbed: &mut Testbed) {
        let _ = self.sample_usage(testbed, None);
    }

    fn sample_connections(&mut self, testbed: &mut Testbed) {
        let port = self.server.ready.address.port();
        if let Some((_, Some(open))) = self.sample_usage(testbed, Some(port)) {
            let most = self.reading.connections_max.get_or_insert(open);
            *most = open.max(*most);
        }
    }

    /// Checks whether the server has its share of the CPU time again.
    fn sample_share(&mut self, testbed: &mut Testbed, opened: Instant) {
        let (None, Some(back_s)) = (self.reading.in_rotation_after_s, self.reading.back_s) else {
            return;
        };
        let first = self.before;
        if self.sample_usage(testbed, None).is_none() {
            return;
        }
        let share = first.zip(self.before).and_then(per_s).zip(self.usual_per_s);
        let has_share = share.is_some_and(|(now, usual_per_s)| {
            usual_per_s > 0.0 && now >= IN_ROTATION * usual_per_s
        });
        self.reading.looked_for_s = opened.elapsed().as_secs_f64() - back_s;
        if !has_share {
            self.since = None;
            return;
        }
        let begin = first.map_or(opened, |(when, _)| when);
        let begin_s = begin.duration_since(opened).as_secs_f64() - back_s;
        let (since_s, samples) = self.since.unwrap_or((begin_s.max(0.0), 0));
        self.since = Some((since_s, samples + 1));
        if samples + 1 >= SAMPLES_IN_A_ROW {
            self.reading.in_rotation_after_s = Some(since_s);
        }
    }
}

fn per_s(((begin, before), (end, after)): ((Instant, f64), (Instant, f64))) -> Option<f64> {
    let took_s = end.duration_since(begin).as_secs_f64();
    (took_s > 0.0).then(|| (after - before).max(0.0) / took_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(good: &[u64]) -> Vec<LoadRow> {
        let row = |(number, good): (usize, &u64)| LoadRow {
            start_s: number as f64 * 0.1,
            duration_s: 0.1,
            due: 200,
            requests: *good,
            ..LoadRow::default()
        };
        good.iter().enumerate().map(row).collect()
    }

    #[test]
    fn the_rate_is_full_after_the_last_deficient_second() {
        let mut good = vec![200; 60];
        assert_eq!(full_rate_after_s(&rows(&good), &[], 2.0), Some(0.0));
        // For a second, a third of the requests fails.
        good[20..30].fill(133);
        let after = full_rate_after_s(&rows(&good), &[], 2.0).unwrap();
        // Its last rows alone do not push a second below the threshold.
        assert!((0.8..=1.0).contains(&after), "{after}");
        // Rows before `since_s` do not count.
        good[..20].fill(0);
        assert_eq!(full_rate_after_s(&rows(&good), &[], 2.0), Some(after));
        // A second time.
        good[45] = 0;
        let after = full_rate_after_s(&rows(&good), &[], 2.0).unwrap();
        assert!((after - 2.6).abs() < 1e-9, "{after}");
        good[40..].fill(100);
        assert_eq!(full_rate_after_s(&rows(&good), &[], 2.0), None);
    }

    #[test]
    fn late_answers_count_for_their_second() {
        let mut good = vec![200; 60];
        good[25..28].fill(50);
        good[28..31].fill(350);
        assert_eq!(full_rate_after_s(&rows(&good), &[], 2.0), Some(0.0));
        // Lost answers do not.
        good[28..31].fill(200);
        assert!(full_rate_after_s(&rows(&good), &[], 2.0).unwrap() > 0.5);
    }

    #[test]
    fn what_had_waited_at_a_stopped_server_is_no_rate() {
        // Stopped from 2 s to 3 s: nothing fails, and all that waited comes at once.
        let mut good = vec![200; 60];
        good[20..30].fill(0);
        good[30] = 2_200;
        let mut rows = rows(&good);
        // What was due in the last 0.3 s of it was not late.
        rows[30].late = 1_400;
        let stop = Silence {
            start_s: 1.9995,
            duration_s: 1.0105,
        };
        let after = full_rate_after_s(&rows, &[stop], 2.0).unwrap();
        assert!((after - 1.01).abs() < 1e-9, "{after}");
        // Without the silences it is known to the lateness that counts as none.
        let after = full_rate_after_s(&rows, &[], 2.0).unwrap();
        assert!((0.6..=1.0).contains(&after), "{after}");
    }

    #[test]
    fn a_silence_counts_from_the_first_event_on() {
        let silences = [(0.25, 1.5), (2.5, 1.0), (4.0, 0.5)].map(|(start_s, duration_s)| Silence {
            start_s,
            duration_s,
        });
        let longest = |since_s| longest_silence(&silences, since_s).map(|one| one.duration_s);
        assert_eq!(longest(0.0), Some(1.5));
        assert_eq!(longest(2.0), Some(1.0));
        assert_eq!(longest(3.25), Some(0.5));
        assert_eq!(longest(5.0), None);
    }
}

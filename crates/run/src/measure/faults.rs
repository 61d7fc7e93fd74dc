//! Things that happen to servers while an open loop goes on, and what clients notice of them.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use load::{Segment, Stop};
use readings::{EventReading, EventsReading, LoadReading, LoadRow, Outcome, Reading};

use super::{Bench, Measurer, metrics_of};
use crate::RunEvent;
use crate::context::Context;
use crate::group::{GroupResult, Ready};
use crate::servers::Up;
use crate::testbed::Testbed;
use agent::wire::{Answer, Loaded, Order};
use agent::{AgentError, LoadObserver};
use experiment::{EventSpec, Fault, ResolvedCondition};

/// Rows of the load.
const ROW_MS: u64 = 100;
/// How often it is looked whether something is to happen.
const TICK: Duration = Duration::from_millis(5);
/// How often a server is looked at that something happened to.
const LOOK: Duration = Duration::from_millis(200);
/// A second is at the full rate when so much of what was due in it was answered well.
const FULL: f64 = 0.95;
/// Of answers that come late, those in so many rows after a second count for it.
const LATE_ROWS: usize = 3;
/// In so many looks in a row: what had waited for a server comes at once, and starting it takes time
/// as well.
const LOOKS_IN_A_ROW: usize = 5;
/// A server that takes so much of the CPU time that it took before has its share of the load.
const IN_ROTATION: f64 = 0.5;

/// Open loops with faults of servers meanwhile.
pub(super) struct Faults;

impl Measurer for Faults {
    fn measure(
        &self,
        cx: &mut Context<'_>,
        bench: &Bench<'_>,
        ready: &[Ready],
        _: &mut fastrand::Rng,
        result: &mut GroupResult,
    ) -> Result<(), AgentError> {
        // An experiment with events and without a rate was refused.
        let Some(rate_per_s) = bench.rate else {
            return Ok(());
        };
        for one in ready {
            if cx.stopped() {
                return Ok(());
            }
            cx.phase(&format!(
                "{rate_per_s} requests/s, and what happens meanwhile"
            ));
            let (loaded, events) = load_through(cx, bench, one, rate_per_s)?;
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

/// Has the faults happen while a load runs.
struct Observer<'s, 'c> {
    course: Course<'s>,
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
        self.course.turn(self.testbed, self.stop, opened);
    }

    fn interval(&self) -> Duration {
        TICK
    }
}

fn load_through(
    cx: &mut Context<'_>,
    bench: &Bench<'_>,
    one: &Ready,
    rate_per_s: f64,
) -> Result<(Loaded, EventsReading), AgentError> {
    let (resolved, up) = (bench.resolved, bench.up);
    let design = &cx.options.experiment.design;
    let window = design.latency_window;
    let segment = Segment {
        ramp_up: design.warmup,
        ..Segment::open(rate_per_s, Stop::After(window))
    };
    let mut order = cx.order(resolved, std::slice::from_ref(one), vec![segment]);
    let happens = |name: &str| resolved.events.iter().any(|event| event.server == name);
    let goes_on = |name: &str| {
        let through = &one.subject.through;
        through.iter().any(|server| server == name) && !happens(name)
    };
    order.watch = Vec::new();
    order.watch_others = cx.testbed.as_others(goes_on);
    order.job.rows = Some(Duration::from_millis(ROW_MS));
    order.tell_windows = true;
    let from = one.from.as_deref();
    let mut loader = cx.testbed.take_loader(from)?;
    let course = Course::of(resolved, up, window);
    let mut observer = Observer {
        course,
        subject: &one.subject.name,
        testbed: &mut *cx.testbed,
        stop: cx.stop,
        emit: &mut *cx.emit,
    };
    let loaded = loader.load(order, cx.stop, &mut observer);
    let course = observer.course;
    // Whatever came of the load, nothing stays as it was made.
    let undone = course.undo_all(cx.testbed, cx.stop);
    if !matches!(loaded, Err(AgentError::Lost(_))) {
        cx.testbed.put_loader(from, loader);
    }
    let loaded = loaded?;
    let marks = undone?;
    let load = loaded.readings.first();
    let events = load.map(|load| noticed(load, marks, window));
    Ok((loaded, events.unwrap_or_default()))
}

/// What clients noticed.
fn noticed(load: &LoadReading, events: Vec<EventReading>, window: Duration) -> EventsReading {
    let failed = load.errors_all.total();
    let first_s = events.iter().map(|event| event.at_s);
    let first_s = first_s.fold(window.as_secs_f64(), f64::min);
    EventsReading {
        requests: load.requests_all + failed,
        failed,
        full_rate_after_s: full_rate_after_s(&load.rows, first_s),
        observed_s: window.as_secs_f64() - first_s,
        events,
    }
}

/// Time from `since_s` until every second up to the end of the rows was at the full rate. `None`
/// when none was any more.
///
/// Answers that come in the few rows after a second count as well, as far as they are more than were
/// due in those, and no more than in so many rows of the second: a machine that stands still for a
/// moment makes them late, and nothing is lost. A second whose next rows are cut short by the end is
/// therefore not held against the rate.
fn full_rate_after_s(rows: &[LoadRow], since_s: f64) -> Option<f64> {
    let first = rows
        .iter()
        .position(|row| row.start_s + row.duration_s > since_s)?;
    let rows = &rows[first..];
    let second = (1000 / ROW_MS as usize).min(rows.len());
    let is_full = |begin: usize| {
        let (own, after) = rows[begin..].split_at(second);
        let due: u64 = own.iter().map(|row| row.due).sum();
        let good: u64 = own.iter().map(|row| row.requests).sum();
        let next = after.iter().take(LATE_ROWS);
        let late = next.map(|row| row.requests.saturating_sub(row.due));
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
    Some((rows[back].start_s - since_s).max(0.0))
}

/// All that happens in one window.
struct Course<'s> {
    marks: Vec<Mark<'s>>,
    opened: Option<Instant>,
    window: Duration,
    failure: Option<AgentError>,
}

/// One thing that happens.
struct Mark<'s> {
    event: &'s EventSpec,
    server: &'s Up,
    state: State,
    reading: EventReading,
    /// CPU time of the server when it was looked at last, and when.
    before: Option<(Instant, f64)>,
    /// CPU time per second before anything happened.
    usual: Option<f64>,
    /// Since when it seems to have its share again, and in how many looks.
    since: Option<(f64, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ahead,
    On,
    Over,
}

impl<'s> Course<'s> {
    /// What happens to servers that are up; a subject that goes through others meets nothing.
    fn of(resolved: &'s ResolvedCondition, up: &'s [Up], window: Duration) -> Self {
        let mark = |event: &'s EventSpec| {
            let server = up.iter().find(|one| one.name == event.server)?;
            Some(Mark {
                event,
                server,
                state: State::Ahead,
                reading: EventReading {
                    server: event.server.clone(),
                    what: event.fault.word().to_owned(),
                    ..EventReading::default()
                },
                before: None,
                usual: None,
                since: None,
            })
        };
        Self {
            marks: resolved.events.iter().filter_map(mark).collect(),
            opened: None,
            window,
            failure: None,
        }
    }

    /// Does what is due. `opens` says that the window has just opened.
    fn turn(&mut self, testbed: &mut Testbed, stop: &AtomicBool, opens: bool) {
        if opens {
            self.opened = Some(Instant::now());
        }
        let Some(opened) = self.opened else { return };
        // What comes later is of answers that are awaited, and what is on is undone after them.
        if self.failure.is_some() || opened.elapsed() >= self.window {
            return;
        }
        for mark in &mut self.marks {
            if let Err(e) = mark.turn(testbed, stop, opened) {
                self.failure = Some(e);
                return;
            }
        }
    }

    /// Undoes what is on and waits until all servers are ready. Servers that could not be put back
    /// cost all agents, which takes everything with them.
    fn undo_all(
        self,
        testbed: &mut Testbed,
        stop: &AtomicBool,
    ) -> Result<Vec<EventReading>, AgentError> {
        let mut readings = Vec::new();
        let lost = |name: &str, e: AgentError| {
            AgentError::Lost(format!("server `{name}` could not be put back: {e}"))
        };
        let mut result = self.failure.map_or(Ok(()), Err);
        for mark in self.marks {
            let name = &mark.server.name;
            if mark.state == State::On
                && let Err(e) = mark.undo(testbed)
            {
                result = Err(lost(name, e));
            } else if mark.state != State::Ahead
                && let Err(e) = mark.ready(testbed, stop)
            {
                result = result.and(Err(e));
            }
            readings.push(mark.reading);
        }
        result.map(|()| readings)
    }
}

impl Mark<'_> {
    fn turn(
        &mut self,
        testbed: &mut Testbed,
        stop: &AtomicBool,
        opened: Instant,
    ) -> Result<(), AgentError> {
        let now = opened.elapsed();
        match self.state {
            State::Ahead if self.before.is_none() => self.look_at_cpu(testbed),
            State::Ahead if now >= self.event.at => {
                let first = self.before;
                self.look_at_cpu(testbed);
                self.usual = first.zip(self.before).and_then(per_s);
                // Before it is done: what fails half way is to be undone as well.
                self.state = State::On;
                self.fault(testbed)?;
                self.reading.at_s = opened.elapsed().as_secs_f64();
                self.before = None;
            }
            State::On if self.event.until.is_some_and(|until| now >= until) => {
                self.undo(testbed)?;
                self.state = State::Over;
                if self.event.fault == Fault::Kill {
                    self.ready(testbed, stop)?;
                }
                self.reading.back_s = Some(opened.elapsed().as_secs_f64());
                self.before = None;
                self.look_at_cpu(testbed);
            }
            State::On if self.event.fault == Fault::Stop => self.look_at_connections(testbed),
            State::Over => self.look_for_share(testbed, opened),
            State::Ahead | State::On => {}
        }
        Ok(())
    }

    fn ask(&self, testbed: &mut Testbed, order: &Order) -> Result<Answer, AgentError> {
        testbed.agent(self.server.host.as_deref())?.ask(order)
    }

    fn fault(&self, testbed: &mut Testbed) -> Result<(), AgentError> {
        let server = self.server.name.clone();
        let order = match self.event.fault {
            // Without a signal to begin with, it is killed with all that it has started.
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

    fn ready(&self, testbed: &mut Testbed, stop: &AtomicBool) -> Result<(), AgentError> {
        let order = Order::Await(self.server.ready.clone());
        let agent = testbed.agent(self.server.host.as_deref())?;
        agent.ask_unless(&order, stop).map(drop)
    }

    /// What the server has used, unless it was looked at just now. One that cannot be looked at
    /// does not run, by what else happens to it.
    fn usage(&mut self, testbed: &mut Testbed, port: Option<u16>) -> Option<(f64, Option<u64>)> {
        if self.before.is_some_and(|(when, _)| when.elapsed() < LOOK) {
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

    fn look_at_cpu(&mut self, testbed: &mut Testbed) {
        let _ = self.usage(testbed, None);
    }

    fn look_at_connections(&mut self, testbed: &mut Testbed) {
        let port = self.server.ready.address.port();
        if let Some((_, Some(open))) = self.usage(testbed, Some(port)) {
            let most = self.reading.connections_max.get_or_insert(open);
            *most = open.max(*most);
        }
    }

    /// Looks whether the server takes its share of the CPU time again.
    fn look_for_share(&mut self, testbed: &mut Testbed, opened: Instant) {
        let (None, Some(back_s)) = (self.reading.in_rotation_after_s, self.reading.back_s) else {
            return;
        };
        let first = self.before;
        if self.usage(testbed, None).is_none() {
            return;
        }
        let share = first.zip(self.before).and_then(per_s).zip(self.usual);
        let has_share = share.is_some_and(|(now, usual)| usual > 0.0 && now >= IN_ROTATION * usual);
        self.reading.looked_for_s = opened.elapsed().as_secs_f64() - back_s;
        if !has_share {
            self.since = None;
            return;
        }
        let begin = first.map_or(opened, |(when, _)| when);
        let begin_s = begin.duration_since(opened).as_secs_f64() - back_s;
        let (since_s, looks) = self.since.unwrap_or((begin_s.max(0.0), 0));
        self.since = Some((since_s, looks + 1));
        if looks + 1 >= LOOKS_IN_A_ROW {
            self.reading.in_rotation_after_s = Some(since_s);
        }
    }
}

/// CPU time per second between two looks.
fn per_s(((begin, before), (end, after)): ((Instant, f64), (Instant, f64))) -> Option<f64> {
    let took_s = end.duration_since(begin).as_secs_f64();
    (took_s > 0.0).then(|| (after - before).max(0.0) / took_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of 200 requests each, of which so many were answered well.
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
    fn the_rate_is_full_after_the_last_second_that_is_not() {
        let mut good = vec![200; 60];
        assert_eq!(full_rate_after_s(&rows(&good), 2.0), Some(0.0));
        // A third fails for a second.
        good[20..30].fill(133);
        let after = full_rate_after_s(&rows(&good), 2.0).unwrap();
        // Its last rows weigh too little in the seconds that hold them.
        assert!((0.8..=1.0).contains(&after), "{after}");
        // What was before does not count.
        good[..20].fill(0);
        assert_eq!(full_rate_after_s(&rows(&good), 2.0), Some(after));
        // A second time.
        good[45] = 0;
        let after = full_rate_after_s(&rows(&good), 2.0).unwrap();
        assert!((after - 2.6).abs() < 1e-9, "{after}");
        good[40..].fill(100);
        assert_eq!(full_rate_after_s(&rows(&good), 2.0), None);
    }

    #[test]
    fn what_comes_late_is_made_up_for_by_the_next_second() {
        let mut good = vec![200; 60];
        good[25..28].fill(50);
        good[28..31].fill(350);
        assert_eq!(full_rate_after_s(&rows(&good), 2.0), Some(0.0));
        // Not what never comes.
        good[28..31].fill(200);
        assert!(full_rate_after_s(&rows(&good), 2.0).unwrap() > 0.5);
    }
}

//! Open loops in one piece, and events in them, such as faults of servers, with their effect on clients.

mod action;
mod effect;
mod in_time;
mod leaving;
mod moments;
mod schedule;
mod time;

use std::collections::BTreeSet;
use std::time::Duration;

use load::{Segment, Stop};
use readings::{EVENT_ROW_MS, EventsReading, Reading};

use self::effect::events_reading;
use self::moments::{AgentClocks, Means, TICK};
use self::schedule::EventSchedule;
use crate::RunEvent;
use crate::context::Context;
use crate::measure::{Ending, Findings, GroupSetup, load_of, metrics_of};
use crate::testbed::{ReadySubject, Testbed};
use agent::wire::{Answer, Loaded, Order};
use agent::{AgentError, LoadObserver};

/// An open loop for each subject in turn, with the events of the experiment, if it has any.
///
/// # Errors
/// When all subjects are affected; the failure of one is an outcome.
pub(crate) fn measure(
    cx: &mut Context<'_>,
    setup: &GroupSetup<'_>,
    found: &mut Findings,
) -> Result<Ending, AgentError> {
    // Events require a rate; the experiment was checked.
    let Some(rate_per_s) = setup.wanted.rate else {
        return Ok(Ending::Complete);
    };
    for one in setup.ready {
        if cx.stopped() {
            break;
        }
        let has_events = !setup.resolved.events.is_empty();
        cx.phase(&match has_events {
            true => format!("{rate_per_s} requests/s with events"),
            false => format!("{rate_per_s} requests/s"),
        });
        let (loaded, events) = load_with_events(cx, setup, one, rate_per_s, found)?;
        let reading = Reading {
            latency: load_of(0, one, &loaded),
            latency_probed: metrics_of(0, one, &loaded),
            events: has_events.then_some(events),
            ..Reading::default()
        };
        found.add(&one.planned, reading);
    }
    Ok(Ending::Complete)
}

/// Begins and undoes events while a load runs.
struct Observer<'s, 'c> {
    schedule: EventSchedule<'s>,
    subject: &'s str,
    means: Means<'c>,
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

    fn tick(&mut self, opened_ns: Option<i64>) {
        let opened_ns = opened_ns.map(|ns| self.means.clocks.of_load(ns));
        self.schedule.advance(&mut self.means, opened_ns);
    }

    fn interval(&self) -> Duration {
        TICK
    }
}

fn load_with_events(
    cx: &mut Context<'_>,
    setup: &GroupSetup<'_>,
    one: &ReadySubject,
    rate_per_s: f64,
    found: &mut Findings,
) -> Result<(Loaded, EventsReading), AgentError> {
    let (resolved, up) = (setup.resolved, setup.up);
    let design = &cx.options.experiment.design;
    let window = design.latency_window;
    let segment = Segment {
        ramp_up: design.warmup,
        ..Segment::open(rate_per_s, Stop::After(window))
    };
    let mut order = cx.order(resolved, std::slice::from_ref(one), vec![segment]);
    let loses_processes = |name: &String| {
        let mut events = resolved.events.iter();
        events.any(|event| !event.kind.leaves_processes() && event.target.servers().contains(name))
    };
    let is_sampled = |name: &str| {
        let mut through = one.subject.through.iter();
        through.any(|server| server == name && !loses_processes(server))
    };
    order.watch = Vec::new();
    // Where hosts are machines, each machine samples its own servers: the load's agent may not see
    // their processes.
    let on_machines = cx.options.experiment.hosts_are_machines();
    order.watch_others = match on_machines {
        true => Vec::new(),
        false => cx.testbed.as_others(is_sampled),
    };
    let lost = |name: &str| {
        let is_on_path = one.subject.through.iter().any(|server| server == name);
        is_on_path && !is_sampled(name)
    };
    order.count_others = match on_machines {
        true => Vec::new(),
        false => cx.testbed.as_others(lost),
    };
    order.job.rows = Some(Duration::from_millis(EVENT_ROW_MS));
    order.report_windows = true;
    let schedule = EventSchedule::of(cx.options.recipes, resolved, up, window)?;
    let from = one.from.as_deref();
    let mut loader = cx.testbed.take_loader(from)?;
    let clocks = AgentClocks::measure(cx.testbed, &mut *loader, schedule.hosts())?;
    let remote = match on_machines {
        true => {
            let servers = one.subject.through.iter();
            let servers: BTreeSet<&str> = servers.map(String::as_str).collect();
            cx.testbed.start_sampling_of(from, &servers, is_sampled)?
        }
        false => None,
    };
    let memory_before_bytes = memory_of(cx.testbed, setup, one);
    let mut observer = Observer {
        schedule,
        subject: &one.subject.name,
        means: Means {
            testbed: &mut *cx.testbed,
            clocks: &clocks,
            stop: cx.stop,
        },
        emit: &mut *cx.emit,
    };
    let loaded = loader.load(order, cx.stop, &mut observer);
    let not_begun = observer.schedule.not_begun();
    let memory_after_bytes = memory_of(observer.means.testbed, setup, one);
    // Undo all events even if the load failed.
    let undone = observer.schedule.undo_all(&mut observer.means);
    // One that was lost is given back too: where it still runs, the hosts wait for its end.
    cx.testbed.put_loader(from, loader);
    // A server that could not be restored matters more than why the load failed.
    let (mut loaded, events) = match (loaded, undone) {
        (_, Err(lost @ AgentError::Lost(_))) => return Err(lost),
        (loaded, undone) => (loaded?, undone?),
    };
    cx.testbed
        .add_remote_samples(from, remote, &mut loaded.measured)?;
    if !not_begun.is_empty() && !cx.stopped() {
        found.warnings.push(format!(
            "`{}` in block {}: at the window's end {} had not been restarted yet; a longer \
             `latency_window` gives a rolling restart more time",
            one.subject.name,
            cx.block,
            not_begun.join(", ")
        ));
    }
    let arrivals = loaded.measured.first().map(|measured| &measured.arrivals);
    let load = loaded.readings.first();
    let events = load.map(|load| EventsReading {
        memory_before_bytes,
        memory_after_bytes,
        ..events_reading(load, arrivals, events, window)
    });
    Ok((loaded, events.unwrap_or_default()))
}

/// The memory of the server that a subject's load addresses; `None` where nothing happens to it, or it
/// cannot be read.
fn memory_of(testbed: &mut Testbed, setup: &GroupSetup<'_>, one: &ReadySubject) -> Option<u64> {
    let name = one.subject.through.first()?;
    let server = setup.up.iter().find(|server| server.name == *name)?;
    let order = Order::Usage {
        server: name.clone(),
        port: None,
        memory: true,
    };
    match testbed.agent(server.host.as_deref()).ok()?.ask(&order) {
        Ok(Answer::Usage { memory_bytes, .. }) => memory_bytes,
        _ => None,
    }
}

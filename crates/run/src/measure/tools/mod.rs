//! Loads by outside drivers: warm-up, then runs in rounds of random order.

mod output;
mod trial;

use std::net::SocketAddr;

use readings::{DriverRun, LoadReading, Outcome, Pacing};

use self::trial::{ToolRun, ToolTrial};
use super::rate::choose_rate;
use super::{Ending, Findings, GroupSetup, schedule};
use crate::RunEvent;
use crate::context::Context;
use agent::AgentError;
use agent::wire::{DriveOrder, Driven};
use experiment::driver::{Driver, RunContext};
use experiment::{ResolvedCondition, Target};

/// Requests of the first run by count: few, so that a slow server finishes soon.
const FIRST_REQUESTS: u64 = 200;
/// Duration from which a first run gives the rate well enough.
const FIRST_ENOUGH_S: f64 = 0.5;

/// The warning about a driver's clock, if it has one.
pub(crate) fn clock_notice(driver: &Driver) -> Option<String> {
    let clock = driver.clock.as_ref()?;
    Some(format!(
        "latency by `{}` is measured by its own clock, in a closed loop unless a rate is set: \
         {clock}",
        driver.name
    ))
}

/// Warm-up, closed loop and open loop by outside drivers.
///
/// # Errors
/// When all subjects are affected; the failure of one is an outcome.
pub(crate) fn measure(
    cx: &mut Context<'_>,
    setup: &GroupSetup<'_>,
    random: &mut fastrand::Rng,
    found: &mut Findings,
) -> Result<Ending, AgentError> {
    let resolved = setup.resolved;
    let recipes = cx.options.recipes;
    let cpus = cx.placement.load_cpus.len().max(1) as u32;
    let mut tool_trials = Vec::new();
    for one in setup.ready {
        let name = &one.subject.driver.name;
        match recipes.driver(name) {
            Some(driver) => {
                let from = resolved.load.host.as_deref();
                let programs = cx.testbed.driver_programs(from, driver)?;
                tool_trials.push(ToolTrial::new(one, driver, programs, &resolved.load, cpus));
            }
            None => {
                let failed = Outcome::Failed {
                    reason: format!("no driver is called `{name}`"),
                    cause: readings::FailureCause::Other,
                };
                found.outcomes.push((one.planned.clone(), failed));
            }
        }
    }
    let measured = measure_runs(cx, setup, &mut tool_trials, random, found);
    for tool_trial in tool_trials {
        let planned = &tool_trial.ready.planned;
        if measured.is_ok() || tool_trial.failure.is_some() {
            let version = cx.driver_versions.get(&tool_trial.driver.name);
            let version = version.cloned().flatten();
            let outcome = tool_trial.outcome(resolved, &cx.placement.load_cpus, version);
            found.outcomes.push((planned.clone(), outcome));
        }
        found.logs.push((planned.trial, tool_trial.files));
    }
    measured.map(|()| Ending::Complete)
}

fn measure_runs(
    cx: &mut Context<'_>,
    setup: &GroupSetup<'_>,
    tool_trials: &mut [ToolTrial<'_>],
    random: &mut fastrand::Rng,
    found: &mut Findings,
) -> Result<(), AgentError> {
    let (resolved, group) = (setup.resolved, setup.group);
    let (design, windows) = (&cx.options.experiment.design, cx.windows);
    let warmup_s = schedule::outside_warm_up_s(design.warmup);
    cx.phase("warming up");
    let mut slowest_s: f64 = 0.0;
    for tool_trial in tool_trials.iter_mut() {
        if let Some(run) = warm_up(cx, resolved, tool_trial, warmup_s)? {
            slowest_s = slowest_s.max(tool_trial.answer_s(&run, &resolved.load));
        }
    }
    cx.phase("throughput");
    let (count, seconds) = schedule::outside_runs(windows.closed, windows.slice, slowest_s);
    let closed = (Pacing::Closed, count, seconds, warmup_s);
    rounds(cx, resolved, tool_trials, closed, random)?;
    if cx.block == 1 && !cx.stopped() {
        let few = tool_trials
            .iter()
            .filter_map(|one| one.few_answers(&resolved.load, &group.condition, warmup_s > 0));
        found.warnings.extend(few);
    }
    let all_open = tool_trials
        .iter()
        .all(|tool_trial| tool_trial.driver.has_open_loop());
    let window = setup.latency_window(cx);
    if window.is_zero() || !all_open || cx.stopped() {
        return Ok(());
    }
    let readings: Vec<LoadReading> = tool_trials
        .iter()
        .filter(|tool_trial| tool_trial.failure.is_none())
        .map(|tool_trial| tool_trial.load(Pacing::Closed, &resolved.load, &[]))
        .collect();
    let rate = setup.wanted.rate.or_else(|| {
        let all = readings.len() == setup.ready.len();
        all.then(|| choose_rate(setup, &readings, found))?
    });
    if let Some(rate_per_s) = rate {
        cx.phase(&format!("latency at {rate_per_s} requests/s"));
        let (count, seconds) = schedule::outside_runs(window, windows.slice, slowest_s);
        let open = (Pacing::Open { rate_per_s }, count, seconds, warmup_s);
        rounds(cx, resolved, tool_trials, open, random)?;
    }
    Ok(())
}

/// A discarded run, unless the driver warms up by itself. With a driver that counts requests it
/// also gives the rate. Returns the run.
fn warm_up(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    tool_trial: &mut ToolTrial<'_>,
    warmup_s: u64,
) -> Result<Option<DriverRun>, AgentError> {
    let counts = tool_trial.driver.counts_requests();
    if (warmup_s == 0 || tool_trial.driver.warms_up()) && !counts {
        return Ok(None);
    }
    let duration_s = warmup_s.max(1);
    let first = u64::from(resolved.load.connections).saturating_mul(2);
    let mut tool_run = ToolRun {
        name: "warm-up",
        pacing: Pacing::Closed,
        duration_s,
        warmup_s: 0,
        requests: first.max(FIRST_REQUESTS),
        limit: tool_trial.limit(&resolved.load, 10 * duration_s),
    };
    let mut run = drive(cx, resolved, tool_trial, &tool_run)?;
    if let Some((first, _)) = &run
        && counts
        && first.duration_s < FIRST_ENOUGH_S
    {
        tool_trial.rate_per_s = first.requests as f64 / first.duration_s;
        tool_run.requests = tool_trial.requests_in(duration_s, &resolved.load);
        run = drive(cx, resolved, tool_trial, &tool_run)?;
    }
    Ok(run.map(|(run, _)| run))
}

fn rounds(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    tool_trials: &mut [ToolTrial<'_>],
    (pacing, count, seconds, warmup_s): (Pacing, usize, u64, u64),
    random: &mut fastrand::Rng,
) -> Result<(), AgentError> {
    let mut order: Vec<usize> = (0..tool_trials.len()).collect();
    let loop_name = match pacing {
        Pacing::Closed => "closed",
        Pacing::Open { .. } => "open",
    };
    for round in 1..=count {
        random.shuffle(&mut order);
        for &at in &order {
            let tool_trial = &mut tool_trials[at];
            let tool_run = ToolRun {
                name: &format!("{loop_name}-{round}"),
                pacing,
                duration_s: seconds,
                warmup_s,
                requests: tool_trial.requests_in(seconds, &resolved.load),
                limit: tool_trial.limit(&resolved.load, seconds + warmup_s),
            };
            if let Some((run, driven)) = drive(cx, resolved, tool_trial, &tool_run)? {
                tool_trial.add_run(run, &driven);
            }
        }
    }
    Ok(())
}

/// Runs a driver once. `None` if it fails or has failed before, or the run was stopped.
fn drive(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    tool_trial: &mut ToolTrial<'_>,
    tool_run: &ToolRun<'_>,
) -> Result<Option<(DriverRun, Driven)>, AgentError> {
    if tool_trial.failure.is_some() || cx.stopped() {
        return Ok(None);
    }
    let context = run_context(cx, resolved, tool_trial, tool_run);
    let filled = tool_trial
        .driver
        .command(&context)
        .and_then(|command| Ok((command, tool_trial.driver.environment(&context)?)));
    let (command, env) = match filled {
        Ok(filled) => filled,
        Err(error) => {
            tool_trial.failure = Some(error.to_string());
            return Ok(None);
        }
    };
    let from = resolved.load.host.as_deref();
    let (watch, mut watch_others) = cx.testbed.watched(from, resolved);
    watch_others.extend(tool_trial.ready.outside.running.clone());
    let order = DriveOrder {
        command: command.clone(),
        env,
        cpus: cx.placement.load_cpus.clone(),
        limit_ms: tool_run.limit.as_millis() as u64,
        watch,
        watch_others,
    };
    let remote = cx.testbed.start_remote_sampling(from, false)?;
    let driven = match cx.testbed.agent(from)?.drive(order, cx.stop) {
        Ok(mut driven) => {
            let measured = std::slice::from_mut(&mut driven.measured);
            cx.testbed.add_remote_samples(from, remote, measured)?;
            driven
        }
        // A driver that does not start fails its subject; a dead server fails the group.
        Err(AgentError::Failed(reason)) if reason.starts_with("cannot start") => {
            tool_trial.failure = Some(format!("driver `{}`: {reason}", tool_trial.driver.name));
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    tool_trial.save_output(tool_run.name, &command, &driven);
    if cx.stopped() {
        return Ok(None);
    }
    match tool_trial.read(tool_run, command, &driven) {
        Ok(run) => {
            (cx.emit)(RunEvent::Load {
                subject: tool_trial.ready.planned.subject.clone(),
                requests: run.requests,
                errors: run.errors.total(),
            });
            Ok(Some((run, driven)))
        }
        Err(reason) => {
            tool_trial.failure = Some(reason);
            Ok(None)
        }
    }
}

fn run_context(
    cx: &Context<'_>,
    resolved: &ResolvedCondition,
    tool_trial: &ToolTrial<'_>,
    tool_run: &ToolRun<'_>,
) -> RunContext {
    let load = &resolved.load;
    let subject = &tool_trial.ready.subject;
    let expect = &cx.options.experiment.expect;
    RunContext {
        scheme: subject.scheme.clone(),
        host: host(&subject.target, tool_trial.ready.address),
        port: tool_trial.ready.address.port(),
        path: subject.path.clone(),
        connections: load.connections,
        http: subject.http,
        streams: subject.streams.unwrap_or(1),
        quic_congestion: load.quic_congestion,
        threads: tool_trial.threads,
        duration_s: tool_run.duration_s,
        warmup_s: tool_run.warmup_s,
        requests: tool_run.requests,
        rate_per_s: match tool_run.pacing {
            Pacing::Closed => None,
            Pacing::Open { rate_per_s } => Some(rate_per_s),
        },
        keepalive: load.keepalive,
        requests_per_connection: load.requests_per_connection,
        timeout: load.timeout,
        method: load.method.clone(),
        headers: load.headers.clone(),
        body: load.body().map(Into::into),
        expect_status: expect.status,
        expect_contains: expect.contains.clone(),
        tls: load.tls.clone(),
        params: subject.driver.params.clone(),
        programs: tool_trial.programs.clone(),
        weigh: cx
            .testbed
            .hosts
            .get(load.host.as_deref())
            .and_then(|host| host.remote_program())
            .unwrap_or_else(|| cx.options.weigh.to_path_buf()),
    }
}

/// The host name in requests: a given address's own, since servers may tell their names apart, and
/// the IP address of a started server.
fn host(target: &Target, address: SocketAddr) -> String {
    match target {
        Target::Address(text) => text
            .rsplit_once(':')
            .map_or(text.as_str(), |(host, _)| host)
            .to_owned(),
        Target::Server(_) => address.ip().to_string(),
    }
}

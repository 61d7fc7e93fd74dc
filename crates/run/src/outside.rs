//! A group whose load is made by outside drivers: warm-up, then runs in rounds of random order.

mod tool_trial;
mod words;

use std::net::SocketAddr;

use readings::{DriverRun, LoadReading, Outcome, Pacing};
use tool_trial::{Outside, Wanted};

use crate::group::{GroupResult, Ready, Runner};
use crate::rate::choose_rate;
use crate::{RunEvent, schedule};
use agent::AgentError;
use agent::wire::{DriveOrder, Driven};
use experiment::driver::{Driver, RunContext};
use experiment::plan::Group;
use experiment::{ResolvedCondition, Target};

/// A first run by count has so few requests that a slow server answers them soon.
const FIRST_REQUESTS: u64 = 200;
/// A first run that took so long tells the rate well enough.
const FIRST_ENOUGH_S: f64 = 0.5;

/// What the reader of a result has to know about a driver's latencies.
pub(super) fn clock_notice(driver: &Driver) -> Option<String> {
    let clock = driver.clock.as_ref()?;
    Some(format!(
        "latency by `{}` is by its own clock, and that of a closed loop unless a rate was \
         offered: {clock}",
        driver.name
    ))
}

impl<F: FnMut(RunEvent)> Runner<'_, F> {
    /// Makes the trials of a group whose subjects all have outside drivers.
    pub(super) fn measure_outside(
        &mut self,
        resolved: &ResolvedCondition,
        group: &Group,
        ready: &[Ready],
        rate: Option<f64>,
        random: &mut fastrand::Rng,
        result: &mut GroupResult,
    ) -> Result<(), AgentError> {
        let recipes = self.options.recipes;
        let cpus = self.placement.load_cpus.len().max(1) as u32;
        let mut lanes = Vec::new();
        for one in ready {
            let name = &one.subject.driver.name;
            match recipes.driver(name) {
                Some(driver) => {
                    let from = resolved.load.host.as_deref();
                    let programs = self.agents.driver_programs(from, driver)?;
                    lanes.push(Outside::new(one, driver, programs, &resolved.load, cpus));
                }
                None => result.outcomes.push((
                    one.planned.clone(),
                    Outcome::Failed {
                        reason: format!("no driver is called `{name}`"),
                    },
                )),
            }
        }
        let measured = self.measure_lanes(resolved, group, ready, &mut lanes, rate, random, result);
        for lane in lanes {
            result
                .logs
                .push((lane.ready.planned.trial, lane.files.clone()));
            if measured.is_ok() || lane.failure.is_some() {
                let version = self.versions.get(&lane.driver.name).cloned().flatten();
                let outcome = lane.outcome(&resolved.load, &self.placement.load_cpus, version);
                result.outcomes.push((lane.ready.planned.clone(), outcome));
            }
        }
        measured
    }

    #[allow(clippy::too_many_arguments)] // one caller, and each is used once
    fn measure_lanes(
        &mut self,
        resolved: &ResolvedCondition,
        group: &Group,
        ready: &[Ready],
        lanes: &mut [Outside<'_>],
        rate: Option<f64>,
        random: &mut fastrand::Rng,
        result: &mut GroupResult,
    ) -> Result<(), AgentError> {
        let design = self.sequential.design(self.options.experiment);
        let warmup_s = schedule::outside_warm_up_s(design.warmup);
        self.phase("warming up");
        for lane in lanes.iter_mut() {
            self.warm_up(resolved, lane, warmup_s)?;
        }
        self.phase("throughput");
        let (count, seconds) = schedule::outside_runs(design.window, design.slice);
        let closed = (Pacing::Closed, count, seconds, warmup_s);
        self.rounds(resolved, lanes, closed, random)?;
        let all_open = lanes.iter().all(|lane| lane.driver.has_open_loop());
        if design.latency_window.is_zero() || !all_open || self.stopped() {
            return Ok(());
        }
        let readings: Vec<LoadReading> = lanes
            .iter()
            .filter(|lane| lane.failure.is_none())
            .map(|lane| lane.load(Pacing::Closed, &resolved.load, &[]))
            .collect();
        let rate = rate.or_else(|| {
            let all = readings.len() == ready.len();
            all.then(|| choose_rate(group, ready, resolved, &readings, result))?
        });
        if let Some(rate_per_s) = rate {
            self.phase(&format!("latency at {rate_per_s} requests/s"));
            let (count, seconds) = schedule::outside_runs(design.latency_window, design.slice);
            let open = (Pacing::Open { rate_per_s }, count, seconds, warmup_s);
            self.rounds(resolved, lanes, open, random)?;
        }
        Ok(())
    }

    /// A run that is thrown away, unless the driver warms up by itself; with one that counts
    /// requests it also tells how many a second there are.
    fn warm_up(
        &mut self,
        resolved: &ResolvedCondition,
        lane: &mut Outside<'_>,
        warmup_s: u64,
    ) -> Result<(), AgentError> {
        let counts = lane.driver.counts_requests();
        if (warmup_s == 0 || lane.driver.warms_up()) && !counts {
            return Ok(());
        }
        let duration_s = warmup_s.max(1);
        let first = u64::from(resolved.load.connections).saturating_mul(2);
        let mut wanted = Wanted {
            name: "warm-up",
            pacing: Pacing::Closed,
            duration_s,
            warmup_s: 0,
            requests: first.max(FIRST_REQUESTS),
            limit: lane.limit(&resolved.load, 10 * duration_s),
        };
        let run = self.drive(resolved, lane, &wanted)?;
        if let Some((run, _)) = run.filter(|(run, _)| counts && run.duration_s < FIRST_ENOUGH_S) {
            lane.rate_per_s = run.requests as f64 / run.duration_s;
            wanted.requests = lane.requests_in(duration_s, &resolved.load);
            self.drive(resolved, lane, &wanted)?;
        }
        Ok(())
    }

    fn rounds(
        &mut self,
        resolved: &ResolvedCondition,
        lanes: &mut [Outside<'_>],
        (pacing, count, seconds, warmup_s): (Pacing, usize, u64, u64),
        random: &mut fastrand::Rng,
    ) -> Result<(), AgentError> {
        let mut order: Vec<usize> = (0..lanes.len()).collect();
        let words = match pacing {
            Pacing::Closed => "closed",
            Pacing::Open { .. } => "open",
        };
        for round in 1..=count {
            random.shuffle(&mut order);
            for &at in &order {
                let lane = &mut lanes[at];
                let wanted = Wanted {
                    name: &format!("{words}-{round}"),
                    pacing,
                    duration_s: seconds,
                    warmup_s,
                    requests: lane.requests_in(seconds, &resolved.load),
                    limit: lane.limit(&resolved.load, seconds + warmup_s),
                };
                if let Some((run, driven)) = self.drive(resolved, lane, &wanted)? {
                    lane.take(run, &driven);
                }
            }
        }
        Ok(())
    }

    /// Runs a lane's driver once. `None` when it failed, now or before, or the run was stopped.
    fn drive(
        &mut self,
        resolved: &ResolvedCondition,
        lane: &mut Outside<'_>,
        wanted: &Wanted<'_>,
    ) -> Result<Option<(DriverRun, Driven)>, AgentError> {
        if lane.failure.is_some() || self.stopped() {
            return Ok(None);
        }
        let context = self.context(resolved, lane, wanted);
        let filled = lane
            .driver
            .command(&context)
            .and_then(|command| Ok((command, lane.driver.environment(&context)?)));
        let (command, env) = match filled {
            Ok(filled) => filled,
            Err(error) => {
                lane.failure = Some(error.to_string());
                return Ok(None);
            }
        };
        let from = resolved.load.host.as_deref();
        let (watch, watch_others) = self.agents.watched(from, resolved);
        let order = DriveOrder {
            command: command.clone(),
            env,
            cpus: self.placement.load_cpus.clone(),
            limit_ms: wanted.limit.as_millis() as u64,
            watch,
            watch_others,
        };
        let remote = self.agents.start_remote_sampling(from)?;
        let driven = match self.agents.of(from)?.drive(order, self.stop) {
            Ok(mut driven) => {
                let measured = std::slice::from_mut(&mut driven.measured);
                self.agents.add_remote_samples(from, remote, measured)?;
                driven
            }
            // A driver that cannot be started is that subject's failure; a server that has ended
            // is everyone's.
            Err(AgentError::Failed(reason)) if reason.starts_with("cannot start") => {
                lane.failure = Some(format!("driver `{}`: {reason}", lane.driver.name));
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        lane.keep(wanted.name, &command, &driven);
        if self.stopped() {
            return Ok(None);
        }
        match lane.read(wanted, command, &driven) {
            Ok(run) => {
                (self.tell)(RunEvent::Load {
                    subject: lane.ready.planned.subject.clone(),
                    requests: run.requests,
                    errors: run.errors.total(),
                });
                Ok(Some((run, driven)))
            }
            Err(reason) => {
                lane.failure = Some(reason);
                Ok(None)
            }
        }
    }

    fn context(
        &self,
        resolved: &ResolvedCondition,
        lane: &Outside<'_>,
        wanted: &Wanted<'_>,
    ) -> RunContext {
        let load = &resolved.load;
        let subject = &lane.ready.subject;
        let expect = &self.options.experiment.expect;
        RunContext {
            scheme: subject.scheme.clone(),
            host: host(&subject.target, lane.ready.address),
            port: lane.ready.address.port(),
            path: subject.path.clone(),
            connections: load.connections,
            threads: lane.threads,
            duration_s: wanted.duration_s,
            warmup_s: wanted.warmup_s,
            requests: wanted.requests,
            rate_per_s: match wanted.pacing {
                Pacing::Closed => None,
                Pacing::Open { rate_per_s } => Some(rate_per_s),
            },
            keepalive: load.keepalive,
            requests_per_connection: load.requests_per_connection,
            timeout: load.timeout,
            method: load.method.clone(),
            headers: load.headers.clone(),
            body: load.body.clone(),
            expect_status: expect.status,
            expect_contains: expect.contains.clone(),
            params: subject.driver.params.clone(),
            programs: lane.programs.clone(),
            weigh: self
                .agents
                .program(load.host.as_deref())
                .unwrap_or_else(|| self.options.weigh.to_path_buf()),
        }
    }
}

/// The name that a subject is asked by: its own where it runs already, so that a server can tell
/// its names apart, and the address of a server that was started.
fn host(target: &Target, address: SocketAddr) -> String {
    match target {
        Target::Address(text) => text
            .rsplit_once(':')
            .map_or(text.as_str(), |(host, _)| host)
            .to_owned(),
        Target::Server(_) => address.ip().to_string(),
    }
}

//! One condition in one block: servers up, warm-up, slices, servers down.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use readings::{Outcome, Probed, RateChoice, Reading, ServerReading};
use serde_json::Value;

use crate::agents::Agents;
use crate::rate::choose_rate;
use crate::{CpuPlacement, RunEvent, RunOptions, schedule, sequential};
use agent::AgentError;
use agent::wire::{AwaitServer, BodyOrder, LaneOrder, LoadOrder, Loaded, Order, StintOrder};
use experiment::plan::{Group, PlannedTrial};
use experiment::{BodyCheck, Expect, LoadSpec, ResolvedCondition, SubjectSpec, Target};

/// How long a subject may take to answer as expected once its servers are ready.
const SUBJECT_READY_MS: u64 = 5_000;

pub(super) struct Runner<'a, F: FnMut(RunEvent)> {
    pub(super) options: &'a RunOptions<'a>,
    pub(super) placement: &'a CpuPlacement,
    pub(super) agents: &'a mut Agents,
    pub(super) stop: &'a AtomicBool,
    pub(super) seed: u64,
    pub(super) block: u32,
    pub(super) tell: &'a mut F,
    /// What each server was started with, for `hosts.json`.
    pub(super) configurations: BTreeMap<String, Value>,
    /// The versions of the outside drivers, by name.
    pub(super) versions: &'a BTreeMap<String, Option<String>>,
    /// Conditions whose subjects are measured one after the other.
    pub(super) sequential: &'a mut sequential::Conditions,
}

/// What a group came to. It is empty when the run was stopped inside it.
#[derive(Default)]
pub(super) struct GroupResult {
    pub(super) outcomes: Vec<(PlannedTrial, Outcome)>,
    pub(super) rate: Option<RateChoice>,
    /// Logs, by trial and file name.
    pub(super) logs: Vec<(u32, BTreeMap<String, String>)>,
    /// What the reader of the result should know.
    pub(super) warnings: Vec<String>,
    pub(super) agent_lost: bool,
    /// Why the subjects cannot be measured side by side; nothing was measured then.
    pub(super) disturbed: Option<String>,
}

impl GroupResult {
    fn has_failures(&self) -> bool {
        let is_failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed { .. });
        self.disturbed.is_some() || self.outcomes.iter().any(|(_, one)| is_failed(one))
    }

    /// Puts one reason for all trials of a group, after a part was lost that all of them need:
    /// nobody knows which of them were measured before.
    fn all_failed(&mut self, group: &Group, reason: &str) {
        let failed = |lane: &PlannedTrial| {
            let reason = reason.to_owned();
            (lane.clone(), Outcome::Failed { reason })
        };
        self.outcomes = group.trials.iter().map(failed).collect();
        self.rate = None;
        self.disturbed = None;
        self.agent_lost = true;
    }
}

/// A subject that can be measured.
pub(super) struct Ready {
    pub(super) planned: PlannedTrial,
    pub(super) subject: SubjectSpec,
    pub(super) address: SocketAddr,
    /// The host that it is asked from.
    pub(super) from: Option<String>,
}

impl<F: FnMut(RunEvent)> Runner<'_, F> {
    pub(super) fn phase(&mut self, what: &str) {
        (self.tell)(RunEvent::Phase { what: what.into() });
    }

    pub(super) fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Makes the trials of a group with all its subjects up at once. `rate` is the common rate when
    /// it is known already.
    pub(super) fn side_by_side(&mut self, group: &Group, rate: Option<f64>) -> GroupResult {
        let resolved = sequential::resolved(self.options.experiment, group);
        let mut result = GroupResult::default();
        let mut up = Vec::new();
        // Other ports than in the block's other trials: what a balancer in the kernel, or a socket
        // that waits, remembers of their connections would be taken for those of this one.
        let first = group.trials.iter().map(|lane| lane.trial).min();
        let salt = u64::from(first.unwrap_or(0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = fastrand::Rng::with_seed(self.seed ^ salt);
        self.phase("starting servers");
        let failure = match self.start_servers(&resolved, &mut up, &mut random) {
            Ok(addresses) if resolved.events.is_empty() => self
                .measure(&resolved, group, &addresses, rate, &mut random, &mut result)
                .err(),
            Ok(addresses) => self
                .measure_events(&resolved, group, &up, &addresses, rate, &mut result)
                .err(),
            Err(reason) => {
                let design = &self.options.experiment.design;
                self.sequential
                    .do_not_fit(design, group, &resolved, &reason, &mut result);
                Some(reason)
            }
        };
        let lost = self
            .agents
            .lost_part(failure.is_some() || result.has_failures());
        if self.stopped() {
            result.outcomes.clear();
        } else if let Some(reason) = lost {
            result.all_failed(group, &reason);
        } else if result.disturbed.is_some() {
            result.outcomes.clear();
        } else if let Some(reason) = failure {
            for lane in &group.trials {
                if !result.outcomes.iter().any(|(l, _)| l.trial == lane.trial) {
                    let reason = reason.to_string();
                    result
                        .outcomes
                        .push((lane.clone(), Outcome::Failed { reason }));
                }
            }
            result.agent_lost = matches!(reason, AgentError::Lost(_));
        }
        self.phase("stopping servers");
        self.stop_servers(group, &up, &mut result);
        result.agent_lost |= self.agents.lost_part(false).is_some();
        result
    }

    fn measure(
        &mut self,
        resolved: &ResolvedCondition,
        group: &Group,
        addresses: &BTreeMap<String, SocketAddr>,
        rate: Option<f64>,
        random: &mut fastrand::Rng,
        result: &mut GroupResult,
    ) -> Result<(), AgentError> {
        let ready = self.ready_subjects(resolved, group, addresses, result)?;
        if ready.is_empty() {
            return Ok(());
        }
        // An experiment with both was refused: they cannot alternate.
        if ready.iter().any(|one| !one.subject.driver.is_engine()) {
            return self.measure_outside(resolved, group, &ready, rate, random, result);
        }
        let design = self.sequential.design(self.options.experiment);
        let lanes = ready.len();
        self.phase("warming up");
        let warm = self.load(resolved, &ready, schedule::warm_up(lanes, design.warmup))?;
        if self.stopped() || self.disturb_each_other(resolved, group, result)? {
            return Ok(());
        }
        let median_ms = schedule::median_ms(&warm.readings);
        let slices = schedule::throughput(lanes, design.window, design.slice, median_ms, random);
        self.phase("throughput");
        let closed = self.load(resolved, &ready, slices)?;
        let mut open = None;
        if !design.latency_window.is_zero() && !self.stopped() {
            let rate =
                rate.or_else(|| choose_rate(group, &ready, resolved, &closed.readings, result));
            if let Some(rate_per_s) = rate {
                // A lightly loaded path answers sooner than a saturated one.
                let slices = schedule::latency(
                    lanes,
                    design.latency_window,
                    rate_per_s,
                    median_ms.min(40.0),
                    random,
                );
                self.phase(&format!("latency at {rate_per_s} requests/s"));
                open = Some(self.load(resolved, &ready, slices)?);
            }
        }
        self.tell_what_the_network_does(resolved, &ready, &closed, result);
        for (number, one) in ready.into_iter().enumerate() {
            let reading = reading(number, &one, &closed, open.as_ref());
            result
                .outcomes
                .push((one.planned, Outcome::Done(Box::new(reading))));
        }
        Ok(())
    }

    /// Looks which subjects answer as expected; those that do not fail here.
    pub(super) fn ready_subjects(
        &mut self,
        resolved: &ResolvedCondition,
        group: &Group,
        addresses: &BTreeMap<String, SocketAddr>,
        result: &mut GroupResult,
    ) -> Result<Vec<Ready>, AgentError> {
        let expect = self.options.experiment.expect.clone();
        let mut ready = Vec::new();
        for lane in &group.trials {
            let Some(subject) = resolved.subjects.iter().find(|s| s.name == lane.subject) else {
                continue;
            };
            let from = resolved.load.host.as_deref();
            let outcome = match self.resolve(from, &subject.target, addresses) {
                Err(reason) => Err(reason),
                Ok(address) => {
                    let fields = [resolved.load.headers.as_slice(), &closing()].concat();
                    let request = match subject.scheme.as_str() {
                        "http" => request(subject, &resolved.load, &fields),
                        _ => String::new(),
                    };
                    let order = Order::Await(AwaitServer {
                        server: None,
                        address,
                        request,
                        raw: false,
                        status: Some(expect.status),
                        contains: expect.contains.clone(),
                        timeout_ms: SUBJECT_READY_MS,
                    });
                    match self.agents.of(from)?.ask_unless(&order, self.stop) {
                        Ok(_) => Ok(address),
                        Err(AgentError::Failed(reason)) => Err(reason),
                        Err(lost) => return Err(lost),
                    }
                }
            };
            match outcome {
                Ok(address) => ready.push(Ready {
                    planned: lane.clone(),
                    subject: subject.clone(),
                    address,
                    from: resolved.load.host.clone(),
                }),
                Err(reason) => result.outcomes.push((
                    lane.clone(),
                    Outcome::Failed {
                        reason: format!("subject `{}`: {reason}", lane.subject),
                    },
                )),
            }
        }
        Ok(ready)
    }

    /// The order for a load on subjects.
    pub(super) fn order(
        &self,
        resolved: &ResolvedCondition,
        ready: &[Ready],
        stints: Vec<StintOrder>,
    ) -> LoadOrder {
        let load = &resolved.load;
        let expect = &self.options.experiment.expect;
        let cpus = self.placement.load_cpus.clone();
        let threads = load.threads.unwrap_or(cpus.len().max(1) as u32);
        let (watch, watch_others) = self.agents.watched(load.host.as_deref(), resolved);
        LoadOrder {
            lanes: ready.iter().map(|one| lane(one, load, expect)).collect(),
            stints,
            threads: threads.clamp(1, load.connections) as usize,
            requests_per_connection: if load.keepalive {
                load.requests_per_connection
            } else {
                Some(1)
            },
            timeout_ms: load.timeout.as_millis() as u64,
            cpus,
            spin: self.placement.load_alone,
            io: None,
            watch,
            watch_others,
            seed: self.seed,
            sample_scheduling: false,
            quota: None,
            ports: None,
            row_ms: None,
            tell_windows: false,
        }
    }

    pub(super) fn load(
        &mut self,
        resolved: &ResolvedCondition,
        ready: &[Ready],
        stints: Vec<StintOrder>,
    ) -> Result<Loaded, AgentError> {
        let hosts = self.options.experiment.hosts.iter();
        let mut links = hosts.filter_map(|host| host.link);
        let stints = match stints.first() {
            // A lost SYN is sent again after a second, which would be some slices.
            Some(first) if links.any(|link| link.loss > 0.0) => {
                let connections = resolved.load.connections;
                let opening = schedule::opening(ready.len(), connections, first.pacing);
                [opening, stints].concat()
            }
            _ => stints,
        };
        let order = self.order(resolved, ready, stints);
        self.load_as(order, ready)
    }

    /// Has an order carried out and tells how it goes on.
    pub(super) fn load_as(
        &mut self,
        order: LoadOrder,
        ready: &[Ready],
    ) -> Result<Loaded, AgentError> {
        let subjects: Vec<String> = order
            .stints
            .iter()
            .map(|stint| ready[stint.lane].planned.subject.clone())
            .collect();
        let tell = &mut *self.tell;
        let from = ready.first().and_then(|one| one.from.as_deref());
        let remote = self.agents.start_remote_sampling(from)?;
        let agent = self.agents.of(from)?;
        let mut loaded = agent.load(order, self.stop, |stint, requests, errors| {
            tell(RunEvent::Load {
                subject: subjects.get(stint).cloned().unwrap_or_default(),
                requests,
                errors,
            });
        })?;
        self.agents
            .add_remote_samples(from, remote, &mut loaded.measured)?;
        Ok(loaded)
    }
}

/// What asks a server to close the connection after its answer.
pub(super) fn closing() -> Vec<(String, String)> {
    vec![("Connection".into(), "close".into())]
}

fn request(subject: &SubjectSpec, load: &LoadSpec, fields: &[(String, String)]) -> String {
    let host = match &subject.target {
        Target::Server(name) => name.clone(),
        Target::Address(text) => text.clone(),
    };
    let mut fields = fields.to_vec();
    let body = load.body.clone().unwrap_or_default();
    if load.body.is_some() {
        fields.push(("Content-Length".into(), body.len().to_string()));
    }
    let head = net::fetch::request(&load.method, &host, &subject.path, &fields);
    String::from_utf8_lossy(&head).into_owned() + &body
}

fn lane(one: &Ready, load: &LoadSpec, expect: &Expect) -> LaneOrder {
    let mut fields = load.headers.clone();
    if !load.keepalive {
        // The server shall close first: the waiting state of a closed connection is then its own.
        fields.extend(closing());
    }
    LaneOrder {
        address: one.address,
        request: request(&one.subject, load, &fields),
        connections: load.connections,
        status: Some(expect.status),
        contains: expect.contains.clone(),
        body: match expect.body {
            BodyCheck::Same => BodyOrder::Same,
            BodyCheck::Varies => BodyOrder::Varies,
            BodyCheck::Auto => BodyOrder::Auto,
        },
    }
}

fn reading(number: usize, one: &Ready, closed: &Loaded, open: Option<&Loaded>) -> Reading {
    let throughput = closed.readings.get(number).cloned();
    let latency = open.and_then(|open| open.readings.get(number).cloned());
    let empty = BTreeMap::new();
    let measured = closed.measured.get(number);
    let cpu = measured.map_or(&empty, |measured| &measured.cpu_s);
    let upstream_connections_per_request = throughput.as_ref().and_then(|load| {
        let accepted = measured?.accepted?;
        let answered = load.requests_all + load.errors_all.wrong_answers();
        (answered > 0).then(|| accepted.saturating_sub(load.connects) as f64 / answered as f64)
    });
    Reading {
        servers: one
            .subject
            .through
            .iter()
            .map(|server| ServerReading {
                server: server.clone(),
                cpu_s: cpu.get(server).copied().unwrap_or(0.0),
            })
            .collect(),
        throughput,
        latency,
        upstream_connections_per_request,
        probed: probed(number, one, closed),
        latency_probed: open.and_then(|open| probed(number, one, open)),
        ..Reading::default()
    }
}

/// What was sampled while a load ran on a subject, of the servers that it goes through.
pub(super) fn probed(number: usize, one: &Ready, loaded: &Loaded) -> Option<Probed> {
    let metrics = loaded.measured.get(number)?.metrics.clone()?;
    Some(metrics.of_servers(&one.subject.through))
}

//! The search for bottlenecks, after the last block. It probes each subject under each condition
//! with a few short closed loops in random order. Some probes run as in the experiment; each of the
//! others changes one thing. `verdict` interprets the readings.

use std::collections::BTreeMap;
use std::time::Duration;

use readings::{BottleneckReading, Condition, LoadReading, NO_PORT, Pacing, Probe, WrongKind};

use crate::context::Context;
use crate::context::segments::segment;
use crate::group::alone::Alone;
use crate::group::perturbations::{Perturbation, not_tried, perturbations, unchanged};
use crate::measure::schedule;
use crate::testbed::copies::queues_of_path;
use crate::testbed::{ReadySubject, unexpected};
use agent::AgentError;
use agent::wire::{Answer, Order, OtherServer};
use experiment::{ResolvedCondition, ServerSpec, Target};

/// Probes of each perturbation.
const ROUNDS: usize = 3;
/// Attempts at the first probe.
const FIRST_ATTEMPTS: usize = 3;
const WINDOW_MIN_MS: f64 = 400.0;
/// Like [`WINDOW_MIN_MS`], where each request opens a connection. A SYN that a full accept queue
/// drops is retransmitted after 1 s (RFC 6298), and only then does the drop show.
const OPENING_MIN_MS: f64 = 1_200.0;
/// Median response times that a window lasts.
const ANSWERS: f64 = 12.0;
const WINDOW_MAX_MS: f64 = 4_000.0;
/// Shortest ramp-up; otherwise two median response times.
const RAMP_UP_MS: f64 = 100.0;
const WARM_UP_MAX: Duration = Duration::from_millis(1_000);

/// The name of the links among sampled servers, whose names have no dots.
const LINKS: &str = "links.";

/// Probes one subject. `None` if the run was stopped meanwhile.
pub(crate) fn search(
    cx: &mut Context<'_>,
    condition: &Condition,
    subject: &str,
) -> Result<Option<BottleneckReading>, AgentError> {
    let alone = Alone::new(cx, condition, subject);
    let resolved = &alone.resolved;
    let load_host = resolved.load.host.as_deref();
    let (hosts, load_key) = match cx.options.experiment.hosts_are_machines() {
        true => (
            cx.testbed.machines_of(resolved)?,
            Some(cx.testbed.hosts.key(load_host)),
        ),
        false => (BTreeMap::new(), None),
    };
    let mut reading = BottleneckReading {
        condition: condition.clone(),
        subject: subject.to_owned(),
        client_cpus: cx.placement.load_cpus.clone(),
        cpus_of_servers: cpus_of_servers(cx, resolved),
        hosts,
        load_host: load_key,
        keepalive: resolved.load.keepalive && resolved.load.requests_per_connection != Some(1),
        link_bits_per_s: resolved
            .subjects
            .iter()
            .find(|one| one.name == subject)
            .and_then(|one| cx.testbed.slowest_link(resolved, one)),
        ports: cx.testbed.ports_that_run_out(load_host),
        server_ports: cx.testbed.ports_of_servers(resolved),
        ..BottleneckReading::default()
    };
    reading.server_cpus = server_cpus(&reading);
    cx.phase(&format!("looking for the bottleneck of {subject}"));
    let mut waiting = None;
    let probed = alone.with_servers(
        cx,
        |cx, ready, random| make_probes(cx, resolved, ready, random, &mut reading),
        |cx| waiting = waiting_ports(cx, load_host).ok(),
    );
    reading.waiting_at_failure = waiting;
    match probed {
        Ok(()) => {}
        Err(AgentError::Failed(why)) => reading.failed = Some(why),
        Err(lost) => return Err(lost),
    }
    Ok((!cx.stopped()).then_some(reading))
}

/// The ports of a host that are in TIME_WAIT.
fn waiting_ports(cx: &mut Context<'_>, host: Option<&str>) -> Result<u64, AgentError> {
    let order = Order::SampleScheduling {
        servers: Vec::new(),
        others: Vec::new(),
        duration_ms: 0,
    };
    match cx.testbed.agent(host)?.ask(&order)? {
        Answer::Scheduling(seen) => Ok(seen.ports.first().map_or(0, |ports| ports.waiting)),
        other => Err(unexpected(&other)),
    }
}

/// The CPUs of the servers on the load's machine.
fn server_cpus(reading: &BottleneckReading) -> Vec<u32> {
    let servers = reading.cpus_of_servers.iter();
    let beside = servers.filter(|(server, _)| reading.apart(server).is_none());
    let mut cpus: Vec<u32> = beside.flat_map(|(_, cpus)| cpus).copied().collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// The CPUs that each server may use: all allowed ones of its machine where it is not bound.
fn cpus_of_servers(cx: &Context<'_>, resolved: &ResolvedCondition) -> BTreeMap<String, Vec<u32>> {
    let of = |server: &ServerSpec| -> Vec<u32> {
        let own = &server.cpus;
        let mut cpus = match (own.is_empty(), cx.placement.server_cpus.is_empty()) {
            (false, _) => own.clone(),
            (true, false) => cx.placement.server_cpus.clone(),
            (true, true) => cx.testbed.usable_cpus(server.host.as_deref()),
        };
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    };
    let servers = resolved.servers.iter();
    servers
        .map(|server| (server.name.clone(), of(server)))
        .collect()
}

fn make_probes(
    cx: &mut Context<'_>,
    resolved: &ResolvedCondition,
    ready: &[ReadySubject],
    random: &mut fastrand::Rng,
    reading: &mut BottleneckReading,
) -> Result<(), AgentError> {
    let warmup = cx.warmup_alone(&reading.condition, WARM_UP_MAX);
    let warm = cx.load(resolved, ready, schedule::warm_up(1, warmup))?;
    let median_ms = schedule::median_ms(&warm.readings);
    let least_ms = match reading.keepalive {
        true => WINDOW_MIN_MS,
        false => OPENING_MIN_MS,
    };
    let ramp_up_ms = RAMP_UP_MS.max(2.0 * median_ms).min(WINDOW_MAX_MS);
    let window_ms = (ANSWERS * median_ms).clamp(least_ms, WINDOW_MAX_MS);
    let segment = segment(0, Pacing::Closed, ramp_up_ms, window_ms, Some(0));
    let mut base = cx.order(resolved, ready, vec![segment]);
    // Servers that ran before are left out: their CPUs are not known, and their CPU time must not
    // be limited.
    let is_started = |name: &String| resolved.servers.iter().any(|one| one.name == *name);
    base.watch_others.retain(|one| is_started(&one.server));
    // Longer waits, as for a lost SYN, give no further information.
    let enough = Duration::from_millis((ramp_up_ms + window_ms) as u64);
    let job = &mut base.job;
    job.timeout = job.timeout.min(enough);
    job.connect_timeout = job.timeout;
    reading.client_threads = job.threads as u32;
    base.sample_scheduling = true;
    base.watch_others.extend(link_process(cx));
    let none = unchanged(&base);
    if cx.stopped() {
        return Ok(());
    }
    let first = first_probe(cx, ready, &none)?;
    let mut perturbations = perturbations(cx, resolved, &base, &first, reading);
    perturbations.push(none);
    reading.probes.push(first);
    let mut last_failure = None;
    for _ in 0..ROUNDS {
        random.shuffle(&mut perturbations);
        for perturbation in &perturbations {
            if cx.stopped() {
                return Ok(());
            }
            match probe_once(cx, ready, perturbation) {
                Ok(probe) => reading.probes.push(probe),
                Err(AgentError::Failed(why)) => {
                    let text = not_tried(perturbation.change, &why);
                    if !reading.not_tried.contains(&text) {
                        reading.not_tried.push(text);
                    }
                    last_failure = Some(why);
                }
                Err(other) => return Err(other),
            }
        }
    }
    // Over a lossy link a probe may fail by chance. If all later ones fail, the server
    // does not answer.
    match last_failure {
        Some(why) if reading.probes.len() == 1 => Err(AgentError::Failed(why)),
        _ => Ok(()),
    }
}

/// The first probe without a change. Over a lossy link the request that precedes it may have no
/// answer in time, so it is tried more than once.
fn first_probe(
    cx: &mut Context<'_>,
    ready: &[ReadySubject],
    none: &Perturbation,
) -> Result<Probe, AgentError> {
    for _ in 1..FIRST_ATTEMPTS {
        match probe_once(cx, ready, none) {
            Err(AgentError::Failed(_)) => {}
            other => return other,
        }
    }
    probe_once(cx, ready, none)
}

fn probe_once(
    cx: &mut Context<'_>,
    ready: &[ReadySubject],
    perturbation: &Perturbation,
) -> Result<Probe, AgentError> {
    let scales_links = perturbation.link_factor != 1.0;
    let scaled = match scales_links {
        true => cx.testbed.hosts.scale_link_rates(perturbation.link_factor),
        false => Ok(()),
    };
    let loaded = scaled
        .and_then(|()| cx.testbed.set_host_quotas(&perturbation.hosts, true))
        .and_then(|()| cx.testbed.set_server_quotas(&perturbation.servers, true))
        .and_then(|()| cx.load_order(perturbation.order.clone(), ready));
    // Restore all, whatever failed.
    let unbound = cx.testbed.set_host_quotas(&perturbation.hosts, false);
    let unbound = unbound.and(cx.testbed.set_server_quotas(&perturbation.servers, false));
    let unscaled = match scales_links {
        true => cx.testbed.hosts.scale_link_rates(1.0),
        false => Ok(()),
    };
    unbound.and(unscaled)?;
    let loaded = loaded?;
    let mut seen = loaded.seen.unwrap_or_default();
    let links = seen.servers.remove(LINKS);
    // They have a network namespace of their own, without connections.
    seen.ports.retain(|one| one.servers != [LINKS]);
    // The sockets of a server that ran before are not known.
    let is_started = |one: &&ReadySubject| matches!(one.subject.target, Target::Server(_));
    let started = ready.first().filter(is_started);
    let through = started.map(|one| &one.subject.through);
    let through = through.filter(|servers| !servers.is_empty());
    let full = loaded
        .measured
        .first()
        .zip(through)
        .map(|(measured, servers)| {
            let queues = queues_of_path(&measured.accept_queues, servers);
            queues.iter().map(|queue| queue.full).sum()
        });
    match loaded.readings.first() {
        Some(load) => Ok(Probe {
            accept_queue_full: full,
            ..probe(perturbation, load, links, seen)
        }),
        None => Err(AgentError::Failed("the load measured nothing".into())),
    }
}

/// The process that carries packets in user space, to be sampled like a server: its thread may be
/// full before client or server is.
fn link_process(cx: &Context<'_>) -> Option<OtherServer> {
    Some(OtherServer {
        server: LINKS.to_owned(),
        pid: cx.testbed.hosts.link_process()?,
        also: Vec::new(),
        group: None,
        counts: None,
    })
}

fn probe(
    perturbation: &Perturbation,
    load: &LoadReading,
    links: Option<readings::ServerSample>,
    seen: readings::BottleneckSample,
) -> Probe {
    let response = load.response.quantiles();
    let no_port = load
        .wrong
        .iter()
        .any(|wrong| wrong.kind == WrongKind::Connection && wrong.found.contains(NO_PORT));
    Probe {
        change: perturbation.change,
        connections: perturbation.order.job.targets[0].connections,
        duration_s: load.duration_s,
        requests_per_s: load.requests_per_s(),
        latency_us_mean: response.mean,
        latency_us_p50: response.p50,
        latency_us_p99: response.p99,
        connect_us_max: load.connect.quantiles().max,
        connects: load.connects,
        requests_all: load.requests_all,
        errors_all: load.errors_all.total(),
        no_port: if no_port { load.errors_all.connect } else { 0 },
        accept_queue_full: None,
        bytes_per_s: load.bytes_read as f64 / load.duration_s.max(1e-9),
        client: load
            .client
            .threads
            .iter()
            .map(|thread| thread.cpu)
            .collect(),
        quota_cpus: perturbation.bound_cpus(),
        links,
        seen,
    }
}

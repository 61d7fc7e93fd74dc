//! The search for bottlenecks, after the last block. It probes each subject under each condition
//! with a few short closed loops in random order. Some probes run as in the experiment; each of the
//! others changes one thing. `verdict` interprets the readings.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use readings::{
    BottleneckReading, Change, Condition, LoadReading, NO_PORT, Pacing, Probe, WrongKind,
};

use crate::context::Context;
use crate::group::sequential;
use crate::group::servers::{start_servers, stop_servers};
use crate::group::{GroupResult, ReadySubject, ready_subjects};
use crate::measure::schedule;
use crate::testbed::copies::queues_of_path;
use crate::testbed::path_limits::ServerQuota;
use agent::AgentError;
use agent::wire::{Answer, LoadOrder, Order, OtherServer, QuotaOrder};
use experiment::plan::{Group, PlannedTrial};
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
/// Share of a CPU below which a thread counts as idle.
const WORKING: f64 = 0.05;

/// Factor on the rates of links for [`Change::TwiceTheLinkRate`].
const LINK_FACTOR: f64 = 2.0;
/// The name of the links among sampled servers, whose names have no dots.
const LINKS: &str = "links.";

/// What a probe changes, and the values.
struct Perturbation {
    change: Change,
    connections: u32,
    threads: usize,
    cpus: Vec<u32>,
    /// CPU quotas of hosts during the probe, CPUs each.
    hosts: Vec<(String, f64)>,
    /// CPU quota of servers whose hosts have none.
    quota: Option<QuotaOrder>,
    /// CPU quotas of servers where hosts are machines, CPUs each.
    servers: Vec<ServerQuota>,
    ports: Option<(u16, u16)>,
    /// Factor on the declared link rates.
    link_factor: f64,
}

impl Perturbation {
    /// The sum of the quotas that the probe sets, CPUs; `None` if it sets none.
    fn bound_cpus(&self) -> Option<f64> {
        let of_hosts = self.hosts.iter().map(|(_, cpus)| *cpus);
        let all: Vec<f64> = of_hosts
            .chain(self.quota.iter().map(|one| one.cpus))
            .chain(self.servers.iter().map(|one| one.cpus))
            .collect();
        (!all.is_empty()).then(|| all.iter().sum())
    }
}

/// Probes one subject. `None` if the run was stopped meanwhile.
pub(crate) fn search(
    cx: &mut Context<'_>,
    condition: &Condition,
    subject: &str,
) -> Result<Option<BottleneckReading>, AgentError> {
    let group = Group {
        condition: condition.clone(),
        trials: vec![PlannedTrial {
            trial: 0,
            subject: subject.to_owned(),
            baseline_copy: false,
        }],
    };
    let resolved = sequential::resolve_group(cx.options.experiment, &group);
    let load_host = resolved.load.host.as_deref();
    let (hosts, load_host) = match cx.options.experiment.hosts_are_machines() {
        true => (
            cx.testbed.machines_of(&resolved)?,
            Some(cx.testbed.hosts.key(load_host)),
        ),
        false => (BTreeMap::new(), None),
    };
    let mut reading = BottleneckReading {
        condition: condition.clone(),
        subject: subject.to_owned(),
        client_cpus: cx.placement.load_cpus.clone(),
        cpus_of_servers: cpus_of_servers(cx, &resolved),
        hosts,
        load_host,
        keepalive: resolved.load.keepalive && resolved.load.requests_per_connection != Some(1),
        link_bits_per_s: resolved
            .subjects
            .iter()
            .find(|one| one.name == subject)
            .and_then(|one| cx.testbed.slowest_link(&resolved, one)),
        ports: cx.testbed.ports_that_run_out(resolved.load.host.as_deref()),
        server_ports: cx.testbed.ports_of_servers(&resolved),
        ..BottleneckReading::default()
    };
    reading.server_cpus = server_cpus(&reading);
    let mut random = fastrand::Rng::with_seed(cx.seed);
    let mut result = GroupResult::default();
    let mut up = Vec::new();
    cx.phase(&format!("looking for the bottleneck of {subject}"));
    let measured = start_servers(cx, &resolved, &mut up, &mut random)
        .map_err(|failure| failure.error)
        .and_then(|addresses| ready_subjects(cx, &resolved, &group, &addresses, &mut result))
        .and_then(|ready| match ready.is_empty() {
            true => Ok(()),
            false => make_probes(cx, &resolved, &ready, &mut random, &mut reading),
        });
    if !matches!(measured, Err(AgentError::Lost(_))) {
        let failed = measured.is_err() || !result.outcomes.is_empty();
        reading.waiting_at_failure = match failed {
            true => waiting_ports(cx, resolved.load.host.as_deref()).ok(),
            false => None,
        };
    }
    let lost = cx.testbed.hosts.lost(measured.is_err());
    stop_servers(cx, &group, &up, &mut result);
    if let Some(why) = lost {
        return Err(AgentError::Lost(why));
    }
    match measured {
        Err(AgentError::Lost(why)) => return Err(AgentError::Lost(why)),
        Err(AgentError::Failed(why)) => reading.failed = Some(why),
        Ok(()) => {
            reading.failed = result
                .outcomes
                .into_iter()
                .find_map(|(_, outcome)| match outcome {
                    readings::Outcome::Failed { reason, .. } => Some(reason),
                    readings::Outcome::Done(_) => None,
                });
        }
    }
    if result.agent_lost {
        return Err(AgentError::Lost(
            "it ended while the servers were being stopped".into(),
        ));
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
        other => Err(AgentError::Lost(format!("unexpected answer: {other:?}"))),
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
    let warmup = cx.options.experiment.design.warmup.min(WARM_UP_MAX);
    let warm = cx.load(resolved, ready, schedule::warm_up(1, warmup))?;
    let median_ms = schedule::median_ms(&warm.readings);
    let least_ms = match reading.keepalive {
        true => WINDOW_MIN_MS,
        false => OPENING_MIN_MS,
    };
    let ramp_up_ms = RAMP_UP_MS.max(2.0 * median_ms).min(WINDOW_MAX_MS);
    let window_ms = (ANSWERS * median_ms).clamp(least_ms, WINDOW_MAX_MS);
    let segment = schedule::segment(0, Pacing::Closed, ramp_up_ms, window_ms, Some(0));
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
    let none = unchanged(&base);
    if cx.stopped() {
        return Ok(());
    }
    let first = first_probe(cx, &base, ready, &none)?;
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
            match probe_once(cx, &base, ready, perturbation) {
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
    order: &LoadOrder,
    ready: &[ReadySubject],
    none: &Perturbation,
) -> Result<Probe, AgentError> {
    for _ in 1..FIRST_ATTEMPTS {
        match probe_once(cx, order, ready, none) {
            Err(AgentError::Failed(_)) => {}
            other => return other,
        }
    }
    probe_once(cx, order, ready, none)
}

fn unchanged(order: &LoadOrder) -> Perturbation {
    Perturbation {
        change: Change::None,
        connections: order.job.targets[0].connections,
        threads: order.job.threads,
        cpus: order.job.cpus.clone(),
        hosts: Vec::new(),
        quota: None,
        servers: Vec::new(),
        ports: None,
        link_factor: 1.0,
    }
}

/// The perturbations that are possible and that the first probe gives a reason for.
fn perturbations(
    cx: &Context<'_>,
    resolved: &ResolvedCondition,
    order: &LoadOrder,
    first: &Probe,
    reading: &mut BottleneckReading,
) -> Vec<Perturbation> {
    let mut perturbations = Vec::new();
    let connections = order.job.targets[0].connections;
    let mut skipped = Vec::new();
    let mut skip = |change, why: &str| skipped.push(not_tried(change, why));
    // A CPU for one more thread, preferably one without servers.
    let mut others = cx.testbed.usable_cpus(resolved.load.host.as_deref());
    let of_host = cx.testbed.cpus_of(resolved.load.host.as_deref());
    others.retain(|cpu| of_host.is_empty() || of_host.contains(cpu));
    others.retain(|cpu| !order.job.cpus.contains(cpu));
    let free = |cpu: &&u32| !reading.server_cpus.contains(cpu);
    let more = others.iter().find(free).or(others.first()).copied();
    if order.job.threads as u32 >= connections {
        skip(Change::ClientThread, "there is no connection for it");
    } else if more.is_none() && !order.job.cpus.is_empty() {
        skip(Change::ClientThread, "there is no other CPU for it");
    } else {
        let mut cpus = order.job.cpus.clone();
        if !cpus.is_empty() {
            cpus.extend(more);
        }
        perturbations.push(Perturbation {
            change: Change::ClientThread,
            threads: order.job.threads + 1,
            cpus,
            ..unchanged(order)
        });
    }
    let shares = |cpu: &u32| reading.server_cpus.contains(cpu);
    if let Some(cpu) = more.filter(|cpu| !shares(cpu) && order.job.cpus.iter().any(shares)) {
        perturbations.push(Perturbation {
            change: Change::ClientApart,
            threads: 1,
            cpus: vec![cpu],
            ..unchanged(order)
        });
    }
    match connections.checked_mul(2) {
        Some(twice) if twice <= 100_000 => perturbations.push(Perturbation {
            change: Change::TwiceTheConnections,
            connections: twice,
            ..unchanged(order)
        }),
        _ => skip(Change::TwiceTheConnections, "there are too many already"),
    }
    if first.accept_queue_overflows() + first.no_port > 0 && connections > 1 {
        perturbations.push(Perturbation {
            change: Change::HalfTheConnections,
            connections: connections / 2,
            threads: order.job.threads.min(connections as usize / 2),
            ..unchanged(order)
        });
    }
    if first.seen.servers.is_empty() {
        skip(
            Change::HalfTheServerCpu,
            "no server of the path was started here",
        );
    } else {
        perturbations.push(half_the_server_cpu(cx, resolved, order, first, reading));
    }
    reading.not_tried.append(&mut skipped);
    let wider = cx.testbed.wider_ports(resolved.load.host.as_deref());
    if let Some(ports) = wider.filter(|_| first.no_port > 0) {
        perturbations.push(Perturbation {
            change: Change::MorePorts,
            ports: Some(ports),
            ..unchanged(order)
        });
    }
    if !reading.hosts.is_empty() {
        if first.no_port > 0 {
            let why = "the ports of a machine are not the run's own";
            reading.not_tried.push(not_tried(Change::MorePorts, why));
        }
        let why = "the network between the machines cannot be changed";
        let why = not_tried(Change::TwiceTheLinkRate, why);
        let is_apart = |server: &String| reading.apart(server).is_some();
        // The rate of a link can be changed.
        if reading.link_bits_per_s.is_none() && reading.hosts.keys().any(is_apart) {
            reading.not_tried.push(why);
        }
    }
    if reading.link_bits_per_s.is_some() {
        perturbations.push(Perturbation {
            change: Change::TwiceTheLinkRate,
            link_factor: LINK_FACTOR,
            ..unchanged(order)
        });
    }
    perturbations
}

/// Limits the servers to half of the CPU time that they can use, or to half of their host's quota
/// if it has one.
fn half_the_server_cpu(
    cx: &Context<'_>,
    resolved: &ResolvedCondition,
    order: &LoadOrder,
    first: &Probe,
    reading: &BottleneckReading,
) -> Perturbation {
    if !reading.hosts.is_empty() {
        // Each server is limited by the agent that has started it.
        let half = |server: &ServerSpec| {
            let cpus = reading
                .cpus_of_servers
                .get(&server.name)
                .map_or(1, Vec::len);
            let of = BTreeSet::from([server.name.clone()]);
            ServerQuota {
                host: server.host.clone(),
                server: server.name.clone(),
                cpus: usable_cpus(first, &of, cpus) / 2.0,
            }
        };
        return Perturbation {
            change: Change::HalfTheServerCpu,
            servers: resolved.servers.iter().map(half).collect(),
            ..unchanged(order)
        };
    }
    let (mut hosts, mut quota) = (Vec::new(), None);
    for group in cx.testbed.quota_groups(resolved) {
        let could = usable_cpus(first, &group.servers, reading.server_cpus.len());
        let half = group.quota.unwrap_or(could) / 2.0;
        match group.host {
            Some(host) => hosts.push((host, half)),
            None => {
                quota = Some(QuotaOrder {
                    servers: group.servers,
                    cpus: half,
                });
            }
        }
    }
    Perturbation {
        change: Change::HalfTheServerCpu,
        hosts,
        quota,
        ..unchanged(order)
    }
}

fn probe_once(
    cx: &mut Context<'_>,
    order: &LoadOrder,
    ready: &[ReadySubject],
    perturbation: &Perturbation,
) -> Result<Probe, AgentError> {
    let mut order = order.clone();
    order.sample_scheduling = true;
    order.job.threads = perturbation.threads;
    order.job.cpus.clone_from(&perturbation.cpus);
    order.quota.clone_from(&perturbation.quota);
    order.ports = perturbation.ports;
    for target in &mut order.job.targets {
        target.connections = perturbation.connections;
    }
    order.watch_others.extend(link_process(cx));
    let scales_links = perturbation.link_factor != 1.0;
    let scaled = match scales_links {
        true => cx.testbed.hosts.scale_link_rates(perturbation.link_factor),
        false => Ok(()),
    };
    let loaded = scaled
        .and_then(|()| cx.testbed.set_host_quotas(&perturbation.hosts, true))
        .and_then(|()| cx.testbed.set_server_quotas(&perturbation.servers, true))
        .and_then(|()| cx.load_order(order, ready));
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
    })
}

/// The CPU time that servers could use unperturbed, in CPUs.
///
/// A thread that was runnable half of the time could do twice as much; one that is always runnable
/// is at its limit, even where other programs leave it little CPU time. Therefore the used CPU time
/// is divided by the busiest thread's runnable share.
fn usable_cpus(first: &Probe, of: &BTreeSet<String>, server_cpus: usize) -> f64 {
    let servers = first.seen.servers.iter();
    let servers = servers
        .filter(|(name, _)| of.contains(*name))
        .map(|(_, server)| server);
    let used: f64 = servers.clone().map(|server| server.cpus).sum();
    let wanted = servers
        .filter_map(|server| server.wanted.first())
        .copied()
        .fold(0.0, f64::max);
    let most = server_cpus.max(1) as f64;
    if wanted < WORKING {
        // Almost idle: one CPU is ample.
        return 1.0;
    }
    (used / wanted).min(most)
}

fn not_tried(change: Change, why: &str) -> String {
    format!("{}: {why}", description(change))
}

fn description(change: Change) -> &'static str {
    match change {
        Change::None => "a load without a change",
        Change::ClientThread => "one more client thread",
        Change::ClientApart => "a CPU of its own for the client",
        Change::TwiceTheConnections => "twice the connections",
        Change::HalfTheConnections => "half the connections",
        Change::HalfTheServerCpu => "half the servers' CPU time",
        Change::TwiceTheLinkRate => "twice the link's rate",
        Change::MorePorts => "more ports",
    }
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
        connections: perturbation.connections,
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

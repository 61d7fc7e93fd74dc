//! Which bottlenecks the samples of the unchanged loads suggest.

use readings::{BottleneckReading, Change, NO_PORT, Probe};

use super::effects::{Effects, of_change};
use super::evidence::{
    ClientEvidence, Evidence, MachineUse, PortsEvidence, Refused, Relief, TakenPorts, ThreadMore,
};
use super::unchanged::{FULL, UPSTREAM_SHARE, Unchanged};
use super::{Bottleneck, Standing, Suspect, server_cpu};

/// Above this share of a CPU a client thread limits the figures.
const CLIENT_BUSY: f64 = 0.8;
/// Other programs count where client and servers had less than this share of the full CPUs.
const OWN_SHARE: f64 = 0.75;
/// One more client thread must raise the throughput by this factor...
const CLIENT_GAIN: f64 = 1.1;
/// ...where the existing threads wanted a CPU for this share of the time: beside other programs one
/// more thread brings CPU time even if the client did not lack it.
const CLIENT_WORKS: f64 = 0.5;
/// Twice the connections bring twice the throughput where nothing else is in the way.
const CONNECTIONS_GAIN: f64 = 1.5;
/// This factor makes concurrency suspect.
const CONNECTIONS_SOME_GAIN: f64 = 1.2;
/// This share of the opened connections must have found the queue full...
const OVERFLOW_SHARE: f64 = 0.001;
/// ...or one must have waited for its SYN to be sent again (RFC 6298: a second).
const SYN_AGAIN_US: f64 = 0.95e6;
const RETRANSMIT_SHARE: f64 = 0.01;
/// A link counts as full from this share of its rate on: packet headers are not counted.
const LINK_FULL: f64 = 0.85;
/// Ports count as used up from this share of the range on: Linux tries every second one first, and
/// searches long for each connection once those are taken.
const PORTS_FULL: f64 = 0.45;
/// With half the connections, at most this part of the share that found the accept queue full...
const QUEUE_LEFT: f64 = 0.7;
/// ...and this part of the share that found no port, which varies with TIME_WAIT.
const PORTS_LEFT: f64 = 0.1;
/// More ports must raise the throughput by this factor.
const PORTS_GAIN: f64 = 1.1;
/// Twice the rate of a link that holds the throughput brings up to twice as much; less where the
/// next bottleneck is near.
const LINK_GAIN: f64 = 1.2;

pub(super) fn suspects(reading: &BottleneckReading, effects: &Effects) -> Vec<Suspect> {
    let loads = Unchanged::of(reading);
    if loads.probes.is_empty() {
        return Vec::new();
    }
    let server = server_cpu::server(&loads, effects);
    let client = client(&loads, effects);
    let mut found: Vec<Suspect> = Vec::new();
    found.extend(ports(&loads, effects));
    found.extend(accept_queue(&loads, effects));
    found.extend(concurrency(
        &loads,
        effects,
        server.is_some() || client.is_some(),
    ));
    found.extend(client);
    found.extend(server);
    found.extend(upstream_connections(&loads));
    found.extend(network(&loads, effects));
    found.extend(other_programs(&loads));
    found
}

/// What a failed load suggests: without a free port nothing is measured.
pub(super) fn of_failure(reading: &BottleneckReading, reason: &str) -> Option<Suspect> {
    let refused: u64 = of_change(reading, Change::None)
        .map(|probe| probe.no_port)
        .sum();
    let taken = reading.waiting_at_failure.zip(reading.ports);
    let taken = taken.map(|(waiting, range)| TakenPorts {
        server: None,
        waiting,
        range,
    });
    let taken = taken.filter(|taken| taken.share() >= PORTS_FULL);
    if refused == 0 && taken.is_none() && !reason.contains(NO_PORT) {
        return None;
    }
    Some(Suspect {
        bottleneck: Bottleneck::Ports,
        standing: Standing::Suspected,
        server: None,
        evidence: Evidence::Ports(PortsEvidence {
            refused,
            taken,
            reliefs: Vec::new(),
            failed: Some(reason.to_owned()),
        }),
    })
}

fn client(loads: &Unchanged<'_>, effects: &Effects) -> Option<Suspect> {
    let (busiest, wanted) = (loads.client_busiest(), loads.client_wanted());
    let shared = loads.shared_cpus().filter(|(_, busy)| *busy >= FULL);
    let gain = effects
        .raised(Change::ClientThread, CLIENT_GAIN)
        .filter(|_| wanted >= CLIENT_WORKS || shared.is_some());
    let apart = effects.raised(Change::ClientApart, CLIENT_GAIN);
    if gain.is_none() && apart.is_none() && wanted < CLIENT_BUSY && shared.is_none() {
        return None;
    }
    let tried = effects.get(Change::ClientThread);
    let thread = match (gain, tried) {
        (Some(gain), _) => Some(ThreadMore::Raised(gain)),
        (None, Some(effect)) if apart.is_none() => Some(ThreadMore::NotRaised(effect.ratio)),
        (None, _) => None,
    };
    Some(Suspect {
        bottleneck: Bottleneck::Client,
        standing: match gain.or(apart) {
            Some(_) => Standing::Confirmed,
            None => Standing::Suspected,
        },
        server: None,
        evidence: Evidence::Client(ClientEvidence {
            busiest,
            wanted,
            shared,
            apart,
            thread,
        }),
    })
}

fn concurrency(loads: &Unchanged<'_>, effects: &Effects, others: bool) -> Option<Suspect> {
    let connections = loads.probes[0].connections;
    let proportional = effects.raised(Change::TwiceTheConnections, CONNECTIONS_GAIN);
    let some = effects.raised(Change::TwiceTheConnections, CONNECTIONS_SOME_GAIN);
    let p50_us = loads.mean(|probe| probe.latency_us_p50);
    let even = loads.mean(|probe| probe.latency_us_p99) < 1.5 * p50_us;
    // By Little's law all connections are busy all the time.
    let busy = effects.unchanged_per_s() * loads.mean(|probe| probe.latency_us_mean) / 1e6;
    let all_busy = busy > 0.9 * f64::from(connections);
    let idle = !others && loads.client_wanted() < 0.5;
    let untried = effects.get(Change::TwiceTheConnections).is_none();
    let standing = match (proportional, some) {
        (Some(_), _) => Standing::Confirmed,
        (None, Some(_)) => Standing::Suspected,
        (None, None) if untried && idle && even && all_busy => Standing::Suspected,
        _ => return None,
    };
    Some(Suspect {
        bottleneck: Bottleneck::Concurrency,
        standing,
        server: None,
        evidence: Evidence::Concurrency {
            connections,
            p50_us,
            gain: proportional.or(some),
        },
    })
}

fn accept_queue(loads: &Unchanged<'_>, effects: &Effects) -> Option<Suspect> {
    let found_full = loads.found_full();
    let opened = loads.sum(|probe| probe.connects);
    let slowest_us = loads
        .probes
        .iter()
        .map(|probe| probe.connect_us_max)
        .fold(0.0, f64::max);
    let many = found_full as f64 > OVERFLOW_SHARE * opened as f64;
    if found_full == 0 || !(many || slowest_us >= SYN_AGAIN_US) {
        return None;
    }
    let change = Change::HalfTheConnections;
    let before = Refused::of(&loads.probes, Probe::accept_queue_overflows);
    let left = loads.with(change, Probe::accept_queue_overflows);
    let half = effects.get(change).map(|effect| Relief {
        change,
        left,
        before,
        ratio: effect.ratio,
    });
    let half = half.filter(|half| half.left.is_less(before, QUEUE_LEFT) && half.ratio > 0.9);
    Some(Suspect {
        bottleneck: Bottleneck::AcceptQueue,
        standing: match half {
            Some(_) => Standing::Confirmed,
            None => Standing::Suspected,
        },
        server: None,
        evidence: Evidence::AcceptQueue {
            found_full,
            opened,
            slowest_us,
            half,
        },
    })
}

fn ports(loads: &Unchanged<'_>, effects: &Effects) -> Option<Suspect> {
    let refused = loads.sum(|probe| probe.no_port);
    let taken = loads.taken_ports();
    let taken = taken.filter(|taken| taken.share() >= PORTS_FULL);
    if refused == 0 && taken.is_none() {
        return None;
    }
    let none_free = |probe: &Probe| probe.no_port;
    let before = Refused::of(&loads.probes, none_free);
    // TIME_WAIT makes the throughput vary between loads; the refused connections decide.
    let changes = [
        (Change::MorePorts, PORTS_GAIN),
        (Change::HalfTheConnections, 0.9),
    ];
    let reliefs = changes.into_iter().filter_map(|(change, least)| {
        let left = loads.with(change, none_free);
        let effect = effects.get(change).filter(|effect| effect.ratio >= least)?;
        left.is_less(before, PORTS_LEFT).then_some(Relief {
            change,
            left,
            before,
            ratio: effect.ratio,
        })
    });
    let reliefs: Vec<Relief> = reliefs.collect();
    Some(Suspect {
        bottleneck: Bottleneck::Ports,
        standing: match reliefs.is_empty() {
            false => Standing::Confirmed,
            true => Standing::Suspected,
        },
        server: taken.as_ref().and_then(|taken| taken.server.clone()),
        evidence: Evidence::Ports(PortsEvidence {
            refused,
            taken,
            reliefs,
            failed: None,
        }),
    })
}

fn upstream_connections(loads: &Unchanged<'_>) -> Option<Suspect> {
    let per_request = loads.upstream_per_request();
    if per_request < UPSTREAM_SHARE {
        return None;
    }
    let waiting = loads.mean(|probe| probe.seen.kernel.time_wait as f64);
    Some(Suspect {
        bottleneck: Bottleneck::UpstreamConnections,
        standing: Standing::Suspected,
        server: None,
        evidence: Evidence::UpstreamConnections {
            per_request,
            time_wait: waiting.round() as u64,
        },
    })
}

fn network(loads: &Unchanged<'_>, effects: &Effects) -> Option<Suspect> {
    let segments = loads.sum(|probe| probe.seen.kernel.segments);
    // A SYN that met a full accept queue is retransmitted, too, though no link lost it.
    let again = loads.sum(|probe| probe.seen.kernel.retransmits);
    let again =
        again.saturating_sub(loads.sum(|probe| probe.seen.kernel.listen_overflows_or_drops()));
    let lossy = again as f64 > RETRANSMIT_SHARE * segments as f64;
    let bits_per_s = loads.mean(|probe| probe.bytes_per_s) * 8.0;
    let link = loads.reading.link_bits_per_s;
    let full = link.filter(|link| bits_per_s >= LINK_FULL * link);
    let gain = effects.raised(Change::TwiceTheLinkRate, LINK_GAIN);
    let threads = loads.links().filter(|threads| threads.wanted >= FULL);
    if !lossy && full.is_none() && gain.is_none() && threads.is_none() {
        return None;
    }
    Some(Suspect {
        bottleneck: Bottleneck::Network,
        standing: match gain {
            Some(_) => Standing::Confirmed,
            None => Standing::Suspected,
        },
        server: None,
        evidence: Evidence::Network {
            bits_per_s,
            link_bits_per_s: link,
            resent: lossy.then_some((again, segments)),
            gain,
            threads,
        },
    })
}

/// CPUs that other programs fill.
fn other_programs(loads: &Unchanged<'_>) -> Option<Suspect> {
    let is_full = |one: &MachineUse| one.busy >= FULL && one.own <= OWN_SHARE * one.busy;
    let machine = loads.machines().into_iter().find(is_full)?;
    Some(Suspect {
        bottleneck: Bottleneck::OtherPrograms,
        standing: Standing::Suspected,
        server: None,
        evidence: Evidence::OtherPrograms(machine),
    })
}

pub(super) fn all_figures(reading: &BottleneckReading) -> Evidence {
    let loads = Unchanged::of(reading);
    let servers = loads.server_names().into_iter();
    let servers = servers.map(|name| (name.clone(), loads.server(name), loads.threads(name)));
    Evidence::Unexplained {
        client_busiest: loads.client_busiest(),
        servers: servers.collect(),
        links: loads.links(),
        // Where hosts are machines, every finding says that.
        not_tried: match reading.hosts.is_empty() {
            true => reading.not_tried.clone(),
            false => Vec::new(),
        },
    }
}

//! Which bottlenecks the samples of the unchanged loads suggest.

use readings::{BottleneckReading, Change, NO_PORT, Probe};

use super::effects::{Effects, of_change, times};
use super::unchanged::{MachineUse, Share, UPSTREAM_SHARE, Unchanged, percent, refused};
use super::{Bottleneck, Standing, Suspect, server_cpu};
use crate::text::{counted, grouped, rate};

/// From this share of a CPU on a thread counts as full: the scheduler and the hypervisor take the
/// rest.
pub(super) const FULL: f64 = 0.85;
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
    let taken = taken.filter(|(waiting, range)| *waiting as f64 >= PORTS_FULL * f64::from(*range));
    if refused == 0 && taken.is_none() && !reason.contains(NO_PORT) {
        return None;
    }
    let mut parts = Vec::new();
    if refused > 0 {
        parts.push(no_port(refused));
    }
    if let Some((waiting, range)) = taken {
        parts.push(format!(
            "{} of {} ports waited in TIME_WAIT",
            grouped(waiting),
            grouped(u64::from(range))
        ));
    }
    parts.push(format!("it could not be measured to the end: {reason}"));
    Some(Suspect {
        bottleneck: Bottleneck::Ports,
        standing: Standing::Suspected,
        server: None,
        why: parts.join("; "),
    })
}

fn no_port(refused: u64) -> String {
    format!(
        "{} found no free port (EADDRNOTAVAIL)",
        counted(refused as usize, "connection")
    )
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
    let mut why = format!("its busiest thread took {} of a CPU", percent(busiest));
    if wanted > busiest + 0.1 {
        why.push_str(&format!(" and wanted it {} of the time", percent(wanted)));
    }
    if let Some((cpus, busy)) = &shared {
        let names: Vec<String> = cpus.iter().map(u32::to_string).collect();
        why.push_str(&format!(
            " and shares CPU {} with the servers, which was {} busy",
            names.join(", "),
            percent(*busy)
        ));
    }
    if let Some(apart) = apart {
        why.push_str(&format!(
            "; on a CPU of its own it brings {} the throughput",
            times(apart)
        ));
    }
    let standing = match (gain, effects.get(Change::ClientThread)) {
        (None, _) if apart.is_some() => Standing::Confirmed,
        (Some(gain), _) => {
            why.push_str(&format!(
                "; with a thread and a CPU more it brings {} the throughput",
                times(gain)
            ));
            Standing::Confirmed
        }
        (None, Some(effect)) => {
            why.push_str(&format!(
                "; a thread and a CPU more did not show it ({} the throughput)",
                times(effect.ratio)
            ));
            Standing::Suspected
        }
        (None, None) => Standing::Suspected,
    };
    Some(Suspect {
        bottleneck: Bottleneck::Client,
        standing,
        server: None,
        why,
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
    let mut why = format!(
        "{} and a median answer time of {:.2} ms set it",
        counted(connections as usize, "connection"),
        p50_us / 1e3
    );
    if let Some(gain) = proportional.or(some) {
        why.push_str(&format!(
            "; twice the connections bring {} the throughput",
            times(gain)
        ));
    }
    Some(Suspect {
        bottleneck: Bottleneck::Concurrency,
        standing,
        server: None,
        why,
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
    let mut why = format!(
        "{} found it full (ListenOverflows, ListenDrops) while {} were opened; the slowest took \
         {:.2} s to open",
        counted(found_full as usize, "connection"),
        grouped(opened),
        slowest_us / 1e6
    );
    let (before, half) = (
        Share::of(&loads.probes, refused),
        loads.with(Change::HalfTheConnections, refused),
    );
    let standing = match effects.get(Change::HalfTheConnections) {
        Some(effect) if half.is_less(before, QUEUE_LEFT) && effect.ratio > 0.9 => {
            why.push_str(&format!(
                "; with half the connections {} instead of {} do, and the throughput is {} as high",
                half.words(),
                before.words(),
                times(effect.ratio)
            ));
            Standing::Confirmed
        }
        _ => Standing::Suspected,
    };
    Some(Suspect {
        bottleneck: Bottleneck::AcceptQueue,
        standing,
        server: None,
        why,
    })
}

fn ports(loads: &Unchanged<'_>, effects: &Effects) -> Option<Suspect> {
    let refused = loads.sum(|probe| probe.no_port);
    let taken = loads.taken_ports();
    let full = taken.as_ref().filter(|taken| taken.share >= PORTS_FULL);
    if refused == 0 && full.is_none() {
        return None;
    }
    let mut parts = Vec::new();
    if refused > 0 {
        parts.push(no_port(refused));
    }
    if let Some(taken) = full {
        parts.push(taken.words());
    }
    let none_free = |probe: &Probe| probe.no_port;
    let before = Share::of(&loads.probes, none_free);
    let mut standing = Standing::Suspected;
    // TIME_WAIT makes the throughput vary between loads; the refused connections decide.
    for (change, words, least) in [
        (Change::MorePorts, "with more ports", PORTS_GAIN),
        (Change::HalfTheConnections, "with half the connections", 0.9),
    ] {
        let left = loads.with(change, none_free);
        let effect = effects.get(change).filter(|effect| effect.ratio >= least);
        if let Some(effect) = effect.filter(|_| left.is_less(before, PORTS_LEFT)) {
            standing = Standing::Confirmed;
            parts.push(format!(
                "{words} {} instead of {} find none, and the throughput is {} as high",
                left.words(),
                before.words(),
                times(effect.ratio)
            ));
        }
    }
    Some(Suspect {
        bottleneck: Bottleneck::Ports,
        standing,
        server: full.and_then(|taken| taken.server.clone()),
        why: parts.join("; "),
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
        why: format!(
            "{per_request:.2} new connections to an upstream per request, where kept ones would \
             need none; {} sockets are in TIME_WAIT",
            grouped(waiting.round() as u64)
        ),
    })
}

fn network(loads: &Unchanged<'_>, effects: &Effects) -> Option<Suspect> {
    let segments = loads.sum(|probe| probe.seen.kernel.segments);
    // A SYN that met a full accept queue is retransmitted, too, though no link lost it.
    let again = loads.sum(|probe| probe.seen.kernel.retransmits);
    let again = again.saturating_sub(loads.found_full());
    let lossy = again as f64 > RETRANSMIT_SHARE * segments as f64;
    let bits_per_s = loads.mean(|probe| probe.bytes_per_s) * 8.0;
    let link = loads.reading.link_bits_per_s;
    let full = link.filter(|link| bits_per_s >= LINK_FULL * link);
    let gain = effects.raised(Change::TwiceTheLinkRate, LINK_GAIN);
    if !lossy && full.is_none() && gain.is_none() {
        return None;
    }
    let mut parts = Vec::new();
    if let Some(link) = link {
        parts.push(format!(
            "{} Mbit/s of answers over a link of {} Mbit/s",
            rate(bits_per_s / 1e6),
            rate(link / 1e6)
        ));
    }
    if lossy {
        parts.push(format!(
            "{} of {} segments were sent again",
            grouped(again),
            grouped(segments)
        ));
    }
    if let Some(gain) = gain {
        parts.push(format!(
            "with twice the link's rate it brings {} the throughput",
            times(gain)
        ));
    }
    Some(Suspect {
        bottleneck: Bottleneck::Network,
        standing: match gain {
            Some(_) => Standing::Confirmed,
            None => Standing::Suspected,
        },
        server: None,
        why: parts.join("; "),
    })
}

/// CPUs that other programs fill.
fn other_programs(loads: &Unchanged<'_>) -> Option<Suspect> {
    let is_full = |one: &MachineUse<'_>| one.busy >= FULL && one.own <= OWN_SHARE * one.busy;
    let machine = loads.machines().into_iter().find(is_full)?;
    let (busy, own) = (percent(machine.busy), percent(machine.own));
    Some(Suspect {
        bottleneck: Bottleneck::OtherPrograms,
        standing: Standing::Suspected,
        server: None,
        why: match machine.host {
            None => format!(
                "the CPUs of client and servers were {busy} busy, and client and servers had \
                 {own} of them"
            ),
            Some(host) => format!(
                "the CPUs of the servers on host `{host}` were {busy} busy, and the servers had \
                 {own} of them"
            ),
        },
    })
}

/// All figures, for a bottleneck that is unknown.
pub(super) fn all_figures(reading: &BottleneckReading, effects: &Effects) -> String {
    let loads = Unchanged::of(reading);
    let servers: Vec<String> = loads
        .server_names()
        .iter()
        .map(|name| {
            let threads = loads.threads(name);
            format!(
                "{name} {} of a CPU in {} (busiest {})",
                percent(loads.server(name)),
                counted(threads.count as usize, "thread"),
                threads.words()
            )
        })
        .collect();
    let mut parts = vec![format!(
        "the client's busiest thread took {} of a CPU",
        percent(loads.client_busiest())
    )];
    parts.extend(servers);
    parts.push(effects.words());
    // Where hosts are machines, every finding says that.
    let not_tried = reading
        .not_tried
        .iter()
        .filter(|_| reading.hosts.is_empty());
    parts.extend(not_tried.map(|why| format!("not tried: {why}")));
    parts.join("; ")
}

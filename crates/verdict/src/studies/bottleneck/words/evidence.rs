//! What speaks for a bottleneck, as part of a sentence.

use crate::bottleneck::{
    ClientEvidence, CpuUse, Effect, Evidence, Full, MachineUse, PortsEvidence, Refused, Relief,
    ServerEvidence, TakenPorts, ThreadMore, Threads,
};
use readings::Change;
use readings::text::{counted, grouped, listed, number, rate};

/// The figures behind a finding, without a full stop.
pub fn evidence(evidence: &Evidence, effects: &[Effect]) -> String {
    match evidence {
        Evidence::Client(of) => client(of),
        Evidence::Server(of) => server(of),
        Evidence::Concurrency {
            connections,
            p50_us,
            gain,
        } => {
            let gain = gain.map(|gain| {
                format!(
                    "; twice the connections bring {} the throughput",
                    times(gain)
                )
            });
            format!(
                "{} and a median answer time of {:.2} ms set it{}",
                counted(*connections as usize, "connection"),
                p50_us / 1e3,
                gain.unwrap_or_default()
            )
        }
        Evidence::AcceptQueue {
            found_full,
            opened,
            slowest_us,
            half,
        } => {
            let half = half
                .as_ref()
                .map(|half| format!("; {}", relief(half, "do")));
            format!(
                "{} found it full (ListenOverflows, ListenDrops) while {} were opened; the slowest \
                 took {:.2} s to open{}",
                counted(*found_full as usize, "connection"),
                grouped(*opened),
                slowest_us / 1e6,
                half.unwrap_or_default()
            )
        }
        Evidence::Ports(of) => ports(of),
        Evidence::UpstreamConnections {
            per_request,
            time_wait,
        } => format!(
            "{per_request:.2} new connections to an upstream per request, where kept ones would \
             need none; {} sockets are in TIME_WAIT",
            grouped(*time_wait)
        ),
        Evidence::Network {
            bits_per_s,
            link_bits_per_s,
            resent,
            gain,
            threads,
        } => {
            let carried = link_bits_per_s.map(|link| {
                format!(
                    "{} Mbit/s of answers over a link of {} Mbit/s",
                    rate(bits_per_s / 1e6),
                    rate(link / 1e6)
                )
            });
            let resent = resent.map(|(again, segments)| {
                format!(
                    "{} of {} segments were sent again",
                    grouped(again),
                    grouped(segments)
                )
            });
            let gain = gain.map(|gain| {
                format!(
                    "with twice the link's rate it brings {} the throughput",
                    times(gain)
                )
            });
            let thread = threads.map(|threads| {
                format!(
                    "the thread that carries the links is full ({}), so the links limit \
                     the throughput",
                    busiest(&threads)
                )
            });
            let parts: Vec<String> = [carried, resent, gain, thread]
                .into_iter()
                .flatten()
                .collect();
            parts.join("; ")
        }
        Evidence::OtherPrograms(machine) => other_programs(machine),
        Evidence::Unexplained {
            client_busiest,
            servers,
            links,
            not_tried,
        } => {
            let mut parts = vec![format!(
                "the client's busiest thread took {} of a CPU",
                share(*client_busiest)
            )];
            parts.extend(servers.iter().map(|(name, cpus, threads)| {
                format!(
                    "{name} {} of a CPU in {} (busiest {})",
                    share(*cpus),
                    counted(threads.count as usize, "thread"),
                    busiest(threads)
                )
            }));
            parts.extend(links.map(|links| {
                let took = busiest(&links);
                format!("the thread that carries the links {took}")
            }));
            parts.push(changes(effects));
            parts.extend(not_tried.iter().map(|why| format!("left out: {why}")));
            parts.join("; ")
        }
        Evidence::NotMeasured(reason) => format!("it could not be measured: {reason}"),
    }
}

fn client(of: &ClientEvidence) -> String {
    let mut out = format!("its busiest thread took {} of a CPU", share(of.busiest));
    if of.wanted > of.busiest + 0.1 {
        out.push_str(&format!(" and wanted it {} of the time", share(of.wanted)));
    }
    if let Some((cpus, busy)) = &of.shared {
        let names: Vec<String> = cpus.iter().map(u32::to_string).collect();
        out.push_str(&format!(
            " and shares CPU {} with the servers, which was {} busy",
            names.join(", "),
            share(*busy)
        ));
    }
    if let Some(apart) = of.apart {
        out.push_str(&format!(
            "; on a CPU of its own it brings {} the throughput",
            times(apart)
        ));
    }
    match of.thread {
        Some(ThreadMore::Raised(gain)) => out.push_str(&format!(
            "; with a thread and a CPU more it brings {} the throughput",
            times(gain)
        )),
        Some(ThreadMore::NotRaised(ratio)) => out.push_str(&format!(
            "; a thread and a CPU more did not show it ({} the throughput)",
            times(ratio)
        )),
        None => {}
    }
    out
}

fn server(of: &ServerEvidence) -> String {
    let cpus = &of.cpus;
    let used = used(cpus);
    let mut out = match of.full {
        Some(Full::SharedCpus) => {
            let names: Vec<String> = of
                .each
                .iter()
                .map(|(name, _)| format!("`{name}`"))
                .collect();
            let full = if cpus.cpus.len() == 1 { "is" } else { "are" };
            format!(
                "{}, which {} share, {full} full ({used}; {})",
                cpus_at(cpus),
                listed(&names),
                cpu_time(&of.each)
            )
        }
        Some(Full::Cpus { threads }) => {
            let full = match cpus.cpus.len() {
                1 => "its one CPU is full",
                _ => "its CPUs are full",
            };
            let threads = counted(threads as usize, "thread");
            format!("{full} ({used}; it has {threads})")
        }
        Some(Full::Thread(threads)) => thread(&threads, cpus),
        None => format!("its CPU was not full: the servers used {used}"),
    };
    if of.full != Some(Full::SharedCpus) && of.each.len() > 1 {
        out.push_str(&format!("; {}", cpu_time(&of.each)));
    }
    if let Some(halved) = of.halved {
        out.push_str(&format!(
            "; with {} for the servers together {} of the throughput is left (halving costs {})",
            cpus_of_quota(halved.quota_cpus),
            share(halved.left),
            share(1.0 - halved.left)
        ));
    }
    out
}

fn thread(threads: &Threads, cpus: &CpuUse) -> String {
    let had = match cpus.cpus.len() {
        0 => String::new(),
        _ => format!("; the server had {}", cpus_at(cpus)),
    };
    let count = counted(threads.count as usize, "thread");
    let took = busiest(threads);
    if threads.count > 1 && threads.second_had < threads.had / 2.0 {
        let second = share(threads.second_had);
        return format!("one of its {count} is full ({took}), the next took {second}{had}");
    }
    format!("the busiest of its {count} took {took}{had}")
}

/// `20% of a CPU, which it wanted 98% of the time`.
fn busiest(threads: &Threads) -> String {
    let had = format!("{} of a CPU", share(threads.had));
    match threads.wanted > threads.had + 0.1 {
        true => format!(
            "{had}, which it wanted {} of the time",
            share(threads.wanted)
        ),
        false => had,
    }
}

/// `98% of CPU 0`, `1.50 of 2 CPUs (0 and 1) of host `vm``.
fn used(cpus: &CpuUse) -> String {
    match cpus.cpus.len() {
        0 => format!("{} of a CPU{}", share(cpus.used), host(cpus)),
        1 => format!("{} of {}", share(cpus.used), cpus_at(cpus)),
        _ => format!("{:.2} of {}", cpus.used, cpus_at(cpus)),
    }
}

/// `CPU 0`, `2 CPUs (0 and 1) of host `vm``.
fn cpus_at(cpus: &CpuUse) -> String {
    let names: Vec<String> = cpus.cpus.iter().map(u32::to_string).collect();
    let named = match &cpus.cpus[..] {
        [one] => format!("CPU {one}"),
        all => format!("{} CPUs ({})", all.len(), listed(&names)),
    };
    named + &host(cpus)
}

fn host(cpus: &CpuUse) -> String {
    let host = cpus.host.as_ref();
    host.map_or_else(String::new, |host| format!(" of host `{host}`"))
}

fn cpu_time(each: &[(String, f64)]) -> String {
    let each = readings::text::joined(each, |(name, cpus)| format!("{name} {}", share(*cpus)));
    format!("CPU time: {each}")
}

fn cpus_of_quota(number: f64) -> String {
    match number {
        n if (n - 1.0).abs() < 1e-9 => "1 CPU".to_owned(),
        n if n.fract() < 1e-9 => format!("{n:.0} CPUs"),
        n => format!("{n:.2} CPUs"),
    }
}

fn ports(of: &PortsEvidence) -> String {
    let mut parts = Vec::new();
    if of.refused > 0 {
        parts.push(format!(
            "{} found no free port (EADDRNOTAVAIL)",
            counted(of.refused as usize, "connection")
        ));
    }
    parts.extend(of.taken.as_ref().map(taken));
    parts.extend(of.reliefs.iter().map(|one| relief(one, "find none")));
    let failed = of.failed.as_ref();
    parts.extend(failed.map(|reason| format!("it could not be measured to the end: {reason}")));
    parts.join("; ")
}

fn taken(ports: &TakenPorts) -> String {
    let whose = ports.server.as_ref();
    format!(
        "{} of {} ports{} waited in TIME_WAIT",
        grouped(ports.waiting),
        grouped(u64::from(ports.range)),
        whose.map_or_else(String::new, |server| format!(" of `{server}`"))
    )
}

/// `with more ports 0 of 192 instead of 300 of 492 find none, and …`; `what` is what they do.
fn relief(relief: &Relief, what: &str) -> String {
    let of = |one: Refused| format!("{} of {}", grouped(one.refused), grouped(one.all));
    format!(
        "with {} {} instead of {} {what}, and the throughput is {} as high",
        change(relief.change),
        of(relief.left),
        of(relief.before),
        times(relief.ratio)
    )
}

fn other_programs(machine: &MachineUse) -> String {
    let (busy, own) = (share(machine.busy), share(machine.own));
    match &machine.host {
        None => format!(
            "the CPUs of client and servers were {busy} busy, and client and servers had {own} of \
             them"
        ),
        Some(host) => format!(
            "the CPUs of the servers on host `{host}` were {busy} busy, and the servers had {own} \
             of them"
        ),
    }
}

/// Every effect: `throughput with twice the connections 1.02 times, with …`.
fn changes(effects: &[Effect]) -> String {
    let one = |effect: &Effect| format!("{} {}", change(effect.change), times(effect.ratio));
    let all: Vec<String> = effects.iter().map(one).collect();
    match all.is_empty() {
        true => "no change was tried".to_owned(),
        false => format!("throughput with {}", all.join(", with ")),
    }
}

fn change(change: Change) -> &'static str {
    match change {
        Change::None => "no change",
        Change::ClientThread => "one more client thread",
        Change::ClientApart => "a CPU of its own for the client",
        Change::TwiceTheConnections => "twice the connections",
        Change::HalfTheConnections => "half the connections",
        Change::HalfTheServerCpu => "half the servers' CPU",
        Change::TwiceTheLinkRate => "twice the link's rate",
        Change::MorePorts => "more ports",
    }
}

/// `1.52 times`.
fn times(ratio: f64) -> String {
    format!("{} times", number(ratio, 2, false))
}

/// `85%`.
fn share(of: f64) -> String {
    format!("{:.0}%", of * 100.0)
}

#[cfg(test)]
mod tests;

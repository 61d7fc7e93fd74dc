//! Servers behind the first one: whether requests reached them, and whether their accept queues
//! explain requests that failed.

use std::collections::BTreeMap;

use readings::{AcceptQueue, LoadReading, NetworkMetrics, Reading, SystemMetrics};

use crate::text::{counted, grouped};
use crate::validity::Flaw;

/// Requests from which a server's CPU time shows whether it was asked.
const REQUESTS_MIN: u64 = 1_000;
/// CPU time per request, in microseconds, below which a server was not asked.
const CPU_US: f64 = 0.5;
/// Where CPU time is counted in ticks of 10 ms, few requests may show none. A server that was asked
/// shows it otherwise: it was woken more often than this per request ...
const SWITCHES: f64 = 0.01;
/// ... and from this many requests on it has ticks.
const REQUESTS_OF_TICKS: u64 = 20_000;

/// Servers that another one had to ask for every request, and that did nothing meanwhile.
pub(crate) fn unasked(reading: &Reading, probed: Option<&SystemMetrics>) -> Vec<Flaw> {
    let Some(probed) = probed.filter(|seen| seen.requests >= REQUESTS_MIN) else {
        return Vec::new();
    };
    let mut behind: BTreeMap<&String, Vec<&String>> = BTreeMap::new();
    for (server, front) in &reading.asked_by {
        behind.entry(front).or_default().push(server);
    }
    // A balancer may leave some of its servers out, not all.
    behind.retain(|_, servers| servers.iter().all(|server| is_idle(server, probed)));
    let flaw = |(front, servers): (&String, Vec<&String>)| {
        Flaw::of_subject(format!(
            "server `{front}` answered {} requests without {}, which took no CPU time: if it should \
             answer by itself, set expect.every_server = false",
            grouped(probed.requests),
            list(&servers),
        ))
    };
    behind.into_iter().map(flaw).collect()
}

/// Whether a server was sampled, and did next to nothing.
fn is_idle(server: &str, probed: &SystemMetrics) -> bool {
    let Some(seen) = probed.servers.get(server).filter(|s| s.processes_max > 0) else {
        return false;
    };
    let requests = probed.requests as f64;
    let cpu_us = (seen.user_s + seen.system_s) / requests * 1e6;
    let switches = (seen.switches_voluntary + seen.switches_involuntary) as f64 / requests;
    cpu_us < CPU_US && (probed.requests >= REQUESTS_OF_TICKS || switches < SWITCHES)
}

/// Adds the accept queues that were full to the flaw of requests that failed on the way. If the load
/// has none, the overflows of the networks during the windows are named: old journals have only
/// these.
pub(crate) fn name_the_queue(
    flaws: &mut [Flaw],
    reading: &Reading,
    load: &LoadReading,
    probed: Option<&SystemMetrics>,
) {
    let queues = match load.accept_queues.is_empty() {
        false => full_queues(&load.accept_queues),
        true => {
            let networks = probed.into_iter().flat_map(|seen| &seen.networks);
            let queues = networks.filter_map(|network| overflowed(network, reading));
            queues.collect()
        }
    };
    add_queues(flaws, load, &queues);
}

/// The same for a load outside a trial, of which no networks were sampled.
pub(crate) fn name_the_queue_of(flaws: &mut [Flaw], load: &LoadReading) {
    add_queues(flaws, load, &full_queues(&load.accept_queues));
}

fn add_queues(flaws: &mut [Flaw], load: &LoadReading, queues: &[String]) {
    let errors = &load.errors_all;
    if errors.timeout + errors.connect + errors.read == 0 || queues.is_empty() {
        return;
    }
    let failed = |flaw: &&mut Flaw| {
        flaw.reason.contains("failed on the way") || flaw.reason == "no good answer came"
    };
    if let Some(flaw) = flaws.iter_mut().find(failed) {
        flaw.reason.push_str(&format!("; {}", queues.join("; ")));
    }
}

/// A sentence fragment on each accept queue that was full.
pub fn full_queues(queues: &[AcceptQueue]) -> Vec<String> {
    let each = queues.iter().map(|queue| match &queue.server {
        Some(server) => {
            let backlog = queue.backlog.map(|backlog| format!(" (backlog {backlog})"));
            format!(
                "the accept queue of `{server}`{} was full {}",
                backlog.unwrap_or_default(),
                times(queue.full)
            )
        }
        None => format!(
            "the accept queue of an unknown server was full {} (ListenOverflows)",
            times(queue.full)
        ),
    });
    each.collect()
}

fn overflowed(network: &NetworkMetrics, reading: &Reading) -> Option<String> {
    let on_path = |name: &&String| reading.servers.iter().any(|one| one.server == **name);
    let servers: Vec<&String> = network.servers.iter().filter(on_path).collect();
    let whose = match servers.is_empty() {
        true => "a server".to_owned(),
        false => list(&servers),
    };
    match (network.listen_overflows, network.listen_drops) {
        (0, 0) => None,
        (0, drops) => Some(format!(
            "the kernel dropped {} to {whose} while they were opened",
            counted(drops as usize, "connection")
        )),
        (overflows, _) => Some(format!(
            "the accept queue of {whose} was full {}",
            times(overflows)
        )),
    }
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        _ => format!("{} times", grouped(count)),
    }
}

/// `` `a` or `b` ``.
fn list(names: &[&String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::Cells;
    use crate::fixtures::{closed, done, header, trial};
    use readings::{Outcome, ServerMetrics, ServerReading};

    /// The reasons against a trial of 24,977 requests through `caddy` to `one` and `two`, of which
    /// these took CPU time.
    fn reasons(asked: &[&str], change: impl Fn(&mut Reading, &mut SystemMetrics)) -> Vec<String> {
        let mut outcome = done(Some(closed(2_497.7)), None);
        let Outcome::Done(reading) = &mut outcome else {
            unreachable!()
        };
        let mut seen = SystemMetrics {
            looked_s: 10.0,
            requests: 24_977,
            ..SystemMetrics::default()
        };
        for server in ["caddy", "one", "two"] {
            let metrics = ServerMetrics {
                processes_max: 1,
                user_s: if asked.contains(&server) { 0.1 } else { 0.0002 },
                ..ServerMetrics::default()
            };
            seen.servers.insert(server.to_owned(), metrics);
            let server = server.to_owned();
            let cpu_s = 0.0;
            reading.servers.push(ServerReading { server, cpu_s });
        }
        for server in ["one", "two"] {
            let front = "caddy".to_owned();
            reading.asked_by.insert(server.to_owned(), front);
        }
        change(reading, &mut seen);
        reading.probed = Some(seen);
        let trials = [trial(1, "direct", false, outcome)];
        let header = header(1);
        let cells = Cells::of(&header, &trials);
        cells.counted().next().unwrap().reasons.clone()
    }

    #[test]
    fn a_proxy_that_answers_without_its_back_end_is_invalid() {
        assert_eq!(
            reasons(&["caddy"], |_, _| {}),
            [
                "throughput: server `caddy` answered 24,977 requests without `one` or `two`, which \
                 took no CPU time: if it should answer by itself, set expect.every_server = false"
            ]
        );
        assert!(
            reasons(&["caddy", "two"], |_, _| {}).is_empty(),
            "a balancer chose"
        );
        // It caches, or the experiment says that it answers some requests itself.
        assert!(reasons(&["caddy"], |reading, _| reading.asked_by.clear()).is_empty());
    }

    #[test]
    fn a_server_that_was_not_sampled_or_hardly_asked_is_not_accused() {
        let unsampled = |_: &mut Reading, seen: &mut SystemMetrics| seen.servers.clear();
        assert!(reasons(&["caddy"], unsampled).is_empty());
        let few = |_: &mut Reading, seen: &mut SystemMetrics| seen.requests = 900;
        assert!(reasons(&["caddy"], few).is_empty());
        // CPU time in ticks: none was counted, but it was woken.
        let woken = |_: &mut Reading, seen: &mut SystemMetrics| {
            seen.requests = 5_000;
            for server in seen.servers.values_mut() {
                (server.user_s, server.switches_voluntary) = (0.0, 300);
            }
        };
        assert!(reasons(&["caddy"], woken).is_empty());
    }

    #[test]
    fn failed_requests_name_the_accept_queue_that_overflowed() {
        let python = |overflows| {
            move |reading: &mut Reading, seen: &mut SystemMetrics| {
                reading.asked_by.clear();
                reading.servers.truncate(1);
                let load = reading.throughput.as_mut().unwrap();
                load.errors_all.timeout = 2_000;
                seen.networks.push(NetworkMetrics {
                    servers: vec!["caddy".to_owned(), "of-another-subject".to_owned()],
                    listen_overflows: overflows,
                    listen_drops: overflows,
                    ..NetworkMetrics::default()
                });
            }
        };
        let found = reasons(&[], python(112));
        let told = "(2,000 timeout); the accept queue of `caddy` was full 112 times";
        assert!(found[0].ends_with(told), "{found:?}");
        assert!(!reasons(&[], python(0))[0].contains("queue"));
    }

    #[test]
    fn a_queue_that_was_full_in_other_slices_of_the_load_is_named_with_its_backlog() {
        let queue = |server: Option<&str>, full| AcceptQueue {
            server: server.map(str::to_owned),
            backlog: server.map(|_| 5),
            full,
        };
        let failed = |queues: Vec<AcceptQueue>| {
            let found = reasons(&["caddy", "one"], move |reading, seen| {
                let load = reading.throughput.as_mut().unwrap();
                load.errors_all.timeout = 2_000;
                load.accept_queues = queues.clone();
                // The subject's own windows saw none.
                seen.networks.push(NetworkMetrics::default());
            });
            found[0].clone()
        };
        let told = failed(vec![queue(Some("caddy"), 71)]);
        let named = "; the accept queue of `caddy` (backlog 5) was full 71 times";
        assert!(told.ends_with(named), "{told}");
        let told = failed(vec![queue(None, 1)]);
        let named = "; the accept queue of an unknown server was full once (ListenOverflows)";
        assert!(told.ends_with(named), "{told}");
        let mut load = closed(100.0);
        load.accept_queues = vec![queue(Some("caddy"), 71)];
        assert!(crate::reasons(&load).is_empty(), "no request failed");
        load.errors_all.timeout = 2_000;
        assert!(crate::reasons(&load)[0].ends_with("was full 71 times"));
    }
}

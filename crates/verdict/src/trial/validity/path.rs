//! Servers behind the first one: whether requests reached them, and whether their accept queues
//! explain requests that failed.

use std::collections::BTreeMap;

use readings::{LoadReading, NetworkMetrics, Reading, SystemMetrics};

use crate::{Flaw, FullQueue};

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
    let flaw = |(front, servers): (&String, Vec<&String>)| Flaw::Unasked {
        front: front.clone(),
        behind: servers.into_iter().cloned().collect(),
        requests: probed.requests,
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

/// Adds the accept queues that were full to the flaw of requests that failed on the way, or of
/// connections that were not open. If the load
/// has none, the overflows of the networks during the windows are named: old journals have only
/// these.
pub(crate) fn name_the_queue(
    flaws: &mut [Flaw],
    reading: &Reading,
    load: &LoadReading,
    probed: Option<&SystemMetrics>,
) {
    let queues = match load.accept_queues.is_empty() {
        false => known(load),
        true => {
            let networks = probed.into_iter().flat_map(|seen| &seen.networks);
            let queues = networks.filter_map(|network| overflowed(network, reading));
            queues.collect()
        }
    };
    add_queues(flaws, load, queues);
}

/// The same for a load outside a trial, of which no networks were sampled.
pub(crate) fn name_the_queue_of(flaws: &mut [Flaw], load: &LoadReading) {
    add_queues(flaws, load, known(load));
}

fn known(load: &LoadReading) -> Vec<FullQueue> {
    let queues = load.accept_queues.iter().cloned();
    queues.map(FullQueue::Known).collect()
}

fn add_queues(flaws: &mut [Flaw], load: &LoadReading, queues: Vec<FullQueue>) {
    let errors = &load.errors_all;
    let mut all = flaws.iter();
    let are_missing = all.any(|one| matches!(one, Flaw::MissingConnections { .. }));
    let lost = [
        errors.timeout,
        errors.connect,
        errors.read,
        errors.unexplained,
    ];
    if lost == [0; 4] && !are_missing {
        return;
    }
    if let Some(named) = flaws.iter_mut().find_map(Flaw::queues_mut) {
        *named = queues;
    }
}

fn overflowed(network: &NetworkMetrics, reading: &Reading) -> Option<FullQueue> {
    let on_path = |name: &&String| reading.servers.iter().any(|one| one.server == **name);
    let servers = network.servers.iter().filter(on_path).cloned().collect();
    match (network.listen_overflows, network.listen_drops) {
        (0, 0) => None,
        (0, dropped) => Some(FullQueue::Dropped { servers, dropped }),
        (times, _) => Some(FullQueue::Overflowed { servers, times }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{closed, done, header, measured, trial};
    use crate::trial::cells::Cells;
    use readings::{AcceptQueue, ServerMetrics, ServerReading};

    /// The flaws of a trial of 24,977 requests through `caddy` to `one` and `two`, of which
    /// these took CPU time.
    fn flaws(asked: &[&str], change: impl Fn(&mut Reading, &mut SystemMetrics)) -> Vec<Flaw> {
        let mut outcome = done(Some(closed(2_497.7)), None);
        let reading = measured(&mut outcome);
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
            reading.servers.push(ServerReading {
                server,
                cpu_s,
                ..ServerReading::default()
            });
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
        let reasons = &cells.counted().next().unwrap().reasons;
        reasons.iter().map(|one| one.flaw.clone()).collect()
    }

    /// The accept queues that the first flaw names.
    fn named(flaws: &[Flaw]) -> Vec<FullQueue> {
        flaws[0].clone().queues_mut().unwrap().clone()
    }

    #[test]
    fn a_proxy_that_answers_without_its_back_end_is_invalid() {
        let unasked = Flaw::Unasked {
            front: "caddy".to_owned(),
            behind: vec!["one".to_owned(), "two".to_owned()],
            requests: 24_977,
        };
        assert_eq!(flaws(&["caddy"], |_, _| {}), [unasked]);
        assert!(
            flaws(&["caddy", "two"], |_, _| {}).is_empty(),
            "a balancer chose"
        );
        // It caches, or the experiment says that it answers some requests itself.
        assert!(flaws(&["caddy"], |reading, _| reading.asked_by.clear()).is_empty());
    }

    #[test]
    fn a_server_that_was_not_sampled_or_hardly_asked_is_not_accused() {
        let unsampled = |_: &mut Reading, seen: &mut SystemMetrics| seen.servers.clear();
        assert!(flaws(&["caddy"], unsampled).is_empty());
        let few = |_: &mut Reading, seen: &mut SystemMetrics| seen.requests = 900;
        assert!(flaws(&["caddy"], few).is_empty());
        // CPU time in ticks: none was counted, but it was woken.
        let woken = |_: &mut Reading, seen: &mut SystemMetrics| {
            seen.requests = 5_000;
            for server in seen.servers.values_mut() {
                (server.user_s, server.switches_voluntary) = (0.0, 300);
            }
        };
        assert!(flaws(&["caddy"], woken).is_empty());
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
        let full = FullQueue::Overflowed {
            servers: vec!["caddy".to_owned()],
            times: 112,
        };
        assert_eq!(named(&flaws(&[], python(112))), [full]);
        assert_eq!(named(&flaws(&[], python(0))), []);
    }

    #[test]
    fn a_queue_that_was_full_in_other_slices_of_the_load_is_named_with_its_backlog() {
        let queue = |server: Option<&str>, full| AcceptQueue {
            server: server.map(str::to_owned),
            backlog: server.map(|_| 5),
            full,
        };
        let failed = |queues: Vec<AcceptQueue>| {
            let found = flaws(&["caddy", "one"], move |reading, seen| {
                let load = reading.throughput.as_mut().unwrap();
                load.errors_all.timeout = 2_000;
                load.accept_queues = queues.clone();
                // The subject's own windows saw none.
                seen.networks.push(NetworkMetrics::default());
            });
            named(&found)
        };
        for queue in [queue(Some("caddy"), 71), queue(None, 1)] {
            assert_eq!(failed(vec![queue.clone()]), [FullQueue::Known(queue)]);
        }
        let mut load = closed(100.0);
        load.accept_queues = vec![queue(Some("caddy"), 71)];
        assert!(crate::load_flaws(&load).is_empty(), "no request failed");
        // Connections that wait in the queue are not open, and need not have failed.
        load.connections_open_min = 5;
        assert_eq!(
            named(&crate::load_flaws(&load)),
            [FullQueue::Known(queue(Some("caddy"), 71))]
        );
        load.errors_all.timeout = 2_000;
        assert_eq!(named(&crate::load_flaws(&load)).len(), 1);
    }
}

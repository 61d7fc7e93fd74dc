//! Findings from made-up probes.

use std::collections::BTreeMap;

use super::*;
use readings::{
    BottleneckSample, Change, CpuSample, KernelSample, PortsSample, Probe, ServerSample,
};

mod accept_queue;
mod links;
mod machines;

/// A load by which nothing is limited.
fn probe(change: Change, requests_per_s: f64) -> Probe {
    Probe {
        change,
        connections: 64,
        duration_s: 1.0,
        requests_per_s,
        latency_us_mean: 64e6 / requests_per_s,
        latency_us_p50: 60e6 / requests_per_s,
        latency_us_p99: 300e6 / requests_per_s,
        connect_us_max: 100.0,
        connects: 64,
        requests_all: requests_per_s as u64,
        errors_all: 0,
        no_port: 0,
        accept_queue_full: None,
        bytes_per_s: requests_per_s * 150.0,
        client: vec![0.4],
        quota_cpus: None,
        links: None,
        seen: BottleneckSample {
            duration_s: 1.0,
            servers: BTreeMap::from([("origin".to_owned(), server(0.5, &[0.5]))]),
            client_wanted: 0.4,
            cpus: vec![
                CpuSample { cpu: 0, busy: 0.5 },
                CpuSample { cpu: 1, busy: 0.4 },
            ],
            other_cpus: BTreeMap::new(),
            kernel: KernelSample {
                segments: 10_000,
                ..KernelSample::default()
            },
            ports: vec![PortsSample {
                servers: vec!["origin".into()],
                waiting: 2,
            }],
        },
    }
}

fn server(cpus: f64, busiest: &[f64]) -> ServerSample {
    ServerSample {
        cpus,
        threads: busiest.len() as u32,
        busiest: busiest.to_vec(),
        wanted: busiest.to_vec(),
    }
}

/// Three loads of each kind around the rates given, unchanged first.
fn reading(rates: &[(Change, f64)], shape: impl Fn(&mut Probe)) -> BottleneckReading {
    let probes = [0.98, 1.0, 1.02]
        .into_iter()
        .flat_map(|wobble| {
            rates
                .iter()
                .map(move |(change, rate)| (*change, rate * wobble))
        })
        .map(|(change, rate)| {
            let mut one = probe(change, rate);
            shape(&mut one);
            one
        })
        .collect();
    BottleneckReading {
        subject: "direct".into(),
        probes,
        client_threads: 1,
        client_cpus: vec![1],
        server_cpus: vec![0],
        keepalive: true,
        ports: Some(28_000),
        ..BottleneckReading::default()
    }
}

fn rates(thread: f64, twice: f64, cpu: f64) -> [(Change, f64); 4] {
    [
        (Change::None, 1000.0),
        (Change::ClientThread, 1000.0 * thread),
        (Change::TwiceTheConnections, 1000.0 * twice),
        (Change::HalfTheServerCpu, 1000.0 * cpu),
    ]
}

#[track_caller]
fn first(reading: &BottleneckReading) -> Finding {
    bottlenecks(&[reading]).swap_remove(0)
}

/// The evidence of the first bottleneck, which is this one and stands so.
#[track_caller]
fn judged(reading: &BottleneckReading, is: Bottleneck, stands: Standing) -> Evidence {
    let one = first(reading);
    assert_eq!((one.bottleneck, one.standing), (is, stands));
    one.evidence
}

#[track_caller]
fn client(evidence: Evidence) -> ClientEvidence {
    match evidence {
        Evidence::Client(found) => found,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn of_server(evidence: Evidence) -> ServerEvidence {
    match evidence {
        Evidence::Server(found) => found,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn of_ports(evidence: Evidence) -> PortsEvidence {
    match evidence {
        Evidence::Ports(found) => found,
        other => panic!("{other:?}"),
    }
}

/// Whether a figure is what is expected, to a thousandth.
fn is(figure: impl Into<Option<f64>>, expected: f64) -> bool {
    let figure: Option<f64> = figure.into();
    figure.is_some_and(|figure| (figure - expected).abs() < 1e-3)
}

#[test]
fn a_client_that_a_thread_more_makes_faster_is_confirmed_and_the_figure_at_least() {
    let made = reading(&rates(1.8, 1.0, 0.9), |p| p.client = vec![0.99]);
    assert!(first(&made).at_least);
    let seen = client(judged(&made, Bottleneck::Client, Standing::Confirmed));
    assert!(is(seen.busiest, 0.99), "{seen:?}");
    assert!(matches!(seen.thread, Some(ThreadMore::Raised(gain)) if is(gain, 1.8)));
}

#[test]
fn a_client_that_rests_most_of_the_time_is_not_accused_whatever_another_thread_brings() {
    let resting = |p: &mut Probe| {
        p.client = vec![0.08];
        p.seen.client_wanted = 0.28;
    };
    let made = reading(&rates(1.44, 1.0, 0.9), resting);
    assert_eq!(first(&made).bottleneck, Bottleneck::Unknown);
    let works = |p: &mut Probe| p.seen.client_wanted = 0.6;
    let made = reading(&rates(1.44, 1.0, 0.9), works);
    assert_eq!(first(&made).bottleneck, Bottleneck::Client);
}

#[test]
fn a_client_that_shares_a_cpu_is_confirmed_by_one_of_its_own() {
    let with = |apart: f64| {
        let mut changes = rates(0.95, 1.0, 0.9).to_vec();
        changes.push((Change::ClientApart, 1000.0 * apart));
        let mut made = reading(&changes, |p| p.seen.cpus[0].busy = 1.0);
        made.client_cpus = vec![0];
        made
    };
    let seen = client(judged(&with(1.4), Bottleneck::Client, Standing::Confirmed));
    assert_eq!(seen.shared, Some((vec![0], 1.0)));
    assert!(is(seen.apart, 1.4) && seen.thread.is_none(), "{seen:?}");
    let thread = client(judged(&with(1.0), Bottleneck::Client, Standing::Suspected)).thread;
    assert!(matches!(thread, Some(ThreadMore::NotRaised(ratio)) if is(ratio, 0.95)));
}

#[test]
fn one_full_worker_of_four_is_named_and_half_its_time_confirms_it() {
    let one_of_four = |p: &mut Probe| {
        p.seen.servers = BTreeMap::from([("w".to_owned(), server(1.0, &[0.97, 0.01, 0.0, 0.0]))]);
        p.quota_cpus = (p.change == Change::HalfTheServerCpu).then_some(0.5);
    };
    let mut made = reading(&rates(1.0, 1.02, 0.5), one_of_four);
    made.server_cpus = vec![0, 1, 2, 3];
    let seen = of_server(judged(&made, Bottleneck::Server, Standing::Confirmed));
    let Some(Full::Thread(threads)) = seen.full else {
        panic!("{seen:?}");
    };
    assert!(is(threads.had, 0.97) && is(threads.second_had, 0.01) && threads.count == 4);
    assert_eq!(seen.cpus.cpus, [0, 1, 2, 3]);
    assert!(seen.halved.is_some_and(|halved| is(halved.left, 0.5)));
}

#[test]
fn halving_the_cpu_of_a_server_that_was_not_full_shows_sensitivity_and_confirms_nothing() {
    let busy = |share: f64| {
        reading(&rates(1.0, 1.02, 0.52), move |p| {
            p.seen.servers = BTreeMap::from([("w".to_owned(), server(share, &[share]))]);
        })
    };
    let seen = of_server(judged(&busy(0.76), Bottleneck::Server, Standing::Sensitive));
    assert_eq!(seen.full, None);
    assert!(is(seen.cpus.used, 0.76), "{seen:?}");
    assert!(seen.halved.is_some_and(|halved| is(halved.left, 0.52)));
    let seen = of_server(judged(&busy(0.98), Bottleneck::Server, Standing::Confirmed));
    assert_eq!(seen.full, Some(Full::Cpus { threads: 1 }));
    // Full, and no change was tried: suspected.
    let mut untried = busy(0.98);
    untried
        .probes
        .retain(|probe| probe.change != Change::HalfTheServerCpu);
    assert_eq!(first(&untried).standing, Standing::Suspected);
}

#[test]
fn a_cpu_that_three_servers_fill_is_the_bottleneck_itself() {
    let three = |p: &mut Probe| {
        p.seen.servers = [("app", 0.33), ("haproxy", 0.34), ("nginx", 0.32)]
            .map(|(name, cpus)| {
                let mut one = server(cpus, &[cpus]);
                one.wanted = vec![0.95];
                (name.to_owned(), one)
            })
            .into();
    };
    let made = reading(&rates(1.0, 1.0, 0.5), three);
    assert_eq!(first(&made).server, None);
    let seen = of_server(judged(&made, Bottleneck::SharedCpu, Standing::Confirmed));
    assert_eq!(seen.full, Some(Full::SharedCpus));
    assert!(is(seen.cpus.used, 0.99), "{seen:?}");
    let names: Vec<&str> = seen.each.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["app", "haproxy", "nginx"]);
    // On CPUs of their own one of them is full, whatever the others do.
    let mut apart = reading(&rates(1.0, 1.0, 0.5), |p| {
        p.seen.servers = [("app", 0.33), ("haproxy", 0.97)]
            .map(|(name, cpus)| (name.to_owned(), server(cpus, &[cpus])))
            .into();
    });
    apart.server_cpus = vec![0, 2];
    apart.cpus_of_servers = [("app", vec![0]), ("haproxy", vec![2])]
        .map(|(name, cpus)| (name.to_owned(), cpus))
        .into();
    judged(&apart, Bottleneck::Server, Standing::Confirmed);
    assert_eq!(first(&apart).server.as_deref(), Some("haproxy"));
}

#[test]
fn four_threads_on_one_cpu_are_not_read_as_one_thread() {
    let made = reading(&rates(1.0, 1.0, 0.5), |p| {
        let mut one = server(0.97, &[0.93, 0.02, 0.01, 0.01]);
        one.wanted = vec![0.98];
        p.seen.servers = BTreeMap::from([("go".to_owned(), one)]);
    });
    let seen = of_server(first(&made).evidence);
    assert_eq!(seen.full, Some(Full::Cpus { threads: 4 }));
}

#[test]
fn a_server_with_time_to_spare_is_not_accused_for_losing_some() {
    let made = reading(&rates(1.0, 1.1, 0.8), |_| {});
    let seen = judged(&made, Bottleneck::Unknown, Standing::Unknown);
    assert!(matches!(seen, Evidence::Unexplained { .. }), "{seen:?}");
}

#[test]
fn throughput_in_proportion_to_connections_is_concurrency() {
    let slow = |p: &mut Probe| {
        p.connections = 4;
        (p.latency_us_p50, p.latency_us_p99) = (50_100.0, 50_900.0);
        p.latency_us_mean = 50_200.0;
        p.client = vec![0.01];
        p.seen.servers.clear();
    };
    let changes = [(Change::None, 79.6), (Change::TwiceTheConnections, 159.0)];
    let seen = judged(
        &reading(&changes, slow),
        Bottleneck::Concurrency,
        Standing::Confirmed,
    );
    assert!(
        matches!(seen, Evidence::Concurrency { connections: 4, p50_us, gain }
            if is(p50_us, 50_100.0) && is(gain, 159.0 / 79.6)),
        "{seen:?}"
    );
    // Nothing was changed: all connections are busy with answers that take the same time.
    judged(
        &reading(&changes[..1], slow),
        Bottleneck::Concurrency,
        Standing::Suspected,
    );
}

#[test]
fn ports_upstream_connections_and_links_are_suspected_by_what_was_counted() {
    let made = reading(&rates(1.0, 1.0, 0.9), |p| {
        p.no_port = 20;
    });
    assert_eq!(first(&made).bottleneck, Bottleneck::Ports);
    let made = reading(&rates(1.0, 1.0, 0.9), |p| {
        p.seen.kernel.accepted = (p.requests_per_s * 1.0) as u64;
        p.seen.servers.insert("proxy".into(), server(0.3, &[0.3]));
    });
    let seen = judged(&made, Bottleneck::UpstreamConnections, Standing::Suspected);
    assert!(
        matches!(seen, Evidence::UpstreamConnections { per_request, .. } if is(per_request, 1.0)),
        "{seen:?}"
    );
    let mut made = reading(&rates(1.0, 1.0, 0.9), |p| p.bytes_per_s = 5.9e6);
    made.link_bits_per_s = Some(50e6);
    assert_eq!(first(&made).bottleneck, Bottleneck::Network);
}

#[test]
fn a_link_that_twice_its_rate_moves_is_confirmed_and_one_that_it_does_not_is_not() {
    let over = |rates: &[(Change, f64)]| {
        let mut made = reading(rates, |p| p.bytes_per_s = 5.9e6);
        made.link_bits_per_s = Some(50e6);
        made
    };
    let mut changes = rates(1.0, 1.0, 0.9).to_vec();
    changes.push((Change::TwiceTheLinkRate, 1950.0));
    let seen = judged(&over(&changes), Bottleneck::Network, Standing::Confirmed);
    assert!(
        matches!(seen, Evidence::Network { bits_per_s, gain, resent: None, .. }
            if is(bits_per_s, 47.2e6) && is(gain, 1.95)),
        "{seen:?}"
    );
    changes[4].1 = 1010.0;
    judged(&over(&changes), Bottleneck::Network, Standing::Suspected);
}

#[test]
fn ports_are_confirmed_where_fewer_connections_find_one_and_lose_nothing() {
    let refused = |p: &mut Probe| {
        p.no_port = 100 * u64::from(p.change != Change::HalfTheConnections);
    };
    let mut changes = rates(1.0, 1.0, 0.9).to_vec();
    changes.push((Change::HalfTheConnections, 1010.0));
    let made = reading(&changes, refused);
    let seen = of_ports(judged(&made, Bottleneck::Ports, Standing::Confirmed));
    assert_eq!(seen.refused, 300);
    let (left, before) = ((0, 192), (300, 492));
    let pair = |one: Refused| (one.refused, one.all);
    assert_eq!(
        (pair(seen.reliefs[0].left), pair(seen.reliefs[0].before)),
        (left, before)
    );
    // More ports, which are there for all, bring more throughput.
    changes[4] = (Change::MorePorts, 1500.0);
    let for_all = |p: &mut Probe| p.no_port = 100 * u64::from(p.change != Change::MorePorts);
    let made = reading(&changes, for_all);
    let seen = of_ports(judged(&made, Bottleneck::Ports, Standing::Confirmed));
    assert_eq!(seen.reliefs[0].change, Change::MorePorts);
    changes[4] = (Change::HalfTheConnections, 1010.0);
    // Half the connections ask half as often: that alone shows nothing.
    let half_as_many = |p: &mut Probe| {
        let half = p.change == Change::HalfTheConnections;
        (p.no_port, p.connects) = if half { (50, 32) } else { (100, 64) };
    };
    assert_eq!(
        first(&reading(&changes, half_as_many)).standing,
        Standing::Suspected
    );
    assert_eq!(
        first(&reading(&rates(1.0, 1.0, 0.9), refused)).standing,
        Standing::Suspected
    );
}

#[test]
fn ports_that_wait_matter_to_who_opens_connections_and_not_to_a_server_that_closed_them() {
    let waiting = |own: u64, servers: u64| {
        let mut made = reading(&rates(1.0, 1.0, 0.9), |p| {
            p.seen.kernel.time_wait = 40_000;
            p.seen.ports[0].waiting = own;
            p.seen.ports.push(PortsSample {
                servers: vec!["proxy".into()],
                waiting: servers,
            });
        });
        made.keepalive = false;
        made.server_ports = BTreeMap::from([("proxy".into(), 200)]);
        made
    };
    // The kernel looks through every second port before it tries the others.
    assert_eq!(first(&waiting(13_900, 1)).bottleneck, Bottleneck::Ports);
    // Sockets by the thousand wait on the one port of a server.
    assert_eq!(first(&waiting(1, 1)).bottleneck, Bottleneck::Unknown);
    let seen = judged(&waiting(27_000, 1), Bottleneck::Ports, Standing::Suspected);
    let taken = |server: Option<&str>, waiting, range| {
        Some(TakenPorts {
            server: server.map(str::to_owned),
            waiting,
            range,
        })
    };
    assert_eq!(of_ports(seen).taken, taken(None, 27_000, 28_000));
    let found = first(&waiting(1, 199));
    assert_eq!(found.bottleneck, Bottleneck::Ports);
    assert_eq!(found.server.as_deref(), Some("proxy"));
    let seen = of_ports(found.evidence);
    assert_eq!(seen.taken, taken(Some("proxy"), 199, 200));
    // A load that keeps its connections opens none: the sockets are others'.
    let mut made = waiting(27_000, 1);
    made.keepalive = true;
    assert_eq!(first(&made).bottleneck, Bottleneck::Unknown);
}

#[test]
fn a_load_that_opens_connections_itself_accuses_no_upstream() {
    let made = reading(&rates(1.0, 1.0, 0.9), |p| {
        p.connects = 1064;
        p.requests_all = 1000;
        p.seen.kernel.accepted = p.requests_per_s as u64;
        p.seen.servers.insert("proxy".into(), server(0.3, &[0.3]));
    });
    assert_eq!(first(&made).bottleneck, Bottleneck::Unknown);
}

#[test]
fn what_could_not_be_measured_is_unknown_with_the_reason() {
    let made = BottleneckReading {
        subject: "direct".into(),
        failed: Some("no port".into()),
        ..BottleneckReading::default()
    };
    let seen = judged(&made, Bottleneck::Unknown, Standing::Unknown);
    assert_eq!(seen, Evidence::NotMeasured("no port".into()));
}

#[test]
fn a_load_that_finds_no_port_at_all_is_limited_by_ports() {
    let made = |waiting| BottleneckReading {
        subject: "direct".into(),
        ports: Some(200),
        failed: Some("cannot be measured".into()),
        waiting_at_failure: Some(waiting),
        ..BottleneckReading::default()
    };
    let seen = judged(&made(200), Bottleneck::Ports, Standing::Suspected);
    let seen = of_ports(seen);
    assert!(seen.taken.is_some_and(|taken| taken.waiting == 200));
    assert_eq!(seen.failed.as_deref(), Some("cannot be measured"));
    assert_eq!(first(&made(5)).bottleneck, Bottleneck::Unknown);
    // Connections that are about to be closed hold ports, too: what was refused tells.
    let refused = BottleneckReading {
        failed: Some("Cannot assign requested address: no local port is free".into()),
        ..made(5)
    };
    assert_eq!(first(&refused).bottleneck, Bottleneck::Ports);
}

#[test]
fn segments_sent_again_for_a_full_accept_queue_accuse_no_link() {
    let lost = |for_the_queue: u64| {
        reading(&rates(1.0, 1.0, 0.9), |p| {
            p.connects = 1_000;
            p.seen.kernel.retransmits = 400;
            p.seen.kernel.listen_overflows = for_the_queue;
        })
    };
    for (for_the_queue, named) in [(0, Bottleneck::Network), (400, Bottleneck::AcceptQueue)] {
        let found = bottlenecks(&[&lost(for_the_queue)]);
        assert!(
            found.len() == 1 && found[0].bottleneck == named,
            "{found:?}"
        );
    }
}

#[test]
fn on_a_machine_that_others_use_a_thread_is_full_that_always_wants_a_cpu() {
    let made = reading(&rates(1.0, 1.0, 0.5), |p| {
        let mut one = server(0.2, &[0.2]);
        one.wanted = vec![0.98];
        p.seen.servers = BTreeMap::from([("w".to_owned(), one)]);
        p.client = vec![0.1];
        p.seen.client_wanted = 0.5;
        p.seen.cpus.iter_mut().for_each(|cpu| cpu.busy = 1.0);
    });
    let found = bottlenecks(&[&made]);
    let seen = of_server(judged(&made, Bottleneck::Server, Standing::Confirmed));
    assert!(
        matches!(seen.full, Some(Full::Thread(threads)) if is(threads.had, 0.2) && is(threads.wanted, 0.98)),
        "{seen:?}"
    );
    assert_eq!(found[1].bottleneck, Bottleneck::OtherPrograms);
    assert!(
        matches!(&found[1].evidence, Evidence::OtherPrograms(machine) if is(machine.own, 0.15)),
        "{found:?}"
    );
}

#[test]
fn noise_alone_confirms_nothing() {
    let mut made = reading(&rates(1.3, 1.6, 0.6), |_| {});
    // Loads alike differ by a factor of two.
    let factors = [0.5, 1.0, 2.0].into_iter().cycle();
    for (probe, factor) in made.probes.iter_mut().zip(factors) {
        probe.requests_per_s *= factor;
    }
    assert_eq!(first(&made).standing, Standing::Unknown);
}

//! The words for made-up evidence.

use super::*;
use crate::bottleneck::HalvedCpu;

fn words(of: &Evidence) -> String {
    evidence(of, &[])
}

#[test]
fn a_busy_client_and_what_helped_it() {
    let mut client = ClientEvidence {
        busiest: 0.7,
        wanted: 0.95,
        shared: Some((vec![0, 1], 1.0)),
        apart: Some(1.4),
        thread: Some(ThreadMore::Raised(1.8)),
    };
    assert_eq!(
        words(&Evidence::Client(client.clone())),
        "its busiest thread took 70% of a CPU and wanted it 95% of the time and shares CPU 0, 1 with \
         the servers, which was 100% busy; on a CPU of its own it brings 1.40 times the throughput; \
         with a thread and a CPU more it brings 1.80 times the throughput"
    );
    client.wanted = 0.75;
    (client.shared, client.apart) = (None, None);
    client.thread = Some(ThreadMore::NotRaised(0.95));
    assert_eq!(
        words(&Evidence::Client(client)),
        "its busiest thread took 70% of a CPU; a thread and a CPU more did not show it (0.95 times \
         the throughput)"
    );
}

#[test]
fn what_of_a_server_is_full() {
    let threads = Threads {
        had: 0.97,
        wanted: 0.98,
        second_had: 0.01,
        count: 4,
    };
    let waiting = Threads {
        had: 0.2,
        wanted: 0.98,
        second_had: 0.0,
        count: 1,
    };
    let none = (None, &[][..]);
    for (full, used, (host, cpus), expected) in [
        (
            Some(Full::Cpus { threads: 1 }),
            0.98,
            (None, &[0][..]),
            "its one CPU is full (98% of CPU 0; it has 1 thread)",
        ),
        (
            Some(Full::Cpus { threads: 4 }),
            1.9,
            (Some("vm"), &[0, 1]),
            "its CPUs are full (1.90 of 2 CPUs (0 and 1) of host `vm`; it has 4 threads)",
        ),
        (
            Some(Full::Thread(threads)),
            1.0,
            (None, &[0, 1, 2, 3]),
            "one of its 4 threads is full (97% of a CPU), the next took 1%; the server had 4 CPUs \
             (0, 1, 2 and 3)",
        ),
        (
            Some(Full::Thread(waiting)),
            0.2,
            none,
            "the busiest of its 1 thread took 20% of a CPU, which it wanted 98% of the time",
        ),
        (
            None,
            0.76,
            none,
            "its CPU was not full: the servers used 76% of a CPU",
        ),
    ] {
        let server = ServerEvidence {
            cpus: CpuUse {
                host: host.map(str::to_owned),
                cpus: cpus.to_vec(),
                used,
            },
            full,
            each: vec![("w".to_owned(), used)],
            halved: None,
        };
        assert_eq!(words(&Evidence::Server(server)), expected);
    }
}

#[test]
fn servers_on_one_cpu_and_what_half_of_it_left() {
    let each = [("app", 0.33), ("haproxy", 0.34)];
    let mut server = ServerEvidence {
        cpus: CpuUse {
            host: None,
            cpus: vec![0],
            used: 0.99,
        },
        full: Some(Full::SharedCpus),
        each: each.map(|(name, cpus)| (name.to_owned(), cpus)).to_vec(),
        halved: Some(HalvedCpu {
            quota_cpus: 0.5,
            left: 0.52,
        }),
    };
    let half = "; with 0.50 CPUs for the servers together 52% of the throughput is left (halving \
                costs 48%)";
    assert_eq!(
        words(&Evidence::Server(server.clone())),
        format!(
            "CPU 0, which `app` and `haproxy` share, is full (99% of CPU 0; CPU time: app 33%, \
             haproxy 34%){half}"
        )
    );
    server.full = Some(Full::Cpus { threads: 1 });
    assert_eq!(
        words(&Evidence::Server(server)),
        format!(
            "its one CPU is full (99% of CPU 0; it has 1 thread); CPU time: app 33%, haproxy \
             34%{half}"
        )
    );
}

#[test]
fn connections_ports_and_queues_are_counted() {
    let relief = |change, ratio| Relief {
        change,
        left: Refused {
            refused: 0,
            all: 192,
        },
        before: Refused {
            refused: 300,
            all: 492,
        },
        ratio,
    };
    let ports = PortsEvidence {
        refused: 300,
        taken: Some(TakenPorts {
            server: Some("proxy".to_owned()),
            waiting: 27_000,
            range: 28_000,
        }),
        reliefs: vec![relief(Change::MorePorts, 1.5)],
        failed: Some("no port".to_owned()),
    };
    let queue = Evidence::AcceptQueue {
        found_full: 120,
        opened: 3_000,
        slowest_us: 1.04e6,
        half: Some(relief(Change::HalfTheConnections, 1.04)),
    };
    for (evidence, expected) in [
        (
            Evidence::Concurrency {
                connections: 4,
                p50_us: 50_100.0,
                gain: Some(2.0),
            },
            "4 connections and a median answer time of 50.10 ms set it; twice the connections bring \
             2.00 times the throughput",
        ),
        (
            queue,
            "120 connections found it full (ListenOverflows, ListenDrops) while 3,000 were opened; \
             the slowest took 1.04 s to open; with half the connections 0 of 192 instead of 300 of \
             492 do, and the throughput is 1.04 times as high",
        ),
        (
            Evidence::Ports(ports),
            "300 connections found no free port (EADDRNOTAVAIL); 27,000 of 28,000 ports of `proxy` \
             waited in TIME_WAIT; with more ports 0 of 192 instead of 300 of 492 find none, and the \
             throughput is 1.50 times as high; it could not be measured to the end: no port",
        ),
        (
            Evidence::UpstreamConnections {
                per_request: 1.0,
                time_wait: 1_200,
            },
            "1.00 new connections to an upstream per request, where kept ones would need none; \
             1,200 sockets are in TIME_WAIT",
        ),
    ] {
        assert_eq!(words(&evidence), expected);
    }
}

#[test]
fn links_other_programs_and_what_nothing_explains() {
    let network = Evidence::Network {
        bits_per_s: 47.2e6,
        link_bits_per_s: Some(50e6),
        resent: Some((400, 10_000)),
        gain: Some(1.95),
        threads: None,
    };
    assert_eq!(
        words(&network),
        "47.2 Mbit/s of answers over a link of 50.0 Mbit/s; 400 of 10,000 segments were sent again; \
         with twice the link's rate it brings 1.95 times the throughput"
    );
    let full = Evidence::Network {
        bits_per_s: 1.4e9,
        link_bits_per_s: None,
        resent: None,
        gain: None,
        threads: Some(Threads {
            had: 0.6,
            wanted: 0.98,
            second_had: 0.0,
            count: 2,
        }),
    };
    assert_eq!(
        words(&full),
        "the thread that carries the links is full (60% of a CPU, which it wanted 98% of the time), \
         so the links limit the throughput"
    );
    let others = |host: Option<&str>| {
        words(&Evidence::OtherPrograms(MachineUse {
            host: host.map(str::to_owned),
            busy: 0.95,
            own: 0.2,
        }))
    };
    assert_eq!(
        others(None),
        "the CPUs of client and servers were 95% busy, and client and servers had 20% of them"
    );
    assert_eq!(
        others(Some("vm")),
        "the CPUs of the servers on host `vm` were 95% busy, and the servers had 20% of them"
    );
    let threads = Threads {
        had: 0.5,
        wanted: 0.5,
        second_had: 0.0,
        count: 2,
    };
    let unexplained = Evidence::Unexplained {
        client_busiest: 0.4,
        servers: vec![("origin".to_owned(), 0.5, threads)],
        links: Some(Threads {
            had: 0.3,
            wanted: 0.3,
            ..threads
        }),
        not_tried: vec!["more ports: no".to_owned()],
    };
    let effect = |change, ratio| Effect {
        change,
        ratio,
        log_error: 0.0,
        loads: 3,
    };
    let effects = [
        effect(Change::TwiceTheConnections, 1.02),
        effect(Change::HalfTheServerCpu, 0.8),
    ];
    assert_eq!(
        evidence(&unexplained, &effects),
        "the client's busiest thread took 40% of a CPU; origin 50% of a CPU in 2 threads (busiest \
         50% of a CPU); the thread that carries the links 30% of a CPU; throughput with twice the \
         connections 1.02 times, with half the servers' CPU 0.80 times; left out: more ports: no"
    );
    assert!(words(&unexplained).contains("; no change was tried; "));
}

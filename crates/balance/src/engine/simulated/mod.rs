//! Property tests of a worker on a simulated event loop. Whatever happens in whatever order, all
//! buffers and places are returned, no connection gets the bytes of another, and every wait ends.
//!
//! `WEIGH_SIMULATED_S` is for how many seconds random sequences are tried; without it, a few
//! hundred are tried. A sequence that breaks a rule is shrunk, and stored in
//! `proptest-regressions`.

mod early_answers;
mod hostile_back_ends;
mod messages;
mod peers;
mod stalled;
mod steps;

use std::sync::Arc;
use std::time::Duration;

use net::simulated::{SimIo, try_random};
use net::{Io, IoOptions, os};

use super::health_checker::lookups;
use super::http::HttpServiceWorker;
use super::shared::{ListeningCount, Shared};
use super::worker::connection::Role;
use super::worker::service_worker::ServiceWorker;
use super::worker::{Worker, WorkerParts};
use crate::config::access_rules;
use crate::config::model::{
    Backend, Config, Ejection, Inspect, Queue, Service, ServiceKind, Timeouts,
};
use peers::Peers;
use steps::{Answer, Ask, Operation, Step, steps};

/// A service with short time limits and few places, so that all limits are reached.
fn service(name: &str, kind: ServiceKind) -> Service {
    let mut service = Service::new(name);
    service.kind = kind;
    service.queue = Queue {
        length: 2,
        time_limit: Duration::from_millis(400),
    };
    service.timeouts = Timeouts {
        connect: Duration::from_millis(300),
        client_header: Duration::from_millis(500),
        client_idle: Duration::from_millis(1_000),
        upstream_answer: Duration::from_millis(800),
        write_stall: Duration::from_millis(800),
        client_body: Duration::from_millis(900),
        half_closed: Duration::from_millis(700),
    };
    service.drain = Duration::from_millis(700);
    service.connections_max = Some(5);
    for number in 1..=2 {
        let address: std::net::SocketAddr = format!("127.0.0.{number}:80").parse().unwrap();
        let mut backend = Backend::new(&format!("{name}{number}"), address.into());
        backend.connections_max = Some(2);
        backend.retries = number - 1;
        service.backends.push(backend);
    }
    service
}

fn config() -> Config {
    let mut config = Config::new();
    config.connections_per_thread = 8;
    let http = |inspect| ServiceKind::Http { inspect };
    config.services.push(service("tcp", ServiceKind::Tcp));
    let mut every = service("every", http(Inspect::EveryMessage));
    every.ejection = Some(Ejection {
        failures: 3,
        duration: Duration::from_secs(1),
    });
    // Its events are emitted, but not received.
    every.access_log = Some("log".into());
    every.backends[0].traffic_log = Some("traffic".into());
    config.services.push(every);
    let mut first = service("first", http(Inspect::FirstMessage));
    first.proxy_protocol_in = true;
    config.services.push(first);
    config
}

/// Runs a worker through the steps. Returns the rules that were broken.
fn go_through(steps: Vec<Step>) -> Vec<String> {
    broken_and_received(steps).0
}

/// Runs a worker through the steps. Returns the rules that were broken, and what each client has
/// received.
fn broken_and_received(steps: Vec<Step>) -> (Vec<String>, Vec<Vec<u8>>) {
    go_through_with(config(), steps)
}

fn go_through_with(config: Config, steps: Vec<Step>) -> (Vec<String>, Vec<Vec<u8>>) {
    let config = Arc::new(config);
    let addresses = lookups::all_backends(&config).unwrap();
    let start_ns = os::now_ns();
    let shared = Arc::new(Shared::new(&config, &addresses, start_ns));
    let peers = Peers::new(shared.clone(), config.clone(), steps);
    let options = IoOptions {
        outgoing: 12,
        accepted: 12,
        buffers: 6,
        buffer_size: 128,
        files: true,
        ..IoOptions::default()
    };
    let io = SimIo::new(options, start_ns, peers);
    let mut worker = worker_over(io, options.slots(), &config, &shared);
    worker.run().unwrap();

    let Worker {
        io, connections, ..
    } = &mut worker;
    io.driver.check_bytes();
    let mut found = std::mem::take(&mut io.driver.found);
    let lent = io.network.lent();
    if lent > 0 {
        found.push(format!("{lent} buffers are lent"));
    }
    for conn in io.network.open() {
        let known = &connections[conn.slot()];
        if known.conn != Some(conn) || known.role != Role::HttpIdle {
            found.push(format!("{conn:?} is open, and known as {:?}", known.role));
        }
    }
    if worker.clients > 0 {
        found.push(format!("{} clients are counted", worker.clients));
    }
    (found, worker.io.driver.received())
}

/// A worker over a loop with so many slots.
fn worker_over<I: Io>(mut io: I, slots: usize, config: &Config, shared: &Arc<Shared>) -> Worker<I> {
    let backends = config.services.iter().map(|one| one.backends.len()).sum();
    let services: Vec<ServiceWorker> = config
        .services
        .iter()
        .zip(&shared.services)
        .map(|(service, state)| {
            let rules = access_rules(&service.access).unwrap();
            let http = HttpServiceWorker::new(service, state, backends);
            ServiceWorker::new(service, state, rules, http, 0, &mut io)
        })
        .collect();
    let parts = WorkerParts {
        shared: shared.clone(),
        clients_max: config.connections_per_thread,
        listener_services: (0..services.len()).collect(),
        slots,
        lingering_max: 2,
        external_chooser: None,
        listening_count: ListeningCount::begin(shared),
    };
    let mut worker = Worker::new(io, services, parts);
    worker.rng = fastrand::Rng::with_seed(1);
    worker
}

fn connect(service: u8) -> Step {
    Step::Connect {
        service,
        is_gone: false,
    }
}

/// The first client sends a whole message.
fn ask(what: Ask) -> Step {
    Step::Ask {
        client: 0,
        what,
        bytes: u16::MAX,
    }
}

/// The first back end that has to answer sends a whole answer.
fn answer(what: Answer) -> Step {
    Step::Answer {
        back: 0,
        what,
        bytes: u16::MAX,
    }
}

fn turn(ms: u16) -> Step {
    Step::Turn {
        ms,
        is_late: false,
        is_reversed: false,
    }
}

/// How many sequences are tried at a time.
const CASES: u32 = 300;

#[test]
fn whatever_happens_places_come_back_bytes_stay_apart_and_waits_end() {
    try_random(CASES, file!(), &steps(), go_through);
}

/// A service that inspects only first messages: what a client sends after its first one may be
/// requests that must not be sent twice.
#[test]
fn what_follows_a_first_message_is_not_sent_to_another_back_end_again() {
    let found = go_through(vec![
        Step::Operate {
            service: 2,
            back: 0,
            what: Operation::Remove,
        },
        connect(2),
        ask(Ask::Get),
        ask(Ask::Post { bytes: 0 }),
    ]);
    assert!(found.is_empty(), "{found:#?}");
}

/// The balancer's own answers, which no exchange precedes: a scan that finds one in the send queue
/// must not take it for stalled.
#[test]
fn an_answer_that_a_scan_finds_on_its_way_is_not_cut_off() {
    // On a new connection, and on one that was idle for longer than a stall may be.
    let idle = vec![
        ask(Ask::Get),
        turn(1),
        turn(1),
        turn(1),
        answer(Answer::Empty),
        turn(900),
    ];
    for before in [Vec::new(), idle] {
        let refused = [
            Step::Room { peer: 0, bytes: 20 },
            ask(Ask::Malformed),
            // Several scans, and less than the time limit of a stall.
            turn(400),
            Step::AllRoom { peer: 0 },
            turn(10),
        ];
        let steps = [vec![connect(1)], before, refused.to_vec()].concat();
        let (found, received) = broken_and_received(steps);
        assert!(found.is_empty(), "{found:#?}");
        let text = String::from_utf8_lossy(&received[0]);
        let last = text.rsplit("HTTP/1.1 ").next().unwrap_or_default();
        assert!(last.starts_with("400 "), "{text}");
        assert!(last.contains("\r\n\r\n"), "{text}");
    }
}

#[test]
fn an_upgraded_connection_is_relayed_and_a_refused_upgrade_leaves_requests() {
    let turns = vec![turn(1); 4];
    for (to_upgrade, status) in [
        (Answer::Switch, "HTTP/1.1 101 "),
        (Answer::Length { bytes: 0 }, "HTTP/1.1 200 "),
    ] {
        let steps = [
            vec![connect(1), ask(Ask::Upgrade)],
            turns.clone(),
            vec![answer(to_upgrade)],
            turns.clone(),
            vec![ask(Ask::Post { bytes: 30 })],
            turns.clone(),
            vec![answer(Answer::Length { bytes: 6 })],
            turns.clone(),
        ];
        let (found, received) = broken_and_received(steps.concat());
        assert!(found.is_empty(), "{found:#?}");
        let text = String::from_utf8_lossy(&received[0]);
        assert!(text.starts_with(status), "{text}");
        // In its head and in its body.
        assert_eq!(text.matches("(c0r1)").count(), 2, "{text}");
    }
}

/// One that is idle holds next to nothing, so that closing it makes no room.
#[test]
fn an_idle_client_stays_when_memory_is_short_and_a_new_one_is_refused() {
    let mut config = config();
    config.services[1].timeouts.client_idle = Duration::from_secs(5);
    let get = [
        vec![ask(Ask::Get)],
        vec![turn(1); 4],
        vec![answer(Answer::Empty)],
        vec![turn(1); 4],
    ]
    .concat();
    let steps = [
        vec![connect(1)],
        get.clone(),
        vec![
            turn(1200),
            Step::Full { is_full: true },
            connect(1),
            turn(1),
            turn(1),
            Step::Full { is_full: false },
        ],
        get,
    ];
    let (found, received) = go_through_with(config, steps.concat());
    assert!(found.is_empty(), "{found:#?}");
    let text = String::from_utf8_lossy(&received[0]);
    assert_eq!(text.matches("HTTP/1.1 2").count(), 2, "{text}");
}

//! Tests that inject failures into a turn of a running worker.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::Ordering;

use net::IoKind;

use super::*;
use crate::config::Config;
use crate::config::model::{Backend, Service, ServiceKind};
use crate::control::Supervisor;
use crate::engine::Balancer;
use crate::engine::shared::Fault;
use crate::health::HealthEvent;

const LONG: Duration = Duration::from_secs(20);

/// A back end that echoes what it receives, on threads of its own.
fn echo() -> SocketAddr {
    testing::serve(|mut stream| {
        let mut copy = stream.try_clone().unwrap();
        let _ = std::io::copy(&mut stream, &mut copy);
    })
}

fn service() -> Service {
    let mut service = Service::new("relay");
    service.listen.push("127.0.0.1:0".parse().unwrap());
    service.backends.push(Backend::new("b0", echo().into()));
    service
}

fn start(io: IoKind, service: Service) -> Balancer {
    let mut config = Config::new();
    config.connections_per_thread = 64;
    config.services.push(service);
    Balancer::start(&config, io).unwrap()
}

fn connect(balancer: &Balancer) -> TcpStream {
    let stream = TcpStream::connect(balancer.address()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream
}

fn echoes(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    stream.write_all(b"x").is_ok() && stream.read_exact(&mut byte).is_ok()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn inject(balancer: &Balancer, fault: Fault, count: usize) {
    let shared = balancer.shared();
    inject_into(&shared.process, fault, count);
    // The health checker may sleep for long.
    shared.waker.wake();
}

fn inject_into(process: &ProcessState, fault: Fault, count: usize) {
    let mut faults = process.faults.lock().unwrap();
    faults.extend(std::iter::repeat_n(fault, count));
}

/// The numbers of clients, of queued clients, and of connections to the back end.
fn held(balancer: &Balancer) -> [u32; 3] {
    let shared = balancer.shared();
    let service = &shared.services[0];
    [
        &service.active,
        &service.queued,
        &service.backends[0].active,
    ]
    .map(|count| count.load(Ordering::Relaxed))
}

fn on_both(test: impl Fn(IoKind)) {
    test(IoKind::Epoll);
    if net::uring_unavailable().is_none() {
        test(IoKind::Uring);
    }
}

#[test]
fn a_worker_that_fails_is_started_again() {
    on_both(|io| {
        for (fault, words) in [
            (
                Fault::Panic,
                "it panicked, which is a bug in weigh: injected",
            ),
            (Fault::Loop, "the event loop failed: "),
        ] {
            let mut service = service();
            service.backends[0].connections_max = Some(2);
            service.queue.length = 8;
            let balancer = start(io, service);
            let mut relayed = [connect(&balancer), connect(&balancer)];
            assert!(relayed.iter_mut().all(echoes));
            let mut waiting = connect(&balancer);
            until("the third waits", || held(&balancer) == [3, 1, 2]);

            inject(&balancer, fault, 1);
            // No client waits for ever, and no place stays occupied.
            assert!(!relayed.iter_mut().any(echoes));
            assert!(!echoes(&mut waiting));
            until("all is released", || held(&balancer) == [0, 0, 0]);
            // A client that connects while the loop is closed may be cut off as well.
            let begun = Instant::now();
            until("a client is served", || echoes(&mut connect(&balancer)));
            assert!(begun.elapsed() < LONG / 2, "a client was left waiting");

            let shared = balancer.shared();
            assert_eq!(shared.worker_restarts.get(), 1);
            assert_eq!(balancer.failure(), None);
            let said = shared.notices.take();
            assert!(
                matches!(&said[..], [one] if one.starts_with("worker 1 failed") && one.contains(words)),
                "{said:?}"
            );
        }
    });
}

#[test]
fn requests_under_way_release_their_back_end_when_a_worker_fails() {
    on_both(|io| {
        // The kernel completes its connections, and nothing answers.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let mut service = service();
        service.backends = vec![Backend::new("b0", address.into())];
        service.kind = ServiceKind::HTTP;
        let balancer = start(io, service);
        let mut client = connect(&balancer);
        let request = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc";
        client.write_all(request).unwrap();
        until("it has a back end", || held(&balancer) == [1, 0, 1]);
        inject(&balancer, Fault::Panic, 1);
        assert!(matches!(client.read(&mut [0]), Ok(0) | Err(_)));
        until("all is released", || held(&balancer) == [0, 0, 0]);
    });
}

#[test]
fn a_worker_that_fails_too_often_is_not_restarted_and_nothing_listens_any_more() {
    on_both(|io| {
        let balancer = start(io, service());
        inject(&balancer, Fault::Loop, RESTARTS_MAX + 1);
        until("it is not restarted", || balancer.failure().is_some());
        let failure = balancer.failure().unwrap();
        assert_eq!(failure.thread, "worker 1");
        let message = failure.to_string();
        assert!(message.starts_with("worker 1 failed 6 times within 60 s and is not restarted"));
        until("the thread has ended", || balancer.is_done());
        until("clients are refused", || {
            let refused = TcpStream::connect(balancer.address()).err();
            refused.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        });
        assert!(!balancer.is_listening());
    });
}

#[test]
fn a_worker_that_fails_while_it_drains_ends() {
    on_both(|io| {
        let balancer = start(io, service());
        let mut client = connect(&balancer);
        assert!(echoes(&mut client));
        balancer.begin_drain();
        until("it listens no more", || !balancer.is_listening());
        inject(&balancer, Fault::Panic, 1);
        until("the thread has ended", || balancer.is_done());
        assert!(!echoes(&mut client));
        assert_eq!(balancer.failure(), None);
        assert_eq!(balancer.shared().worker_restarts.get(), 0);
    });
}

#[test]
fn a_health_checker_that_panics_is_restarted_and_revives_back_ends() {
    let mut service = service();
    service.reviving_interval = Duration::from_millis(1);
    let balancer = start(IoKind::Epoll, service);
    let shared = balancer.shared();
    let words = "the health checker failed and is restarted: it panicked, which is a bug in weigh: \
                 injected";
    for _ in 0..2 {
        inject(&balancer, Fault::HealthCheckerPanic, 1);
        let mut said = Vec::new();
        until("it is restarted", || {
            said.extend(shared.notices.take());
            said.iter().any(|one| one == words)
        });
        shared.note(0, 0, HealthEvent::ConnectFailed);
        until("the back end is revived", || {
            shared.services[0].backends[0].usable()
        });
    }
    assert_eq!(balancer.failure(), None);

    inject(&balancer, Fault::HealthCheckerPanic, RESTARTS_MAX + 1);
    until("it is not restarted", || balancer.failure().is_some());
    let failure = balancer.failure().unwrap();
    assert_eq!(failure.thread, "the health checker");
}

#[test]
fn a_log_thread_that_panics_is_restarted_and_loses_one_line() {
    let log = format!("weigh-log-panic-{}", std::process::id());
    let log = std::env::temp_dir().join(log);
    let mut service = service();
    service.access_log = Some(log.clone());
    let mut config = Config::new();
    config.connections_per_thread = 64;
    config.services.push(service);
    let supervisor = Supervisor::start(&config, Path::new("x.toml"), IoKind::Epoll).unwrap();
    let process = supervisor.shared().process.clone();
    let lines = || std::fs::read_to_string(&log).unwrap().lines().count();
    let client = || {
        let mut stream = TcpStream::connect(supervisor.addresses()[0].1).unwrap();
        assert!(echoes(&mut stream));
    };
    client();
    until("a line is written", || lines() == 1);
    inject_into(&process, Fault::LogPanic, 1);
    client();
    until("it is restarted", || {
        let said = process.notices.take();
        said.iter()
            .any(|one| one.starts_with("the log thread failed and is restarted: "))
    });
    client();
    until("lines are written again", || lines() >= 2);
    assert_eq!(supervisor.failure(), None);

    inject_into(&process, Fault::LogPanic, RESTARTS_MAX + 1);
    until("it is not restarted", || {
        client();
        supervisor.failure().is_some()
    });
    assert_eq!(supervisor.failure().unwrap().thread, "the log thread");
    std::fs::remove_file(&log).unwrap();
}

#[test]
fn failures_long_ago_do_not_count() {
    let mut restarts = Restarts::default();
    let now = Instant::now();
    for number in 0..20 {
        assert!(restarts.allow(now + WINDOW.mul_f64(f64::from(number) / 4.9)));
    }
    let late = now + WINDOW * 10;
    assert!((0..RESTARTS_MAX).all(|_| restarts.allow(late)));
    assert!(!restarts.allow(late));
}

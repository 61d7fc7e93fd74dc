//! What a client behind the balancer relies on, on both event loops.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use balance::config::model::{Backend, Service};
use balance::{Balancer, Config};
use net::IoKind;

const BOTH: [IoKind; 2] = [IoKind::Uring, IoKind::Epoll];

fn balancer(io: IoKind, upstreams: Vec<SocketAddr>) -> Balancer {
    let mut service = Service::new("relay");
    service.listen.push("127.0.0.1:0".parse().unwrap());
    service.backlog = 64;
    service.timeouts.connect = Duration::from_millis(300);
    for (number, address) in upstreams.into_iter().enumerate() {
        let backend = Backend::new(&format!("back{number}"), address.into());
        service.backends.push(backend);
    }
    let mut config = Config::new();
    config.connections_per_thread = 32;
    config.services.push(service);
    Balancer::start(&config, io).unwrap()
}

/// A back end that answers each connection with its name and then echoes until the end.
fn back_end(name: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let _ = stream.write_all(name.as_bytes());
                let mut copy = stream.try_clone().unwrap();
                let _ = std::io::copy(&mut stream, &mut copy);
                let _ = copy.shutdown(Shutdown::Write);
            });
        }
    });
    address
}

fn dead() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}

fn ask(balancer: &Balancer, say: &[u8]) -> String {
    let mut stream = TcpStream::connect(balancer.address()).unwrap();
    stream.write_all(say).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut got = String::new();
    stream.read_to_string(&mut got).unwrap();
    got
}

#[test]
fn turns_through_its_upstreams_and_passes_half_closes_on() {
    for io in BOTH {
        let balancer = balancer(io, vec![back_end("one "), back_end("two ")]);
        let answers: Vec<String> = (0..4).map(|_| ask(&balancer, b"ping")).collect();
        assert_eq!(answers, ["one ping", "two ping", "one ping", "two ping"]);
    }
}

#[test]
fn a_refusing_upstream_is_passed_over_within_the_attempt() {
    for io in BOTH {
        let balancer = balancer(io, vec![dead(), back_end("alive "), dead()]);
        for _ in 0..6 {
            assert_eq!(ask(&balancer, b"x"), "alive x");
        }
        std::thread::sleep(Duration::from_millis(120));
        let stats = balancer.stats();
        assert_eq!((stats.clients, stats.served), (6, vec![0, 6, 0]));
    }
}

#[test]
fn a_client_that_nobody_takes_is_closed() {
    for io in BOTH {
        let balancer = balancer(io, vec![dead(), dead()]);
        let mut stream = TcpStream::connect(balancer.address()).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let mut byte = [0];
        let ended = match stream.read(&mut byte) {
            Ok(n) => n == 0,
            Err(e) => e.kind() == std::io::ErrorKind::ConnectionReset,
        };
        assert!(ended);
        std::thread::sleep(Duration::from_millis(120));
        assert_eq!(balancer.stats().refused, 1);
    }
}

#[test]
fn a_slow_reader_holds_up_the_writer_and_nothing_is_lost() {
    for io in BOTH {
        let balancer = balancer(io, vec![back_end("")]);
        let mut stream = TcpStream::connect(balancer.address()).unwrap();
        let size = 24 << 20;
        let mut writer = stream.try_clone().unwrap();
        let writing = std::thread::spawn(move || {
            let bytes: Vec<u8> = (0..size).map(|i| (i % 253) as u8).collect();
            writer.write_all(&bytes).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        std::thread::sleep(Duration::from_millis(300));
        assert!(!writing.is_finished(), "24 MiB cannot be under way unread");
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        writing.join().unwrap();
        assert_eq!(got.len(), size);
        assert!(got.iter().enumerate().all(|(i, &b)| b == (i % 253) as u8));
    }
}

#[test]
fn connections_come_back_after_many_clients() {
    for io in BOTH {
        let balancer = balancer(io, vec![back_end("ok ")]);
        let start = Instant::now();
        for i in 0..200 {
            if i % 3 == 0 {
                // Gone before the answer was read: a reset on the way.
                drop(TcpStream::connect(balancer.address()).unwrap());
            } else {
                assert_eq!(ask(&balancer, b"x"), "ok x", "client {i}");
            }
        }
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}

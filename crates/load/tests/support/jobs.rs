//! Jobs of one stint against the built-in origin.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{Arrivals, Expect, Job, Lane, Received, Stint, Stop, Target, Wait, run};
use net::IoKind;
use net::fetch::request;
use origin::{Origin, OriginOptions};
use readings::{LoadReading, Pacing};

pub const BOTH: [IoKind; 2] = [IoKind::Uring, IoKind::Epoll];

pub fn origin() -> Origin {
    Origin::start(&OriginOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        threads: 1,
        io: IoKind::best(),
        backlog: 1024,
        connections: 2048,
        spin: false,
    })
    .unwrap()
}

pub fn target(address: SocketAddr, path: &str) -> Target {
    Target::new(
        address,
        request("GET", "origin", path, &[]),
        Expect::default(),
    )
}

pub fn job(io: IoKind, target: Target, connections: u32, threads: usize, stop: Stop) -> Job {
    Job {
        lanes: vec![Lane {
            target,
            connections,
        }],
        stints: vec![Stint {
            lane: 0,
            pacing: Pacing::Closed,
            stages: Vec::new(),
            cut: Duration::ZERO,
            stop,
            reading: Some(0),
        }],
        threads,
        requests_per_connection: None,
        connect_timeout: Duration::from_secs(2),
        timeout: Duration::from_millis(500),
        arrivals: Arrivals::Even,
        cpus: Vec::new(),
        sources: Vec::new(),
        io,
        wait: Wait::Sleep,
        received: Received::Auto,
        rows: None,
        seed: 1,
    }
}

pub fn one(job: &Job) -> LoadReading {
    let stop = Arc::new(AtomicBool::new(false));
    run(job, &stop, |_| {}).unwrap().remove(0)
}

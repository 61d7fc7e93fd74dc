//! Jobs of one segment against the built-in origin.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{Expect, Job, Segment, Stop, Target, run};
use net::IoKind;
use net::fetch::request;
use origin::{Origin, OriginOptions};
use readings::LoadReading;

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
        threads,
        timeout: Duration::from_millis(500),
        io: Some(io),
        ..Job::to(target.with_connections(connections)).segment(Segment::closed(stop))
    }
}

pub fn one(job: &Job) -> LoadReading {
    let stop = Arc::new(AtomicBool::new(false));
    run(job, &stop, |_| {}).unwrap().remove(0)
}

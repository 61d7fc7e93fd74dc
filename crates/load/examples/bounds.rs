//! What holding connections and lasting long costs the load: memory per open connection, memory of
//! a long load against a short one, and how late a paced load sends.
//!
//! `cargo build --release && cargo run --release -p weigh-load --example bounds -- [CONNECTIONS]
//! [LONG_SECONDS]` (50,000 and 600 unless told). `weigh origin` answers as a process of its own;
//! it and the load need two open files per connection between them.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{Expect, Job, Segment, Stop, Target, Wait, run};
use net::IoKind;
use net::fetch::request;
use net::os::{ChildSetup, set_up_child};
use readings::LoadReading;

/// Slots of an event loop that fit into the usual limit of open files of a container, 20,000.
const SLOTS_MAX: u32 = 19_000;
/// Connections are opened within this time, and as much passes before they are counted.
const OPENING_S: u64 = 10;

struct Origin(Child, SocketAddr);

impl Origin {
    fn start(connections: u32, threads: u32) -> Self {
        let weigh = std::env::current_exe().unwrap();
        let weigh = weigh.ancestors().nth(2).unwrap().join("weigh");
        let most = (connections + 1_000).min(SLOTS_MAX).to_string();
        let mut command = Command::new(weigh);
        command
            .args(["origin", "--listen", "127.0.0.1:0", "--connections", &most])
            .args(["--backlog", "4096", "--threads", &threads.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        set_up_child(&mut command, ChildSetup::dying_with_parent());
        let mut child = command
            .spawn()
            .expect("target/release/weigh, from cargo build --release");
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .split_whitespace()
            .find_map(|word| {
                word.trim_start_matches("http://")
                    .trim_end_matches('/')
                    .parse()
                    .ok()
            })
            .unwrap_or_else(|| panic!("no address in {line:?}"));
        Self(child, address)
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn job(
    address: SocketAddr,
    connections: u32,
    rate_per_s: f64,
    seconds: u64,
    threads: u32,
    io: IoKind,
) -> Job {
    let cpus = net::os::allowed_cpus().unwrap();
    let hello = request("GET", "origin", "/", &[]);
    let target = Target::new(address, hello, Expect::default()).with_connections(connections);
    let segment = Segment {
        ramp_up: Duration::from_secs(1),
        ..Segment::open(rate_per_s, Stop::After(Duration::from_secs(seconds)))
    };
    Job {
        threads: threads as usize,
        connect_timeout: Duration::from_secs(10),
        timeout: Duration::from_secs(10),
        cpus: cpus.last().copied().into_iter().collect(),
        // Half of the usual range of ports each: beyond that the kernel searches long for a free one.
        sources: (1..=connections.div_ceil(14_000) as u8)
            .map(|n| SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 1, n)), 0))
            .collect(),
        io: Some(io),
        wait: match cpus.len() > threads as usize {
            true => Wait::Spin,
            false => Wait::Sleep,
        },
        rows: Some(Duration::from_secs(1)),
        ..Job::to(target).segment(segment)
    }
}

/// Resident memory of this process, bytes; its highest so far with `VmHWM`.
fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
}

fn one(job: &Job) -> LoadReading {
    let stop = Arc::new(AtomicBool::new(false));
    run(job, &stop, |_| {}).unwrap().remove(0)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, other: u32| {
        let given = arguments.get(at);
        given.map_or(other, |n| n.parse().expect("a number"))
    };
    let (all, long) = (number(0, 50_000), u64::from(number(1, 600)));
    if let Some(io) = arguments.get(2) {
        return measure(io.parse().expect("an event loop"), all, long);
    }
    // A process for each, as memory that the first has had would be at hand for the second.
    for io in [IoKind::Uring, IoKind::Epoll] {
        let mut own = Command::new(std::env::current_exe().unwrap());
        own.args([all.to_string(), long.to_string(), io.to_string()]);
        set_up_child(&mut own, ChildSetup::dying_with_parent());
        assert!(own.status().unwrap().success());
    }
}

fn measure(io: IoKind, all: u32, long: u64) {
    if io == IoKind::Uring && net::uring_unavailable().is_some() {
        return println!("io_uring: not available here");
    }
    println!("\n{io}");
    // On io_uring connections are files of the ring, and each ring may have as many as a process
    // may have open files; each connection may take two slots for a moment. On epoll they are
    // files of the process.
    let (connections, threads) = match io {
        IoKind::Uring => (all, (2 * all).div_ceil(SLOTS_MAX)),
        IoKind::Epoll => (all.min(SLOTS_MAX), 1),
    };
    let origin = Origin::start(connections, connections.div_ceil(SLOTS_MAX / 2));
    let late = one(&job(origin.1, 64, 20_000.0, 10, 1, io));
    println!(
        "  send lag at 20,000 requests/s, 64 connections: p50 {:.1} us, p99 {:.1} us, p99.9 \
         {:.1} us, max {:.1} us; answered {:.0}/s",
        late.schedule_lag.quantile_us(0.5),
        late.schedule_lag.quantile_us(0.99),
        late.schedule_lag.quantile_us(0.999),
        late.schedule_lag.quantiles().max,
        late.requests_per_s(),
    );
    // A new one for each request, until all are open; that is cut off.
    let rate = f64::from(connections) / OPENING_S as f64;
    let before = memory("VmHWM");
    let mut opening = job(origin.1, connections, rate, 8, threads, io);
    opening.segments[0].ramp_up = Duration::from_secs(2 * OPENING_S);
    let many = one(&opening);
    let more = memory("VmHWM").saturating_sub(before);
    println!(
        "  {} connections open on {threads} threads: {more} bytes of user memory more at the highest, {:.0} each; \
         errors {:?}, {:?}",
        many.connections_open_min,
        more as f64 / f64::from(connections),
        many.errors_all,
        many.wrong.first(),
    );
    drop(origin);
    let origin = Origin::start(64, 1);
    one(&job(origin.1, 64, 2_000.0, 10, 1, io));
    let short = memory("VmRSS");
    one(&job(origin.1, 64, 2_000.0, long, 1, io));
    println!(
        "  resident after 10 s: {} KiB, after {long} s: {} KiB",
        short / 1024,
        memory("VmRSS") / 1024
    );
}

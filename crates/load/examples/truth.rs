//! What the load engine reports against what the server knows of its own delays.
//!
//! `cargo run --release -p load --example truth [SECONDS]`: the built-in origin holds its answers
//! back by known distributions and records each delay itself; the engine asks it at 2,000
//! requests per second in an open loop. Its service times, from sent to arrived, should agree with
//! the origin's record except for the round trip; its response times also contain its own lateness,
//! which is shown beside them. Both use the kernel's arrival timestamps, so neither figure contains
//! delays of either program after that.
//! If wrk and ab are installed, their figures for the same server are shown too.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{BodyRule, Expect, Job, Segment, StatusRule, Stop, Target, TimestampSource, Wait, run};
use net::IoKind;
use net::fetch::{fetch, request};
use origin::{Origin, OriginOptions};
use readings::{Histogram, LoadReading};

const RATE_PER_S: f64 = 2_000.0;
const CONNECTIONS: u32 = 200;

fn start() -> Origin {
    let cpus = net::os::allowed_cpus().unwrap();
    let before = cpus.clone();
    net::os::bind_to_cpus(&cpus[..1]).unwrap();
    let origin = Origin::start(&OriginOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        threads: 1,
        io: IoKind::best(),
        backlog: 4096,
        connections: 4096,
        spin: true,
        tls: None,
    })
    .unwrap();
    net::os::bind_to_cpus(&before).unwrap();
    origin
}

fn engine(
    address: SocketAddr,
    path: &str,
    rate_per_s: f64,
    connections: u32,
    seconds: u64,
) -> LoadReading {
    let cpus = net::os::allowed_cpus().unwrap();
    let expect = Expect {
        status: StatusRule::Exactly(200),
        body: BodyRule::Bytes(Arc::from(&b"Hello, world!"[..])),
    };
    let target = Target::new(address, request("GET", "origin", path, &[]), expect)
        .with_connections(connections);
    let after = Stop::After(Duration::from_secs(seconds));
    let job = Job {
        cpus: cpus.last().copied().into_iter().collect(),
        wait: match cpus.len() > 1 {
            true => Wait::Spin,
            false => Wait::Sleep,
        },
        timestamps: TimestampSource::Kernel,
        ..Job::to(target).segment(Segment::open(rate_per_s, after))
    };
    let stop = Arc::new(AtomicBool::new(false));
    run(&job, &stop, |_| {}).unwrap().remove(0)
}

fn known(address: SocketAddr) -> Histogram {
    let bytes = request("GET", "origin", "/.weigh/delays", &[]);
    let answer = fetch(&address.into(), &bytes, Duration::from_secs(5), 1 << 24).unwrap();
    Histogram::from_base64(std::str::from_utf8(&answer.body).unwrap()).unwrap()
}

/// What another tool prints of the same server, its lines with percentages.
fn peer(program: &str, arguments: &[&str]) -> Option<String> {
    let cpus = net::os::allowed_cpus().ok()?;
    let mut command = Command::new(program);
    command.args(arguments);
    let setup = net::os::ChildSetup {
        cpus: cpus.last().copied().into_iter().collect(),
        die_with_parent: true,
        ..Default::default()
    };
    net::os::set_up_child(&mut command, setup);
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|l| {
            [
                "50%", "75%", "90%", "99%", "99.9%", "50.", "75.", "90.", "99.",
            ]
            .iter()
            .any(|q| l.starts_with(q) && l.contains('%'))
        })
        .collect();
    (!lines.is_empty()).then(|| lines.join("  "))
}

fn main() {
    let seconds = std::env::args()
        .nth(1)
        .map_or(20, |text| text.parse().expect("expected seconds"));
    let cases = [
        "/delay/constant/1ms",
        "/delay/exponential/2ms",
        "/delay/bimodal/1ms/50ms/2",
    ];
    for path in cases {
        let origin = start();
        let reading = engine(origin.address(), path, RATE_PER_S, CONNECTIONS, seconds);
        let truth = known(origin.address());
        println!(
            "\n{path}: {} requests, {} errors",
            reading.requests,
            reading.errors.total()
        );
        println!(
            "  {:>8} {:>12} {:>12} {:>12} {:>8} {:>12} {:>12} {:>12}",
            "",
            "origin us",
            "service us",
            "difference",
            "",
            "response us",
            "to send us",
            "to read us"
        );
        for q in [0.5, 0.75, 0.9, 0.99, 0.999] {
            let (own, seen) = (truth.quantile_us(q), reading.service.quantile_us(q));
            // What is asked of the engine: 3% or 80 us up to p99, 5% or 0.5 ms beyond.
            let within = if q > 0.99 {
                (own * 0.05).max(500.0)
            } else {
                (own * 0.03).max(80.0)
            };
            println!(
                "  {:>8} {own:>12.1} {seen:>12.1} {:>+12.1} {:>8} {:>12.1} {:>12.1} {:>12.1}",
                format!("p{}", q * 100.0),
                seen - own,
                if (seen - own).abs() <= within {
                    "within"
                } else {
                    "OUTSIDE"
                },
                reading.response.quantile_us(q),
                reading.schedule_lag.quantile_us(q),
                reading.receive_lag.quantile_us(q),
            );
        }
        let url = format!("http://{}{path}", origin.address());
        let time = format!("{}s", seconds.min(5));
        let rate = RATE_PER_S.to_string();
        let (c, twice) = (CONNECTIONS.to_string(), (2 * seconds).to_string());
        let peers: [(&str, &[&str]); 4] = [
            ("wrk", &["-t1", "-c4", "-d", &time, "--latency", &url]),
            (
                "wrk2",
                &["-t1", "-c", &c, "-d", &time, "-R", &rate, "--latency", &url],
            ),
            (
                "ab",
                &["-q", "-k", "-c", "4", "-t", &twice, "-n", "5000", &url],
            ),
            (
                "oha",
                &[
                    "--no-tui",
                    "-c",
                    &c,
                    "-z",
                    &time,
                    "-q",
                    &rate,
                    "--latency-correction",
                    &url,
                ],
            ),
        ];
        for (program, arguments) in peers {
            let text = peer(program, arguments);
            println!(
                "  {program}: {}",
                text.unwrap_or_else(|| "not installed".into())
            );
        }
    }
    stall();
}

/// A stop of one second in ten at 1,000 requests per second: of 10,000 requests 1,000 are due in
/// the stop and wait from 1 s down to 0, so p95 is 0.5 s and p99 is 0.9 s.
fn stall() {
    let origin = start();
    let address = origin.address();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(4));
        let bytes = request("GET", "origin", "/.weigh/stall/1000", &[]);
        fetch(&address.into(), &bytes, Duration::from_secs(5), 1 << 20).unwrap();
    });
    let reading = engine(address, "/", 1_000.0, 32, 10);
    stopper.join().unwrap();
    println!("\na stop of 1 s in 10 s at 1,000 requests/s (arithmetic: p95 500 ms, p99 900 ms)");
    for q in [0.95, 0.99] {
        println!(
            "  p{}: response {:.1} ms, service {:.1} ms",
            q * 100.0,
            reading.response.quantile_us(q) / 1e3,
            reading.service.quantile_us(q) / 1e3
        );
    }
}

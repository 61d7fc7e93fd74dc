//! What the load engine reports against what the server knows of its own delays.
//!
//! `cargo run --release -p weigh-load --example truth -- [SECONDS [RATE]]`: the built-in origin holds its
//! answers back by known distributions and records each delay itself; the engine asks it at 2,000
//! requests per second in an open loop: over HTTP/1.1 and HTTP/2, each with and without TLS, and
//! over HTTP/3. Its service times, from sent to arrived, should agree with
//! the origin's record except for the round trip; its response times also contain its own lateness,
//! which is shown beside them. Both use the kernel's arrival timestamps, so neither figure contains
//! delays of either program after that.
//! If wrk and ab are installed, their figures for the same server over HTTP/1.1 are shown too.
#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use load::{
    BodyRule, Expect, Fetcher, Http2, Http3, Job, Segment, StatusRule, Stop, Target,
    TimestampSource, Wait, run,
};
use net::fetch::request;
use origin::{Origin, OriginOptions};
use readings::{Histogram, HttpVersion, LoadReading};
use tls::ClientSettings;

const RATE_PER_S: f64 = 2_000.0;
/// Requests that may be under way at once.
const CONNECTIONS: u32 = 200;
/// Streams of each connection in HTTP/2 and HTTP/3; there are fewer connections accordingly.
const STREAMS: u32 = 50;

/// A version of HTTP, with or without TLS.
#[derive(Clone, Copy)]
struct Protocol {
    name: &'static str,
    http: HttpVersion,
    tls: bool,
}

const PROTOCOLS: [Protocol; 5] = [
    protocol("HTTP/1.1", HttpVersion::Http1, false),
    protocol("HTTP/1.1 over TLS", HttpVersion::Http1, true),
    protocol("HTTP/2", HttpVersion::Http2, false),
    protocol("HTTP/2 over TLS", HttpVersion::Http2, true),
    protocol("HTTP/3", HttpVersion::Http3, true),
];

const fn protocol(name: &'static str, http: HttpVersion, tls: bool) -> Protocol {
    Protocol { name, http, tls }
}

/// An origin, and the client's TLS settings if it has TLS.
fn start(tls: bool) -> (Origin, Option<ClientSettings>) {
    let (server, client) = testing::tls::localhost(&["h2", "http/1.1"]);
    let cpus = net::os::allowed_cpus().unwrap();
    let before = cpus.clone();
    net::os::bind_to_cpus(&cpus[..1]).unwrap();
    let origin = Origin::start(&OriginOptions {
        backlog: 4096,
        connections: 4096,
        spin: true,
        tls: tls.then_some(server),
        http3: tls,
        ..OriginOptions::default()
    })
    .unwrap();
    net::os::bind_to_cpus(&before).unwrap();
    (origin, tls.then_some(client))
}

fn with_alpn(tls: Option<&ClientSettings>, http: HttpVersion) -> Option<ClientSettings> {
    tls.map(|tls| ClientSettings {
        alpn: vec![http.alpn().into()],
        ..tls.clone()
    })
}

fn engine(
    (address, tls): (SocketAddr, Option<&ClientSettings>),
    http: HttpVersion,
    path: &str,
    (rate_per_s, connections): (f64, u32),
    seconds: u64,
) -> LoadReading {
    let cpus = net::os::allowed_cpus().unwrap();
    let expect = Expect {
        status: StatusRule::Exactly(200),
        body: BodyRule::Bytes(Arc::from(&b"Hello, world!"[..])),
    };
    let streams = STREAMS.min(connections);
    let connections = match http {
        HttpVersion::Http1 => connections,
        _ => connections / streams,
    };
    let target = Target {
        tls: with_alpn(tls, http),
        http2: (http == HttpVersion::Http2).then_some(Http2 { streams }),
        http3: (http == HttpVersion::Http3).then_some(Http3::new(streams)),
        ..Target::new(address, request("GET", "origin", path, &[]), expect)
            .with_connections(connections)
    };
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

fn known(address: SocketAddr, tls: Option<&ClientSettings>) -> Histogram {
    let bytes = request("GET", "origin", "/.weigh/delays", &[]);
    let tls = with_alpn(tls, HttpVersion::Http1);
    let fetcher = Fetcher::new(HttpVersion::Http1, tls.as_ref(), bytes).unwrap();
    let limit = Duration::from_secs(5);
    let answer = fetcher.fetch(&address.into(), b"", limit, 1 << 24).unwrap();
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
    let number = |at: usize| {
        let text = std::env::args().nth(at);
        text.map(|text| text.parse::<f64>().expect("expected a number"))
    };
    let seconds = number(1).map_or(20, |seconds| seconds as u64);
    let rate_per_s = number(2).unwrap_or(RATE_PER_S);
    let cases = [
        "/delay/constant/1ms",
        "/delay/exponential/2ms",
        "/delay/bimodal/1ms/50ms/2",
    ];
    for protocol in PROTOCOLS {
        for path in cases {
            let (origin, tls) = start(protocol.tls);
            let (address, tls) = (origin.address(), tls.as_ref());
            let load = (rate_per_s, CONNECTIONS);
            let reading = engine((address, tls), protocol.http, path, load, seconds);
            show(protocol.name, path, &reading, &known(address, tls));
            if protocol.http == HttpVersion::Http1 && !protocol.tls {
                show_peers(address, path, rate_per_s, seconds);
            }
        }
    }
    PROTOCOLS.into_iter().for_each(stall);
}

fn show(name: &str, path: &str, reading: &LoadReading, truth: &Histogram) {
    println!(
        "\n{name}, {path}: {} requests, {} errors",
        reading.requests,
        reading.errors.total()
    );
    println!(
        "  {:>8} {:>12} {:>12} {:>12} {:>8} {:>12} {:>12} {:>12}",
        "", "origin us", "service us", "difference", "", "response us", "to send us", "to read us"
    );
    for q in [0.5, 0.75, 0.9, 0.99, 0.999] {
        let (own, seen) = (truth.quantile_us(q), reading.service.quantile_us(q));
        // What the engine has to meet: 3% or 80 us up to p99, 5% or 0.5 ms beyond.
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
}

fn show_peers(address: SocketAddr, path: &str, rate_per_s: f64, seconds: u64) {
    let url = format!("http://{address}{path}");
    let time = format!("{}s", seconds.min(5));
    let rate = rate_per_s.to_string();
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

/// A stop of one second in ten at 1,000 requests per second: of 10,000 requests 1,000 are due in
/// the stop and wait from 1 s down to 0, so p95 is 0.5 s and p99 is 0.9 s.
fn stall(protocol: Protocol) {
    let (origin, tls) = start(protocol.tls);
    let (address, http1) = (origin.address(), HttpVersion::Http1);
    let bytes = request("GET", "origin", "/.weigh/stall/1000", &[]);
    let stall = Fetcher::new(http1, with_alpn(tls.as_ref(), http1).as_ref(), bytes).unwrap();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(4));
        let limit = Duration::from_secs(5);
        stall.fetch(&address.into(), b"", limit, 1 << 20).unwrap();
    });
    let load = (1_000.0, 32);
    let reading = engine((address, tls.as_ref()), protocol.http, "/", load, 10);
    stopper.join().unwrap();
    println!(
        "\n{}, a stop of 1 s in 10 s at 1,000 requests/s (arithmetic: p95 500 ms, p99 900 ms)",
        protocol.name
    );
    for q in [0.95, 0.99] {
        println!(
            "  p{}: response {:.1} ms, service {:.1} ms",
            q * 100.0,
            reading.response.quantile_us(q) / 1e3,
            reading.service.quantile_us(q) / 1e3
        );
    }
}

//! What the load generators themselves cost: CPU time per request and highest rate, in one
//! interleaved run (A B C A B C ...), as ratios to wrk.
//!
//! `cargo build --release && cargo run --release -p load --example engine_vs_peers -- [URL]
//! [ROUNDS] [SECONDS]`: without a URL the built-in origin answers, bound to the first CPU; the
//! generators are bound to the last. Peers that are not installed are left out and named.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use net::IoKind;
use net::os::{ChildSetup, allowed_cpus, bind_to_cpus, children_cpu_ns, set_up_child};
use origin::{Origin, OriginOptions};

struct Tool {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    /// How the number of requests stands in what it prints: the word before or after it.
    requests: fn(&str) -> Option<f64>,
}

fn number_before(text: &str, words: &str) -> Option<f64> {
    let before = &text[..text.find(words)?];
    before.split_whitespace().last()?.parse().ok()
}

fn number_after(text: &str, words: &str) -> Option<f64> {
    let after = &text[text.find(words)? + words.len()..];
    let word = after.split_whitespace().next()?;
    word.trim_end_matches(',').parse().ok()
}

fn tools(url: &str, connections: u32, keepalive: bool, seconds: u64) -> Vec<Tool> {
    let weigh = std::env::current_exe()
        .unwrap()
        .ancestors()
        .nth(2)
        .unwrap()
        .join("weigh");
    let (c, d) = (connections.to_string(), format!("{seconds}s"));
    let words = |list: &[&str]| list.iter().map(|s| s.to_string()).collect::<Vec<_>>();
    let mut weigh_words = words(&["load", url, "-c", &c, "-d", &d, "--format", "json"]);
    let mut wrk_words = words(&["-t1", "-c", &c, "-d", &d, url]);
    // So many requests that the time ends it.
    let mut ab_words = words(&["-q", "-c", &c, "-t", &seconds.to_string(), "-n", "2000000"]);
    if keepalive {
        ab_words.push("-k".into());
    } else {
        weigh_words.push("--no-keepalive".into());
        wrk_words.extend(words(&["-H", "Connection: close"]));
    }
    ab_words.push(url.into());
    let mut epoll_words = weigh_words.clone();
    epoll_words.extend(words(&["--io", "epoll"]));
    vec![
        Tool {
            name: "wrk",
            program: "wrk".into(),
            arguments: wrk_words,
            requests: |text| number_before(text, " requests in"),
        },
        Tool {
            name: "weigh io_uring",
            program: weigh.clone(),
            arguments: weigh_words,
            requests: |text| number_after(text, "\"requests\": "),
        },
        Tool {
            name: "weigh epoll",
            program: weigh,
            arguments: epoll_words,
            requests: |text| number_after(text, "\"requests\": "),
        },
        Tool {
            name: "ab",
            program: "ab".into(),
            arguments: ab_words,
            requests: |text| number_after(text, "Complete requests:"),
        },
    ]
}

/// CPU microseconds per request, and requests per second.
fn measure(tool: &Tool, cpu: u32) -> Option<(f64, f64)> {
    let mut command = Command::new(&tool.program);
    command.args(&tool.arguments);
    let setup = ChildSetup {
        cpus: vec![cpu],
        die_with_parent: true,
        ..ChildSetup::default()
    };
    set_up_child(&mut command, setup);
    let (before, start) = (children_cpu_ns(), Instant::now());
    let output = command.output().ok()?;
    let elapsed = start.elapsed().as_secs_f64();
    let used_us = (children_cpu_ns() - before) as f64 / 1e3;
    let requests = (tool.requests)(&String::from_utf8_lossy(&output.stdout))?;
    Some((used_us / requests, requests / elapsed))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn compare(url: &str, connections: u32, keepalive: bool, rounds: usize, seconds: u64, cpu: u32) {
    let tools = tools(url, connections, keepalive, seconds);
    let mut seen: Vec<Vec<(f64, f64)>> = vec![Vec::new(); tools.len()];
    for _ in 0..rounds {
        let round: Vec<_> = tools.iter().map(|tool| measure(tool, cpu)).collect();
        for (all, one) in seen.iter_mut().zip(round) {
            all.extend(one);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    println!(
        "\n{connections} connections, {}: medians of {rounds} rounds of {seconds} s",
        if keepalive {
            "keep-alive"
        } else {
            "a connection per request"
        }
    );
    println!(
        "  {:<16} {:>12} {:>8} {:>14} {:>8}",
        "", "CPU us/req", "to wrk", "requests/s", "to wrk"
    );
    for (tool, own) in tools.iter().zip(&seen) {
        if own.len() < rounds {
            println!("  {:<16} not installed, or it failed", tool.name);
            continue;
        }
        let ratio = |pick: fn(&(f64, f64)) -> f64| {
            median(
                own.iter()
                    .zip(&seen[0])
                    .map(|(a, b)| pick(a) / pick(b))
                    .collect(),
            )
        };
        println!(
            "  {:<16} {:>12.2} {:>8.2} {:>14.0} {:>8.2}",
            tool.name,
            median(own.iter().map(|x| x.0).collect()),
            ratio(|x| x.0),
            median(own.iter().map(|x| x.1).collect()),
            ratio(|x| x.1)
        );
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let given = arguments.next().filter(|text| text.starts_with("http"));
    let rounds = arguments.next().map_or(4, |n| n.parse().expect("rounds"));
    let seconds = arguments.next().map_or(3, |n| n.parse().expect("seconds"));
    let cpus = allowed_cpus().unwrap();
    bind_to_cpus(&cpus[..1]).unwrap();
    let origin = Origin::start(&OriginOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        threads: 1,
        io: IoKind::best(),
        backlog: 4096,
        connections: 8192,
        spin: false,
        tls: None,
        http2_only: false,
        http3: false,
        quic_congestion: None,
    })
    .unwrap();
    let url = given.unwrap_or_else(|| format!("http://{}/", origin.address()));
    let cpu = cpus[cpus.len() - 1];
    for (connections, keepalive) in [(64, true), (400, true), (64, false)] {
        compare(&url, connections, keepalive, rounds, seconds, cpu);
    }
}

//! What a coordinator of many agents costs: starts agents as processes of this machine, leaves them
//! idle with their heartbeats, asks each for its clock, merges a histogram from each, and ends them.
//!
//! ```sh
//! cargo run --release -p weigh-agent --example fleet -- 1000
//! ```
//!
//! Each agent is this program with the code of `weigh agent`, so their own cost is shown as well.

#![allow(clippy::unwrap_used)]

use std::io::{BufReader, stdin, stdout};
use std::time::{Duration, Instant};

use agent::{Agent, AgentHandle};
use readings::Histogram;

/// How long agents are left alone, to see what heartbeats cost.
const IDLE: Duration = Duration::from_secs(10);
/// Values in the histogram of each agent.
const VALUES: u32 = 10_000;

/// A field of a process in `/proc`, such as `VmRSS` in kB.
fn status(pid: &str, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.trim_start_matches(':').split_whitespace().next());
    number.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// CPU time of this process, s.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split(' ')
        .collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok());
    (ticks(12).unwrap_or(0.0) + ticks(13).unwrap_or(0.0)) / 100.0
}

/// Prints the time of a part and this process's CPU time in it.
fn timed<T>(what: &str, agents: usize, part: impl FnOnce() -> T) -> T {
    let (begin, cpu) = (Instant::now(), cpu_s());
    let result = part();
    let (wall_s, cpu_s) = (begin.elapsed().as_secs_f64(), cpu_s() - cpu);
    println!(
        "{what:<34} {wall_s:>7.2} s; the coordinator's CPU {cpu_s:.2} s, {:.3} ms per agent",
        cpu_s * 1e3 / agents as f64
    );
    result
}

fn main() {
    let argument = std::env::args().nth(1).unwrap_or_default();
    if argument == "agent" {
        agent::serve(BufReader::new(stdin()), stdout(), std::io::empty()).unwrap();
        return;
    }
    let count: usize = argument.parse().unwrap_or(100);
    net::os::raise_open_files();
    let program = std::env::current_exe().unwrap();
    let before_kb = status("self", "VmRSS");
    let mut agents: Vec<Agent> = timed("start, one after the other", count, || {
        let start = |number| match Agent::start(&program) {
            Ok(agent) => agent,
            Err(error) => panic!("agent {number} of {count}: {error}"),
        };
        (1..=count).map(start).collect()
    });
    let kb = status("self", "VmRSS").saturating_sub(before_kb);
    let agents_kb: u64 = agents.iter().map(|it| status(&pid_of(it), "RssAnon")).sum();
    println!(
        "the coordinator holds {:.1} kB per agent and {} threads; an agent holds {:.0} kB",
        kb as f64 / count as f64,
        status("self", "Threads"),
        agents_kb as f64 / count as f64
    );
    timed("idle, with heartbeats", count, || std::thread::sleep(IDLE));
    let lost = agents.iter_mut().filter_map(Agent::gone).count();
    println!("lost meanwhile: {lost}");
    timed("12 exchanges of clocks with each", count, || {
        agents.iter_mut().for_each(|agent| {
            agent.clock().unwrap();
        });
    });
    let mut random = fastrand::Rng::with_seed(1);
    let texts: Vec<String> = (0..count)
        .map(|_| {
            let mut one = Histogram::new();
            (0..VALUES).for_each(|_| one.record_ns(random.u64(50_000..5_000_000)));
            one.to_base64()
        })
        .collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    let merged = timed("decode and merge their histograms", count, || {
        let mut all = Histogram::new();
        for text in &texts {
            all.merge(&Histogram::from_base64(text).unwrap());
        }
        all
    });
    assert_eq!(merged.count(), count as u64 * u64::from(VALUES));
    println!("a histogram takes {} bytes in a message", bytes / count);
    timed("end, one after the other", count, || {
        let unconfirmed = agents.drain(..).filter_map(Agent::end).count();
        assert_eq!(unconfirmed, 0);
    });
}

/// An agent's process, from the name of its folder.
fn pid_of(agent: &Agent) -> String {
    let name = agent.folder().file_name().unwrap().to_string_lossy();
    let mark = name.trim_start_matches("weigh-");
    mark.split('.').next().unwrap_or_default().to_owned()
}

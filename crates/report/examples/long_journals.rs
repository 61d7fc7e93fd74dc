//! How long a journal takes to read, to analyse and to report, by its number of trials:
//!
//! ```sh
//! cargo run --release -p report --example long_journals -- 30 300 3000
//! ```
//!
//! With `--print N` it prints a journal of N trials instead.

use std::io::Write as _;
use std::time::Instant;

use readings::{
    ClientReading, Condition, Histogram, Journal, JournalRow, LoadReading, Outcome, Pacing,
    Reading, RunHeader, ServerMetrics, ServerReading, Slice, SystemMetrics, ThreadReading, Trial,
};
use verdict::analyse;

const SUBJECTS: [&str; 4] = ["direct", "nginx", "haproxy", "balance"];
const CONDITIONS: u32 = 5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |text: &String| text.parse::<u32>().unwrap_or(30);
    match arguments.as_slice() {
        [option, trials] if option == "--print" => print(&text(number(trials))),
        counts => {
            print(b" trials     read  analyse     json     html      csv  terminal  (ms)\n");
            counts.iter().map(number).for_each(time);
        }
    }
}

/// A closed pipe is ignored.
fn print(text: &[u8]) {
    drop(std::io::stdout().write_all(text));
}

fn time(trials: u32) {
    let text = text(trials);
    let (journal, read_ms) = timed(|| Journal::parse(&text));
    let Ok(journal) = journal else { return };
    let (analysis, analyse_ms) = timed(|| analyse(&journal));
    let header = &journal.header;
    let (_, json_ms) = timed(|| report::json(header, &analysis).to_string());
    let (_, html_ms) = timed(|| report::html(&journal, &analysis));
    let (_, csv_ms) = timed(|| report::csv(&journal));
    let (_, terminal_ms) = timed(|| report::terminal(header, &analysis, 100, false, None));
    print(
        format!(
            "{trials:7} {read_ms:8.1} {analyse_ms:8.1} {json_ms:8.1} {html_ms:8.1} {csv_ms:8.1} \
             {terminal_ms:9.1}\n"
        )
        .as_bytes(),
    );
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed().as_secs_f64() * 1e3)
}

/// The text of a journal with so many trials, as the program writes it.
fn text(trials: u32) -> Vec<u8> {
    let conditions: Vec<Condition> = (0..CONDITIONS)
        .map(|at| Condition::from([("connections".to_owned(), (8 << at).to_string())]))
        .collect();
    let each_block = CONDITIONS * (SUBJECTS.len() as u32 + 1);
    let header = RunHeader {
        weigh_version: "0".into(),
        experiment: "long".into(),
        title: "A long run".into(),
        seed: 1,
        baseline: SUBJECTS[0].into(),
        subjects: SUBJECTS.map(str::to_owned).to_vec(),
        conditions: conditions.clone(),
        blocks: trials.div_ceil(each_block),
        matters: 0.03,
        matters_failures: 0.001,
        matters_ms: None,
        max_error: 0.01,
        started_unix_s: 0,
        published: Vec::new(),
        open_loop_factors: Vec::new(),
    };
    let mut random = Random(1);
    let mut lines = Vec::new();
    append(&mut lines, &JournalRow::Run(header));
    for number in 0..trials {
        let (block, place) = (number / each_block + 1, number % each_block);
        let (condition, lane) = (place / 5, place % 5);
        let baseline_copy = lane == 4;
        let subject = if baseline_copy { 0 } else { lane };
        let trial = Trial {
            trial: number + 1,
            block,
            condition: conditions[condition as usize].clone(),
            subject: SUBJECTS[subject as usize].into(),
            baseline_copy,
            attempt: 1,
            outcome: Outcome::Done(Box::new(reading(subject, &mut random))),
        };
        append(&mut lines, &JournalRow::Trial(Box::new(trial)));
    }
    lines
}

fn append(lines: &mut Vec<u8>, row: &JournalRow) {
    // Writing to a Vec cannot fail, and the row is made of plain data.
    drop(serde_json::to_writer(&mut *lines, row));
    lines.push(b'\n');
}

fn reading(subject: u32, random: &mut Random) -> Reading {
    let per_s = 20_000.0 / (1.0 + 0.2 * f64::from(subject)) * (1.0 + 0.03 * random.next());
    let server = ServerMetrics {
        user_s: 1.0,
        system_s: 3.0,
        switches_voluntary: 5_000,
        ..ServerMetrics::default()
    };
    let probed = SystemMetrics {
        looked_s: 10.0,
        requests: 20_000,
        looks: 70,
        cpu_s: 0.05,
        servers: [("origin".to_owned(), server)].into(),
        ..SystemMetrics::default()
    };
    Reading {
        throughput: Some(load(per_s, Pacing::Closed, random)),
        latency: Some(load(
            5_000.0,
            Pacing::Open {
                rate_per_s: 5_000.0,
            },
            random,
        )),
        servers: vec![ServerReading {
            server: "origin".into(),
            cpu_s: 2.0,
        }],
        probed: Some(probed.clone()),
        latency_probed: Some(probed),
        ..Reading::default()
    }
}

/// A load of 10 s in twenty slices, with as many occupied buckets as real ones have.
fn load(per_s: f64, pacing: Pacing, random: &mut Random) -> LoadReading {
    let requests = (per_s * 10.0) as u64;
    let mut times = |median_us: f64| {
        let mut histogram = Histogram::new();
        for _ in 0..2_000 {
            let us = median_us * (0.5 * (random.next() + random.next() + random.next())).exp();
            histogram.record_many_ns((us * 1e3) as u64, requests / 2_000);
        }
        histogram
    };
    let open = pacing != Pacing::Closed;
    let lag = |times: &mut dyn FnMut(f64) -> Histogram| match open {
        true => times(5.0),
        false => Histogram::empty(),
    };
    LoadReading {
        pacing,
        connections: 96,
        requests,
        duration_s: 10.0,
        bytes_read: requests * 200,
        requests_all: requests,
        connects: 96,
        connections_open_min: 96,
        response: times(400.0),
        service: times(390.0),
        first_byte: times(380.0),
        schedule_lag: lag(&mut times),
        receive_lag: lag(&mut times),
        connect: Histogram::empty(),
        transfer: Histogram::empty(),
        client: ClientReading {
            cpu_s: 4.0,
            threads: vec![ThreadReading {
                cpu: 0.4,
                requests,
                ..ThreadReading::default()
            }],
            io: "epoll".into(),
            ..ClientReading::default()
        },
        slices: (0..20)
            .map(|at| Slice {
                start_s: f64::from(at),
                duration_s: 0.5,
                requests: requests / 20,
                ..Slice::default()
            })
            .collect(),
        ..LoadReading::default()
    }
}

/// Numbers from -1 to 1, by a linear congruential generator.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as f64 / f64::from(1u32 << 30) - 1.0
    }
}

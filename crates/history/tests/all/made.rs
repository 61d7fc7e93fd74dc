//! Runs made up for the tests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use history::{Comparable, Figure, FloorFigure, JournalStamp, RunEntry};
use readings::{
    ClientReading, Condition, Histogram, JournalRow, LoadReading, Outcome, Pacing, Reading,
    RunHeader, Trial,
};

/// A day in seconds, the time between runs.
const DAY_S: u64 = 86_400;

/// An entry with one figure of `throughput`.
pub fn entry(number: u64, log_ratio: f64, standard_error: f64) -> RunEntry {
    RunEntry {
        format: 1,
        folder: format!("run-{number:03}"),
        journal: JournalStamp {
            bytes: 1,
            modified_unix_ns: number,
        },
        started_unix_s: 1_700_000_000 + number * DAY_S,
        experiment: "cost".into(),
        title: "What it costs".into(),
        label: None,
        revision: Some(format!("{number:040x}")),
        complete: true,
        baseline: "direct".into(),
        matters: 0.03,
        comparable: Comparable {
            experiment: "e".into(),
            settings: "s".into(),
            machine: "m".into(),
            method: "0.1.0".into(),
            versions: BTreeMap::from([("nginx".into(), "1.22".into())]),
        },
        host: "m/vm".into(),
        machine: "vm: X".into(),
        machine_facts: BTreeMap::from([("kernel".into(), "6.1".into())]),
        sentence: Some("a sentence".into()),
        figures: vec![figure("requests_per_s", log_ratio, standard_error)],
    }
}

pub fn figure(metric: &str, log_ratio: f64, standard_error: f64) -> Figure {
    Figure {
        condition: Condition::new(),
        metric: metric.into(),
        subject: "proxy".into(),
        log_ratio,
        standard_error,
        standard_error_of_blocks: standard_error,
        degrees: 4.0,
        blocks: 5,
        noise_floor: Some(FloorFigure {
            log_ratio: 0.0,
            standard_error,
            degrees: 4.0,
            ends: None,
        }),
        unused: None,
        client_limited_baseline: false,
        commit: None,
        baseline_commit: None,
        // Rounded, since serde_json reads some numbers of more digits as their neighbours.
        subject_value: Some((100.0 * log_ratio.exp()).round()),
        baseline_value: Some(100.0),
    }
}

fn load(requests_per_s: f64) -> LoadReading {
    let requests = (requests_per_s * 10.0).round() as u64;
    let mut response = Histogram::new();
    response.record_ns(100_000);
    LoadReading {
        connections: 64,
        requests,
        duration_s: 10.0,
        requests_all: requests,
        connects: 64,
        connections_open_min: 64,
        service: response.clone(),
        response,
        client: ClientReading {
            cpu_s: 4.0,
            ..ClientReading::default()
        },
        ..LoadReading::empty(Pacing::Closed)
    }
}

pub fn header(started_unix_s: u64) -> RunHeader {
    RunHeader {
        weigh_version: "0.1.0".into(),
        experiment: "cost".into(),
        title: "What it costs".into(),
        baseline: "direct".into(),
        subjects: vec!["direct".into(), "proxy".into()],
        blocks: 4,
        started_unix_s,
        ..RunHeader::default()
    }
}

/// The rows of a run in which `proxy` carries the given share of `direct` in each block; the machine
/// carries `machine_per_s`.
pub fn rows(header: RunHeader, shares: &[f64], machine_per_s: f64) -> Vec<JournalRow> {
    let mut rows = vec![JournalRow::Run(header)];
    let mut trial = 0;
    for (block, share) in shares.iter().enumerate() {
        let wobble = 1.0 + 0.001 * (block % 3) as f64;
        let all = [
            ("direct", false, 1.0),
            ("direct", true, wobble),
            ("proxy", false, *share),
        ];
        for (subject, baseline_copy, share) in all {
            trial += 1;
            rows.push(JournalRow::Trial(Box::new(Trial {
                trial,
                block: block as u32 + 1,
                condition: Condition::new(),
                subject: subject.into(),
                baseline_copy,
                attempt: 1,
                outcome: Outcome::Done(Box::new(Reading {
                    throughput: Some(load(machine_per_s * share)),
                    ..Reading::default()
                })),
            })));
        }
    }
    rows.push(JournalRow::End { complete: true });
    rows
}

pub fn write_run(folder: &Path, rows: &[JournalRow], kernel: &str, connections: u32) {
    fs::create_dir_all(folder).unwrap();
    let text: Vec<u8> = rows.iter().flat_map(|row| row.to_line().unwrap()).collect();
    fs::write(folder.join("journal.jsonl"), text).unwrap();
    let experiment = format!("title = \"t\"\n[load]\nconnections = {connections}\n");
    fs::write(folder.join("experiment.toml"), experiment).unwrap();
    let hosts = format!(
        "{{\"local\": {{\"host\": \"vm\", \"kernel\": \"{kernel}\", \"cpu\": \"X\", \"cpus\": [0], \
         \"versions\": {{\"nginx\": \"1.22\"}}}}}}"
    );
    fs::write(folder.join("hosts.json"), hosts).unwrap();
}

/// A folder of this test's own, removed in the end.
pub struct Folder(pub std::path::PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let name = format!("weigh-history-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

//! Journals that are made up, as long as wanted.

use readings::{
    ClientReading, Condition, FailureCause, Histogram, Journal, JournalRow, LoadReading, Outcome,
    Pacing, Reading, RunHeader, ServerMetrics, ServerReading, Slice, SystemMetrics, ThreadReading,
    Trial,
};

/// What a made-up journal holds.
#[derive(Clone, Debug)]
pub struct MadeUp {
    pub trials: u32,
    /// The first is the baseline.
    pub subjects: Vec<String>,
    pub conditions: u32,
    /// Every so many trials one fails and one has wrong answers; none with 0.
    pub lost_every: u32,
}

impl MadeUp {
    /// Four subjects under five conditions, without a failure.
    pub fn of(trials: u32) -> Self {
        Self {
            trials,
            subjects: ["direct", "nginx", "haproxy", "balance"]
                .map(str::to_owned)
                .to_vec(),
            conditions: 5,
            lost_every: 0,
        }
    }

    /// The journal.
    pub fn journal(&self) -> Journal {
        Journal::parse(&self.text()).unwrap()
    }

    /// The text of the journal, as the program writes it.
    pub fn text(&self) -> Vec<u8> {
        let trials = self.trials;
        let subjects = self.subjects.len() as u32;
        let conditions: Vec<Condition> = (0..self.conditions)
            .map(|at| Condition::from([("connections".to_owned(), (8 << at).to_string())]))
            .collect();
        let each_block = self.conditions * (subjects + 1);
        let header = RunHeader {
            experiment: "long".into(),
            title: "A long run".into(),
            baseline: self.subjects[0].clone(),
            subjects: self.subjects.clone(),
            conditions: conditions.clone(),
            blocks: trials.div_ceil(each_block),
            ..RunHeader::default()
        };
        let mut random = Random(1);
        let mut lines = Vec::new();
        append(&mut lines, &JournalRow::Run(header));
        for number in 0..trials {
            let (block, place) = (number / each_block + 1, number % each_block);
            let (condition, lane) = (place / (subjects + 1), place % (subjects + 1));
            let baseline_copy = lane == subjects;
            let subject = if baseline_copy { 0 } else { lane };
            let trial = Trial {
                trial: number + 1,
                block,
                condition: conditions[condition as usize].clone(),
                subject: self.subjects[subject as usize].clone(),
                baseline_copy,
                attempt: 1,
                outcome: self.outcome(number, subject, &mut random),
            };
            append(&mut lines, &JournalRow::Trial(Box::new(trial)));
        }
        lines
    }

    fn outcome(&self, number: u32, subject: u32, random: &mut Random) -> Outcome {
        let mut reading = reading(number, subject, random);
        match (self.lost_every, number.checked_rem(self.lost_every)) {
            (_, Some(3)) => Outcome::failed(
                "<b>did not</b> become ready within 10 s",
                FailureCause::Subject,
            ),
            (every, Some(rest)) if rest == 5 % every => {
                if let Some(load) = &mut reading.throughput {
                    load.errors.status = load.requests;
                    load.errors_all.status = load.requests;
                }
                Outcome::Done(Box::new(reading))
            }
            _ => Outcome::Done(Box::new(reading)),
        }
    }
}

fn append(lines: &mut Vec<u8>, row: &JournalRow) {
    lines.extend(row.to_line().unwrap());
}

fn reading(number: u32, subject: u32, random: &mut Random) -> Reading {
    let per_s = 20_000.0 / (1.0 + 0.2 * f64::from(subject)) * (1.0 + 0.03 * random.next());
    let server = ServerMetrics {
        user_s: 1.0,
        system_s: 3.0,
        switches_voluntary: 5_000,
        ..ServerMetrics::default()
    };
    let probed = SystemMetrics {
        from_unix_s: 1e9 + 30.0 * f64::from(number),
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
            ..ServerReading::default()
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

//! A simulated machine that measures a scenario.

use crate::stats::normal::standard_normal;
use fastrand::Rng;
use readings::{
    ClientReading, Condition, LoadReading, Outcome, Pacing, Reading, RunHeader, Slice,
    ThreadReading, Trial,
};

use super::scenario::{Drift, Scenario, Shape};

/// How often a trial is tried again.
const RETRIES: u32 = 3;

/// Good answers per second of the baseline on an undisturbed machine.
const BASE_PER_S: f64 = 20_000.0;
/// Median latency of the baseline in the open loop.
const BASE_US: f64 = 400.0;
/// Measured time of a trial's closed loop.
const WINDOW_S: f64 = 10.0;
/// Answers that stand behind the simulated median: just enough to resolve it.
const ANSWERS: u64 = 200;

const BASELINE: &str = "direct";

pub(super) fn header(scenario: &Scenario) -> RunHeader {
    let mut subjects = vec![BASELINE.to_owned()];
    subjects.extend((1..=scenario.speeds.len()).map(|i| format!("subject-{i}")));
    RunHeader {
        weigh_version: env!("CARGO_PKG_VERSION").to_owned(),
        experiment: "simulated".to_owned(),
        title: "A simulated experiment".to_owned(),
        seed: 0,
        baseline: BASELINE.to_owned(),
        subjects,
        conditions: (1..=scenario.conditions)
            .map(|i| Condition::from([("condition".to_owned(), i.to_string())]))
            .collect(),
        blocks: scenario.blocks,
        matters: scenario.matters,
        ..RunHeader::default()
    }
}

/// A machine, its subjects and its load, all made up.
pub(super) struct Model {
    pub header: RunHeader,
    scenario: Scenario,
    random: Rng,
    /// The rows of a whole run, made once and filled again for each: a histogram is large.
    rows: Vec<Trial>,
    filled: usize,
    /// The attempts before those in `rows`, which failed.
    failed: Vec<Trial>,
    /// What each copy of each condition carries over from the block before.
    carried: Vec<f64>,
    /// The machine's log speed at the run's end, or after its step.
    shift: f64,
    /// When the step comes, as a share of the run.
    step_at: f64,
    /// How much quicker the block is for those that feel it.
    block_effect: f64,
}

impl Model {
    pub fn new(scenario: &Scenario, seed: u64) -> Self {
        let header = header(scenario);
        let copies = header.subjects.len() + 1;
        let mut rows = Vec::new();
        for block in 1..=scenario.blocks {
            for condition in &header.conditions {
                for copy in 0..copies {
                    // The last copy is the baseline's second copy.
                    let is_baseline_copy = copy + 1 == copies;
                    rows.push(Trial {
                        trial: rows.len() as u32 + 1,
                        block,
                        condition: condition.clone(),
                        subject: header.subjects[if is_baseline_copy { 0 } else { copy }].clone(),
                        baseline_copy: is_baseline_copy,
                        attempt: 1,
                        outcome: Outcome::Done(Box::new(Reading {
                            separate_copy: true,
                            throughput: Some(load(Pacing::Closed)),
                            latency: scenario.latency.then(|| {
                                load(Pacing::Open {
                                    rate_per_s: BASE_PER_S / 2.0,
                                })
                            }),
                            ..Reading::default()
                        })),
                    });
                }
            }
        }
        Self {
            scenario: scenario.clone(),
            random: Rng::with_seed(seed),
            rows,
            filled: 0,
            failed: Vec::new(),
            carried: vec![0.0; header.conditions.len() * copies],
            shift: 0.0,
            step_at: 0.0,
            block_effect: 0.0,
            header,
        }
    }

    /// Begins another run.
    pub fn begin(&mut self) {
        self.filled = 0;
        self.failed.clear();
        self.carried.fill(f64::NAN);
        let size = match self.scenario.drift {
            Drift::Steady | Drift::HalfOfSubjects(_) => 0.0,
            Drift::Linear(sigmas) | Drift::Step(sigmas) => sigmas * self.scenario.noise.between,
        };
        self.shift = if self.random.bool() { size } else { -size };
        self.step_at = self.random.f64();
    }

    /// The rows of the blocks measured since the run began.
    pub fn rows(&self) -> impl Iterator<Item = &Trial> {
        self.failed.iter().chain(&self.rows[..self.filled])
    }

    /// Measures a block: its conditions in random order, and in each of them rounds of slices, one
    /// of every copy in random order.
    pub fn measure(&mut self, block: u32) {
        let conditions = self.header.conditions.len();
        let copies = self.header.subjects.len() + 1;
        let mut order: Vec<usize> = (0..conditions).collect();
        self.random.shuffle(&mut order);
        if let Drift::HalfOfSubjects(sigmas) = self.scenario.drift {
            self.block_effect = sigmas * self.scenario.noise.between * self.normal();
        }
        for (place, condition) in order.into_iter().enumerate() {
            let started: Vec<f64> = (0..copies)
                .map(|copy| self.start(condition * copies + copy, copy))
                .collect();
            let attempts: Vec<(u32, f64)> = (0..copies).map(|copy| self.attempts(copy)).collect();
            let mut counts = vec![0.0; copies];
            let mut latencies = vec![0.0; copies];
            let slices = self.scenario.noise.slices.max(1);
            let slice_s = WINDOW_S / f64::from(slices);
            let first = self.filled + condition * copies;
            for row in &mut self.rows[first..first + copies] {
                closed(row).slices.clear();
            }
            let mut turns: Vec<usize> = (0..copies).collect();
            for slice in 0..slices {
                self.random.shuffle(&mut turns);
                for (turn, &copy) in turns.iter().enumerate() {
                    let done = f64::from(slice) + turn as f64 / copies as f64;
                    let in_block = (place as f64 + done / f64::from(slices)) / conditions as f64;
                    let log = started[copy] + attempts[copy].1 + self.machine(block, in_block);
                    let speed = (log + self.normal() * self.scenario.noise.within).exp();
                    let most = self.scenario.client.unwrap_or(f64::INFINITY);
                    // A saturated client has noise of its own, too.
                    let speed = match speed < most {
                        true => speed,
                        false => most * (1.0 + 0.002 * self.normal()),
                    };
                    let requests = slice_s * BASE_PER_S * speed;
                    counts[copy] += requests;
                    if self.scenario.latency {
                        let noise = self.normal() * self.scenario.noise.within;
                        latencies[copy] += BASE_US * (noise - log).exp() / f64::from(slices);
                    }
                    closed(&mut self.rows[first + copy]).slices.push(Slice {
                        start_s: 0.01,
                        duration_s: slice_s,
                        requests: requests.round() as u64,
                        ..Slice::default()
                    });
                }
            }
            for copy in 0..copies {
                let us = match self.scenario.latency_step {
                    Some(step) => (latencies[copy] / BASE_US / step).round() * BASE_US * step,
                    None => latencies[copy],
                };
                let most = self.scenario.client.unwrap_or(f64::INFINITY);
                let saturated = counts[copy] > 0.98 * most * BASE_PER_S * WINDOW_S;
                fill(&mut self.rows[first + copy], counts[copy], us, saturated);
                self.try_again(first + copy, attempts[copy]);
            }
        }
        self.filled += conditions * copies;
    }

    /// How many attempts a trial takes, and the log of the speed that the last of them has left.
    fn attempts(&mut self, copy: usize) -> (u32, f64) {
        let Some(bad) = self.scenario.bad_starts.filter(|_| self.is_subject(copy)) else {
            return (1, 0.0);
        };
        for attempt in 1..=RETRIES + 1 {
            if self.random.f64() >= bad.share {
                return (attempt, 0.0);
            }
        }
        (RETRIES + 1, bad.speed.ln())
    }

    /// Adds the rows of the failed attempts to a trial that was filled.
    fn try_again(&mut self, at: usize, (attempts, left): (u32, f64)) {
        let Some(bad) = self.scenario.bad_starts else {
            return;
        };
        self.rows[at].attempt = attempts;
        closed(&mut self.rows[at]).errors_all.read = 0;
        for attempt in 1..attempts {
            let mut row = self.rows[at].clone();
            row.attempt = attempt;
            spoil(&mut row, bad.speed, bad.failed);
            self.failed.push(row);
        }
        if left < 0.0 {
            // The last attempt has lost its speed already.
            spoil(&mut self.rows[at], 1.0, bad.failed);
        }
    }

    fn is_subject(&self, copy: usize) -> bool {
        copy >= 1 && copy <= self.scenario.speeds.len()
    }

    /// One deviation of a start from what is usual, in standard deviations.
    fn deviation(&mut self, copy: usize) -> f64 {
        let shape = self.scenario.noise.shape;
        let of_all = matches!(shape, Shape::Normal | Shape::HeavyTails);
        if !of_all && !self.is_subject(copy) {
            return 0.0;
        }
        match shape {
            Shape::Normal => self.normal(),
            Shape::HeavyTails => {
                let squares: f64 = (0..3).map(|_| self.normal().powi(2)).sum();
                self.normal() / squares.sqrt()
            }
            Shape::Exponential => -(1.0 - self.random.f64()).ln() - 1.0,
            Shape::Lognormal => {
                let (shape, value) = (0.8_f64, self.normal());
                let mean = (shape * shape / 2.0).exp();
                let sd = mean * (shape * shape).exp_m1().sqrt();
                ((shape * value).exp() - mean) / sd
            }
        }
    }

    /// The log speed of a subject that was just started.
    fn start(&mut self, place: usize, copy: usize) -> f64 {
        let noise = self.scenario.noise;
        let fresh = self.deviation(copy) * noise.between;
        let before = self.carried[place];
        let deviation = if before.is_nan() {
            fresh
        } else {
            // Keeps the variance what it is.
            noise.carried * before + (1.0 - noise.carried.powi(2)).sqrt() * fresh
        };
        self.carried[place] = deviation;
        let speed = match copy.checked_sub(1) {
            Some(subject) => self.scenario.speeds.get(subject).copied().unwrap_or(1.0),
            None => 1.0,
        };
        let outlier = match self.scenario.outliers {
            Some(o) if o.one_sided && !self.is_subject(copy) => 1.0,
            Some(o) if self.random.f64() < o.share => o.speed,
            _ => 1.0,
        };
        let felt = match self.scenario.drift {
            Drift::HalfOfSubjects(_) if copy.is_multiple_of(2) => self.block_effect,
            _ => 0.0,
        };
        deviation * self.loudness(copy) + felt + speed.ln() + outlier.ln()
    }

    fn loudness(&self, copy: usize) -> f64 {
        let of_subject = |subject: usize| self.scenario.loudness.get(subject).copied();
        copy.checked_sub(1).and_then(of_subject).unwrap_or(1.0)
    }

    /// The machine's log speed at a moment of a block, 0 to 1.
    fn machine(&self, block: u32, in_block: f64) -> f64 {
        let at = (f64::from(block) - 1.0 + in_block) / f64::from(self.scenario.blocks);
        match self.scenario.drift {
            Drift::Steady | Drift::HalfOfSubjects(_) => 0.0,
            Drift::Linear(_) => self.shift * at,
            Drift::Step(_) if at >= self.step_at => self.shift,
            Drift::Step(_) => 0.0,
        }
    }

    fn normal(&mut self) -> f64 {
        standard_normal(&mut self.random)
    }
}

fn closed(row: &mut Trial) -> &mut LoadReading {
    reading(row)
        .throughput
        .get_or_insert_with(|| load(Pacing::Closed))
}

fn reading(row: &mut Trial) -> &mut Reading {
    if let Outcome::Failed { .. } = row.outcome {
        row.outcome = Outcome::Done(Box::default());
    }
    match &mut row.outcome {
        Outcome::Done(reading) => reading,
        Outcome::Failed { .. } => unreachable!("it was replaced just now"),
    }
}

/// Makes a good trial one that lost speed and requests.
fn spoil(row: &mut Trial, speed: f64, failed: f64) {
    let load = closed(row);
    load.requests = (load.requests as f64 * speed) as u64;
    load.requests_all = load.requests;
    load.errors_all.read = (load.requests as f64 * failed / (1.0 - failed)) as u64;
}

fn fill(row: &mut Trial, requests: f64, latency_us: f64, saturated: bool) {
    let load = closed(row);
    load.client.saturated = saturated;
    load.requests = requests.round() as u64;
    load.requests_all = load.requests;
    load.bytes_read = load.requests * 200;
    if let Some(open) = &mut reading(row).latency {
        open.response.clear();
        for _ in 0..ANSWERS {
            open.response.record_ns((latency_us * 1e3) as u64);
        }
    }
}

/// A load without a flaw.
fn load(pacing: Pacing) -> LoadReading {
    let requests = match pacing {
        Pacing::Closed => 0,
        Pacing::Open { rate_per_s } => (rate_per_s * WINDOW_S) as u64,
    };
    LoadReading {
        connections: 32,
        requests,
        duration_s: WINDOW_S,
        bytes_read: requests * 200,
        requests_all: requests,
        connects: 32,
        connections_open_min: 32,
        client: ClientReading {
            threads: vec![ThreadReading {
                cpu: 0.4,
                requests,
                ..ThreadReading::default()
            }],
            ..ClientReading::default()
        },
        ..LoadReading::empty(pacing)
    }
}

//! Simulated loads, whose truth no finding may deny.
use readings::Tool;
use verdict::diagnose::{Diagnosis, Fact, Finding, FindingKind, diagnose};

use crate::printed;

const RUNS: u64 = 1000;

/// A load with what it really did.
#[derive(Clone, Debug)]
pub struct Run {
    pub connections: u64,
    /// The most requests in flight on each.
    pub depth: u64,
    pub seconds: f64,
    /// Complete answers.
    pub requests: u64,
    /// Of the answers that the tool timed.
    pub latencies_us: Vec<f64>,
    /// Answers that came too late or never.
    pub late: u64,
    /// Answers with an error status.
    pub wrong: u64,
    pub failed_connects: u64,
    /// Whether the client paused between requests.
    pub pauses: bool,
    /// Whether its latencies hardly vary.
    steady: bool,
}

impl Run {
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    /// The share of its time that it was waiting for answers that were timed. As it ends, it gives
    /// up what is on the way.
    fn busy(&self) -> f64 {
        let sum_us = self.latencies_us.iter().sum::<f64>();
        sum_us / (self.seconds * 1e6 * self.connections as f64)
    }

    fn is_plain(&self) -> bool {
        self.busy() > 0.9
            && self.late + self.wrong + self.failed_connects == 0
            && !self.pauses
            && !self.steady
    }
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Above 0, up to 1.
    fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// Evenly between on a logarithmic scale.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }

    fn normal(&mut self) -> f64 {
        let angle = std::f64::consts::TAU * self.unit();
        (-2.0 * self.unit().ln()).sqrt() * angle.cos()
    }
}

/// What a tool can do and print.
#[derive(Clone, Copy, PartialEq)]
enum Can {
    Depth,
    Pauses,
    Late,
    Wrong,
    FailedConnects,
    /// A late answer counts as an answer too.
    LateAnswers,
}

fn run(random: &mut Random, can: &[Can]) -> Run {
    let one_in = |random: &mut Random, what, n| can.contains(&what) && random.below(n) == 0;
    let connections = 1 + random.below(12);
    let depth = match one_in(random, Can::Depth, 3) {
        true => 2 + random.below(15),
        false => 1,
    };
    let pauses = one_in(random, Can::Pauses, 5);
    let failed_connects = match one_in(random, Can::FailedConnects, 5) {
        true => random.below(connections),
        false => 0,
    };
    let shape = random.below(4);
    let median_us = random.between(120.0, if shape == 3 { 3e6 } else { 5e4 });
    let sigma = match shape {
        0 => 0.01 + 0.03 * random.unit(),
        _ => 0.2 + 0.6 * random.unit(),
    };
    let slow = (shape == 2).then(|| 5.0 + 30.0 * random.unit());
    let limit_us = match one_in(random, Can::Late, 4) {
        true => median_us * 4.0,
        false => f64::INFINITY,
    };
    let rounds = 25 + random.below(40);
    let seconds = (rounds as f64 * median_us / 1e6 * 100.0).ceil() / 100.0;
    let mut done = Run {
        connections,
        depth,
        seconds,
        requests: 0,
        latencies_us: Vec::new(),
        late: 0,
        wrong: 0,
        failed_connects,
        pauses,
        steady: shape == 0,
    };
    for _ in 0..connections - failed_connects {
        let mut at_us = 0.0;
        loop {
            let mut us = median_us * (sigma * random.normal()).exp();
            if let Some(times) = slow
                && random.below(7) == 0
            {
                us *= times;
            }
            at_us += us;
            if at_us > seconds * 1e6 {
                break;
            }
            if us > limit_us {
                done.late += depth;
                done.requests += depth * u64::from(can.contains(&Can::LateAnswers));
            } else {
                // Those of a pipeline are timed together.
                done.latencies_us.push(us);
                done.requests += depth;
            }
            if pauses {
                at_us += median_us * 3.0 * random.unit();
            }
        }
    }
    if one_in(random, Can::Wrong, 4) {
        done.wrong = random.below(done.requests + 1);
    }
    done
}

type Print = fn(&Run, bool) -> String;

/// The tools, what they can do, and how they print, in two forms each.
const TOOLS: [(Tool, &[Can], Print); 10] = {
    use Can::{Depth, FailedConnects, Late, LateAnswers, Pauses, Wrong};
    [
        (
            Tool::Wrk,
            &[Depth, Pauses, Late, Wrong, FailedConnects, LateAnswers],
            printed::wrk,
        ),
        (
            Tool::Wrk2,
            &[Late, Wrong, Pauses, LateAnswers],
            printed::wrk2,
        ),
        (Tool::Ab, &[Wrong], printed::ab),
        (Tool::Httperf, &[Wrong, Late, Pauses], printed::httperf),
        (Tool::H2load, &[Depth, Wrong, Late], printed::h2load),
        (Tool::Hey, &[Wrong, Late], printed::hey),
        (Tool::Oha, &[Wrong, Late], printed::oha),
        (Tool::K6, &[Wrong, Pauses], printed::k6),
        (Tool::RedisBenchmark, &[Depth], printed::redis_benchmark),
        (Tool::Siege, &[Wrong, Late, Pauses], printed::siege),
    ]
};

/// Simulated runs of a tool with their texts; the flag is the form.
fn runs_of(at: usize) -> impl Iterator<Item = (Run, bool, String)> {
    let (_, can, print) = TOOLS[at];
    let mut random = Random(at as u64);
    let runs = std::iter::repeat_with(move || (run(&mut random, can), random.below(2) == 0));
    runs.filter(|(run, _)| run.latencies_us.len() > 20)
        .map(move |(run, form)| (run.clone(), form, print(&run, form)))
        .take(RUNS as usize)
}

/// Why a finding is false of a run, if it is.
fn denied(finding: &Finding, run: &Run, tool: Tool) -> Option<&'static str> {
    if !finding.unknown.is_empty() {
        return None;
    }
    let busy = run.busy();
    let wrong = match &finding.diagnosis {
        // Only wrk 4 changes what it has measured.
        Diagnosis::ImpossibleMean(_) => tool != Tool::Wrk,
        Diagnosis::StoodStill(_) => busy > 0.85,
        Diagnosis::AllBusy { shown_by, .. } => busy < 0.9 || shown_by.is_some(),
        Diagnosis::Timeouts { requests, share } => {
            let share = share.unwrap_or(1.0);
            let all = run.requests + if tool == Tool::Wrk { 0 } else { run.late };
            *requests != run.late
                || (share - run.late as f64 / all as f64).abs() > 1e-6 && tool != Tool::Wrk2
        }
        Diagnosis::ErrorsLeftOut {
            errors,
            opened,
            answered,
        } => {
            let failed = errors.connect + errors.read + errors.write;
            let given = run.failed_connects + run.late;
            let opened = opened.map(|c| c.slots as u64);
            failed > given
                || answered.is_some_and(|n| n != run.requests)
                || opened.is_some_and(|n| n != run.connections - run.failed_connects)
        }
        Diagnosis::WrongAnswersAsSpeed {
            wrong, requests, ..
        } => *wrong != run.wrong || *requests != run.requests,
        _ => true,
    };
    wrong.then_some("it is false")
}

#[test]
fn no_finding_is_false_of_a_simulated_run() {
    for (at, (tool, ..)) in TOOLS.into_iter().enumerate() {
        for (run, form, text) in runs_of(at) {
            let found = tools::read_text(&text);
            assert_eq!(found.problems, [], "{text}");
            assert_eq!(found.readings.len(), 1, "{text}");
            assert_eq!(found.readings[0].tool, tool, "{text}");
            assert_eq!(found.readings[0].requests, Some(run.requests), "{text}");
            let findings = diagnose(&found.readings);
            for finding in &findings {
                let why = denied(finding, &run, tool);
                assert!(why.is_none(), "{why:?}: {finding:?}\n{run:?}\n{text}");
                // A good run of any tool has nothing to say, but for what wrk 4 does to all.
                let of_any = tool == Tool::Wrk
                    && matches!(
                        finding.kind(),
                        FindingKind::ImpossibleMean | FindingKind::CorrectedAfterwards
                    );
                // Several at once are possible where nothing tells how many.
                let several = run.depth > 1 && finding.unknown.contains(&Fact::Depth);
                assert!(of_any || several || !run.is_plain(), "{finding:?}\n{text}");
            }
            // What failed is told.
            let told = |kind| findings.iter().any(|f| f.kind() == kind);
            assert_eq!(
                told(FindingKind::WrongAnswersAsSpeed),
                run.wrong > 0,
                "{form}\n{text}"
            );
            let late = told(FindingKind::Timeouts) || told(FindingKind::ErrorsLeftOut);
            assert_eq!(late, run.late + run.failed_connects > 0, "{form}\n{text}");
        }
    }
}

#[test]
fn no_output_that_is_cut_off_passes_as_whole() {
    let mut random = Random(7);
    for (at, (tool, ..)) in TOOLS.into_iter().enumerate() {
        for (_, _, text) in runs_of(at).take(RUNS as usize / 5) {
            let lines: Vec<&str> = text.lines().collect();
            let end = lines.iter().rposition(|line| !line.is_empty()).unwrap();
            let count = 1 + random.below(end as u64) as usize;
            let cut = lines[..count].join("\n");
            let found = tools::read_text(&cut);
            let whole = tools::read_text(&text);
            let only_progress = tool == Tool::K6
                && found.readings.first().map(|r| r.requests) == Some(whole.readings[0].requests);
            let said = !found.problems.is_empty() || found.readings.is_empty() || only_progress;
            assert!(said, "{cut}");
        }
    }
}

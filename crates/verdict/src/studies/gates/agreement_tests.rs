//! A gate and the verdict of the same figure never contradict each other.

use readings::{FailureCause, Gate, GateBound, GateMetric, Outcome, Trial};

use super::GateOutcome;
use crate::fixtures::{Normal, analyse, header, throughput, throughput_blocks};
use crate::{Comparison, GateResult, Verdict};

const MATTERS: f64 = 0.03;

/// A journal with some of all that may withhold a verdict or a gate's outcome.
fn journal(random: &mut fastrand::Rng, normal: &mut Normal) -> Vec<Trial> {
    let blocks = random.usize(2..20);
    let truth = 0.7 + 0.4 * random.f64();
    let noise = 0.3 * random.f64().powi(3);
    let skewed = random.u8(..4) == 0;
    let rates: Vec<(f64, f64)> = (0..blocks)
        .map(|_| {
            let draw = match skewed {
                true => -(1.0 - random.f64()).ln() - 1.0,
                false => normal.next(),
            };
            (20_000.0, 20_000.0 * truth * (noise * draw).exp())
        })
        .collect();
    let mut trials = throughput_blocks(&rates);
    let again = 1.0 + 0.1 * normal.next() * f64::from(random.u8(..4) == 0);
    let limited = random.u8(..6);
    let failing = random.u8(..6);
    for trial in &mut trials {
        let is_subject = trial.subject == "balance";
        let is_copy = trial.baseline_copy;
        let load = throughput(trial);
        if is_copy {
            load.requests = (load.requests as f64 * again) as u64;
        }
        load.client.saturated = random.bool()
            && match limited {
                0 => is_subject,
                1 => !is_subject,
                2 => true,
                _ => false,
            };
        let fails = match failing {
            0 => is_subject,
            1 => !is_subject,
            _ => false,
        };
        if fails && random.bool() {
            trial.outcome = Outcome::failed("did not become ready", FailureCause::Subject);
        }
    }
    trials
}

/// What a reader would call a contradiction.
fn contradiction(gate: &GateResult, verdict: &Comparison) -> Option<&'static str> {
    let bound = -gate.bound;
    let surely_slower = verdict.verdict == Verdict::Slower && verdict.surely;
    match gate.outcome {
        GateOutcome::Breached if bound >= MATTERS && verdict.verdict != Verdict::Slower => {
            Some("breached, and not slower")
        }
        GateOutcome::Breached if verdict.verdict == Verdict::Faster => Some("breached, and faster"),
        GateOutcome::Breached => None,
        _ if surely_slower && bound <= MATTERS => Some("surely slower, and not breached"),
        GateOutcome::Unsettled if verdict.verdict == Verdict::Same && bound >= MATTERS => {
            Some("the same, and not passed")
        }
        _ => None,
    }
}

#[test]
fn no_journal_has_a_gate_that_contradicts_the_verdict_of_its_figure() {
    let mut random = fastrand::Rng::with_seed(20_261_127);
    let mut normal = Normal::with_seed(39);
    let mut outcomes = std::collections::BTreeMap::new();
    for run in 0..600 {
        let trials = journal(&mut random, &mut normal);
        let bound = -[0.0, 0.01, MATTERS, 0.05, 0.1][random.usize(..5)];
        let blocks = trials.iter().map(|trial| trial.block).max().unwrap();
        let mut header = header(blocks);
        header.gates = vec![Gate {
            name: "throughput".into(),
            text: format!("throughput > {bound}"),
            subject: None,
            metric: GateMetric::Throughput,
            bound: GateBound::Relative(bound),
        }];
        let analysis = analyse(&header, &trials);
        let (gate, verdict) = (&analysis.gates[0], &analysis.comparisons[0]);
        let found = contradiction(gate, verdict);
        assert_eq!(found, None, "run {run}: {gate:?} {verdict:?}");
        let pair = format!("{} {:?}", gate.outcome.words(), verdict.verdict);
        *outcomes.entry(pair).or_insert(0) += 1;
    }
    // The journals reach all that could contradict.
    for pair in [
        "breached Slower",
        "passed Same",
        "unsettled Inconclusive",
        "not judged Invalid",
    ] {
        assert!(
            outcomes.get(pair).is_some_and(|count| *count > 2),
            "{outcomes:?}"
        );
    }
}

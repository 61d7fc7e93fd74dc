//! Instructions per request of servers.

use crate::fixtures::{analyse, header, throughput_blocks};
use crate::summary::*;
use crate::{Comparison, Metric, Verdict};
use readings::{InstructionScope, InstructionsReading};

/// Six blocks of equal throughput, in which `of` says what a request takes of instructions.
fn trials(of: impl Fn(&Trial) -> Option<(InstructionScope, f64)>) -> Vec<Trial> {
    let mut trials = throughput_blocks(&[(1000.0, 1000.0); 6]);
    for one in &mut trials {
        let counted = of(one);
        // No two blocks are quite alike.
        let wobble = 1.0 + 1e-3 * f64::from((one.block + u32::from(one.baseline_copy)) % 3);
        if let (Outcome::Done(reading), Some((scope, each))) = (&mut one.outcome, counted) {
            reading.instructions = Some(InstructionsReading {
                scope,
                requests: 3_000,
                servers: [
                    ("front".to_owned(), (each * wobble * 1_000.0) as u64),
                    ("back".to_owned(), (each * wobble * 2_000.0) as u64),
                ]
                .into(),
            });
        }
    }
    trials
}

fn of_metric(trials: &[Trial], metric: Metric) -> Option<Comparison> {
    let comparisons = analyse(&header(6), trials).comparisons;
    comparisons.into_iter().find(|one| one.metric == metric)
}

fn of_subject(trial: &Trial, direct: f64, balance: f64) -> f64 {
    match trial.subject.as_str() {
        "direct" => direct,
        _ => balance,
    }
}

#[test]
fn a_difference_in_instructions_is_found() {
    let both = InstructionScope::UserAndKernel;
    let trials = trials(|trial| Some((both, of_subject(trial, 40_000.0, 44_000.0))));
    let analysis = analyse(&header(6), &trials);
    let all = analysis.comparisons.iter();
    let found = all.filter(|one| one.metric == Metric::ServerInstructionsPerRequest);
    let [found] = found.collect::<Vec<_>>()[..] else {
        panic!("{analysis:?}");
    };
    assert_eq!(found.verdict, Verdict::Slower, "{found:?}");
    assert!((found.ratio.unwrap() - 1.1).abs() < 1e-3, "{found:?}");
    assert!((found.baseline_value.unwrap() / 40_040.0 - 1.0).abs() < 1e-3);
    // It is corrected together with all other comparisons, and has a noise floor.
    assert!(found.p_adjusted.unwrap() >= found.p_value.unwrap());
    let floors: Vec<Metric> = analysis.noise_floor.iter().map(|f| f.metric).collect();
    assert!(floors.contains(&Metric::ServerInstructionsPerRequest));
    let row = analysis.table.iter().find(|row| row.subject == "balance");
    let by_server = &row.unwrap().server_instructions_per_request;
    assert!((by_server["back"] / by_server["front"] - 2.0).abs() < 1e-3);
    let equal = self::trials(|_| Some((both, 40_000.0)));
    let equal = of_metric(&equal, Metric::ServerInstructionsPerRequest).unwrap();
    assert_eq!(equal.verdict, Verdict::Same, "{equal:?}");
}

#[test]
fn instructions_of_own_code_are_a_metric_of_their_own() {
    let user = InstructionScope::User;
    let of_user = trials(|trial| Some((user, of_subject(trial, 9_000.0, 8_000.0))));
    assert!(of_metric(&of_user, Metric::ServerInstructionsPerRequest).is_none());
    let found = of_metric(&of_user, Metric::ServerUserInstructionsPerRequest).unwrap();
    assert_eq!(found.verdict, Verdict::Faster, "{found:?}");
    // A run that was resumed by a user with fewer rights.
    let mixed = trials(|trial| {
        let scope = match trial.block {
            ..=3 => InstructionScope::UserAndKernel,
            _ => user,
        };
        Some((scope, of_subject(trial, 9_000.0, 8_000.0)))
    });
    for metric in [
        Metric::ServerInstructionsPerRequest,
        Metric::ServerUserInstructionsPerRequest,
    ] {
        assert_eq!(of_metric(&mixed, metric).unwrap().blocks, 3);
    }
    // Subjects of which different instructions were counted.
    let apart = trials(|trial| match trial.subject.as_str() {
        "direct" => Some((InstructionScope::UserAndKernel, 9_000.0)),
        _ => Some((user, 8_000.0)),
    });
    for metric in [
        Metric::ServerInstructionsPerRequest,
        Metric::ServerUserInstructionsPerRequest,
    ] {
        assert!(of_metric(&apart, metric).is_none());
    }
}

#[test]
fn a_journal_without_instructions_is_analysed_as_before() {
    let without = analyse(&header(6), &trials(|_| None));
    let metrics: Vec<Metric> = without.comparisons.iter().map(|one| one.metric).collect();
    assert_eq!(metrics, [Metric::RequestsPerS]);
    let row = &without.table[0];
    assert!(row.server_instructions_per_request.is_empty());
    assert!(row.server_user_instructions_per_request.is_empty());
}

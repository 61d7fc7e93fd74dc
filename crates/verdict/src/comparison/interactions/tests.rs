use super::*;
use crate::fixtures::{Normal, closed, condition, header, in_closed, open, reading};
use readings::{Journal, Trial};

/// Blocks of direct and balance, of which the latter keeps so much at each number of connections.
fn blocks(kept: &[(u32, f64)], noise: f64, random: &mut Normal) -> Vec<Trial> {
    let mut trials = Vec::new();
    for block in 1..=8 {
        for (connections, kept) in kept {
            for (subject, share) in [("direct", 1.0), ("balance", *kept)] {
                let rate = 20_000.0 * share * (noise * random.next()).exp();
                let mut row = in_closed(block, subject, closed(rate));
                row.condition = condition(*connections);
                trials.push(row);
            }
        }
    }
    trials
}

fn found(levels: &[u32], trials: Vec<Trial>, factors_of_open_loop: &[&str]) -> Vec<Interaction> {
    let mut header = header(8);
    header.conditions = levels.iter().map(|level| condition(*level)).collect();
    header.open_loop_factors = factors_of_open_loop
        .iter()
        .map(|f| (*f).to_owned())
        .collect();
    crate::analyse(&Journal::of_trials(header, trials)).interactions
}

#[test]
fn a_cost_that_grows_with_connections_is_found() {
    let mut random = Normal::with_seed(11);
    let trials = blocks(&[(16, 0.88), (128, 0.69), (256, 0.88)], 0.005, &mut random);
    let all = found(&[16, 128, 256], trials, &[]);
    assert_eq!(all.len(), 2, "each level against the first");
    let one = &all[0];
    assert_eq!(one.dependence, Dependence::Differs);
    assert_eq!(
        (&*one.factor, &*one.level.level, &*one.reference.level),
        ("connections", "128", "16")
    );
    assert!((one.level.ratio - 0.69).abs() < 0.01 && (one.reference.ratio - 0.88).abs() < 0.01);
    let (low, high) = one.interval().unwrap();
    assert!(low < 0.69 / 0.88 && 0.69 / 0.88 < high, "{one:?}");
    assert!(one.condition.is_empty());
    assert_eq!(all[1].dependence, Dependence::Same);
    assert_eq!(all[1].level.level, "256");
}

#[test]
fn a_cost_that_does_not_depend_is_rarely_called_different() {
    let mut random = Normal::with_seed(12);
    let mut wrong = 0;
    for _ in 0..60 {
        let trials = blocks(&[(16, 0.8), (64, 0.8), (128, 0.8)], 0.03, &mut random);
        let all = found(&[16, 64, 128], trials, &[]);
        wrong += u32::from(all.iter().any(|i| i.dependence == Dependence::Differs));
    }
    assert!(wrong <= 7, "{wrong} of 60");
}

#[test]
fn what_the_client_limited_is_not_judged() {
    let mut random = Normal::with_seed(13);
    let mut trials = blocks(&[(16, 0.88), (128, 0.69)], 0.005, &mut random);
    for trial in &mut trials {
        if let readings::Outcome::Done(reading) = &mut trial.outcome
            && let Some(load) = &mut reading.throughput
            && trial.subject == "direct"
        {
            load.client.saturated = true;
        }
    }
    let all = found(&[16, 128], trials, &[]);
    assert_eq!(all[0].dependence, Dependence::ClientLimited);
    assert_eq!(all[0].p_adjusted, None);
}

#[test]
fn throughput_has_no_interaction_with_what_acts_on_the_open_loop_only() {
    let mut random = Normal::with_seed(14);
    let mut trials = blocks(&[(16, 0.8), (128, 0.8)], 0.01, &mut random);
    for trial in &mut trials {
        reading(trial).latency = Some(open(2_000.0, 400.0 * (0.001 * random.next()).exp()));
    }
    let all = found(&[16, 128], trials, &["connections"]);
    assert!(all.iter().all(|i| i.metric != Metric::RequestsPerS));
    assert!(all.iter().any(|i| i.metric == Metric::LatencyUsP50));
}

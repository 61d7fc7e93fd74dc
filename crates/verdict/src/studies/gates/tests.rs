//! The rules one by one.

use readings::{
    FailureCause, Gate, GateBound, GateMetric, JournalRow, Outcome, RunHeader, ServerReading, Trial,
};

use super::{GateOutcome, GateReason, GateResult, judge_gates};
use crate::fixtures::{
    Normal, closed, done, header, in_closed, in_open, open, throughput, throughput_blocks, trial,
};
use crate::{Reason, Rules, settled};

fn gate(metric: GateMetric, bound: GateBound) -> Gate {
    Gate {
        name: metric.name().to_owned(),
        text: format!("{} gate", metric.name()),
        subject: None,
        metric,
        bound,
    }
}

fn judged(header: &RunHeader, gates: &[Gate], trials: &[Trial]) -> Vec<GateResult> {
    judge_gates(&Rules::of(header), header, gates, trials)
}

fn one(gate: Gate, trials: &[Trial], blocks: u32) -> GateResult {
    let mut all = judged(&header(blocks), &[gate], trials);
    assert_eq!(all.len(), 1);
    all.remove(0)
}

/// Blocks in which the balancer keeps `share` of the throughput, about `noise` more or less.
fn blocks(count: usize, share: f64, noise: f64) -> Vec<Trial> {
    let mut random = Normal::with_seed(11);
    let rates: Vec<(f64, f64)> = (0..count)
        .map(|_| (20_000.0, 20_000.0 * share * (noise * random.next()).exp()))
        .collect();
    throughput_blocks(&rates)
}

fn speed(bound: f64) -> Gate {
    gate(GateMetric::Throughput, GateBound::Relative(bound))
}

#[test]
fn a_gate_is_breached_passed_or_unsettled_by_where_its_interval_lies() {
    let breached = one(speed(-0.03), &blocks(10, 0.9, 0.01), 10);
    assert_eq!(breached.outcome, GateOutcome::Breached);
    assert!(breached.high.unwrap() < -0.03, "{breached:?}");
    assert!((breached.value.unwrap() + 0.1).abs() < 0.01);
    assert_eq!(breached.baseline.as_deref(), Some("direct"));
    let passed = one(speed(-0.03), &blocks(10, 1.0, 0.01), 10);
    assert_eq!(passed.outcome, GateOutcome::Passed);
    assert!(passed.low.unwrap() > -0.03 && passed.needed.is_none());
    assert!((passed.confidence - 0.9).abs() < 1e-12);
    let open = one(speed(-0.03), &blocks(10, 0.98, 0.05), 10);
    assert_eq!(
        (open.outcome, &open.reason),
        (GateOutcome::Unsettled, &None)
    );
    let needed = open.needed.unwrap();
    assert!(needed.blocks > 10 && needed.high.is_none_or(|high| high >= needed.blocks));
    // A gate may ask for an improvement.
    let better = one(speed(0.05), &blocks(10, 1.1, 0.01), 10);
    assert_eq!(better.outcome, GateOutcome::Passed);
    let not_enough = one(speed(0.05), &blocks(10, 1.0, 0.01), 10);
    assert_eq!(not_enough.outcome, GateOutcome::Breached);
}

#[test]
fn a_figure_of_one_subject_is_held_against_a_bound_of_its_own() {
    let rates = blocks(6, 0.5, 0.01);
    let of = |per_s: f64| gate(GateMetric::Throughput, GateBound::Absolute(per_s));
    let passed = one(of(9_000.0), &rates, 6);
    assert_eq!(passed.outcome, GateOutcome::Passed);
    assert!((passed.value.unwrap() / 10_000.0 - 1.0).abs() < 0.02);
    assert_eq!(passed.baseline, None);
    assert_eq!(one(of(11_000.0), &rates, 6).outcome, GateOutcome::Breached);
    // Of the baseline, if the gate says so.
    let baseline = Gate {
        subject: Some("direct".into()),
        ..of(19_000.0)
    };
    assert_eq!(one(baseline, &rates, 6).outcome, GateOutcome::Passed);
    // And of the only subject.
    let mut header = header(6);
    header.subjects.truncate(1);
    let alone: Vec<Trial> = rates
        .iter()
        .filter(|trial| trial.subject == "direct" && !trial.baseline_copy)
        .cloned()
        .collect();
    let results = judged(&header, &[of(19_000.0)], &alone);
    assert_eq!(results[0].outcome, GateOutcome::Passed);
    assert_eq!(results[0].subject, "direct");
}

#[test]
fn the_first_servers_cpu_time_is_bounded_without_that_of_those_behind() {
    let mut trials = blocks(8, 0.9, 0.01);
    for trial in &mut trials {
        let own_us = if trial.subject == "balance" {
            12.0
        } else {
            10.0
        };
        let Outcome::Done(reading) = &mut trial.outcome else {
            continue;
        };
        let requests = reading.throughput.as_ref().unwrap().weighted_requests();
        let servers = [("front", own_us), ("behind", 100.0)];
        reading.servers = servers
            .map(|(name, us)| ServerReading {
                server: name.to_owned(),
                cpu_s: us * requests / 1e6,
                cpu_step_s: 0.0,
            })
            .into();
    }
    let of = |metric| one(gate(metric, GateBound::Relative(0.1)), &trials, 8);
    let own = of(GateMetric::ProxyCpu);
    assert_eq!(own.outcome, GateOutcome::Breached, "{own:?}");
    assert!((own.value.unwrap() - 0.2).abs() < 1e-6, "{own:?}");
    // Of 110 us, 2 us are little.
    assert_eq!(of(GateMetric::Cpu).outcome, GateOutcome::Passed);
}

#[test]
fn latency_is_better_when_it_is_less() {
    let mut random = Normal::with_seed(12);
    let mut trials = Vec::new();
    for block in 1..=8 {
        for (subject, us) in [("direct", 400.0), ("balance", 480.0)] {
            let load = open(2_000.0, us * (0.01 * random.next()).exp());
            trials.push(in_open(block, subject, load));
        }
    }
    let of = |bound| one(gate(GateMetric::P50, bound), &trials, 8);
    let relative = of(GateBound::Relative(0.1));
    assert_eq!(relative.outcome, GateOutcome::Breached);
    assert_eq!(relative.rate_per_s, Some(2_000.0));
    assert_eq!(of(GateBound::Relative(0.3)).outcome, GateOutcome::Passed);
    assert_eq!(
        of(GateBound::Absolute(450.0)).outcome,
        GateOutcome::Breached
    );
    assert_eq!(of(GateBound::Absolute(550.0)).outcome, GateOutcome::Passed);
    // Throughput was not measured.
    let missing = one(speed(-0.03), &trials, 8);
    assert_eq!(missing.outcome, GateOutcome::NotJudged);
    assert_eq!(missing.reason, Some(GateReason::NotMeasured));
}

#[test]
fn a_gate_is_judged_alone_however_many_there_are() {
    let trials = blocks(10, 0.9, 0.05);
    let named = |name: &str, bound: f64| Gate {
        name: name.into(),
        ..speed(bound)
    };
    for bound in (1..60).map(|at| -0.002 * f64::from(at)) {
        let alone = one(speed(bound), &trials, 10);
        let gates = [named("a", bound), named("b", -0.5), named("c", -0.6)];
        let results = judged(&header(10), &gates, &trials);
        assert_eq!(results[0].outcome, alone.outcome, "{bound}");
        assert_eq!(results[1].outcome, GateOutcome::Passed);
    }
}

#[test]
fn what_cannot_be_compared_cannot_be_judged() {
    let mut trials = blocks(6, 1.0, 0.01);
    for trial in trials.iter_mut().filter(|one| one.subject == "balance") {
        trial.outcome = Outcome::failed("did not become ready", FailureCause::Subject);
    }
    let result = one(speed(-0.03), &trials, 6);
    assert_eq!(result.outcome, GateOutcome::NotJudged);
    let reason = Some(Reason::Failed("did not become ready".to_owned()));
    let unusable = GateReason::Unusable {
        blocks: 6,
        tried: 6,
        reason,
    };
    assert_eq!(result.reason, Some(unusable));
    // Too few blocks are not judged as good or bad.
    let few = one(speed(-0.03), &blocks(2, 0.5, 0.01), 2);
    assert_eq!(few.outcome, GateOutcome::Unsettled);
    assert_eq!(few.needed.unwrap().blocks, 3);
}

#[test]
fn starts_that_failed_more_often_than_the_baselines_pass_nothing() {
    let mut trials = blocks(8, 1.0, 0.005);
    let mut failed: Vec<Trial> = trials
        .iter()
        .filter(|one| one.subject == "balance")
        .cloned()
        .collect();
    for one in &mut failed {
        one.outcome = Outcome::failed("died", FailureCause::Subject);
    }
    for one in &mut trials {
        one.attempt = 2;
    }
    // The first attempt of each block failed, and the second one went well.
    failed.append(&mut trials);
    let result = one(speed(-0.03), &failed, 8);
    assert_eq!(result.outcome, GateOutcome::NotJudged);
    assert!(matches!(result.reason, Some(GateReason::FailedStarts(..))));
}

#[test]
fn a_throughput_that_the_client_limited_is_one_end_only() {
    let limited = |who: &[&str], share: f64| {
        let mut trials = blocks(6, share, 0.005);
        for trial in trials
            .iter_mut()
            .filter(|one| who.contains(&one.subject.as_str()))
        {
            throughput(trial).client.saturated = true;
        }
        one(speed(-0.03), &trials, 6)
    };
    // The subject can do more than was seen: enough to pass, not to breach.
    assert_eq!(limited(&["balance"], 1.0).outcome, GateOutcome::Passed);
    let slower = limited(&["balance"], 0.8);
    assert_eq!(slower.outcome, GateOutcome::Unsettled);
    assert_eq!(
        slower.reason,
        Some(GateReason::ClientLimits(Some("balance".into())))
    );
    assert_eq!(limited(&["direct"], 0.8).outcome, GateOutcome::Breached);
    assert_eq!(limited(&["direct"], 1.0).outcome, GateOutcome::Unsettled);
    let both = limited(&["direct", "balance"], 1.0);
    assert_eq!(both.outcome, GateOutcome::NotJudged);
}

#[test]
fn a_biased_noise_floor_withholds_what_it_could_have_made() {
    let mut trials = blocks(10, 0.95, 0.003);
    for trial in trials.iter_mut().filter(|one| one.baseline_copy) {
        let load = throughput(trial);
        load.requests = load.requests * 9 / 10;
    }
    let near = one(speed(-0.03), &trials, 10);
    assert_eq!(near.outcome, GateOutcome::Unsettled);
    assert!(matches!(near.reason, Some(GateReason::WithinFloor(_))));
    // 25% beyond the bound is more than the floor's 10%.
    let far = one(speed(0.25), &trials, 10);
    assert_eq!(far.outcome, GateOutcome::Breached);
}

#[test]
fn failures_are_counted_and_judged_even_where_they_spoil_the_trial() {
    let with = |failed: u64| {
        let mut trials = blocks(5, 1.0, 0.005);
        for trial in trials.iter_mut().filter(|one| one.subject == "balance") {
            let load = throughput(trial);
            load.errors.status = failed;
            load.errors_all.status = failed;
        }
        let bound = gate(GateMetric::Failed, GateBound::Absolute(0.001));
        one(bound, &trials, 5)
    };
    let none = with(0);
    assert_eq!(none.outcome, GateOutcome::Passed);
    assert_eq!(none.value, Some(0.0));
    assert!(none.high.unwrap() > 0.0, "an upper limit");
    let many = with(10_000);
    assert_eq!(many.outcome, GateOutcome::Breached);
    assert!((many.value.unwrap() - 1.0 / 21.0).abs() < 1e-3, "{many:?}");
    let at_bound = with(200);
    assert_eq!(at_bound.outcome, GateOutcome::Unsettled);
}

#[test]
fn a_bound_that_few_requests_cannot_show_stays_unsettled() {
    let mut trials = Vec::new();
    for block in 1..=3 {
        trials.push(in_closed(block, "balance", closed(10.0)));
    }
    let bound = gate(GateMetric::Failed, GateBound::Absolute(0.001));
    let result = one(bound, &trials, 3);
    // 300 requests without a failure: up to 1% may fail.
    assert_eq!(result.outcome, GateOutcome::Unsettled);
    assert!(result.needed.unwrap().blocks > 10, "{result:?}");
}

#[test]
fn clean_blocks_settle_a_bound_of_failures_by_the_rule_of_three() {
    let of_blocks = |blocks: u32| {
        let trial = |block| {
            let outcome = done(Some(closed(450.0)), None);
            trial(block, "balance", false, outcome)
        };
        let trials: Vec<Trial> = (1..=blocks).map(trial).collect();
        let bound = gate(GateMetric::Failed, GateBound::Absolute(0.000_1));
        one(bound, &trials, blocks)
    };
    let few = of_blocks(3);
    assert_eq!(
        (few.outcome, few.value),
        (GateOutcome::Unsettled, Some(0.0))
    );
    // 3.0 / 0.01% of the requests, of which a block has 4,500.
    assert_eq!(few.needed.as_ref().map(|needed| needed.blocks), Some(7));
    let why = crate::words::gate_why(&few).unwrap();
    assert!(why.starts_with("a run of 7 blocks"), "{why}");
    assert!(why.ends_with(" without a failure would settle it"), "{why}");
    assert_eq!(of_blocks(6).outcome, GateOutcome::Unsettled);
    assert_eq!(of_blocks(7).outcome, GateOutcome::Passed);
}

#[test]
fn a_run_with_gates_stops_when_they_are_settled() {
    let mut header = header(30);
    header.gates = vec![speed(-0.03)];
    let settled_after = |share: f64, noise: f64| {
        let trials = blocks(10, share, noise);
        settled(&crate::analyse_with(&Rules::of(&header), &header, &trials))
    };
    assert!(settled_after(1.0, 0.01));
    assert!(settled_after(0.8, 0.01));
    assert!(!settled_after(0.97, 0.05));
}

#[test]
fn a_gate_of_a_hostile_journal_is_not_judged() {
    for bound in [GateBound::Relative(-5.0), GateBound::Absolute(0.0)] {
        let result = one(
            gate(GateMetric::Throughput, bound),
            &blocks(4, 1.0, 0.01),
            4,
        );
        assert_eq!(result.outcome, GateOutcome::NotJudged);
    }
    // The journal carries the gates; an older one has none.
    let mut header = header(4);
    header.gates = vec![gate(GateMetric::P99, GateBound::Absolute(3_000.0))];
    let line = JournalRow::Run(header.clone()).to_line().unwrap();
    let again = readings::Journal::parse(&line).unwrap();
    assert_eq!(again.header, header);
}

/// Blocks whose open loops have so many answers each, of 440 to 445 us, one in fifty twice as long.
fn latencies(count: u32, answers: f64) -> Vec<Trial> {
    let mut trials = Vec::new();
    for block in 1..=count {
        let us = 440.0 * (1.0 + 0.005 * f64::from(block % 3));
        for subject in ["direct", "balance"] {
            let load = open(answers / 10.0, us);
            trials.push(in_open(block, subject, load));
        }
    }
    trials
}

#[test]
fn a_gate_on_a_quantile_that_no_block_resolves_takes_all_answers() {
    let p99 = |bound| gate(GateMetric::P99, bound);
    let of = |bound, answers| one(p99(bound), &latencies(5, answers), 5);
    let pooled = of(GateBound::Absolute(1_000.0), 3_000.0);
    assert_eq!(pooled.outcome, GateOutcome::Passed, "{pooled:?}");
    assert!(pooled.low.unwrap() < 884.0 && pooled.high.unwrap() > 884.0);
    let breached = of(GateBound::Absolute(800.0), 3_000.0);
    assert_eq!(breached.outcome, GateOutcome::Breached, "{breached:?}");
    let relative = of(GateBound::Relative(0.05), 3_000.0);
    assert_eq!(relative.outcome, GateOutcome::Passed, "{relative:?}");
}

#[test]
fn a_gate_on_a_quantile_that_all_answers_only_bound_passes_below_it_or_says_what_settles_it() {
    let of = |bound| one(gate(GateMetric::P99, bound), &latencies(5, 1_000.0), 5);
    let passed = of(GateBound::Absolute(1_000.0));
    assert_eq!(passed.outcome, GateOutcome::Passed, "{passed:?}");
    assert_eq!((passed.blocks, passed.low), (5, None));
    assert!(
        (passed.high.unwrap() / 889.0 - 1.0).abs() < 0.01,
        "{passed:?}"
    );
    for bound in [GateBound::Absolute(800.0), GateBound::Relative(0.05)] {
        let result = of(bound);
        assert_eq!(result.outcome, GateOutcome::Unsettled, "{result:?}");
        assert_eq!(result.needed.map(|needed| needed.blocks), Some(10));
        assert_eq!(
            crate::words::gate_why(&result).unwrap(),
            "too few requests are behind this percentile; a window of 21 s, or 10 blocks, would \
             resolve it"
        );
    }
}

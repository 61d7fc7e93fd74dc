//! Analyses of made-up journals.

use crate::fixtures::{
    analyse, closed, condition, done, header, open, reading, throughput, throughput_blocks, trial,
};
use crate::summary::*;
use crate::{Bound, Flaw, Metric, Note, Place, Reason, TrialFlaw, Verdict};
use readings::{Wrong, WrongKind};

/// Ten blocks in which the balancer keeps `share` of the throughput, a percent more or less.
fn ten_blocks(share: f64) -> Vec<Trial> {
    let rates: Vec<(f64, f64)> = (0..10)
        .map(|i| {
            // Both drift together by a factor of two; the ratio does not.
            let direct = 20_000.0 * (1.0 + f64::from(i) / 10.0);
            let wobble = 1.0 + 0.01 * (f64::from(i % 3) - 1.0);
            (direct, direct * share * wobble)
        })
        .collect();
    throughput_blocks(&rates)
}

fn at(subject: &str) -> Place {
    Place {
        subject: subject.into(),
        condition: condition(96),
    }
}

fn unusable(blocks: usize, subject: &str, reason: Reason) -> Note {
    Note::Unusable {
        blocks,
        tried: 10,
        subject: subject.into(),
        reason: Some(reason),
    }
}

fn failed(reason: &str) -> Outcome {
    Outcome::failed(reason, readings::FailureCause::Subject)
}

fn found_502() -> Wrong {
    Wrong {
        kind: WrongKind::Status,
        expected: "200".into(),
        found: "502".into(),
    }
}

fn bad_gateway() -> Outcome {
    let mut load = closed(0.0);
    load.errors_all.status = 31_204;
    load.wrong = vec![found_502()];
    done(Some(load), None)
}

#[test]
fn drift_that_both_share_cancels() {
    let analysis = analyse(&header(10), &ten_blocks(0.69));
    assert_eq!(analysis.comparisons.len(), 1);
    let c = &analysis.comparisons[0];
    assert_eq!(c.verdict, Verdict::Slower);
    assert_eq!((c.blocks, c.by_block.len()), (10, 10));
    assert!((c.ratio.unwrap() - 0.69).abs() < 0.002, "{c:?}");
    let (low, high) = c.interval().unwrap();
    assert!(low < 0.69 && 0.69 < high && high - low < 0.02);
    assert!((c.subject_value.unwrap() / c.baseline_value.unwrap() - c.ratio.unwrap()).abs() < 1e-9);
    assert!((c.ratio.unwrap() - 0.69).abs() < 0.005 && c.notes.is_empty());
    assert_eq!(analysis.trials_done, 30);
    assert!(analysis.warnings.is_empty(), "{analysis:?}");
}

#[test]
fn the_second_copy_of_the_baseline_stands_by_itself() {
    let mut trials = ten_blocks(1.0);
    let before = analyse(&header(10), &trials);
    let floor = &before.noise_floor[0];
    assert_eq!((floor.blocks, floor.metric), (10, Metric::RequestsPerS));
    assert_eq!(floor.baseline, "direct");
    // A second copy that is 20% faster shifts the floor and nothing else.
    for t in trials.iter_mut().filter(|t| t.baseline_copy) {
        let load = throughput(t);
        load.requests = load.requests * 6 / 5;
    }
    let after = analyse(&header(10), &trials);
    let ratio = |analysis: &Analysis| analysis.comparisons[0].ratio;
    assert_eq!(ratio(&after), ratio(&before));
    assert!((after.noise_floor[0].ratio - 1.2).abs() < 0.01);
    assert!(after.noise_floor[0].is_biased(0.03));
    let expected = Warning::BiasedBaseline {
        floor: after.noise_floor[0].clone(),
        matters: 0.03,
    };
    assert_eq!(after.warnings[0], expected);
}

#[test]
fn a_dead_back_end_is_invalid_and_never_fast() {
    let mut trials = ten_blocks(1.0);
    for t in trials.iter_mut().filter(|t| t.subject == "balance") {
        t.outcome = bad_gateway();
    }
    let analysis = analyse(&header(10), &trials);
    let c = &analysis.comparisons[0];
    assert_eq!(c.verdict, Verdict::Invalid);
    assert_eq!((c.ratio, c.low, c.p_value), (None, None, None));
    let wrong = Flaw::WrongAnswers {
        wrong: 31_204,
        answers: 31_204,
        first: Some(found_502()),
    };
    let reason = TrialFlaw::from(wrong).into();
    assert_eq!(c.notes, [unusable(10, "balance", reason)]);
    assert_eq!(analysis.invalid.len(), 10);
    assert_eq!(analysis.trials_done, 30);
    let row = &analysis.table[1];
    assert_eq!(
        (row.subject.as_str(), row.requests_per_s),
        ("balance", None)
    );
}

#[test]
fn half_of_the_blocks_may_fail_and_the_rest_still_counts() {
    let mut trials = ten_blocks(0.69);
    for t in &mut trials {
        if t.subject == "balance" && t.block <= 5 {
            t.outcome = failed("did not become ready within 10 s");
        }
    }
    let analysis = analyse(&header(10), &trials);
    let c = &analysis.comparisons[0];
    assert_eq!((c.verdict, c.blocks), (Verdict::Slower, 5));
    assert_eq!((analysis.trials_failed, analysis.trials_done), (5, 25));
    assert_eq!(analysis.failures[0].count, 5);
    assert_eq!(analysis.failures[0].subjects, ["balance"]);

    for t in &mut trials {
        if t.subject == "direct" && t.block == 6 && !t.baseline_copy {
            t.outcome = failed("port 80 is taken");
        }
    }
    let c = &analyse(&header(10), &trials).comparisons[0];
    assert_eq!(c.verdict, Verdict::Invalid);
    let reason = Reason::Failed("did not become ready within 10 s".to_owned());
    assert_eq!(c.notes, [unusable(6, "balance", reason)]);
}

#[test]
fn a_resumed_run_replaces_what_failed() {
    let mut trials = ten_blocks(0.69);
    let whole = analyse(&header(10), &trials);
    // The first attempt at the first block was killed.
    let killed: Vec<Trial> = trials[..3].to_vec();
    trials[..3].iter_mut().for_each(|one| one.attempt = 2);
    for mut one in killed {
        one.outcome = Outcome::failed("killed", readings::FailureCause::Other);
        trials.insert(0, one);
    }
    let resumed = analyse(&header(10), &trials);
    assert_eq!(resumed.comparisons, whole.comparisons);
    assert_eq!(resumed.trials_failed, 0);
}

#[test]
fn two_blocks_decide_nothing() {
    let trials = throughput_blocks(&[(1000.0, 500.0), (1000.0, 501.0)]);
    let c = &analyse(&header(2), &trials).comparisons[0];
    assert_eq!(c.verdict, Verdict::Inconclusive);
    assert_eq!((c.p_value, c.blocks), (None, 2));
    let too_few = Note::TooFewBlocks {
        usable: 2,
        reason: None,
    };
    assert_eq!(c.notes, [too_few]);
    let none = analyse(&header(2), &[]);
    assert_eq!(none.comparisons[0].verdict, Verdict::Inconclusive);
    assert_eq!(none.comparisons[0].notes, [Note::NothingMeasured]);
}

#[test]
fn noise_is_inconclusive_and_says_what_would_help() {
    let rates = [
        (1000.0, 1050.0),
        (1000.0, 960.0),
        (1000.0, 1020.0),
        (1000.0, 985.0),
    ];
    let c = &analyse(&header(4), &throughput_blocks(&rates)).comparisons[0];
    assert_eq!(c.verdict, Verdict::Inconclusive);
    assert!(matches!(c.notes[..], [Note::MoreBlocks { .. }]), "{c:?}");
}

/// Blocks with both loads; p99 is resolved from 10,000 requests on.
fn with_latency(rate: f64, direct_us: f64, balance_us: f64) -> Vec<Trial> {
    let mut trials = Vec::new();
    for block in 1..=6 {
        let wobble = 1.0 + 0.005 * f64::from(block % 3);
        for (subject, us) in [("direct", direct_us), ("balance", balance_us * wobble)] {
            let outcome = done(Some(closed(20_000.0)), Some(open(rate, us)));
            trials.push(trial(block, subject, false, outcome));
        }
    }
    trials
}

#[test]
fn latency_names_the_rate_and_pools_or_bounds_what_blocks_do_not_resolve() {
    let analysis = analyse(&header(6), &with_latency(2_000.0, 400.0, 440.0));
    let metrics: Vec<Metric> = analysis.comparisons.iter().map(|c| c.metric).collect();
    assert_eq!(metrics, Metric::ALL[..3]);
    let median = &analysis.comparisons[1];
    assert_eq!(median.verdict, Verdict::Slower);
    assert_eq!(median.rate_per_s, Some(2_000.0));

    assert!(analysis.comparisons.iter().all(|c| !c.pooled));

    // 5,000 answers in each block, and 30,000 in all.
    let analysis = analyse(&header(6), &with_latency(500.0, 400.0, 440.0));
    let p99 = &analysis.comparisons[2];
    assert_eq!(
        (p99.metric, p99.verdict),
        (Metric::LatencyUsP99, Verdict::Slower)
    );
    assert!(p99.pooled && p99.blocks == 6 && p99.rate_per_s == Some(500.0));
    let figure = |subject: &str| {
        let row = analysis.table.iter().find(|row| row.subject == subject);
        row.unwrap().latency_us_p99.unwrap()
    };
    let ratio = figure("balance") / figure("direct");
    assert!((p99.ratio.unwrap() / ratio - 1.0).abs() < 1e-9, "{ratio}");
    assert!(analysis.unresolved.is_empty());

    // 1,000 in each.
    let analysis = analyse(&header(6), &with_latency(100.0, 400.0, 440.0));
    assert_eq!(analysis.comparisons.len(), 2);
    let row = analysis.table.iter().find(|row| row.subject == "balance");
    let bound = row.unwrap().latency_us_p99_bound.unwrap();
    assert!(
        (bound.at_most_us.unwrap() / 888.0 - 1.0).abs() < 0.01,
        "{bound:?}"
    );
    let said: Vec<String> = analysis
        .warnings
        .iter()
        .map(crate::words::warning)
        .collect();
    let expected = "the 99th percentile of latency of balance at connections=96 is not compared: too \
                    few answers lie beyond it (at most 885us); a window of 18 s, or 10 blocks, \
                    would resolve it";
    assert!(said.iter().any(|one| one == expected), "{said:#?}");
    let rankings = rankings(
        &analysis.table,
        &analysis.comparisons,
        &analysis.unresolved,
        &[],
        &[],
    );
    let ranking = rankings.iter().find(|r| r.metric == Metric::LatencyUsP99);
    let rows: Vec<(&str, Option<Bound>)> = ranking
        .unwrap()
        .rows
        .iter()
        .map(|row| (row.subject.as_str(), row.bound))
        .collect();
    let at_most = Some(Bound::AtMost);
    assert_eq!(rows, [("direct", at_most), ("balance", at_most)]);
    assert_eq!(ranking.unwrap().rows[0].places, (1, 2));
}

#[test]
fn a_busy_client_makes_throughput_at_least() {
    let mut trials = ten_blocks(0.69);
    for t in &mut trials {
        if let (Outcome::Done(reading), "direct") = (&mut t.outcome, t.subject.as_str()) {
            reading.throughput.as_mut().unwrap().client.saturated = true;
        }
    }
    let analysis = analyse(&header(10), &trials);
    let c = &analysis.comparisons[0];
    assert_eq!(c.verdict, Verdict::Slower);
    assert_eq!(c.notes, [Note::ClientLimits(Some("direct".into()))]);
    assert_eq!((c.bound, c.low), (Some(crate::Bound::AtMost), None));
    assert!(c.high.unwrap() < 0.70);
    assert!(analysis.table[0].at_least && !analysis.table[1].at_least);
    assert_eq!(
        analysis.warnings,
        [Warning::AtLeast {
            at: at("direct"),
            limited: 10,
            trials: 10,
        }]
    );
}

#[test]
fn an_offered_rate_that_was_not_kept_is_told() {
    let mut trials = with_latency(2_000.0, 400.0, 440.0);
    reading(&mut trials[1]).latency.as_mut().unwrap().requests = 12_000;
    let analysis = analyse(&header(6), &trials);
    let expected = Warning::RateNotKept {
        at: at("balance"),
        answered_per_s: 1_200.0,
        offered_per_s: 2_000.0,
    };
    assert_eq!(analysis.warnings[0], expected);
}

#[test]
fn warnings_of_trials_are_told_once() {
    let mut trials = ten_blocks(0.69);
    for t in trials.iter_mut().take(2) {
        reading(t).warnings = vec!["the machine swapped".into()];
    }
    let warnings = analyse(&header(10), &trials).warnings;
    let text = "the machine swapped".to_owned();
    assert_eq!(warnings, [Warning::Recorded { text, trials: 2 }]);
}

#[test]
fn every_condition_is_compared_on_its_own_and_corrected_together() {
    let mut header = header(10);
    header.conditions.push(condition(400));
    let mut trials = ten_blocks(0.69);
    let second: Vec<Trial> = ten_blocks(0.9)
        .into_iter()
        .map(|mut t| {
            t.condition = condition(400);
            t
        })
        .collect();
    trials.extend(second);
    let analysis = analyse(&header, &trials);
    assert_eq!(analysis.comparisons.len(), 2);
    for c in &analysis.comparisons {
        assert!(c.p_adjusted.unwrap() >= c.p_value.unwrap());
    }
    assert!((analysis.comparisons[1].ratio.unwrap() - 0.9).abs() < 0.002);
    assert_eq!(analysis.noise_floor.len(), 2);
    assert_eq!(analysis.table.len(), 4);
}

/// Gives every closed loop 100 slices; `share(slice)` is what the balancer's slice has of a
/// tenth of a second's requests.
fn with_slices(trials: &mut [Trial], share: impl Fn(usize) -> f64) {
    for t in trials {
        let is_subject = t.subject == "balance";
        let load = throughput(t);
        let per_slice = load.requests as f64 / 100.0;
        load.slices = (0..100)
            .map(|i| readings::Slice {
                duration_s: 0.1,
                // The machine itself slows down half way, for all alike.
                requests: (per_slice
                    * if i < 60 { 1.0 } else { 0.5 }
                    * if is_subject { share(i) } else { 1.0 }) as u64,
                ..readings::Slice::default()
            })
            .collect();
    }
}

#[test]
fn a_subject_that_never_settles_is_told_and_a_machine_that_changes_is_not() {
    let mut trials = ten_blocks(0.69);
    with_slices(&mut trials, |_| 1.0);
    assert!(analyse(&header(10), &trials).warnings.is_empty());
    with_slices(&mut trials, |i| if i < 70 { 1.0 } else { 0.8 });
    let analysis = analyse(&header(10), &trials);
    assert_eq!(analysis.comparisons[0].unsettled_blocks, 10);
    assert_eq!(
        analysis.warnings,
        [Warning::Unsettled {
            at: at("balance"),
            baseline: "direct".into(),
            unsettled: 10,
            blocks: 10,
        }]
    );
}

#[test]
fn blocks_that_follow_each_other_are_told() {
    let rates: Vec<(f64, f64)> = (0..10)
        .map(|i| (1000.0, 900.0 + 10.0 * f64::from(i)))
        .collect();
    let warnings = analyse(&header(10), &throughput_blocks(&rates)).warnings;
    let [Warning::DependentBlocks { lag1, blocks, .. }] = warnings[..] else {
        panic!("{warnings:?}");
    };
    assert!((lag1 - 0.7).abs() < 0.005 && blocks == 10, "{lag1}");
}

/// Puts 64 answers of `response_us` and `connects_us` to open a connection into every closed loop.
fn with_times(trials: &mut [Trial], response_us: u64, connects_us: &[u64]) {
    for t in trials {
        let load = throughput(t);
        for _ in 0..64 {
            load.response.record_ns(response_us * 1000);
        }
        for us in connects_us {
            load.connect.record_ns(us * 1000);
        }
    }
}

#[test]
fn connections_that_stand_still_are_told() {
    // 32 connections at 20,000 requests/s: an answer has 1.6 ms if none of them rests.
    let rates = [(20_000.0, 20_000.0); 10];
    let mut trials = throughput_blocks(&rates);
    with_times(&mut trials, 1600, &[300]);
    assert!(analyse(&header(10), &trials).warnings.is_empty());
    let mut trials = throughput_blocks(&rates);
    with_times(&mut trials, 800, &[300]);
    let warnings = analyse(&header(10), &trials).warnings;
    let Warning::IdleConnections {
        busy, connections, ..
    } = warnings[0]
    else {
        panic!("{warnings:?}");
    };
    assert!((busy - 16.0).abs() < 0.05 && connections == 32, "{busy}");
    assert_eq!(warnings.len(), 2);
}

#[test]
fn connections_that_wait_for_a_second_syn_are_told() {
    let mut trials = throughput_blocks(&[(20_000.0, 20_000.0); 10]);
    with_times(&mut trials, 1600, &[300, 310, 320, 1_003_000]);
    let warnings = analyse(&header(10), &trials).warnings;
    let Warning::LostSyns {
        late,
        connections,
        median_us,
        ..
    } = warnings[0]
    else {
        panic!("{warnings:?}");
    };
    assert_eq!((late, connections), (10, 40));
    assert!((median_us / 310.0 - 1.0).abs() < 0.01, "{median_us}");
}

mod driver;
mod instructions;
mod loads;
mod withheld;

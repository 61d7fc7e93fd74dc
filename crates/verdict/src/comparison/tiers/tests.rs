use super::*;
use crate::fixtures::{Normal, closed, done, header, in_closed, in_open, reading, trial};
use readings::{Journal, RunHeader, Trial};

mod fourteen;

const NAMES: [&str; 5] = ["direct", "nginx", "haproxy", "balance", "apache"];

/// Blocks in which each subject has its true rate, and what `noise` makes of it.
fn blocks(rates: &[f64], noise: f64, count: u32, random: &mut Normal) -> (RunHeader, Vec<Trial>) {
    let mut header = header(count);
    header.subjects = NAMES[..rates.len()]
        .iter()
        .map(|n| (*n).to_owned())
        .collect();
    let mut trials = Vec::new();
    for block in 1..=count {
        for (name, rate) in NAMES.iter().zip(rates) {
            let rate = rate * (noise * random.next()).exp();
            trials.push(in_closed(block, name, closed(rate)));
        }
    }
    (header, trials)
}

fn found(header: RunHeader, trials: Vec<Trial>) -> Vec<Tiers> {
    crate::analyse(&Journal::of_trials(header, trials)).tiers
}

#[test]
fn subjects_that_are_not_told_apart_share_a_tier() {
    let mut random = Normal::with_seed(7);
    let rates = [20_000.0, 16_000.0, 12_000.0, 12_000.0, 6_000.0];
    let (header, trials) = blocks(&rates, 0.01, 10, &mut random);
    let all = found(header, trials);
    assert_eq!(all.len(), 1);
    let tiers = &all[0];
    assert_eq!(tiers.tiers.len(), 4, "{tiers:?}");
    assert_eq!(tiers.tiers[0], ["direct"]);
    assert_eq!(tiers.tiers[1], ["nginx"]);
    let mut third = tiers.tiers[2].clone();
    third.sort();
    assert_eq!(third, ["balance", "haproxy"]);
    assert_eq!(tiers.tiers[3], ["apache"]);
    assert_eq!(tiers.pairs.len(), 10);
    let first = &tiers.pairs[0];
    assert_eq!((&*first.first, &*first.second), ("direct", "nginx"));
    let (low, ratio, high) = (
        first.low.unwrap(),
        first.ratio.unwrap(),
        first.high.unwrap(),
    );
    assert!(
        low < ratio && ratio < high && low > 1.2 && high < 1.3,
        "{first:?}"
    );
    assert!(first.told_apart && first.p_adjusted.unwrap() > first.p_value.unwrap());
    assert_eq!(tiers.subjects[4].tiers, [4]);
}

#[test]
fn tiers_overlap_where_neighbours_are_not_told_apart() {
    // Each is 2% from the next, which does not matter; the ends are 4% apart.
    let mut random = Normal::with_seed(3);
    let (header, trials) = blocks(&[10_000.0, 9_800.0, 9_604.0], 0.001, 10, &mut random);
    let tiers = &found(header, trials)[0];
    let expected = [["direct", "nginx"], ["nginx", "haproxy"]];
    assert_eq!(tiers.tiers, expected);
    assert_eq!(tiers.subjects[1].tiers, [1, 2]);
}

#[test]
fn equal_subjects_are_rarely_split() {
    let mut random = Normal::with_seed(20_261_122);
    let (mut split, runs) = (0, 60);
    for _ in 0..runs {
        let (header, trials) = blocks(&[10_000.0; 5], 0.03, 5, &mut random);
        split += u32::from(found(header, trials)[0].tiers.len() > 1);
    }
    // 5% of 60 and more than two standard errors: ten pairs together err as often as one.
    assert!(split <= 7, "{split} of {runs}");
}

#[test]
fn two_subjects_have_no_tiers_and_unmeasured_ones_are_named() {
    let mut random = Normal::with_seed(1);
    let (header, trials) = blocks(&[10_000.0, 9_000.0], 0.01, 5, &mut random);
    assert!(found(header, trials).is_empty());
    let (header, mut trials) = blocks(&[10_000.0, 9_000.0, 8_000.0, 7_000.0], 0.01, 5, &mut random);
    for trial in trials.iter_mut().filter(|t| t.subject == "balance") {
        trial.outcome = readings::Outcome::failed("no port", readings::FailureCause::Subject);
    }
    let tiers = &found(header, trials)[0];
    assert_eq!(tiers.left_out, ["balance"]);
    assert_eq!(tiers.subjects.len(), 3);
}

#[test]
fn a_figure_that_the_client_limited_is_not_the_lower_one() {
    let mut random = Normal::with_seed(5);
    let (header, mut trials) = blocks(&[10_000.0, 9_000.0, 5_000.0], 0.01, 8, &mut random);
    let mut limit = |names: &[&str]| {
        for trial in trials.iter_mut().filter(|t| names.contains(&&*t.subject)) {
            let reading = reading(trial);
            if let Some(load) = &mut reading.throughput {
                load.client.saturated = true;
            }
        }
        found(header.clone(), trials.clone())[0].tiers.clone()
    };
    // Direct does at least so much: it is still the faster one.
    assert_eq!(limit(&["direct"]).len(), 3);
    // What nginx could do is not known either; haproxy is slower than both.
    assert_eq!(
        limit(&["nginx"]),
        [vec!["direct", "nginx"], vec!["haproxy"]]
    );
    let tiers = &found(header.clone(), trials.clone())[0];
    assert_eq!(tiers.pairs[0].withheld, Some(PairWithheld::ClientLimit));
}

#[test]
fn sets_are_the_largest_without_a_pair_that_is_told_apart() {
    let sets = |n, apart: &[(usize, usize)]| sets(n, apart).unwrap();
    assert_eq!(sets(3, &[]), [0b111]);
    assert_eq!(sets(3, &[(0, 2)]), [0b011, 0b110]);
    assert_eq!(sets(3, &[(0, 1), (0, 2)]), [0b001, 0b110]);
    assert_eq!(sets(3, &[(0, 1), (0, 2), (1, 2)]), [0b001, 0b010, 0b100]);
    // The middle one is the noisy one.
    assert_eq!(sets(4, &[(0, 2), (0, 3), (1, 3)]), [0b0011, 0b0110, 0b1100]);
    assert_eq!(sets(64, &[(0, 63)]).len(), 2);
    // Thirty-two pairs that are told apart from nobody else would make 2^32 sets.
    let matching: Vec<(usize, usize)> = (0..32).map(|i| (i, i + 32)).collect();
    assert_eq!(super::sets(64, &matching), None);
}

/// What withholds the pair of the two subjects that are not the baseline.
fn of_others(trials: Vec<Trial>, blocks: u32, metric: Metric) -> (bool, Option<PairWithheld>) {
    let mut header = header(blocks);
    header.subjects = NAMES[..3].iter().map(|name| (*name).to_owned()).collect();
    let all = found(header, trials);
    let tiers = all.iter().find(|one| one.metric == metric).unwrap();
    let is_it = |pair: &&SubjectPair| pair.first != "direct" && pair.second != "direct";
    let pair = tiers.pairs.iter().find(is_it).unwrap();
    (pair.told_apart, pair.withheld)
}

#[test]
fn a_latency_that_is_the_clients_lag_tells_no_two_subjects_apart() {
    // Service times of 25 us each, and lags of 100, 90 and 60 us.
    let latencies = |lags: [f64; 3], service_us: [f64; 3]| {
        let mut trials = Vec::new();
        for block in 1..=8 {
            let wobble = 1.0 + 0.001 * f64::from(block % 3);
            for ((name, lag_us), service_us) in NAMES.into_iter().zip(lags).zip(service_us) {
                let mut load = crate::fixtures::open(1000.0, (lag_us + service_us) * wobble);
                load.service
                    .record_many_ns((service_us * wobble * 1e3) as u64, 10_000);
                load.schedule_lag
                    .record_many_ns((lag_us * 1e3) as u64, 10_000);
                trials.push(in_open(block, name, load));
            }
        }
        of_others(trials, 8, Metric::LatencyUsP50)
    };
    let same_service = latencies([99.0, 90.0, 60.0], [25.0; 3]);
    assert_eq!(same_service, (false, Some(PairWithheld::ClientLag)));
    let other_service = latencies([99.0, 90.0, 60.0], [25.0, 25.0, 15.0]);
    assert_eq!(other_service, (true, None));
}

#[test]
fn a_subject_that_often_fails_to_start_is_not_told_apart_as_the_better_one() {
    let mut trials = Vec::new();
    for block in 1..=8u32 {
        let wobble = 1.0 + 0.001 * f64::from(block % 3);
        for (name, rate) in NAMES[..3].iter().zip([20_000.0, 10_000.0, 12_000.0]) {
            if *name == "haproxy" {
                let mut failed = trial(block, name, false, done(None, None));
                failed.outcome =
                    readings::Outcome::failed("it ended", readings::FailureCause::Subject);
                trials.push(failed);
            }
            let mut one = in_closed(block, name, closed(rate * wobble));
            one.attempt = 1 + u32::from(*name == "haproxy");
            trials.push(one);
        }
    }
    for one in trials.iter_mut().filter(|one| one.subject != "haproxy") {
        one.attempt = 2;
    }
    let found = of_others(trials, 8, Metric::RequestsPerS);
    assert_eq!(found, (false, Some(PairWithheld::FailedStarts)));
}

#[test]
fn what_slices_lose_tells_no_two_subjects_apart() {
    let mut trials = Vec::new();
    for block in 1..=10u32 {
        // nginx loses 5 ms of each slice, haproxy none.
        for (name, lost_s) in NAMES[..3].iter().zip([0.004, 0.005, 0.0]) {
            let slices = (0..20u32).map(|at| {
                let duration_s = if at % 2 == 0 { 0.1 } else { 0.2 };
                let wobble = 1.0 + 0.0005 * f64::from((at + block) % 5);
                readings::Slice {
                    duration_s,
                    requests: (100_000.0 * (duration_s - lost_s) * wobble) as u64,
                    ..readings::Slice::default()
                }
            });
            let mut load = closed(100_000.0);
            load.slices = slices.collect();
            load.duration_s = load.slices.iter().map(|slice| slice.duration_s).sum();
            load.requests = load.slices.iter().map(|slice| slice.requests).sum();
            trials.push(in_closed(block, name, load));
        }
    }
    let found = of_others(trials, 10, Metric::RequestsPerS);
    assert_eq!(found, (false, Some(PairWithheld::SliceBias)));
}

#[test]
fn a_difference_within_the_far_end_of_a_biased_floor_tells_no_two_subjects_apart() {
    // The baseline's copy does 9% less, give or take; haproxy 11% more than nginx.
    let of = |haproxy: f64| {
        let mut random = Normal::with_seed(11);
        let mut trials = Vec::new();
        for block in 1..=8 {
            let rates = [20_000.0, 10_000.0, haproxy];
            for (name, rate) in NAMES.iter().zip(rates) {
                let rate = rate * (0.005 * random.next()).exp();
                trials.push(in_closed(block, name, closed(rate)));
            }
            let copy = 18_200.0 * (0.02 * random.next()).exp();
            trials.push(trial(block, "direct", true, done(Some(closed(copy)), None)));
        }
        of_others(trials, 8, Metric::RequestsPerS)
    };
    assert_eq!(of(11_100.0), (false, Some(PairWithheld::NoiseFloor)));
    assert_eq!(of(15_000.0), (true, None));
}

use crate::fixtures::{Normal, analyse, closed, done, header, measured, open, reading, trial};
use crate::{Analysis, Metric, Verdict, settled, words};
use readings::{Condition, Histogram, Journal, Outcome, RunHeader, Slice, Trial};
use testing::Text as _;

const FACTOR: &str = "nginx.upstream_keepalive";

/// A level of the factor, under a number of connections.
fn at(level: &str, connections: u32) -> Condition {
    let mut condition = crate::fixtures::condition(connections);
    condition.insert(FACTOR.to_owned(), level.to_owned());
    condition
}

/// A run of one subject under these levels, and under so many numbers of connections.
fn run(blocks: u32, levels: &[&str], connections: &[u32]) -> RunHeader {
    let of = |level: &&str| {
        connections
            .iter()
            .map(|c| at(level, *c))
            .collect::<Vec<_>>()
    };
    RunHeader {
        baseline: "nginx".into(),
        subjects: vec!["nginx".into()],
        conditions: levels.iter().flat_map(of).collect(),
        ..header(blocks)
    }
}

fn row(block: u32, condition: &Condition, subject: &str, copy: bool, outcome: Outcome) -> Trial {
    let mut row = trial(block, subject, copy, outcome);
    row.condition = condition.clone();
    row
}

/// Throughputs of so many blocks. Every condition of a block is measured at a time of its own, when
/// the machine is faster or slower by `noise`; the two copies of a subject differ by a tenth of that.
fn throughputs(
    header: &RunHeader,
    blocks: u32,
    noise: f64,
    random: &mut Normal,
    speed: impl Fn(&Condition) -> f64,
) -> Vec<Trial> {
    // Histograms with all their buckets would make up most of the time.
    let mut load = closed(3_000.0);
    let all = [
        &mut load.response,
        &mut load.service,
        &mut load.connect,
        &mut load.first_byte,
        &mut load.transfer,
        &mut load.schedule_lag,
        &mut load.receive_lag,
    ];
    all.into_iter().for_each(|one| *one = Histogram::empty());
    let mut trials = Vec::new();
    for block in 1..=blocks {
        for condition in &header.conditions {
            let machine = noise * random.next();
            let subjects = header.subjects.iter().map(|subject| (subject, false));
            for (subject, copy) in subjects.chain([(&header.baseline, true)]) {
                let log = machine + noise / 10.0 * random.next();
                load.requests = (30_000.0 * speed(condition) * log.exp()) as u64;
                load.requests_all = load.requests;
                load.bytes_read = load.requests * 200;
                let mut done = done(Some(load.clone()), None);
                measured(&mut done).separate_copy = copy;
                trials.push(row(block, condition, subject, copy, done));
            }
        }
    }
    trials
}

fn whole(header: &RunHeader, trials: Vec<Trial>) -> Analysis {
    crate::analyse(&Journal::of_trials(header.clone(), trials))
}

fn twice_at_32(condition: &Condition) -> f64 {
    if condition[FACTOR] == "32" { 2.4 } else { 1.0 }
}

#[test]
fn a_setting_of_one_subject_is_compared_and_ranked() {
    let header = run(5, &["0", "32"], &[96]);
    let mut random = Normal::with_seed(21);
    let analysis = whole(
        &header,
        throughputs(&header, 5, 0.02, &mut random, twice_at_32),
    );
    assert!(analysis.comparisons.is_empty());
    let [one] = &analysis.levels[..] else {
        panic!("{analysis:?}");
    };
    assert_eq!(
        (&*one.factor, &*one.subject, &*one.level, &*one.reference),
        (FACTOR, "nginx", "32", "0")
    );
    let c = &one.comparison;
    assert_eq!((c.verdict, c.blocks), (Verdict::Faster, 5), "{c:?}");
    assert_eq!(c.condition, crate::fixtures::condition(96));
    assert!((c.ratio.unwrap() / 2.4 - 1.0).abs() < 0.05, "{c:?}");
    let said = words::comparison(c);
    let begins = "nginx.upstream_keepalive=32 brings 2.";
    said.begins(begins);
    said.has(" at connections=96");
    let [ranking] = &analysis.rankings[..] else {
        panic!("{analysis:?}");
    };
    assert_eq!(ranking.factor.as_deref(), Some(FACTOR));
    let rows = ranking.rows.iter();
    let rows: Vec<_> = rows
        .map(|row| (&*row.subject, row.places, row.is_baseline))
        .collect();
    let best = ("nginx.upstream_keepalive=32", (1, 1), false);
    assert_eq!(rows, [best, ("nginx.upstream_keepalive=0", (2, 2), true)]);
    let closing = words::closing(&analysis).unwrap();
    let expected = "nginx.upstream_keepalive=32 brings 2.4 times the throughput [";
    assert!(closing.starts_with(expected), "{closing}");
}

#[test]
fn the_reference_level_may_be_declared() {
    let mut header = run(5, &["0", "32", "64"], &[16, 96]);
    header.reference = [(FACTOR.to_owned(), "32".to_owned())].into();
    let mut random = Normal::with_seed(22);
    let analysis = whole(
        &header,
        throughputs(&header, 5, 0.02, &mut random, twice_at_32),
    );
    let of_setting = analysis.levels.iter().filter(|one| one.factor == FACTOR);
    let of_setting: Vec<_> = of_setting
        .map(|one| (&*one.level, &*one.reference, one.comparison.verdict))
        .collect();
    let slower = |level| (level, "32", Verdict::Slower);
    assert_eq!(
        of_setting,
        [slower("0"), slower("64"), slower("0"), slower("64")]
    );
    // The other factor has its first level.
    let of_load = analysis
        .levels
        .iter()
        .filter(|one| one.factor == "connections");
    let of_load: Vec<_> = of_load.map(|one| (&*one.level, &*one.reference)).collect();
    assert_eq!(of_load, [("96", "16"); 3]);
}

#[test]
fn with_several_subjects_only_declared_factors_are_compared() {
    let mut header = run(5, &["0", "32"], &[16, 96]);
    header.subjects.push("direct".into());
    let mut random = Normal::with_seed(23);
    let trials = throughputs(&header, 5, 0.02, &mut random, twice_at_32);
    assert!(analyse(&header, &trials).levels.is_empty());
    header.reference = [(FACTOR.to_owned(), "0".to_owned())].into();
    let analysis = analyse(&header, &trials);
    let names: Vec<_> = analysis
        .levels
        .iter()
        .map(|one| &*one.comparison.subject)
        .collect();
    let [nginx, direct] = ["nginx", "direct"].map(|s| format!("{s}, {FACTOR}=32"));
    assert_eq!(names, [&*nginx, &*nginx, &*direct, &*direct]);
    assert_eq!(analysis.comparisons.len(), 4, "those of subjects stay");
}

/// The shares of questions about throughput, three levels each, in which any difference was called,
/// and in which that of `32` was.
fn shares(blocks: u32, runs: u32, noise: f64, speed: fn(&Condition) -> f64) -> (f64, f64) {
    let header = run(blocks, &["0", "16", "32"], &[16, 96]);
    let mut random = Normal::with_seed(20_261_127 + u64::from(blocks));
    let (mut any, mut found) = (0, 0);
    for _ in 0..runs {
        let analysis = analyse(
            &header,
            &throughputs(&header, blocks, noise, &mut random, speed),
        );
        let of_setting = analysis.levels.iter().filter(|one| one.factor == FACTOR);
        let differ = of_setting
            .filter(|one| matches!(one.comparison.verdict, Verdict::Faster | Verdict::Slower));
        let differ: Vec<_> = differ.collect();
        for connections in [16, 96].map(crate::fixtures::condition) {
            let mut its = differ
                .iter()
                .filter(|one| one.comparison.condition == connections);
            any += u32::from(its.clone().next().is_some());
            found += u32::from(its.any(|one| one.level == "32"));
        }
    }
    let share = |count: u32| f64::from(count) / f64::from(2 * runs);
    (share(any), share(found))
}

#[test]
fn levels_that_do_not_differ_are_rarely_called_different() {
    // With 300 runs each it was 0.7%, 0% and 0.3%.
    for (blocks, runs) in [(3, 100), (5, 60), (10, 30)] {
        let (any, _) = shares(blocks, runs, 0.12, |_| 1.0);
        assert!(any <= 0.05, "{any} of the questions with {blocks} blocks");
    }
}

#[test]
fn a_level_that_doubles_the_throughput_is_found_in_five_noisy_blocks() {
    let twice = |condition: &Condition| if condition[FACTOR] == "32" { 2.0 } else { 1.0 };
    // 97.5% of 100 runs.
    let (_, found) = shares(5, 40, 0.12, twice);
    assert!(found >= 0.9, "{found}");
}

#[test]
fn the_rate_of_the_open_loop_is_compared_by_latency_only() {
    let at_rate = |rate: &str| Condition::from([("rate".to_owned(), rate.to_owned())]);
    let mut header = run(5, &[], &[]);
    header.conditions = ["1000/s", "2000/s"].map(at_rate).to_vec();
    header.open_loop_factors = vec!["rate".to_owned()];
    let mut trials = Vec::new();
    for block in 1..=5 {
        for (rate, us) in [("1000/s", 400.0), ("2000/s", 800.0)] {
            let outcome = done(Some(closed(9_000.0)), Some(open(1_000.0, us)));
            trials.push(row(block, &at_rate(rate), "nginx", false, outcome));
        }
    }
    let analysis = analyse(&header, &trials);
    let has = |metric| {
        analysis
            .levels
            .iter()
            .any(|one| one.comparison.metric == metric)
    };
    assert!(has(Metric::LatencyUsP50));
    assert!(!has(Metric::RequestsPerS));
}

#[test]
fn latencies_at_rates_of_their_own_are_not_compared() {
    let header = run(3, &["0", "32"], &[96]);
    let compared = |rates: [f64; 2]| {
        let mut trials = Vec::new();
        for block in 1..=3 {
            for (condition, rate) in header.conditions.iter().zip(rates) {
                let outcome = done(Some(closed(9_000.0)), Some(open(rate, 400.0)));
                trials.push(row(block, condition, "nginx", false, outcome));
            }
        }
        let levels = analyse(&header, &trials).levels;
        let metrics = levels.iter().map(|one| one.comparison.metric);
        metrics.collect::<Vec<_>>()
    };
    assert_eq!(compared([1_000.0, 2_000.0]), [Metric::RequestsPerS]);
    assert!(compared([1_000.0, 1_000.0]).contains(&Metric::LatencyUsP50));
}

#[test]
fn a_level_that_was_repeated_alone_still_has_its_block() {
    let header = run(3, &["0", "32"], &[96]);
    let mut random = Normal::with_seed(24);
    let mut trials = throughputs(&header, 3, 0.02, &mut random, twice_at_32);
    let again = trials
        .iter_mut()
        .find(|row| row.block == 2 && row.condition[FACTOR] == "32");
    let again = again.unwrap();
    let mut failed = again.clone();
    again.attempt = 2;
    failed.outcome = Outcome::failed("it did not start", readings::FailureCause::Subject);
    trials.insert(0, failed);
    let analysis = analyse(&header, &trials);
    let c = &analysis.levels[0].comparison;
    assert_eq!(c.blocks, 3, "{c:?}");
    assert_eq!((c.subject_starts.failed, c.baseline_starts.failed), (1, 0));
}

#[test]
fn slices_of_levels_are_not_taken_for_neighbours() {
    let header = run(3, &["0", "32"], &[96]);
    let mut random = Normal::with_seed(25);
    let mut trials = throughputs(&header, 3, 0.02, &mut random, twice_at_32);
    for row in &mut trials {
        let rises = row.condition[FACTOR] == "32";
        let reading = reading(row);
        let slice = |at: u32| Slice {
            start_s: f64::from(at),
            duration_s: 0.1,
            requests: if rises { 300 + u64::from(at) * 10 } else { 300 },
            ..Slice::default()
        };
        reading.throughput.as_mut().unwrap().slices = (0..100).map(slice).collect();
    }
    let analysis = analyse(&header, &trials);
    assert_eq!(analysis.levels[0].comparison.unsettled_blocks, 0);
}

#[test]
fn a_run_of_one_subject_stops_when_its_levels_are_settled() {
    let header = run(30, &["0", "32"], &[96]);
    let mut random = Normal::with_seed(26);
    let clear = throughputs(&header, 10, 0.02, &mut random, twice_at_32);
    assert!(settled(&analyse(&header, &clear)));
    let noisy = throughputs(&header, 10, 0.3, &mut random, |_| 1.0);
    assert!(!settled(&analyse(&header, &noisy)));
}

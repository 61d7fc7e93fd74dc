use super::*;
use crate::fixtures::{Normal, closed, header, in_closed, reading};
use readings::{GateMetric, Journal, JournalRow, ServerMetrics, SystemMetrics};

const LEVELS: [f64; 4] = [0.0, 250.0, 500.0, 1_000.0];

/// Blocks of values by level, with noise that is normal with this deviation.
fn blocks(
    count: usize,
    noise: f64,
    random: &mut Normal,
    truth: impl Fn(f64) -> f64,
) -> Vec<Vec<(f64, f64)>> {
    let block = |_| {
        // A block is higher or lower as a whole: that is no slope.
        let offset = 50.0 * noise * random.next();
        let point = |x: &f64| (*x, truth(*x) + offset + noise * random.next());
        LEVELS.iter().map(point).collect()
    };
    (0..count).map(block).collect()
}

/// Five blocks over 10 to 10,000, whose noise is a thousandth of the rise.
fn over_decades(random: &mut Normal, truth: impl Fn(f64) -> f64) -> Vec<Vec<(f64, f64)>> {
    let levels = [10.0, 100.0, 1_000.0, 10_000.0];
    let noise = 1e-3 * (truth(levels[3]) - truth(levels[0]));
    let block = |_| {
        let points = levels.iter();
        let points = points.map(|x| (*x, truth(*x) + noise * random.next()));
        points.collect()
    };
    (0..5).map(block).collect()
}

/// What a server takes without any route does not flatten its exponent, and the interval holds it: of
/// 500 simulated runs in 95%, with a deviation of 4 percentage points.
#[test]
fn exponents_are_recovered_and_their_intervals_hold_them() {
    let mut random = Normal::with_seed(9);
    for exponent in [0.5, 1.0, 2.0] {
        let held = (0..500).filter(|_| {
            let truth = |x: f64| 5e6 + 20.0 * x.powf(exponent);
            let found = Exponent::of(&over_decades(&mut random, truth), 0.95).unwrap();
            found.low <= exponent && exponent <= found.high
        });
        let share = held.count() as f64 / 500.0;
        assert!((share - 0.95).abs() < 0.04, "{share} at {exponent}");
    }
    let two = over_decades(&mut random, |x| x)[..2].to_vec();
    assert_eq!(Exponent::of(&two, 0.95), None, "no interval");
}

/// A leap at the last level is no power: no exponent is best.
#[test]
fn a_leap_has_no_exponent() {
    let block = |noise: f64| {
        let levels = [(10.0, 62.0), (1_000.0, 54.0), (10_000.0, 225.0)];
        levels.map(|(x, y)| (x, y + noise)).to_vec()
    };
    let blocks: Vec<_> = [-1.0, 0.0, 1.5].map(block).to_vec();
    assert_eq!(Exponent::of(&blocks, 0.95), None);
    assert_eq!(shape_of(&blocks), Shape::Unsettled);
}

fn shape_of(blocks: &[Vec<(f64, f64)>]) -> Shape {
    let slope = slope_of(blocks, 0.95);
    let count = blocks.len() as f64;
    let mean = |at: usize| blocks.iter().map(|block| block[at].1).sum::<f64>() / count;
    let levels = blocks[0].iter().enumerate();
    let levels: Vec<(f64, f64)> = levels.map(|(at, (x, _))| (*x, mean(at))).collect();
    let exponent = Exponent::of(blocks, 0.95);
    Shape::of(&levels, &slope, Bend::of(blocks).as_ref(), exponent, 0.05)
}

#[test]
fn a_growth_is_called_what_it_is() {
    let mut random = Normal::with_seed(10);
    type Truth = fn(f64) -> f64;
    let truths: [(Truth, Shape); 6] = [
        (|x| 5e6 + 200.0 * x, Shape::Linear),
        (|x| 20.0 * x, Shape::Linear),
        (|x| 5e6 + 0.1 * x * x, Shape::Superlinear),
        (|x| 5e6 + x * x.sqrt(), Shape::Superlinear),
        (|x| 5e3 + 1e3 * x.ln(), Shape::Sublinear),
        (|x| 5e6 - 200.0 * x, Shape::Falls),
    ];
    for (at, (truth, shape)) in truths.into_iter().enumerate() {
        for _ in 0..20 {
            let found = shape_of(&over_decades(&mut random, truth));
            assert_eq!(found, shape, "truth {at}");
        }
    }
    // 2% more at the end: a rise that is shown, and does not matter.
    let little = over_decades(&mut random, |x| 5e6 + 10.0 * x);
    assert_eq!(Growing::of(&slope_of(&little, 0.95)), Growing::Rises);
    assert_eq!(shape_of(&little), Shape::Constant);
    // 20% more at the end, in a noise of as much.
    let point = |x: f64, random: &mut Normal| (x, 5e6 + 1e3 * x + 1e6 * random.next());
    let block = |_| LEVELS.map(|x| point(x, &mut random)).to_vec();
    let noisy: Vec<Vec<(f64, f64)>> = (0..5).map(block).collect();
    assert_eq!(shape_of(&noisy), Shape::Unsettled);
}

fn slope_of(blocks: &[Vec<(f64, f64)>], confidence: f64) -> Slope {
    let slopes: Vec<f64> = (blocks.iter())
        .map(|points| line::fit(points).unwrap().slope)
        .collect();
    Slope::of(&slopes, confidence).unwrap()
}

/// Of 2,000 simulated runs, 95% intervals hold the truth in 95%: a deviation of more than 2
/// percentage points has a chance of 1 in 20,000.
#[test]
fn intervals_hold_the_true_slope_as_often_as_they_say() {
    let mut random = Normal::with_seed(5);
    for (count, slope) in [(3, 0.0), (5, 12.5), (20, -3.0)] {
        let held = (0..2_000).filter(|_| {
            let run = blocks(count, 40.0, &mut random, |x| 5_000.0 + slope * x);
            let (low, high) = slope_of(&run, 0.95).interval().unwrap();
            low <= slope && slope <= high
        });
        let share = held.count() as f64 / 2_000.0;
        assert!((share - 0.95).abs() < 0.02, "{share} with {count} blocks");
    }
}

/// Blocks may differ in their slopes, as when a server takes memory in large steps.
#[test]
fn intervals_hold_the_mean_of_slopes_that_vary() {
    let mut random = Normal::with_seed(6);
    let held = (0..2_000).filter(|_| {
        let run: Vec<_> = (0..6)
            .flat_map(|_| {
                let slope = 10.0 + 2.0 * random.next();
                blocks(1, 5.0, &mut random, |x| slope * x)
            })
            .collect();
        let (low, high) = slope_of(&run, 0.95).interval().unwrap();
        low <= 10.0 && 10.0 <= high
    });
    let share = held.count() as f64 / 2_000.0;
    assert!((share - 0.95).abs() < 0.02, "{share}");
}

#[test]
fn a_line_is_rarely_called_bent_and_a_curve_is_found() {
    let mut random = Normal::with_seed(7);
    let bent = |curve: f64, random: &mut Normal| {
        let runs = (0..1_000).filter(|_| {
            let run = blocks(5, 40.0, random, |x| x + curve * x * x);
            Bend::of(&run).unwrap().is_bent
        });
        runs.count() as f64 / 1_000.0
    };
    let wrong = bent(0.0, &mut random);
    assert!((0.03..0.07).contains(&wrong), "{wrong} of lines");
    assert!(bent(0.002, &mut random) > 0.95);
    // Less than the share that is irrelevant, with hardly any noise.
    let run = blocks(5, 1e-6, &mut random, |x| x + 1e-5 * x * x);
    let bend = Bend::of(&run).unwrap();
    assert!(bend.p < 0.05 && !bend.is_bent, "{bend:?}");
}

#[test]
fn what_no_interval_can_be_made_of_has_none() {
    assert_eq!(Slope::of(&[], 0.95), None);
    let two = Slope::of(&[1.0, 3.0], 0.95).unwrap();
    assert_eq!((two.value, two.interval()), (2.0, None));
    assert_eq!(Growing::of(&two), Growing::NotShown);
    assert!(Bend::of(&[]).is_none());
    assert!(line::fit(&[(1.0, 2.0), (1.0, 3.0)]).is_none());
    let exact = vec![vec![(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]; 3];
    let bend = Bend::of(&exact).unwrap();
    assert!((bend.f, bend.is_bent) == (None, false), "{bend:?}");
}

/// A run of two subjects whose memory grows by so many bytes with each route, plus noise.
fn run(bytes_each: [f64; 2], noise: f64) -> Journal {
    let mut random = Normal::with_seed(8);
    let mut header = header(6);
    header.growth = vec!["routes".into()];
    header.primary = vec![GateMetric::Memory];
    let at = |level: f64| Condition::from([("routes".to_owned(), level.to_string())]);
    header.conditions = LEVELS.iter().rev().map(|level| at(*level)).collect();
    let mut rows = Vec::new();
    for block in 1..=6 {
        for level in LEVELS {
            for (subject, each) in header.subjects.clone().iter().zip(bytes_each) {
                let bytes = 5e6 + each * level + noise * random.next();
                let mut row = in_closed(block, subject, closed(1_000.0));
                row.condition = at(level);
                let server = ServerMetrics {
                    rss_bytes_max: bytes as u64,
                    ..ServerMetrics::default()
                };
                reading(&mut row).probed = Some(SystemMetrics {
                    servers: [(subject.clone(), server)].into(),
                    ..SystemMetrics::default()
                });
                rows.push(JournalRow::Trial(Box::new(row)));
            }
        }
    }
    Journal::new(header, rows)
}

#[test]
fn a_runs_growth_is_found_by_subject_and_said() {
    let found = crate::analyse(&run([1_000.0, 3_000.0], 2e4)).growth;
    assert_eq!(found.len(), 2);
    for (one, truth) in found.iter().zip([1_000.0, 3_000.0]) {
        let (low, high) = one.slope.interval().unwrap();
        assert!(low < truth && truth < high, "{one:?}");
        assert!(high - low < 200.0, "{one:?}");
        assert_eq!(one.growing, Growing::Rises);
        assert_eq!((&*one.factor, one.levels.len()), ("routes", 4));
        assert_eq!(
            one.levels[3].level, 1_000.0,
            "ascending, as declared or not"
        );
    }
    assert_eq!(found[0].over_baseline, None);
    let over = found[1].over_baseline.as_ref().unwrap();
    assert!((over.difference.value - 2_000.0).abs() < 100.0);
    let text = words::growth(&found[1]);
    assert!(text.starts_with("balance: peak memory of all servers rises by "));
    assert!(text.contains(" per 1,000 routes ("), "{text}");
    assert!(text.contains(" more than direct."), "{text}");
    assert!(text.contains("over 6 blocks"), "{text}");
    let none = crate::analyse(&run([0.0, 0.0], 2e4)).growth;
    let text = words::growth(&none[0]);
    assert!(text.contains(" is constant: it changes by "), "{text}");
    // As much noise as hides what matters.
    let unknown = crate::analyse(&run([0.0, 0.0], 1e6)).growth;
    let text = words::growth(&unknown[0]);
    assert!(text.contains("no growth was shown"), "{text}");
    assert_eq!(unknown[0].shape, Shape::Unsettled);
}

#[test]
fn a_block_without_a_level_and_factors_that_nobody_asked_for_are_left_out() {
    let mut journal = run([1_000.0, 1_000.0], 1e3);
    let is_lost = |row: &JournalRow| match row {
        JournalRow::Trial(one) => {
            one.block == 2 && one.subject == "balance" && one.condition["routes"] == "500"
        }
        _ => false,
    };
    journal.rows.retain(|row| !is_lost(row));
    let found = crate::analyse(&journal).growth;
    assert_eq!((found[0].slope.blocks, found[1].slope.blocks), (6, 5));
    assert_eq!(
        found[1].over_baseline.as_ref().unwrap().difference.blocks,
        5
    );
    journal.header.growth.clear();
    assert!(crate::analyse(&journal).growth.is_empty());
}

/// Start time and memory at rest are taken from the server that the load addresses, and are there only
/// where the run asks for them; the time of a reload is not compared.
#[test]
fn how_servers_start_is_shown_where_the_run_asks_for_it() {
    let mut journal = run([1_000.0, 3_000.0], 2e4);
    for row in &mut journal.rows {
        let JournalRow::Trial(trial) = row else {
            unreachable!()
        };
        let level: f64 = trial.condition["routes"].parse().unwrap();
        let name = trial.subject.clone();
        let reading = reading(trial);
        let started = |start_ms| readings::ServerStart {
            start_ms,
            rest_bytes: Some(7_000_000),
        };
        let servers = [name.clone(), "origin".to_owned()];
        reading.starts = servers
            .into_iter()
            .zip([20.0 + level, 3.0].map(started))
            .collect();
        reading.servers = vec![readings::ServerReading {
            server: name,
            ..readings::ServerReading::default()
        }];
    }
    let is_of_start = |metric: Metric| metric.is_on_demand();
    let analysis = crate::analyse(&journal);
    assert!(!analysis.comparisons.iter().any(|c| is_of_start(c.metric)));
    assert!(
        !analysis
            .table
            .iter()
            .any(|row| row.figures.keys().any(|m| is_of_start(*m)))
    );
    journal.header.primary = vec![
        GateMetric::Start,
        GateMetric::RestMemory,
        GateMetric::Reload,
    ];
    let analysis = crate::analyse(&journal);
    let compared = |metric| {
        analysis
            .comparisons
            .iter()
            .filter(move |c| c.metric == metric)
    };
    assert_eq!(compared(Metric::FirstServerStartUs).count(), LEVELS.len());
    assert_eq!(compared(Metric::FirstServerRestBytes).count(), LEVELS.len());
    assert_eq!(compared(Metric::ReloadUs).count(), 0);
    let growth = &analysis.growth;
    let start = growth
        .iter()
        .find(|one| one.metric == Metric::FirstServerStartUs);
    let start = start.unwrap();
    assert!((start.slope.value - 1_000.0).abs() < 1e-6, "{start:?}");
    assert_eq!(start.shape, Shape::Linear);
    let rest = growth
        .iter()
        .find(|one| one.metric == Metric::FirstServerRestBytes);
    assert_eq!(rest.unwrap().shape, Shape::Constant);
}

//! Several loads at the same time.

use std::collections::BTreeMap;
use std::time::Duration;

use agent::wire::LoadOrder;
use readings::{LoadReading, Outcome, Pacing};

use super::{run, script, script_with};

/// Two compared loads and one in the background; one block of three trials.
const LOADS: &str = include_str!("several/experiment.toml");

/// The path that a load asks for.
fn path(order: &LoadOrder) -> String {
    let request = &order.job.targets[0].requests[0].bytes;
    let request = String::from_utf8_lossy(request).into_owned();
    request.split(' ').nth(1).unwrap_or_default().to_owned()
}

fn rate_of_path(order: &LoadOrder) -> f64 {
    match path(order).as_str() {
        "/quick" => 10_000.0,
        "/slow" => 500.0,
        _ => 50.0,
    }
}

fn per_s(load: &Option<LoadReading>) -> f64 {
    load.as_ref().unwrap().requests_per_s().round()
}

#[test]
fn every_load_has_its_own_figures_in_each_trial() {
    let script = script_with(|it| it.rate_per_s = rate_of_path);
    let ran = run(LOADS, &script);
    assert!(
        ran.complete && ran.failures().is_empty(),
        "{:?}",
        ran.failures()
    );
    let loads = ran.journal.header.loads.iter();
    let loads: Vec<_> = loads.map(|it| (it.name.as_str(), it.background)).collect();
    assert_eq!(
        loads,
        [("quick", false), ("slow", false), ("download", true)]
    );
    let readings = ran.done();
    assert_eq!(readings.len(), 3);
    for (_, reading) in &readings {
        let (slow, download) = (&reading.beside["slow"], &reading.beside["download"]);
        let closed = [&reading.throughput, &slow.throughput, &download.throughput];
        assert_eq!(closed.map(per_s), [10_000.0, 500.0, 50.0]);
        let open = [&reading.latency, &slow.latency, &download.latency];
        let pacings = open.map(|load| load.as_ref().unwrap().pacing);
        let at = |rate_per_s| Pacing::Open { rate_per_s };
        assert_eq!(pacings, [at(1_000.0), at(10.0), Pacing::Closed]);
        assert_eq!(slow.throughput.as_ref().unwrap().connections, 3);
    }
    let background = "background loads, whose figures are shown but not compared: `download`";
    assert_eq!(ran.warnings(background), 1);
    // In the journal by load each load has a row for each trial.
    let split = ran.journal.by_load();
    let trials = split.trials();
    let rows = trials
        .map(|it| it.condition["load"].clone())
        .collect::<Vec<_>>();
    for (load, count) in [("quick", 3), ("slow", 3), ("download", 3)] {
        assert_eq!(
            rows.iter().filter(|it| *it == load).count(),
            count,
            "{load}"
        );
    }
}

#[test]
fn all_loads_begin_their_segments_at_the_same_times() {
    let script = script();
    run(LOADS, &script);
    // Warm-up, closed and open loop.
    let mut phases: BTreeMap<u64, Vec<LoadOrder>> = BTreeMap::new();
    for order in script.borrow().orders.clone() {
        phases
            .entry(order.job.part.unwrap().start_ns)
            .or_default()
            .push(order);
    }
    assert_eq!(phases.len(), 3);
    for orders in phases.values_mut() {
        orders.sort_by_key(path);
        let paths: Vec<String> = orders.iter().map(path).collect();
        assert_eq!(paths, ["/download", "/quick", "/slow"]);
        let times = |order: &LoadOrder| {
            let segments = order.job.segments.iter();
            let times = segments.map(|it| (it.target, it.ramp_up, it.stop, it.idle_before));
            (order.job.part.unwrap().gap_ns, times.collect::<Vec<_>>())
        };
        assert_eq!(times(&orders[0]), times(&orders[1]));
        assert_eq!(times(&orders[0]), times(&orders[2]));
        let sampled = orders.iter().filter(|it| !it.watch.is_empty());
        assert_eq!(sampled.map(path).collect::<Vec<_>>(), ["/quick"]);
    }
}

#[test]
fn a_load_that_is_late_has_more_time_between_segments_the_second_time() {
    let script = script();
    let mut left = 1;
    script.borrow_mut().late_ns = Box::new(move |order| {
        // The warm-up may be late.
        let is_measured = order.job.segments.len() > 3;
        match is_measured && path(order) == "/slow" && left > 0 {
            true => {
                left -= 1;
                400_000_000
            }
            false => 0,
        }
    });
    let ran = run(LOADS, &script);
    assert!(ran.failures().is_empty(), "{:?}", ran.failures());
    let script = script.borrow();
    let of_slow = script.orders.iter().filter(|it| path(it) == "/slow");
    let gaps: Vec<u64> = of_slow
        .map(|it| it.job.part.unwrap().gap_ns / 1_000_000)
        .collect();
    // The last answers after a window took 800 ms: times 1.5, plus 50 ms.
    assert_eq!(gaps, [20, 50, 1_250, 1_250]);
}

#[test]
fn a_load_that_stays_late_fails_the_condition_by_its_name() {
    let script = script();
    script.borrow_mut().late_ns = Box::new(|order| match path(order) == "/slow" {
        true => 12_300_000,
        false => 0,
    });
    let ran = run(LOADS, &script);
    let failures = ran.failures();
    assert_eq!(failures.len(), 3);
    let told = "load `slow` began 12.3 ms late, so the loads did not measure at the same time";
    assert!(failures.iter().all(|it| it == told), "{failures:?}");
}

#[test]
fn a_load_that_fails_fails_the_condition_by_its_name() {
    let script = script_with(|it| it.fails = Box::new(|order| path(order) == "/download"));
    let failures = run(LOADS, &script).failures();
    assert_eq!(failures.len(), 3);
    assert!(
        failures
            .iter()
            .all(|it| it == "load `download`: the load broke off"),
        "{failures:?}"
    );
}

#[test]
fn a_subject_without_the_background_load_is_measured_while_that_is_idle() {
    let text = LOADS.replace(
        "b = \"http://b/\"",
        "b = { url = \"http://b/\", background = \"download\" }",
    );
    let script = script();
    let ran = run(&text, &script);
    for (trial, reading) in ran.done() {
        let has = reading.beside.contains_key("download");
        assert_eq!(has, trial.subject == "b", "{}", trial.subject);
        assert!(reading.beside.contains_key("slow"));
    }
    let script = script.borrow();
    let start_ns = |order: &LoadOrder| order.job.part.unwrap().start_ns;
    let of = |wanted: &str| {
        let orders = script.orders.iter().filter(|it| path(it) == wanted);
        orders
            .map(|it| (start_ns(it), it))
            .collect::<BTreeMap<_, _>>()
    };
    let (downloads, quick) = (of("/download"), of("/quick"));
    assert_eq!(downloads.len(), 3);
    for (start, order) in downloads {
        assert_eq!(starts_on_b(order), starts_on_b(quick[&start]));
        assert_eq!(order.job.targets.len(), 1);
        assert_eq!(
            3 * order.job.segments.len(),
            quick[&start].job.segments.len()
        );
    }
}

/// When the segments on the subject `b` begin, after the start of the load.
fn starts_on_b(order: &LoadOrder) -> Vec<Duration> {
    let mut now = Duration::ZERO;
    let mut starts = Vec::new();
    for segment in &order.job.segments {
        now += segment.idle_before;
        let request = &order.job.targets[segment.target].requests[0].bytes;
        if String::from_utf8_lossy(request).contains("Host: b\r\n") {
            starts.push(now);
        }
        let load::Stop::After(window) = segment.stop else {
            panic!("{segment:?}");
        };
        let gap = Duration::from_nanos(order.job.part.unwrap().gap_ns);
        now += segment.ramp_up + window + gap;
    }
    starts
}

#[test]
fn the_factor_background_says_under_which_conditions_it_is_made() {
    let text = LOADS.to_owned() + "[factors]\nbackground = [\"none\", \"download\"]\n";
    let script = script();
    let ran = run(&text, &script);
    for trial in ran.trials() {
        let Outcome::Done(reading) = trial.outcome else {
            panic!("{trial:?}");
        };
        let wanted = trial.condition["background"] == "download";
        assert_eq!(reading.beside.contains_key("download"), wanted);
    }
    let script = script.borrow();
    let made = script.orders.iter().filter(|it| path(it) == "/download");
    assert_eq!(
        made.count(),
        3,
        "warm-up, closed and open loop of one condition"
    );
}

//! How long answers take once servers are warm.

mod lasting;

use load::{Segment, Target};
use readings::{JournalRow, WarmUpChoice};

use super::{Finished, Folder, TWO, run, run_in, script_with};
use crate::RunEvent;

/// One block of three trials, of which `b` asks for another path.
fn two_paths() -> String {
    let design = "blocks = 1\nwarmup = \"100ms\"\nwindow = \"1s\"\napart = \"never\"\n";
    let text = TWO.replace("http://b/", "http://b/slow");
    let text = text.replace(
        "blocks = 2\nwarmup = \"10ms\"\nwindow = \"200ms\"\n",
        design,
    );
    text.replace("retries = 1", "retries = 0")
}

fn is_slow(target: &Target) -> bool {
    target.requests[0].bytes.starts_with(b"GET /slow ")
}

/// The segments of each load, each with whether it is on the slow path, and the warnings of a
/// subject that was measured apart.
fn loads(answer_us: fn(usize, &Target) -> u64) -> (Vec<Vec<(Segment, bool)>>, usize) {
    let script = script_with(|it| it.answer_us = answer_us);
    let ran = run(&two_paths(), &script);
    assert!(ran.complete && ran.failures().is_empty());
    let script = script.borrow();
    let of_order = |order: &agent::wire::LoadOrder| {
        let job = &order.job;
        let segments = job.segments.iter();
        segments
            .map(|one| (one.clone(), is_slow(&job.targets[one.target])))
            .collect()
    };
    let loads = script.orders.iter().map(of_order).collect();
    (loads, ran.warnings("too long for the slices of the others"))
}

/// Whether the slow path has all its slices after those of the other.
fn is_apart(slices: &[(Segment, bool)]) -> bool {
    let first = slices.iter().position(|(_, is_slow)| *is_slow).unwrap();
    slices[first..].iter().all(|(_, is_slow)| *is_slow)
}

#[test]
fn a_subject_that_is_slow_only_at_first_alternates_with_the_others() {
    let answer_us = |load: usize, target: &Target| match (load, is_slow(target)) {
        (1, true) => 40_000,
        // Still compiling.
        (2, true) => 15_000,
        _ => 1_200,
    };
    let (loads, warnings) = loads(answer_us);
    assert_eq!((loads.len(), warnings), (4, 0));
    assert_eq!(loads[0].len(), 3);
    for again in &loads[1..3] {
        assert!(
            again.len() == 1 && again[0].1,
            "only the slow one: {again:?}"
        );
    }
    assert!(!is_apart(&loads[3]));
}

#[test]
fn a_subject_that_stays_slow_is_measured_apart() {
    let answer_us = |_: usize, target: &Target| match is_slow(target) {
        true => 40_000,
        false => 1_200,
    };
    let (loads, warnings) = loads(answer_us);
    // Another warm-up did not make it quicker.
    assert_eq!((loads.len(), warnings), (3, 1));
    assert!(is_apart(&loads[2]));
}

#[test]
fn subjects_that_are_slow_under_different_conditions_are_in_one_warning() {
    let of_factor = "quick = \"http://a/\"\na = \"http://a/a{p}\"";
    let text = two_paths()
        .replace("a = \"http://a/\"", of_factor)
        .replace("http://b/slow", "http://b/b{p}");
    let text = text + "[factors]\np = [\"1\", \"2\"]\n";
    let script = script_with(|it| {
        it.answer_us = |_, target| {
            let is = |path: &[u8]| target.requests[0].bytes.starts_with(path);
            if is(b"GET /a1 ") || is(b"GET /b2 ") {
                40_000
            } else {
                1_200
            }
        };
    });
    let ran = run(&text, &script);
    assert!(ran.complete && ran.failures().is_empty());
    assert_eq!(ran.warnings("answers of `a` and `b` take too long"), 1);
    assert_eq!(ran.warnings("too long for the slices of the others"), 1);
}

/// Three blocks, of which the path of `b` is cold at first; with these keys of the design.
fn cold(design: &str) -> String {
    TWO.replace("http://b/", "http://b/cold").replace(
        "blocks = 2\nwarmup = \"10ms\"\n",
        &format!("blocks = 3\n{design}\n"),
    )
}

fn script_of(warm_after_s: f64) -> super::SharedScript {
    let script = script_with(|it| it.warm_after_s = warm_after_s);
    script.borrow_mut().answer_us = |_, _| 1_200;
    script
}

fn choices(ran: &Finished) -> Vec<WarmUpChoice> {
    let rows = ran.journal.rows.iter();
    let choices = rows.filter_map(|row| match row {
        JournalRow::WarmUp(choice) => Some(choice.clone()),
        _ => None,
    });
    choices.collect()
}

/// The warm-ups of each block: how long, for each subject, s.
fn warm_ups(script: &super::SharedScript) -> Vec<f64> {
    let script = script.borrow();
    let is_warm_up = |one: &&agent::wire::LoadOrder| one.job.segments.len() == 3;
    let of_first = |order: &agent::wire::LoadOrder| {
        let first = &order.job.segments[0];
        (first.ramp_up + crate::fleet::timing::planned_window(first)).as_secs_f64()
    };
    script
        .orders
        .iter()
        .filter(is_warm_up)
        .map(of_first)
        .collect()
}

#[test]
fn the_first_block_lengthens_the_warm_up_until_servers_are_warm() {
    let script = script_of(4.0);
    let folder = Folder::new();
    let text = cold("warmup = \"500ms\"\nwarmup_max = \"10s\"");
    let ran = run_in(&folder.0, &text, &script, false);
    assert!(ran.complete && ran.failures().is_empty());
    let [choice] = &choices(&ran)[..] else {
        panic!("no choice, or several")
    };
    assert_eq!((choice.subject.as_str(), choice.declared_s), ("b", 0.5));
    assert!(choice.faster > 1.1 && !choice.at_most, "{choice:?}");
    assert!((1.0..5.0).contains(&choice.warmup_s), "{choice:?}");
    let told = |event: &&RunEvent| matches!(event, RunEvent::WarmUpChosen(_));
    assert_eq!(ran.events.iter().filter(told).count(), 1);
    let lengths = warm_ups(&script);
    assert_eq!(lengths.len(), 3, "one check is enough: {lengths:?}");
    assert!((lengths[0] - 0.5).abs() < 1e-6);
    assert!((lengths[1] - choice.warmup_s).abs() < 1e-3, "{lengths:?}");
    // A resumed run knows it.
    script.borrow_mut().orders.clear();
    let more = text.replace("blocks = 3", "blocks = 4");
    let experiment = folder.0.join("experiment.toml");
    std::fs::write(experiment, &more).unwrap();
    run_in(&folder.0, &more, &script, true);
    let again = warm_ups(&script);
    assert!((again[0] - choice.warmup_s).abs() < 1e-3, "{again:?}");
}

#[test]
fn the_warm_up_is_bounded_and_a_declared_one_is_kept() {
    let longest = |design: &str| {
        let script = script_of(400.0);
        let ran = run(&cold(design), &script);
        let lengths = warm_ups(&script);
        let choices = choices(&ran);
        (lengths.iter().copied().fold(0.0, f64::max), choices)
    };
    let (length, choices) = longest("warmup = \"500ms\"\nwarmup_max = \"2s\"");
    assert!((0.5..2.8).contains(&length), "{length}");
    assert!(choices.iter().all(|one| one.warmup_s < 2.8));
    let (length, choices) = longest("warmup = \"500ms\"");
    assert_eq!((length, choices.len()), (0.5, 0));
    // A run with a time budget has room for five blocks.
    let (length, _) = longest("warmup = \"500ms\"\nwarmup_max = \"1m\"\nwithin = \"30s\"");
    assert!(length < 4.0, "{length}");
}

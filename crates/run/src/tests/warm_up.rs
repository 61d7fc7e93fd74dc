//! How long answers take once servers are warm.

use load::{Segment, Target};

use super::{TWO, run, script};

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
    let script = script();
    script.borrow_mut().answer_us = answer_us;
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

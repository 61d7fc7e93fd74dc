//! Runs with a time budget, on fake agents.

use std::thread::sleep;
use std::time::Duration;

use super::*;

/// How long each of the two loads of a group takes.
const LOAD: Duration = Duration::from_millis(150);

/// A run whose groups each take twice [`LOAD`].
fn run_slowly(
    within: &str,
    blocks: u32,
    retries: u32,
    answers_wrongly: fn(u32, usize) -> bool,
) -> Finished {
    let design = format!("blocks = {blocks}\nwithin = \"{within}\"");
    let text = TWO
        .replace("blocks = 2", &design)
        .replace("retries = 1", &format!("retries = {retries}"));
    let script = script();
    script.borrow_mut().fails = Box::new(|_| {
        sleep(LOAD);
        false
    });
    script.borrow_mut().answers_wrongly = answers_wrongly;
    run(&text, &script)
}

fn blocks_of(ran: &Finished) -> Vec<u32> {
    let mut blocks: Vec<u32> = ran.trials().iter().map(|trial| trial.block).collect();
    blocks.dedup();
    blocks
}

#[test]
fn retries_leave_time_for_the_planned_blocks() {
    // All retries of block 1 would take longer than the run may.
    let ran = run_slowly("2s", 3, 8, |block, _| block == 1);
    assert_eq!(blocks_of(&ran)[..3], [1, 2, 3]);
    assert!((1..8).contains(&ran.retries()), "{}", ran.retries());
    assert_eq!(ran.warnings("1 retry was left out for lack of time"), 1);
    assert_eq!(ran.warnings("the time budget of 2 s allowed"), 0);
}

#[test]
fn a_block_is_begun_if_one_attempt_at_it_fits() {
    // Five attempts fit with a second to spare; three for each block would not.
    let ran = run_slowly("2500ms", 3, 2, |block, _| block == 1);
    assert_eq!((&blocks_of(&ran)[..3], ran.retries()), (&[1, 2, 3][..], 2));
    assert_eq!(ran.warnings("left out for lack of time"), 0);
}

#[test]
fn blocks_for_which_there_is_no_time_are_dropped_and_that_is_said() {
    let ran = run_slowly("1200ms", 8, 0, |_, _| false);
    let blocks = blocks_of(&ran).len();
    assert!((3..5).contains(&blocks), "{blocks}");
    assert!(ran.warnings("blocks instead of 8") >= 1);
    let decides = |event: &&RunEvent| matches!(event, RunEvent::Decides(_));
    let said = ran.events.iter().filter(decides).count();
    assert!(said >= ran.warnings("there is room for"), "{said}");
}

/// A run of two subjects whose first block takes eight times as long as the others.
fn run_with_slow_start(within: &str, blocks: u32, window: &str) -> Finished {
    let design = format!("blocks = {blocks}\nwithin = \"{within}\"");
    let text = TWO
        .replace("blocks = 2", &design)
        .replace("retries = 1", "retries = 0")
        .replace("200ms", window);
    let script = script();
    let mut loads = 0;
    script.borrow_mut().fails = Box::new(move |_| {
        loads += 1;
        sleep(if loads <= 2 { 8 * LOAD } else { LOAD });
        false
    });
    run(&text, &script)
}

#[test]
fn a_slow_first_block_does_not_end_the_run_before_three_and_dropped_blocks_come_back() {
    // The first takes 2.4 s and each of the others 0.3 s: as it seems, a third one does not fit.
    let ran = run_with_slow_start("5s", 5, "200ms");
    let blocks = blocks_of(&ran);
    assert!(blocks.len() >= 4, "{blocks:?}");
    assert_eq!(ran.warnings("3 blocks instead of 5"), 1);
}

#[test]
fn windows_are_shortened_where_blocks_take_longer_than_planned() {
    let ran = run_with_slow_start("6s", 5, "1s");
    let windows: Vec<f64> = ran
        .done()
        .iter()
        .map(|(_, reading)| reading.throughput.as_ref().unwrap().duration_s)
        .collect();
    assert!((windows[0] - 1.0).abs() < 0.1, "{windows:?}");
    assert!(windows.last().unwrap() < &0.9, "{windows:?}");
    assert!(ran.warnings("s instead of 1.0 s") >= 1);
}

#[test]
fn starts_that_take_long_are_told_after_the_first_block() {
    let script = script();
    let text = TWO.replace("retries = 1", "retries = 0");
    // Of three servers, as the baseline has a copy.
    script.borrow_mut().start_takes = |block| match block {
        1 => Duration::from_millis(1_200),
        _ => Duration::ZERO,
    };
    let ran = run(&text, &script);
    let told = ran.events.iter().filter_map(|event| match event {
        RunEvent::StartsTake(take) => Some(*take),
        _ => None,
    });
    let told: Vec<_> = told.collect();
    let [take] = &told[..] else {
        panic!("{told:?}")
    };
    assert!((3.6..4.6).contains(&take.starts_s), "{take:?}");
    assert!(take.blocks == 2 && take.planned_s == 1.5, "{take:?}");
    assert!((7.2..9.9).contains(&take.run_s), "{take:?}");
}

#[test]
fn a_run_may_have_the_open_loop_only() {
    let text = TWO
        .replace("\nwindow = \"200ms\"", "\nwindow = \"0s\"")
        .replace("latency_window = \"0s\"", "latency_window = \"200ms\"")
        + "[load]\nrate = 100\n";
    for text in [
        text.clone(),
        text.replace("retries = 1", "retries = 1\napart = \"always\""),
    ] {
        let ran = run(&text, &script());
        assert_eq!((ran.trials().len(), ran.failures().len()), (6, 0));
        for (trial, reading) in ran.done() {
            let shown = format!("{} {}", trial.block, trial.subject);
            assert!(reading.throughput.is_none(), "{shown}");
            assert_eq!(
                reading.latency.as_ref().unwrap().pacing,
                readings::Pacing::Open { rate_per_s: 100.0 },
                "{shown}"
            );
        }
    }
}

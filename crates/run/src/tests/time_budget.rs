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
    assert_eq!(blocks_of(&ran), [1, 2, 3]);
    assert!((1..8).contains(&ran.retries()), "{}", ran.retries());
    assert_eq!(ran.warnings("1 retry was left out for lack of time"), 1);
    assert_eq!(ran.warnings("the time limit of 2 s allowed"), 0);
}

#[test]
fn a_block_is_begun_if_one_attempt_at_it_fits() {
    // Five attempts fit with a second to spare; three for each block would not.
    let ran = run_slowly("2500ms", 3, 2, |block, _| block == 1);
    assert_eq!((blocks_of(&ran), ran.retries()), (vec![1, 2, 3], 2));
    assert_eq!(ran.warnings("left out for lack of time"), 0);
}

#[test]
fn a_block_that_would_end_too_late_is_not_begun() {
    let ran = run_slowly("1s", 6, 0, |_, _| false);
    assert!((1..4).contains(&blocks_of(&ran).len()));
    assert_eq!(ran.warnings("of 6 blocks: a block takes up to 1 s"), 1);
}

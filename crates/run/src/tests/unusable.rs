//! Blocks that cannot be used, on fake agents.

use super::*;
use crate::UnusableTrial;

fn told(ran: &Finished) -> Vec<(Vec<UnusableTrial>, usize)> {
    let events = ran.events.iter();
    let told = events.filter_map(|event| match event {
        RunEvent::Unusable { trials, again } => Some((trials.clone(), *again)),
        _ => None,
    });
    told.collect()
}

fn attempts_at(ran: &Finished, block: u32) -> u32 {
    let trials = ran.trials().into_iter();
    let of_block = trials.filter(|trial| trial.block == block);
    of_block.map(|trial| trial.attempt).max().unwrap_or(0)
}

#[test]
fn a_block_that_cannot_be_used_is_measured_again_after_the_last_one() {
    let script = script();
    let mut counted = 0;
    // Both attempts at block 2 fail, and the machine is quiet again later.
    script.borrow_mut().fails = Box::new(move |_| {
        counted += 1;
        [4, 6].contains(&counted)
    });
    let text = TWO.replace("blocks = 2", "blocks = 3");
    let ran = run(&text, &script);
    assert_eq!(attempts_at(&ran, 2), 3, "{:?}", ran.failures());
    let last = ran.trials().pop().unwrap();
    assert!(last.block == 2 && matches!(last.outcome, Outcome::Done(_)));
    let told = told(&ran);
    assert_eq!(told.len(), 1, "{told:?}");
    let (trials, again) = &told[0];
    let named: Vec<(u32, &str)> = trials
        .iter()
        .map(|one| (one.block, one.subject.as_str()))
        .collect();
    assert_eq!(*again, 1);
    assert!(named.contains(&(2, "b")), "{named:?}");
    assert!(ran.complete);
}

#[test]
fn what_stays_unusable_is_repeated_half_as_often_as_there_are_blocks_and_told_at_the_end() {
    let script = script_with(|it| it.answers_wrongly = |block, _| block == 2);
    let text = TWO.replace("blocks = 2", "blocks = 4");
    let ran = run(&text, &script);
    // Two attempts in its turn, and two more.
    assert_eq!(attempts_at(&ran, 2), 4);
    let again: Vec<usize> = told(&ran).iter().map(|(_, again)| *again).collect();
    assert_eq!(again, [1, 0]);
    let none = run(&text.replace("retries = 1", "retries = 0"), &script);
    assert_eq!((attempts_at(&none, 2), told(&none).len()), (1, 0));
}

#[test]
fn a_subject_that_was_never_usable_is_not_measured_again() {
    let script = script_with(|it| it.answers_wrongly = |_, _| true);
    let ran = run(TWO, &script);
    assert!(told(&ran).is_empty());
    assert_eq!((attempts_at(&ran, 1), attempts_at(&ran, 2)), (2, 1));
}

//! Subjects whose answers are not those that were expected.

use super::*;

/// [`three`] with what each subject answers in turn, the last text for ever.
fn run_with(more: &str, answers: [(&str, Vec<&'static str>); 3]) -> Finished {
    let script = script();
    for (subject, bodies) in answers {
        let answers = &mut script.borrow_mut().answers;
        answers.insert(subject.to_owned(), bodies);
    }
    run(&(three() + more), &script)
}

fn subjects(ran: &Finished, block: u32) -> Vec<String> {
    let trials = ran.trials().into_iter();
    let of_block = trials.filter(|it| it.block == block);
    let mut subjects: Vec<String> = of_block.map(|it| it.subject).collect();
    subjects.sort_unstable();
    subjects
}

#[test]
fn a_subject_that_answers_otherwise_than_the_baseline_fails_once_and_the_others_go_on() {
    let other = || [("a", vec!["hello"]), ("b", vec![""]), ("c", vec!["hello"])];
    let told = "the answer of `b` to its first request is 0 bytes long, and that of the baseline `a` \
                5 bytes";
    // Measured one after the other, the answers are compared as well.
    for design in ["", "apart = \"always\"\n"] {
        let ran = run_with(design, other());
        let failures = ran.failures();
        assert_eq!(failures.len(), 1, "{failures:?}");
        assert!(failures[0].starts_with(told), "{failures:?}");
        assert_eq!(ran.retries(), 0, "it would be found again");
        assert_eq!(subjects(&ran, 1), ["a", "a", "b", "c"]);
        assert_eq!(subjects(&ran, 2), ["a", "a", "c"]);
        assert_eq!(ran.warnings("subject `b` is left out"), 1);
        assert_eq!(ran.warnings(told), 0, "it was told when the trial failed");
        assert!(ran.complete);
    }
    let differ = run_with("[expect]\nsame = false\n", other());
    assert!(differ.failures().is_empty());
}

#[test]
fn an_answer_that_was_an_exception_is_asked_for_again_in_another_attempt() {
    let answers = [
        ("a", vec!["hello"]),
        ("b", vec!["starting", "hello"]),
        ("c", vec!["hello"]),
    ];
    let ran = run_with("", answers);
    assert_eq!((ran.failures().len(), ran.retries()), (1, 1));
    assert_eq!(subjects(&ran, 2), ["a", "a", "b", "c"]);
}

#[test]
fn answers_that_should_be_the_same_and_are_not_fail_their_subject_only() {
    let answers = [
        ("a", vec!["hello"]),
        ("b", vec!["hello", "good day"]),
        ("c", vec!["hello"]),
    ];
    let ran = run_with("[expect]\nbody = \"same\"\n", answers);
    let failures = ran.failures();
    assert_eq!((failures.len(), ran.retries()), (1, 0), "{failures:?}");
    let told =
        "subject `b`: the length of its answers changes from request to request (5 and 8 bytes)";
    assert!(failures[0].starts_with(told), "{failures:?}");
    assert!(failures[0].contains("--expect-body varies"), "{failures:?}");
    assert_eq!(subjects(&ran, 2), ["a", "a", "c"]);
    assert!(ran.complete);
}

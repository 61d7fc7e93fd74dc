//! What subjects are asked, and answers that are not those that were expected.

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

fn path_of(request: &[u8]) -> String {
    let text = String::from_utf8_lossy(request).into_owned();
    text.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn placeholders_of_a_path_are_filled_in_for_each_request() {
    let script = script();
    let text = TWO
        .replace("://a/", "://a/{{ int(1, 9) }}")
        .replace("://b/", "://b/{{ int(1, 9) }}");
    let ran = run(
        &(text + "[load]\nheaders = { A = \"{{ seq }}\" }\n"),
        &script,
    );
    assert!(
        ran.complete && ran.failures().is_empty(),
        "{:?}",
        ran.failures()
    );
    let script = script.borrow();
    let target = &script.orders[0].job.targets[0];
    let filling = target.filling.as_ref().unwrap();
    assert!(filling.templates[0].is_some() && filling.log.is_none());
    assert_eq!(
        target.requests[0].expect.status,
        load::StatusRule::Exactly(200)
    );
    assert_eq!(target.requests[0].expect.body, load::BodyRule::Any);
    // What a subject is asked once is a request of the load, not the text with placeholders.
    let path = path_of(&target.requests[0].bytes);
    assert!(path[1..].parse::<u8>().is_ok(), "{path}");
    let asked: Vec<&String> = script.asked.iter().collect();
    assert!(
        !asked.is_empty() && asked.iter().all(|one| path_of(one.as_bytes()) == path),
        "{asked:?}"
    );
    assert!(
        asked
            .iter()
            .all(|one| one.contains("A: 1\r\n") && one.contains("Connection: close"))
    );
}

#[test]
fn each_subject_gets_the_whole_log_in_each_block() {
    let folder = Folder::new();
    fs::create_dir_all(&folder.0).unwrap();
    let log = folder.0.join("access.log");
    let line = |second: u32, request: &str| {
        format!("1.2.3.4 - - [27/Nov/2026:10:00:0{second} +0000] \"{request} HTTP/1.1\" 200 5\n")
    };
    let lines = [
        line(0, "GET /a"),
        line(2, "GET /b"),
        line(3, "POST /c"),
        line(4, "GET /a"),
    ];
    fs::write(&log, lines.concat()).unwrap();
    let windows = "window = \"200ms\"\nlatency_window = \"0s\"\n";
    let text = TWO.replace(windows, "") + &format!("[load]\nspeed = 2\nreplay = {log:?}\n");
    let script = script();
    let ran = run(&text, &script);
    assert!(
        ran.complete && ran.failures().is_empty(),
        "{:?}",
        ran.failures()
    );
    let (script, readings) = (script.borrow(), ran.done());
    assert_eq!(readings.len(), 2 * 3);
    for (_, reading) in readings {
        assert!(reading.throughput.is_none(), "there is no closed loop");
        match reading.latency.as_ref().unwrap().pacing {
            readings::Pacing::Open { rate_per_s } => assert!((rate_per_s - 1.5).abs() < 1e-6),
            other => panic!("{other:?}"),
        }
    }
    let is_open = |one: &&load::Segment| one.pacing != readings::Pacing::Closed;
    let replays = script.orders.iter().map(|order| {
        let open: Vec<_> = order.job.segments.iter().filter(is_open).collect();
        (order, open)
    });
    let replays: Vec<_> = replays.filter(|(_, open)| !open.is_empty()).collect();
    assert_eq!(
        replays.len(),
        2,
        "a load in each block, so that each log begins anew"
    );
    for (order, open) in replays {
        let mut targets: Vec<usize> = open.iter().map(|one| one.target).collect();
        targets.sort_unstable();
        assert_eq!(targets, [0, 1, 2]);
        for one in open {
            assert_eq!(one.reading, Some(one.target));
            assert!(one.ramp_up.is_zero(), "the log's first requests count");
            let length = std::time::Duration::from_nanos(2_000_000_001);
            assert_eq!(one.stop, load::Stop::After(length));
            let filling = order.job.targets[one.target].filling.as_ref().unwrap();
            assert_eq!(filling.log.as_ref().unwrap().entries(), 3);
        }
    }
    let left_out = "1 line of the log, besides 3 that are replayed, is left out (1: method POST";
    assert_eq!(ran.warnings(left_out), 1, "it is said once");
}

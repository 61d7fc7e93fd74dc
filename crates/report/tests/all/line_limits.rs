//! How long a run's answer is.

use testing::Text as _;
use testing::made_up::MadeUp;

const WIDTH: usize = 100;
const BLOCKS: u32 = 5;

fn answer(subjects: u32, conditions: u32, lost_every: u32) -> String {
    let names = (1..subjects).map(|number| format!("a-proxy-with-a-long-name-{number}"));
    let made = MadeUp {
        trials: BLOCKS * conditions * (subjects + 1),
        subjects: ["direct".to_owned()].into_iter().chain(names).collect(),
        conditions,
        lost_every,
    };
    let journal = made.journal();
    let analysis = verdict::analyse(&journal);
    report::terminal(&journal, &analysis, WIDTH, false, Some("weigh-runs/x-1"))
}

#[test]
fn an_answer_keeps_to_its_lines_and_to_the_width() {
    for (subjects, most) in [
        (2, [20, 40, 40]),
        (6, [20, 40, 40]),
        (8, [20, 40, 40]),
        (30, [60; 3]),
    ] {
        for (conditions, most) in [1, 2, 4].into_iter().zip(most) {
            for lost_every in [0, 7] {
                let text = answer(subjects, conditions, lost_every);
                // Without a loss two subjects have about ten lines.
                let most = match (subjects, conditions, lost_every) {
                    (2, 1, 0) => 15,
                    _ => most,
                };
                let about = format!("{subjects} subjects, {conditions} conditions\n{text}");
                assert!(
                    text.lines().count() <= most,
                    "{}: {about}",
                    text.lines().count()
                );
                for line in text.lines() {
                    assert!(line.chars().count() <= WIDTH, "{line:?}: {about}");
                }
                let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
                flat.ends(": weigh report weigh-runs/x-1 --verbose; pictures: report.html there.");
                let named = (1..subjects).map(|number| format!("name-{number} "));
                let missing: Vec<String> = named.filter(|name| !text.contains(name)).collect();
                assert!(lost_every > 0 || missing.is_empty(), "{missing:?}: {about}");
            }
        }
    }
}

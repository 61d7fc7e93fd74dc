//! The index as text: appended to, in any order, damaged.

use history::{Index, RunEntry, line};
use proptest::prelude::*;
use testing::Text as _;

use crate::made::entry;

fn index_of<'a>(entries: impl IntoIterator<Item = &'a RunEntry>) -> Index {
    let mut index = Index::default();
    for entry in entries {
        index.insert(entry.clone());
    }
    index
}

fn entries() -> impl Strategy<Value = Vec<RunEntry>> {
    let one = (0_u64..8, -3000..3000, 1..1000);
    let make = |(number, log, se)| entry(number, f64::from(log) / 1e3, f64::from(se) / 1e3);
    proptest::collection::vec(one.prop_map(make), 0..12)
}

proptest! {
    #[test]
    fn lines_that_were_appended_say_what_a_rebuilt_index_says(entries in entries()) {
        let appended: String = entries.iter().map(line).collect();
        let read = Index::parse(appended.as_bytes());
        prop_assert!(read.problems.is_empty());
        let rebuilt = index_of(&entries);
        prop_assert_eq!(read.runs(), rebuilt.runs());
        let again = Index::parse(rebuilt.text().as_bytes());
        prop_assert_eq!(again.runs(), rebuilt.runs());
    }

    #[test]
    fn the_order_of_files_does_not_matter(seed in 0_u64..1000, logs in proptest::collection::vec(-99..99, 1..12)) {
        let mut entries: Vec<RunEntry> = logs
            .iter()
            .enumerate()
            .map(|(i, log)| entry(i as u64, f64::from(*log) / 1e2, 0.01))
            .collect();
        let one = index_of(&entries).text();
        fastrand::Rng::with_seed(seed).shuffle(&mut entries);
        prop_assert_eq!(index_of(&entries).text(), one);
    }

    #[test]
    fn a_damaged_byte_costs_no_line_but_its_own(
        logs in proptest::collection::vec(-99..99, 3..6),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let entries: Vec<RunEntry> = logs
            .iter()
            .enumerate()
            .map(|(i, log)| entry(i as u64, f64::from(*log) / 1e2, 0.01))
            .collect();
        let mut text: Vec<u8> = entries.iter().flat_map(|e| line(e).into_bytes()).collect();
        let place = place.index(text.len());
        let was = std::mem::replace(&mut text[place], byte);
        let read = Index::parse(&text);
        // A line end that is lost joins two lines.
        let lost = entries.len() - read.runs().len();
        prop_assert!(lost <= 1 + usize::from(was == b'\n'), "{lost}");
        prop_assert_eq!(read.problems.is_empty(), lost == 0);
        for run in read.runs() {
            prop_assert!(entries.contains(run));
        }
    }

    #[test]
    fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let read = Index::parse(&bytes);
        prop_assert!(read.runs().is_empty());
    }
}

#[test]
fn lines_of_others_and_of_other_versions_are_told_with_their_numbers() {
    let good = line(&entry(1, 0.5, 0.01));
    let mut newer = entry(2, 0.5, 0.01);
    newer.format += 1;
    let text = format!(
        "{{\"level\":\"info\"}}\n{good}\n{}{}",
        line(&newer),
        &good[..40]
    );
    let read = Index::parse(text.as_bytes());
    assert_eq!(read.runs().len(), 1);
    let problems: Vec<String> = read.problems.iter().map(ToString::to_string).collect();
    problems[0].begins("line 1: expected a line of weigh's index");
    assert_eq!(problems[1], "line 4: another version of weigh wrote it");
    assert_eq!(problems[2], "line 5: it is cut off");
}

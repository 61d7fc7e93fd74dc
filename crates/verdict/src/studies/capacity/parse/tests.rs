use proptest::prelude::*;

use super::*;

fn limits(text: &str) -> Vec<(Quantity, Direction, f64)> {
    let objective: Objective = text.parse().unwrap();
    let said = |l: &&Limit| !matches!(l.quantity, Quantity::Errors | Quantity::Achieved);
    objective
        .limits()
        .iter()
        .filter(said)
        .map(|l| (l.quantity, l.direction, l.value))
        .collect()
}

#[test]
fn limits_are_read_with_their_units() {
    let p99 = Quantity::Quantile(0.99);
    for text in [
        "p99<50ms",
        " p99 < 50 ms ",
        "p99<50000us",
        "p99 <0.05s",
        "p99<50000µs",
    ] {
        let read = limits(text);
        assert_eq!(read.len(), 1, "{text}");
        assert_eq!((read[0].0, read[0].1), (p99, Direction::Below), "{text}");
        assert!((read[0].2 - 50_000.0).abs() < 1e-6, "{text}");
    }
    assert_eq!(
        limits("p50<=1ms and max<1s,mean<2ms"),
        [
            (Quantity::Quantile(0.5), Direction::AtMost, 1e3),
            (Quantity::Max, Direction::Below, 1e6),
            (Quantity::Mean, Direction::Below, 2e3),
        ]
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for line in include_str!("refused.txt").lines() {
        let (text, message) = line.split_once(" => ").unwrap();
        let found = text.parse::<Objective>().unwrap_err().to_string();
        assert_eq!(found, message, "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,30}") {
        let _ = text.parse::<Objective>();
    }

    #[test]
    fn nearly_right_texts_do_not_either(text in "(p[0-9.]{0,4}|errors|achieved|and|µs| |,|<|>|=|%|ms|1){0,12}") {
        if let Ok(objective) = text.parse::<Objective>() {
            prop_assert_eq!(objective.limits().len() >= 2, true);
        }
    }
}

//! Content that changes although it is compared.

use readings::{LoadReading, Wrong};

/// A note where answers were wrong because they differ from the first one.
pub fn note<'a>(mut loads: impl Iterator<Item = &'a LoadReading>) -> Option<&'static str> {
    loads
        .any(|load| load.wrong.iter().any(Wrong::differs_from_first))
        .then_some(
            "answers differ from the first one; if content may change by itself, --body-varies says \
             that it is not to be compared",
        )
}

#[cfg(test)]
mod tests {
    use readings::{FIRST_ANSWER, WrongKind};

    use super::*;

    #[test]
    fn only_answers_that_differ_from_the_first_are_content_that_may_change() {
        let load = |expected: String| LoadReading {
            wrong: vec![Wrong {
                kind: WrongKind::Content,
                expected,
                found: "content that differs from byte 4 on".into(),
            }],
            ..LoadReading::default()
        };
        let changing = load(format!("the content of {FIRST_ANSWER}"));
        let other = load("a body that contains `x`".into());
        let all = [other.clone(), changing];
        assert!(note(all.iter()).is_some_and(|text| text.contains("--body-varies")));
        assert_eq!(note([other].iter()), None);
    }
}

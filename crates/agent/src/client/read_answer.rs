//! Reads what an agent answers. It may be another program than it should be.

use crate::protocol::shortened::{REASON_BYTES_MAX, shortened};
use crate::protocol::wire::{Answer, Loaded};

/// How the answer begins that has all that a load measured.
const LOADED_BEGINS: &str = "{\"answer\":\"loaded\",";
/// The longest other answer: a driver's output and logs, escaped.
const OTHER_BYTES_MAX: usize = 64 << 20;
/// Fields of answers about loads with other numbers than those that are summed, such as times since
/// boot.
const NOT_SUMMED: [&str; 3] = ["measured", "seen", "profiles"];

/// The answer in a message.
///
/// # Errors
/// When it is none, or has a number that no load can have.
pub(crate) fn read_answer(message: &str) -> Result<Answer, String> {
    let read = match message.starts_with(LOADED_BEGINS) {
        // An enum is first read into a tree, which takes many times the memory of the text.
        true => serde_json::from_str(message).map(|loaded: Loaded| Answer::Loaded(loaded.into())),
        false if message.len() > OTHER_BYTES_MAX => {
            return Err(format!(
                "an answer is {} bytes long; expected at most {OTHER_BYTES_MAX}",
                message.len()
            ));
        }
        false => serde_json::from_str(message),
    };
    let answer = read.map_err(|e| {
        let why = shortened(&e.to_string(), REASON_BYTES_MAX);
        format!("its answer cannot be read: {why}")
    })?;
    let is_of_load = matches!(
        answer,
        Answer::Loaded(_) | Answer::Progress { .. } | Answer::Row(_)
    );
    match readings::first_number_above_limit(message.as_bytes(), &NOT_SUMMED) {
        Some(why) if is_of_load => Err(why),
        _ => Ok(answer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::wire::{Measured, Spans, Window};

    #[test]
    fn numbers_that_no_load_can_have_are_refused() {
        let progress = |requests: &str| {
            let text =
                format!(r#"{{"answer":"progress","segment":0,"requests":{requests},"errors":0}}"#);
            read_answer(&text)
        };
        assert!(progress("9007199254740992").is_ok());
        let error = progress("18446744073709551615").unwrap_err();
        assert!(
            error.contains("`requests` is 18446744073709551615"),
            "{error}"
        );
        let loaded = Answer::Loaded(Box::new(Loaded {
            readings: vec![readings::LoadReading::default()],
            // A machine may run for more than the 104 days of 2^53 ns.
            measured: vec![Measured {
                spans: Spans::of_one(
                    Window {
                        from_ns: 1 << 60,
                        to_ns: 1 << 61,
                    },
                    true,
                ),
                ..Default::default()
            }],
            ..Loaded::default()
        }));
        let text = serde_json::to_string(&loaded).unwrap();
        assert!(text.starts_with(LOADED_BEGINS));
        assert_eq!(read_answer(&text), Ok(loaded));
        for (from, to) in [
            ("\"requests\":0", "\"requests\":18446744073709551615"),
            ("\"duration_s\":0.0", "\"duration_s\":1e308"),
        ] {
            assert!(text.contains(from));
            let error = read_answer(&text.replacen(from, to, 1)).unwrap_err();
            assert!(error.contains("`readings."), "{error}");
        }
    }

    #[test]
    fn what_an_answer_says_of_itself_does_not_fill_the_memory() {
        let long = format!(r#"{{"answer":"{}"}}"#, "x".repeat(1 << 20));
        assert!(read_answer(&long).unwrap_err().len() < 2 * REASON_BYTES_MAX);
        let many = format!(
            r#"{{"answer":"loaded","readings":[{}0]}}"#,
            "0,".repeat(OTHER_BYTES_MAX / 2)
        );
        let error = read_answer(&many).unwrap_err();
        assert!(error.contains("cannot be read"), "{error}");
        let many = many.replacen("loaded", "measured", 1);
        let error = read_answer(&many).unwrap_err();
        assert!(error.contains("bytes long"), "{error}");
    }
}

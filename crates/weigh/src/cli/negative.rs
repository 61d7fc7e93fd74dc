//! Negative values of options.

use std::ffi::OsString;

use clap::{Arg, Command};

/// Joins an option and its value where the value begins with a minus and a digit: `-d -1s` becomes
/// `-d=-1s`. clap would take the value for an option, and never show it to the parser that says what
/// is expected. clap's `allow_hyphen_values` would take an option for a forgotten value instead.
pub fn joined(words: Vec<OsString>, program: &Command) -> Vec<OsString> {
    let verb = words.get(1).and_then(|word| word.to_str());
    let Some(verb) = verb.and_then(|verb| program.find_subcommand(verb)) else {
        return words;
    };
    let mut joined: Vec<OsString> = Vec::with_capacity(words.len());
    let mut are_options = true;
    for word in words {
        are_options &= word != "--";
        match joined.last_mut() {
            Some(last) if are_options && is_negative(&word) && takes_next(last, verb) => {
                last.push("=");
                last.push(word);
            }
            _ => joined.push(word),
        }
    }
    joined
}

/// No option has a digit for its short name.
fn is_negative(word: &OsString) -> bool {
    matches!(word.as_encoded_bytes(), [b'-', b'0'..=b'9' | b'.', ..])
}

/// Whether a word is an option of a verb whose value is the next word.
fn takes_next(word: &OsString, verb: &Command) -> bool {
    let Some(word) = word.to_str() else {
        return false;
    };
    let is_it = |arg: &&Arg| match word.strip_prefix("--") {
        Some(long) => {
            let mut aliases = arg.get_all_aliases().into_iter().flatten();
            arg.get_long() == Some(long) || aliases.any(|alias| alias == long)
        }
        None => arg
            .get_short()
            .is_some_and(|short| word == format!("-{short}")),
    };
    verb.get_arguments()
        .find(is_it)
        .is_some_and(|arg| arg.get_action().takes_values() && !arg.is_require_equals_set())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::cli::Cli;

    fn join(text: &str) -> Vec<OsString> {
        let words = text.split(' ').map(OsString::from).collect();
        joined(words, &Cli::command())
    }

    #[test]
    fn negative_values_reach_the_parsers_that_refuse_them() {
        for (words, says) in [
            ("load http://h/ -d -1s", "such as \"10s\" or \"150ms\""),
            ("load http://h/ --timeout -1s", "such as \"10s\""),
            ("load http://h/ -c -1", "-1 is not in 1..=1000000"),
            (
                "load http://h/ --rate -5",
                "such as 2000 or 2000/s, found `-5`",
            ),
            ("load http://h/ --rate -.5", "found `-.5`"),
            ("load http://h/ --cpus -1", "such as 2 or 0-3,5"),
            (
                "capacity http://h/ --slo p50<1ms --step -1s",
                "such as \"10s\"",
            ),
            (
                "compare a=http://h/ b=http://h/ --blocks -3",
                "-3 is not in 1..=10000",
            ),
        ] {
            let error = Cli::try_parse_from(join(&format!("weigh {words}")));
            let error = error.unwrap_err().to_string();
            assert!(error.contains(says), "{words}: {error}");
            assert!(!error.contains("unexpected argument"), "{words}: {error}");
        }
    }

    #[test]
    fn nothing_else_is_joined() {
        for words in [
            "weigh",
            "weigh load http://h/ -d --rate 5",
            "weigh load http://h/ -d -c 5",
            "weigh load http://h/ -q -1",
            "weigh load http://h/ --rate=5 -1",
            "weigh load http://h/ --absent -1",
            "weigh load -- -d -1s",
            "weigh run nginx --bottleneck -1",
            "weigh report -1",
        ] {
            let given: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            assert_eq!(join(words), given);
        }
        assert_eq!(
            join("weigh capacity u --slo -1").last().unwrap(),
            "--slo=-1"
        );
    }
}

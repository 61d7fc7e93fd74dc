//! Built-in words and their arguments.

use std::ops::Range;

use config::nearest::suggestion;
use config::units::shown;
use readings::requests::{DIGITS_MAX, Fill};

use super::FORMS;
use crate::fault::Fault;

/// Most keys of a Zipf distribution: whole numbers that a double holds exactly.
const KEYS_MAX: u64 = 1 << 53;
const EXPONENT_MAX: f64 = 100.0;

/// Reads a built-in word with its arguments, if it has any, which stands at `at`.
pub(super) fn read(text: &str, at: Range<usize>) -> Result<Fill, Fault> {
    let (word, rest) = match text.split_once('(') {
        Some((word, rest)) => (word.trim_end(), Some(rest)),
        None => (text, None),
    };
    let Some((_, form)) = FORMS.iter().find(|(built_in, _)| *built_in == word) else {
        let message = format!("there is no function `{}`", shown(word));
        let taken = FORMS.iter().filter(|(_, form)| form.contains('('));
        let help = suggestion(word, "functions", taken.map(|(_, form)| *form));
        let at = at.start..at.start + word.len();
        return Err(Fault::new(at, message, "no such function").help(help));
    };
    let wrong = |message: String| {
        let label = format!("expected `{form}`");
        Err(Fault::new(at.clone(), message, label))
    };
    let Some(rest) = rest else {
        return match word {
            "seq" => Ok(Fill::Seq),
            "uuid" => Ok(Fill::Uuid),
            "now" => Ok(Fill::Now),
            _ => wrong(format!("`{word}` needs arguments")),
        };
    };
    let Some(inside) = rest.strip_suffix(')') else {
        return wrong(format!("the arguments of `{word}` are not closed"));
    };
    let arguments: Vec<&str> = inside.split(',').map(str::trim).collect();
    match (word, arguments.as_slice()) {
        ("int", [from, to]) => match (from.parse(), to.parse()) {
            (Ok(from), Ok(to)) if from <= to => Ok(Fill::Int { from, to }),
            (Ok::<i64, _>(_), Ok::<i64, _>(_)) => {
                wrong(format!("`int` from {from} to {to} has no number"))
            }
            _ => wrong(format!(
                "`int` takes two whole numbers, found `{}`",
                shown(inside)
            )),
        },
        ("zipf", [keys, exponent]) => match (keys.parse(), exponent.parse()) {
            (Ok(keys @ 1..=KEYS_MAX), Ok(exponent)) if (0.0..=EXPONENT_MAX).contains(&exponent) => {
                Ok(Fill::Zipf { keys, exponent })
            }
            _ => wrong(format!(
                "`zipf` takes a number of keys from 1 to 2^53, and an exponent from 0 to \
                 {EXPONENT_MAX}, found `{}`",
                shown(inside)
            )),
        },
        ("hex", [digits]) => match digits.parse() {
            Ok(digits @ 1..=DIGITS_MAX) => Ok(Fill::Hex { digits }),
            _ => wrong(format!(
                "`hex` takes a number of digits from 1 to {DIGITS_MAX}, found `{}`",
                shown(inside)
            )),
        },
        ("seq" | "uuid" | "now", _) => wrong(format!("`{word}` takes no arguments")),
        (_, all) => wrong(format!(
            "`{word}` has {} argument{}",
            all.len(),
            if all.len() == 1 { "" } else { "s" }
        )),
    }
}

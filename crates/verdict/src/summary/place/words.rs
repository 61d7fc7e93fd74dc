//! A place in a sentence.

use crate::Place;
use readings::at_condition as at;

/// A subject under its condition.
pub fn place(one: &Place) -> String {
    format!("{}{}", one.subject, at(&one.condition))
}

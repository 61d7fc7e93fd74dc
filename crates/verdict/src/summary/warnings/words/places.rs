//! Several subjects under several conditions, in a few words.

use readings::text::{condition, counted, listed};
use readings::{Condition, at_condition as at};

use crate::Place;

/// The most subjects, and the most conditions, that are named one by one.
const NAMED_MAX: usize = 4;

/// `direct and nginx`, `direct at connections=8`, `5 subjects under 4 conditions`.
pub(crate) fn places(all: &[&Place]) -> String {
    let mut subjects: Vec<(&str, Vec<&Condition>)> = Vec::new();
    for one in all {
        let known = subjects.iter_mut().find(|(name, _)| *name == one.subject);
        match known {
            Some((_, conditions)) if conditions.contains(&&one.condition) => {}
            Some((_, conditions)) => conditions.push(&one.condition),
            None => subjects.push((&one.subject, vec![&one.condition])),
        }
    }
    for (_, conditions) in &mut subjects {
        conditions.sort_unstable();
    }
    let first = subjects.first().map(|(_, conditions)| conditions.clone());
    let are_alike = subjects
        .iter()
        .all(|(_, conditions)| Some(conditions) == first.as_ref());
    if let (true, Some(conditions)) = (are_alike, first) {
        let names: Vec<&str> = subjects.iter().map(|(name, _)| *name).collect();
        return format!("{}{}", named(&names), under(&conditions));
    }
    if subjects.len() > NAMED_MAX {
        return named(&subjects.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
    let each = subjects
        .iter()
        .map(|(name, conditions)| format!("{name}{}", under(conditions)));
    listed(&each.collect::<Vec<_>>())
}

fn named(names: &[&str]) -> String {
    match names.len() > NAMED_MAX {
        true => counted(names.len(), "subject"),
        false => listed(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>()),
    }
}

fn under(conditions: &[&Condition]) -> String {
    match conditions {
        [] => String::new(),
        [one] => at(one),
        some if some.len() > NAMED_MAX => format!(" under {}", counted(some.len(), "condition")),
        some => {
            let each: Vec<String> = some.iter().map(|one| condition(one)).collect();
            format!(" at {}", each.join("; "))
        }
    }
}

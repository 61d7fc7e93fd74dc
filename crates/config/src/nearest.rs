//! The right name that is nearest to a wrong one.

/// The candidate nearest to `wrong`, when it is near enough to be what was meant.
///
/// Distance is counted in edits (Damerau and Levenshtein: insertions, deletions, substitutions,
/// swapped neighbours); up to a third of the length, at least one, counts as near. A beginning of
/// three letters or more counts as near, too.
pub fn nearest<'c>(wrong: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    // The distance costs the product of both lengths, and no name is this long.
    if wrong.chars().count() > 64 {
        return None;
    }
    let lower = wrong.to_lowercase();
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let other = candidate.to_lowercase();
            let reach = (lower.chars().count().max(other.chars().count()) / 3).max(1);
            let edits = strsim::damerau_levenshtein(&lower, &other);
            let begins = lower.chars().count() >= 3 && other.starts_with(&lower);
            (edits <= reach || begins).then_some((edits, candidate))
        })
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Help for a wrong name: the nearest right one, or all of them.
pub fn suggestion<'c>(
    wrong: &str,
    what: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    if let Some(near) = nearest(wrong, candidates.iter().copied()) {
        return format!("did you mean `{near}`?");
    }
    match candidates.as_slice() {
        [] => format!("there are no {what}"),
        some => format!("known {what}: {}", list(some)),
    }
}

/// The nearest right name, or all of them and then what else is possible.
pub fn suggestion_or<'c>(
    wrong: &str,
    what: &str,
    candidates: impl IntoIterator<Item = &'c str>,
    otherwise: &str,
) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let help = suggestion(wrong, what, candidates.iter().copied());
    if nearest(wrong, candidates).is_some() {
        help
    } else {
        format!("{help}; {otherwise}")
    }
}

fn list(names: &[&str]) -> String {
    const SHOWN: usize = 24;
    let mut text = names
        .iter()
        .take(SHOWN)
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > SHOWN {
        text.push_str(&format!(" and {} more", names.len() - SHOWN));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger_are_recognised_and_other_words_are_not() {
        let keys = ["blocks", "window", "warmup", "connections"];
        assert_eq!(nearest("block", keys), Some("blocks"));
        assert_eq!(nearest("widnow", keys), Some("window"));
        assert_eq!(nearest("conn", keys), Some("connections"));
        assert_eq!(nearest("Warmup", keys), Some("warmup"));
        assert_eq!(nearest("banana", keys), None);
    }

    #[test]
    fn without_a_near_name_all_are_listed() {
        assert_eq!(
            suggestion("banana", "keys", ["a1", "b1"]),
            "known keys: `a1`, `b1`"
        );
        assert_eq!(suggestion("banana", "recipes", []), "there are no recipes");
    }
}

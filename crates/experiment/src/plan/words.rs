//! What a run will compare, in words.

use crate::spec::{Experiment, Factor, Rate};

/// What will be compared, each in a phrase; empty if nothing will be.
///
/// With one subject these are the levels of every factor, with several also those of the factors in
/// `design.reference`, for each of them.
pub(crate) fn compared(experiment: &Experiment) -> Vec<String> {
    let design = &experiment.design;
    let names = experiment.subjects.iter().map(|one| one.name.as_str());
    let (subjects, others): (Vec<&str>, Vec<&str>) = match names.clone().count() {
        1 => (names.collect(), Vec::new()),
        _ => (
            vec!["each subject"],
            names.filter(|name| *name != design.baseline).collect(),
        ),
    };
    let has_own_rates = experiment.load.rate == Rate::Auto
        && !design.latency_window.is_zero()
        && experiment
            .factors
            .iter()
            .all(|factor| factor.name != "rate");
    let without = match has_own_rates {
        true => " (not by latency: each condition has a rate of its own, unless [load] has one)",
        false => "",
    };
    let of_levels = |factor: &Factor| {
        let named = design.reference.get(&factor.name);
        let is_asked = experiment.subjects.len() == 1 || named.is_some();
        let first = factor.levels.first().map(|level| &level.text);
        (is_asked && factor.levels.len() > 1).then(|| {
            format!(
                "the levels of {} of {}, against {}{without}",
                factor.name,
                subjects.join(", "),
                named.or(first).map_or("", |level| level)
            )
        })
    };
    let with_baseline = format!("{}, against {}", others.join(", "), design.baseline);
    let of_subjects = (!others.is_empty()).then_some(with_baseline);
    let levels = experiment.factors.iter().filter_map(of_levels);
    of_subjects.into_iter().chain(levels).collect()
}

/// The line of a plan.
pub(crate) fn compared_line(compared: &[String]) -> String {
    match compared {
        [] => {
            "nothing is compared: there is one subject, and no factor with two levels\n".to_owned()
        }
        some => format!("compared: {}\n", some.join("; ")),
    }
}

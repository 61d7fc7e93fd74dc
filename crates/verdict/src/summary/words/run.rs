//! How the run was carried out, in sentences.

use std::collections::BTreeSet;

use crate::{Analysis, Comparison, ProbesCost, Stage};
use readings::text::{counted, fraction, number, percent, rate};
use readings::{RateChoice, WarmUpChoice};

use crate::metric::words::names_rate;
use readings::at_condition as at;

/// How many questions a run's comparisons answer, what is judged together, and which error that allows;
/// nothing without comparisons.
pub fn questions(analysis: &Analysis) -> Option<String> {
    let comparisons: Vec<_> = analysis.all_comparisons().collect();
    let alpha = 1.0 - comparisons.first()?.confidence;
    let question = |c: &&Comparison| (c.condition.clone(), c.metric, c.baseline.clone());
    let count = comparisons
        .iter()
        .map(question)
        .collect::<BTreeSet<_>>()
        .len();
    let compared = comparisons.len();
    let pairs: usize = analysis.tiers.iter().map(|one| one.pairs.len()).sum();
    let places = match pairs {
        0 => String::new(),
        _ => format!(
            "; the places rest on {} of subjects, in {}",
            counted(pairs, "pair"),
            counted(analysis.tiers.len(), "question")
        ),
    };
    let over_all = match count {
        1 => String::new(),
        _ => format!(
            ", so at most {} such errors are expected in all of them",
            number(alpha * count as f64, 2, false)
        ),
    };
    Some(format!(
        "{} {} {}, a metric under a condition{}{places}. A question is judged as a whole: the \
         chance of any false difference in it is at most {}{over_all}.",
        counted(compared, "comparison"),
        if compared == 1 { "answers" } else { "answer" },
        counted(count, "question"),
        if count == 1 { "" } else { " each" },
        fraction(alpha)
    ))
}

/// Where in its looks a run stands.
pub fn stage(stage: &Stage) -> String {
    let planned = stage.looks.planned();
    let blocks = counted(planned as usize, "block");
    let (count, budget) = (stage.looks.blocks().len(), fraction(stage.alpha));
    let done = stage.blocks_done;
    let each = match count {
        3 => "a third".to_owned(),
        n => format!("1/{n}"),
    };
    match (stage.looks.is_fixed(), stage.look) {
        (true, Some(_)) => format!(
            "fixed design: one look, after all {blocks}, with the whole error budget of {budget}"
        ),
        (true, None) => {
            format!("fixed design: {done} of {blocks} done, judged as if no more had been planned")
        }
        (false, Some(look)) => format!(
            "look {look} of {count}, after {done} of at most {planned} blocks; each look has \
             {each} of the error budget of {budget}"
        ),
        (false, None) => format!(
            "{done} of at most {planned} blocks done, between the looks; judged like a look, with \
             {each} of the error budget of {budget}"
        ),
    }
}

/// What sampling servers and machine cost.
pub fn probes(cost: &ProbesCost) -> String {
    format!(
        "servers and machine were sampled {} times a second of measured time, which took {} of a \
         core",
        number(cost.looks_per_s, 1, false),
        percent(cost.share_of_core * 100.0, 2, false)
    )
}

/// At which rate latency is compared.
pub fn rate_choice(choice: &RateChoice) -> String {
    let unit = if choice.of_users {
        "users/s"
    } else {
        "requests/s"
    };
    let from = match choice.slowest_per_s {
        Some(slowest) => format!(
            "{} of the {} {unit} that the slowest subject carried in the first block",
            fraction(((choice.rate_per_s / slowest) * 100.0).round() / 100.0),
            rate(slowest)
        ),
        None => "as the experiment says".to_owned(),
    };
    let per_s = match names_rate(&choice.condition) {
        true => "that rate".to_owned(),
        false => format!("{} {unit}", rate(choice.rate_per_s)),
    };
    format!(
        "latency{} is compared in an open loop at {per_s} for every subject, {from}",
        at(&choice.condition)
    )
}

/// Why servers are warmed up for longer than declared.
pub fn warm_up(choice: &WarmUpChoice) -> String {
    let WarmUpChoice {
        condition,
        warmup_s,
        declared_s,
        subject,
        faster,
        at_most,
    } = choice;
    let (warmup, declared) = (number(*warmup_s, 1, false), number(*declared_s, 1, false));
    let end = match at_most {
        true => "; that is the longest allowed, and a subject still became faster at its end",
        false => "",
    };
    format!(
        "the warm-up{} is {warmup} s, as {subject} still became {} faster after the declared \
         {declared} s{end}",
        at(condition),
        percent((faster - 1.0) * 100.0, 0, false)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{analyse, closed, done, header, open, trial};
    use testing::Text as _;

    #[test]
    fn the_page_says_how_much_is_judged_together_and_which_error_that_allows() {
        let of = |names: &[&str], latency: bool| {
            let mut header = header(5);
            header.subjects = names.iter().map(|name| (*name).to_owned()).collect();
            let mut trials = Vec::new();
            for block in 1..=5 {
                for name in names {
                    let open = latency.then(|| open(1000.0, 400.0 + f64::from(block)));
                    let closed = closed(1000.0 + f64::from(block));
                    trials.push(trial(block, name, false, done(Some(closed), open)));
                }
            }
            questions(&analyse(&header, &trials))
        };
        assert_eq!(
            of(&["direct", "balance"], false).unwrap(),
            "1 comparison answers 1 question, a metric under a condition. A question is judged as a \
             whole: the chance of any false difference in it is at most 5%."
        );
        let several = of(&["direct", "balance", "nginx"], true).unwrap();
        several.begins("6 comparisons answer 3 questions, a metric under a condition each");
        several.ends("at most 5%, so at most 0.15 such errors are expected in all of them.");
        assert_eq!(of(&["direct"], false), None);
    }
}

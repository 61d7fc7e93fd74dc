//! How the run was carried out, in sentences.

use crate::{ProbesCost, Stage};
use readings::text::{counted, fraction, number, percent, rate};
use readings::{RateChoice, WarmUpChoice};

use crate::metric::words::names_rate;
use readings::at_condition as at;

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
    let from = match choice.slowest_per_s {
        Some(slowest) => format!(
            "{} of the {} requests/s that the slowest subject carried in the first block",
            fraction(((choice.rate_per_s / slowest) * 100.0).round() / 100.0),
            rate(slowest)
        ),
        None => "as the experiment says".to_owned(),
    };
    let per_s = match names_rate(&choice.condition) {
        true => "that rate".to_owned(),
        false => format!("{} requests/s", rate(choice.rate_per_s)),
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
    let end = match at_most {
        true => "; it still became faster at the end of that, and no longer one was allowed",
        false => "",
    };
    format!(
        "the warm-up{} is {} s instead of {} s: after that {subject} still became {} faster{end}",
        at(condition),
        number(*warmup_s, 1, false),
        number(*declared_s, 1, false),
        percent((faster - 1.0) * 100.0, 0, false)
    )
}

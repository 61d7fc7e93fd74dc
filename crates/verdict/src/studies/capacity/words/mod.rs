//! What a search for the capacity under an objective found.

use crate::capacity::{Bound, CannotJudge, Capacity, HOLDS, Judgement, Objective, Offer, Quantity};
use readings::text::{counted, grouped, number, percent, rate, time};

use crate::capacity::CapacityView;
use crate::trial::flaw::words::NO_ANSWER;
use crate::trial::lag::words::late_client;

/// From this correlation of outcomes on, that of a capacity with 0.8 between successive trials, fewer
/// intervals hold than they promise.
const STRONG_CORRELATION: f64 = 0.5;

/// What was found, in sentences.
pub fn capacity(view: &CapacityView<'_>) -> Vec<String> {
    let (capacity, objective) = (view.capacity, view.objective);
    let mut said = found(capacity, objective);
    let conditions = objective.conditions();
    if !conditions.is_empty() {
        said.push(format!("A trial also has to keep {conditions}."));
    }
    said.extend(short_steps(view));
    if !capacity.complete {
        said.push(
            "The search was not finished: this is what the trials that were made tell.".to_owned(),
        );
    }
    let all_busy = match objective.offered() {
        Offer::Requests => crate::capacity::all_busy_at(capacity, view.steps, view.connections),
        // A user holds a connection in pauses too.
        Offer::Users | Offer::Streams => None,
    };
    said.extend(all_busy.map(|rate_per_s| {
        format!(
            "At {} requests/s all {} were busy, and the server answered as fast as at lower rates: \
             the number of connections is the limit, not the server; more of them (-c) would carry \
             more.",
            rate(rate_per_s),
            counted(view.connections as usize, "connection")
        )
    }));
    said
}

/// The overload that steps were too short to detect.
fn short_steps(view: &CapacityView<'_>) -> Option<String> {
    let undetected = view
        .undetected
        .filter(|undetected| undetected.exceeds_target)?;
    let overload = undetected.overload;
    let above = |digits| format!("up to {} above", percent(overload * 100.0, digits, false));
    let rates = match overload {
        _ if overload.is_infinite() => "however far above".to_owned(),
        _ if overload < 0.1 => above(1),
        _ if overload < 1.0 => above(0),
        _ => format!("up to {} times", number(1.0 + overload, 1, false)),
    };
    Some(format!(
        "Steps of {} end before the queue is long enough: trials can meet the objective at rates \
         {rates} the saturation throughput; allow longer steps (--step-max).",
        time(undetected.measured_s * 1e6)
    ))
}

/// Why a trial did not meet its objective, a part of a sentence each; empty if it did.
pub fn why_unmet(judgement: &Judgement) -> Vec<String> {
    match judgement {
        Judgement::Met => Vec::new(),
        Judgement::Missed(limits) => {
            let missed = limits.iter();
            let missed = missed
                .map(|(limit, value)| format!("{}, not {limit}", limit.quantity.write(*value)));
            missed.collect()
        }
        Judgement::Unusable(why) => vec![cannot_judge(why)],
    }
}

fn cannot_judge(why: &CannotJudge) -> String {
    match why {
        CannotJudge::ClosedLoop => "a closed loop offers no rate".to_owned(),
        CannotJudge::ClientBusy => "the client was too busy to offer the rate on time".to_owned(),
        CannotJudge::LateClient(late) => late_client(late),
        CannotJudge::NoAnswer => NO_ANSWER.to_owned(),
        CannotJudge::NoLag => "it is not known when messages were due: name the sender's pace \
                               (--pace)"
            .to_owned(),
        CannotJudge::TooFewRequests {
            quantile,
            requests,
            needed,
        } => format!(
            "too few requests stand behind {}: {} of the {} that it takes",
            Quantity::Quantile(*quantile),
            grouped(*requests),
            grouped(*needed)
        ),
    }
}

/// What is offered: `requests/s`, `users/s`, or `streams`.
pub fn offered(objective: &Objective) -> &'static str {
    match objective.offered() {
        Offer::Requests => "requests/s",
        Offer::Users => "users/s",
        Offer::Streams => "streams",
    }
}

/// `2,000 requests/s`, or `400 streams`.
fn amount(objective: &Objective, of: f64) -> String {
    format!("{} {}", rate(of), offered(objective))
}

fn found(capacity: &Capacity, objective: &Objective) -> Vec<String> {
    let of_rate = |at: f64| capacity.trials.iter().find(|t| t.rate_per_s == at);
    let trials = |at: f64| {
        of_rate(at).map_or(String::new(), |t| {
            let judged = t.held + t.missed;
            format!("{} of {} held", t.held, counted(judged as usize, "trial"))
        })
    };
    // Few trials that all held do not show that nearly all would.
    let sure = |at: f64| {
        of_rate(at).map_or(String::new(), |t| {
            format!(
                "{}, so at least {} of all do, with 95% confidence",
                trials(at),
                percent(t.holds_at_least() * 100.0, 0, false)
            )
        })
    };
    let amount = |at: f64| amount(objective, at);
    let (lower, upper) = (capacity.lower_per_s, capacity.upper_per_s);
    match (lower, upper, capacity.upper_is) {
        (Some(lower), Some(upper), Bound::Missed) => of_both(
            capacity,
            objective,
            [(lower, trials(lower)), (upper, trials(upper))],
        ),
        (Some(lower), Some(upper), _) => vec![format!(
            "At least {} keep {objective} ({}): the client could not offer {} on time, so more is \
             not known.",
            amount(lower),
            sure(lower),
            rate(upper)
        )],
        (Some(lower), None, _) => vec![format!(
            "At least {} keep {objective} ({}): nothing higher was offered.",
            amount(lower),
            sure(lower)
        )],
        (None, Some(upper), Bound::Client) => vec![format!(
            "Nothing can be said on {objective}: the client could not offer {} on time, nor \
             anything lower that was tried.",
            amount(upper)
        )],
        (None, Some(upper), _) => vec![format!(
            "{} kept {objective}; the lowest that was offered is {} ({}).",
            match objective.offered() {
                Offer::Requests | Offer::Users => "No rate",
                Offer::Streams => "No number of streams",
            },
            amount(upper),
            trials(upper)
        )],
        (None, None, _) => vec![format!(
            "Nothing was measured that says anything on {objective}."
        )],
    }
}

/// The rate that holds in most trials, and the bounds between which half of them hold.
fn of_both(
    capacity: &Capacity,
    objective: &Objective,
    [(lower, of_lower), (upper, of_upper)]: [(f64, String); 2],
) -> Vec<String> {
    let mut said = Vec::new();
    if let (Some(holds), Some(low), Some(high)) = (
        capacity.holds_per_s,
        capacity.low_per_s,
        capacity.high_per_s,
    ) {
        let mut text = format!(
            "The highest {} that keeps {objective} in {} of the trials is {} (95% interval {} to {}",
            match objective.offered() {
                Offer::Requests | Offer::Users => "rate",
                Offer::Streams => "number",
            },
            percent(HOLDS * 100.0, 0, false),
            amount(objective, holds),
            rate(low),
            rate(high)
        );
        if capacity.correlation > 0.0 {
            text.push_str(&format!(
                ", widened since successive trials resemble each other: correlation {}",
                number(capacity.correlation, 2, false)
            ));
        }
        if capacity.correlation >= STRONG_CORRELATION {
            text.push_str(
                "; with so much of it such intervals held in nine of ten simulated searches",
            );
        }
        said.push(text + ").");
    }
    said.push(format!(
        "About half of the trials hold between {} ({of_lower}) and {} ({of_upper}).",
        rate(lower),
        amount(objective, upper)
    ));
    said
}

#[cfg(test)]
mod tests;

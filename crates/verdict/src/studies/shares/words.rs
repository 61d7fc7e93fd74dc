//! Sentences on what back ends received.

use readings::AgeReading;
use readings::text::{condition, grouped, number, percent};

use super::{BackEndShare, Hits, Shares};

/// ``nginx` sends 25.0% [24.9%, 25.1%] to each of 4 back ends`, or who gets more and who less.
pub fn shares(one: &Shares) -> String {
    let mut text = format!("`{}`", one.subject);
    if !one.condition.is_empty() {
        text += &format!(" ({})", condition(&one.condition));
    }
    let mut parts = Vec::new();
    parts.extend(one.hits.as_ref().map(|hits| answered(one, hits)));
    if one.back_ends.len() > 1 && one.received > 0 {
        parts.push(format!("sends {}", sent(one)));
    }
    if one.hits.is_none() && one.per_request >= 1.0 + super::PER_REQUEST {
        let per_request = number(one.per_request, 2, false);
        parts.push(format!(
            "sends {per_request} requests upstream per client request"
        ));
    }
    text += &format!(" {}", parts.join(", and "));
    text += &one.ages.as_ref().map_or_else(String::new, aged);
    match one.back_ends.iter().any(|end| end.is_off) {
        false if are_weighed(one) => text += ", as weighted",
        true if are_weighed(one) => {
            let intended = one.back_ends.iter().map(|end| {
                let share = percent(end.intended * 100.0, 1, false);
                format!("{share} to `{}`", end.server)
            });
            let intended: Vec<String> = intended.collect();
            text += &format!("; their weights ask for {}", intended.join(", "));
        }
        true => {
            let equal = percent(100.0 / one.back_ends.len() as f64, 1, false);
            text += &format!("; equal shares are {equal}");
        }
        false => {}
    }
    text
}

/// Whether the back ends ought to have different shares.
fn are_weighed(one: &Shares) -> bool {
    let mut ends = one.back_ends.iter().map(|end| end.intended);
    let first = ends.next();
    ends.any(|other| Some(other) != first)
}

fn answered(one: &Shares, hits: &Hits) -> String {
    let decimals = decimals(hits.ratio);
    let bytes = hits.byte_ratio.map_or_else(String::new, |ratio| {
        format!(" and {} of the bytes", shown(ratio, decimals))
    });
    format!(
        "answers {} of the requests{bytes} itself: {} of {} reached the back end{}",
        with_interval(hits.ratio, hits.lower, hits.upper, decimals),
        grouped(one.received),
        grouped(one.requests),
        if one.back_ends.len() == 1 { "" } else { "s" }
    )
}

/// `; by their Age, answers are 0.4 s old on average, at most 2 s; 12 of 3,000 are older than their
/// max-age`.
fn aged(ages: &AgeReading) -> String {
    let mean_s = ages.sum_s as f64 / ages.answers.max(1) as f64;
    let stale = match ages.limited {
        0 => String::new(),
        limited => format!(
            "; {} of {} are older than their max-age",
            grouped(ages.stale),
            grouped(limited)
        ),
    };
    format!(
        "; by their Age, answers are {} s old on average, at most {} s{stale}",
        number(mean_s, 1, false),
        grouped(ages.highest_s)
    )
}

/// The back ends, those that cannot be told apart together.
fn sent(one: &Shares) -> String {
    let mut ends: Vec<&BackEndShare> = one.back_ends.iter().collect();
    ends.sort_by(|a, b| a.share.total_cmp(&b.share));
    let mut groups: Vec<Vec<&BackEndShare>> = Vec::new();
    for end in ends {
        match groups.last_mut() {
            // Ascending, so the first of a group is the farthest away.
            Some(group)
                if end.intended == group[0].intended
                    && (end.lower <= group[0].upper || !(end.is_off || group[0].is_off)) =>
            {
                group.push(end);
            }
            _ => groups.push(vec![end]),
        }
    }
    let count = one.back_ends.len();
    let shown = groups.iter().map(|group| {
        let share = group.iter().map(|end| end.share).sum::<f64>() / group.len() as f64;
        let lower = group.iter().map(|end| end.lower).fold(1.0, f64::min);
        let upper = group.iter().map(|end| end.upper).fold(0.0, f64::max);
        let to = match group.as_slice() {
            all if all.len() == count => format!("each of {count} back ends"),
            [end] => format!("`{}`", end.server),
            some => {
                let mut names: Vec<String> =
                    some.iter().map(|end| format!("`{}`", end.server)).collect();
                names.sort_unstable();
                format!("each of {}", names.join(", "))
            }
        };
        format!("{} to {to}", with_interval(share, lower, upper, 1))
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Above 99% what is missed shows only in the second decimal.
fn decimals(ratio: f64) -> usize {
    if ratio > 0.99 { 2 } else { 1 }
}

fn shown(share: f64, decimals: usize) -> String {
    percent(share * 100.0, decimals, false)
}

fn with_interval(share: f64, lower: f64, upper: f64, decimals: usize) -> String {
    let shown = |share| shown(share, decimals);
    format!("{} [{}, {}]", shown(share), shown(lower), shown(upper))
}

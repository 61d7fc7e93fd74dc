//! Latency against offered rate, in sentences.

use crate::{BoundRate, Contrast, CurveRow, LatencyCurves, Lower, Passes, PointFlaw, SubjectCurve};
use readings::text::{counted, fraction, grouped, rate};

use crate::trial::flaw::words::{NO_REASON, client_busy, trial_flaw};
use readings::at_condition as at;
use readings::text::compact::time;

/// All that a condition's curves say: where bounds are passed, which is lower where, and what could
/// not be offered.
pub fn curves(curves: &LatencyCurves) -> Vec<String> {
    let place = at(&curves.condition);
    let mut said: Vec<String> = bounds_us(curves)
        .into_iter()
        .filter_map(|bound_us| bound(curves, bound_us, &place))
        .collect();
    let contrasts = curves.contrasts.iter().filter(|one| one.quantile < 0.999);
    said.extend(contrasts.filter_map(|one| contrast(one, &place)));
    said.extend(
        curves
            .subjects
            .iter()
            .filter_map(|one| overloaded(one, &place)),
    );
    let subjects = || curves.subjects.iter();
    said.extend(subjects().filter_map(|one| unsettled(one, &place)));
    said.extend(subjects().filter_map(|one| unusable(one, &place)));
    said.extend(client(curves, &place));
    said
}

fn bounds_us(curves: &LatencyCurves) -> Vec<f64> {
    let first = curves.subjects.first();
    let bounds = first.map_or(&[][..], |one| &one.bounds);
    bounds.iter().map(|one| one.bound_us).collect()
}

/// `balance's p99 passes 5.00ms at 21,000/s [20,000, 22,000], direct's at 44,000/s [43,000, 45,000].`
/// Nothing where no subject's does within what was measured.
fn bound(curves: &LatencyCurves, bound_us: f64, place: &str) -> Option<String> {
    let each = curves.subjects.iter().filter_map(|one| {
        let bound = one.bounds.iter().find(|it| it.bound_us == bound_us)?;
        Some((one, bound))
    });
    let each: Vec<(&SubjectCurve, &BoundRate)> = each.collect();
    let within = |(_, bound): &&(&SubjectCurve, &BoundRate)| bound.passes == Passes::Within;
    each.iter().find(within)?;
    let parts = each.iter().enumerate().map(|(number, (subject, bound))| {
        let name = &subject.subject;
        let lead = match number {
            0 => format!("{name}'s p99 passes {}", tidy(bound_us)),
            _ => format!("{name}'s"),
        };
        match bound.passes {
            Passes::Within => format!("{lead} at {}", rate_with_interval(bound)),
            Passes::AtMost => format!("{lead} at {}/s at most", rate(bound.rate_per_s)),
            Passes::AtLeast => format!("{lead} at {}/s at least", rate(bound.rate_per_s)),
        }
    });
    let parts: Vec<String> = parts.collect();
    Some(format!("{}{place}.", parts.join(", ")))
}

/// `21,000/s [20,000, 22,000]`.
pub fn rate_with_interval(bound: &BoundRate) -> String {
    let value = rounded(bound.rate_per_s);
    match (bound.low_per_s, bound.high_per_s) {
        (Some(low), Some(high)) => format!("{value}/s [{}, {}]", rounded(low), rounded(high)),
        (Some(low), None) => format!("{value}/s [{} and more]", rounded(low)),
        (None, Some(high)) => format!("{value}/s [at most {}]", rounded(high)),
        (None, None) => format!("{value}/s"),
    }
}

/// A rate with three digits: what is interpolated deserves no more.
fn rounded(per_s: f64) -> String {
    if per_s < 100.0 {
        return rate(per_s);
    }
    let unit = 10_f64.powf(per_s.log10().floor() - 2.0);
    rate((per_s / unit).round() * unit)
}

/// A round time without the zeros that a measured one would carry.
pub fn tidy(us: f64) -> String {
    let text = time(us);
    let at = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (figure, unit) = text.split_at(at);
    match figure.contains('.') {
        true => {
            let figure = figure.trim_end_matches('0').trim_end_matches('.');
            format!("{figure} {unit}")
        }
        false => format!("{figure} {unit}"),
    }
}

fn quantile(share: f64) -> &'static str {
    match share {
        s if s < 0.6 => "median",
        s if s < 0.995 => "p99",
        _ => "p99.9",
    }
}

/// `nginx's p99 is lower up to 12,000/s, haproxy's beyond 14,000/s; they cross about 13,000/s.`
fn contrast(contrast: &Contrast, place: &str) -> Option<String> {
    let what = quantile(contrast.quantile);
    if let Some(lower) = contrast.always_lower() {
        let name = contrast.name(lower)?;
        let other = match lower {
            Lower::Subject => &contrast.other,
            _ => &contrast.subject,
        };
        let settled = contrast.rates.iter().filter(|(_, one)| *one == lower);
        let settled: Vec<f64> = settled.map(|(rate, _)| *rate).collect();
        let (first, last) = (settled.first()?, settled.last()?);
        return Some(match settled.len() == contrast.rates.len() {
            true => format!(
                "{name}'s {what} is lower than {other}'s at {}{place}.",
                match settled.len() {
                    1 => format!("the one rate that both were offered, {}/s", rate(*first)),
                    _ => format!("every rate from {} to {}/s", rate(*first), rate(*last)),
                }
            ),
            false => format!(
                "{name}'s {what} is lower than {other}'s at {} of {} rates{place} ({}/s); at the others \
                 that is not settled.",
                settled.len(),
                contrast.rates.len(),
                match settled.len() {
                    1 => rate(*first),
                    _ => format!("{} to {}", rate(*first), rate(*last)),
                }
            ),
        });
    }
    let parts: Vec<String> = contrast
        .crossings
        .iter()
        .map(|crossing| {
            let below = &crossing.lower_below;
            let beyond = match *below == contrast.subject {
                true => &contrast.other,
                false => &contrast.subject,
            };
            let about = crossing.rate_per_s;
            let about = about.map(|rate| format!("; they cross at about {}/s", rounded(rate)));
            format!(
                "{below}'s {what} is lower up to {}/s, {beyond}'s from {}/s on{}",
                rate(crossing.low_per_s),
                rate(crossing.high_per_s),
                about.unwrap_or_default()
            )
        })
        .collect();
    (!parts.is_empty()).then(|| format!("{}{place}.", parts.join("; then ")))
}

/// The first rate that was more than a subject carried.
fn overloaded(subject: &SubjectCurve, place: &str) -> Option<String> {
    let rows = || subject.rates.iter();
    let first = rows().find(|row| row.overloaded > 0)?;
    let answered = first.carried_per_s;
    let answered =
        answered.map(|per_s| format!("; it answered about {}/s of them", rounded(per_s)));
    Some(format!(
        "{} was overloaded at {}/s in {} of {}{place}{}; no latency there.",
        subject.subject,
        rate(first.rate_per_s),
        first.overloaded,
        counted(first.blocks, "block"),
        answered.unwrap_or_default()
    ))
}

/// Points whose slices were too short for the queue to settle.
fn unsettled(subject: &SubjectCurve, place: &str) -> Option<String> {
    let rows = || subject.rates.iter().chain(&subject.shares);
    let short = rows().filter(|row| !row.settled && !row.latency_us.is_empty());
    let first = short.min_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))?;
    let longer = first.settles_in_s.map(|s| {
        let window = time((s * 10.0).ceil() * 1e5);
        format!("; curve_window = \"{window}\" would be long enough at that rate")
    });
    Some(format!(
        "{}'s latency is too low from {}/s on{place}: its queue does not settle within a slice{}.",
        subject.subject,
        rate(first.rate_per_s),
        longer.unwrap_or_default()
    ))
}

/// Points that lack blocks, with the first reason.
fn unusable(subject: &SubjectCurve, place: &str) -> Option<String> {
    let rows = || subject.rates.iter().chain(&subject.shares);
    let some = rows().filter(|row| row.unusable > 0);
    let (first, count) = (some.clone().next()?, some.count());
    Some(format!(
        "{count} of {} of {} cannot be used in all blocks{place}; at {}/s: {}.",
        counted(rows().count(), "point"),
        subject.subject,
        rate(first.rate_per_s),
        match &first.reason {
            Some(flaw) => point_flaw(flaw),
            None => NO_REASON.to_owned(),
        }
    ))
}

/// What the client could not offer.
fn client(curves: &LatencyCurves, place: &str) -> Option<String> {
    let client = curves.client_per_s?;
    let capacities = curves.subjects.iter().filter_map(|one| one.capacity_per_s);
    let fastest = capacities.fold(0.0, f64::max);
    (client < 0.9 * fastest).then(|| {
        format!(
            "rates beyond {}/s were left out{place}: the client could not be trusted to offer them on \
             time; give it more CPUs.",
            rounded(client)
        )
    })
}

/// What the picture and the table of curves show, in a line.
pub fn curve_legend(curves: &LatencyCurves) -> String {
    format!(
        "open loop with Poisson arrivals; geometric mean over {} with {} intervals at each rate; \
         [?]: an interval that spans more than a factor of ten; +: too low, as the queue does not settle \
         within a slice",
        counted(curves.blocks, "block"),
        fraction(curves.confidence)
    )
}

/// A point in words, for a pointer over its mark.
pub fn curve_point(subject: &str, row: &CurveRow) -> String {
    let place = match row.share {
        Some(share) => format!(
            "{} of its capacity, {}/s",
            fraction(share),
            rate(row.rate_per_s)
        ),
        None => format!("{}/s", rate(row.rate_per_s)),
    };
    if row.overloaded > 0 {
        let carried = row
            .carried_per_s
            .map(|carried| format!(", answered {}/s", rounded(carried)));
        return format!(
            "{subject} at {place}: overloaded{}",
            carried.unwrap_or_default()
        );
    }
    let each = row.latency_us.iter().map(|one| {
        let interval = one.low.zip(one.high);
        let interval = interval.map(|(low, high)| format!(" [{}, {}]", time(low), time(high)));
        format!(
            "{} {}{}",
            quantile(one.quantile),
            time(one.value),
            interval.unwrap_or_default()
        )
    });
    let each: Vec<String> = each.collect();
    match (&row.reason, each.is_empty()) {
        (Some(flaw), true) => format!("{subject} at {place}: {}", point_flaw(flaw)),
        _ => format!("{subject} at {place}: {}", each.join(", ")),
    }
}

/// Why a point of a curve cannot be used.
pub fn point_flaw(flaw: &PointFlaw) -> String {
    match flaw {
        PointFlaw::Trial(flaw) => trial_flaw(flaw),
        PointFlaw::NothingDue => "nothing was due in its windows".to_owned(),
        PointFlaw::ClientBusy { rate_per_s } => client_busy(*rate_per_s),
        PointFlaw::LateClient { lag_us, latency_us } => format!(
            "the client sent late: the median of its lag is {lag_us:.0} us, that of the latency \
             {latency_us:.0} us"
        ),
        PointFlaw::Failed {
            failed,
            due,
            max_error,
        } => format!(
            "{} of {} requests failed ({} may)",
            grouped(*failed),
            grouped(*due),
            fraction(*max_error)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use testing::journals::curve_journal;

    #[test]
    fn one_sweep_says_where_bounds_are_passed_and_who_is_lower_where() {
        let journal = curve_journal();
        let analysis = analyse(&journal);
        let said = curves(&analysis.curves[0]);
        let has = |start: &str| said.iter().any(|text| text.starts_with(start));
        assert!(has("nginx's p99 passes 1 ms at 5,"), "{said:?}");
        assert!(has("nginx's p99 passes 5 ms at 9,"), "{said:?}");
        assert!(
            said.iter()
                .any(|text| text.contains(", haproxy's at 18,000/s at least")),
            "{said:?}"
        );
        assert!(
            has(
                "nginx's p99 is lower up to 3,000/s, haproxy's from 5,000/s on; they cross at about 4,"
            ),
            "{said:?}"
        );
        assert!(
            has("nginx was overloaded at 12,000/s in 4 of 4 blocks; it answered about 10,000/s"),
            "{said:?}"
        );
        assert!(has("rates beyond 12,300/s were left out"), "{said:?}");
    }
}

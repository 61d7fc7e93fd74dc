//! What events did to subjects that are not compared, in sentences.

use crate::{Analysis, EventsRow};
use readings::at_condition as at;
use readings::text::compact::{three_digits, time};
use readings::text::{counted, grouped, number};

/// What stands where there is nothing to compare: what events did to each subject.
pub fn uncompared(analysis: &Analysis) -> Vec<String> {
    let rows = analysis.table.iter();
    let happened: Vec<String> = rows
        .filter_map(|row| {
            Some(happened(
                &row.subject,
                &at(&row.condition),
                row.events.as_ref()?,
            ))
        })
        .collect();
    match happened.is_empty() {
        true => vec!["There is nothing to compare.".to_owned()],
        false => happened,
    }
}

/// The most subjects whose failures are named.
const NAMED_MAX: usize = 6;

/// The requests that subjects failed around events, the most first; nothing where none failed any.
pub fn failed_requests(analysis: &Analysis) -> Option<String> {
    let rows = analysis.table.iter();
    let rows = rows.filter_map(|row| Some((row, row.events.as_ref()?)));
    let mut failing: Vec<_> = rows.filter(|(_, events)| events.failed > 0).collect();
    failing.sort_by(|(_, a), (_, b)| b.failed_share.total_cmp(&a.failed_share));
    let named = failing.iter().take(NAMED_MAX).map(|(row, events)| {
        format!(
            "{}{} failed {} of {} requests ({}%)",
            row.subject,
            at(&row.condition),
            grouped(events.failed),
            grouped(events.requests),
            three_digits(events.failed_share * 100.0)
        )
    });
    let mut named: Vec<String> = named.collect();
    if failing.len() > NAMED_MAX {
        named.push(format!(
            "{} more subjects failed requests",
            failing.len() - NAMED_MAX
        ));
    }
    (!named.is_empty()).then(|| format!("Around events: {}.", named.join("; ")))
}

fn happened(subject: &str, place: &str, events: &EventsRow) -> String {
    let mut parts = vec![format!(
        "{subject}{place}: {} of {} requests failed{}",
        grouped(events.failed),
        grouped(events.requests),
        failures_per_event(events).map_or_else(String::new, |per| format!(", {per}"))
    )];
    let longest = |what: &str, seconds: Option<f64>| {
        seconds.map(|seconds| format!("the longest {what} was {}", time(seconds * 1e6)))
    };
    parts.extend(longest("silence", events.longest_silence_s));
    parts.extend(longest("response", events.longest_response_s));
    let not = match events.not_full_at_end {
        0 => String::new(),
        not => format!(
            ", and was not back at the window's end in {not} of {}",
            counted(events.trials, "trial")
        ),
    };
    parts.push(match events.full_rate_after_s {
        None if events.events == 0 => "nothing happened to its servers".to_owned(),
        None => "the rate was not full again at the window's end".to_owned(),
        Some(0.0) => format!("the rate was full all the time{not}"),
        Some(seconds) => {
            let mean = if events.trials > 1 {
                " in the mean"
            } else {
                ""
            };
            format!("the rate was full again after {seconds:.1} s{mean}{not}")
        }
    });
    let over = match events.trials {
        1 => String::new(),
        trials => format!(", over {}", counted(trials, "trial")),
    };
    parts.extend(reloads(events));
    format!("{}{over}.", parts.join("; "))
}

/// `0.38 [0.08, 1.10] for each of 8 events`.
pub fn failures_per_event(events: &EventsRow) -> Option<String> {
    let interval = (
        events.failures_per_event_low?,
        events.failures_per_event_high?,
    );
    let digits = |value: f64| number(value, 2, false);
    let each = match events.events {
        1 => "for the event".to_owned(),
        all => format!("for each of {}", counted(all, "event")),
    };
    Some(format!(
        "{} [{}, {}] {each}",
        digits(events.failures_per_event?),
        digits(interval.0),
        digits(interval.1)
    ))
}

/// When the new configuration was in effect after reloads.
fn reloads(events: &EventsRow) -> Option<String> {
    let not = events.not_in_effect;
    let of = counted(events.reloads, "reload");
    Some(match (events.reloads, events.in_effect_after_s) {
        (0, _) => return None,
        (1, None) => "the reload was not seen to be in effect".to_owned(),
        (_, None) => format!("none of {of} was seen to be in effect"),
        (1, Some(seconds)) => format!("the reload was in effect after {}", time(seconds * 1e6)),
        (_, Some(seconds)) => {
            let mean = format!(
                "reloads were in effect after {} in the mean",
                time(seconds * 1e6)
            );
            match not {
                0 => mean,
                not => format!("{mean}, and {not} of {of} were not seen to be"),
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::Text as _;

    #[test]
    fn one_subject_alone_has_a_sentence_about_what_happened() {
        let events = EventsRow {
            trials: 1,
            requests: 20_000,
            longest_silence_s: Some(1.016),
            longest_response_s: Some(1.04),
            events: 1,
            full_rate_after_s: Some(1.02),
            ..EventsRow::default()
        };
        assert_eq!(
            happened("direct", "", &events),
            "direct: 0 of 20,000 requests failed; the longest silence was 1.02s; the longest \
             response was 1.04s; the rate was full again after 1.0 s."
        );
        let reloaded = EventsRow {
            reloads: 3,
            not_in_effect: 1,
            in_effect_after_s: Some(0.031),
            ..events.clone()
        };
        let reloaded = happened("direct", "", &reloaded);
        let said = "; reloads were in effect after 31.0ms in the mean, and 1 of 3 reloads were not \
                    seen to be.";
        assert!(reloaded.ends_with(said), "{reloaded}");
        let open = EventsRow {
            full_rate_after_s: None,
            not_full_at_end: 1,
            ..events
        };
        let open = happened("direct", "", &open);
        open.ends("; the rate was not full again at the window's end.");
    }

    #[test]
    fn a_subject_to_which_nothing_happens_is_not_said_to_be_away() {
        let control = EventsRow {
            trials: 1,
            requests: 20_000,
            ..EventsRow::default()
        };
        assert_eq!(
            happened("direct", "", &control),
            "direct: 0 of 20,000 requests failed; nothing happened to its servers."
        );
    }

    #[test]
    fn failures_around_reloads_are_told_for_each() {
        let reloaded = EventsRow {
            trials: 8,
            requests: 96_000,
            failed: 3,
            events: 8,
            failures_per_event: Some(0.375),
            failures_per_event_low: Some(0.077_3),
            failures_per_event_high: Some(1.095_9),
            full_rate_after_s: Some(0.0),
            ..EventsRow::default()
        };
        let said = happened("nginx", "", &reloaded);
        assert_eq!(
            said,
            "nginx: 3 of 96,000 requests failed, 0.38 [0.08, 1.10] for each of 8 events; the rate \
             was full all the time, over 8 trials."
        );
    }

    #[test]
    fn who_failed_requests_around_events_is_said_the_most_first() {
        let mut analysis = crate::analyse(&testing::journals::journal());
        assert_eq!(failed_requests(&analysis), None);
        let failed = |failed: u64| EventsRow {
            requests: 4_500,
            failed,
            failed_share: failed as f64 / 4_500.0,
            ..EventsRow::default()
        };
        analysis.table[0].events = Some(failed(3));
        analysis.table[1].events = Some(failed(54));
        assert_eq!(
            failed_requests(&analysis).unwrap(),
            "Around events: balance at connections=96 failed 54 of 4,500 requests (1.20%); direct at \
             connections=96 failed 3 of 4,500 requests (0.07%)."
        );
    }
}

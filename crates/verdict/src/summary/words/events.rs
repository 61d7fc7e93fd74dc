//! What events did to subjects that are not compared, in sentences.

use crate::{Analysis, EventsRow};
use readings::at_condition as at;
use readings::text::compact::time;
use readings::text::{counted, grouped};

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

fn happened(subject: &str, place: &str, events: &EventsRow) -> String {
    let mut parts = vec![format!(
        "{subject}{place}: {} of {} requests failed",
        grouped(events.failed),
        grouped(events.requests)
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

    #[test]
    fn one_subject_alone_has_a_sentence_about_what_happened() {
        let events = EventsRow {
            trials: 1,
            requests: 20_000,
            longest_silence_s: Some(1.016),
            longest_response_s: Some(1.04),
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
        assert!(
            open.ends_with("; the rate was not full again at the window's end."),
            "{open}"
        );
    }
}

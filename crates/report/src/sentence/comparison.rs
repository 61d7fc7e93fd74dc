//! Comparisons and the noise floor, in sentences.

use verdict::text::{
    change, condition, counted, decimals_for_width, decimals_of_interval, fraction, number,
    percent, rate,
};
use verdict::{Comparison, Metric, NoiseFloor, Verdict};

use super::{at, events, notes};

/// The verdict as a performance engineer would write it.
pub(crate) fn comparison(c: &Comparison) -> String {
    let note = notes(&c.notes);
    let noted = |text: String| match &note {
        Some(note) => format!("{text}; {note}."),
        None => format!("{text}."),
    };
    let over = format!("over {}", counted(c.blocks, "block"));
    let place = place_and_rate(c);
    if let Some(text) = events::comparison(c, &place) {
        return noted(text);
    }
    let about = format!(
        "{} against {}, {}{place}",
        c.subject,
        c.baseline,
        c.metric.words()
    );
    let changed = change(c.ratio.unwrap_or(1.0), c.interval());
    match c.verdict {
        Verdict::Faster | Verdict::Slower => noted(format!("{}{place}, {over}", difference(c))),
        Verdict::Same => noted(format!(
            "{about}: no difference that matters (within {}): {changed}, {over}",
            fraction(c.matters)
        )),
        Verdict::Inconclusive if c.ratio.is_some() => {
            noted(format!("inconclusive: {about}: {changed}, {over}"))
        }
        Verdict::Inconclusive | Verdict::Invalid => format!(
            "{}: {about}: {}.",
            c.verdict.word(),
            note.as_deref().unwrap_or("no figures")
        ),
    }
}

/// The largest ratio that an interval may reach to be printed.
const HIGH_MAX: f64 = 10.0;

/// The baseline against itself.
pub(crate) fn noise_floor(floor: &NoiseFloor) -> String {
    let interval = floor.low.zip(floor.high);
    // From -100% to more than tenfold: such an interval is no figure for a reader.
    let shown = interval.filter(|(_, high)| *high <= HIGH_MAX);
    let unlike = match (interval, shown) {
        (Some(_), None) if floor.difference.is_none() => {
            ": too few, or too different from each other, for an interval"
        }
        _ => "",
    };
    format!(
        "noise floor, {}{}: {} against itself shows {}, over {}{unlike}.",
        floor.metric.words(),
        at(&floor.condition),
        floor.baseline,
        events::floor_difference(floor).unwrap_or_else(|| change(floor.ratio, shown)),
        counted(floor.blocks, "block")
    )
}

/// ` at connections=96 and 20,000 requests/s`; empty without either.
fn place_and_rate(c: &Comparison) -> String {
    let mut parts = Vec::new();
    if !c.condition.is_empty() {
        parts.push(condition(&c.condition));
    }
    if let Some(per_s) = c.rate_per_s {
        parts.push(format!("{} requests/s", rate(per_s)));
    }
    if parts.is_empty() {
        String::new()
    } else {
        format!(" at {}", parts.join(" and "))
    }
}

/// The difference in the words that its direction wants, the interval in the same sense.
fn difference(c: &Comparison) -> String {
    let (what, subject) = (c.metric.words(), &c.subject);
    let ratio = c.ratio.unwrap_or(1.0);
    let more = ratio > 1.0;
    if ratio >= 2.0 {
        let (times, interval) = times(c);
        return match c.metric {
            Metric::RequestsPerS => {
                format!("{subject} brings {times} times the {what} {interval}")
            }
            _ => format!("{subject} multiplies the {what} by {times} {interval}"),
        };
    }
    let (size, interval) = size(c);
    match (c.metric, more) {
        (Metric::RequestsPerS, false) => {
            format!("{subject} costs {size} of the {what} {interval}")
        }
        (Metric::RequestsPerS, true) => format!("{subject} brings {size} more {what} {interval}"),
        (_, true) => format!("{subject} adds {size} to the {what} {interval}"),
        (_, false) => format!("{subject} takes {size} off the {what} {interval}"),
    }
}

/// The size of the difference as an unsigned percentage, and its interval in ascending order.
fn size(c: &Comparison) -> (String, String) {
    let ratio = c.ratio.unwrap_or(1.0);
    let sign = if ratio < 1.0 { -100.0 } else { 100.0 };
    let estimate = sign * (ratio - 1.0);
    let Some((low, high)) = c.interval() else {
        return (percent(estimate, 1, false), String::new());
    };
    let (a, b) = (sign * (low - 1.0), sign * (high - 1.0));
    let (low, high) = (a.min(b), a.max(b));
    let decimals = decimals_of_interval(low, high);
    (
        percent(estimate, decimals, false),
        format!(
            "[{}, {}]",
            percent(low, decimals, false),
            percent(high, decimals, false)
        ),
    )
}

/// The ratio itself, with its interval.
fn times(c: &Comparison) -> (String, String) {
    let ratio = c.ratio.unwrap_or(1.0);
    let Some((low, high)) = c.interval() else {
        return (number(ratio, 1, false), String::new());
    };
    let decimals = decimals_for_width(high - low);
    (
        number(ratio, decimals, false),
        format!(
            "[{}, {}]",
            number(low, decimals, false),
            number(high, decimals, false)
        ),
    )
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use readings::Condition;
    use verdict::Note;

    pub fn comparison(metric: Metric, verdict: Verdict, figures: [f64; 3]) -> Comparison {
        let [ratio, low, high] = figures;
        Comparison {
            condition: Condition::new(),
            metric,
            subject: "balance".into(),
            baseline: "direct".into(),
            ratio: Some(ratio),
            low: Some(low),
            high: Some(high),
            confidence: 0.95,
            blocks: 10,
            matters: 0.03,
            verdict,
            notes: Vec::new(),
            baseline_value: None,
            subject_value: None,
            p_value: None,
            p_adjusted: None,
            rate_per_s: None,
            by_block: vec![],
            difference: None,
            difference_low: None,
            difference_high: None,
            difference_matters: None,
            unsettled_blocks: 0,
        }
    }

    fn said(c: &Comparison) -> String {
        super::comparison(c)
    }

    #[test]
    fn a_cost_in_throughput() {
        let mut c = comparison(Metric::RequestsPerS, Verdict::Slower, [0.69, 0.67, 0.71]);
        c.subject = "lighttpd".into();
        c.condition = Condition::from([("connections".to_owned(), "96".to_owned())]);
        assert_eq!(
            said(&c),
            "lighttpd costs 31% of the throughput [29%, 33%] at connections=96, over 10 blocks."
        );
    }

    #[test]
    fn a_cost_in_latency_names_its_rate() {
        let mut c = comparison(Metric::LatencyUsP50, Verdict::Slower, [1.091, 1.080, 1.102]);
        c.rate_per_s = Some(20_000.0);
        assert_eq!(
            said(&c),
            "balance adds 9.1% to the median latency [8.0%, 10.2%] at 20,000 requests/s, \
             over 10 blocks."
        );
        c.condition = Condition::from([("connections".to_owned(), "96".to_owned())]);
        assert!(said(&c).contains(" at connections=96 and 20,000 requests/s,"));
    }

    #[test]
    fn gains_and_multiples() {
        for (metric, figures, expected) in [
            (
                Metric::RequestsPerS,
                [1.12, 1.10, 1.14],
                "balance brings 12% more throughput [10%, 14%], over 10 blocks.",
            ),
            (
                Metric::RequestsPerS,
                [3.1, 2.9, 3.3],
                "balance brings 3.1 times the throughput [2.9, 3.3], over 10 blocks.",
            ),
            (
                Metric::LatencyUsP50,
                [0.9, 0.88, 0.92],
                "balance takes 10% off the median latency [8%, 12%], over 10 blocks.",
            ),
            (
                Metric::LatencyUsP99,
                [3.6, 3.1, 4.2],
                "balance multiplies the 99th percentile of latency by 3.6 [3.1, 4.2], \
                 over 10 blocks.",
            ),
        ] {
            let better = (figures[0] > 1.0) == metric.higher_is_better();
            let verdict = if better {
                Verdict::Faster
            } else {
                Verdict::Slower
            };
            assert_eq!(said(&comparison(metric, verdict, figures)), expected);
        }
    }

    #[test]
    fn no_difference_that_matters() {
        let mut c = comparison(Metric::RequestsPerS, Verdict::Same, [1.004, 0.991, 1.017]);
        assert_eq!(
            said(&c),
            "balance against direct, throughput: no difference that matters (within 3%): \
             +0.4% [-0.9%, +1.7%], over 10 blocks."
        );
        c.notes = vec![Note::SmallerThanMatters];
        assert!(said(&c).ends_with("blocks; measurable, but smaller than what matters."));
    }

    #[test]
    fn what_is_not_settled_says_what_would_settle_it() {
        let mut c = comparison(
            Metric::RequestsPerS,
            Verdict::Inconclusive,
            [1.02, 0.969, 1.074],
        );
        c.notes = vec![Note::MoreBlocks(12)];
        assert_eq!(
            said(&c),
            "inconclusive: balance against direct, throughput: +2% [-3%, +7%], over 10 blocks; \
             about 12 more blocks would likely settle it."
        );
    }
}

use crate::text::{
    change, condition, counted, decimals_for_width, decimals_of_interval, fraction, number,
    percent, rate,
};
use crate::{Comparison, Metric, Verdict};

/// What a sentence is made of.
pub(crate) struct Figures<'a> {
    comparison: &'a Comparison,
    ratio: f64,
    interval: Option<(f64, f64)>,
}

impl<'a> Figures<'a> {
    pub fn of(comparison: &'a Comparison) -> Self {
        Self {
            comparison,
            ratio: comparison.ratio.unwrap_or(1.0),
            interval: comparison.interval(),
        }
    }
}

/// The verdict as a performance engineer would write it.
pub(crate) fn sentence(f: &Figures<'_>) -> String {
    let c = f.comparison;
    let note = c.note.as_deref();
    let noted = |text: String| match note {
        Some(note) => format!("{text}; {note}."),
        None => format!("{text}."),
    };
    let over = format!("over {}", counted(c.blocks, "block"));
    let about = format!(
        "{} against {}, {}{}",
        c.subject,
        c.baseline,
        c.metric.words(),
        place(c)
    );
    match c.verdict {
        Verdict::Faster | Verdict::Slower => {
            noted(format!("{}{}, {over}", difference(f), place(c)))
        }
        Verdict::Same => noted(format!(
            "{about}: no difference that matters (within {}): {}, {over}",
            fraction(c.matters),
            change(f.ratio, f.interval)
        )),
        Verdict::Inconclusive if c.ratio.is_some() => noted(format!(
            "inconclusive: {about}: {}, {over}",
            change(f.ratio, f.interval)
        )),
        Verdict::Inconclusive => {
            format!("inconclusive: {about}: {}.", note.unwrap_or("no figures"))
        }
        Verdict::Invalid => format!("invalid: {about}: {}.", note.unwrap_or("no figures")),
    }
}

/// ` at connections=96 and 20,000 requests/s`; empty without either.
fn place(c: &Comparison) -> String {
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
fn difference(f: &Figures<'_>) -> String {
    let c = f.comparison;
    let (what, subject) = (c.metric.words(), &c.subject);
    let more = f.ratio > 1.0;
    if f.ratio >= 2.0 {
        let (times, interval) = times(f);
        return match c.metric {
            Metric::RequestsPerS => {
                format!("{subject} brings {times} times the {what} {interval}")
            }
            _ => format!("{subject} multiplies the {what} by {times} {interval}"),
        };
    }
    let (size, interval) = size(f);
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
fn size(f: &Figures<'_>) -> (String, String) {
    let sign = if f.ratio < 1.0 { -100.0 } else { 100.0 };
    let estimate = sign * (f.ratio - 1.0);
    let Some((low, high)) = f.interval else {
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
fn times(f: &Figures<'_>) -> (String, String) {
    let Some((low, high)) = f.interval else {
        return (number(f.ratio, 1, false), String::new());
    };
    let decimals = decimals_for_width(high - low);
    (
        number(f.ratio, decimals, false),
        format!(
            "[{}, {}]",
            number(low, decimals, false),
            number(high, decimals, false)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use readings::Condition;

    fn comparison(metric: Metric, verdict: Verdict, figures: [f64; 3]) -> Comparison {
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
            note: None,
            sentence: String::new(),
            baseline_value: None,
            subject_value: None,
            p_value: None,
            p_adjusted: None,
            rate_per_s: None,
            by_block: vec![],
            unsettled_blocks: 0,
        }
    }

    fn said(c: &Comparison) -> String {
        sentence(&Figures::of(c))
    }

    #[test]
    fn a_cost_in_throughput() {
        let mut c = comparison(Metric::RequestsPerS, Verdict::Slower, [0.69, 0.67, 0.71]);
        c.subject = "lighttpd".into();
        c.condition = fixtures::condition(96);
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
        c.condition = fixtures::condition(96);
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
        c.note = Some("measurable, but smaller than what matters".into());
        assert!(said(&c).ends_with("blocks; measurable, but smaller than what matters."));
    }

    #[test]
    fn what_is_not_settled_says_what_would_settle_it() {
        let mut c = comparison(
            Metric::RequestsPerS,
            Verdict::Inconclusive,
            [1.02, 0.969, 1.074],
        );
        c.note = Some("about 12 more blocks would likely settle it".into());
        assert_eq!(
            said(&c),
            "inconclusive: balance against direct, throughput: +2% [-3%, +7%], over 10 blocks; \
             about 12 more blocks would likely settle it."
        );
    }
}

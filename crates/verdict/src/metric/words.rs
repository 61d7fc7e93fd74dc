//! How large a difference is: in the reader's units where there are any, and relative.

use crate::{Bound, Metric, QuantileBound, ResolvedBy, Unit};
use readings::Condition;
use readings::text::compact::{self, three_digits};
use readings::text::{change, counted, decimals_for_width, number, percent, rate, time};

/// An interval that spans a larger factor is no figure for a reader.
const WIDEST: f64 = 10.0;
/// From this ratio on it is told as so many times.
pub(crate) const TIMES_FROM: f64 = 2.0;

/// What stands in place of a ratio whose interval is too wide.
pub const NOT_MEASURABLE: &str = "not measurable here";

/// Whether an interval of a ratio is narrow enough to be shown.
pub fn is_measurable((low, high): (f64, f64)) -> bool {
    low > 0.0 && high <= WIDEST * low
}

/// `+0.4% [-0.9%, +1.7%]`, `2.8 times [2.6, 3.0]`, or that it cannot be measured here.
pub fn shown_change(ratio: f64, interval: Option<(f64, f64)>) -> String {
    match interval {
        Some(interval) if !is_measurable(interval) => NOT_MEASURABLE.to_owned(),
        interval if ratio >= TIMES_FROM => times(ratio, interval),
        interval => change(ratio, interval),
    }
}

/// A change of which one end is known: `at least 65% lower`, `at most 4.0% higher`, `at least 2.8
/// times`.
pub fn bounded_change(bound: Bound, end: f64) -> String {
    let is_least = (bound == Bound::AtLeast) == (end >= 1.0);
    let most = if is_least { "at least" } else { "at most" };
    match end {
        end if end >= TIMES_FROM => format!("{most} {} times", number(end, 1, false)),
        end if end >= 1.0 => format!("{most} {} higher", size_of_end(end)),
        end => format!("{most} {} lower", size_of_end(end)),
    }
}

/// The size of a change that is known from one end, without a sign: `65%`.
pub fn size_of_end(ratio: f64) -> String {
    let change = ((ratio - 1.0) * 100.0).abs();
    percent(change, decimals_of(change), false)
}

pub(crate) fn decimals_of(change: f64) -> usize {
    usize::from(change.abs() < 10.0)
}

/// `2.8 times [2.6, 3.0]`.
pub fn times(ratio: f64, interval: Option<(f64, f64)>) -> String {
    let Some((low, high)) = interval else {
        return format!("{} times", number(ratio, 1, false));
    };
    let decimals = decimals_for_width(high - low);
    format!(
        "{} times [{}, {}]",
        number(ratio, decimals, false),
        number(low, decimals, false),
        number(high, decimals, false)
    )
}

/// A value of a metric alone, with its unit: `20,000/s`, `46.3ms`, `3.21 us/request`, `1.02GB`.
pub fn value(metric: Metric, value: f64) -> String {
    match metric.unit() {
        Unit::RequestsPerS => format!("{}/s", rate(value)),
        Unit::MessagesPerS => format!("{} messages/s", rate(value)),
        Unit::Us => compact::time(value),
        Unit::UsPerRequest => format!("{} us/request", three_digits(value)),
        Unit::UsPerMessage => format!("{} us/message", three_digits(value)),
        Unit::InstructionsPerRequest => format!("{}/request", rate(value)),
        Unit::Bytes => compact::bytes(value),
        Unit::Share => format!("{}%", three_digits(value * 100.0)),
        Unit::PerEvent => three_digits(value),
        Unit::S if value == 0.0 => "0 s".to_owned(),
        Unit::S => time(value * 1e6),
    }
}

/// What is known of a quantile that is not resolved: `at most 36.0ms`, `at least 12.0ms` or `highest measured 41.0ms`.
pub fn bounded(bound: &QuantileBound) -> String {
    match (bound.at_most_us, bound.at_least_us) {
        (Some(us), _) => format!("at most {}", compact::time(us)),
        (None, Some(us)) => format!("at least {}", compact::time(us)),
        (None, None) => format!("highest measured {}", compact::time(bound.highest_us)),
    }
}

/// `a window of 12 s, or 9 blocks, would resolve it`.
pub fn resolved_by(by: Option<&ResolvedBy>) -> String {
    match by {
        Some(by) => format!(
            "a window of {}, or {}, would resolve it",
            window(by),
            counted(by.blocks, "block")
        ),
        None => "a longer window would resolve it".to_owned(),
    }
}

/// `12 s`: two digits, as it was rounded.
pub(crate) fn window(by: &ResolvedBy) -> String {
    let decimals = match by.window_s {
        s if s < 0.995 => 2,
        s if s < 9.95 => 1,
        _ => 0,
    };
    format!("{} s", number(by.window_s, decimals, false))
}

/// The same in a column whose head has the unit per request.
pub fn cell(metric: Metric, of: f64) -> String {
    match metric.unit() {
        Unit::UsPerRequest | Unit::UsPerMessage => three_digits(of),
        Unit::InstructionsPerRequest => rate(of),
        _ => value(metric, of),
    }
}

/// The same with two digits, of a figure that ranks nobody: `~400us`.
pub fn rough_cell(metric: Metric, of: f64) -> String {
    let digits = 1 - of.abs().log10().floor() as i32;
    let power = 10.0_f64.powi(digits);
    let rounded = if of == 0.0 {
        0.0
    } else {
        (of * power).round() / power
    };
    let text = cell(metric, rounded);
    let unit_at = text.find(char::is_alphabetic).unwrap_or(text.len());
    let (figure, unit) = text.split_at(unit_at);
    let figure = match figure.contains('.') {
        true => figure.trim_end_matches('0').trim_end_matches('.'),
        false => figure,
    };
    format!("~{figure}{unit}")
}

/// Two values of a metric and their difference, in one unit.
#[derive(Debug, PartialEq)]
pub struct Absolute {
    pub baseline: String,
    pub subject: String,
    /// With its sign and unit.
    pub difference: String,
    pub unit: &'static str,
}

/// The values of a metric that is a time or a size; names of metrics end in their units.
pub fn absolute(metric: Metric, baseline: f64, subject: f64) -> Option<Absolute> {
    let largest = baseline.max(subject);
    let name = metric.name();
    let (scale, unit) = if name.split('_').any(|word| word == "us") {
        match largest {
            us if us >= 1e6 => (1e6, "s"),
            // From 0.1 ms on, milliseconds.
            us if us >= 1e2 => (1e3, "ms"),
            _ => (1.0, "us"),
        }
    } else if name.ends_with("_bytes") {
        compact::size_unit(largest)
    } else {
        return None;
    };
    let (a, b) = (baseline / scale, subject / scale);
    if !(a > 0.0 && b > 0.0 && a.is_finite() && b.is_finite()) {
        return None;
    }
    // Decimals for so many digits that count.
    let digits = |value: f64, digits: i32| digits - 1 - value.log10().floor() as i32;
    let difference = (b - a).abs();
    let of_difference = match difference > 0.0 {
        true => digits(difference, 2).clamp(0, 3),
        false => 0,
    };
    let of_values = of_difference
        .max(digits(a.min(b), 2))
        .min(digits(a.max(b), 3));
    let is_wide = a.max(b) >= WIDEST * a.min(b);
    let value = |value: f64| {
        let decimals = if is_wide { digits(value, 3) } else { of_values };
        number(value, decimals.clamp(0, 3) as usize, false)
    };
    let of_difference = of_difference as usize;
    Some(Absolute {
        baseline: value(a),
        subject: value(b),
        difference: format!("{} {unit}", number(b - a, of_difference, true)),
        unit,
    })
}

/// Whether a condition names the rate of the open loop itself.
pub fn names_rate(condition: &Condition) -> bool {
    let is_given = |level: &str| level != "auto";
    let of_load = |level: &String| {
        let mut keys = level
            .split(", ")
            .filter_map(|part| part.strip_prefix("rate "));
        keys.any(is_given)
    };
    condition.get("rate").is_some_and(|level| is_given(level))
        || condition.get("load").is_some_and(of_load)
}

/// The words of a metric in a sentence that also has the condition, and the rate if there is one:
/// without `at that rate` if the sentence names the rate elsewhere.
pub fn metric_words(
    metric: Metric,
    condition: &Condition,
    rate_per_s: Option<f64>,
) -> &'static str {
    // A level of the factor `load` may name the rate too, but stands in sentences on closed loops as
    // well: there `at that rate` tells which loop is meant.
    let is_named = condition.get("rate").is_some_and(|level| level != "auto")
        || rate_per_s.is_some() && !names_rate(condition);
    match metric {
        Metric::ServerCpuUsPerRequestAtRate if is_named => Metric::ServerCpuUsPerRequest.words(),
        _ => metric.words(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_wider_than_tenfold_is_no_figure() {
        assert_eq!(
            shown_change(203.9, Some((9.45, 4396.8))),
            "not measurable here"
        );
        assert_eq!(shown_change(1.2, Some((0.1, 14.47))), "not measurable here");
        assert_eq!(shown_change(5.0, Some((2.0, 13.0))), "5 times [2, 13]");
        assert_eq!(shown_change(1.5, Some((1.38, 1.62))), "+50% [+38%, +62%]");
    }

    #[test]
    fn values_stand_in_one_unit_with_the_digits_that_count() {
        for (baseline, subject, expected) in [
            (150.0, 430.0, ("0.15", "0.43", "+0.28 ms")),
            (400.0, 436.0, ("0.400", "0.436", "+0.036 ms")),
            (23.7, 35.5, ("24", "36", "+12 us")),
            (27.5, 29.2, ("27.5", "29.2", "+1.7 us")),
            (90_000.0, 91_800.0, ("90.0", "91.8", "+1.8 ms")),
            (43_000.0, 43_040.0, ("43.0", "43.0", "+0.040 ms")),
            (2_000_000.0, 500_000.0, ("2.00", "0.50", "-1.5 s")),
            (150.0, 30_582.0, ("0.150", "30.6", "+30 ms")),
            (400.0, 400.0, ("0.40", "0.40", "0 ms")),
        ] {
            let got = absolute(Metric::LatencyUsP50, baseline, subject).unwrap();
            let got = (&*got.baseline, &*got.subject, &*got.difference);
            assert_eq!(got, expected);
        }
        assert_eq!(absolute(Metric::RequestsPerS, 1.0, 2.0), None);
        assert_eq!(absolute(Metric::FullRateAfterS, 1.0, 2.0), None);
        let memory = absolute(Metric::DriverMaxRssBytes, 8.0e6, 16.0e6).unwrap();
        assert_eq!(memory.difference, "+8.0 MB");
    }

    #[test]
    fn a_value_stands_in_the_unit_that_it_is_read_best_in() {
        for (metric, of, text) in [
            (Metric::RequestsPerS, 20_000.2, "20,000/s"),
            (Metric::LatencyUsP99, 46_270.0, "46.3ms"),
            (Metric::ServerCpuUsPerRequest, 3.214, "3.21 us/request"),
            (
                Metric::ServerInstructionsPerRequest,
                7_584.0,
                "7,584/request",
            ),
            (Metric::DriverMaxRssBytes, 1_536.0, "1.54kB"),
            (Metric::FailedShare, 0.001_25, "0.12%"),
            (Metric::LongestSilenceS, 0.0, "0 s"),
            (Metric::LongestSilenceS, 0.0185, "18.5 ms"),
        ] {
            assert_eq!(value(metric, of), text);
        }
        assert_eq!(cell(Metric::DriverCpuUsPerRequest, 3.214), "3.21");
    }

    #[test]
    fn a_bound_says_its_direction_in_words() {
        for (bound, end, expected) in [
            (Bound::AtMost, 0.639, "at least 36% lower"),
            (Bound::AtMost, 1.04, "at most 4.0% higher"),
            (Bound::AtLeast, 1.12, "at least 12% higher"),
            (Bound::AtLeast, 0.97, "at most 3.0% lower"),
            (Bound::AtLeast, 2.8, "at least 2.8 times"),
            (Bound::AtMost, 2.8, "at most 2.8 times"),
        ] {
            assert_eq!(bounded_change(bound, end), expected);
        }
    }

    #[test]
    fn a_figure_that_ranks_nobody_has_two_digits() {
        for (metric, of, expected) in [
            (Metric::LatencyUsP50, 404.0, "~400us"),
            (Metric::LatencyUsP50, 1_234.0, "~1.2ms"),
            (Metric::LatencyUsP50, 46_300.0, "~46ms"),
            (Metric::RequestsPerS, 13_845.0, "~14,000/s"),
            (Metric::ServerCpuUsPerRequest, 9.96, "~10"),
            (Metric::LatencyUsP50, 0.0, "~0us"),
        ] {
            assert_eq!(rough_cell(metric, of), expected);
        }
    }

    #[test]
    fn a_factor_that_names_the_rate_is_known() {
        let of = |name: &str, level: &str| {
            names_rate(&Condition::from([(name.to_owned(), level.to_owned())]))
        };
        assert!(of("rate", "2000/s") && of("load", "connections 96, rate 2000/s"));
        assert!(!of("rate", "auto") && !of("load", "rate auto") && !of("connections", "96"));
    }
}

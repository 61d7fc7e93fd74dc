//! The text of a gate, such as `p99 < +10%` or `head: failed < 0.1%`.
//!
//! ```text
//! [SUBJECT:] METRIC SIGN BOUND
//! ```
//!
//! A bound with `+` or `-` and a percent sign is relative to the baseline; one with a unit is a
//! figure of the subject alone.

use config::nearest::{nearest, suggestion};
use config::units::{self, shown};
use readings::{Gate, GateBound, GateMetric, GateUnit};

/// A mistake in the text of a gate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at character {at})")]
pub struct GateError {
    /// The position in characters, from 1.
    pub at: usize,
    pub message: String,
}

/// Reads a gate of a run.
///
/// # Errors
/// What was expected, and where.
pub fn parse_gate(text: &str) -> Result<Gate, GateError> {
    parse(text, &GateMetric::of_runs().collect::<Vec<_>>())
}

/// Reads a gate of a capacity search, such as `capacity > 5000/s`.
///
/// # Errors
/// What was expected, and where.
pub fn parse_capacity_gate(text: &str) -> Result<Gate, GateError> {
    let gate = parse(text, &[GateMetric::Capacity])?;
    if gate.subject.is_some() {
        return Err(error(text, 0, "there is one target: expected no subject"));
    }
    Ok(gate)
}

/// Checks a gate against the subjects of a run.
///
/// # Errors
/// When the gate names a subject that does not exist, or compares the baseline with itself.
pub fn check_gate(gate: &Gate, subjects: &[&str], baseline: &str) -> Result<(), String> {
    let relative = matches!(gate.bound, GateBound::Relative(_));
    let Some(subject) = &gate.subject else {
        return match relative && subjects.len() < 2 {
            true => Err(format!(
                "`{}` compares with the baseline, and there is no other subject",
                gate.text
            )),
            false => Ok(()),
        };
    };
    if !subjects.contains(&subject.as_str()) {
        return Err(format!(
            "there is no subject `{}`; {}",
            shown(subject),
            suggestion(subject, "subjects", subjects.iter().copied())
        ));
    }
    match relative && subject == baseline {
        true => Err(format!(
            "`{}` compares the baseline with itself",
            gate.full_text()
        )),
        false => Ok(()),
    }
}

fn error(text: &str, byte: usize, message: impl Into<String>) -> GateError {
    GateError {
        at: text.get(..byte).map_or(0, |before| before.chars().count()) + 1,
        message: message.into(),
    }
}

fn parse(text: &str, metrics: &[GateMetric]) -> Result<Gate, GateError> {
    let is_sign = |c: char| matches!(c, '<' | '>' | '=' | '≤' | '≥' | '!');
    let sign_at = text.find(is_sign);
    let before = &text[..sign_at.unwrap_or(text.len())];
    let (subject, metric_from) = match before.find(':') {
        Some(colon) => (Some(text[..colon].trim()), colon + 1),
        None => (None, 0),
    };
    if subject == Some("") {
        let message = "expected a subject before `:`, such as `head: p99 < 20ms`";
        return Err(error(text, 0, message));
    }
    let metric = metric(text, metric_from, before, metrics)?;
    let sign_at = sign_at.ok_or_else(|| {
        let sign = sign_of(metric);
        let message = format!("expected `{sign}` after `{}`", metric.name());
        error(text, text.trim_end().len(), message)
    })?;
    let rest = &text[sign_at..];
    let sign_bytes = rest.len() - rest.trim_start_matches(is_sign).len();
    let sign = &rest[..sign_bytes];
    let allowed: &[&str] = match metric.higher_is_better() {
        true => &[">", ">=", "≥"],
        false => &["<", "<=", "≤"],
    };
    if !allowed.contains(&sign) {
        let better = match metric.higher_is_better() {
            true => "more is better",
            false => "less is better",
        };
        let message = format!(
            "of `{}` {better}: expected `{}`, found `{}`",
            metric.name(),
            sign_of(metric),
            shown(sign)
        );
        return Err(error(text, sign_at, message));
    }
    let value_from = sign_at + sign_bytes;
    let written = text[value_from..].trim();
    let value_at = value_from + leading(&text[value_from..]);
    let bound = bound(metric, written).map_err(|message| error(text, value_at, message))?;
    let gate = Gate {
        name: String::new(),
        text: format!("{} {} {written}", metric.name(), sign_of(metric)),
        subject: subject.map(str::to_owned),
        metric,
        bound,
    };
    Ok(Gate {
        name: gate.full_text(),
        ..gate
    })
}

fn sign_of(metric: GateMetric) -> char {
    match metric.higher_is_better() {
        true => '>',
        false => '<',
    }
}

/// The number of bytes of leading space.
fn leading(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

fn metric(
    text: &str,
    from: usize,
    before: &str,
    metrics: &[GateMetric],
) -> Result<GateMetric, GateError> {
    let word = before[from..].trim();
    let names = metrics.iter().map(|metric| metric.name());
    if let Some(metric) = metrics.iter().find(|metric| metric.name() == word) {
        return Ok(*metric);
    }
    let known = names.clone().collect::<Vec<_>>().join(", ");
    let at = from + leading(&before[from..]);
    let message = match word.is_empty() {
        true => format!("expected a metric: {known}"),
        false => {
            let near = nearest(word, names).map(|name| format!("did you mean `{name}`? "));
            let near = near.unwrap_or_default();
            format!(
                "unknown metric `{}`; {near}known metrics: {known}",
                shown(word)
            )
        }
    };
    Err(error(text, at, message))
}

/// The form of a bound for a metric, for messages.
fn form(metric: GateMetric) -> &'static str {
    match metric.unit() {
        _ if metric == GateMetric::Capacity => "a rate such as `5000/s`",
        GateUnit::RequestsPerS => "`-3%` (against the baseline) or `20000/s`",
        GateUnit::LatencyUs => "`+10%` (against the baseline) or `20ms`",
        GateUnit::CpuUs => "`+5%` (against the baseline) or `30us`",
        GateUnit::Bytes => "`+10%` (against the baseline) or `200MB`",
        GateUnit::Share if metric.higher_is_better() => "a share such as `99.9%`",
        GateUnit::Share => "a share of the requests such as `0.1%`",
    }
}

fn bound(metric: GateMetric, written: &str) -> Result<GateBound, String> {
    let wanted = || format!("expected {}, found `{}`", form(metric), shown(written));
    if written.is_empty() {
        return Err(format!("expected {}, found nothing", form(metric)));
    }
    let with_reason = |reason: String| format!("{}: {reason}", wanted());
    let absolute_only = metric.unit() == GateUnit::Share || metric == GateMetric::Capacity;
    let sign = written.chars().next().filter(|c| matches!(c, '+' | '-'));
    if let Some(sign) = sign {
        if absolute_only {
            return Err(wanted());
        }
        let share = units::share(&written[1..]).map_err(with_reason)?;
        let share = if sign == '-' { -share } else { share };
        if share <= -1.0 || share > 1000.0 {
            return Err(format!(
                "{}: expected more than -100% and at most +100000%",
                wanted()
            ));
        }
        return Ok(GateBound::Relative(share));
    }
    if written.ends_with('%') && !absolute_only {
        return Err(format!(
            "{}: a bound against the baseline has a `+` or a `-`",
            wanted()
        ));
    }
    let value = match metric.unit() {
        GateUnit::RequestsPerS => units::rate(written),
        GateUnit::LatencyUs | GateUnit::CpuUs => {
            units::duration(written).map(|time| time.as_secs_f64() * 1e6)
        }
        GateUnit::Bytes => units::size(written).map(|bytes| bytes as f64),
        GateUnit::Share => units::share(written),
    };
    let value = value.map_err(with_reason)?;
    if value <= 0.0 {
        return Err(format!("{}: expected more than zero", wanted()));
    }
    if metric.unit() == GateUnit::Share && value >= 1.0 {
        return Err(format!("{}: expected less than 100%", wanted()));
    }
    Ok(GateBound::Absolute(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> (GateMetric, GateBound) {
        let gate = parse_gate(text).unwrap();
        (gate.metric, gate.bound)
    }

    #[test]
    fn gates_mean_what_they_say() {
        use GateBound::{Absolute, Relative};
        use GateMetric::{Cpu, Failed, Memory, P50, P99, Throughput};
        for (text, metric, bound) in [
            ("throughput > -3%", Throughput, Relative(-0.03)),
            ("throughput>=+5%", Throughput, Relative(0.05)),
            ("throughput > 20000/s", Throughput, Absolute(20_000.0)),
            (" p99 < +10% ", P99, Relative(0.1)),
            ("p50 ≤ 0.5ms", P50, Absolute(500.0)),
            ("cpu < +5%", Cpu, Relative(0.05)),
            ("memory < 100MB", Memory, Absolute(1e8)),
            ("failed < 0.1%", Failed, Absolute(0.001)),
        ] {
            assert_eq!(parsed(text), (metric, bound), "{text}");
        }
        let gate = parse_gate("head :  p99<20ms").unwrap();
        assert_eq!(gate.subject.as_deref(), Some("head"));
        assert_eq!(
            (gate.text.as_str(), gate.name.as_str()),
            ("p99 < 20ms", "head: p99 < 20ms")
        );
        let capacity = parse_capacity_gate("capacity > 5000/s").unwrap();
        assert_eq!(capacity.bound, Absolute(5000.0));
    }

    /// A bound can be copied from a result.
    #[test]
    fn a_size_that_is_shown_is_read_as_the_same_size() {
        use readings::text::compact::{SIZES, bytes};
        let read = SIZES.iter().filter(|(of, _)| *of <= 1e9);
        for (of, unit) in read.clone() {
            assert_eq!(config::units::size(&format!("1{unit}")), Ok(*of as u64));
        }
        assert_eq!(read.count(), 4);
        for (size, shown) in [(25_500_000.0, "25.5MB"), (1_540.0, "1.54kB"), (7.0, "7B")] {
            assert_eq!(bytes(size), shown);
            let gate = parsed(&format!("memory < {shown}"));
            assert_eq!(gate.1, GateBound::Absolute(size));
        }
    }

    #[test]
    fn a_wrong_gate_says_where_and_what_was_expected() {
        for line in include_str!("gate/refused.txt").lines() {
            let (text, said) = line.split_once(" => ").unwrap();
            let (at, part) = said.split_once(": ").unwrap();
            let error = parse_gate(text).unwrap_err();
            assert_eq!(error.at.to_string(), at, "{text}: {error}");
            assert!(error.message.contains(part), "{text}: {error}");
        }
        assert!(parse_capacity_gate("a: capacity > 3/s").is_err());
        assert!(parse_capacity_gate("p99 < 3ms").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_within_it(text in "\\PC{0,40}") {
            if let Err(error) = parse_gate(&text) {
                prop_assert!((1..=text.chars().count() + 1).contains(&error.at));
            }
        }

        #[test]
        fn a_gates_own_text_reads_as_the_same_gate(
            metric in prop::sample::select(vec!["p50", "p99", "cpu", "proxy_cpu", "cpu_at_rate", "memory"]),
            percent in -99_i32..1000,
            subject in prop::option::of("[a-z][a-z0-9-]{0,8}"),
        ) {
            let subject = subject.map(|name| format!("{name}:")).unwrap_or_default();
            let gate = parse_gate(&format!("{subject}{metric}<{percent:+}%")).unwrap();
            prop_assert_eq!(parse_gate(&gate.full_text()).unwrap(), gate);
        }
    }
}

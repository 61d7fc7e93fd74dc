//! Numbers with units, as load generators print them.
//!
//! Each of these takes the whole text and gives `None` for anything else than a finite number with
//! a unit that it knows. Scales of ten are applied to the decimal text, so that `1.07ms` is 1070 us
//! and not 1070.0000000000002.

/// A finite number without a unit.
pub(crate) fn number(text: &str) -> Option<f64> {
    scaled(text, 0)
}

/// A figure of a JSON document: not negative, and small enough not to overflow when it is scaled.
pub(crate) fn figure(value: &serde_json::Value) -> Option<f64> {
    value.as_f64().filter(|n| (0.0..1e18).contains(n))
}

/// A finite number, multiplied by a power of ten.
fn scaled(text: &str, exponent: i32) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if !plain || !digits.bytes().any(|b| b.is_ascii_digit()) || digits.len() > 300 {
        return None;
    }
    format!("{text}e{exponent}")
        .parse()
        .ok()
        .filter(|n: &f64| n.is_finite())
}

/// A whole number that is not negative.
pub(crate) fn count(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// A share between 0 and 1 from `99.9%`.
pub(crate) fn percent(text: &str) -> Option<f64> {
    let share = scaled(text.strip_suffix('%')?.trim_end_matches('%'), -2)?;
    (0.0..=1.0).contains(&share).then_some(share)
}

/// The number at the start and what follows it.
fn split(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    (digits, unit.trim_start())
}

/// Milliseconds without their unit, in microseconds.
pub(crate) fn ms(text: &str) -> Option<f64> {
    scaled(text, 3)
}

/// A duration in microseconds: `635.00us`, `1.98s`, `0.5 secs`, `2m`, and Go's `1m2.5s`.
pub(crate) fn duration_us(text: &str) -> Option<f64> {
    let mut rest = text.trim();
    let mut sum = None;
    while !rest.is_empty() {
        let (digits, tail) = split(rest);
        let end = tail
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(tail.len());
        let (unit, next) = tail.split_at(end);
        let value = match unit {
            "ns" => scaled(digits, -3)?,
            "us" | "µs" | "μs" => scaled(digits, 0)?,
            "ms" | "msec" | "milliseconds" => scaled(digits, 3)?,
            "s" | "sec" | "secs" | "second" | "seconds" => scaled(digits, 6)?,
            "m" | "min" => scaled(digits, 6)? * 60.0,
            "h" => scaled(digits, 6)? * 3600.0,
            _ => return None,
        };
        sum = Some(sum.unwrap_or(0.0) + value);
        rest = next;
    }
    sum
}

/// The step of a duration's last digit, in microseconds: 10 of `1.25ms`.
pub(crate) fn step_us(text: &str) -> Option<f64> {
    let (digits, unit) = split(text.trim());
    let decimals = digits
        .split_once('.')
        .map_or(0, |(_, decimals)| decimals.len());
    duration_us(&format!(
        "{:.decimals$}{unit}",
        f64::powi(10.0, -(decimals as i32))
    ))
}

/// A duration in seconds; a number without a unit is seconds already, as on command lines.
pub(crate) fn duration_s(text: &str) -> Option<f64> {
    if let Some(seconds) = number(text.trim()) {
        return Some(seconds);
    }
    let text = text.trim();
    // One unit only: dividing the microseconds would lose the decimal digits' exactness.
    match split(text) {
        (digits, "s" | "sec" | "secs" | "seconds") => number(digits),
        (digits, "ms") => scaled(digits, -3),
        (digits, "us") => scaled(digits, -6),
        _ => duration_us(text).map(|us| us / 1e6),
    }
}

/// Bytes where K is 1024, as wrk, h2load and oha mean it: `826.68KB`, `24.25MB`, `1.20 MiB`.
pub(crate) fn bytes_1024(text: &str) -> Option<f64> {
    bytes(text, 1024.0)
}

/// Bytes where k is 1000, as k6 means it: `1.3 MB`. `KiB` is 1024 here too.
pub(crate) fn bytes_1000(text: &str) -> Option<f64> {
    bytes(text, 1000.0)
}

fn bytes(text: &str, step: f64) -> Option<f64> {
    let (digits, unit) = split(text.trim());
    let unit = unit.strip_suffix("bytes").unwrap_or(unit);
    let (unit, step) = match unit.strip_suffix("iB") {
        Some(prefix) => (prefix, 1024.0),
        None => (unit.strip_suffix('B').unwrap_or(unit), step),
    };
    let power = match unit {
        "" => 0,
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        _ => return None,
    };
    let value = number(digits)? * f64::powi(step, power);
    (value >= 0.0).then_some(value)
}

/// A count with an SI prefix, as on wrk's command line: `1k`, `2.5M`.
pub(crate) fn metric(text: &str) -> Option<f64> {
    match split(text) {
        (digits, "") => number(digits),
        (digits, "k" | "K") => scaled(digits, 3),
        (digits, "M") => scaled(digits, 6),
        (digits, "G") => scaled(digits, 9),
        _ => None,
    }
}

/// Bytes as a whole number; what a tool rounded stays rounded.
pub(crate) fn whole(bytes: f64) -> u64 {
    bytes.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_microseconds_whatever_their_unit() {
        for (text, us) in [
            ("635.00us", 635.0),
            ("1.07ms", 1070.0),
            ("1.98s", 1_980_000.0),
            ("2.00m", 120_000_000.0),
            ("0.0123 secs", 12_300.0),
            ("12.5 sec", 12_500_000.0),
            ("250µs", 250.0),
            ("900ns", 0.9),
            ("1m2.5s", 62_500_000.0),
            ("0s", 0.0),
        ] {
            assert_eq!(duration_us(text), Some(us), "{text}");
        }
        for (text, step) in [("0.0006 secs", 100.0), ("1.25ms", 10.0), ("29us", 1.0)] {
            assert_eq!(step_us(text), Some(step), "{text}");
        }
        for text in ["", "12", "ms", "-nanus", "1.2.3ms", "12 parsecs", "1e3ms"] {
            assert_eq!(duration_us(text), None, "{text}");
        }
    }

    #[test]
    fn kilo_is_what_the_tool_means_by_it() {
        assert_eq!(bytes_1024("689.97KB"), Some(689.97 * 1024.0));
        assert_eq!(bytes_1024("2.00GB"), Some(2.0 * 1024.0 * 1024.0 * 1024.0));
        assert_eq!(bytes_1024("0.00B"), Some(0.0));
        assert_eq!(bytes_1024("612 B"), Some(612.0));
        assert_eq!(bytes_1024("1.50 MiB"), Some(1.5 * 1024.0 * 1024.0));
        assert_eq!(bytes_1000("1.3 MB"), Some(1_300_000.0));
        assert_eq!(bytes_1000("81 kB"), Some(81_000.0));
        assert_eq!(bytes_1024("12 furlongs"), None);
        assert_eq!(bytes_1024("-1 B"), None);
    }

    #[test]
    fn shares_and_counts_are_exact() {
        assert_eq!(percent("99.9%"), Some(0.999));
        assert_eq!(percent("99.999%"), Some(0.99999));
        assert_eq!(percent("100%"), Some(1.0));
        assert_eq!(percent("101%"), None);
        assert_eq!(percent("-nan%"), None);
        assert_eq!(count("20211"), Some(20211));
        assert_eq!(count("+5"), None);
        assert_eq!(count("99999999999999999999999"), None);
        assert_eq!(metric("2.5k"), Some(2500.0));
        assert_eq!(number("inf"), None);
        assert_eq!(number("-3.5"), Some(-3.5));
    }
}

//! Quantities as text: durations, shares, rates and sizes, each with its unit.

use std::time::Duration;

/// What a duration looks like, for messages.
pub const DURATION_FORM: &str =
    "a number and a unit (ns, us, ms, s, m or h), such as \"10s\" or \"150ms\"";
/// What a share looks like, for messages.
pub const SHARE_FORM: &str = "a number and a percent sign, such as \"3%\"";
/// What a rate looks like, for messages.
pub const RATE_FORM: &str = "\"auto\", or requests per second such as \"2000/s\"";
/// What a size looks like, for messages.
pub const SIZE_FORM: &str =
    "a whole number and a unit (B, kB, MB, GB, KiB, MiB or GiB), such as \"64KiB\"";

/// Reads a duration such as `10s`, `150ms` or `2m`.
///
/// # Errors
/// What is wrong with the text, as a fragment such as "the unit is missing".
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text)?;
    let unit_ns = match unit {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        "" => return Err("the unit is missing".to_owned()),
        other => return Err(format!("unknown unit of time: `{}`", shown(other))),
    };
    let total_ns = (number * unit_ns).round();
    // 64 bits hold 584 years of nanoseconds.
    if total_ns > 365.0 * 86_400e9 {
        return Err("more than a year".to_owned());
    }
    Ok(Duration::from_nanos(total_ns as u64))
}

/// Writes a duration so that [`duration`] reads the same back: the largest unit that divides it.
pub fn duration_text(value: Duration) -> String {
    let ns = value.as_nanos();
    if ns.is_multiple_of(1_000_000_000) {
        format!("{}s", ns / 1_000_000_000)
    } else if ns.is_multiple_of(1_000_000) {
        format!("{}ms", ns / 1_000_000)
    } else if ns.is_multiple_of(1_000) {
        format!("{}us", ns / 1_000)
    } else {
        format!("{ns}ns")
    }
}

/// Reads a share such as `3%` as a fraction (0.03), kept to a millionth of a percent.
///
/// # Errors
/// What is wrong with the text.
pub fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text)?;
    match unit {
        "%" => Ok(millionths(number) / 100.0),
        "" => Err("the percent sign is missing".to_owned()),
        other => Err(format!("expected `%`, found `{}`", shown(other))),
    }
}

/// Writes a fraction so that [`share`] reads the same back.
pub fn share_text(fraction: f64) -> String {
    format!("{}%", millionths(fraction * 100.0))
}

fn millionths(number: f64) -> f64 {
    (number * 1e6).round() / 1e6
}

/// Reads a rate such as `2000/s`, in requests per second.
///
/// # Errors
/// What is wrong with the text.
pub fn rate(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text)?;
    match unit {
        "/s" => Ok(number),
        "/m" | "/min" => Ok(number / 60.0),
        "" => Err("the unit is missing".to_owned()),
        other => Err(format!("unknown unit of rate: `{}`", shown(other))),
    }
}

/// Writes a rate so that [`rate`] reads the same back.
pub fn rate_text(per_s: f64) -> String {
    format!("{per_s}/s")
}

/// How the rate of a link is written.
pub const BIT_RATE_FORM: &str =
    "a number and a unit (bit/s, kbit/s, Mbit/s or Gbit/s), such as \"100Mbit/s\"";

/// Reads the rate of a link such as `100Mbit/s`, in bits per second.
///
/// # Errors
/// What is wrong with the text.
pub fn bit_rate(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let unit_bits = match unit {
        "bit/s" => 1.0,
        "kbit/s" => 1e3,
        "Mbit/s" => 1e6,
        "Gbit/s" => 1e9,
        "" => return Err("the unit is missing".to_owned()),
        "B/s" | "kB/s" | "MB/s" | "GB/s" => {
            return Err("link rates are in bits, not bytes: 1 byte is 8 bits".to_owned());
        }
        other => {
            return Err(format!("unknown unit of a link rate: `{}`", shown(other)));
        }
    };
    let bits = (number * unit_bits).round();
    // Above 2^53 a float does not represent every integer.
    if bits > 9e15 {
        return Err("more than nine petabits".to_owned());
    }
    Ok(bits as u64)
}

/// Writes the rate of a link so that [`bit_rate`] reads the same back.
pub fn bit_rate_text(bits_per_s: u64) -> String {
    for (unit, size) in [
        ("Gbit/s", 1_000_000_000),
        ("Mbit/s", 1_000_000),
        ("kbit/s", 1_000),
    ] {
        if bits_per_s > 0 && bits_per_s.is_multiple_of(size) {
            return format!("{}{unit}", bits_per_s / size);
        }
    }
    format!("{bits_per_s}bit/s")
}

/// Reads a size such as `64KiB`, in bytes.
///
/// # Errors
/// What is wrong with the text.
pub fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text)?;
    let unit_bytes = match unit {
        "B" => 1.0,
        "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        "GiB" => 1024.0 * 1024.0 * 1024.0,
        "" => return Err("the unit is missing".to_owned()),
        other => return Err(format!("unknown unit of size: `{}`", shown(other))),
    };
    let bytes = number * unit_bytes;
    if bytes.fract() != 0.0 {
        return Err("not a whole number of bytes".to_owned());
    }
    // Above 2^53 a float does not represent every integer.
    if bytes > 9e15 {
        return Err("more than nine petabytes".to_owned());
    }
    Ok(bytes as u64)
}

/// Writes a size so that [`size`] reads the same back.
pub fn size_text(bytes: u64) -> String {
    const MI: u64 = 1024 * 1024;
    if bytes > 0 && bytes.is_multiple_of(MI) {
        format!("{}MiB", bytes / MI)
    } else if bytes > 0 && bytes.is_multiple_of(1024) {
        format!("{}KiB", bytes / 1024)
    } else {
        format!("{bytes}B")
    }
}

/// A number without a sign, and the text after it.
fn split(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if number.is_empty() {
        return Err(if text.is_empty() {
            "it is empty".to_owned()
        } else {
            "expected a number first".to_owned()
        });
    }
    let value: f64 = number
        .parse()
        .map_err(|_| format!("`{}` is not a number", shown(number)))?;
    if !value.is_finite() {
        return Err("the number is too large".to_owned());
    }
    Ok((value, unit.trim_start()))
}

/// Text from outside, shortened and without control characters, for a message.
pub fn shown(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == LONGEST {
            out.push('…');
            break;
        }
        if c.is_control() {
            out.extend(c.escape_debug());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn units_mean_what_they_say() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("0.4ms"), Ok(Duration::from_micros(400)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        assert_eq!(share("3%"), Ok(0.03));
        assert_eq!(rate("2000/s"), Ok(2000.0));
        assert_eq!(bit_rate("100Mbit/s"), Ok(100_000_000));
        assert_eq!(bit_rate("1.5 Gbit/s"), Ok(1_500_000_000));
        assert!(bit_rate("100MB/s").unwrap_err().contains("bits"));
        assert_eq!(bit_rate_text(64_000), "64kbit/s");
        assert_eq!(bit_rate_text(1_001), "1001bit/s");
        assert_eq!(size("64KiB"), Ok(65_536));
        assert_eq!(size("0.5kB"), Ok(500));
    }

    #[test]
    fn a_number_alone_or_another_unit_is_refused() {
        for wrong in [
            "10",
            "10x",
            "10 parsecs",
            "",
            "s",
            "-1s",
            "1.2.3s",
            "9e9s",
            "400000h",
        ] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        for wrong in ["3", "0.03", "3 percent", "%"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
        for wrong in ["64", "64k", "1.5B", "99999999GB"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert!(rate("2000").is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back_the_same(
            ns in 0u64..30_000_000_000_000_000,
            bytes in 0u64..9_000_000_000_000_000,
            percent_millionths in 0u64..1_000_000_000,
            per_s in 1e-6f64..1e9,
        ) {
            // A float holds 53 bits, so nanoseconds are exact below 104 days.
            let ns = ns % 9_000_000_000_000_000;
            let time = Duration::from_nanos(ns);
            prop_assert_eq!(duration(&duration_text(time)), Ok(time));
            prop_assert_eq!(size(&size_text(bytes)), Ok(bytes));
            let fraction = share(&format!("{}%", percent_millionths as f64 / 1e6)).unwrap();
            prop_assert_eq!(share(&share_text(fraction)), Ok(fraction));
            prop_assert_eq!(rate(&rate_text(per_s)), Ok(per_s));
        }
    }
}

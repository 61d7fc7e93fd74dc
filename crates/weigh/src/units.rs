//! Values with units on the command line.

use std::time::Duration;

use experiment::units;
use readings::RATE_MAX_PER_S;

/// A duration with its unit, such as `10s`, `150ms` or `2m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    units::duration(text).map_err(|why| format!("{why}; a duration is {}", units::DURATION_FORM))
}

/// A duration above zero.
pub fn some_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err(format!(
            "expected a time above 0, such as 10s or 150ms, found `{text}`"
        )),
        time => Ok(time),
    }
}

/// The length of a load's rows.
pub fn row(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        time if time < load::ROW_MIN => Err(format!(
            "expected at least {:?}, found `{text}`",
            load::ROW_MIN
        )),
        time => Ok(time),
    }
}

/// A rate in requests per second: `2000`, `2000/s`.
pub fn rate(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix("/s").unwrap_or(text);
    match number.trim().replace('_', "").parse::<f64>() {
        Ok(rate) if rate > RATE_MAX_PER_S => Err(too_high(text)),
        Ok(rate) if rate > 0.0 => Ok(rate),
        _ => Err(format!(
            "expected requests per second above 0, such as 2000 or 2000/s, found `{text}`"
        )),
    }
}

/// Of a rate that no client can offer.
fn too_high(text: &str) -> String {
    format!(
        "expected at most {RATE_MAX_PER_S} requests per second, which no client exceeds, found \
         `{text}`"
    )
}

/// A share such as `2%`, as a fraction.
pub fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').map(str::trim);
    match number.and_then(|n| n.parse::<f64>().ok()) {
        Some(percent) if percent.is_finite() && percent > 0.0 => Ok(percent / 100.0),
        _ => Err(format!(
            "expected a share above 0 such as 2%, found `{text}`"
        )),
    }
}

/// A stage of an open loop: `10s@2000`, or `10s@0-2000` for a ramp.
pub fn stage(text: &str) -> Result<load::Stage, String> {
    let wrong = || {
        format!(
            "expected a time and requests per second, such as 10s@2000, or 10s@0-2000 for a ramp, \
             found `{text}`"
        )
    };
    let rate = |text: &str| match text.trim().replace('_', "").parse::<f64>() {
        Ok(rate) if rate > RATE_MAX_PER_S => Err(too_high(text)),
        Ok(rate) if rate >= 0.0 => Ok(rate),
        _ => Err(wrong()),
    };
    let (time, rates) = text.split_once('@').ok_or_else(wrong)?;
    let duration = duration(time.trim())?;
    if duration.is_zero() {
        return Err(wrong());
    }
    let rates = rates.trim().trim_end_matches("/s");
    let (from, to) = rates.split_once('-').unwrap_or((rates, rates));
    Ok(load::Stage {
        duration,
        from_per_s: rate(from)?,
        to_per_s: rate(to)?,
    })
}

/// CPUs with successive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuRange {
    first: u32,
    last: u32,
}

/// Above the number of any CPU: the kernel is built for at most 8192.
const CPU_MAX: u32 = 65_535;

/// A CPU or a range as `taskset` takes it: `2`, `0-3`.
pub fn cpu_range(text: &str) -> Result<CpuRange, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if first <= last && last <= CPU_MAX => Ok(CpuRange { first, last }),
        _ => Err(format!(
            "expected the numbers of CPUs, such as 2 or 0-3,5, found `{text}`"
        )),
    }
}

/// The CPUs of several ranges, in their order.
pub fn cpus(ranges: &[CpuRange]) -> Vec<u32> {
    ranges.iter().flat_map(|one| one.first..=one.last).collect()
}

/// `KEY=VALUE`.
pub fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok((key.trim().to_string(), value.trim().to_string()))
        }
        _ => Err(format!("expected NAME=VALUE, found `{text}`")),
    }
}

/// `Name: value`.
pub fn header(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("expected a header such as `Accept: text/html`, found `{text}`");
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let name_ok = !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b));
    let value = value.trim();
    if !name_ok || value.bytes().any(|b| b == b'\r' || b == b'\n' || b == 0) {
        return Err(wrong());
    }
    // A length given here would be a second one beside the body's.
    for own in ["Content-Length", "Transfer-Encoding"] {
        if name.eq_ignore_ascii_case(own) {
            return Err(format!(
                "{own} cannot be given: with `weigh load`, --body gives the length of the body, which \
                 is 0 with --body ''"
            ));
        }
    }
    // The connection could not be used again (RFC 9112, 9.6).
    let closes = |option: &str| option.trim().eq_ignore_ascii_case("close");
    if name.eq_ignore_ascii_case("Connection") && value.split(',').any(closes) {
        return Err(
            "Connection: close cannot be given, as the load keeps its connections; `weigh load` opens one \
             for each request with --no-keepalive, an experiment with `keepalive = false`"
                .into(),
        );
    }
    Ok((name.to_string(), value.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_asked_for_and_headers_cannot_smuggle() {
        assert_eq!(duration("150ms"), Ok(Duration::from_millis(150)));
        assert!(duration("10").is_err());
        assert_eq!(some_time("1ns"), Ok(Duration::from_nanos(1)));
        assert!(some_time("0s").is_err() && some_time("1").is_err());
        assert_eq!(row("10ms"), Ok(Duration::from_millis(10)));
        assert!(row("9ms").is_err() && row("0s").is_err());
        assert_eq!(rate("2000/s"), Ok(2000.0));
        assert!(rate("-1").is_err());
        assert_eq!(rate("100_000_000"), Ok(RATE_MAX_PER_S));
        for high in [
            rate("1e12"),
            rate("inf"),
            stage("1s@0-1e9").map(|one| one.to_per_s),
        ] {
            assert!(high.unwrap_err().contains("at most 100000000 requests"));
        }
        assert_eq!(share("2%"), Ok(0.02));
        assert!(share("2").is_err() && share("0%").is_err());
        let ramp = stage("10s@0-2_000").unwrap();
        assert_eq!(ramp.duration, Duration::from_secs(10));
        assert_eq!((ramp.from_per_s, ramp.to_per_s), (0.0, 2_000.0));
        assert_eq!(stage("1m@50/s").unwrap().from_per_s, 50.0);
        for bad in [
            "10s", "10s@", "0s@5", "10@5", "1s@-5", "1s@x", "1s@1-2-3", "1s@inf",
        ] {
            assert!(stage(bad).is_err(), "{bad}");
        }
        for wrong in [duration("1"), some_time("-1s")] {
            let text = wrong.unwrap_err();
            assert!(text.contains("such as \"10s\" or \"150ms\""), "{text}");
        }
        assert_eq!(header("A: b"), Ok(("A".into(), "b".into())));
        assert!(header("A b").is_err());
        assert!(header("A: b\r\nC: d").is_err());
        for closes in ["Connection: close", "connection: upgrade , Close"] {
            assert!(
                header(closes).unwrap_err().contains("--no-keepalive"),
                "{closes}"
            );
        }
        assert!(header("Connection: upgrade").is_ok());
    }

    #[test]
    fn cpus_are_numbers_and_ranges() {
        let all = |text: &str| -> Result<Vec<u32>, String> {
            let ranges: Result<Vec<_>, _> = text.split(',').map(cpu_range).collect();
            Ok(cpus(&ranges?))
        };
        assert_eq!(all("2"), Ok(vec![2]));
        assert_eq!(all("0-3,5"), Ok(vec![0, 1, 2, 3, 5]));
        assert_eq!(all("7,1-1"), Ok(vec![7, 1]));
        for wrong in ["", "x", "3-1", "-1", "1-", "0-1-2", "0-4294967295", "+"] {
            let text = all(wrong).unwrap_err();
            assert!(text.contains("such as 2 or 0-3,5"), "{text}");
        }
    }
}

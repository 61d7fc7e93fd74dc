//! Deadlines: the field `grpc-timeout`.

use std::time::Duration;

/// The letters of the units and their lengths in ns, from the shortest.
const UNITS: [(u8, u64); 6] = [
    (b'n', 1),
    (b'u', 1_000),
    (b'm', 1_000_000),
    (b'S', 1_000_000_000),
    (b'M', 60_000_000_000),
    (b'H', 3_600_000_000_000),
];

/// A value has at most eight digits.
const VALUE_MAX: u128 = 99_999_999;

/// Writes a `grpc-timeout`: in the shortest unit in which its value has at most eight digits, rounded
/// up. One of more than 99,999,999 hours is cut to that.
pub fn timeout(timeout: Duration) -> String {
    let ns = timeout.as_nanos();
    let values = UNITS.map(|(unit, length)| (ns.div_ceil(u128::from(length)), unit));
    let fits = values.iter().find(|(value, _)| *value <= VALUE_MAX);
    let (value, unit) = fits.copied().unwrap_or((VALUE_MAX, b'H'));
    format!("{value}{}", char::from(unit))
}

/// Reads a `grpc-timeout`; `None` if it is not one to eight digits and a unit.
pub fn parse_timeout(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    let (_, length) = UNITS.iter().find(|(letter, _)| letter == unit)?;
    let is_value = (1..=8).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit);
    if !is_value {
        return None;
    }
    let value = digits
        .iter()
        .fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    // In seconds and the rest, because hours of that number do not fit in ns.
    let (per_s, whole) = (1_000_000_000, *length);
    Some(match whole < per_s {
        true => Duration::from_nanos(value * whole),
        false => Duration::from_secs(value * (whole / per_s)),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_deadline_has_eight_digits_at_most() {
        assert_eq!(timeout(Duration::from_millis(50)), "50000000n");
        assert_eq!(timeout(Duration::from_millis(1500)), "1500000u");
        assert_eq!(timeout(Duration::from_secs(1_000_000)), "1000000S");
        assert_eq!(timeout(Duration::MAX), "99999999H");
        for bad in [&b""[..], b"S", b"1", b"123456789n", b"1s", b"-1S", b"1.5S"] {
            assert_eq!(parse_timeout(bad), None, "{}", bad.escape_ascii());
        }
        let hours = Duration::from_secs(99_999_999 * 3600);
        assert_eq!(parse_timeout(b"99999999H"), Some(hours));
    }

    proptest! {
        #[test]
        fn a_deadline_is_read_as_written_or_a_little_later(ns in 0u64..u64::MAX) {
            let deadline = Duration::from_nanos(ns);
            let read = parse_timeout(timeout(deadline).as_bytes()).unwrap();
            prop_assert!(read >= deadline);
            // Eight digits, of which the unit may leave four or fewer unused.
            prop_assert!(read.as_secs_f64() <= deadline.as_secs_f64() * 1.001 + 1e-9);
        }
    }
}

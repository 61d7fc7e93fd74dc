//! Times in logs, and times that options name.

use std::str::FromStr;
use std::time::Duration;

const S: i64 = 1_000_000_000;
const DAY_S: i64 = 86_400;

/// A time in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// Since 1970, UTC, ns.
    pub ns: i64,
    /// What the log's clock is ahead of UTC, s.
    pub ahead_s: i64,
    /// Whether it names whole seconds only.
    pub is_coarse: bool,
    /// Whether the zone of that clock is known; otherwise UTC is assumed.
    pub has_zone: bool,
}

impl Time {
    /// `27/Nov/2026:10:00:00 +0100`
    pub(super) fn of_clf(text: &str) -> Option<Self> {
        let (date, zone) = text.trim().split_once(' ')?;
        Self::of_words(date, zone_s(zone)?)
    }

    /// `27/Nov/2026:10:00:00.123`, by a clock whose zone is not known.
    pub(super) fn of_haproxy(text: &str) -> Option<Self> {
        let time = Self::of_words(text, 0)?;
        Some(Self {
            has_zone: false,
            ..time
        })
    }

    /// A date with the name of the month, and a time of day.
    fn of_words(text: &str, ahead_s: i64) -> Option<Self> {
        const MONTHS: [&str; 12] = [
            "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
        ];
        let (date, time) = text.split_once(':')?;
        let mut parts = date.split('/');
        let day = whole(parts.next()?)?;
        let name = parts.next()?;
        let month = MONTHS.iter().position(|one| *one == name)? as i64 + 1;
        let year = whole(parts.next()?)?;
        Self::of_parts((year, month, day), time, ahead_s)
    }

    /// `2026-11-27T10:00:00.123+01:00`; without a zone, it is UTC.
    pub(crate) fn of_iso(text: &str) -> Option<Self> {
        let (time, zone) = iso_parts(text)?;
        let zone = zone.map(zone_s);
        let ahead_s = match zone {
            None => 0,
            Some(ahead) => ahead?,
        };
        let (date, time) = time;
        let time = Self::of_parts(date, time, ahead_s)?;
        Some(Self {
            has_zone: zone.is_some(),
            ..time
        })
    }

    /// Seconds since 1970, or milliseconds.
    pub(super) fn of_epoch(number: f64) -> Option<Self> {
        let seconds = if number > 1e11 { number / 1e3 } else { number };
        // i64 ends in 2262.
        (0.0..9.2e9).contains(&seconds).then(|| Self {
            // Microseconds are all that a double of this size has.
            ns: (seconds * 1e6).round() as i64 * 1000,
            ahead_s: 0,
            is_coarse: number.fract() == 0.0 && number < 1e11,
            has_zone: true,
        })
    }

    fn of_parts(date: (i64, i64, i64), time: &str, ahead_s: i64) -> Option<Self> {
        let day = days(date)?;
        let (ns, has_fraction) = time_of_day(time)?;
        Some(Self {
            // i64 ends in 2262.
            ns: (day * DAY_S - ahead_s).checked_mul(S)?.checked_add(ns)?,
            ahead_s,
            is_coarse: !has_fraction,
            has_zone: true,
        })
    }
}

/// Date, time of day, and zone of an ISO 8601 time.
type IsoParts<'t> = (((i64, i64, i64), &'t str), Option<&'t str>);

fn iso_parts(text: &str) -> Option<IsoParts<'_>> {
    let text = text.trim();
    let (date, rest) = text.split_once(['T', ' '])?;
    let mut parts = date.split(['-', '/']);
    let date = (
        whole(parts.next()?)?,
        whole(parts.next()?)?,
        whole(parts.next()?)?,
    );
    if parts.next().is_some() {
        return None;
    }
    let rest = rest.trim();
    let zone = rest.find(['Z', '+', '-']);
    let (time, zone) = rest.split_at(zone.unwrap_or(rest.len()));
    let zone = Some(zone.trim()).filter(|zone| !zone.is_empty());
    Some(((date, time.trim()), zone))
}

fn whole(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.len() <= 4 && text.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// `+0100`, `-01:00` or `Z` in seconds.
fn zone_s(text: &str) -> Option<i64> {
    if text == "Z" {
        return Some(0);
    }
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let digits = digits.replace(':', "");
    let (hours, minutes) = digits.split_at_checked(2)?;
    let minutes = if minutes.is_empty() { "00" } else { minutes };
    let (hours, minutes) = (whole(hours)?, whole(minutes)?);
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// `10:00:00.123` in ns, and whether there is a fraction.
fn time_of_day(text: &str) -> Option<(i64, bool)> {
    let (clock, fraction) = match text.split_once(['.', ',']) {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (text, None),
    };
    let mut parts = clock.split(':');
    let (hour, minute) = (whole(parts.next()?)?, whole(parts.next()?)?);
    let second = parts.next().map_or(Some(0), whole)?;
    // A leap second is the next minute's first.
    if hour > 23 || minute > 59 || second > 60 || parts.next().is_some() {
        return None;
    }
    let below = match fraction {
        None => 0,
        Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
            let nine: String = digits.chars().chain("000000000".chars()).take(9).collect();
            nine.parse().ok()?
        }
        Some(_) => return None,
    };
    let whole_s = hour * 3600 + minute * 60 + second;
    Some((whole_s * S + below, fraction.is_some()))
}

/// Days from 1970 to a date of the Gregorian calendar.
fn days((year, month, day): (i64, i64, i64)) -> Option<i64> {
    const BEFORE_MONTH: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    const LENGTHS: [i64; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let index = usize::try_from(month).ok()?.checked_sub(1)?;
    let is_date = year >= 1970 && (1..=*LENGTHS.get(index)?).contains(&day);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let before = year - 1;
    let leap_days = before / 4 - before / 100 + before / 400 - 477;
    let this_year = BEFORE_MONTH[index] + i64::from(is_leap && month > 2) + day - 1;
    is_date.then_some((year - 1970) * 365 + leap_days + this_year)
}

/// A time that an option names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Since 1970, UTC, ns.
    At(i64),
    /// As `At`, by the log's clock.
    Local(i64),
    /// Since the beginning of the log's first day by its clock, ns.
    OfDay(i64),
    /// After the log's first line.
    After(Duration),
}

impl Moment {
    /// The time in a log with this first line; since 1970, UTC, ns.
    pub(super) fn in_log(self, first: Time) -> i64 {
        let ahead = first.ahead_s * S;
        match self {
            Self::At(ns) => ns,
            Self::Local(ns) => ns.saturating_sub(ahead),
            Self::OfDay(ns) => {
                let day = first.ns.saturating_add(ahead).div_euclid(DAY_S * S);
                (day * DAY_S * S).saturating_sub(ahead).saturating_add(ns)
            }
            Self::After(after) => {
                let after = i64::try_from(after.as_nanos()).unwrap_or(i64::MAX);
                first.ns.saturating_add(after)
            }
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((ns, _)) = time_of_day(text) {
            return Ok(Self::OfDay(ns));
        }
        let has_zone = iso_parts(text).map(|(_, zone)| zone.is_some());
        match (Time::of_iso(text), has_zone) {
            (Some(time), Some(true)) => Ok(Self::At(time.ns)),
            (Some(time), _) => Ok(Self::Local(time.ns)),
            (None, _) => Err(format!(
                "expected a time such as 2026-11-27T10:00:00Z or 10:00:00, or one after the first \
                 line, such as 90s; found `{text}`"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_all_forms_are_the_same() {
        let expected = 1_795_773_600 * S;
        for (text, time) in [
            ("clf", Time::of_clf("27/Nov/2026:11:00:00 +0100")),
            ("haproxy", Time::of_haproxy("27/Nov/2026:10:00:00")),
            ("iso", Time::of_iso("2026-11-27T10:00:00Z")),
            ("zone", Time::of_iso("2026-11-27 08:30:00-01:30")),
            ("caddy", Time::of_iso("2026/11/27 10:00:00")),
            ("epoch", Time::of_epoch(1_795_773_600.0)),
        ] {
            let time = time.unwrap();
            assert_eq!((time.ns, time.is_coarse), (expected, true), "{text}");
        }
        let fine = Time::of_haproxy("27/Nov/2026:10:00:00.25").unwrap();
        assert_eq!((fine.ns - expected, fine.is_coarse), (S / 4, false));
        let ms = Time::of_epoch(1_795_773_600_250.0).unwrap();
        assert_eq!((ms.ns - expected, ms.is_coarse), (S / 4, false));
        let leap = Time::of_iso("2024-02-29T00:00:00Z").unwrap();
        assert_eq!(leap.ns, 1_709_164_800 * S);
        for bad in [
            "27/Non/2026:11:00:00 +0100",
            "32/Nov/2026:11:00:00 +0100",
            "",
        ] {
            assert_eq!(Time::of_clf(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_moment_is_by_the_logs_clock_unless_it_has_a_zone() {
        let first = Time::of_clf("27/Nov/2026:00:30:00 +0100").unwrap();
        let of = |text: &str| text.parse::<Moment>().unwrap().in_log(first) - first.ns;
        assert_eq!(of("2026-11-27T00:30:01"), S);
        assert_eq!(of("2026-11-26T23:30:02Z"), 2 * S);
        assert_eq!(of("00:31"), 60 * S);
        assert_eq!(
            Moment::After(Duration::from_secs(9)).in_log(first) - first.ns,
            9 * S
        );
        for bad in ["", "x", "25:00", "2026-13-01T00:00:00Z"] {
            assert!(bad.parse::<Moment>().is_err(), "{bad}");
        }
    }
}

//! Times, sizes and names in readable form.

use crate::Utc;

/// A time in microseconds as `412us`, `1.23ms` or `2.10s`: three significant digits.
pub fn time(us: f64) -> String {
    let (value, unit) = if us < 999.5 {
        (us, "us")
    } else if us < 999_500.0 {
        (us / 1e3, "ms")
    } else {
        (us / 1e6, "s")
    };
    format!("{}{unit}", three_digits(value))
}

/// A size as `812B`, `23.4kB`, `1.02GB`: three significant digits, in the units of [`SIZES`].
pub fn bytes(count: f64) -> String {
    let (of, unit) = size_unit(count);
    match of {
        1.0 => format!("{count:.0}{unit}"),
        of => format!("{}{unit}", three_digits(count / of)),
    }
}

/// The units in which sizes are shown, the largest first, with their bytes: powers of 1000, as
/// settings and gates read them.
pub const SIZES: [(f64, &str); 6] = [
    (1e15, "PB"),
    (1e12, "TB"),
    (1e9, "GB"),
    (1e6, "MB"),
    (1e3, "kB"),
    (1.0, "B"),
];

/// The largest unit of which a size has at least one, rounded to three digits, and its bytes.
pub fn size_unit(bytes: f64) -> (f64, &'static str) {
    let reaches = |(of, _): &(f64, &str)| bytes >= 0.9995 * of;
    SIZES.into_iter().find(reaches).unwrap_or((1.0, "B"))
}

/// A number with three significant digits; from 100 up a whole number, with its thousands grouped: `1,080`.
pub fn three_digits(value: f64) -> String {
    if value >= 999.5 {
        super::grouped(value.round() as u64)
    } else if value >= 99.95 || value == 0.0 {
        format!("{value:.0}")
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// A text cut to a number of characters, with an ellipsis if it was longer.
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// A text cut to a number of characters, with an ellipsis in its middle if it was longer: names
/// often differ at their end.
pub fn ends_kept(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most || most < 3 {
        return shortened(text, most);
    }
    let (begin, end) = ((most - 1).div_ceil(2), (most - 1) / 2);
    let first: String = text.chars().take(begin).collect();
    let last: String = text.chars().skip(count - end).collect();
    format!("{first}…{last}")
}

/// Seconds since 1970 as `23 November 2026, 04:12 UTC`.
pub fn utc(unix_s: u64) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let Utc {
        year,
        month,
        day,
        hour,
        minute,
        ..
    } = Utc::of(unix_s);
    let month = MONTHS[(month as usize - 1) % 12];
    format!("{day} {month} {year}, {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_change_their_unit() {
        for (us, text) in [
            (0.0, "0us"),
            (0.25, "0.25us"),
            (412.3, "412us"),
            (999.9, "1.00ms"),
            (46_270.0, "46.3ms"),
            (168_580.0, "169ms"),
            (5_284_000.0, "5.28s"),
        ] {
            assert_eq!(time(us), text);
        }
    }

    #[test]
    fn sizes_count_in_1000_as_their_units_are_defined() {
        for (count, text) in [
            (0.0, "0B"),
            (812.0, "812B"),
            (999.0, "999B"),
            (999.7, "1.00kB"),
            (1_536.0, "1.54kB"),
            (999_700.0, "1.00MB"),
            (25_489_408.0, "25.5MB"),
            (2e18, "2,000PB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1 January 1970, 00:00 UTC");
        assert_eq!(utc(951_827_696), "29 February 2000, 12:34 UTC");
        assert_eq!(utc(u64::MAX / 1_000_000).split(' ').count(), 5);
    }

    #[test]
    fn the_ends_of_a_long_name_stay() {
        assert_eq!(ends_kept("abcdefgh", 8), "abcdefgh");
        assert_eq!(ends_kept("abcdefghi", 6), "abc…hi");
        assert_eq!(ends_kept("äöüß", 3), "ä…ß");
        assert_eq!(ends_kept("abc", 2), "a…");
    }

    #[test]
    fn long_names_are_cut_by_characters() {
        assert_eq!(shortened("ééééé", 5), "ééééé");
        assert_eq!(shortened("éééééé", 5), "éééé…");
    }
}

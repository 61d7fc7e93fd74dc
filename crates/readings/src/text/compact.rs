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

/// A size as `812B`, `23.4KB`, `1.02GB`: powers of 1024 with the letters that wrk uses.
pub fn bytes(count: f64) -> String {
    let mut value = count;
    let mut unit = "B";
    for next in ["KB", "MB", "GB", "TB", "PB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    if unit == "B" {
        format!("{value:.0}B")
    } else {
        format!("{value:.2}{unit}")
    }
}

/// A number with three significant digits, none of them after a point from 100 up.
pub fn three_digits(value: f64) -> String {
    if value >= 99.95 || value == 0.0 {
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
    fn sizes_count_in_1024() {
        assert_eq!(bytes(812.0), "812B");
        assert_eq!(bytes(1536.0), "1.50KB");
        assert_eq!(bytes(3.0 * 1024.0 * 1024.0), "3.00MB");
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

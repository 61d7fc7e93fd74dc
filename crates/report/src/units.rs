//! Times, sizes and names as they are read best.

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
pub(crate) fn three_digits(value: f64) -> String {
    if value >= 99.95 || value == 0.0 {
        format!("{value:.0}")
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// A text cut to a number of characters, with an ellipsis if it was longer.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
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
    fn long_names_are_cut_by_characters() {
        assert_eq!(shortened("ééééé", 5), "ééééé");
        assert_eq!(shortened("éééééé", 5), "éééé…");
    }
}

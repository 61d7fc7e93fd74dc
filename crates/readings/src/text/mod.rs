//! How numbers and names are written, so that every sentence and table writes them alike.

pub mod compact;

pub use crate::condition_text as condition;

/// A whole number with a comma after every three digits: `31,204`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A rate per second: whole and grouped from 100 up, with one or two decimals below.
pub fn rate(per_s: f64) -> String {
    if per_s >= 99.95 {
        grouped(per_s.round() as u64)
    } else if per_s >= 9.995 {
        format!("{per_s:.1}")
    } else {
        format!("{per_s:.2}")
    }
}

/// A time in microseconds with three digits in the unit that it is read best in: `412 us`, `1.80
/// ms`, `2.10 s`.
pub fn time(us: f64) -> String {
    time_as(us, us)
}

/// Two times in microseconds in one unit, with as many decimals as the longer one has: `0.83 ms`
/// and `2.22 ms`.
pub fn times_alike(a_us: f64, b_us: f64) -> (String, String) {
    let longer = a_us.max(b_us);
    (time_as(a_us, longer), time_as(b_us, longer))
}

/// A time in the unit and with the decimals of another one.
fn time_as(us: f64, like_us: f64) -> String {
    let (per_unit, unit) = if like_us < 999.5 {
        (1.0, "us")
    } else if like_us < 999_500.0 {
        (1e3, "ms")
    } else {
        (1e6, "s")
    };
    let decimals = match like_us / per_unit {
        v if v >= 99.95 || unit == "us" => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{:.decimals$} {unit}", us / per_unit)
}

/// A count with its noun in the right number: `1 block`, `10 blocks`.
pub fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(count as u64))
}

/// `a`, `a and b`, `a, b and c`.
pub fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A fraction as a percentage without needless digits: 0.03 is `3%`, 0.025 is `2.5%`.
pub fn fraction(value: f64) -> String {
    let text = format!("{:.2}", value * 100.0);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}%")
}

/// How many decimals a percentage deserves whose interval is `width` percentage points wide.
pub fn decimals_for_width(width: f64) -> usize {
    if width >= 3.0 {
        0
    } else if width >= 0.3 {
        1
    } else {
        2
    }
}

/// A percentage; `signed` shows a plus as well. Zero has no sign.
pub fn percent(value: f64, decimals: usize, signed: bool) -> String {
    format!("{}%", number(value, decimals, signed))
}

/// A number with so many decimals; `signed` shows a plus as well. Zero has no sign.
pub fn number(value: f64, decimals: usize, signed: bool) -> String {
    let text = if signed {
        format!("{value:+.decimals$}")
    } else {
        format!("{value:.decimals$}")
    };
    if text.chars().all(|c| matches!(c, '+' | '-' | '0' | '.')) {
        text.trim_start_matches(['+', '-']).to_owned()
    } else {
        text
    }
}

/// A ratio with its interval as signed percentages: `+0.4% [-0.9%, +1.7%]`; without an interval
/// only the estimate.
pub fn change(ratio: f64, interval: Option<(f64, f64)>) -> String {
    let estimate = (ratio - 1.0) * 100.0;
    let Some((low, high)) = interval else {
        return percent(estimate, 1, true);
    };
    let (low, high) = ((low - 1.0) * 100.0, (high - 1.0) * 100.0);
    let decimals = decimals_of_interval(low, high);
    format!(
        "{} [{}, {}]",
        percent(estimate, decimals, true),
        percent(low, decimals, true),
        percent(high, decimals, true)
    )
}

/// The decimals for an interval, one more where an end that is not zero would be shown as zero.
pub fn decimals_of_interval(low: f64, high: f64) -> usize {
    let decimals = decimals_for_width(high - low);
    let vanishes = |v: f64| v != 0.0 && v.abs() < 0.5 * 0.1_f64.powi(decimals as i32);
    if vanishes(low) || vanishes(high) {
        (decimals + 1).min(2)
    } else {
        decimals
    }
}

/// The words of all items, with commas between them.
pub fn joined<T>(items: &[T], words: impl Fn(&T) -> String) -> String {
    items.iter().map(words).collect::<Vec<_>>().join(", ")
}

/// Each of them once, as it first comes.
pub fn once<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (31_204, "31,204"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(n), text);
        }
        assert_eq!(rate(561.58), "562");
        assert_eq!(rate(20_000.2), "20,000");
        assert_eq!(rate(45.26), "45.3");
        assert_eq!(rate(1.234), "1.23");
        assert_eq!(counted(1, "block"), "1 block");
    }

    #[test]
    fn digits_go_no_further_than_the_interval() {
        assert_eq!(change(1.004, Some((0.991, 1.017))), "+0.4% [-0.9%, +1.7%]");
        assert_eq!(change(0.69, Some((0.67, 0.71))), "-31% [-33%, -29%]");
        assert_eq!(
            change(1.0012, Some((1.0005, 1.0019))),
            "+0.12% [+0.05%, +0.19%]"
        );
        // An interval that excludes zero must not look as if it held it.
        assert_eq!(change(1.034, Some((1.003, 1.065))), "+3.4% [+0.3%, +6.5%]");
        assert_eq!(change(1.0, None), "0.0%");
        assert_eq!(change(0.9999, Some((0.97, 1.03))), "0% [-3%, +3%]");
    }

    #[test]
    fn times_change_their_unit() {
        for (us, text) in [
            (4.0, "4 us"),
            (999.0, "999 us"),
            (1_804.0, "1.80 ms"),
            (43_000.0, "43.0 ms"),
            (119_734.0, "120 ms"),
            (2_100_000.0, "2.10 s"),
        ] {
            assert_eq!(time(us), text);
        }
    }

    #[test]
    fn fractions_drop_needless_zeros() {
        assert_eq!(fraction(0.03), "3%");
        assert_eq!(fraction(0.025), "2.5%");
        assert_eq!(fraction(0.1), "10%");
    }
}

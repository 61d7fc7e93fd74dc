//! Dates, UTC.

use readings::Utc;

/// Seconds since 1970 as `2026-03-01 10:15`.
pub fn date(unix_s: u64) -> String {
    let at = Utc::of(unix_s);
    let day = format!("{:04}-{:02}-{:02}", at.year, at.month, at.day);
    format!("{day} {:02}:{:02}", at.hour, at.minute)
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates_sort_as_texts() {
        assert_eq!(super::date(1_772_360_100), "2026-03-01 10:15");
    }
}

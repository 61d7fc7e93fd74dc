//! Dates, UTC.

use readings::Utc;

/// Seconds since 1970 as `2026-03-01 10:15`.
pub fn date(unix_s: u64) -> String {
    let Utc {
        year,
        month,
        day,
        hour,
        minute,
        ..
    } = Utc::of(unix_s);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn dates_sort_as_texts() {
        assert_eq!(super::date(1_772_360_100), "2026-03-01 10:15");
    }
}

//! Dates in logs.

use std::fmt;

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Seconds since 1970, shown in UTC as in the Common Log Format: `10/Oct/2000:20:55:36 +0000`.
pub(super) struct Date(pub(super) u64);

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, second) = (self.0 / 86_400, self.0 % 86_400);
        // Days to a civil date (H. Hinnant, "chrono-compatible low-level date algorithms").
        let days = days + 719_468;
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * from_march + 2) / 5 + 1;
        let month = (from_march + 2) % 12;
        let year = era * 400 + year_of_era + u64::from(month < 2);
        write!(
            f,
            "{day:02}/{}/{year:04}:{:02}:{:02}:{:02} +0000",
            MONTHS[month as usize],
            second / 3_600,
            second / 60 % 60,
            second % 60
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix_s, shown) in [
            (0, "01/Jan/1970:00:00:00 +0000"),
            (951_782_399, "28/Feb/2000:23:59:59 +0000"),
            (951_782_400, "29/Feb/2000:00:00:00 +0000"),
            (971_211_336, "10/Oct/2000:20:55:36 +0000"),
            (1_709_251_199, "29/Feb/2024:23:59:59 +0000"),
            (1_709_251_200, "01/Mar/2024:00:00:00 +0000"),
            (4_102_444_799, "31/Dec/2099:23:59:59 +0000"),
        ] {
            assert_eq!(Date(unix_s).to_string(), shown);
        }
    }
}

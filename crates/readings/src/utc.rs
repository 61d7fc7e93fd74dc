//! The calendar.

/// A moment, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utc {
    pub year: u64,
    /// 1 to 12.
    pub month: u64,
    /// 1 to 31.
    pub day: u64,
    pub hour: u64,
    pub minute: u64,
    pub second: u64,
}

impl Utc {
    /// From seconds since 1970 (the algorithm is H. Hinnant's `civil_from_days`).
    pub fn of(unix_s: u64) -> Self {
        let (days, seconds) = (unix_s / 86_400, unix_s % 86_400);
        let z = days + 719_468;
        let (era, day_of_era) = (z / 146_097, z % 146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * day_of_year + 2) / 153;
        let month = (from_march + 2) % 12 + 1;
        Self {
            year: year_of_era + era * 400 + u64::from(month <= 2),
            month,
            day: day_of_year - (153 * from_march + 2) / 5 + 1,
            hour: seconds / 3_600,
            minute: seconds / 60 % 60,
            second: seconds % 60,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix_s, date, time) in [
            (0, (1970, 1, 1), (0, 0, 0)),
            (951_782_399, (2000, 2, 28), (23, 59, 59)),
            (951_782_400, (2000, 2, 29), (0, 0, 0)),
            (1_709_251_200, (2024, 3, 1), (0, 0, 0)),
            (1_772_360_100, (2026, 3, 1), (10, 15, 0)),
            (4_102_444_799, (2099, 12, 31), (23, 59, 59)),
        ] {
            let utc = Utc::of(unix_s);
            assert_eq!((utc.year, utc.month, utc.day), date);
            assert_eq!((utc.hour, utc.minute, utc.second), time);
        }
    }
}

//! What the pauses of the client did to a latency.

use verdict::WithoutPauses;
use verdict::text::{counted, number};

use crate::units::time;

fn percent(percent: f64) -> String {
    number(percent, usize::from(percent < 9.95), false)
}

/// The p99 with and without the times in which the client's CPU stood still.
pub(crate) fn without_pauses(found: &WithoutPauses) -> String {
    let share = percent(found.share_left_out * 100.0);
    let without = match found.p99_us_without {
        Some(p99_us) => format!("{} (with them {})", time(p99_us), time(found.p99_us)),
        None => "too few requests are left".to_owned(),
    };
    format!(
        "p99 without the {share}% of the time in which the client's CPU stood still: {without}; \
         {}, the longest of {}",
        counted(found.pauses as usize, "pause"),
        time(found.longest_ms * 1e3)
    )
}

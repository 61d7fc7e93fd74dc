//! What the pauses of the client did to a latency.

use crate::WithoutPauses;
use readings::text::{counted, number};

use readings::text::compact::time;

/// In percent; never 0% or 100%.
fn share(share: f64) -> String {
    let percent = share * 100.0;
    let digits = usize::from(!(9.95..99.5).contains(&percent));
    number(percent.clamp(0.1, 99.9), digits, false)
}

/// How often the client's own CPU stood still in the open loop, and p99 in the time that was not
/// affected: a section that holds a pause or follows one is left out.
pub fn without_pauses(found: &WithoutPauses) -> String {
    let paused = format!(
        "the client's own CPU stood still {}, for up to {}, which delays answers whatever the server \
         does",
        counted(found.pauses as usize, "time"),
        time(found.longest_ms * 1e3),
    );
    if found.share_left_out >= 1.0 {
        return format!(
            "{paused}: it did so in every {:.0} ms of the open loop, so there is no p99 without it",
            found.section_s * 1e3,
        );
    }
    let rest = share(1.0 - found.share_left_out);
    match found.p99_us_without {
        Some(p99_us) => format!(
            "{paused}: p99 is {}, and {} in the {rest}% of the time that was not affected",
            time(found.p99_us),
            time(p99_us)
        ),
        None => format!(
            "{paused}: p99 is {}; the {rest}% of the time that was not affected has too few requests \
             for a p99",
            time(found.p99_us)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(share_left_out: f64, p99_us_without: Option<f64>) -> WithoutPauses {
        WithoutPauses {
            pauses: 160,
            longest_ms: 8.2,
            share_left_out,
            section_s: 0.1,
            p99_us: 9_410.0,
            p99_us_without,
        }
    }

    #[test]
    fn the_time_that_pauses_did_not_affect_is_told() {
        assert_eq!(
            without_pauses(&found(0.23, Some(1_200.0))),
            "the client's own CPU stood still 160 times, for up to 8.20ms, which delays answers \
             whatever the server does: p99 is 9.41ms, and 1.20ms in the 77% of the time that was not \
             affected"
        );
        assert_eq!(
            without_pauses(&found(0.9996, None)),
            "the client's own CPU stood still 160 times, for up to 8.20ms, which delays answers \
             whatever the server does: p99 is 9.41ms; the 0.1% of the time that was not affected has \
             too few requests for a p99"
        );
    }

    #[test]
    fn where_all_of_it_would_be_left_out_no_share_is_given() {
        assert_eq!(
            without_pauses(&found(1.0, None)),
            "the client's own CPU stood still 160 times, for up to 8.20ms, which delays answers \
             whatever the server does: it did so in every 100 ms of the open loop, so there is no p99 \
             without it"
        );
    }
}

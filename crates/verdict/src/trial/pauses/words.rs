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
    let p99 = time(found.p99_us);
    told(found, |without_us, rest| match without_us {
        Some(without_us) => format!(
            "p99 is {p99}, and {} in the {rest}% of the time that was not affected",
            time(without_us)
        ),
        None => format!(
            "p99 is {p99}; the {rest}% of the time that was not affected has too few requests for a \
             p99"
        ),
    })
}

/// The same over the blocks of a run, whose p99 is that of all answers: only how much lower it is
/// without pauses, as a geometric mean of blocks.
pub(crate) fn without_pauses_in_blocks(found: &WithoutPauses) -> String {
    told(found, |without_us, rest| match without_us {
        Some(without_us) => format!(
            "in the {rest}% of the time that was not affected p99 is {}",
            lower(found.p99_us, without_us)
        ),
        None => {
            format!("the {rest}% of the time that was not affected has too few requests for a p99")
        }
    })
}

/// How much lower a latency is: `35% lower`, `7.8 times lower`.
pub(crate) fn lower(us: f64, lower_us: f64) -> String {
    match us / lower_us {
        factor @ 2.0.. => format!("{} times lower", number(factor, 1, false)),
        factor => format!("{:.0}% lower", ((1.0 - 1.0 / factor) * 100.0).max(0.0)),
    }
}

fn told(found: &WithoutPauses, p99: impl Fn(Option<f64>, &str) -> String) -> String {
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
    format!("{paused}: {}", p99(found.p99_us_without, &rest))
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
    fn over_blocks_the_p99_of_the_table_is_the_only_one() {
        assert_eq!(
            without_pauses_in_blocks(&found(0.23, Some(1_200.0))),
            "the client's own CPU stood still 160 times, for up to 8.20ms, which delays answers \
             whatever the server does: in the 77% of the time that was not affected p99 is 7.8 times \
             lower"
        );
        assert_eq!(lower(383.0, 249.0), "35% lower");
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

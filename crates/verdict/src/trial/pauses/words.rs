//! What the pauses of the client did to a latency.

use crate::WithoutPauses;
use readings::text::{counted, number};

use readings::text::compact::time;

/// In percent. Only a whole is 100%.
fn share(share: f64) -> String {
    let percent = share * 100.0;
    let digits = usize::from(!(9.95..99.5).contains(&percent));
    number(percent.min(99.9), digits, false)
}

/// The p99 with and without the sections of the open loop that hold or follow a pause of the
/// client's CPU.
pub fn without_pauses(found: &WithoutPauses) -> String {
    let longest = time(found.longest_ms * 1e3);
    if found.share_left_out >= 1.0 {
        return format!(
            "every {:.0} ms of the open loop hold or follow a pause of the client's CPU ({}, the \
             longest of {longest}), so p99 without them cannot be given",
            found.section_s * 1e3,
            counted(found.pauses as usize, "pause"),
        );
    }
    let without = match found.p99_us_without {
        Some(p99_us) => format!("{} (with them {})", time(p99_us), time(found.p99_us)),
        None => "too few requests are left".to_owned(),
    };
    format!(
        "p99 without the {}% of the open loop that hold or follow a pause of the client's CPU: \
         {without}; {}, the longest of {longest}",
        share(found.share_left_out),
        counted(found.pauses as usize, "pause"),
    )
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
    fn what_is_left_out_is_a_share_of_the_open_loop() {
        assert_eq!(
            without_pauses(&found(0.23, Some(1_200.0))),
            "p99 without the 23% of the open loop that hold or follow a pause of the client's CPU: \
             1.20ms (with them 9.41ms); 160 pauses, the longest of 8.20ms"
        );
        assert_eq!(
            without_pauses(&found(0.9996, None)),
            "p99 without the 99.9% of the open loop that hold or follow a pause of the client's \
             CPU: too few requests are left; 160 pauses, the longest of 8.20ms"
        );
    }

    #[test]
    fn where_all_of_it_would_be_left_out_no_share_is_given() {
        assert_eq!(
            without_pauses(&found(1.0, None)),
            "every 100 ms of the open loop hold or follow a pause of the client's CPU (160 pauses, \
             the longest of 8.20ms), so p99 without them cannot be given"
        );
    }
}

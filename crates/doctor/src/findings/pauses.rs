//! How long a runnable thread waits for its CPU. The kernel's counts of stolen time leave most of that
//! out, and the high quantiles of every latency contain it.

use crate::machine::pauses::Pauses;
use crate::{Finding, Level, Topic};

/// A pause of this length shows in the p99.9 of an open loop against most servers.
const LONG_NS: u64 = 1_000_000;
/// A share of the time that moves the p99 as well.
const SHARE: f64 = 0.01;

pub(crate) fn finding(pauses: Pauses) -> Finding {
    let level = match pauses {
        Pauses { share, .. } if share >= SHARE => Level::Warning,
        Pauses { longest_ns, .. } if longest_ns >= LONG_NS => Level::Note,
        _ => Level::Fine,
    };
    let found = match pauses.count {
        0 => "none within a second on any CPU".to_owned(),
        count => format!(
            "{count} within a second, the longest of {:.1} ms; at most {:.2}% of a CPU's time",
            pauses.longest_ns as f64 / 1e6,
            pauses.share * 100.0
        ),
    };
    Finding::new(
        Topic::Pauses,
        level,
        found,
        "none of a millisecond and more",
        "A thread that polled without pause did not have its CPU for that long. Requests that are \
         due or answered then have to wait, whatever the server does: the p99.9 of a latency \
         shows the machine rather than the server, and with many pauses so does the p99.",
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_a_polling_thread_misses_is_seen() {
        let cpus = net::os::allowed_cpus().unwrap();
        let cpu = cpus[0];
        let stop = std::sync::atomic::AtomicBool::new(false);
        let seen = std::thread::scope(|scope| {
            scope.spawn(|| {
                net::os::bind_to_cpus(&[cpu]).unwrap();
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            let seen = Pauses::measure(&[cpu]).unwrap();
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            seen
        });
        // The other thread had its turns.
        assert!(seen.count > 0 && seen.share > 0.1, "{seen:?}");
        assert_eq!(finding(seen).level, Level::Warning);
    }

    #[test]
    fn pauses_are_judged_by_length_and_share() {
        let quiet = finding(Pauses::default());
        assert_eq!(quiet.level, Level::Fine);
        let short = Pauses {
            longest_ns: 900_000,
            count: 3,
            share: 0.002,
        };
        assert_eq!(finding(short).level, Level::Fine);
        let long = Pauses {
            longest_ns: 8_600_000,
            count: 7,
            share: 0.007,
        };
        let found = finding(long);
        assert_eq!(found.level, Level::Note);
        assert_eq!(
            found.found,
            "7 within a second, the longest of 8.6 ms; at most 0.70% of a CPU's time"
        );
        let much = Pauses {
            share: 0.02,
            ..short
        };
        assert_eq!(finding(much).level, Level::Warning);
        assert!(Pauses::measure(&[]).is_none());
    }
}

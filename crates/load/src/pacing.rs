//! When requests are due.

use crate::job::Arrivals;

/// The due times of one thread's share of an open loop.
#[derive(Debug)]
pub(crate) struct Schedule {
    arrivals: Arrivals,
    start_ns: u64,
    /// Distance of this thread's requests, ns.
    distance_ns: f64,
    /// Time of the thread's first request, ns after the start.
    first_ns: f64,
    number: u64,
    elapsed_ns: f64,
    random: fastrand::Rng,
}

impl Schedule {
    /// `rate_per_s` is over all `threads`; even arrivals interleave over them.
    pub(crate) fn new(
        arrivals: Arrivals,
        rate_per_s: f64,
        start_ns: u64,
        thread: usize,
        threads: usize,
        seed: u64,
    ) -> Self {
        let all_ns = 1e9 / rate_per_s;
        let mut schedule = Self {
            arrivals,
            start_ns,
            distance_ns: all_ns * threads as f64,
            first_ns: all_ns * thread as f64,
            number: 0,
            elapsed_ns: 0.0,
            random: fastrand::Rng::with_seed(seed ^ ((thread as u64) << 32)),
        };
        if arrivals == Arrivals::Poisson {
            schedule.elapsed_ns = schedule.gap_ns();
        }
        schedule
    }

    fn gap_ns(&mut self) -> f64 {
        -(1.0 - self.random.f64()).ln() * self.distance_ns
    }

    /// When the next request is due.
    pub(crate) fn next_ns(&self) -> u64 {
        let after = match self.arrivals {
            // From the number, not from the last: rounding must not add up.
            Arrivals::Even => self.first_ns + self.number as f64 * self.distance_ns,
            Arrivals::Poisson => self.elapsed_ns,
        };
        self.start_ns + after as u64
    }

    /// Goes on to the next request.
    pub(crate) fn advance(&mut self) {
        self.number += 1;
        if self.arrivals == Arrivals::Poisson {
            self.elapsed_ns += self.gap_ns();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(arrivals: Arrivals, thread: usize, count: usize) -> Vec<u64> {
        let mut schedule = Schedule::new(arrivals, 3_000.0, 1_000, thread, 2, 7);
        (0..count)
            .map(|_| {
                let at = schedule.next_ns();
                schedule.advance();
                at
            })
            .collect()
    }

    #[test]
    fn even_arrivals_interleave_over_threads_without_drift() {
        let (one, two) = (
            times(Arrivals::Even, 0, 30_001),
            times(Arrivals::Even, 1, 2),
        );
        assert_eq!(one[0], 1_000);
        assert_eq!(two[0], 1_000 + 333_333);
        // 20 s at 1,500 requests per second and thread.
        assert_eq!(one[30_000], 1_000 + 20_000_000_000);
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_spread_of_an_exponential() {
        let times = times(Arrivals::Poisson, 0, 60_000);
        let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let spread =
            (gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
        assert!((mean / 666_666.7 - 1.0).abs() < 0.02, "{mean}");
        assert!((spread / mean - 1.0).abs() < 0.03, "{spread}");
    }
}

//! The longest times without a good answer.

use readings::Silence;

/// The most gaps that a thread keeps.
const GAPS_MAX: usize = 256;
/// The most silences of a reading.
const SILENCES_MAX: usize = 32;

/// A time between two good answers of a segment, ns since its window began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Gap {
    segment: usize,
    from_ns: u64,
    to_ns: u64,
}

impl Gap {
    fn length_ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }
}

/// The longest gaps between a thread's good answers. Threads share nothing while they work, so
/// that a silence is what the gaps of all of them have in common.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    longest: Vec<Gap>,
    /// The shortest of them, once there are as many as are kept.
    least_ns: u64,
    last_ns: u64,
}

impl Gaps {
    /// Allocates what is kept.
    pub(crate) fn prepare(&mut self) {
        self.longest.reserve_exact(GAPS_MAX);
    }

    /// A segment's window begins.
    pub(crate) fn begin(&mut self) {
        self.last_ns = 0;
    }

    /// A good answer came, or the window ended, so long after its beginning.
    #[inline]
    pub(crate) fn end(&mut self, segment: usize, at_ns: u64) {
        // Answers are read in another order than they came in.
        if at_ns > self.last_ns + self.least_ns {
            self.keep(Gap {
                segment,
                from_ns: self.last_ns,
                to_ns: at_ns,
            });
        }
        self.last_ns = self.last_ns.max(at_ns);
    }

    fn keep(&mut self, gap: Gap) {
        if self.longest.len() < GAPS_MAX {
            self.longest.push(gap);
            return;
        }
        let shortest = self.longest.iter_mut().min_by_key(|gap| gap.length_ns());
        if let Some(shortest) = shortest
            && shortest.length_ns() < gap.length_ns()
        {
            *shortest = gap;
        }
        let lengths = self.longest.iter().map(Gap::length_ns);
        self.least_ns = lengths.min().unwrap_or(0);
    }

    /// Leaves what another thread's gaps have in common with these.
    pub(crate) fn intersect(&mut self, other: &Gaps) {
        let mut common = Vec::new();
        for gap in &self.longest {
            for other in other.longest.iter().filter(|o| o.segment == gap.segment) {
                let from_ns = gap.from_ns.max(other.from_ns);
                let to_ns = gap.to_ns.min(other.to_ns);
                if from_ns < to_ns {
                    common.push(Gap {
                        segment: gap.segment,
                        from_ns,
                        to_ns,
                    });
                }
            }
        }
        common.sort_by_key(|gap| std::cmp::Reverse(gap.length_ns()));
        common.truncate(GAPS_MAX);
        self.longest = common;
    }

    /// The longest, in order of time.
    pub(crate) fn silences(&self) -> Vec<Silence> {
        let mut longest = self.longest.clone();
        longest.sort_by_key(|gap| std::cmp::Reverse(gap.length_ns()));
        longest.truncate(SILENCES_MAX);
        longest.sort_by_key(|gap| (gap.segment, gap.from_ns));
        let silence = |gap: Gap| Silence {
            start_s: gap.from_ns as f64 / 1e9,
            duration_s: gap.length_ns() as f64 / 1e9,
        };
        longest.into_iter().map(silence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(answers_ms: impl IntoIterator<Item = u64>, end_ms: u64) -> Gaps {
        let mut gaps = Gaps::default();
        gaps.begin();
        for at in answers_ms {
            gaps.end(0, at * 1_000_000);
        }
        gaps.end(0, end_ms * 1_000_000);
        gaps
    }

    fn longest(gaps: &Gaps) -> (f64, f64) {
        let silences = gaps.silences();
        let longest = silences
            .iter()
            .max_by(|a, b| a.duration_s.total_cmp(&b.duration_s));
        longest.map(|one| (one.start_s, one.duration_s)).unwrap()
    }

    #[test]
    fn a_stop_is_found_among_many_answers() {
        let answers = (0..5_000).filter(|ms| !(2_000..3_000).contains(ms));
        let gaps = of(answers, 5_000);
        assert_eq!(longest(&gaps), (1.999, 1.001));
        assert_eq!(gaps.longest.len(), GAPS_MAX);
    }

    #[test]
    fn threads_are_silent_together_only_where_both_are() {
        let mut both = of([100, 900], 1_000);
        both.intersect(&of([300, 650], 1_000));
        assert_eq!(longest(&both), (0.3, 0.35));
        // A thread without connections is silent all the time.
        both.intersect(&of([], 1_000));
        assert_eq!(longest(&both), (0.3, 0.35));
    }

    #[test]
    fn without_an_answer_the_whole_window_is_silent() {
        assert_eq!(longest(&of([], 4_000)), (0.0, 4.0));
        // An answer that was read late came before the one that was read first.
        assert_eq!(longest(&of([20, 10], 100)), (0.02, 0.08));
    }
}

//! What a thread records of an open loop only: what was offered and answered in time, the largest
//! latencies over time, the pauses of its CPU, and the slices' response times.
//!
//! Positions are on the axis of the reading's measured time: its windows laid end to end, ns.

use readings::{ClientPauses, Histogram, Offered, Pause, Peaks};

use crate::record::batches::BatchRecorder;

/// First length of a bucket of [`PeakRecorder`].
const BUCKET_NS: u64 = 10_000_000;
/// Most buckets; before there are more, adjacent ones are merged.
const BUCKETS_MAX: usize = 1024;
/// Length of a section of [`PauseRecorder`].
const SECTION_NS: u64 = 100_000_000;
/// Pauses that are kept, the longest; the others are counted.
const PAUSES_MAX: usize = 64;
/// Sections of which it is known whether they are left out, in words of 64: more than six minutes,
/// longer than answers take.
const MARK_WORDS: usize = 64;

/// What a thread records for a reading of an open loop.
#[derive(Debug)]
pub(crate) struct OpenRecorder {
    /// By stage; one without stages.
    pub(crate) offered: Vec<Offered>,
    pub(crate) peaks: PeakRecorder,
    pub(crate) pauses: PauseRecorder,
    pub(crate) batches: BatchRecorder,
    /// Measured time before the window under way.
    pub(crate) measured_ns: u64,
}

impl OpenRecorder {
    pub(crate) fn new(stages: usize) -> Self {
        Self {
            offered: vec![Offered::default(); stages.max(1)],
            peaks: PeakRecorder::new(),
            pauses: PauseRecorder::new(),
            batches: BatchRecorder::new(),
            measured_ns: 0,
        }
    }

    /// Records a good answer to a request that was due in the window, at these positions.
    #[inline]
    pub(crate) fn answered(&mut self, due: u64, now: u64, response_ns: u64) {
        self.peaks.record(due, response_ns);
        self.pauses.record(due, now, response_ns);
    }

    /// Adds another thread's recordings.
    pub(crate) fn merge(&mut self, part: &OpenRecorder) {
        for (sum, offered) in self.offered.iter_mut().zip(&part.offered) {
            sum.add(offered);
        }
        self.peaks.merge(&part.peaks);
        self.pauses.merge(&part.pauses);
        self.batches.merge(&part.batches);
    }

    /// The sum over all stages.
    pub(crate) fn offered(&self) -> Offered {
        let mut sum = Offered::default();
        for stage in &self.offered {
            sum.due += stage.due;
            sum.answered_within += stage.answered_within;
        }
        // The end of a stage is the start of the next.
        let last = self.offered.len() - 1;
        let at = |mark: usize| {
            let stage = (mark / 4).min(last);
            self.offered[stage].backlog[mark - stage * 4]
        };
        for (quarter, backlog) in sum.backlog.iter_mut().enumerate() {
            *backlog = at(quarter * self.offered.len());
        }
        sum
    }
}

/// The largest response latency of each bucket of measured time.
#[derive(Debug)]
pub(crate) struct PeakRecorder {
    bucket_ns: u64,
    largest_ns: Vec<u64>,
}

impl PeakRecorder {
    fn new() -> Self {
        Self {
            bucket_ns: BUCKET_NS,
            largest_ns: Vec::with_capacity(BUCKETS_MAX),
        }
    }

    #[inline]
    fn record(&mut self, at: u64, response_ns: u64) {
        let mut bucket = (at / self.bucket_ns) as usize;
        while bucket >= BUCKETS_MAX {
            self.halve();
            bucket = (at / self.bucket_ns) as usize;
        }
        if bucket >= self.largest_ns.len() {
            // Within its capacity.
            self.largest_ns.resize(bucket + 1, 0);
        }
        let largest = &mut self.largest_ns[bucket];
        *largest = response_ns.max(*largest);
    }

    fn halve(&mut self) {
        self.bucket_ns *= 2;
        let half = self.largest_ns.len().div_ceil(2);
        for at in 0..half {
            let second = self.largest_ns.get(2 * at + 1).copied().unwrap_or(0);
            self.largest_ns[at] = self.largest_ns[2 * at].max(second);
        }
        self.largest_ns.truncate(half);
    }

    fn merge(&mut self, part: &PeakRecorder) {
        while self.bucket_ns < part.bucket_ns {
            self.halve();
        }
        for (at, response_ns) in part.largest_ns.iter().enumerate() {
            self.record(at as u64 * part.bucket_ns, *response_ns);
        }
    }

    pub(crate) fn reading(&self) -> Peaks {
        let us = self.largest_ns.iter().map(|ns| *ns as f64 / 1e3);
        Peaks::new(self.bucket_ns as f64 / 1e9, us)
    }
}

/// Pauses of the thread's CPU, and the response times of the sections without one.
#[derive(Debug)]
pub(crate) struct PauseRecorder {
    /// Starts and lengths of the longest.
    longest: Vec<(u64, u64)>,
    count: u64,
    total_ns: u64,
    /// Number of the section under way.
    section: u64,
    /// Whether it is left out.
    is_left_out: bool,
    /// Sections that begin before are left out.
    left_out_until: u64,
    /// Of the last sections whether each was left out, a bit each.
    marks: [u64; MARK_WORDS],
    sections: u64,
    sections_left_out: u64,
    /// Requests that were due in the section under way.
    current: Coarse,
    without: Coarse,
}

impl PauseRecorder {
    fn new() -> Self {
        Self {
            longest: Vec::with_capacity(PAUSES_MAX),
            count: 0,
            total_ns: 0,
            section: 0,
            is_left_out: false,
            left_out_until: 0,
            marks: [0; MARK_WORDS],
            sections: 0,
            sections_left_out: 0,
            current: Coarse::new(),
            without: Coarse::new(),
        }
    }

    /// Records that the CPU stood still.
    pub(crate) fn pause(&mut self, start: u64, duration: u64) {
        self.advance(start);
        self.count += 1;
        self.total_ns += duration;
        self.is_left_out = true;
        // Afterwards it catches up.
        self.left_out_until = self.left_out_until.max(start + 2 * duration);
        self.keep((start, duration));
        self.advance(start + duration);
    }

    fn keep(&mut self, pause: (u64, u64)) {
        if self.longest.len() < PAUSES_MAX {
            self.longest.push(pause);
        } else if let Some(shortest) = self.longest.iter_mut().min_by_key(|kept| kept.1)
            && shortest.1 < pause.1
        {
            *shortest = pause;
        }
    }

    #[inline]
    fn record(&mut self, due: u64, now: u64, response_ns: u64) {
        self.advance(now);
        let section = due / SECTION_NS;
        if section >= self.section {
            self.current.record(response_ns);
        } else if !self.was_left_out(section) {
            self.without.record(response_ns);
        }
    }

    /// Closes the sections that end before a position.
    #[inline]
    fn advance(&mut self, at: u64) {
        while (self.section + 1) * SECTION_NS <= at {
            self.close();
        }
    }

    fn close(&mut self) {
        let (word, bit) = mark(self.section);
        self.sections += 1;
        if self.is_left_out {
            self.marks[word] |= bit;
            self.sections_left_out += 1;
            self.current.clear();
        } else {
            self.marks[word] &= !bit;
            self.without.take(&mut self.current);
        }
        self.section += 1;
        self.is_left_out = self.section * SECTION_NS < self.left_out_until;
    }

    fn was_left_out(&self, section: u64) -> bool {
        let (word, bit) = mark(section);
        self.marks[word] & bit != 0
    }

    /// Closes the last section, at the end of the measured time.
    pub(crate) fn finish(&mut self, end: u64) {
        self.advance(end);
        if !end.is_multiple_of(SECTION_NS) {
            self.close();
        }
    }

    fn merge(&mut self, part: &PauseRecorder) {
        self.count += part.count;
        self.total_ns += part.total_ns;
        self.sections += part.sections;
        self.sections_left_out += part.sections_left_out;
        self.without.add(&part.without);
        for pause in &part.longest {
            self.keep(*pause);
        }
    }

    /// Nothing where there was no pause.
    pub(crate) fn reading(&self) -> Option<ClientPauses> {
        if self.count == 0 {
            return None;
        }
        let s = |ns: u64| ns as f64 / 1e9;
        let mut longest = self.longest.clone();
        longest.sort_unstable();
        Some(ClientPauses {
            pauses: longest
                .iter()
                .map(|(start, duration)| Pause {
                    start_s: s(*start),
                    duration_s: s(*duration),
                })
                .collect(),
            count: self.count,
            duration_s: s(self.total_ns),
            section_s: s(SECTION_NS),
            sections: self.sections,
            sections_left_out: self.sections_left_out,
            latency_us_without: self.without.histogram().quantiles(),
        })
    }
}

fn mark(section: u64) -> (usize, u64) {
    let bit = section % (MARK_WORDS as u64 * 64);
    ((bit / 64) as usize, 1 << (bit % 64))
}

/// Bits of a value that tell buckets of one power of two apart: steps of 0.8%.
const BITS: u32 = 7;
/// Values below 2^10 ns share a bucket.
const LOWEST: u32 = 10;
/// Up to 2^42 ns, more than an hour.
const BUCKETS: usize = 33 << BITS;

/// A histogram that is small enough to be added to another ten times a second.
#[derive(Debug)]
struct Coarse(Vec<u32>);

impl Coarse {
    fn new() -> Self {
        Self(vec![0; BUCKETS])
    }

    #[inline]
    fn record(&mut self, ns: u64) {
        let ns = ns.max(1 << LOWEST);
        let power = ns.ilog2();
        let within = (ns >> (power - BITS)) as usize & ((1 << BITS) - 1);
        let bucket = (((power - LOWEST) as usize) << BITS) + within;
        self.0[bucket.min(BUCKETS - 1)] += 1;
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }

    fn add(&mut self, other: &Coarse) {
        for (sum, count) in self.0.iter_mut().zip(&other.0) {
            *sum += count;
        }
    }

    /// Adds another's values, which has none afterwards.
    fn take(&mut self, other: &mut Coarse) {
        self.add(other);
        other.clear();
    }

    fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::new();
        for (bucket, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            let shift = LOWEST + (bucket >> BITS) as u32 - BITS;
            let within = (bucket & ((1 << BITS) - 1)) as u64 + (1 << BITS);
            // The middle of the bucket.
            let ns = (within << shift) + (1 << shift) / 2;
            histogram.record_many_ns(ns, u64::from(*count));
        }
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn peaks_stay_bounded_and_keep_the_largest() {
        let mut peaks = PeakRecorder::new();
        for at in 0..100_000u64 {
            peaks.record(at * MS, 400_000);
        }
        peaks.record(77_777 * MS, 9_000_000);
        assert!(peaks.largest_ns.len() <= BUCKETS_MAX);
        assert_eq!(
            peaks.largest_ns.capacity(),
            BUCKETS_MAX,
            "nothing was allocated"
        );
        let mut short = PeakRecorder::new();
        short.record(5 * MS, 8_000_000);
        short.merge(&peaks);
        let reading = short.reading();
        assert!(
            (reading.bucket_s() - 0.16).abs() < 1e-9,
            "{}",
            reading.bucket_s()
        );
        assert_eq!(reading.exceedances(5_000.0), 2);
    }

    #[test]
    fn what_was_due_in_a_section_with_a_pause_is_left_out() {
        let mut pauses = PauseRecorder::new();
        let mut answered = 0;
        for due_ms in 0..1_000 {
            // A pause of 20 ms at 450 ms, and answers in 1 ms.
            let is_in_pause = (449..470).contains(&due_ms);
            let response_ms = if is_in_pause { 471 - due_ms } else { 1 };
            // What is due in the pause is answered after it.
            let now = (due_ms + response_ms) * MS;
            if !is_in_pause {
                pauses.record(due_ms * MS, now, response_ms * MS);
                answered += 1;
            } else if due_ms == 469 {
                pauses.pause(450 * MS, 20 * MS);
                for due in 449..470 {
                    pauses.record(due * MS, now, (471 - due) * MS);
                }
            }
        }
        pauses.finish(1_000 * MS);
        let reading = pauses.reading().unwrap();
        assert_eq!((reading.sections, reading.sections_left_out), (10, 1));
        assert_eq!(reading.latency_us_without.count, 900);
        assert!(answered > 900);
        let max_us = reading.latency_us_without.max;
        assert!((max_us / 1_000.0 - 1.0).abs() < 0.01, "{max_us}");
        // A late answer is left out with the section in which its request was due.
        pauses.record(455 * MS, 2_000 * MS, 1_545 * MS);
        pauses.record(555 * MS, 2_000 * MS, 1_445 * MS);
        assert_eq!(pauses.reading().unwrap().latency_us_without.count, 901);
    }

    #[test]
    fn a_coarse_histogram_has_the_values_within_a_percent() {
        for us in [1.5, 27.0, 400.0, 5_000.0, 2e6, 3e9] {
            let mut coarse = Coarse::new();
            coarse.record((us * 1e3) as u64);
            let found = coarse.histogram().quantile_us(0.5);
            assert!((found / us - 1.0).abs() < 0.01, "{us} {found}");
        }
    }

    #[test]
    fn the_backlog_of_stages_is_one_row_of_samples() {
        let mut open = OpenRecorder::new(2);
        open.offered[0].backlog = [0, 1, 2, 3, 4];
        open.offered[1].backlog = [4, 5, 6, 7, 8];
        open.offered[0].due = 10;
        open.offered[1].due = 20;
        let sum = open.offered();
        assert_eq!((sum.due, sum.backlog), (30, [0, 2, 4, 6, 8]));
    }
}

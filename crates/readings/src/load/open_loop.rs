//! What only an open loop has: what was offered and answered in time, the largest latencies over
//! time, and the pauses of the client.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use miniz_oxide::deflate::compress_to_vec;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use serde::{Deserialize, Serialize};

use crate::Quantiles;
use crate::sums::add_count;

/// What an open loop offered, and what of it was answered while it went on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    /// Requests that became due.
    pub due: u64,
    /// Good answers that arrived meanwhile, whenever their requests were due. Those that came
    /// after the end are not among them.
    pub answered_within: u64,
    /// Requests that were due and neither answered nor failed: at the start, after each quarter
    /// and at the end. Over several slices these are sums.
    pub backlog: [u64; 5],
}

impl Offered {
    pub fn backlog_start(&self) -> u64 {
        self.backlog[0]
    }

    pub fn backlog_end(&self) -> u64 {
        self.backlog[4]
    }

    /// Adds the counts of another thread or slice.
    pub fn add(&mut self, other: &Offered) {
        add_count(&mut self.due, other.due);
        add_count(&mut self.answered_within, other.answered_within);
        for (sum, count) in self.backlog.iter_mut().zip(other.backlog) {
            *sum = sum.saturating_add(count);
        }
    }
}

/// A time in which the client's CPU did nothing for the load, although there was work or it polled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pause {
    /// Its start on the axis of measured time: windows laid end to end.
    pub start_s: f64,
    pub duration_s: f64,
}

/// The pauses of an open loop's client, and the latency without them.
///
/// Time is divided into sections of equal length. A section in which a thread's CPU stood still is
/// left out of that thread's answers, and so is one that begins sooner after the pause than it
/// took. Nothing else decides that, in particular not the answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientPauses {
    /// The longest, in order of time.
    pub pauses: Vec<Pause>,
    pub count: u64,
    /// How long they took together.
    pub duration_s: f64,
    pub section_s: f64,
    pub sections: u64,
    pub sections_left_out: u64,
    /// Response times of the requests that were due in the other sections.
    pub latency_us_without: Quantiles,
}

impl ClientPauses {
    /// The share of sections that were left out, 0 to 1.
    pub fn share_left_out(&self) -> f64 {
        self.sections_left_out as f64 / self.sections.max(1) as f64
    }
}

/// Steps of [`Peaks`] in which a value doubles.
const STEPS: f64 = 16.0;

/// The largest response latency of each stretch of measured time, by when the requests were due,
/// in steps of 4.4%.
///
/// It serializes with its values compressed, in base64.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Peaks {
    bucket_s: f64,
    /// The step of each largest latency; 0 where no request was due that had a good answer.
    steps: Vec<u16>,
}

/// The step of a latency; from 1 on.
fn step(us: f64) -> u16 {
    1 + (us.max(1.0).log2() * STEPS) as u16
}

impl Peaks {
    /// From the largest latency of each bucket, 0 where there was none.
    pub fn new(bucket_s: f64, largest_us: impl IntoIterator<Item = f64>) -> Self {
        let steps = largest_us.into_iter().map(|us| match us > 0.0 {
            true => step(us),
            false => 0,
        });
        Self {
            bucket_s,
            steps: steps.collect(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Takes the larger of both in each bucket. The coarser buckets are kept: a length is a power of
    /// two of a common one.
    pub(crate) fn merge(&mut self, other: &Peaks) {
        if other.is_empty() {
            return;
        }
        if self.is_empty() {
            return self.clone_from(other);
        }
        let mut other = other.clone();
        while self.bucket_s * 1.5 < other.bucket_s {
            self.halve();
        }
        while other.bucket_s * 1.5 < self.bucket_s {
            other.halve();
        }
        let count = self.steps.len().max(other.steps.len());
        self.steps.resize(count, 0);
        for (step, one) in self.steps.iter_mut().zip(&other.steps) {
            *step = (*step).max(*one);
        }
    }

    /// Joins each two buckets.
    fn halve(&mut self) {
        let joined = self.steps.chunks(2);
        self.steps = joined
            .map(|two| two.iter().copied().max().unwrap_or(0))
            .collect();
        self.bucket_s *= 2.0;
    }

    /// Length of a bucket.
    pub fn bucket_s(&self) -> f64 {
        self.bucket_s
    }

    /// How many occasions stand behind the latencies from `threshold_us` on: a pause is one,
    /// however many requests it delayed.
    ///
    /// It is the number of runs of adjacent buckets that hold one, over the share of buckets that
    /// hold none: where every second bucket holds one by chance, half of them are neighbours.
    pub fn exceedances(&self, threshold_us: f64) -> usize {
        let threshold = step(threshold_us);
        let mut runs = 0;
        let mut exceeding = 0;
        let mut filled = 0;
        let mut was_above = false;
        // Buckets without answers neither end nor begin a run.
        for &step in self.steps.iter().filter(|&&step| step > 0) {
            let is_above = step >= threshold;
            filled += 1;
            exceeding += usize::from(is_above);
            runs += usize::from(is_above && !was_above);
            was_above = is_above;
        }
        if exceeding == filled {
            return exceeding;
        }
        let below = (filled - exceeding) as f64 / filled as f64;
        ((runs as f64 / below).round() as usize).min(exceeding)
    }
}

#[derive(Serialize, Deserialize)]
struct PeaksText {
    bucket_s: f64,
    steps: String,
}

const BUCKETS_MAX: usize = 1 << 16;

impl Serialize for Peaks {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The low bytes, then the high ones, which hardly change.
        let low = self.steps.iter().map(|step| *step as u8);
        let high = self.steps.iter().map(|step| (step >> 8) as u8);
        let bytes: Vec<u8> = low.chain(high).collect();
        PeaksText {
            bucket_s: self.bucket_s,
            steps: STANDARD.encode(compress_to_vec(&bytes, 6)),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Peaks {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wrong = |what: &str| serde::de::Error::custom(format!("peaks: {what}"));
        let text = PeaksText::deserialize(deserializer)?;
        let packed = STANDARD
            .decode(&text.steps)
            .map_err(|_| wrong("expected base64"))?;
        let bytes = decompress_to_vec_with_limit(&packed, 2 * BUCKETS_MAX)
            .map_err(|_| wrong("expected compressed steps"))?;
        let (low, high) = bytes.split_at(bytes.len() / 2);
        if low.len() != high.len() {
            return Err(wrong("expected two bytes for each step"));
        }
        Ok(Self {
            bucket_s: text.bucket_s,
            steps: low
                .iter()
                .zip(high)
                .map(|(low, high)| u16::from(*low) | u16::from(*high) << 8)
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peaks(above: impl Fn(usize) -> bool) -> Peaks {
        let us = |at| if above(at) { 5_000.0 } else { 400.0 };
        Peaks::new(0.01, (0..1_000).map(us))
    }

    #[test]
    fn a_pause_is_one_exceedance_however_long() {
        assert_eq!(peaks(|at| (300..330).contains(&at)).exceedances(1_000.0), 1);
        assert_eq!(peaks(|_| false).exceedances(1_000.0), 0);
    }

    #[test]
    fn exceedances_that_chance_puts_side_by_side_are_counted_each() {
        let mut state = 1u64;
        let random: Vec<f64> = (0..1_000)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (state >> 11) as f64 / (1u64 << 53) as f64
            })
            .collect();
        for share in [0.05, 0.5, 0.9] {
            let found = peaks(|at| random[at] < share).exceedances(1_000.0) as f64;
            assert!(
                (found / (share * 1_000.0) - 1.0).abs() < 0.2,
                "{share} {found}"
            );
        }
        // One in every bucket.
        assert_eq!(peaks(|_| true).exceedances(1_000.0), 1_000);
        // Half of the window: one occasion, though half of the buckets are above.
        assert_eq!(peaks(|at| at < 500).exceedances(1_000.0), 2);
    }

    #[test]
    fn peaks_survive_being_written_and_read_and_take_little_room() {
        let peaks = Peaks::new(0.01, (0..1_000).map(|at| 400.0 + f64::from(at % 37) * 9.0));
        let text = serde_json::to_string(&peaks).unwrap();
        assert_eq!(serde_json::from_str::<Peaks>(&text).unwrap(), peaks);
        assert!(text.len() < 700, "{}", text.len());
        for wrong in [
            r#"{"bucket_s":1.0,"steps":"!"}"#,
            r#"{"bucket_s":1.0,"steps":"////"}"#,
        ] {
            assert!(serde_json::from_str::<Peaks>(wrong).is_err());
        }
    }
}

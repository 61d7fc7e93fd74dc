//! Histograms of times: recording, quantiles, and the form they are stored in.
//!
//! A crate of its own because it is optimised in all release builds: the load records each answer, and
//! reading a long journal takes nearly all of its time here.
#![cfg_attr(test, allow(clippy::unwrap_used))]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use serde::{Deserialize, Serialize};

mod quantiles;

pub use quantiles::Quantiles;

/// A latency histogram in nanoseconds: HdrHistogram, three significant digits, 1 ns to 1 h.
///
/// It serializes as the text that other HdrHistogram tools read: V2, compressed, base64.
#[derive(Clone, Debug)]
pub struct Histogram(Counts);

/// A histogram that is recorded into has all its buckets allocated, 270 kB. One that was read from
/// a journal holds its occupied buckets only: a journal of a thousand trials has ten thousand.
#[derive(Clone, Debug)]
enum Counts {
    Dense(hdrhistogram::Histogram<u64>),
    Sparse(Buckets),
}

/// A text that is no HdrHistogram.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    #[error("the histogram is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// The bytes are not a V2 histogram.
    #[error("the histogram is not in HdrHistogram's V2 format: {0}")]
    Format(String),
}

const HIGHEST_NS: u64 = 3_600_000_000_000;
/// The highest total count of a text: up to this, sums are exact as floating point numbers.
const COUNT_MAX: u64 = 1 << 53;
/// Buckets of one width, but for the first, which are twice as many.
const HALF: u64 = 1024;
/// The largest decompressed text, bytes: enough for all buckets at five significant digits.
const PLAIN_BYTES_MAX: usize = 1 << 25;
/// The first bytes of a compressed text.
const COMPRESSED: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];
/// Bytes before the counts in the V2 format.
const HEAD: usize = 40;

/// Knows the bounds of buckets.
static LAYOUT: LazyLock<hdrhistogram::Histogram<u64>> = LazyLock::new(dense);

fn dense() -> hdrhistogram::Histogram<u64> {
    hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, 3)
        .expect("the constant bounds are valid: low >= 1, high >= 2 * low, digits <= 5")
}

/// The occupied buckets, ascending: the highest value of each, and how many values are in it and in
/// those before it, so that a quantile is found by bisection.
#[derive(Clone, Debug, Default)]
struct Buckets(Vec<(u64, u64)>);

impl Buckets {
    /// Reads the counts of a histogram with this program's bounds, which follow each other by
    /// bucket: each a variable-length number, zigzag-coded, a negative one so many empty buckets.
    fn of_counts(mut bytes: &[u8]) -> Option<Self> {
        let mut found = Vec::with_capacity(bytes.len() / 2);
        let most = LAYOUT.highest_equivalent(HIGHEST_NS);
        let (mut index, mut all) = (0u64, 0u64);
        while !bytes.is_empty() {
            let number = number(&mut bytes)?;
            match (number >> 1) as i64 ^ -((number & 1) as i64) {
                empty if empty <= 0 => index = index.checked_add(empty.unsigned_abs().max(1))?,
                count => {
                    // Buckets are 1 ns wide up to 2,048 ns, and from there on twice as wide each
                    // time that the value doubles.
                    let shift = (index / HALF).saturating_sub(1);
                    let within = if index < HALF {
                        index
                    } else {
                        index % HALF + HALF
                    };
                    let width = 1u64.checked_shl(u32::try_from(shift).ok()?)?;
                    let highest = (within + 1).checked_mul(width)? - 1;
                    all = all.checked_add(count.unsigned_abs())?;
                    if highest > most || all > COUNT_MAX {
                        return None;
                    }
                    found.push((highest, all));
                    index += 1;
                }
            }
        }
        found.shrink_to_fit();
        Some(Self(found))
    }

    /// From the highest value of each bucket, ascending, and its count.
    fn of(each: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut all = 0;
        let sums = each.into_iter().map(|(highest, count)| {
            all = u64::saturating_add(all, count);
            (highest, all)
        });
        Self(sums.collect())
    }

    /// The highest value of each bucket and its count.
    fn each(&self) -> impl Iterator<Item = (u64, u64)> {
        let before = std::iter::once(0).chain(self.0.iter().map(|(_, all)| *all));
        let each = self.0.iter().zip(before);
        each.map(|((highest, all), before)| (*highest, all - before))
    }

    fn count(&self) -> u64 {
        self.0.last().map_or(0, |(_, all)| *all)
    }

    fn count_above(&self, value_ns: f64) -> u64 {
        let below = self.0.partition_point(|(ns, _)| *ns as f64 <= value_ns);
        let below = below.checked_sub(1).map_or(0, |last| self.0[last].1);
        self.count() - below
    }

    fn value_at_quantile(&self, quantile: f64) -> u64 {
        let wanted = (quantile.min(1.0) * self.count() as f64).ceil().max(1.0) as u64;
        let reached = self.0.partition_point(|(_, all)| *all < wanted);
        let highest = self.0.get(reached).map_or(0, |(highest, _)| *highest);
        match quantile {
            0.0 => LAYOUT.lowest_equivalent(highest),
            _ => highest,
        }
    }

    /// The middle of each bucket and its count.
    fn medians(&self) -> impl Iterator<Item = (f64, f64)> {
        let median = |highest: u64| LAYOUT.median_equivalent(highest) as f64;
        self.each()
            .map(move |(at, count)| (median(at), count as f64))
    }

    fn mean(&self) -> f64 {
        let all = self.count() as f64;
        self.medians()
            .map(|(value, count)| value * count / all)
            .sum()
    }

    fn stdev(&self) -> f64 {
        let mean = self.mean();
        let squares: f64 = self
            .medians()
            .map(|(value, count)| (value - mean).powi(2) * count)
            .sum();
        (squares / self.count() as f64).sqrt()
    }

    fn add(&mut self, other: &Buckets) {
        let mut sums: BTreeMap<u64, u64> = self.each().collect();
        for (highest, count) in other.each() {
            let sum = sums.entry(highest).or_default();
            *sum = sum.saturating_add(count);
        }
        *self = Self::of(sums);
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.buckets() == other.buckets()
    }
}

impl Histogram {
    /// An empty histogram, its whole range allocated so that recording never allocates.
    pub fn new() -> Self {
        Self(Counts::Dense(dense()))
    }

    /// An empty histogram that allocates when something is recorded.
    pub fn empty() -> Self {
        Self(Counts::Sparse(Buckets::default()))
    }

    /// Records one value in nanoseconds; values beyond an hour count as one hour.
    #[inline]
    pub fn record_ns(&mut self, value_ns: u64) {
        self.dense().saturating_record(value_ns.max(1));
    }

    /// Records one value in nanoseconds `times` times.
    pub fn record_many_ns(&mut self, value_ns: u64, times: u64) {
        self.dense().saturating_record_n(value_ns.max(1), times);
    }

    #[inline]
    fn dense(&mut self) -> &mut hdrhistogram::Histogram<u64> {
        if let Counts::Sparse(buckets) = &self.0 {
            self.0 = Counts::Dense(filled(buckets));
        }
        match &mut self.0 {
            Counts::Dense(inner) => inner,
            Counts::Sparse(_) => unreachable!("it was made dense above"),
        }
    }

    /// Adds another histogram's values.
    pub fn merge(&mut self, other: &Histogram) {
        match (&mut self.0, &other.0) {
            (Counts::Sparse(own), Counts::Sparse(other)) => own.add(other),
            (_, Counts::Sparse(other)) => {
                let inner = self.dense();
                for (highest, count) in other.each() {
                    inner.saturating_record_n(highest, count);
                }
            }
            // Both have the same bounds and precision.
            (_, Counts::Dense(other)) => drop(self.dense().add(other)),
        }
    }

    /// A copy that holds the occupied buckets only.
    pub fn compact(&self) -> Histogram {
        Self(Counts::Sparse(match &self.0 {
            Counts::Dense(inner) => Buckets::of(occupied(inner)),
            Counts::Sparse(buckets) => buckets.clone(),
        }))
    }

    /// What was recorded since this one was like `before`; it holds the occupied buckets only.
    pub fn since(&self, before: &Histogram) -> Histogram {
        let mut before = before.buckets().into_iter().peekable();
        let grown = self.buckets().into_iter().filter_map(|(highest, count)| {
            // Counts only grow: each bucket of `before` is among these.
            let known = before.next_if(|(at, _)| *at == highest);
            let more = count.saturating_sub(known.map_or(0, |(_, count)| count));
            (more > 0).then_some((highest, more))
        });
        Self(Counts::Sparse(Buckets::of(grown)))
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        match &self.0 {
            Counts::Dense(inner) => inner.len(),
            Counts::Sparse(buckets) => buckets.count(),
        }
    }

    /// Forgets all values and keeps the memory.
    pub fn clear(&mut self) {
        match &mut self.0 {
            Counts::Dense(inner) => inner.reset(),
            Counts::Sparse(buckets) => buckets.0.clear(),
        }
    }

    /// The value at a quantile between 0 and 1, in microseconds; 0 when empty.
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        let ns = match &self.0 {
            Counts::Dense(inner) if inner.is_empty() => 0,
            Counts::Dense(inner) => inner.value_at_quantile(quantile),
            Counts::Sparse(buckets) => buckets.value_at_quantile(quantile),
        };
        ns as f64 / 1e3
    }

    /// The usual summary, in microseconds.
    pub fn quantiles(&self) -> Quantiles {
        let count = self.count();
        if count == 0 {
            return Quantiles::default();
        }
        let (mean, stdev) = match &self.0 {
            Counts::Dense(inner) => (inner.mean(), inner.stdev()),
            Counts::Sparse(buckets) => (buckets.mean(), buckets.stdev()),
        };
        Quantiles {
            count,
            min: self.quantile_us(0.0),
            mean: mean / 1e3,
            stdev: stdev / 1e3,
            p50: self.quantile_us(0.50),
            p75: self.quantile_us(0.75),
            p90: self.quantile_us(0.90),
            p99: self.quantile_us(0.99),
            p99_9: self.quantile_us(0.999),
            p99_99: self.quantile_us(0.9999),
            max: self.quantile_us(1.0),
        }
    }

    fn buckets(&self) -> Vec<(u64, u64)> {
        match &self.0 {
            Counts::Dense(inner) => occupied(inner).collect(),
            Counts::Sparse(buckets) => buckets.each().collect(),
        }
    }

    /// How many values are above `value_us`, to the histogram's precision.
    pub fn count_above_us(&self, value_us: f64) -> u64 {
        let value_ns = value_us * 1e3;
        match &self.0 {
            Counts::Dense(inner) => Buckets::of(occupied(inner)).count_above(value_ns),
            Counts::Sparse(buckets) => buckets.count_above(value_ns),
        }
    }

    /// The values as (upper bound in microseconds, count) pairs, empty buckets left out.
    pub fn buckets_us(&self) -> Vec<(f64, u64)> {
        let buckets = self.buckets().into_iter();
        buckets
            .map(|(ns, count)| (ns as f64 / 1e3, count))
            .collect()
    }

    /// The histogram as text: V2, compressed, base64.
    pub fn to_base64(&self) -> String {
        let inner = match &self.0 {
            Counts::Dense(inner) => Cow::Borrowed(inner),
            Counts::Sparse(buckets) => Cow::Owned(filled(buckets)),
        };
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&inner, &mut bytes)
            .expect("writing to a Vec cannot fail and the histogram fits the format");
        STANDARD.encode(bytes)
    }

    /// Reads what [`Histogram::to_base64`] or another HdrHistogram tool wrote.
    ///
    /// # Errors
    /// When the text is not base64 or not a V2 histogram.
    pub fn from_base64(text: &str) -> Result<Self, HistogramError> {
        let bytes = STANDARD.decode(text.trim())?;
        let damaged = || HistogramError::Format("its counts are damaged".to_owned());
        let plain = match bytes.starts_with(&COMPRESSED) {
            true => Some(decompressed(&bytes).ok_or_else(damaged)?),
            false => None,
        };
        // This encodes the lowest 64-bit number, which the crate's reader would overflow on
        // negating.
        let mut runs = plain.as_deref().unwrap_or(&bytes).split(|b| *b != 0xff);
        if runs.any(|run| run.len() >= 9) {
            return Err(damaged());
        }
        let own = plain.and_then(own_counts);
        if let Some(own) = own.as_deref().and_then(Buckets::of_counts) {
            return Ok(Self(Counts::Sparse(own)));
        }
        let inner: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|e| HistogramError::Format(e.to_string()))?;
        if inner.max() > LAYOUT.highest_equivalent(HIGHEST_NS) {
            return Err(HistogramError::Format(
                "it has values beyond an hour".to_owned(),
            ));
        }
        let counts = occupied(&inner).map(|(_, count)| count);
        if counts.fold(0, u64::saturating_add) > COUNT_MAX {
            return Err(HistogramError::Format(
                "its total count is impossibly high".to_owned(),
            ));
        }
        // Another tool's buckets may be narrower.
        let mut sums = Vec::<(u64, u64)>::new();
        for (highest, count) in occupied(&inner) {
            let own = LAYOUT.highest_equivalent(inner.lowest_equivalent(highest));
            match sums.last_mut() {
                Some((last, sum)) if *last == own => *sum += count,
                _ => sums.push((own, count)),
            }
        }
        Ok(Self(Counts::Sparse(Buckets::of(sums))))
    }
}

/// Decompresses a text; `None` if it is not compressed or is damaged.
fn decompressed(bytes: &[u8]) -> Option<Vec<u8>> {
    let compressed = bytes.strip_prefix(&COMPRESSED)?.get(4..)?;
    decompress_to_vec_zlib_with_limit(compressed, PLAIN_BYTES_MAX).ok()
}

/// The part with the counts of a text with this program's bounds; nothing for other tools' texts.
///
/// The crate's reader allocates all buckets of each histogram, which takes ten times as long.
fn own_counts(mut text: Vec<u8>) -> Option<Vec<u8>> {
    const PLAIN: [u8; 4] = [0x1c, 0x84, 0x93, 0x13];
    let mut head = PLAIN.to_vec();
    head.extend(
        u32::try_from(text.len().checked_sub(HEAD)?)
            .ok()?
            .to_be_bytes(),
    );
    head.extend(0u32.to_be_bytes());
    head.extend(3u32.to_be_bytes());
    head.extend(1u64.to_be_bytes());
    head.extend(HIGHEST_NS.to_be_bytes());
    head.extend(1f64.to_be_bytes());
    text.starts_with(&head).then(|| text.split_off(HEAD))
}

/// A number in seven bits a byte, the lowest first; a ninth byte has eight.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for at in 0..9 {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if at == 8 || byte < 0x80 {
            return Some(number | u64::from(byte) << (7 * at));
        }
        number |= u64::from(byte & 0x7f) << (7 * at);
    }
    None
}

fn occupied(inner: &hdrhistogram::Histogram<u64>) -> impl Iterator<Item = (u64, u64)> {
    let recorded = inner.iter_recorded();
    recorded.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
}

fn filled(buckets: &Buckets) -> hdrhistogram::Histogram<u64> {
    let mut inner = dense();
    for (highest, count) in buckets.each() {
        inner.saturating_record_n(highest, count);
    }
    inner
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_base64())
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_base64(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips() {
        let mut h = Histogram::new();
        for v in [1, 900, 1_000_000, 50_000_000] {
            h.record_ns(v);
        }
        let back = Histogram::from_base64(&h.to_base64()).unwrap();
        assert_eq!(back, h);
        assert_eq!(back.to_base64(), h.to_base64());
    }

    #[test]
    fn what_was_read_says_what_was_recorded() {
        let mut recorded = Histogram::new();
        let mut value = 1u64;
        for i in 0..50_000u64 {
            value = value
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            recorded.record_ns((value >> 40) * (1 + i % 7 * 100));
        }
        recorded.record_ns(u64::MAX);
        let text = recorded.to_base64();
        let bytes = STANDARD.decode(&text).unwrap();
        assert!(
            decompressed(&bytes).and_then(own_counts).is_some(),
            "our own text takes the short way"
        );
        let mut read = Histogram::from_base64(&text).unwrap();
        for _ in 0..2 {
            assert_eq!(read.count(), recorded.count());
            assert_eq!(read.buckets_us(), recorded.buckets_us());
            for q in [0.0, 0.001, 0.25, 0.5, 0.99, 0.999_99, 1.0] {
                assert_eq!(read.quantile_us(q), recorded.quantile_us(q), "{q}");
            }
            let (a, b) = (read.quantiles(), recorded.quantiles());
            assert_eq!((a.min, a.mean, a.max), (b.min, b.mean, b.max));
            assert!((a.stdev / b.stdev - 1.0).abs() < 1e-12);
            // Whatever is merged with what.
            let other = read.clone();
            read.merge(&other);
            recorded.merge(&other);
        }
        read.record_ns(5);
        recorded.record_ns(5);
        assert_eq!(read, recorded);
        assert_eq!(Histogram::empty().quantiles(), Histogram::new().quantiles());
    }

    #[test]
    fn what_was_recorded_since_is_the_difference() {
        let mut all = Histogram::new();
        let mut added = Histogram::empty();
        for ns in [5, 900, 900, 1_000_000] {
            all.record_ns(ns);
        }
        let before = all.compact();
        assert_eq!(before, all);
        assert_eq!(all.since(&before).count(), 0);
        for ns in [1, 900, 70_000, 5_000_000] {
            all.record_ns(ns);
            added.record_ns(ns);
        }
        assert_eq!(all.since(&before), added);
        assert_eq!(all.compact().since(&before), added);
        assert_eq!(all.since(&Histogram::empty()), all);
    }

    #[test]
    fn another_tools_bounds_are_read() {
        let mut inner = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1 << 50, 4).unwrap();
        inner.record_n(70_001, 5).unwrap();
        inner.record(70_003).unwrap();
        let text = |inner: &hdrhistogram::Histogram<u64>| {
            let mut bytes = Vec::new();
            V2DeflateSerializer::new()
                .serialize(inner, &mut bytes)
                .unwrap();
            STANDARD.encode(bytes)
        };
        let read = Histogram::from_base64(&text(&inner)).unwrap();
        assert_eq!(read.buckets_us(), [(70.015, 6)]);
        inner.record(1 << 49).unwrap();
        assert!(Histogram::from_base64(&text(&inner)).is_err());
    }

    #[test]
    fn values_beyond_an_hour_are_kept_as_an_hour() {
        let mut h = Histogram::new();
        h.record_ns(u64::MAX);
        assert_eq!(h.count(), 1);
        assert!(h.quantiles().max >= 3.5e9);
    }

    #[test]
    fn noise_is_no_histogram() {
        assert!(Histogram::from_base64("!!").is_err());
        assert!(Histogram::from_base64("AAAA").is_err());
    }
}

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

use crate::Quantiles;

/// A latency histogram in nanoseconds: HdrHistogram, three significant digits, 1 ns to 1 h.
///
/// It serializes as the text that other HdrHistogram tools read: V2, compressed, base64.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u64>);

/// A text that is no HdrHistogram.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// The text is not base64.
    #[error("the histogram is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// The bytes are not a V2 histogram.
    #[error("the histogram is not in HdrHistogram's V2 format: {0}")]
    Format(String),
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

const HIGHEST_NS: u64 = 3_600_000_000_000;

impl Histogram {
    /// An empty histogram, its whole range allocated so that recording never allocates.
    pub fn new() -> Self {
        let inner = hdrhistogram::Histogram::new_with_bounds(1, HIGHEST_NS, 3)
            .expect("the constant bounds are valid: low >= 1, high >= 2 * low, digits <= 5");
        Self(inner)
    }

    /// Records one value in nanoseconds; values beyond an hour count as one hour.
    #[inline]
    pub fn record_ns(&mut self, value_ns: u64) {
        self.0.saturating_record(value_ns.max(1));
    }

    /// Records one value in nanoseconds so many times.
    pub fn record_many_ns(&mut self, value_ns: u64, times: u64) {
        self.0.saturating_record_n(value_ns.max(1), times);
    }

    /// Adds another histogram's values.
    pub fn merge(&mut self, other: &Histogram) {
        // Both have the same bounds and precision, or bounds that this one covers.
        let _ = self.0.add(&other.0);
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Forgets all values and keeps the memory.
    pub fn clear(&mut self) {
        self.0.reset();
    }

    /// The value at a quantile between 0 and 1, in microseconds; 0 when empty.
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        if self.0.is_empty() {
            return 0.0;
        }
        self.0.value_at_quantile(quantile) as f64 / 1e3
    }

    /// The usual summary, in microseconds.
    pub fn quantiles(&self) -> Quantiles {
        if self.0.is_empty() {
            return Quantiles::default();
        }
        Quantiles {
            count: self.0.len(),
            min: self.0.min() as f64 / 1e3,
            mean: self.0.mean() / 1e3,
            stdev: self.0.stdev() / 1e3,
            p50: self.quantile_us(0.50),
            p75: self.quantile_us(0.75),
            p90: self.quantile_us(0.90),
            p99: self.quantile_us(0.99),
            p99_9: self.quantile_us(0.999),
            p99_99: self.quantile_us(0.9999),
            max: self.0.max() as f64 / 1e3,
        }
    }

    /// The values as (upper bound in microseconds, count) pairs, empty buckets left out.
    pub fn buckets_us(&self) -> Vec<(f64, u64)> {
        self.0
            .iter_recorded()
            .map(|v| {
                (
                    v.value_iterated_to() as f64 / 1e3,
                    v.count_since_last_iteration(),
                )
            })
            .collect()
    }

    /// The histogram as text: V2, compressed, base64.
    pub fn to_base64(&self) -> String {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.0, &mut bytes)
            .expect("writing to a Vec cannot fail and the histogram fits the format");
        STANDARD.encode(bytes)
    }

    /// Reads what [`Histogram::to_base64`] or another HdrHistogram tool wrote.
    ///
    /// # Errors
    /// When the text is not base64 or not a V2 histogram.
    pub fn from_base64(text: &str) -> Result<Self, HistogramError> {
        let bytes = STANDARD.decode(text.trim())?;
        let inner: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|e| HistogramError::Format(e.to_string()))?;
        let mut own = Self::new();
        own.0
            .add(&inner)
            .map_err(|e| HistogramError::Format(e.to_string()))?;
        Ok(own)
    }
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
        assert_eq!(back.quantiles(), h.quantiles());
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

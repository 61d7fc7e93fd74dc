//! HdrHistogram's log of intervals, format 1.3: what its plotting and summing tools read.

use crate::Histogram;

/// The lines that a log begins with. `start_epoch_s` is the start of the load, in seconds since
/// 1970; the lines' times count from it.
pub fn header(start_epoch_s: f64) -> String {
    format!(
        "#[Histogram log format version 1.3]\n\
         #[StartTime: {start_epoch_s:.3} (seconds since epoch)]\n\
         #[Values are response times in nanoseconds; Interval_Max is in milliseconds]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
    )
}

/// The line of one interval: its start and length in seconds, its largest value in milliseconds,
/// its histogram (V2, compressed, base64).
pub fn line(start_s: f64, duration_s: f64, response: &Histogram) -> String {
    format!(
        "{start_s:.3},{duration_s:.3},{:.3},{}\n",
        response.quantiles().max / 1e3,
        response.to_base64()
    )
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;

    #[test]
    fn another_reader_of_the_format_finds_the_same() {
        let mut response = Histogram::new();
        response.record_many_ns(2_000_000, 7);
        let log = header(1_000.5) + &line(0.0, 1.0, &response) + &line(1.0, 0.5, &Histogram::new());
        let entries: Vec<_> = IntervalLogIterator::new(log.as_bytes())
            .map(|entry| entry.unwrap())
            .collect();
        let LogEntry::StartTime(start) = entries[0] else {
            panic!("no start time first: {entries:?}");
        };
        assert_eq!(start.as_secs_f64(), 1_000.5);
        let LogEntry::Interval(first) = &entries[1] else {
            panic!("no interval: {entries:?}");
        };
        assert_eq!(first.duration().as_secs_f64(), 1.0);
        assert!((first.max() - 2.0).abs() < 0.01, "{}", first.max());
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(first.encoded_histogram())
            .unwrap();
        let read: hdrhistogram::Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .unwrap();
        assert_eq!(read.len(), 7);
        assert_eq!(entries.len(), 3);
    }
}

//! What has to hold for any text that stands for a histogram.

use readings::Histogram;

/// The text of a histogram: it is refused, or it round-trips and its quantiles ascend.
pub fn histogram(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let Ok(read) = Histogram::from_base64(&text) else {
        return;
    };
    holds(&read);
    let again = Histogram::from_base64(&read.to_base64()).expect("what was written can be read");
    assert_eq!(again, read);
    let mut twice = read.clone();
    twice.merge(&again);
    holds(&twice);
    let mut recorded = Histogram::new();
    recorded.record_ns(1_000);
    recorded.merge(&read);
    holds(&recorded);
}

fn holds(one: &Histogram) {
    let all = one.quantiles();
    let ascending = [
        all.min, all.p50, all.p75, all.p90, all.p99, all.p99_9, all.p99_99, all.max,
    ];
    assert!(ascending.is_sorted(), "{all:?}");
    assert!(all.mean.is_finite() && all.stdev.is_finite(), "{all:?}");
    assert_eq!(all.count, one.count());
    assert!(one.count_above_us(all.p50) <= one.count());
    assert!(one.buckets_us().is_sorted_by(|a, b| a.0 < b.0));
}

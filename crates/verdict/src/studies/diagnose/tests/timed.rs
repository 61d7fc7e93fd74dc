//! Crawls that were timed.

use super::*;

/// A command that `time` timed, at some lines of a text.
fn timed(seconds: f64, lines: (usize, usize)) -> ToolReading {
    let mut r = ToolReading::new(Tool::Time);
    r.duration_s = Some(seconds);
    r.client_cpu_s = Some(0.383);
    r.lines = lines;
    r
}

#[test]
fn two_crawls_that_were_timed_once_each_say_nothing() {
    // Not even that a small difference is none.
    let near = diagnose(&[timed(8.0, (1, 3)), timed(8.1, (5, 7))]);
    assert_eq!(kinds(&near), [FindingKind::SingleMeasurement]);
    // Three are no pair, and a command that is known to be the same was repeated.
    let three = [8.0, 8.1, 9.9].map(|s| timed(s, (0, 0)));
    assert_eq!(kinds(&diagnose(&three)), [FindingKind::SameLoadDiffers]);
    let same = [8.0, 9.9].map(|s| {
        let mut r = timed(s, (0, 0));
        r.command = Some("wget -r http://a/".into());
        r
    });
    assert_eq!(kinds(&diagnose(&same)), [FindingKind::SameLoadDiffers]);
}

#[test]
fn a_number_of_requests_tells_loads_apart_where_connections_do_not() {
    let mut readings = nodes();
    for (r, requests) in readings.iter_mut().zip([500, 5000]) {
        r.connections = None;
        r.requests = Some(requests);
    }
    assert!(diagnose(&readings).is_empty());
}

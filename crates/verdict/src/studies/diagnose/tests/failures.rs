use super::*;
use crate::studies::diagnose::words;

fn sentences(text: &str) -> Vec<String> {
    let found = tools::read_all(text);
    let findings = diagnose(&found);
    let of_failures = findings
        .iter()
        .filter(|f| f.kind() == FindingKind::Failures);
    of_failures.map(|f| words::diagnosis(f, &found)).collect()
}

#[test]
fn failures_in_a_latency_and_those_that_nothing_explains_are_told() {
    for (text, expected) in [
        (
            include_str!("../../../../../tools/tests/outputs/vegeta-errors.txt"),
            ": 2 requests failed on the way (2 read), beside 998 that were answered; their times are \
             in the latency, which is not that of answers alone.",
        ),
        (
            include_str!("../../../../../tools/tests/outputs/jmeter.txt"),
            ": 774 of 7,501 requests (10.3%) failed, and the output does not say how: 911.2 requests/s are \
             817.18 good ones; their times are in the latency, which is not that of answers alone.",
        ),
        (
            include_str!("../../../../../tools/tests/outputs/autocannon-old.txt"),
            ": 12 requests ran into the time limit and 200 requests failed, and the output does not \
             say how; the latency leaves them out.",
        ),
    ] {
        let found = sentences(text);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with(expected), "{}", found[0]);
    }
    // Of requests that all failed there is no latency.
    let refused = include_str!("../../../../../tools/tests/outputs/vegeta-refused.txt");
    assert_eq!(sentences(refused), [""; 0]);
}

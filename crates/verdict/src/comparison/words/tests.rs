//! Tests of the sentences on comparisons, and a comparison for other tests.

use super::*;
use crate::{CpusOfOthers, Robust, Starts};
use readings::Condition;
use testing::Text as _;

pub fn comparison(metric: Metric, verdict: Verdict, figures: [f64; 3]) -> Comparison {
    let [ratio, low, high] = figures;
    Comparison {
        condition: Condition::new(),
        metric,
        subject: "balance".into(),
        baseline: "direct".into(),
        ratio: Some(ratio),
        low: Some(low),
        high: Some(high),
        bound: None,
        confidence: 0.95,
        blocks: 10,
        pooled: false,
        matters: 0.03,
        verdict,
        notes: Vec::new(),
        baseline_value: None,
        subject_value: None,
        surely: false,
        p_beyond_matters: None,
        robust: None,
        block_correlation: None,
        p_value: None,
        p_adjusted: None,
        rate_per_s: None,
        of_users: false,
        subject_starts: Starts::default(),
        baseline_starts: Starts::default(),
        by_block: vec![],
        difference: None,
        difference_low: None,
        difference_high: None,
        difference_matters: None,
        unsettled_blocks: 0,
    }
}

fn floor(metric: Metric, [ratio, low, high]: [f64; 3], blocks: usize) -> NoiseFloor {
    NoiseFloor {
        condition: Condition::new(),
        metric,
        baseline: "direct".into(),
        ratio,
        low: Some(low),
        high: Some(high),
        difference: None,
        difference_low: None,
        difference_high: None,
        difference_matters: None,
        blocks,
        client_limited: false,
        separate: true,
        by_block: Vec::new(),
    }
}

fn said(c: &Comparison) -> String {
    super::comparison(c)
}

#[test]
fn a_cost_in_throughput() {
    let mut c = comparison(Metric::RequestsPerS, Verdict::Slower, [0.69, 0.67, 0.71]);
    c.subject = "lighttpd".into();
    c.condition = Condition::from([("connections".to_owned(), "96".to_owned())]);
    assert_eq!(
        said(&c),
        "lighttpd costs 31% of the throughput [29%, 33%] at connections=96, over 10 blocks."
    );
}

#[test]
fn a_cost_in_latency_names_its_rate() {
    let mut c = comparison(Metric::LatencyUsP50, Verdict::Slower, [1.091, 1.080, 1.102]);
    c.rate_per_s = Some(20_000.0);
    assert_eq!(
        said(&c),
        "balance adds 9.1% to the median latency [8.0%, 10.2%] at 20,000 requests/s, \
         over 10 blocks."
    );
    c.condition = Condition::from([("connections".to_owned(), "96".to_owned())]);
    assert!(said(&c).contains(" at connections=96 and 20,000 requests/s,"));
}

#[test]
fn gains_and_multiples() {
    for (metric, figures, expected) in [
        (
            Metric::RequestsPerS,
            [1.12, 1.10, 1.14],
            "balance brings 12% more throughput [10%, 14%], over 10 blocks.",
        ),
        (
            Metric::RequestsPerS,
            [3.1, 2.9, 3.3],
            "balance brings 3.1 times the throughput [2.9, 3.3], over 10 blocks.",
        ),
        (
            Metric::LatencyUsP50,
            [0.9, 0.88, 0.92],
            "balance takes 10% off the median latency [8%, 12%], over 10 blocks.",
        ),
        (
            Metric::LatencyUsP99,
            [3.6, 3.1, 4.2],
            "balance multiplies the 99th percentile of latency by 3.6 [3.1, 4.2], \
             over 10 blocks.",
        ),
    ] {
        let better = (figures[0] > 1.0) == metric.higher_is_better();
        let verdict = if better {
            Verdict::Faster
        } else {
            Verdict::Slower
        };
        assert_eq!(said(&comparison(metric, verdict, figures)), expected);
    }
}

#[test]
fn no_difference_that_matters() {
    let mut c = comparison(Metric::RequestsPerS, Verdict::Same, [1.004, 0.991, 1.017]);
    assert_eq!(
        said(&c),
        "balance against direct, throughput: no difference that matters (within 3%): \
         +0.4% [-0.9%, +1.7%], over 10 blocks."
    );
    c.notes = vec![Note::SmallerThanMatters];
    assert!(said(&c).ends_with("blocks; measurable, but smaller than the margin."));
}

#[test]
fn what_is_not_settled_says_what_would_settle_it() {
    let mut c = comparison(
        Metric::RequestsPerS,
        Verdict::Inconclusive,
        [1.02, 0.969, 1.074],
    );
    c.notes = vec![Note::MoreBlocks {
        total: 22,
        low: 15,
        high: Some(46),
    }];
    assert_eq!(
        said(&c),
        "inconclusive: balance against direct, throughput: +2% [-3%, +7%], over 10 blocks; \
         a new run of about 22 blocks would likely settle it (15 to 46 with a probability of \
         80%)."
    );
}

#[test]
fn where_more_blocks_alone_would_hardly_help_it_says_what_does() {
    let mut c = comparison(
        Metric::RequestsPerS,
        Verdict::Inconclusive,
        [0.99, 0.64, 1.54],
    );
    let floor = floor(Metric::RequestsPerS, [1.02, 0.74, 1.41], 3);
    c.notes = vec![Note::BlocksAlone {
        floor: Some(Box::new(floor)),
        others: Some(CpusOfOthers {
            cpus: 1.4,
            of_cpus: 2,
        }),
    }];
    assert_eq!(
        said(&c),
        "inconclusive: balance against direct, throughput: -1% [-36%, +54%], over 10 blocks; \
         more blocks alone would hardly settle it: the noise floor, direct against itself, is \
         +2% [-26%, +41%], so it may be as large; other programs and the hypervisor took 1.4 of \
         the machine's 2 CPUs: end these programs or measure on a quieter machine."
    );
    c.notes = vec![Note::BlocksAlone {
        floor: None,
        others: None,
    }];
    said(&c).ends(
        "more blocks alone would hardly settle it: the ratios of the blocks vary too much; a \
             quieter machine or longer windows would help.",
    );
}

#[test]
fn surely_is_said_where_the_whole_interval_clears_what_matters() {
    let mut c = comparison(Metric::RequestsPerS, Verdict::Slower, [0.69, 0.67, 0.71]);
    c.surely = true;
    c.p_beyond_matters = Some(0.999);
    assert!(said(&c).ends_with(", over 10 blocks; surely slower."));
    let mut c = comparison(Metric::RequestsPerS, Verdict::Slower, [0.95, 0.92, 0.98]);
    c.p_beyond_matters = Some(0.912);
    let expected = ", over 10 blocks; by more than 3% with a probability of 91%.";
    assert!(said(&c).ends_with(expected), "{}", said(&c));
}

#[test]
fn cpu_time_and_memory_are_surely_more_or_less() {
    let said = |metric, verdict, figures, values: Option<(f64, f64)>| {
        let mut c = comparison(metric, verdict, figures);
        c.surely = true;
        (c.baseline_value, c.subject_value) = values.unzip();
        said(&c)
    };
    let dearer = [1.8, 1.7, 1.9];
    let cpu = said(
        Metric::ServerCpuUsPerRequest,
        Verdict::Slower,
        dearer,
        Some((23.0, 41.0)),
    );
    cpu.has(" from 23 to 41 us ");
    cpu.ends("over 10 blocks; surely more.");
    let cheaper = [0.87, 0.86, 0.88];
    let memory = said(Metric::ServerRssBytesMax, Verdict::Faster, cheaper, None);
    memory.has(" off the peak memory of all servers ");
    memory.ends("over 10 blocks; surely less.");
    let driver = said(Metric::DriverMaxRssBytes, Verdict::Slower, dearer, None);
    driver.ends("; surely more.");
    let latency = said(Metric::LatencyUsP50, Verdict::Faster, cheaper, None);
    latency.ends("; surely faster.");
}

#[test]
fn a_companion_that_says_something_else_is_told() {
    let mut c = comparison(Metric::RequestsPerS, Verdict::Slower, [0.90, 0.85, 0.95]);
    let robust = |ratio: f64| Robust {
        ratio,
        low: Some(ratio - 0.02),
        high: Some(ratio + 0.02),
    };
    c.robust = Some(robust(0.91));
    assert!(said(&c).ends_with("over 10 blocks."));
    c.robust = Some(robust(0.94));
    said(&c).ends("; the Hodges-Lehmann estimate is -6% [-8%, -4%].");
    c.verdict = Verdict::Inconclusive;
    c.notes = vec![Note::CompanionDiffers {
        verdict: Verdict::Slower,
        ratio: 0.99,
        low: 0.97,
        high: 1.01,
    }];
    assert_eq!(
        said(&c),
        "inconclusive: balance against direct, throughput: -10% [-15%, -5%], over 10 blocks; \
         the t interval alone would say slower, and the Hodges-Lehmann estimate is -1% [-3%, \
         +1%]: a few blocks decide, so no verdict is given."
    );
}

#[test]
fn latency_leads_with_its_values() {
    let mut c = comparison(Metric::LatencyUsP50, Verdict::Slower, [2.8, 2.6, 3.0]);
    (c.baseline_value, c.subject_value) = (Some(153.0), Some(428.0));
    c.rate_per_s = Some(2_000.0);
    assert_eq!(
        said(&c),
        "balance raises the median latency from 0.15 to 0.43 ms (+0.28 ms, 2.8 times [2.6, \
         3.0]) at 2,000 requests/s, over 10 blocks."
    );
    let mut c = comparison(Metric::LatencyUsP50, Verdict::Faster, [0.9, 0.88, 0.92]);
    (c.baseline_value, c.subject_value) = (Some(40_000.0), Some(36_000.0));
    assert_eq!(
        said(&c),
        "balance lowers the median latency from 40.0 to 36.0 ms (-4.0 ms, -10% [-12%, -8%]), \
         over 10 blocks."
    );
    c.verdict = Verdict::Same;
    assert!(said(&c).contains("(within 3%): direct 40.0, balance 36.0 ms: -10% [-12%, -8%]"));
}

#[test]
fn a_rate_that_a_factor_names_is_said_once() {
    let mut c = comparison(Metric::LatencyUsP50, Verdict::Slower, [1.091, 1.080, 1.102]);
    c.rate_per_s = Some(2_000.0);
    c.condition = Condition::from([("rate".to_owned(), "2000/s".to_owned())]);
    assert!(said(&c).contains(" at rate=2000/s, over"), "{}", said(&c));
    c.condition = Condition::from([("rate".to_owned(), "auto".to_owned())]);
    assert!(said(&c).contains(" at rate=auto and 2,000 requests/s, over"));
}

#[test]
fn no_sentence_of_any_metric_says_the_rate_twice() {
    let conditions = [
        Condition::new(),
        Condition::from([("rate".to_owned(), "2000/s".to_owned())]),
        Condition::from([("rate".to_owned(), "auto".to_owned())]),
        Condition::from([("connections".to_owned(), "96".to_owned())]),
    ];
    let verdicts = [
        Verdict::Faster,
        Verdict::Slower,
        Verdict::Same,
        Verdict::Inconclusive,
        Verdict::Invalid,
    ];
    for metric in Metric::ALL {
        for condition in &conditions {
            for verdict in verdicts {
                let mut c = comparison(metric, verdict, [1.091, 1.080, 1.102]);
                c.rate_per_s = metric.is_of_open_loop().then_some(2_000.0);
                c.condition = condition.clone();
                let text = said(&c);
                let rates = ["that rate", "rate=2000/s", "2,000 requests/s"];
                let times: usize = rates.iter().map(|rate| text.matches(rate).count()).sum();
                assert!(times <= 1, "{text}");
            }
        }
    }
    let mut c = comparison(
        Metric::ServerCpuUsPerRequestAtRate,
        Verdict::Inconclusive,
        [1.091, 1.080, 1.102],
    );
    c.rate_per_s = Some(8_300.0);
    let told = "CPU time per request of all servers at 8,300 requests/s: ";
    assert!(said(&c).contains(told), "{}", said(&c));
}

#[test]
fn what_cannot_be_measured_is_told_once_and_without_absurd_figures() {
    let wide = [203.88, 9.45, 4396.8];
    let mut c = comparison(Metric::LatencyUsP99, Verdict::Inconclusive, wide);
    (c.baseline_value, c.subject_value) = (Some(150.0), Some(30_582.0));
    c.notes = vec![Note::MoreBlocks {
        total: 693,
        low: 400,
        high: Some(1000),
    }];
    assert_eq!(
        said(&c),
        "inconclusive: balance against direct, 99th percentile of latency: not measurable here \
         (direct 0.150, balance 30.6 ms: the interval spans more than a factor of ten), over \
         10 blocks."
    );
    c.verdict = Verdict::Slower;
    let text = said(&c);
    text.ends("(+30 ms, at least 9.4 times; how much is not measurable here), over 10 blocks.");
    assert_eq!(
        noise_floor(&floor(Metric::LatencyUsP99, [1.2, 0.1, 14.47], 2)),
        "noise floor, 99th percentile of latency: direct against itself: not measurable here, \
         over 2 blocks: too few blocks, or they differ too much."
    );
}

#[test]
fn a_bound_has_one_end() {
    let of = |metric, verdict, bound, end: f64| {
        let mut c = comparison(metric, verdict, [end, end, end]);
        match bound {
            Bound::AtLeast => c.high = None,
            Bound::AtMost => c.low = None,
        }
        c.bound = Some(bound);
        said(&c)
    };
    let rps = |verdict, bound, end| of(Metric::RequestsPerS, verdict, bound, end);
    assert_eq!(
        rps(Verdict::Slower, Bound::AtMost, 0.35),
        "balance costs at least 65% of the throughput, over 10 blocks."
    );
    assert_eq!(
        rps(Verdict::Faster, Bound::AtLeast, 2.84),
        "balance brings at least 2.8 times the throughput, over 10 blocks."
    );
    assert_eq!(
        rps(Verdict::Faster, Bound::AtLeast, 1.12),
        "balance brings at least 12% more throughput, over 10 blocks."
    );
    let text = rps(Verdict::Inconclusive, Bound::AtMost, 1.04);
    text.ends("throughput: at most 4.0% higher, over 10 blocks.");
    let text = of(Metric::LatencyUsP50, Verdict::Slower, Bound::AtLeast, 1.5);
    text.begins("balance adds at least 50% to the median latency");
}

#[test]
fn the_placement_stands_in_the_sentence() {
    let mut c = comparison(Metric::RequestsPerS, Verdict::Slower, [0.69, 0.67, 0.71]);
    c.condition = Condition::from([("connections".to_owned(), "96".to_owned())]);
    let placed = comparison_placed(&c, Some("proxy and back end on CPU 1, client on CPU 0"));
    assert_eq!(
        placed,
        "balance costs 31% of the throughput [29%, 33%] at connections=96 (proxy and back end \
         on CPU 1, client on CPU 0), over 10 blocks."
    );
}

//! Diagnoses of the outputs in the tests of `tools`.

use readings::{ProcessLine, Tool};
use testing::printed::{ab, wrk};

use super::*;

mod failures;
mod timed;

pub(super) const X86: &str = "http://x86:8080/cgi-bin/second.pl";
const ARM: &str = "http://arm:8080/cgi-bin/second.pl";

fn of_kind(found: &[Finding], kind: FindingKind) -> Vec<&Finding> {
    found.iter().filter(|f| f.kind() == kind).collect()
}

/// What is said of a kind, if it is said once.
#[track_caller]
fn only(found: &[Finding], kind: FindingKind) -> &Diagnosis {
    let all = of_kind(found, kind);
    assert_eq!(all.len(), 1, "{found:?}");
    &all[0].diagnosis
}

fn kinds(found: &[Finding]) -> Vec<FindingKind> {
    found.iter().map(Finding::kind).collect()
}

/// Two places, two numbers of connections, two servers, two rounds.
pub(super) fn far_and_near() -> Vec<ToolReading> {
    let mut far = wrk(X86, 400, 672.87, [257.69, 243.81, 1980.0]);
    far.requests = Some(20_211);
    far.errors.read = 126;
    far.errors.timeout = 313;
    vec![
        far,
        wrk(ARM, 400, 675.50, [282.88, 280.43, 2000.0]),
        wrk(X86, 400, 671.15, [268.32, 260.46, 1970.0]),
        wrk(ARM, 400, 674.49, [273.09, 267.47, 1980.0]),
        wrk(X86, 96, 561.58, [168.58, 4.67, 231.14]),
        wrk(ARM, 96, 566.30, [167.14, 4.99, 236.73]),
        wrk(X86, 96, 560.94, [168.72, 3.90, 214.29]),
        wrk(ARM, 96, 568.02, [166.64, 4.52, 220.98]),
        wrk(X86, 400, 2386.73, [165.60, 30.70, 781.70]),
        wrk(ARM, 400, 1641.17, [255.50, 152.26, 2000.0]),
        wrk(X86, 96, 2302.67, [46.27, 35.39, 528.24]),
        wrk(ARM, 96, 1629.03, [109.63, 151.90, 1390.0]),
    ]
}

#[test]
fn far_away_the_round_trip_and_the_connections_set_the_throughput() {
    let found = diagnose(&far_and_near());
    let bound = of_kind(&found, FindingKind::RoundTripBound);
    let at: Vec<usize> = bound.iter().map(|f| f.readings[0]).collect();
    assert_eq!(at, [4, 5, 6, 7]);
    let better = Some(ShownBy::Better { reading: 10 });
    assert!(
        matches!(bound[0].diagnosis, Diagnosis::AllBusy { shown_by, .. } if shown_by == better)
    );
}

#[test]
fn a_full_queue_that_looks_like_a_round_trip_is_a_suspicion_that_names_the_test() {
    // 96 connections at a server of 570/s that answers in turn: cv 1/sqrt(96) at the most.
    let alone = wrk(X86, 96, 561.58, [168.58, 4.67, 231.14]);
    let found = diagnose(std::slice::from_ref(&alone));
    assert!(of_kind(&found, FindingKind::RoundTripBound).is_empty());
    only(&found, FindingKind::RoundTripSuspected);
    // A second load of which the throughput grows with the connections, or a known round trip.
    let twice = wrk(X86, 192, 1120.0, [169.0, 5.0, 230.0]);
    let found = diagnose(&[alone.clone(), twice]);
    let bound = of_kind(&found, FindingKind::RoundTripBound);
    assert_eq!(bound[0].readings, [0]);
    // Over TLS the server works while a connection is opened.
    let mut known = alone;
    known.tool = Tool::Hey;
    known.connect.mean_us = Some(160e3);
    known.url = known.url.map(|url| url.replace("http://", "https://"));
    let found = diagnose(&[known]);
    assert!(
        of_kind(&found, FindingKind::RoundTripBound).is_empty(),
        "{found:?}"
    );
}

#[test]
fn what_wrk_times_holds_no_lost_syn() {
    let mut late = ab(&[(50.0, 98.0), (90.0, 132.0), (98.0, 1095.0), (99.0, 1100.0)]);
    assert_eq!(
        kinds(&diagnose(std::slice::from_ref(&late))),
        [FindingKind::SynRetransmission]
    );
    for tool in [Tool::Wrk, Tool::Wrk2, Tool::H2load] {
        late.tool = tool;
        let found = diagnose(std::slice::from_ref(&late));
        assert!(
            of_kind(&found, FindingKind::SynRetransmission).is_empty(),
            "{tool}"
        );
    }
}

#[test]
fn connections_that_stood_still_and_what_the_mean_leaves_out() {
    let found = diagnose(&far_and_near());
    let still = of_kind(&found, FindingKind::StoodStill);
    let at: Vec<usize> = still.iter().map(|f| f.readings[0]).collect();
    assert_eq!(at, [0, 1, 2, 3]);
    only(&found, FindingKind::Timeouts);
    only(&found, FindingKind::ErrorsLeftOut);
}

#[test]
fn near_by_more_connections_bring_only_latency() {
    let found = diagnose(&far_and_near());
    let saturated = of_kind(&found, FindingKind::Saturated);
    // Not from far away, where more connections did bring something.
    assert_eq!(saturated.len(), 2);
    assert_eq!(saturated[0].readings, [8, 10]);
    assert_eq!(saturated[1].readings, [9, 11]);
}

#[test]
fn a_mean_that_cannot_be_and_why_wrk_prints_it() {
    let found = diagnose(&far_and_near());
    let impossible = of_kind(&found, FindingKind::ImpossibleMean);
    let at: Vec<usize> = impossible.iter().map(|f| f.readings[0]).collect();
    assert_eq!(at, [9, 10, 11]);
    let corrected = of_kind(&found, FindingKind::CorrectedAfterwards);
    assert_eq!(corrected.len(), 1);
    assert_eq!(corrected[0].readings, [0, 1, 2, 3, 8, 9, 10, 11]);
}

#[test]
fn two_targets_that_were_measured_twice_are_not_called_single() {
    let found = diagnose(&far_and_near());
    let single = of_kind(&found, FindingKind::SingleMeasurement);
    // Near by there is one round here; far away there are two.
    assert_eq!(single.len(), 1);
    assert_eq!(single[0].readings, [8, 9, 10, 11]);
    assert!(of_kind(&found, FindingKind::SameLoadDiffers).is_empty());
}

/// Runs that only say how long they took.
pub(super) fn took(url: &str, seconds: f64) -> ToolReading {
    let mut r = ToolReading::new(Tool::Ab);
    r.url = Some(url.into());
    r.duration_s = Some(seconds);
    r.requests = Some(1000);
    r
}

#[test]
fn durations_of_different_work_are_not_compared() {
    let mut more = took("http://proxy:8080/", 9.481);
    more.requests = Some(2000);
    assert!(diagnose(&[took("http://proxy:3128/", 8.146), more]).is_empty());
}

#[test]
fn a_client_on_a_machine_of_its_own_may_still_be_busy() {
    let mut r = ToolReading::new(Tool::Httperf);
    r.duration_s = Some(100.0);
    r.client_cpu_s = Some(57.0);
    r.url = Some("http://10.0.0.1/".into());
    assert!(diagnose(&[r.clone()]).is_empty());
    // httperf is busy whatever it does.
    r.client_cpu_s = Some(95.0);
    assert!(diagnose(&[r.clone()]).is_empty());
    r.tool = Tool::Wrk;
    assert_eq!(kinds(&diagnose(&[r])), [FindingKind::ClientBusy]);
}

pub(super) fn process() -> ProcessLine {
    ProcessLine {
        tool: Tool::Httperf,
        line: 28,
        text: "CPU: 100% httperf 57% store 40% interpreter".into(),
    }
}

#[test]
fn a_client_that_a_text_lists_among_the_processes_ran_on_that_machine() {
    let readings = [ToolReading::new(Tool::Wrk), ToolReading::new(Tool::Httperf)];
    let found = process_listed(&readings, &process(), None);
    assert_eq!(found.kind(), FindingKind::SameMachine);
    assert_eq!(found.readings, [1]);
    // Of another text.
    let found = process_listed(&readings, &process(), Some("a.txt"));
    assert!(found.readings.is_empty());
}

#[test]
fn steps_of_whole_seconds_are_lost_syns() {
    let fine = ab(&[
        (50.0, 116.0),
        (90.0, 159.0),
        (98.0, 191.0),
        (99.0, 207.0),
        (100.0, 209.0),
    ]);
    let four = ab(&[
        (50.0, 97.0),
        (90.0, 132.0),
        (95.0, 1095.0),
        (98.0, 2371.0),
        (99.0, 5444.0),
        (100.0, 6029.0),
    ]);
    let found = diagnose(&[fine, four]);
    let syn = of_kind(&found, FindingKind::SynRetransmission);
    assert_eq!(syn.len(), 1);
    assert_eq!(syn[0].readings, [1]);
}

#[test]
fn seconds_that_are_only_slow_are_no_lost_syns() {
    // A slow server with a broad latency, one that meets a step by the way.
    let broad = ab(&[(50.0, 400.0), (75.0, 700.0), (90.0, 1100.0), (99.0, 1450.0)]);
    let slow = ab(&[(50.0, 2000.0), (90.0, 2300.0), (99.0, 2500.0)]);
    // A jump to no step.
    let jump = ab(&[(50.0, 100.0), (90.0, 120.0), (99.0, 700.0), (100.0, 1700.0)]);
    // One answer of 1.2 s where the median is 15 ms.
    let outlier = ab(&[(50.0, 15.0), (99.0, 40.0), (100.0, 1200.0)]);
    assert!(diagnose(&[broad, slow, jump, outlier]).is_empty());
}

/// The two keep-alive runs whose set-ups only the text around them tells apart.
pub(super) fn nodes() -> [ToolReading; 2] {
    [(1387.38, 72.079, 7.208), (3579.79, 27.935, 2.793)].map(|(rate, ms, seconds)| {
        let mut r = ToolReading::new(Tool::Ab);
        r.connections = Some(100);
        r.keepalive = Some(true);
        r.requests = Some(10_000);
        r.requests_per_s = Some(rate);
        r.duration_s = Some(seconds);
        r.latency.mean_us = Some(ms * 1e3);
        r
    })
}

#[test]
fn the_mean_of_ab_says_nothing_about_the_round_trip() {
    // It is connections over throughput.
    let found = diagnose(&nodes());
    assert_eq!(kinds(&found), [FindingKind::SameLoadDiffers]);
}

#[test]
fn targets_on_this_machine_are_told_once() {
    let readings = ["SET", "GET"].map(|operation| {
        let mut r = ToolReading::new(Tool::RedisBenchmark);
        r.operation = Some(operation.into());
        r.url = Some("redis://127.0.0.1:6379".into());
        r
    });
    let found = diagnose(&readings);
    assert_eq!(kinds(&found), [FindingKind::SameMachine]);
    assert_eq!(found[0].readings, [0, 1]);
}

#[test]
fn an_open_loop_may_have_more_on_the_way_than_connections() {
    let mut r = wrk(X86, 10, 1000.0, [500.0, 100.0, 900.0]);
    r.tool = Tool::Wrk2;
    r.offered_per_s = Some(1000.0);
    assert!(diagnose(&[r]).is_empty());
}

#[test]
fn readings_that_say_little_make_no_findings() {
    assert!(diagnose(&[]).is_empty());
    for tool in Tool::ALL {
        assert!(diagnose(&[ToolReading::new(tool)]).is_empty(), "{tool}");
        let mut zero = wrk(X86, 0, 0.0, [0.0, 0.0, 0.0]);
        zero.tool = tool;
        zero.duration_s = Some(0.0);
        zero.client_cpu_s = Some(0.0);
        zero.requests = Some(0);
        assert!(diagnose(&[zero.clone(), zero]).is_empty(), "{tool}");
    }
}

#[test]
fn findings_come_in_the_order_of_the_readings() {
    let found = diagnose(&far_and_near());
    let first: Vec<usize> = found.iter().map(|f| f.readings[0]).collect();
    assert!(first.is_sorted(), "{first:?}");
}

/// What the tools printed in runs against servers on the same machine.
const OUTPUTS: [&str; 9] = [
    include_str!("../../../../tools/tests/outputs/ab-404.txt"),
    include_str!("../../../../tools/tests/outputs/ab.txt"),
    include_str!("../../../../tools/tests/outputs/h2load.txt"),
    include_str!("../../../../tools/tests/outputs/hey-errors.txt"),
    include_str!("../../../../tools/tests/outputs/httperf.txt"),
    include_str!("../../../../tools/tests/outputs/oha-errors.txt"),
    include_str!("../../../../tools/tests/outputs/redis-benchmark.txt"),
    include_str!("../../../../tools/tests/outputs/wrk-404.txt"),
    include_str!("../../../../tools/tests/outputs/wrk2.txt"),
];

#[test]
fn true_outputs_from_one_machine_are_called_that_and_not_bound_by_a_round_trip() {
    for text in OUTPUTS {
        let readings = tools::read_all(text);
        let found = diagnose(&readings);
        assert_eq!(
            of_kind(&found, FindingKind::SameMachine).len(),
            1,
            "{text}: {found:?}"
        );
        for kind in [
            FindingKind::RoundTripBound,
            FindingKind::RoundTripSuspected,
            FindingKind::StoodStill,
            FindingKind::SynRetransmission,
            FindingKind::ClientBusy,
        ] {
            assert!(of_kind(&found, kind).is_empty(), "{text}: {found:?}");
        }
    }
    let found = diagnose(&tools::read_all(OUTPUTS[7]));
    assert_eq!(
        kinds(&found),
        [
            FindingKind::ImpossibleMean,
            FindingKind::WrongAnswersAsSpeed,
            FindingKind::SameMachine,
            FindingKind::CorrectedAfterwards
        ]
    );
}

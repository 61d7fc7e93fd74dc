//! What a finding needs is known, or the finding is a possibility, or there is none.
use readings::{Tool, ToolReading};
use testing::printed::{ab, wrk};
use verdict::diagnose::{Fact, FindingKind, diagnose};

const URL: &str = "http://a.example/";

/// Readings of which a kind is found, where it needs anything.
fn sample(kind: FindingKind) -> Vec<ToolReading> {
    let steady = wrk(URL, 96, 561.58, [168.58, 4.67, 231.14]);
    let near = wrk(URL, 96, 2302.67, [46.27, 35.39, 528.24]);
    let syn = || {
        let mut r = ab(&[(50.0, 98.0), (95.0, 143.0), (98.0, 1095.0), (100.0, 1200.0)]);
        (r.requests, r.errors.verify) = (Some(100), 3);
        r.url = Some("http://localhost/".into());
        r
    };
    match kind {
        FindingKind::RoundTripSuspected => vec![steady],
        FindingKind::RoundTripBound => vec![steady, near],
        FindingKind::StoodStill => vec![wrk(URL, 400, 672.87, [257.69, 243.81, 1980.0])],
        FindingKind::Saturated => vec![near, wrk(URL, 400, 2386.73, [165.6, 30.7, 781.7])],
        FindingKind::SynRetransmission | FindingKind::OtherLength | FindingKind::SameMachine => {
            vec![syn()]
        }
        _ => vec![near],
    }
}

/// Takes a fact away; false where no reading has it.
fn forget(fact: Fact, r: &mut ToolReading) -> bool {
    match fact {
        Fact::Rate => r.requests_per_s = None,
        Fact::Mean => r.latency.mean_us = None,
        Fact::Longest => r.latency.max_us = None,
        Fact::Duration => (r.duration_s, r.requests) = (None, None),
        Fact::Connections => r.connections = None,
        Fact::Depth => r.depth = None,
        Fact::FromSending => r.offered_per_s = Some(100.0),
        Fact::NoPauses => r.closed_loop = None,
        Fact::Version | Fact::Connecting | Fact::Packets | Fact::SameContent | Fact::Place => {
            return false;
        }
    }
    true
}

#[test]
fn a_finding_without_what_it_needs_is_a_possibility_or_none() {
    for kind in FindingKind::ALL {
        let readings = sample(kind);
        let of_kind = |readings: &[ToolReading]| {
            diagnose(readings)
                .into_iter()
                .filter(|f| f.kind() == kind)
                .collect::<Vec<_>>()
        };
        for &fact in kind.needs() {
            assert!(!of_kind(&readings).is_empty(), "no {kind:?}");
            let mut without = readings.clone();
            without.iter_mut().for_each(|r| {
                forget(fact, r);
            });
            for finding in of_kind(&without) {
                assert!(finding.unknown.contains(&fact), "{fact:?}: {finding:?}");
            }
        }
    }
    // Of h2load nothing is usual: its streams have to be known.
    let mut streams = wrk(URL, 96, 2302.67, [46.27, 35.39, 528.24]);
    (streams.tool, streams.depth) = (Tool::H2load, None);
    assert_eq!(diagnose(&[streams.clone()]), []);
    streams.depth = Some(1);
    assert_eq!(diagnose(&[streams])[0].kind(), FindingKind::ImpossibleMean);
}

#[test]
fn a_pipeline_that_nothing_rules_out_makes_a_mean_possible() {
    for (command, known) in [
        ("", false),
        (
            "$ wrk -t1 -c64 -d2s -s pipeline.lua http://a:1/ -- 16\n",
            false,
        ),
        ("$ wrk -t1 -c64 -d2s http://a:1/\n", true),
    ] {
        let text = format!(
            "{command}Running 2s test @ http://a:1/\n  1 threads and 64 connections\n  Thread Stats   \
             Avg      Stdev     Max   +/- Stdev\n    Latency     3.70ms    2.13ms  16.77ms   64.81%\n  \
             304544 requests in 2.02s, 22.65MB read\nRequests/sec: 150734.58\nTransfer/sec:     11.21MB\n"
        );
        let found = diagnose(&tools::read_all(&text));
        let kinds: Vec<FindingKind> = found.iter().map(|f| f.kind()).collect();
        assert_eq!(
            kinds,
            [
                FindingKind::ImpossibleMean,
                FindingKind::CorrectedAfterwards
            ]
        );
        assert_eq!(found[0].unknown.is_empty(), known, "{command}");
        // Which version it is, no output tells.
        assert_eq!(found[1].unknown, [Fact::Version]);
    }
}

#[test]
fn the_law_holds_for_hey_as_for_ab() {
    let said = |command: &str| {
        let text = format!(
            "$ hey {command} http://a.example/\n\nSummary:\n  Total:\t10.0000 secs\n  Slowest:\t0.5000 \
             secs\n  Fastest:\t0.0100 secs\n  Average:\t0.0600 secs\n  Requests/sec:\t9998.0000\n\n\
             Status code distribution:\n  [200]\t99980 responses\n"
        );
        diagnose(&tools::read_all(&text))
    };
    for command in ["-z 10s -c 64", "-q 0 -z 10s -c 64"] {
        let found = said(command);
        assert_eq!(found.len(), 1, "{command}: {found:?}");
        assert_eq!(found[0].kind(), FindingKind::ImpossibleMean);
        assert!(found[0].unknown.is_empty());
    }
    assert_eq!(said("-q 5 -z 10s -c 64"), []);
}

#[test]
fn slow_and_bimodal_latencies_and_fast_dials_are_no_lost_syns() {
    let syn = |r: &ToolReading| {
        diagnose(std::slice::from_ref(r))
            .iter()
            .any(|f| f.kind() == FindingKind::SynRetransmission)
    };
    let slow = [(50.0, 6600.0), (75.0, 10_700.0), (90.0, 14_800.0)];
    let bimodal = [(50.0, 400.0), (66.0, 1900.0), (90.0, 2000.0)];
    let broad = [(50.0, 2000.0), (66.0, 3500.0), (99.0, 4100.0)];
    for percentiles in [slow, bimodal, broad] {
        assert!(!syn(&ab(&percentiles)), "{percentiles:?}");
    }
    let mut late = ab(&[(50.0, 98.0), (95.0, 143.0), (98.0, 1095.0)]);
    assert!(syn(&late));
    late.connect.max_us = Some(5_300.0);
    assert!(!syn(&late));
    late.connect.max_us = Some(1_002e3);
    assert!(syn(&late));
}

#[test]
fn connections_that_never_opened_explain_a_rate() {
    let mut r = wrk(URL, 400, 23_800.0, [10.0, 2.0, 30.0]);
    (r.requests, r.errors.connect) = (Some(714_000), 157);
    let found = diagnose(&[r]);
    let [errors] = &found[..] else {
        panic!("{found:?}")
    };
    let said = verdict::words::diagnosis(errors, &[wrk(URL, 400, 23_800.0, [10.0, 2.0, 30.0])]);
    assert_eq!(
        said,
        "wrk with 400 connections: 157 attempts to open a connection failed beside 714,000 that \
         were answered; the latency leaves them out. The 243 that opened explain the rate: 243 / 10 \
         ms = 24,300 requests/s."
    );
}

#[test]
fn what_a_tool_does_not_say_is_not_claimed() {
    let siege = "Transactions:\t\t104875 hits\nAvailability:\t\t99.03 %\nElapsed time:\t\t18.73 secs\n\
                 Transaction rate:\t5599.31 trans/sec\nConcurrency:\t\t103.43\nSuccessful \
                 transactions:\t104875\nFailed transactions:\t1024\nLongest transaction:\t0.04\n\
                 Shortest transaction:\t0.00\n";
    let said = |text: &str| -> Vec<String> {
        let readings = tools::read_all(text);
        let found = diagnose(&readings);
        found
            .iter()
            .map(|f| verdict::words::diagnosis(f, &readings))
            .collect()
    };
    assert_eq!(
        said(siege),
        [
            "siege (lines 1 to 9): 1,024 requests failed, and the output does not say how, beside 104,875 \
             that it counts."
        ]
    );
    let k6 = "http_reqs......: 1240 61.6/s\nhttp_req_failed: 1\nhttp_req_failed...: 1.50% 18 out of 1240\n\
              checks_failed...: 1.50% 18 out of 1240\niterations...: 1240 61.6/s\ndata_sent...: 1 kB 1 B/s\n";
    assert_eq!(
        said(k6),
        [
            "k6 (lines 1 to 6): 18 of 1,240 requests (1.5%) failed, and the output does not say how: 61.6 \
             requests/s are 60.71 good ones; their times are in the latency, which is not that of \
             answers alone.",
            "k6 (lines 1 to 6): it says `checks_failed: 1.50% 18 out of 1240`."
        ]
    );
    // Late answers of wrk are among its requests.
    let mut late = wrk(URL, 10, 1.33, [355.0, 10.0, 400.0]);
    (late.requests, late.errors.timeout) = (Some(40), 40);
    let found = diagnose(&[late.clone()]);
    let timeouts = found
        .iter()
        .find(|f| f.kind() == FindingKind::Timeouts)
        .unwrap();
    assert!(verdict::words::diagnosis(timeouts, &[late]).contains("(100% of all)"));
}

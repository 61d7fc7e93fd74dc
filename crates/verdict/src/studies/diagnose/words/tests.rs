//! Diagnoses of what tools printed.

use crate::diagnose::{diagnose, process_listed, table_compared};
use crate::studies::diagnose::tests::{self, X86, nodes, process, took};
use readings::FigureTable;
use testing::Text as _;
use testing::printed::{ab, wrk};

use super::*;

fn sentences(readings: &[ToolReading], kind: FindingKind) -> Vec<String> {
    let found = diagnose(readings);
    let of_kind = found.iter().filter(|f| f.kind() == kind);
    of_kind.map(|f| diagnosis(f, readings)).collect()
}

#[track_caller]
fn sentence(readings: &[ToolReading], kind: FindingKind) -> String {
    let mut said = sentences(readings, kind);
    assert_eq!(said.len(), 1, "{said:?}");
    said.swap_remove(0)
}

/// Two loads far away, and then the same nearby.
fn far_and_near() -> [ToolReading; 4] {
    let all = tests::far_and_near();
    [0, 4, 8, 10].map(|at: usize| all[at].clone())
}

#[test]
fn a_round_trip_is_told_with_what_shows_it() {
    let far = far_and_near();
    assert_eq!(
        sentence(&far, FindingKind::RoundTripBound),
        "wrk with 96 connections: 96 connections / 168.58 ms = 569 requests/s, and 561.58 were \
         measured (99%): every connection was busy all the time, and latency hardly varies \
         (standard deviation 4.67 ms, 3% of the mean). The round trip and the number of \
         connections set the throughput, not the server: the same target answered 2,302.67 \
         requests/s to as many connections elsewhere in the text."
    );
    let alone = far[1].clone();
    let said = sentence(
        std::slice::from_ref(&alone),
        FindingKind::RoundTripSuspected,
    );
    said.has_all([
        "or the server was full and answered its queue in turn",
        "varies by 10% of its mean or less, too",
        "A load with twice the connections tells",
    ]);
    let twice = wrk(X86, 192, 1120.0, [169.0, 5.0, 230.0]);
    let said = sentences(&[alone.clone(), twice], FindingKind::RoundTripBound);
    let words = "192 connections brought 1,120 requests/s at 169 ms, as much more as they are";
    assert!(said[0].contains(words), "{said:?}");
    let mut known = alone;
    known.tool = Tool::Hey;
    known.connect.mean_us = Some(160e3);
    let said = sentence(&[known], FindingKind::RoundTripBound);
    let words = "opening a connection is one round trip and took 160 ms";
    assert!(said.contains(words), "{said}");
}

#[test]
fn what_stood_still_and_what_was_left_out() {
    let far = far_and_near();
    assert_eq!(
        sentence(&far, FindingKind::StoodStill),
        "wrk with 400 connections: 400 connections / 257.69 ms would be 1,552 requests/s, and \
         672.87 were measured, 43% of that: for 57% of the time connections waited for something that \
         the mean latency leaves out (an answer that came too late or never, a new connection, the \
         client)."
    );
    assert_eq!(
        sentence(&far, FindingKind::Timeouts),
        "wrk with 400 connections: 313 requests ran into the time limit (1.5% of all), the slowest \
         of all, and the latency leaves them out: its mean of 257.69 ms is too small."
    );
    assert_eq!(
        sentence(&far, FindingKind::ErrorsLeftOut),
        "wrk with 400 connections: 126 requests failed on the way (126 read) beside 20,211 that \
         were answered; the latency leaves them out."
    );
}

#[test]
fn saturation_and_a_mean_that_cannot_be() {
    let readings = far_and_near();
    assert_eq!(
        sentence(&readings, FindingKind::Saturated),
        "96 to 400 connections to http://x86:8080/cgi-bin/second.pl: 4.2 times the connections \
         bring 3.7% more throughput (2,386.73 requests/s against 2,302.67) and 3.6 times the \
         latency (165.6 ms against 46.27 ms): the target, or what is \
         before it, was saturated at 96 connections or before."
    );
    assert_eq!(
        sentence(&readings, FindingKind::ImpossibleMean),
        "wrk with 96 connections: 2,302.67 requests/s x 46.27 ms = 106.5 requests in flight, and \
         there are only 96 connections: by Little's law this mean latency cannot be; wrk 4 \
         corrects its latencies after the fact."
    );
    let said = sentence(&readings, FindingKind::CorrectedAfterwards);
    let end = "In 3 readings the longest is more than twice that, as 1.98 s over 594.47 ms in the \
               first of them; mean and quantiles there are partly made up. That holds if this is wrk \
               4, which the text does not say.";
    assert!(said.ends_with(end), "{said}");
}

#[test]
fn one_measurement_each_says_nothing() {
    let once = [
        took("http://proxy:3128/", 8.146),
        took("http://proxy:8080/", 9.481),
    ];
    assert_eq!(
        sentence(&once, FindingKind::SingleMeasurement),
        "proxy:8080 against proxy:3128: 9.481 s against 8.146 s is +16%, from one measurement \
         each: nothing says how much of it is noise, so nothing follows."
    );
    let sizes = [(2, 8.0, 7.76), (20, 8.0, 8.24)];
    let each = sizes.iter().flat_map(|(size, first, second)| {
        let url = |host: &str| format!("http://{host}/{size}");
        [took(&url("lvs:80"), *first), took(&url("xr:81"), *second)]
    });
    assert_eq!(
        sentence(&each.collect::<Vec<_>>(), FindingKind::SingleMeasurement),
        "xr:81 against lvs:80: the ratios 0.97 and 1.03, from one measurement each, 1 of 2 above 1: \
         nothing says how much of them is noise, so nothing follows."
    );
}

#[test]
fn a_table_of_two_subjects_has_one_figure_each() {
    let table = FigureTable {
        lines: (20, 31),
        head: ["Bytes", "LVS timing", "Crossroads timing"]
            .map(str::to_owned)
            .to_vec(),
        rows: vec![vec![2_000.0, 1.0, 0.97], vec![20_000.0, 1.0, 1.03]],
    };
    let said = |source| diagnosis(&table_compared(&table, source)[0], &[]);
    assert_eq!(
        said(None),
        "Crossroads timing against LVS timing (the table in lines 20 to 31): the ratios 0.97 and \
         1.03, from one figure each, 1 of 2 above 1: nothing says how much of them is noise, so \
         nothing follows."
    );
    assert!(said(Some("a.txt")).contains("(the table in a.txt lines 20 to 31)"));
}

#[test]
fn commands_that_were_timed_once_each() {
    let timed = |seconds, lines| {
        let mut r = ToolReading::new(Tool::Time);
        (r.duration_s, r.lines) = (Some(seconds), lines);
        r
    };
    let twice = [timed(8.146, (39, 41)), timed(9.481, (46, 48))];
    assert_eq!(
        sentence(&twice, FindingKind::SingleMeasurement),
        "time: 9.481 s (lines 46 to 48) against 8.146 s (lines 39 to 41) is +16%, from one \
         measurement each: nothing says how much of it is noise, so nothing follows; if both timed \
         the same, the noise is that large."
    );
}

#[test]
fn the_same_load_with_another_result_is_one_measurement_or_noise() {
    assert_eq!(
        sentence(&nodes(), FindingKind::SameLoadDiffers),
        "2 readings of the same target and load lie between 1,387.38 requests/s and 3,579.79 \
         requests/s, 2.58 times: if they are repetitions, that is the noise; if they are \
         different set-ups, each has one measurement, and nothing says how much of it is noise."
    );
    let seconds = [8.146, 9.481].map(|seconds| ToolReading {
        url: None,
        ..took("", seconds)
    });
    let said = sentence(&seconds, FindingKind::SameLoadDiffers);
    said.has("lie between 8.146 s and 9.481 s, +16%: ");
}

#[test]
fn a_client_on_the_machine_that_it_measures() {
    let mut r = ToolReading::new(Tool::Httperf);
    r.url = Some("http://127.0.0.1:4567/".into());
    r.duration_s = Some(100.0);
    r.client_cpu_s = Some(57.0);
    assert_eq!(
        sentence(&[r], FindingKind::SameMachine),
        "httperf: the target is http://127.0.0.1:4567/, so client and server took CPU time from \
         each other (httperf took 57% of a core itself): the throughput is that of the two together. \
         That holds if this address is no tunnel and both had the same CPUs, which the text does \
         not say."
    );
    let said = |source| diagnosis(&process_listed(&[], &process(), source), &[]);
    assert_eq!(
        said(None),
        "httperf: line 28 lists it among the processes of a machine (`CPU: 100% httperf 57% store \
         40% interpreter`): if the server ran there too, client and server took CPU time from each \
         other, and the throughput is that of the two together."
    );
    assert!(said(Some("a.txt")).contains(": a.txt line 28 "));
    let mut busy = wrk(X86, 10, 1000.0, [10.0, 2.0, 20.0]);
    (busy.duration_s, busy.client_cpu_s) = (Some(10.0), Some(9.5));
    busy.threads = Some(1);
    assert_eq!(
        sentence(&[busy], FindingKind::ClientBusy),
        "wrk with 10 connections: wrk used 95% of a core in 1 thread: the client may be what set \
         the throughput, so the figure is a lower bound."
    );
}

#[test]
fn steps_of_whole_seconds_are_lost_syns() {
    let late = ab(&[
        (50.0, 98.0),
        (95.0, 143.0),
        (98.0, 1095.0),
        (99.0, 5284.0),
        (100.0, 5939.0),
    ]);
    assert_eq!(
        sentence(&[late], FindingKind::SynRetransmission),
        "ab: latency has a median of 98 ms and then jumps to p98 1.095 s, p99 5.284 s and a \
         maximum of 5.939 s: steps of 1 s over the median are what SYNs do that are sent again \
         (1, 3 and 7 s after the first), as with a full accept queue. That holds if connections were \
         slow to open and packets were lost, which the text does not say."
    );
    let url = Some("http://a.example/".to_owned());
    let mut without = ab(&[(50.0, 98.0), (99.0, 120.0)]);
    without.url.clone_from(&url);
    without.keepalive = Some(false);
    without.connect.quantiles_us = vec![(0.5, 40e3), (0.9, 45e3)];
    without.connect.max_us = Some(3_050e3);
    let mut with = ab(&[(50.0, 98.0), (99.0, 120.0)]);
    with.url = url;
    with.keepalive = Some(true);
    with.lines = (20, 30);
    assert_eq!(
        sentence(&[without, with], FindingKind::SynRetransmission),
        "ab: connecting has a median of 40 ms and then jumps to a maximum of 3.05 s: steps of 3 s \
         over the median are what SYNs do that are sent again (1, 3 and 7 s after the first), as with \
         a full accept queue; with keep-alive (lines 20 to 30) there are none. That holds if packets \
         were lost, which the text does not say."
    );
}

#[test]
fn wrong_answers_count_as_throughput() {
    let mut r = wrk(X86, 10, 5000.0, [1.9, 0.5, 3.0]);
    r.requests = Some(150_000);
    r.errors.status = 75_000;
    assert_eq!(
        sentence(&[r], FindingKind::WrongAnswersAsSpeed),
        "wrk with 10 connections: 75,000 of 150,000 answers (50.0%) had an error status, and count as \
         throughput: 5,000 requests/s are 2,500 good ones."
    );
}

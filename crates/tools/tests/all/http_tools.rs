//! What wrk, wrk2, ab, httperf and h2load print becomes the right figures.
use crate::support::{error, one, output, quantile, summary};
use readings::ErrorCounts;
use tools::{ReadError, Tool, ToolLatency, read_output};

const NONE: ToolLatency = ToolLatency {
    mean_us: None,
    mean_step_us: None,
    stdev_us: None,
    min_us: None,
    max_us: None,
    quantiles_us: Vec::new(),
};

#[test]
fn wrk_says_rate_latency_bytes_and_who_made_the_load() {
    let reading = one("wrk-latency.txt");
    assert_eq!(reading.tool, Tool::Wrk);
    assert_eq!(reading.lines, (2, 14));
    assert_eq!(
        reading.command.as_deref(),
        Some("wrk -t2 -c10 -d1s --latency http://127.0.0.1:28080/index.html")
    );
    assert_eq!(
        reading.url.as_deref(),
        Some("http://127.0.0.1:28080/index.html")
    );
    assert_eq!(
        (reading.threads, reading.connections, reading.keepalive),
        (Some(2), Some(10), Some(true))
    );
    assert_eq!(reading.requests, Some(62_628));
    assert_eq!(reading.duration_s, Some(1.10));
    assert_eq!(reading.requests_per_s, Some(56_942.31));
    // K and M are 1024 and 1024 x 1024.
    assert_eq!(reading.bytes_read, Some(53_236_204));
    assert_eq!(reading.bytes_per_s, Some(46.16 * 1024.0 * 1024.0));
    assert_eq!(
        summary(&reading.latency),
        [Some(537.62), Some(1070.0), None, Some(8390.0)]
    );
    assert_eq!(
        reading.latency.quantiles_us,
        [(0.5, 129.0), (0.75, 196.0), (0.9, 1820.0), (0.99, 5120.0)]
    );
    assert_eq!(reading.errors, ErrorCounts::default());
    assert!(one("wrk.txt").latency.quantiles_us.is_empty());
}

#[test]
fn wrk_counts_wrong_statuses_broken_connections_and_late_answers() {
    let errors = one("wrk-404.txt").errors;
    assert_eq!((errors.status, errors.total()), (60_977, 60_977));
    let errors = one("wrk-reset.txt").errors;
    assert_eq!((errors.read, errors.total()), (6_286, 6_286));
    let late = one("wrk-late.txt");
    assert_eq!((late.errors.timeout, late.errors.total()), (16, 16));
    assert_eq!(late.requests, Some(16));
}

#[test]
fn wrk_without_a_latency_has_none_instead_of_zero() {
    for name in ["wrk-late.txt", "wrk-silent.txt"] {
        assert_eq!(one(name).latency, NONE, "{name}");
    }
    assert_eq!(one("wrk-silent.txt").requests_per_s, Some(0.0));
}

#[test]
fn wrk2_is_read_with_its_rate_and_its_corrected_latency() {
    let reading = one("wrk2.txt");
    assert_eq!(reading.tool, Tool::Wrk2);
    assert_eq!(reading.offered_per_s, Some(1000.0));
    assert_eq!(reading.requests_per_s, Some(999.09));
    assert_eq!(
        summary(&reading.latency),
        [Some(1239.0), Some(608.0), None, Some(12_600.0)]
    );
    assert_eq!(quantile(&reading.latency, 0.999), Some(9050.0));

    let reading = one("wrk2-uncorrected.txt");
    assert_eq!(reading.offered_per_s, Some(3000.0));
    // The second distribution, 3 ms, hides that the client was seconds late.
    assert_eq!(reading.latency.mean_us, Some(6_713_117.0));
    assert_eq!(quantile(&reading.latency, 0.5), Some(6_720_000.0));
    assert_eq!(reading.errors.timeout, 7);
}

#[test]
fn ab_without_keepalive_opens_a_connection_per_request() {
    let reading = one("ab.txt");
    assert_eq!(reading.url.as_deref(), Some("http://127.0.0.1:28083/"));
    assert_eq!(
        (reading.threads, reading.connections, reading.keepalive),
        (Some(1), Some(10), Some(false))
    );
    assert_eq!(
        (reading.requests, reading.duration_s, reading.requests_per_s),
        (Some(200), Some(0.699), Some(286.26))
    );
    assert_eq!(reading.bytes_read, Some(117_400));
    assert_eq!(reading.bytes_per_s, Some(164.10 * 1024.0));
    // The table's mean, not `Time per request`, 34.933 ms, which no clock has measured.
    assert_eq!(
        summary(&reading.latency),
        [Some(33e3), Some(12.4e3), Some(20e3), Some(62e3)]
    );
    assert_eq!(reading.latency.quantiles_us.len(), 8);
    assert_eq!(quantile(&reading.latency, 0.9), Some(61e3));
    assert_eq!(
        summary(&reading.first_byte),
        [Some(32e3), Some(12.4e3), Some(20e3), Some(62e3)]
    );
    assert_eq!(
        summary(&reading.connect),
        [Some(0.0), Some(100.0), Some(0.0), Some(0.0)]
    );
}

#[test]
fn ab_with_keepalive_knows_only_the_longest_connect() {
    let reading = one("ab-keepalive.txt");
    assert_eq!(reading.keepalive, Some(true));
    assert_eq!(reading.latency.mean_us, Some(35e3));
    assert_eq!(summary(&reading.connect), [None, None, None, Some(0.0)]);
}

#[test]
fn ab_is_read_in_all_its_forms() {
    // `-d`: no percentages. A mean below 10 ms comes from `Time per request`.
    let reading = one("ab-no-percentages.txt");
    assert_eq!(reading.latency.mean_us, Some(139.0));
    assert_eq!(reading.latency.quantiles_us, [(0.5, 0.0)]);
    // `-S`: no deviation and no median.
    let reading = one("ab-spread-off.txt");
    assert_eq!(
        summary(&reading.latency),
        [Some(80.0), None, Some(0.0), Some(0.0)]
    );
}

#[test]
fn ab_tells_kinds_of_failures_apart() {
    let errors = one("ab-404.txt").errors;
    assert_eq!((errors.status, errors.total()), (200, 200));
    let errors = one("ab-reset.txt").errors;
    // Receive and Exceptions are the same 100 connections, counted twice by ab.
    assert_eq!((errors.read, errors.verify), (100, 99));
    assert_eq!((errors.connect, errors.total()), (0, 199));
}

#[test]
fn an_error_page_of_another_length_is_one_failure_of_abs() {
    let errors = |kinds: &str, non_2xx: &str| {
        let failed = format!("Failed requests:        100\n   ({kinds})\n{non_2xx}");
        let text = output("ab.txt").replace("Failed requests:        0\n", &failed);
        let errors = read_output(Tool::Ab, &text).unwrap()[0].errors;
        assert_eq!(errors.total(), errors.wrong_answers(), "{text}");
        (errors.status, errors.verify)
    };
    let length = "Connect: 0, Receive: 0, Length: 100, Exceptions: 0";
    assert_eq!(errors(length, "Non-2xx responses:      100\n"), (100, 0));
    // As many of them as can be the same answers are.
    assert_eq!(errors(length, "Non-2xx responses:      30\n"), (30, 70));
    assert_eq!(errors(length, "Non-2xx responses:      150\n"), (150, 0));
    assert_eq!(errors(length, ""), (0, 100));
}

#[test]
fn httperf_gives_answers_per_second_although_it_prints_no_rate_of_short_runs() {
    let reading = one("httperf-calls.txt");
    assert_eq!(
        reading.url.as_deref(),
        Some("http://127.0.0.1:28080/index.html")
    );
    // 200 connections per second with 10 calls each.
    assert_eq!(reading.offered_per_s, Some(2000.0));
    assert_eq!(
        (reading.requests, reading.duration_s),
        (Some(1000), Some(0.496))
    );
    assert_eq!(reading.requests_per_s, Some(1000.0 / 0.496));
    assert_eq!(
        (reading.connections, reading.keepalive, reading.threads),
        (Some(2), Some(true), Some(1))
    );
    assert_eq!(reading.bytes_read, Some(850_000));
    assert_eq!(reading.client_cpu_s, Some(0.1 + 0.39));
    // A connection's life is that of ten requests; only the mean of one is known.
    assert_eq!(summary(&reading.latency), [Some(100.0), None, None, None]);
    assert_eq!(reading.first_byte.mean_us, Some(100.0));
}

#[test]
fn httperf_with_one_call_per_connection_knows_the_spread() {
    let reading = one("httperf.txt");
    assert_eq!(reading.keepalive, Some(false));
    assert_eq!(reading.connections, Some(5));
    assert_eq!(
        summary(&reading.latency),
        [
            Some(34_400.0),
            Some(14_500.0),
            Some(20_200.0),
            Some(63_600.0)
        ]
    );
    assert_eq!(reading.latency.quantiles_us, [(0.5, 30_500.0)]);
    assert_eq!(reading.first_byte.mean_us, Some(34_400.0));
    assert_eq!(reading.bytes_per_s, Some(592.0 * 400.0 / 6.108));
}

#[test]
fn httperf_tells_kinds_of_failures_apart() {
    let errors = one("httperf-404.txt").errors;
    assert_eq!((errors.status, errors.total()), (50, 50));
    let errors = one("httperf-timeout.txt").errors;
    assert_eq!((errors.timeout, errors.total()), (20, 20));
    let errors = one("httperf-reset.txt").errors;
    assert_eq!((errors.read, errors.total()), (10, 10));
    let refused = one("httperf-refused.txt");
    assert_eq!((refused.errors.connect, refused.errors.total()), (20, 20));
    assert_eq!(
        (refused.requests, refused.requests_per_s),
        (Some(0), Some(0.0))
    );
    // Zeros stand in the output, for want of anything to measure.
    assert_eq!(
        (&refused.latency, &refused.connect, &refused.first_byte),
        (&NONE, &NONE, &NONE)
    );
    let text = output("httperf-refused.txt").replace("ftab-full 0 other 0", "ftab-full 1 other 2");
    let text = text.replace("fd-unavail 0 addrunavail 0", "fd-unavail 3 addrunavail 4");
    let reading = &read_output(Tool::Httperf, &text).unwrap()[0];
    // Those of another kind are of none that is known.
    assert_eq!(
        (reading.errors.connect, reading.errors.unexplained),
        (28, 2)
    );
}

#[test]
fn h2load_says_threads_clients_and_three_times() {
    let reading = one("h2load-threads.txt");
    assert_eq!((reading.threads, reading.connections), (Some(2), Some(10)));
    assert_eq!(reading.duration_s, Some(0.02067));
    assert_eq!(reading.requests_per_s, Some(48_379.29));
    assert_eq!(reading.bytes_read, Some(850_000));
    assert_eq!(reading.bytes_per_s, Some(39.22 * 1024.0 * 1024.0));
    assert_eq!(
        summary(&reading.latency),
        [Some(195.0), Some(72.0), Some(30.0), Some(667.0)]
    );
    assert_eq!(
        summary(&reading.connect),
        [Some(101.0), Some(51.0), Some(32.0), Some(205.0)]
    );
    assert_eq!(
        summary(&reading.first_byte),
        [Some(598.0), Some(197.0), Some(368.0), Some(864.0)]
    );
    let timed = one("h2load-duration.txt");
    assert_eq!((timed.requests, timed.connections), (Some(50_294), Some(4)));
    assert_eq!(timed.errors, ErrorCounts::default());
}

#[test]
fn h2load_has_quantiles_in_its_newer_table() {
    let reading = one("h2load-quantiles.txt");
    assert_eq!(
        summary(&reading.latency),
        [Some(1800.0), Some(750.0), Some(101.0), Some(9200.0)]
    );
    assert_eq!(
        reading.latency.quantiles_us,
        [(0.5, 1700.0), (0.95, 3100.0), (0.99, 5550.0)]
    );
    assert_eq!(quantile(&reading.first_byte, 0.95), Some(4150.0));
    assert_eq!((reading.errors.status, reading.errors.total()), (10, 10));
}

#[test]
fn h2load_tells_kinds_of_failures_apart() {
    let errors = one("h2load-404.txt").errors;
    assert_eq!((errors.status, errors.total()), (100, 100));
    let refused = one("h2load-refused.txt");
    assert_eq!(
        (refused.errors.unexplained, refused.errors.total()),
        (100, 100)
    );
    assert_eq!((&refused.latency, refused.requests), (&NONE, Some(0)));
    // 7 of 20 were started and 3 answered; the other 13 had no connection left.
    let errors = one("h2load-reset.txt").errors;
    assert_eq!(
        (errors.read, errors.unexplained, errors.total()),
        (4, 13, 17)
    );
    let errors = one("h2load-timeout.txt").errors;
    assert_eq!(
        (errors.timeout, errors.unexplained, errors.total()),
        (4, 4, 8)
    );
}

#[test]
fn a_tool_that_gave_up_is_quoted() {
    for (name, said) in [
        (
            "wrk-refused.txt",
            "unable to connect to 127.0.0.1:28099 Connection refused",
        ),
        (
            "ab-refused.txt",
            "apr_socket_recv: Connection refused (111)",
        ),
        (
            "ab-timeout.txt",
            "apr_pollset_poll: The timeout specified has expired (70007)",
        ),
    ] {
        match error(name) {
            ReadError::GaveUp { said: found, .. } => assert_eq!(found, said, "{name}"),
            other => panic!("{name}: {other}"),
        }
    }
}

#[test]
fn a_text_that_cannot_be_read_says_where_and_what_was_expected() {
    let message = |tool, text: &str| read_output(tool, text).unwrap_err().to_string();
    assert_eq!(
        message(Tool::Wrk, &output("ab.txt")),
        "expected the output of wrk, with `Running 10s test @ http://...`; found the output of ab"
    );
    assert_eq!(
        message(Tool::Ab, "nothing\n"),
        "expected the output of ab, with `This is ApacheBench` or `Requests per second: ...`; \
         found none of its lines"
    );
    let whole = output("wrk.txt");
    let cut: String = whole
        .lines()
        .take(6)
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(
        message(Tool::Wrk, &cut),
        "line 6: the output of wrk is cut off here, expected `Requests/sec: 123.45` after it"
    );
    assert_eq!(
        message(
            Tool::Wrk,
            &whole.replace("68423 requests in 1.10s", "68423 requests in soon")
        ),
        "line 7: expected `N requests in 30.04s, 24.25MB read` of wrk, \
         found `68423 requests in soon, 55.47MB read`"
    );
}

//! What hey, oha, k6 and redis-benchmark print becomes the right figures.
use crate::support::{error, one, output, quantile, read, summary};
use readings::ErrorCounts;
use tools::{ReadError, Tool, read_output};

#[test]
fn hey_is_read_with_the_workers_of_its_command() {
    let reading = one("hey.txt");
    assert_eq!(
        (reading.connections, reading.keepalive),
        (Some(20), Some(true))
    );
    assert_eq!(
        (reading.requests, reading.duration_s, reading.requests_per_s),
        (Some(2000), Some(0.2504), Some(7987.2204))
    );
    assert_eq!(reading.bytes_read, Some(1_224_000));
    assert_eq!(
        summary(&reading.latency),
        [Some(2400.0), None, Some(300.0), Some(13_100.0)]
    );
    assert_eq!(reading.latency.quantiles_us.len(), 7);
    assert_eq!(quantile(&reading.latency, 0.99), Some(12_000.0));
    assert_eq!(reading.first_byte.mean_us, Some(2100.0));
    // With keep-alive the mean is over requests that opened nothing.
    assert_eq!(summary(&reading.connect), [None, None, None, Some(4100.0)]);
}

#[test]
fn hey_counts_failures_as_speed_and_the_reading_does_not() {
    let reading = one("hey-errors.txt");
    assert_eq!(
        (reading.requests, reading.requests_per_s),
        (Some(700), Some(350.0))
    );
    assert_eq!(
        reading.errors,
        ErrorCounts {
            connect: 60,
            read: 25,
            timeout: 15,
            status: 100,
            ..ErrorCounts::default()
        }
    );
    // 100 per worker, and 4 of them.
    assert_eq!(reading.offered_per_s, Some(400.0));
    // Every request opened a connection.
    assert_eq!(
        summary(&reading.connect),
        [Some(800.0), None, Some(400.0), Some(2100.0)]
    );
    // `0% in 0.0000 secs` says that there were too few requests.
    assert_eq!(reading.latency.quantiles_us.last(), Some(&(0.95, 12_000.0)));

    let refused = one("hey-refused.txt");
    assert_eq!((refused.requests, refused.errors.connect), (Some(0), 200));
}

#[test]
fn oha_is_read_in_whatever_unit_it_chose() {
    let reading = one("oha.txt");
    assert_eq!(
        (reading.requests, reading.duration_s),
        (Some(1000), Some(0.0526316))
    );
    assert_eq!(
        summary(&reading.latency),
        [Some(500.0), None, Some(110.0), Some(3125.0)]
    );
    assert_eq!(quantile(&reading.latency, 0.9999), Some(3125.0));
    assert_eq!(
        summary(&reading.connect),
        [Some(240.0), None, Some(150.0), Some(330.0)]
    );
    assert_eq!(reading.bytes_per_s, Some(11.09 * 1024.0 * 1024.0));
}

#[test]
fn oha_counts_what_the_time_cut_off_neither_as_answer_nor_as_failure() {
    let reading = one("oha-errors.txt");
    assert_eq!(
        (reading.requests, reading.requests_per_s),
        (Some(990), Some(99.0))
    );
    assert_eq!(reading.offered_per_s, Some(100.0));
    assert_eq!(
        reading.errors,
        ErrorCounts {
            connect: 2,
            read: 3,
            status: 100,
            ..ErrorCounts::default()
        }
    );
    // Of all answers, not of those with 2xx or 4xx that follow.
    assert_eq!(
        reading.latency.quantiles_us,
        [(0.1, 2000.0), (0.5, 15_000.0), (0.99, 300_000.0)]
    );
}

#[test]
fn oha_as_json_says_the_same_and_the_first_byte() {
    let reading = one("oha.json");
    assert_eq!(reading.lines, (1, 68));
    assert_eq!(
        (reading.requests, reading.requests_per_s),
        (Some(980), Some(490.0))
    );
    assert_eq!(
        (
            reading.errors.status,
            reading.errors.timeout,
            reading.errors.total()
        ),
        (40, 12, 52)
    );
    assert_eq!(
        summary(&reading.latency),
        [Some(5000.0), None, Some(1000.0), Some(250_000.0)]
    );
    assert_eq!(quantile(&reading.latency, 0.999), Some(200_000.0));
    assert_eq!(quantile(&reading.latency, 0.9999), None);
    assert_eq!(quantile(&reading.first_byte, 0.5), Some(3500.0));
    assert_eq!(reading.first_byte.mean_us, Some(4500.0));
    assert_eq!(reading.connect.max_us, Some(1500.0));
}

#[test]
fn k6_is_read_as_a_whole_and_not_by_group() {
    let reading = one("k6.txt");
    assert_eq!(
        (reading.requests, reading.duration_s),
        (Some(2500), Some(10.0))
    );
    assert_eq!(reading.requests_per_s, Some(249.301496));
    assert_eq!(reading.connections, Some(10));
    assert_eq!(
        summary(&reading.latency),
        [Some(39_860.0), None, Some(20_110.0), Some(212_400.0)]
    );
    assert_eq!(quantile(&reading.latency, 0.95), Some(48_200.0));
    // Checks are not requests.
    let errors = reading.errors;
    assert_eq!((errors.unexplained, errors.total()), (10, 10));
    assert_eq!(reading.said, ["checks_failed: 0.40% 10 out of 2500"]);
    assert_eq!(
        (reading.bytes_read, reading.bytes_per_s),
        (Some(2_100_000), Some(211e3))
    );
}

#[test]
fn k6_of_old_has_ticks_for_failed_requests_and_crosses_for_failed_checks() {
    let reading = one("k6-old.txt");
    assert_eq!((reading.errors.unexplained, reading.errors.verify), (3, 0));
    assert_eq!(
        (reading.requests, reading.duration_s),
        (Some(6001), Some(60.0))
    );
    // One request per iteration, so that the rate of these is the rate of those.
    assert_eq!(reading.offered_per_s, Some(100.0));
    assert_eq!(reading.connections, Some(4));
    assert_eq!(reading.first_byte.mean_us, Some(1240.0));
    assert_eq!(summary(&reading.connect), [None, None, None, Some(640.2)]);
}

#[test]
fn k6_counts_messages_that_were_received_and_times_grpc_calls() {
    let reading = one("k6-websocket.txt");
    assert_eq!(
        (reading.requests, reading.requests_per_s),
        (Some(4950), Some(488.120787))
    );
    assert_eq!(
        (reading.connections, reading.duration_s),
        (Some(5), Some(10.1))
    );
    assert_eq!(summary(&reading.latency), [None; 4], "no message is timed");
    assert_eq!(
        summary(&reading.connect),
        [Some(2100.0), None, Some(640.2), Some(6050.0)]
    );
    let reading = one("k6-grpc.json");
    assert_eq!(
        (reading.requests, reading.requests_per_s),
        (Some(2000), Some(200.0))
    );
    assert_eq!(quantile(&reading.latency, 0.95), Some(4000.0));
    assert_eq!(reading.connections, Some(4));
}

#[test]
fn k6_as_json_says_the_same_in_both_forms() {
    let reading = one("k6.json");
    assert_eq!(
        (reading.requests, reading.duration_s),
        (Some(2500), Some(10.0))
    );
    assert_eq!(
        summary(&reading.latency),
        [Some(12_500.0), None, Some(2250.0), Some(250_000.0)]
    );
    let errors = reading.errors;
    assert_eq!((errors.unexplained, errors.total()), (4, 4));
    assert_eq!(reading.said[0], "checks: ✗ 10");
    assert_eq!(reading.connections, Some(8));

    let reading = one("k6-handle-summary.json");
    assert_eq!(
        (reading.requests, reading.duration_s),
        (Some(1000), Some(5.0045))
    );
    assert_eq!(quantile(&reading.latency, 0.999), Some(38_000.0));
}

#[test]
fn redis_benchmark_gives_a_reading_for_each_operation() {
    let readings = read("redis-benchmark.txt");
    let operations: Vec<_> = readings.iter().map(|r| r.operation.as_deref()).collect();
    assert_eq!(operations, [Some("SET"), Some("GET")]);
    let set = &readings[0];
    assert_eq!(set.url.as_deref(), Some("redis://127.0.0.1:28379"));
    assert_eq!(
        (set.threads, set.connections, set.keepalive),
        (Some(1), Some(10), Some(true))
    );
    assert_eq!(
        (set.requests, set.duration_s, set.requests_per_s),
        (Some(2000), Some(0.04), Some(52_631.58))
    );
    assert_eq!(
        summary(&set.latency),
        [Some(127.0), None, Some(32.0), Some(2247.0)]
    );
    assert_eq!(quantile(&set.latency, 0.5), Some(119.0));
    assert_eq!(quantile(&set.latency, 0.95), Some(175.0));
    assert_eq!(quantile(&set.latency, 0.99219), Some(511.0));
    // A step of the histogram, not a quantile of the run.
    assert_eq!(quantile(&set.latency, 0.409), None);

    let threads: Vec<_> = read("redis-benchmark-threads.txt")
        .iter()
        .map(|r| (r.operation.clone().unwrap(), r.threads, r.latency.mean_us))
        .collect();
    assert_eq!(threads.len(), 3);
    assert_eq!(threads[2], ("MSET (10 keys)".into(), Some(2), Some(198.0)));
    let named = one("redis-benchmark-command.txt");
    assert_eq!(named.operation.as_deref(), Some("set k v"));
}

#[test]
fn redis_benchmark_is_read_in_its_short_and_old_forms() {
    let rates = |name: &str| -> Vec<(String, f64, Option<f64>)> {
        read(name)
            .into_iter()
            .map(|r| {
                let median = quantile(&r.latency, 0.5);
                (r.operation.unwrap(), r.requests_per_s.unwrap(), median)
            })
            .collect()
    };
    let entry = |name: &str, rate, median| (name.to_owned(), rate, median);
    assert_eq!(
        rates("redis-benchmark-quiet.txt"),
        [
            entry("PING_INLINE", 66_666.67, Some(87.0)),
            entry("PING_MBULK", 76_923.08, Some(71.0)),
            entry("SET", 76_923.08, Some(71.0)),
            entry("GET", 100_000.0, Some(55.0)),
        ]
    );
    assert_eq!(
        rates("redis-benchmark-csv.txt"),
        [
            entry("SET", 90_909.09, Some(55.0)),
            entry("GET", 105_263.16, Some(55.0)),
            entry("LPUSH", 100_000.0, Some(55.0)),
        ]
    );
    assert_eq!(
        rates("redis-benchmark-old.txt"),
        [
            entry("PING_INLINE", 23_255.81, None),
            entry("SET", 25_000.0, None),
        ]
    );
    assert_eq!(read("redis-benchmark-old.txt")[1].keepalive, Some(false));
    assert_eq!(rates("redis-benchmark-old-csv.txt")[2].1, 60_606.06);
    let csv = &read("redis-benchmark-csv.txt")[0];
    assert_eq!(
        summary(&csv.latency),
        [Some(61.0), None, Some(16.0), Some(1943.0)]
    );
    assert!(matches!(
        error("redis-benchmark-refused.txt"),
        ReadError::GaveUp { line: 2, .. }
    ));
}

#[test]
fn json_that_is_cut_off_or_not_the_tools_says_so() {
    let text = output("oha.json");
    let cut: String = text.lines().take(5).collect::<Vec<_>>().join("\n");
    assert!(matches!(
        read_output(Tool::Oha, &cut),
        Err(ReadError::Json { line: 5, .. })
    ));
    assert_eq!(
        read_output(Tool::K6, "{\"metrics\": {}}")
            .unwrap_err()
            .to_string(),
        "line 1: expected the JSON of k6: found no `metrics.http_reqs`"
    );
}

#[test]
fn time_is_read_in_the_forms_of_shells_and_programs() {
    for (name, seconds) in [
        ("time.txt", 0.171),
        ("time-posix.txt", 0.16),
        ("time-csh.txt", 0.16),
        ("time-gnu.txt", 0.16),
        ("time-gnu-v.txt", 0.16),
    ] {
        let reading = one(name);
        assert_eq!(reading.tool, Tool::Time, "{name}");
        assert_eq!(reading.duration_s, Some(seconds), "{name}");
        assert!(reading.client_cpu_s.unwrap() < 0.011, "{name}");
        let url = reading.url.as_deref();
        assert_eq!(
            url,
            Some("http://127.0.0.1:18097/delay/constant/150ms"),
            "{name}"
        );
        assert_eq!(reading.requests, None, "{name}");
    }
}

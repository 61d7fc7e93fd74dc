//! Outputs that are cut off, zeros that are no figures, and causes that stand in the text.
use crate::support::{output, results, tool_of};
use tools::{ReadError, Tool, read_all, read_output, read_text};

/// Whether each line of an output is a result of its own, so that a cut between them is none.
fn is_a_list(name: &str) -> bool {
    name.contains("csv") || name.contains("quiet") || name.contains("old")
}

#[test]
fn an_output_that_is_cut_off_anywhere_is_said_to_be() {
    for name in results() {
        let text = output(name);
        let whole = read_text(&text);
        assert_eq!(whole.problems, [], "{name}");
        if is_a_list(name) && tool_of(name) == Tool::RedisBenchmark {
            continue;
        }
        let lines: Vec<&str> = text.lines().collect();
        let last = lines
            .iter()
            .rposition(|line| !line.trim().is_empty())
            .unwrap();
        // The last line has so few failures among so many requests that nothing shows it missing.
        let last = last - usize::from(name == "autocannon-old.txt");
        for count in 1..=last {
            let cut = lines[..count].join("\n");
            let found = read_text(&cut);
            // Of several operations the last is whole; of k6 the users, which a short run lacks, or the
            // progress may be missing.
            let same = found.readings.len() == whole.readings.len()
                && found.readings.iter().zip(&whole.readings).all(|(a, b)| {
                    let mut a = a.clone();
                    (a.lines, a.duration_s, a.connections) = (b.lines, b.duration_s, b.connections);
                    a == *b
                });
            let fewer = tool_of(name) == Tool::RedisBenchmark
                && found.readings.len() < whole.readings.len();
            let said = !found.problems.is_empty() || found.readings.is_empty();
            assert!(
                said || same || fewer,
                "{name} after {count} lines: {found:?}"
            );
        }
    }
}

#[test]
fn hey_without_its_failures_has_no_rate_of_answers() {
    let text = output("hey-errors.txt");
    let cut = text.split("Error distribution").next().unwrap();
    let found = read_text(cut);
    assert_eq!(found.readings[0].requests_per_s, None);
    let said = found.problems[0].to_string();
    assert!(said.contains("`Error distribution` is missing"), "{said}");
    assert!(matches!(
        read_output(Tool::Hey, cut),
        Err(ReadError::Cut { .. })
    ));
    // A time of two digits more or less is no missing answer.
    assert!(read_output(Tool::Hey, &output("hey.txt")).is_ok());
}

#[test]
fn ab_prints_no_percentages_of_one_request_or_with_an_option() {
    for (command, problems) in [
        ("ab -d -n 200 -c 10", 0),
        ("ab -dk -n 200 -c 10", 0),
        ("ab -n 200 -c 10", 1),
    ] {
        let text = output("ab.txt").replace("ab -n 200 -c 10", command);
        let cut = text.split("Percentage of").next().unwrap();
        assert_eq!(read_text(cut).problems.len(), problems, "{command}");
    }
}

#[test]
fn quantiles_of_zero_are_no_figures() {
    let text = "Running 15s test @ http://a/\n  3 threads and 10 connections\n  \
                Thread Stats   Avg      Stdev     Max   +/- Stdev\n    \
                Latency   355.01ms  452.40ms   1.55s     0.00%\n  Latency Distribution\n     \
                50%  120.00ms\n     75%    0.00us\n     99%    0.00us\n  \
                9502 requests in 15.04s, 1.23MB read\nRequests/sec:    631.71\nTransfer/sec:     83.89KB\n";
    let read = |text: &str| read_text(text).readings[0].latency.quantiles_us.clone();
    assert_eq!(read(text), [(0.5, 120e3)]);
    assert_eq!(read(&text.replace("120.00ms", "0.00us")), []);
    // Whole milliseconds of ab may be zeros below nothing.
    assert!(read(&output("ab-no-percentages.txt")).contains(&(0.5, 0.0)));
    let hole = output("ab.txt").replace(" 95%     61", " 95%      0");
    assert!(!read(&hole).iter().any(|(_, us)| *us == 0.0));
}

#[test]
fn h2load_of_old_counts_errored_requests_as_done() {
    let text = output("h2load.txt").replace(
        "200 done, 200 succeeded, 0 failed, 0 errored",
        "200 done, 27 succeeded, 173 failed, 172 errored",
    );
    let text = text
        .replace("200 started", "28 started")
        .replace("200 2xx, 0 3xx, 0 4xx", "27 2xx, 0 3xx, 1 4xx");
    let reading = &read_text(&text).readings[0];
    // 27 good ones, and one with an error status.
    assert_eq!(reading.requests, Some(28));
    assert_eq!((reading.errors.status, reading.errors.total()), (1, 173));
}

#[test]
fn hey_of_more_than_a_million_answers_has_a_count_and_no_rate_of_its_own() {
    let text = "$ hey -q 0 -z 10s -c 64 http://a.example/\n\nSummary:\n  Total:\t10.0015 secs\n  \
                Slowest:\t0.0285 secs\n  Fastest:\t0.0000 secs\n  Average:\t0.0006 secs\n  \
                Requests/sec:\t139688.1930\n\nStatus code distribution:\n  [200]\t1000000 responses\n";
    let found = read_text(text);
    assert_eq!(found.problems, []);
    let reading = &found.readings[0];
    assert_eq!(reading.requests, Some(1_397_091));
    assert_eq!(
        (reading.offered_per_s, reading.closed_loop),
        (None, Some(true))
    );
    assert_eq!(
        (reading.depth, reading.latency.mean_step_us),
        (Some(1), Some(100.0))
    );
}

#[test]
fn k6_says_which_bounds_were_crossed_and_refused_connections_are_no_answers() {
    let text = output("k6.txt").replace("✓ 'p(95)<500'", "✗ 'p(95)<40'");
    let said = &read_text(&text).readings[0].said;
    assert_eq!(said[0], "http_req_duration ✗ 'p(95)<40' p(95)=48.2ms");
    let text = output("k6-old.txt").replace("✓ http_req_duration", "✗ http_req_duration");
    assert_eq!(read_text(&text).readings[0].said, ["✗ http_req_duration"]);
    let json = "{\"metrics\": {\"http_reqs\": {\"count\": 10, \"rate\": 1.0}, \"a\": \
                {\"thresholds\": {\"p(95)<2\": {\"ok\": false}, \"p(95)<9\": {\"ok\": true}}}, \
                \"b\": {\"thresholds\": {\"avg<2\": true, \"avg<9\": false}}}}";
    assert_eq!(
        read_text(json).readings[0].said,
        ["a ✗ 'p(95)<2'", "b ✗ 'avg<2'"]
    );

    let refused = output("k6.txt")
        .replace(
            "0.40%  10 out of 2500\n    http_reqs",
            "100.00% 2500 out of 2500\n    http_reqs",
        )
        .replace("2.1 MB 211 kB/s", "0 B    0 B/s");
    let reading = &read_text(&refused).readings[0];
    assert_eq!(
        (reading.requests, reading.requests_per_s),
        (Some(0), Some(0.0))
    );
    let errors = reading.errors;
    assert_eq!((errors.unexplained, errors.total()), (2500, 2500));
    assert_eq!(reading.latency.mean_us, None);
}

#[test]
fn why_there_is_no_output_is_told_where_the_text_has_it() {
    for (text, tool, words) in [
        (
            "$ wrk -t999 -c999 http://a/\nunable to create thread 31: Resource temporarily unavailable\n",
            Tool::Wrk,
            "unable to create thread 31",
        ),
        (
            "unable to create thread 31: Resource temporarily unavailable\n",
            Tool::Wrk,
            "unable to create thread 31",
        ),
        (
            "\rSET: rps=0.0 (overall: -nan) avg_msec=-nan (overall: -nan)\rError from server: OOM command not allowed when used memory > 'maxmemory'.\n",
            Tool::RedisBenchmark,
            "OOM command",
        ),
    ] {
        let found = read_text(text);
        assert_eq!(found.readings, []);
        match &found.problems[..] {
            [ReadError::GaveUp { tool: of, said, .. }] => {
                assert_eq!(*of, tool);
                assert!(said.contains(words), "{said}");
            }
            other => panic!("{other:?}"),
        }
    }
    // A run that went on, and prose about an error beside an output.
    let text = output("redis-benchmark.txt").replace(
        "Latency by percentile distribution:",
        "Error from server: OOM command not allowed\n\nLatency by percentile distribution:",
    );
    assert_eq!(read_text(&text).readings[0].said.len(), 1, "{text}");
    let beside = format!(
        "unable to create thread is what it said before.\n\n{}",
        output("wrk.txt")
    );
    assert_eq!(read_text(&beside).problems, []);
}

#[test]
fn decimal_commas_are_named_as_what_they_are() {
    let text = output("wrk.txt").replace("62004.09", "62004,09");
    let said = read_text(&text).problems[0].to_string();
    assert!(
        said.contains("line 8: expected a decimal point") && said.contains("62004,09"),
        "{said}"
    );
}

#[test]
fn json_that_ends_too_early_is_told_in_any_text() {
    for name in ["oha.json", "k6.json"] {
        let text = format!("Then it ran:\n\n{}", output(name));
        let cut: String = text.chars().take(text.chars().count() * 9 / 10).collect();
        let found = read_text(&cut);
        assert!(
            matches!(found.problems[..], [ReadError::Json { line: 3, .. }]),
            "{found:?}"
        );
    }
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
fn httperf_of_a_client_without_sockets_has_failures_to_connect() {
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
fn siege_is_found_between_others_and_misses_are_told() {
    let all = [
        output("siege.txt"),
        output("ab-tls.txt"),
        output("siege-json.txt"),
    ]
    .join("\n");
    let tools: Vec<Tool> = read_all(&all).iter().map(|one| one.tool).collect();
    assert_eq!(tools, [Tool::Siege, Tool::Ab, Tool::Siege]);
    let spoilt = output("siege.txt").replace("9225 hits", "many hits");
    let error = read_output(Tool::Siege, &spoilt).unwrap_err();
    assert!(matches!(error, ReadError::Figure { .. }), "{error}");
    assert!(read_output(Tool::Siege, "It felt fast.\n").is_err());
}

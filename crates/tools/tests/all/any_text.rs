//! Outputs are found wherever they stand, and nothing else is taken for one.
use crate::support::{output, quantile, read, results, tool_of};
use proptest::prelude::*;
use tools::{Tool, ToolReading, read_all, read_output};

fn rates(readings: &[ToolReading]) -> Vec<Option<f64>> {
    readings.iter().map(|r| r.requests_per_s).collect()
}

/// A report in the form of those that people write: commands, runs, a part of an output that was
/// pasted twice, and a table of results that repeats some of the figures.
const REPORT: &str = concat!(
    include_str!("../reports/wrk.txt"),
    include_str!("any_text/report.txt")
);

#[test]
fn a_report_of_several_wrk_runs_gives_each_of_them_once() {
    let readings = read_all(REPORT);
    let [first, second, _, near, part] = &readings[..] else {
        panic!("{readings:?}");
    };
    assert_eq!(
        rates(&readings),
        [672.87, 561.58, 2386.73, 2302.67, 1649.93].map(Some)
    );
    assert_eq!((first.errors.read, first.errors.timeout), (126, 313));
    assert_eq!((second.threads, second.connections), (Some(8), Some(96)));
    assert_eq!(
        second.url.as_deref(),
        Some("http://[one]:8080/cgi-bin/env.pl")
    );
    assert_eq!(near.latency.mean_us, Some(46_270.0));
    assert_eq!((part.lines, part.connections), ((52, 53), None));
    // The commands are for another address than those that the outputs name.
    assert!(readings.iter().all(|reading| reading.command.is_none()));
}

/// A post that leaves parts of its outputs out.
const POST: &str = concat!(
    include_str!("any_text/post.txt"),
    include_str!("../reports/ab.txt")
);

#[test]
fn parts_of_ab_outputs_are_read_with_what_they_say() {
    let readings = read_all(POST);
    assert_eq!(
        rates(&readings),
        [None, None, None, Some(1387.38), Some(3579.79)]
    );
    assert_eq!(readings[0].latency.max_us, Some(304_000.0));
    assert_eq!(readings[0].command, None);
    assert_eq!(readings[1].latency.max_us, Some(5_939_000.0));
    assert_eq!(quantile(&readings[2].latency, 0.99), Some(5_284_000.0));
    for reading in &readings[3..] {
        // Concurrency is not printed here, but it is the product of the two figures.
        assert_eq!(
            (reading.connections, reading.keepalive),
            (Some(100), Some(true))
        );
        assert_eq!(
            reading.command.as_deref(),
            Some("ab -k -n 10000 -c 100 http://balancer.example/ > test")
        );
        assert_eq!(reading.url.as_deref(), Some("http://balancer.example/"));
    }
    assert_eq!(readings[3].latency.mean_us, Some(72_079.0));
}

#[test]
fn an_output_that_a_page_has_pulled_apart_is_still_found() {
    let text = include_str!("any_text/pulled_apart.txt");
    let readings = read_all(text);
    let operations: Vec<_> = readings[..3]
        .iter()
        .map(|r| r.operation.as_deref())
        .collect();
    assert_eq!(operations, [Some("SET"), Some("GET"), Some("PING")]);
    assert!(readings[..3].iter().all(|r| r.connections == Some(50)));
    assert_eq!(readings.len(), 5);
    assert_eq!(readings[3].requests_per_s, Some(500.0 / 8.824));
    assert_eq!(readings[3].latency.mean_us, Some(17_600.0));
    // The command above is that of the second run: it asks for ten times as many requests.
    assert_eq!(readings[3].command, None);
    assert_eq!(readings[4].requests_per_s, Some(5000.0 / 103.16));
    assert_eq!(readings[4].keepalive, Some(true));
    assert_eq!(
        readings[4].url.as_deref(),
        Some("http://localhost:4567/test")
    );
}

#[test]
fn a_command_belongs_to_its_own_output_only() {
    let text = format!(
        "$ ab -n 50 -c 3 http://a/\n\nIt crashed. Then, with wrk's defaults:\n\n{}",
        output("wrk.txt")
            .lines()
            .skip(1)
            .collect::<Vec<_>>()
            .join("\n")
    );
    let readings = read_all(&text);
    assert_eq!((readings.len(), readings[0].tool), (1, Tool::Wrk));
    assert_eq!((&readings[0].command, readings[0].keepalive), (&None, None));

    // A second output that does not confirm the command has none.
    let part = "Percentage of the requests served within a certain time (ms)\n  50%  7\n";
    let text = format!("$ ab -n 50 -c 3 http://a/\n{part}\nand later\n\n{part}");
    let readings = read_all(&text);
    assert_eq!(readings[0].connections, Some(3));
    assert_eq!(
        (readings[1].connections, &readings[1].command),
        (None, &None)
    );
}

#[test]
fn a_line_that_comes_again_begins_the_next_output() {
    let text = "Requests/sec:     10.00\nRequests/sec:     20.00\n\n\
                http_reqs......: 30 3/s\nvus......: 1\nhttp_reqs......: 40 4/s\n";
    assert_eq!(
        rates(&read_all(text)),
        [Some(10.0), Some(20.0), Some(3.0), Some(4.0)]
    );
}

#[test]
fn prose_and_tables_are_no_outputs() {
    for text in [
        "",
        "12 threads and 400 connections:\n  Latency 1ms, 2ms   Requests/sec: 672.87, 671.15\n",
        "Summary:\n  Total: it went well\n",
        "We saw 500 requests per second.\nThroughput: 1200.00 requests per second\n",
        "     83 Benchmark 2\n    135         it() On average, each took 0.12 seconds\n",
        "\"name\",\"12.00\"\n\"GET\",\"many\"\n",
        "{\"metrics\": {\"other\": {}}}\n{\"summary\": 3}\n{\n",
        "Latency 1 2 3 4\nTransfer/sec: 12MB\n  95%  12\n",
    ] {
        assert_eq!(read_all(text), [], "{text}");
    }
}

#[test]
fn every_result_is_found_in_a_text_that_holds_all() {
    let (mut text, mut expected) = (String::new(), Vec::new());
    for name in results() {
        text.push_str(&format!("Then {name} was run; this is what came out.\n\n"));
        text.push_str(&output(name));
        text.push('\n');
        expected.extend(read(name));
    }
    assert!(expected.len() > 40, "{}", expected.len());
    same_figures(&read_all(&text), &expected);
}

/// Compares readings but for their lines.
fn same_figures(found: &[ToolReading], expected: &[ToolReading]) {
    let bare = |readings: &[ToolReading]| -> Vec<ToolReading> {
        let bare = |reading: &ToolReading| ToolReading {
            lines: (0, 0),
            ..reading.clone()
        };
        readings.iter().map(bare).collect()
    };
    let (found, expected) = (bare(found), bare(expected));
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}

/// A change that pages, mails and cut-off logs make to a text.
#[derive(Clone, Debug)]
enum Change {
    Drop(usize),
    Double(usize),
    Swap(usize, usize),
    Cut(usize),
    Replace(usize, char),
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<usize>().prop_map(Change::Drop),
        any::<usize>().prop_map(Change::Double),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Change::Swap(a, b)),
        any::<usize>().prop_map(Change::Cut),
        (any::<usize>(), any::<char>()).prop_map(|(at, c)| Change::Replace(at, c)),
    ]
}

fn changed(text: &str, changes: &[Change]) -> String {
    let mut text = text.to_owned();
    for change in changes {
        let mut lines: Vec<&str> = text.split('\n').collect();
        let count = lines.len();
        text = match change {
            Change::Drop(at) => {
                lines.remove(at % count);
                if lines.is_empty() {
                    return String::new();
                }
                lines.join("\n")
            }
            Change::Double(at) => {
                lines.insert(at % count, lines[at % count]);
                lines.join("\n")
            }
            Change::Swap(a, b) => {
                lines.swap(a % count, b % count);
                lines.join("\n")
            }
            Change::Cut(at) => {
                let characters = text.chars().count();
                text.chars().take(at % (characters + 1)).collect()
            }
            Change::Replace(at, with) => {
                let characters = text.chars().count().max(1);
                let replace = |(index, c)| if index == at % characters { *with } else { c };
                text.chars().enumerate().map(replace).collect()
            }
        };
    }
    text
}

/// What every reading keeps to, however it came about.
fn assert_sound(reading: &ToolReading, lines: usize) {
    let (first, last) = reading.lines;
    assert!(1 <= first && first <= last && last <= lines, "{reading:?}");
    for latency in [&reading.latency, &reading.connect, &reading.first_byte] {
        let ascending = latency
            .quantiles_us
            .windows(2)
            .all(|pair| pair[0].0 < pair[1].0);
        let inside = latency
            .quantiles_us
            .iter()
            .all(|(share, _)| 0.0 < *share && *share < 1.0);
        assert!(ascending && inside, "{latency:?}");
    }
    let json = serde_json::to_string(reading).unwrap();
    serde_json::from_str::<ToolReading>(&json).unwrap();
}

fn assert_reads(text: &str) {
    let lines = text.split('\n').count();
    for reading in read_all(text) {
        assert_sound(&reading, lines);
    }
    for tool in Tool::ALL {
        for reading in read_output(tool, text).into_iter().flatten() {
            assert_sound(&reading, lines);
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "\\PC{0,200}|(.|\n|\r){0,200}") {
        assert_reads(&text);
    }

    #[test]
    fn words_of_the_tools_in_any_order_are_read_without_a_panic(
        parts in prop::collection::vec(prop::sample::select(vec![
            "Running ", "Requests/sec: ", " test @ ", "Latency ", " requests in ", "Socket errors: connect ",
            "Total: ", "connections ", "Reply rate [replies/s]: ", "(Connect: ", "spawning thread #", "finished in ",
            " req/s", "requests: ", " total, ", "Summary:", "[200]", "Details (average, fastest, slowest):", "DNS+dialup:",
            "http_reqs....: ", "█ GROUP", "\"SET\",\"", "====== ", " ======", ": 1.00 requests per second", ", p50=",
            "$ wrk -t", "`ab -n ", "{\"metrics\":{\"http_reqs\":{", "}}}", "50%", "1.23ms", "99999999999999999999", "-1", "µs",
            "10 connections", "│ Stat │ 50% │ Max │", "│ Latency │ ", "│", " errors (", " timeouts)", "Requests [total, rate]",
            "Status Codes [code:count] ", "200:1", "Bombarding ", " connection(s)", "Reqs/sec ", "1xx - 1, ", " - 2",
            "Aggregated ", "# reqs # fails", "Name ", "(1.00%) | ", "Type,Name,Request Count,Failure Count,", "---- Global Information ",
            "---- Errors ", "request count ", "(OK=", " KO=", "summary = ", "summary + ", " in 00:00:01 = ", "2.0/s Avg: ", "Err: ",
            "Summary report @ ", "http.responses: ..... ", "Count: ", " % in ", "] rpc error: code = ", "Average: ",
            "=", ",", ":", "|", "\u{1b}[", "> ", "\\", "\n", "\r", " ", "(", ")", "/s", "%", "nan",
        ]), 0..40)
    ) {
        assert_reads(&parts.concat());
    }

    #[test]
    fn damaged_outputs_are_read_without_a_panic(
        pick in any::<prop::sample::Index>(),
        changes in prop::collection::vec(change(), 1..6),
    ) {
        let names = results();
        let name = pick.get(names);
        let text = changed(&output(name), &changes);
        assert_reads(&text);
        // What is left is read as what it was asked for, or not at all.
        let tool = tool_of(name);
        let read = read_output(tool, &text).into_iter().flatten();
        prop_assert!(read.into_iter().all(|r| r.tool == tool || (r.tool, tool) == (Tool::Wrk2, Tool::Wrk)));
    }

    #[test]
    fn outputs_one_after_the_other_are_found_each(
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0usize..5), 1..6)
    ) {
        let names = results();
        let (mut text, mut expected) = (String::new(), Vec::new());
        for (pick, between) in picks {
            let name = pick.get(names);
            let output = output(name);
            // Quoted, indented, with prose before, with empty lines, or with nothing between.
            text.push_str(&match between {
                0 => output.lines().map(|line| format!("> {line}\n")).collect(),
                1 => output.lines().map(|line| format!("        {line}\n")).collect(),
                2 => format!("Here is what {name} holds:\n\n{output}"),
                3 => format!("\n\n{output}\n\n"),
                _ => output.clone(),
            });
            if !text.ends_with('\n') {
                text.push('\n');
            }
            expected.extend(read(name));
        }
        same_figures(&read_all(&text), &expected);
    }
}

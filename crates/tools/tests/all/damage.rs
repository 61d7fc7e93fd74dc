//! What autocannon, vegeta, bombardier, Locust, Gatling, JMeter, Artillery and ghz print becomes the
//! right figures, whole or damaged, and is taken for no other tool's.
use crate::support::{output, quantile, read, results, tool_of};
use tools::{ReadError, Tool, ToolReading, read_all, read_output, read_text};

/// A reading in a line: requests, seconds, requests/s; connections, depth; mean, median, 99th
/// percentile, largest, first byte's median in microseconds; errors that are not 0.
fn said(reading: &ToolReading) -> String {
    let number = |n: Option<f64>| {
        n.map_or("-".to_owned(), |n| {
            format!("{}", (n * 100.0).round() / 100.0)
        })
    };
    let count = |n: Option<u64>| number(n.map(|n| n as f64));
    let e = &reading.errors;
    let errors = [
        ("connect", e.connect),
        ("read", e.read),
        ("write", e.write),
        ("timeout", e.timeout),
        ("status", e.status),
        ("verify", e.verify),
        ("unexplained", reading.unexplained),
    ];
    let errors: Vec<String> = errors
        .iter()
        .filter(|(_, n)| *n > 0)
        .map(|(name, n)| format!("{name} {n}"))
        .collect();
    format!(
        "{} {} {} | {} {} | {} {} {} {} {} | {}",
        count(reading.requests),
        number(reading.duration_s),
        number(reading.requests_per_s),
        count(reading.connections),
        count(reading.depth),
        number(reading.latency.mean_us),
        number(quantile(&reading.latency, 0.5)),
        number(quantile(&reading.latency, 0.99)),
        number(reading.latency.max_us),
        number(quantile(&reading.first_byte, 0.5)),
        errors.join(", "),
    )
}

const SAID: &str = "\
artillery.json: 178 - 60.32 | - - | - - - - 30300 | read 2, status 6
artillery.txt: 178 - 60.32 | - - | - - - - 30300 | read 2, status 6
autocannon-amount.txt: 1000 2.01 500 | 4 1 | - - 8000 10000 - | status 1000
autocannon-errors.txt: 40383 2.01 20192 | 10 1 | 46130 48000 94000 98000 - | status 2180, unexplained 2000
autocannon-json.txt: 21989 2.02 10996 | 10 1 | 45430 34000 166000 188000 - | status 1138, unexplained 1146
autocannon-latency.txt: - 2.03 29628 | 10 4 | - - 9000 36000 - |
autocannon-old.txt: - 5.04 60120.4 | 50 10 | 7750 8000 19000 144000 - | timeout 12, unexplained 200
autocannon-refused.txt: - 1.01 0 | 4 1 | - - - - - | unexplained 17000
autocannon-timeout.txt: - 3.01 0 | 4 1 | - - - - - | timeout 8
autocannon-workers.txt: - 2.01 1034.5 | 4 1 | - - 15000 21000 - |
bombardier-json.txt: 44477 2 22193.1 | 10 1 | 448.98 201 4678 86636 - | status 2345
bombardier-latency.txt: 2000 - 8986 | 10 1 | 460.17 336 2510 6730 - | status 115
bombardier-quiet.txt: 36159 1 36159 | 10 1 | 275.02 - - 13480 - |
bombardier-rate.txt: 603 2 301.5 | 10 1 | 521.98 176 12760 15980 - | status 603
bombardier-refused.txt: 0 - - | 4 1 | - - - - - | connect 20
bombardier-timeout.txt: 0 - - | 4 1 | - - - - - | timeout 4
bombardier.txt: 44789 2 22394.5 | 10 1 | 445.52 - - 143200 - |
gatling-old.txt: 599 - 149.75 | - - | 29000 6000 220000 413000 - | read 1, status 12
gatling.txt: 600 - 120 | - - | 306000 271000 821000 1009000 - | status 16
ghz-rps.txt: 0 3 0 | 2 - | - - - - - | read 5, timeout 10
ghz-stream.txt: 200 2.15 93.09 | 1 - | 93940 74430 252010 263910 - |
ghz.json: 200 0.12 1617.64 | 1 20 | - 2292.38 103589.24 103604.75 - | status 18
ghz.txt: 2000 0.45 4429.62 | 1 - | - 1890 31600 41630 - | status 207
jmeter-statistics.json: 7501 - 1024.87 | - - | - 1000 50980 279000 - | unexplained 774
jmeter.txt: 7501 8 911.2 | 4 - | - - - 279000 - | unexplained 774
locust-refused.txt: 0 - 0 | 4 - | - - - - - | connect 478
locust-stats.txt: 98 - 100.28 | - - | 23504.03 14000 230000 234704.14 - | unexplained 2
locust.txt: 186 - 119.83 | 4 - | 16000 9000 190000 234000 - | read 2, status 3
vegeta-errors.txt: 998 2 499.25 | - - | 360.75 237.72 2556 5947 - | read 2, status 66
vegeta-hdrplot.txt: 1000 - - | - - | - 237.72 - 5946.68 - |
vegeta-hist.txt: 1000 - - | - - | - - - - - |
vegeta-json.txt: 998 2 499.33 | - - | 360.75 237.72 2556.33 5946.68 - | read 2, status 66
vegeta-refused.txt: 0 0.98 0 | - - | - - - - - | connect 50
vegeta-timeout.txt: 0 1.82 0 | - - | - - - - - | timeout 5
vegeta.txt: 1000 2 500.36 | - - | 426.56 327.38 4676 10445 - |
";

#[test]
fn every_form_gives_the_figures_that_it_holds() {
    let mut found = String::new();
    for name in results() {
        if matches!(
            tool_of(name),
            Tool::Autocannon
                | Tool::Vegeta
                | Tool::Bombardier
                | Tool::Locust
                | Tool::Gatling
                | Tool::Jmeter
                | Tool::Artillery
                | Tool::Ghz
        ) {
            for reading in read(name) {
                found.push_str(format!("{name}: {}", said(&reading)).trim_end());
                found.push('\n');
            }
        }
    }
    assert_eq!(found, SAID, "{found}");
}

#[test]
fn an_output_is_read_by_its_own_reader_alone() {
    let family = |tool| if tool == Tool::Wrk2 { Tool::Wrk } else { tool };
    let mut wrong = Vec::new();
    for name in results() {
        let text = output(name);
        for tool in Tool::ALL {
            let own = family(tool) == family(tool_of(name));
            if !own && read_output(tool, &text).is_ok() {
                wrong.push(format!("{name} as {tool}"));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
}

type Change = fn(&str) -> String;

/// What terminals, mails and pages do to an output.
const DAMAGES: [(&str, Change); 6] = [
    ("colours", |text| {
        each(text, |line| format!("\u{1b}[1;32m{line}\u{1b}[0m"))
    }),
    ("quoted", |text| each(text, |line| format!("> {line}"))),
    ("quoted twice", |text| {
        each(text, |line| format!("> > {line}"))
    }),
    ("Windows line ends", |text| text.replace('\n', "\r\n")),
    ("indented", |text| {
        format!("```text\n{}```\n", each(text, |line| format!("    {line}")))
    }),
    ("prompts", |text| {
        format!("me@host:~$ ls\n{text}\nme@host:~$ echo done\ndone\nme@host:~$ \n")
    }),
];

fn each(text: &str, change: impl Fn(&str) -> String) -> String {
    text.lines().map(|line| change(line) + "\n").collect()
}

/// Readings but for their lines.
fn figures(readings: &[ToolReading]) -> Vec<ToolReading> {
    let bare = |reading: &ToolReading| ToolReading {
        lines: (0, 0),
        ..reading.clone()
    };
    readings.iter().map(bare).collect()
}

#[test]
fn damage_around_the_lines_changes_no_figure() {
    for name in results() {
        let whole = read(name);
        for (damage, change) in DAMAGES {
            let found = read_all(&change(&output(name)));
            assert_eq!(figures(&found), figures(&whole), "{name}: {damage}");
        }
        let twice = format!("{0}\n\n{0}", output(name).trim_end());
        let found = read_all(&twice);
        assert_eq!(
            figures(&found),
            [figures(&whole), figures(&whole)].concat(),
            "{name}: two runs"
        );
    }
}

#[test]
fn a_cut_output_is_never_taken_for_another_tools() {
    for name in results() {
        let tool = tool_of(name);
        let own = [tool, if tool == Tool::Wrk2 { Tool::Wrk } else { tool }];
        let text = output(name);
        let lines: Vec<&str> = text.lines().collect();
        for cut in 1..lines.len() {
            for part in [&lines[..cut], &lines[cut..]] {
                let found = read_text(&part.join("\n"));
                let others = found.readings.iter().filter(|r| !own.contains(&r.tool));
                assert_eq!(
                    others.count(),
                    0,
                    "{name} cut at {cut}: {:?}",
                    found.readings
                );
            }
        }
    }
}

#[test]
fn three_outputs_in_one_text_are_three_readings_and_what_failed_is_named() {
    let text = [
        "$ wrk -t2 -c10 -d10s http://a.example/\nunable to connect to a.example:http Connection refused\n".to_owned(),
        output("ghz.txt"),
        output("autocannon-latency.txt"),
        "$ wrk -t2 -c10 -d10s http://a.example/\nRunning 10s test @ http://a.example/\n  2 threads and 10 connections\n^C".to_owned(),
        output("vegeta.txt"),
    ]
    .join("\n");
    let found = read_text(&text);
    let tools: Vec<Tool> = found.readings.iter().map(|r| r.tool).collect();
    assert_eq!(tools, [Tool::Ghz, Tool::Autocannon, Tool::Vegeta]);
    for reading in &found.readings {
        let command = reading.command.as_deref().unwrap_or_default();
        assert!(command.contains(reading.tool.name()), "{reading:?}");
    }
    assert_eq!(found.readings[0].url.as_deref(), Some("127.0.0.1:50051"));
    let cut = ReadError::Part {
        tool: Tool::Wrk,
        lines: (102, 103),
        expected: "`Requests/sec: 123.45`",
    };
    let gave_up = ReadError::GaveUp {
        tool: Tool::Wrk,
        line: 2,
        said: "unable to connect to a.example:http Connection refused".to_owned(),
    };
    assert_eq!(found.problems, [cut, gave_up]);
}

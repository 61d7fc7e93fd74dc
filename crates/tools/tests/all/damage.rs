//! Outputs are read whole, damaged or one after the other, and are taken for no other tool's.
use crate::support::{output, read, results, tool_of};
use tools::{ReadError, Tool, ToolReading, read_all, read_output, read_text};

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

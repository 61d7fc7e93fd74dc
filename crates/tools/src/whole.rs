//! What a tool always prints last of a run: without it an output was cut off.

use crate::text::lines::Line;
use crate::text::units;
use crate::{Tool, ToolReading};

const PERCENTAGES: &str = "`100%   123 (longest request)`";

type Is = fn(&str) -> bool;

/// The last lines of each tool's text: their words, and what each of some lines has to be.
const LAST: [(Tool, &str, &[Is]); 19] = [
    (Tool::Wrk, "`Transfer/sec: 1.23MB`", &[is_transfer]),
    (Tool::Wrk2, "`Transfer/sec: 1.23MB`", &[is_transfer]),
    (
        Tool::Ab,
        "`Total:` with its times",
        &[|text| text.starts_with("Total:") && text.split_whitespace().count() >= 4],
    ),
    (
        Tool::Ab,
        PERCENTAGES,
        &[|text| text.starts_with("100%") && text.ends_with("(longest request)")],
    ),
    (
        Tool::Httperf,
        "`Errors: fd-unavail N ... other N`",
        &[|text| text.starts_with("Errors: fd-unavail") && text.contains(" other ")],
    ),
    (
        Tool::H2load,
        "`req/s           : ...`",
        &[|text| text.starts_with("req/s ") && text.ends_with('%')],
    ),
    (
        Tool::Siege,
        "`Shortest transaction: 0.00`",
        &[|text| {
            let seconds = text.strip_prefix("Shortest transaction:");
            let decimals = seconds.and_then(|s| s.split_once('.'));
            decimals.is_some_and(|(_, decimals)| decimals.len() == 2)
        }],
    ),
    (
        Tool::K6,
        "`iterations...: 100 9.9/s` and `data_sent...: 1.2 kB 120 B/s`",
        &[
            |text| is_rate_of("iterations", text),
            |text| is_rate_of("data_sent", text),
        ],
    ),
    (
        Tool::RedisBenchmark,
        "the row below `avg min p50 p95 p99 max`",
        &[|text| {
            let words = text.split_whitespace();
            let row = words.clone().count() == 6 && words.clone().all(|w| units::ms(w).is_some());
            // Of other forms and of old versions each line is a result.
            let result = text.contains(" requests per second") && !text.starts_with("throughput");
            row || result || text.starts_with('"')
        }],
    ),
    (
        Tool::Time,
        "`sys 0m0.123s`",
        &[|text| !text.starts_with("real") && !text.starts_with("user")],
    ),
    (
        Tool::Autocannon,
        "`1k requests in 10.02s, 1.23 MB read`",
        &[|text| text.contains(" requests in ") && text.ends_with(" read")],
    ),
    (
        Tool::Vegeta,
        "`Error Set:`, or the last row of a list",
        &[is_last_of_vegeta],
    ),
    (
        Tool::Bombardier,
        "`Throughput:   1.23MB/s`",
        &[|text| text.starts_with("Throughput:")],
    ),
    (
        Tool::Locust,
        "`Response time percentiles`",
        &[
            |text| {
                text.starts_with("Response time percentiles") || text.starts_with(",Aggregated,")
            },
        ],
    ),
    (
        Tool::Gatling,
        "`---- Response Time Distribution`",
        &[|text| text.contains("---- Response Time Distribution")],
    ),
    (
        Tool::Jmeter,
        "`summary = ...`",
        &[|text| text.contains("summary =")],
    ),
    (
        Tool::Artillery,
        "`Summary report @ ...`",
        &[|text| text.starts_with("Summary report @ ")],
    ),
    (
        Tool::Ghz,
        "`[OK]   100 responses`",
        &[|text| text.starts_with('[') && text.ends_with(" responses")],
    ),
    // Its text is not read.
    (Tool::Weigh, "", &[]),
];

fn is_transfer(text: &str) -> bool {
    text.starts_with("Transfer/sec:") && text.ends_with('B')
}

/// Of a histogram the bucket without an end, of a list of quantiles the one of all.
fn is_last_of_vegeta(text: &str) -> bool {
    let is_all = |text: &str| text.split_whitespace().nth(1) == Some("1.000000");
    text.starts_with("Error Set:") || text.contains("+Inf]") || is_all(text)
}

fn is_rate_of(metric: &str, text: &str) -> bool {
    let text = text.trim_start_matches(['✓', '✗', ' ']);
    let rest = text.strip_prefix(metric);
    rest.is_some_and(|rest| rest.starts_with('.') && rest.ends_with("/s"))
}

/// What is missing at the end of an output, for messages; its reading and the tool's own lines of
/// it are given.
pub(super) fn missing(reading: &ToolReading, own: &[&Line]) -> Option<&'static str> {
    if matches!(reading.tool, Tool::Hey | Tool::Oha) {
        // How many lines stand at their end differs; their counts add up to the rate.
        let unknown = reading.requests_per_s.is_none() && reading.duration_s.is_some();
        return unknown.then_some("a part of `Status code distribution` or `Error distribution`");
    }
    let is_there = |is: &Is| own.iter().any(|line| is(&line.text));
    LAST.iter()
        .filter(|(tool, ..)| *tool == reading.tool)
        .find(|(_, _, lines)| !lines.iter().all(is_there))
        .map(|(_, words, _)| *words)
}

/// Whether what is missing is so by the command or by the count: ab prints no percentages with `-d`
/// or of one request, and no times of none.
pub(super) fn may_lack(reading: &ToolReading, missing: &str) -> bool {
    let command = reading.command.as_deref().unwrap_or_default();
    let option = |word: &str| word.starts_with('-') && word.len() <= 4 && word.contains('d');
    let requests = reading.requests.unwrap_or(u64::MAX);
    let no_percentages = requests <= 1 || command.split_whitespace().any(option);
    reading.tool == Tool::Ab && (requests == 0 || (missing == PERCENTAGES && no_percentages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_every_tools_output_is_known() {
        for tool in Tool::ALL {
            let known = LAST.iter().any(|(other, ..)| *other == tool);
            assert!(known || matches!(tool, Tool::Hey | Tool::Oha), "{tool}");
        }
    }
}

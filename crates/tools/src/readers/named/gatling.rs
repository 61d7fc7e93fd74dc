//! Gatling: the block of global information, in columns since 3.11, in brackets before.
//!
//! - Figures are of all requests; KO are those that failed: without an answer, or by a check, of
//!   which that of the status is one by itself. The list of errors tells which, where it tells of
//!   all of them. Rate and latencies include them.
//! - Times are whole milliseconds, rounded down; 0 is no figure, and a mean below 10 ms is none
//!   either. A latency includes opening a connection.
//! - Users arrive, and go on when they are answered: how many there were stands nowhere.

use crate::mark::Mark;
use crate::readers::Reader;
use crate::reading::{Figures, coarse_mean, count_failure, leave_unanswered_out, set_named, sum};
use crate::text::lines::Line;
use crate::text::{named, units};
use crate::{Tool, ToolReading};
use readings::ErrorCounts;

const RESULT: &str = "`request count  10 (OK=9 KO=1)`, or `| 10 | 9 | 1`";

pub(in crate::readers) static READER: Reader = Reader {
    first: "`---- Global Information ----` and `> request count`",
    result: RESULT,
    gives_up: &["Run crashed"],
    mark: |lines, at| mark(&lines[at]),
    read,
    document: None,
};

const STEP_US: f64 = 2e3;
/// The sum of rounded percentages of all errors.
const ALL_PERCENT: f64 = 99.5;

fn mark(line: &Line) -> Option<Mark> {
    let text = line.text.as_str();
    let heading = text
        .strip_prefix("---- ")
        .map(|text| text.trim_end_matches(['-', ' ']));
    if let Some(heading) = heading {
        return match heading {
            "Response Time Distribution" => Mark::once(10),
            "Errors" => Mark::once(20),
            _ if heading.starts_with("Global Information") => Mark::opens(1),
            _ => None,
        };
    }
    if let Some((name, _)) = figure(text) {
        return match name {
            "request count" => Mark::opens(2),
            _ => Mark::many(3),
        };
    }
    if named::is_rule(text) {
        Mark::anywhere()
    } else if ["t <", "t >=", "800 ms <=", "OK: ", "KO ", "failed "]
        .iter()
        .any(|s| text.starts_with(s))
    {
        Mark::many(11)
    } else if error(text).is_some() {
        Mark::many(21)
    } else {
        None
    }
}

/// The name and the values of all, of OK and of KO.
fn figure(text: &str) -> Option<(&str, [&str; 3])> {
    const NAMES: [&str; 4] = ["request count", "mean ", "response time ", "std deviation"];
    let is_known = |name: &str| {
        let ends = name.ends_with("response time") || name.ends_with("response time (ms)");
        ends || NAMES.iter().any(|known| name.starts_with(known))
    };
    let (name, values) =
        if let Some((rest, ko)) = text.strip_suffix(')').and_then(|t| t.rsplit_once("KO=")) {
            let (rest, ok) = rest.rsplit_once("(OK=")?;
            let (name, all) = rest.trim_end().rsplit_once(' ')?;
            (name, [all, ok, ko])
        } else {
            let mut cells = text.rsplitn(4, '|');
            let (ko, ok, all) = (cells.next()?, cells.next()?, cells.next()?);
            (cells.next()?, [all, ok, ko])
        };
    let name = name.trim();
    is_known(name).then(|| (name, values.map(str::trim)))
}

/// Words, count and percentage of `status.find.in(200), found 503      12 (92.31%)`.
fn error(text: &str) -> Option<(&str, u64, f64)> {
    let (rest, share) = text.strip_suffix("%)")?.rsplit_once('(')?;
    let (said, count) = rest.trim_end().rsplit_once(' ')?;
    let count = units::count(&count.replace(',', ""))?;
    Some((said.trim(), count, units::number(share.trim())?))
}

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut reading = ToolReading::new(Tool::Gatling);
    let (mut all, mut failed, mut rate_per_s) = (None, 0, None);
    let mut in_errors = false;
    let mut listed_percent = 0.0;
    for &line in lines {
        let text = line.text.as_str();
        if let Some((name, values)) = figure(text) {
            let [total, _, ko] = values.map(named::grouped);
            // `-` stands for nothing that was measured.
            let value = match values[0] {
                "-" => None,
                _ => figures.want(line, "a figure of all requests", total),
            };
            let name = name.trim_end_matches(" (ms)");
            match name {
                "request count" => {
                    all = value.map(units::whole);
                    failed = figures.want(line, RESULT, ko).map_or(0, units::whole);
                }
                "mean requests/sec" | "mean throughput (rps)" => rate_per_s = value,
                _ => {
                    let name = match name {
                        "std deviation" | "response time std deviation" => "stddev",
                        _ => name
                            .trim_start_matches("response time ")
                            .split(' ')
                            .next()
                            .unwrap_or(""),
                    };
                    set_named(&mut reading.latency, name, value.unwrap_or(0.0) * 1e3);
                }
            }
        } else if text.starts_with("---- ") {
            in_errors = text.starts_with("---- Errors");
        } else if let Some((said, count, percent)) = error(text).filter(|_| in_errors) {
            listed_percent += percent;
            if said.starts_with("status.") {
                reading.errors.status = sum([reading.errors.status, count]);
            } else if said.contains(".find") {
                reading.errors.verify = sum([reading.errors.verify, count]);
            } else {
                count_failure(&mut reading, said, count);
            }
        }
    }
    if failed > 0 && listed_percent < ALL_PERCENT {
        figures.lacks("a part of `---- Errors`");
    }
    // A request may fail in several ways, and its message may be cut off the list.
    if reading.errors.total() != failed {
        reading.errors = ErrorCounts {
            unexplained: failed,
            ..ErrorCounts::default()
        };
    }
    leave_unanswered_out(&mut reading, all, rate_per_s);
    coarse_mean(&mut reading.latency, STEP_US);
    vec![reading]
}

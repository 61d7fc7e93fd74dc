//! redis-benchmark: a reading for each operation.
//!
//! It prints in three forms: a long one, `-q` with a line per operation, and `--csv`. Times are in
//! milliseconds. `Latency by percentile distribution` has the value at each share; the `Cumulative
//! distribution` after it has the share below steps of a histogram, and is not read. Before version
//! 6.2 there is one list, whose whole milliseconds are rounded down. A request is one command, also
//! when `-P` sends several at once.

use super::Reader;
use crate::mark::Mark;
use crate::reading::{Figures, set_quantile};
use crate::text::lines::Line;
use crate::text::units;
use crate::{Tool, ToolReading};

const RESULT: &str = "`throughput summary: 123.45 requests per second`";

pub(super) static READER: Reader = Reader {
    first: "`====== SET ======`, `SET: 123.45 requests per second`, or CSV",
    result: RESULT,
    gives_up: &["Could not connect to Redis", FROM_SERVER, "NOAUTH"],
    mark: |lines, at| mark(&lines[at]),
    read,
    document: None,
};

/// What the server answered instead; newer versions end with it, older ones go on.
const FROM_SERVER: &str = "Error from server";
const PER_SECOND: &str = " requests per second";

fn mark(line: &Line) -> Option<Mark> {
    let text = line.text.as_str();
    if operation(text).is_some() || !quiet(text).is_empty() || is_csv_header(text) {
        return Mark::opens(1);
    }
    if let Some(cells) = csv_row(text) {
        return if is_operation(cells[0]) {
            Mark::opens_many(2)
        } else {
            Mark::many(2)
        };
    }
    if text.contains(" requests completed in ") {
        Mark::once(3)
    } else if text.ends_with(" parallel clients") {
        Mark::once(4)
    } else if text.ends_with(" bytes payload") {
        Mark::once(5)
    } else if text.starts_with("keep alive:") {
        Mark::once(6)
    } else if text.starts_with("host configuration ") {
        Mark::many(7)
    } else if text.starts_with("multi-thread:") {
        Mark::once(8)
    } else if text.starts_with("threads:") {
        Mark::once(9)
    } else if quantile(text).is_some()
        || text == "Latency by percentile distribution:"
        || text == "Cumulative distribution of latencies:"
    {
        Mark::many(10)
    } else if text == "Summary:" {
        Mark::once(20)
    } else if text.starts_with("throughput summary:") || rate_alone(text).is_some() {
        Mark::once(21)
    } else if text.starts_with("latency summary (") {
        Mark::once(22)
    } else if is_summary_header(text) {
        Mark::once(23)
    } else if summary_row(text).is_some() {
        Mark::once(24)
    } else if text.contains(FROM_SERVER) {
        Mark::anywhere()
    } else {
        None
    }
}

/// The name in `====== SET ======`.
fn operation(text: &str) -> Option<&str> {
    let name = text.strip_prefix("====== ")?.strip_suffix(" ======")?;
    Some(name).filter(|name| !name.is_empty())
}

/// Whether a name is one of the tool's own: `SET`, `MSET (10 keys)`, `LRANGE_100 (first ...)`.
fn is_operation(name: &str) -> bool {
    let word = name.split(' ').next().unwrap_or("");
    let capitals = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    word.len() >= 3
        && word.bytes().all(capitals)
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && (word.len() == name.len() || (name.contains(" (") && name.ends_with(')')))
}

/// An operation, its rate and its median, of a line that `-q` prints.
struct Quiet<'a> {
    name: &'a str,
    per_s: f64,
    p50_us: Option<f64>,
}

/// The operations of a line of `-q`; a page may have run several lines into one.
fn quiet(text: &str) -> Vec<Quiet<'_>> {
    let mut found: Vec<Quiet> = Vec::new();
    if !text.contains(PER_SECOND) {
        return found;
    }
    for part in text.split(PER_SECOND) {
        let part = match part.strip_prefix(", p50=") {
            Some(rest) => {
                let (median, rest) = rest.split_once(" msec").unwrap_or((rest, ""));
                if let Some(last) = found.last_mut() {
                    last.p50_us = units::ms(median.trim());
                }
                rest
            }
            None => part,
        };
        let part = part.trim();
        if part.is_empty() {
            continue;
        }
        let entry = part.rsplit_once(": ").and_then(|(name, rate)| {
            let two_decimals = rate.split_once('.').is_some_and(|(_, d)| d.len() == 2);
            let per_s = units::number(rate).filter(|_| two_decimals)?;
            Some((name.trim(), per_s))
        });
        // Only what the tool prints stands in such a line: a command in small letters is one that
        // the caller wrote, and is known by the median after it.
        match entry {
            Some((name, per_s)) if is_operation(name) || text.contains(", p50=") => {
                let p50_us = None;
                found.push(Quiet {
                    name,
                    per_s,
                    p50_us,
                });
            }
            _ => return Vec::new(),
        }
    }
    found
}

/// `107526.88 requests per second`, as versions before 6.2 end an operation.
fn rate_alone(text: &str) -> Option<f64> {
    units::number(text.strip_suffix(PER_SECOND)?)
}

/// `99.219% <= 0.511 milliseconds (cumulative count 1985)`.
fn quantile(text: &str) -> Option<(f64, f64)> {
    let (share, rest) = text.split_once("% <= ")?;
    let (ms, _) = rest.split_once(" milliseconds")?;
    Some((units::percent(&format!("{share}%"))?, units::ms(ms)?))
}

fn is_summary_header(text: &str) -> bool {
    let words: Vec<_> = text.split_whitespace().collect();
    words == ["avg", "min", "p50", "p95", "p99", "max"]
}

fn summary_row(text: &str) -> Option<[f64; 6]> {
    let times: Option<Vec<f64>> = text.split_whitespace().map(units::ms).collect();
    times?.try_into().ok()
}

fn is_csv_header(text: &str) -> bool {
    text.starts_with("\"test\",\"rps\"")
}

/// A row's cells: a name and numbers, all in quotes.
fn csv_row(text: &str) -> Option<Vec<&str>> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    let cells: Vec<&str> = inner.split("\",\"").collect();
    let numbers = cells.len() >= 2 && cells[1..].iter().all(|cell| units::number(cell).is_some());
    numbers.then_some(cells)
}

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut readings = Vec::new();
    let mut long: Option<ToolReading> = None;
    let mut columns = vec!["test", "rps"];
    let mut by_share = true;
    for &line in lines {
        let text = line.text.as_str();
        let place = (line.number, line.number);
        if is_csv_header(text) {
            let inner = text.trim_matches('"');
            columns = inner.split("\",\"").collect();
        } else if let Some(cells) = csv_row(text) {
            let mut reading = from_csv(&columns, &cells);
            reading.lines = place;
            readings.push(reading);
        } else if let Some(name) = operation(text) {
            let mut reading = ToolReading::new(Tool::RedisBenchmark);
            reading.operation = Some(name.to_owned());
            readings.extend(long.replace(reading));
            by_share = true;
        } else if let Some(reading) = &mut long {
            match text {
                "Latency by percentile distribution:" => by_share = true,
                "Cumulative distribution of latencies:" => by_share = false,
                _ => read_line(reading, line, by_share, figures),
            }
        } else {
            for entry in quiet(text) {
                let mut reading = ToolReading::new(Tool::RedisBenchmark);
                reading.operation = Some(entry.name.to_owned());
                reading.requests_per_s = Some(entry.per_s);
                if let Some(us) = entry.p50_us {
                    set_quantile(&mut reading.latency, 0.5, us);
                }
                reading.lines = place;
                readings.push(reading);
            }
        }
    }
    readings.extend(long);
    readings
}

fn read_line(reading: &mut ToolReading, line: &Line, by_share: bool, figures: &mut Figures) {
    let text = line.text.as_str();
    if let Some(at) = text.find(FROM_SERVER) {
        reading.said.push(text[at..].to_owned());
    } else if let Some((requests, time)) = text.split_once(" requests completed in ") {
        const FORM: &str = "`N requests completed in 1.23 seconds`";
        reading.requests = figures.want(line, FORM, units::count(requests));
        reading.duration_s = figures.want(line, FORM, units::duration_s(time));
    } else if let Some(clients) = text.strip_suffix(" parallel clients") {
        reading.connections = figures.want(line, "a count of clients", units::count(clients));
    } else if let Some(rest) = line.after("keep alive:") {
        reading.keepalive = figures
            .want(line, "`keep alive: 1`", units::count(rest))
            .map(|n| n > 0);
    } else if let Some(rest) = line.after("multi-thread:") {
        reading.threads = reading.threads.or((rest == "no").then_some(1));
    } else if let Some(rest) = line.after("threads:") {
        reading.threads = figures.want(line, "a count of threads", units::count(rest));
    } else if let Some((share, us)) = quantile(text) {
        if by_share {
            set_quantile(&mut reading.latency, share, us);
        }
    } else if let Some(rest) = line.after("throughput summary:") {
        let rate = rest.strip_suffix(PER_SECOND).and_then(units::number);
        reading.requests_per_s = figures.want(line, RESULT, rate);
    } else if let Some(rate) = rate_alone(text) {
        reading.requests_per_s = Some(rate);
    } else if let Some([avg, min, p50, p95, p99, max]) = summary_row(text) {
        let latency = &mut reading.latency;
        latency.mean_us = Some(avg);
        latency.mean_step_us = Some(1.0);
        // The list of shares begins with what half a step of the histogram holds.
        latency.min_us = Some(min);
        latency.max_us = Some(max);
        for (share, us) in [(0.5, p50), (0.95, p95), (0.99, p99)] {
            set_quantile(latency, share, us);
        }
    }
}

fn from_csv(columns: &[&str], cells: &[&str]) -> ToolReading {
    let mut reading = ToolReading::new(Tool::RedisBenchmark);
    let latency = &mut reading.latency;
    for (name, cell) in columns.iter().zip(cells) {
        let us = units::ms(cell);
        match *name {
            "test" => reading.operation = Some((*cell).to_owned()),
            "rps" => reading.requests_per_s = units::number(cell),
            "avg_latency_ms" => {
                latency.mean_us = us;
                latency.mean_step_us = Some(1.0);
            }
            "min_latency_ms" => latency.min_us = us,
            "max_latency_ms" => latency.max_us = us,
            name => {
                let share = name
                    .strip_prefix('p')
                    .and_then(|n| n.strip_suffix("_latency_ms"));
                let share = share.and_then(|share| units::percent(&format!("{share}%")));
                if let Some((share, us)) = share.zip(us) {
                    set_quantile(latency, share, us);
                }
            }
        }
    }
    reading
}

//! ApacheBench: one thread, a connection per request unless `-k` is given.
//!
//! - `Complete requests` are all that ended, those with a wrong length or status among them.
//! - `Failed requests` may count one request under several kinds: a connection that was reset
//!   counts under Receive and under Exceptions, an error page of another length under Length and
//!   under `Non-2xx responses`. ab does not say how many are the same, so of each such pair the
//!   larger count is taken: it is the least number of failures, and their sum the most.
//! - `Length` means an answer of another length than the first one's, which is no failure where
//!   content varies.
//! - `Keep-Alive requests` is printed with `-k` only.
//! - The table is in whole milliseconds: `Connect`, `Processing` (from connected to the end),
//!   `Waiting` (from the request's last byte to the answer's first), `Total` (with connecting).
//!   With `-k` a request on an open connection has a connect time of 0, so that only the largest
//!   is the time of opening one.
//! - `Time per request` is concurrency x time / requests, worked out and not measured. It is the
//!   mean where the table's is below 10 ms, and so coarse, or missing; and with the rate it tells
//!   the concurrency.
//! - Bytes are all that was received; `Kbytes` are 1024.

use super::Reader;
use crate::mark::Mark;
use crate::reading::{Figures, set_quantile};
use crate::text::lines::Line;
use crate::text::units;
use crate::{Tool, ToolLatency, ToolReading, ToolTls, tls};

const RESULT: &str = "`Requests per second: 123.45 [#/sec] (mean)`";

pub(super) static READER: Reader = Reader {
    first: "`This is ApacheBench` or `Requests per second: ...`",
    result: RESULT,
    gives_up: &[
        "apr_",
        "ab: ",
        "SSL handshake failed",
        "Test aborted after",
        "socket: ",
    ],
    mark: |lines, at| mark(&lines[at]),
    read,
    document: None,
};

/// Below this a whole millisecond is more than 5% off.
const COARSE_US: f64 = 10_000.0;

/// The lines by how they begin, in their order.
const LINES: &[(&str, u8, bool)] = &[
    ("This is ApacheBench", 1, true),
    ("Server Software:", 5, true),
    ("Server Hostname:", 6, true),
    ("Server Port:", 7, true),
    ("Document Path:", 10, true),
    ("Document Length:", 11, true),
    ("Concurrency Level:", 12, true),
    ("Time taken for tests:", 13, true),
    ("Complete requests:", 14, true),
    ("Failed requests:", 15, true),
    ("(Connect:", 16, false),
    ("Write errors:", 17, false),
    ("Non-2xx responses:", 18, false),
    ("Keep-Alive requests:", 19, false),
    ("Total transferred:", 20, false),
    ("Total POSTed:", 21, false),
    ("Total body sent:", 21, false),
    ("HTML transferred:", 22, false),
    ("Requests per second:", 23, true),
    ("Transfer rate:", 26, false),
    ("Connection Times (ms)", 30, true),
    ("min  mean", 31, false),
    ("min   avg", 31, false),
    ("Connect:", 32, false),
    ("Processing:", 33, false),
    ("Waiting:", 34, false),
    ("Total:", 35, false),
    ("Percentage of the requests served within", 40, true),
];

/// Lines that may stand between.
const BESIDE: &[&str] = &[
    "Copyright ",
    "Licensed to ",
    "Benchmarking ",
    "Completed ",
    "Finished ",
    "Total of ",
    "SSL/TLS Protocol:",
    "Server Temp Key:",
    "TLS Server Name:",
    "WARNING: ",
    "ERROR: ",
    "These results are probably",
];

fn mark(line: &Line) -> Option<Mark> {
    let text = line.text.as_str();
    if text.starts_with("Time per request:") {
        return Mark::once(if text.contains("across all") { 25 } else { 24 });
    }
    if let Some(&(_, rank, opens)) = LINES.iter().find(|(label, ..)| text.starts_with(label)) {
        return if opens {
            Mark::opens(rank)
        } else {
            Mark::once(rank)
        };
    }
    if text.ends_with("kb/s sent") || text.ends_with("kb/s total") {
        return Mark::many(27);
    }
    if quantile(line).is_some() {
        return Mark::many(41);
    }
    if BESIDE.iter().any(|label| text.starts_with(label)) {
        return Mark::anywhere();
    }
    None
}

/// `95%    208`, and `100%    304 (longest request)`.
fn quantile(line: &Line) -> Option<(f64, f64)> {
    let words = line.words();
    match words[..] {
        [share, ms] | [share, ms, "(longest", "request)"] => {
            Some((units::percent(share)?, units::ms(ms)?))
        }
        _ => None,
    }
}

/// What the lines say that goes together to make the reading.
#[derive(Default)]
struct Said {
    host: Option<String>,
    port: Option<String>,
    path: Option<String>,
    tls: Option<ToolTls>,
    /// Whether the counts are whole, so that a missing line means that it was not printed.
    complete: bool,
    transferred: bool,
    keepalive: bool,
    failed: u64,
    kinds: Option<[u64; 4]>,
    per_request_us: Option<f64>,
    table_mean_us: Option<f64>,
}

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut reading = ToolReading::new(Tool::Ab);
    reading.threads = Some(1);
    reading.depth = Some(1);
    reading.closed_loop = Some(true);
    let mut said = Said::default();
    for &line in lines {
        if let Some((share, us)) = quantile(line) {
            set_quantile(&mut reading.latency, share, us);
        } else if line.text.starts_with("(Connect:") {
            said.kinds = Some(read_kinds(line, figures));
        } else if let Some((label, rest)) = line.text.split_once(':') {
            read_line(&mut reading, &mut said, line, (label, rest.trim()), figures);
        }
    }
    said.complete(&mut reading);
    vec![reading]
}

fn read_line(
    reading: &mut ToolReading,
    said: &mut Said,
    line: &Line,
    (label, rest): (&str, &str),
    figures: &mut Figures,
) {
    let first = rest.split_whitespace().next().unwrap_or("");
    let text = || Some(rest.to_owned()).filter(|text| !text.is_empty());
    let mut count = || figures.want(line, "a count", units::count(first));
    match label {
        "Server Hostname" => said.host = text(),
        "Server Port" => said.port = text(),
        "SSL/TLS Protocol" => {
            // `TLSv1.3,TLS_AES_256_GCM_SHA384,256,256`
            let mut parts = rest.split(',');
            let tls = said.tls.get_or_insert_default();
            tls.version = parts.next().and_then(tls::version);
            tls.suite = parts.next().map(str::to_owned);
        }
        "Server Temp Key" => said.tls.get_or_insert_default().group = tls::group(rest),
        "Document Path" => said.path = text(),
        "Concurrency Level" => reading.connections = count(),
        "Complete requests" => {
            reading.requests = count();
            said.complete = true;
        }
        "Failed requests" => said.failed = count().unwrap_or(0),
        "Write errors" => reading.errors.write = count().unwrap_or(0),
        "Non-2xx responses" => reading.errors.status = count().unwrap_or(0),
        "Keep-Alive requests" => said.keepalive = true,
        "Total transferred" => {
            reading.bytes_read = count();
            said.transferred = true;
        }
        "Time taken for tests" => {
            let time = units::number(first);
            reading.duration_s = figures.want(line, "`Time taken for tests: 1.234 seconds`", time);
        }
        "Requests per second" => {
            reading.requests_per_s = figures.want(line, RESULT, units::number(first));
        }
        "Time per request" if !rest.contains("across all") => {
            let time = figures.want(
                line,
                "`Time per request: 1.234 [ms] (mean)`",
                units::ms(first),
            );
            said.per_request_us = time;
        }
        "Transfer rate" => {
            let kbytes = figures.want(
                line,
                "`Transfer rate: 123.45 [Kbytes/sec] received`",
                units::number(first),
            );
            reading.bytes_per_s = kbytes.map(|kbytes| kbytes * 1024.0);
        }
        "Connect" | "Waiting" | "Total" => {
            let row = figures.want(line, "times in whole milliseconds", row(rest));
            let (place, mean_us) = match label {
                "Connect" => (&mut reading.connect, None),
                "Waiting" => (&mut reading.first_byte, None),
                _ => (
                    &mut reading.latency,
                    row.as_ref().and_then(|row| row.mean_us),
                ),
            };
            if label == "Total" {
                said.table_mean_us = mean_us;
            }
            if let Some(row) = row {
                // The quantiles of the second table stay.
                let quantiles = std::mem::take(&mut place.quantiles_us);
                *place = row;
                for (share, us) in quantiles {
                    set_quantile(place, share, us);
                }
            }
        }
        _ => {}
    }
}

/// A row of the table: `min mean[+/-sd] median max`, or with `-S` `min avg max`.
fn row(rest: &str) -> Option<ToolLatency> {
    let times: Option<Vec<f64>> = rest.split_whitespace().map(units::ms).collect();
    let mut latency = ToolLatency::default();
    match times?[..] {
        [min, mean, sd, median, max] => {
            latency.stdev_us = Some(sd);
            set_quantile(&mut latency, 0.5, median);
            latency.min_us = Some(min);
            latency.mean_us = Some(mean);
            latency.max_us = Some(max);
        }
        [min, mean, max] => {
            latency.min_us = Some(min);
            latency.mean_us = Some(mean);
            latency.max_us = Some(max);
        }
        _ => return None,
    }
    Some(latency)
}

/// `(Connect: 0, Receive: 100, Length: 99, Exceptions: 100)`; older versions have no Receive.
fn read_kinds(line: &Line, figures: &mut Figures) -> [u64; 4] {
    let mut kinds = [0; 4];
    let inner = line.text.trim_start_matches('(').trim_end_matches(')');
    for part in inner.split(',') {
        let (kind, count) = part.split_once(':').unwrap_or((part, ""));
        let count = units::count(count.trim());
        let count = figures.want(line, "`(Connect: N, Receive: N, ...)`", count);
        let place = match kind.trim() {
            "Connect" => 0,
            "Receive" => 1,
            "Length" => 2,
            _ => 3,
        };
        kinds[place] = count.unwrap_or(0);
    }
    kinds
}

impl Said {
    fn complete(self, reading: &mut ToolReading) {
        reading.tls.clone_from(&self.tls);
        if let Some(host) = self.host {
            let scheme = if self.tls.is_some() { "https" } else { "http" };
            let port = self.port.map_or(String::new(), |port| format!(":{port}"));
            let path = self.path.unwrap_or_default();
            reading.url = Some(format!("{scheme}://{host}{port}{path}"));
        }
        if self.keepalive {
            reading.keepalive = Some(true);
        } else if self.complete && self.transferred {
            reading.keepalive = Some(false);
        }
        match self.kinds {
            Some([connect, receive, length, exceptions]) => {
                reading.errors.connect = connect;
                reading.errors.read = receive.max(exceptions);
                // Status and length together are then the larger of the two.
                reading.errors.verify = length.saturating_sub(reading.errors.status);
            }
            None => reading.errors.unexplained = self.failed,
        }
        if reading.connections.is_none() {
            reading.connections = self
                .per_request_us
                .zip(reading.requests_per_s)
                .and_then(|(us, per_s)| concurrency(us * per_s / 1e6));
        }
        let measured = self.table_mean_us.filter(|&us| us >= COARSE_US);
        reading.latency.mean_us = measured.or(self.per_request_us).or(self.table_mean_us);
        // Where the mean was worked out, the law of Little says nothing of it.
        reading.latency.mean_step_us = reading.latency.mean_us.map(|_| 1000.0);
    }
}

/// The whole number that a product of rounded figures stands for, if it is near enough to one.
fn concurrency(product: f64) -> Option<u64> {
    let whole = product.round();
    let near = (product - whole).abs() < 0.2 && whole >= 1.0;
    (near && whole < 1e6).then_some(whole as u64)
}

//! httperf: one thread that keeps to a rate of connections, each with one or more calls.
//!
//! - The first line repeats the command with all its defaults.
//! - `Request rate` counts requests that were sent, and `Reply rate` is a mean over samples of 5 s,
//!   0 where the run was shorter. Answers per second are therefore replies / test-duration.
//! - `Reply time` has the mean from the request's first byte sent to the answer's first byte
//!   received (`response`) and on to its last (`transfer`).
//! - `Connection time` is how long connections lived, opening included, over those with a reply.
//!   With one call per connection that is the time of a request, and the only one with a spread;
//!   with several it is not, and only the mean from the reply time is taken. The median comes from
//!   a histogram with steps of 1 ms.
//! - `Net I/O` holds bytes sent and received (KB = 1024); what was read follows from the reply
//!   size, heads included.
//! - `<=N concurrent connections` is how many were open at the most.
//! - A status of 400 or more is an error here, as it is with wrk.

use super::Reader;
use crate::mark::Mark;
use crate::reading::{Figures, set_quantile, sum};
use crate::text::lines::Line;
use crate::text::units;
use crate::{Tool, ToolLatency, ToolReading, command};

pub(super) static READER: Reader = Reader {
    first: "`Total: connections N requests N replies N test-duration T s`",
    result: "`Reply rate [replies/s]: ...`",
    gives_up: &["httperf: ", "httperf."],
    mark: |lines, at| mark(&lines[at]),
    read,
    document: None,
};

const LINES: &[(&str, u8, bool)] = &[
    ("Maximum connect burst length", 2, false),
    ("Total: connections ", 3, true),
    ("Connection rate", 4, true),
    ("Connection time [ms]: min", 5, true),
    ("Connection time [ms]: connect", 6, false),
    ("Connection length [replies/conn]", 7, false),
    ("Request rate", 8, false),
    ("Request size [B]", 9, false),
    ("Reply rate [replies/s]", 10, true),
    ("Reply time [ms]", 11, true),
    ("Reply size [B]", 12, false),
    ("Reply status", 13, false),
    ("CPU time [s]", 15, false),
    ("Net I/O", 16, false),
    ("Errors: total", 17, false),
    ("Errors: fd-unavail", 18, false),
];

/// Sessions, notes, and the duration where a page has put it on a line of its own.
pub(crate) const BESIDE: &[&str] = &[
    "test-duration",
    "Session",
    "httperf: warning",
    "httperf: maximum",
];

fn mark(line: &Line) -> Option<Mark> {
    let text = line.text.as_str();
    if is_command(text) {
        return Mark::opens(1);
    }
    if let Some(&(_, rank, opens)) = LINES.iter().find(|(label, ..)| text.starts_with(label)) {
        return if opens {
            Mark::opens(rank)
        } else {
            Mark::once(rank)
        };
    }
    let beside = BESIDE.iter().any(|label| text.starts_with(label));
    if beside { Mark::anywhere() } else { None }
}

/// httperf's own repetition of its command, which has the client's number, and not a person's.
fn is_command(text: &str) -> bool {
    text.starts_with("httperf ")
        && text.contains(" --client=")
        && (text.contains(" --num-conns=") || text.contains(" --wsess"))
}

/// The numbers of a line by the word before them: `min 0.3 avg 0.6`, `2xx=10 3xx=0`.
struct Named<'a> {
    line: &'a Line,
    words: Vec<&'a str>,
}

impl<'a> Named<'a> {
    fn new(line: &'a Line) -> Self {
        let splits = |c: char| c.is_whitespace() || matches!(c, '=' | '(' | ')' | ',' | ':');
        let words = line.text.split(splits).filter(|w| !w.is_empty()).collect();
        Self { line, words }
    }

    fn word(&self, name: &str) -> Option<&'a str> {
        let at = self.words.iter().position(|word| *word == name)?;
        self.words.get(at + 1).copied()
    }

    fn number(&self, name: &str, figures: &mut Figures) -> Option<f64> {
        let value = self.word(name).and_then(units::number);
        figures.want(self.line, "a word and a number, several times", value)
    }

    fn ms(&self, name: &str, figures: &mut Figures) -> Option<f64> {
        let value = self.word(name).and_then(units::ms);
        figures.want(self.line, "a word and milliseconds, several times", value)
    }

    fn count(&self, name: &str, figures: &mut Figures) -> Option<u64> {
        let value = self.word(name).and_then(units::count);
        figures.want(self.line, "a word and a count, several times", value)
    }
}

#[derive(Default)]
struct Said {
    connections: Option<u64>,
    requests: Option<u64>,
    requests_per_s: Option<f64>,
    replies_per_s: Option<f64>,
    samples: Option<u64>,
    reply_bytes: Option<f64>,
    lifetime: ToolLatency,
    response_us: Option<f64>,
    transfer_us: Option<f64>,
}

fn read(lines: &[&Line], figures: &mut Figures) -> Vec<ToolReading> {
    let mut reading = ToolReading::new(Tool::Httperf);
    reading.threads = Some(1);
    let mut said = Said::default();
    for &line in lines {
        if is_command(&line.text) {
            if let Some(command) = command::parse(&line.text) {
                command.complete(&mut reading);
            }
        } else {
            read_line(&mut reading, &mut said, line, figures);
        }
    }
    said.complete(&mut reading);
    vec![reading]
}

fn read_line(reading: &mut ToolReading, said: &mut Said, line: &Line, figures: &mut Figures) {
    let named = Named::new(line);
    let text = line.text.as_str();
    if text.starts_with("Total: connections") {
        said.connections = named.count("connections", figures);
        said.requests = named.count("requests", figures);
        reading.requests = named.count("replies", figures);
    } else if text.starts_with("Connection rate") {
        // `<=5` was split at the sign of equality.
        reading.connections = named.word("<").and_then(units::count);
    } else if text.starts_with("Connection time [ms]: min") {
        said.lifetime.min_us = named.ms("min", figures);
        said.lifetime.mean_us = named.ms("avg", figures);
        said.lifetime.max_us = named.ms("max", figures);
        said.lifetime.stdev_us = named.ms("stddev", figures);
        if let Some(median) = named.ms("median", figures) {
            set_quantile(&mut said.lifetime, 0.5, median);
        }
    } else if text.starts_with("Connection time [ms]: connect") {
        reading.connect.mean_us = named.ms("connect", figures);
    } else if text.starts_with("Request rate") {
        said.requests_per_s = named.number("rate", figures);
    } else if text.starts_with("Reply rate") {
        said.replies_per_s = named.number("avg", figures);
        let before = named.words.iter().position(|word| *word == "samples");
        said.samples = before
            .and_then(|at| named.words.get(at.checked_sub(1)?))
            .and_then(|word| units::count(word));
    } else if text.starts_with("Reply time") {
        said.response_us = named.ms("response", figures);
        said.transfer_us = named.ms("transfer", figures);
    } else if text.starts_with("Reply size") {
        said.reply_bytes = named.number("total", figures);
    } else if text.starts_with("Reply status") {
        let wrong = ["4xx", "5xx"].map(|class| named.count(class, figures).unwrap_or(0));
        reading.errors.status = sum(wrong);
    } else if text.starts_with("CPU time") {
        let user = named.number("user", figures);
        let system = named.number("system", figures);
        reading.client_cpu_s = user.zip(system).map(|(user, system)| user + system);
    } else if text.starts_with("Errors: total") {
        let mut count = |name| named.count(name, figures).unwrap_or(0);
        reading.errors.timeout = sum([count("client-timo"), count("socket-timo")]);
        reading.errors.read = count("connreset");
        reading.errors.connect = sum([reading.errors.connect, count("connrefused")]);
    } else if text.starts_with("Errors: fd-unavail") {
        let mut count = |name| named.count(name, figures).unwrap_or(0);
        // Reasons why a connection could not be opened.
        let connect = ["fd-unavail", "addrunavail", "ftab-full"].map(&mut count);
        reading.errors.connect = sum([reading.errors.connect, sum(connect)]);
        reading.errors.unexplained = count("other");
    }
    if named.words.contains(&"test-duration") {
        reading.duration_s = named.number("test-duration", figures);
    }
}

impl Said {
    fn complete(self, reading: &mut ToolReading) {
        let duration_s = reading.duration_s.filter(|&s| s > 0.0);
        let replies = reading.requests;
        reading.requests_per_s = match (replies, duration_s) {
            (Some(replies), Some(seconds)) => Some(replies as f64 / seconds),
            // Without samples the mean is 0 and says nothing.
            _ if self.samples != Some(0) => self.replies_per_s.or(self.requests_per_s),
            _ => self.requests_per_s,
        };
        if let (Some(replies), Some(bytes)) = (replies, self.reply_bytes) {
            let bytes = bytes * replies as f64;
            reading.bytes_read = Some(units::whole(bytes));
            reading.bytes_per_s = duration_s.map(|seconds| bytes / seconds);
        }
        if reading.keepalive.is_none() {
            let sent = self.requests.zip(self.connections);
            reading.keepalive = sent.map(|(requests, connections)| requests > connections);
        }
        if replies == Some(0) {
            // Zeros, because there was nothing to measure.
            reading.connect = ToolLatency::default();
            return;
        }
        reading.first_byte.mean_us = self.response_us;
        let one_call = reading.keepalive == Some(false);
        if one_call && self.lifetime.mean_us.is_some() {
            reading.latency = self.lifetime;
        } else {
            let whole = self.response_us.zip(self.transfer_us);
            reading.latency.mean_us = whole.map(|(response, transfer)| response + transfer);
        }
    }
}

//! What each tool prints, a file for each.

mod ab;
mod h2load;
mod hey;
pub(crate) mod httperf;
mod k6;
mod named;
mod oha;
mod redis_benchmark;
mod siege;
mod time;
pub(crate) mod weigh;
mod wrk;
mod wrk2;

use serde_json::Value;

use crate::mark::Mark;
use crate::reading::Figures;
use crate::text::lines::Line;
use crate::{Tool, ToolReading};

/// How the output of a tool is known and read.
pub(crate) struct Reader {
    /// The line by which it is known, for messages.
    pub first: &'static str,
    /// The line without which a run has no result, for messages.
    pub result: &'static str,
    /// How the tool begins to say that it gives up.
    pub gives_up: &'static [&'static str],
    /// How a line belongs to an output.
    pub mark: fn(&[Line], usize) -> Option<Mark>,
    /// Reads the tool's own lines of an output.
    pub read: fn(&[&Line], &mut Figures) -> Vec<ToolReading>,
    /// Its output as JSON.
    pub document: Option<Document>,
}

/// An output as JSON.
pub(crate) struct Document {
    /// A key that every document of the tool has, in quotes.
    pub key: &'static str,
    /// Whether a document is the tool's.
    pub is_one: fn(&Value) -> bool,
    pub read: fn(&Value) -> Option<ToolReading>,
}

/// The reader of a tool's output; wrk2 prints wrk's lines.
pub(crate) fn reader(tool: Tool) -> &'static Reader {
    match tool {
        Tool::Wrk | Tool::Wrk2 => &wrk::READER,
        Tool::Ab => &ab::READER,
        Tool::Httperf => &httperf::READER,
        Tool::H2load => &h2load::READER,
        Tool::Hey => &hey::READER,
        Tool::Oha => &oha::READER,
        Tool::K6 => &k6::READER,
        Tool::RedisBenchmark => &redis_benchmark::READER,
        Tool::Siege => &siege::READER,
        Tool::Autocannon => &named::autocannon::READER,
        Tool::Vegeta => &named::vegeta::READER,
        Tool::Bombardier => &named::bombardier::READER,
        Tool::Locust => &named::locust::READER,
        Tool::Gatling => &named::gatling::READER,
        Tool::Jmeter => &named::jmeter::READER,
        Tool::Artillery => &named::artillery::READER,
        Tool::Ghz => &named::ghz::READER,
        Tool::Weigh => &weigh::READER,
        Tool::Time => &time::READER,
    }
}

//! Where outputs begin and end in a text that holds several of them, with prose around.
//!
//! Every tool marks the lines that are its own. A mark that *opens* may begin an output anywhere;
//! the others only go on with one that has begun, because prose and other tools have such lines
//! too. Lines of an output come in the order of their ranks: a line that should have come before,
//! or has come already, belongs to the next output.

use serde_json::Value;

use super::mark::Mark;
use crate::readers::{reader, weigh};
use crate::text::lines::Line;
use crate::{Tool, command};

/// Most foreign lines within an output: what a script of the tool printed, or a heading that
/// somebody added.
const GAP_LINES: usize = 3;

/// The tools in the order in which they are tried; wrk2 prints wrk's lines.
const ASKED: [Tool; 19] = [
    Tool::Wrk,
    Tool::Ab,
    Tool::Httperf,
    Tool::H2load,
    Tool::Oha,
    Tool::Hey,
    Tool::K6,
    Tool::RedisBenchmark,
    Tool::Siege,
    Tool::Autocannon,
    Tool::Vegeta,
    Tool::Bombardier,
    Tool::Locust,
    Tool::Gatling,
    Tool::Jmeter,
    Tool::Artillery,
    Tool::Ghz,
    Tool::Weigh,
    Tool::Time,
];

/// A tool's mark of a line.
pub(super) fn mark(tool: Tool, lines: &[Line], at: usize) -> Option<Mark> {
    lines.get(at)?;
    (reader(tool).mark)(lines, at)
}

/// An output: its tool and its lines, both included, as indices.
pub(super) struct Block {
    pub tool: Tool,
    pub first: usize,
    pub last: usize,
    /// The lines of the tool itself.
    pub own: Vec<usize>,
    /// The document, where the output is JSON.
    pub json: Option<Value>,
}

/// Keeps the order of an output's lines.
struct Order {
    rank: u8,
    seen: u64,
    repeats_from: Option<u8>,
}

impl Order {
    fn new(first: Mark) -> Self {
        let mut order = Self {
            rank: 0,
            seen: 0,
            repeats_from: None,
        };
        order.takes(first);
        order
    }

    /// Whether a line goes on with the output.
    fn takes(&mut self, mark: Mark) -> bool {
        if mark.repeats_from.is_some() {
            self.repeats_from = mark.repeats_from;
        }
        if mark.rank == 0 || self.repeats_from.is_some_and(|rank| mark.rank > rank) {
            return true;
        }
        let bit = mark.once.map_or(0, |key| 1u64 << (key & 63));
        if mark.rank < self.rank || self.seen & bit != 0 {
            return false;
        }
        self.rank = mark.rank;
        self.seen |= bit;
        true
    }
}

/// All outputs in a text, of any tool.
pub(super) fn all_blocks(lines: &[Line]) -> Vec<Block> {
    let document = Document::new(lines);
    blocks(lines, |at| {
        document
            .json_at(lines, at, &ASKED)
            .or_else(|| own_text(lines, at))
            .or_else(|| {
                ASKED
                    .into_iter()
                    .find_map(|tool| text_block(tool, lines, at, Some(GAP_LINES)))
            })
    })
}

/// All outputs of one tool in a text that is nothing else, so that other lines end none.
pub(super) fn blocks_of(tool: Tool, lines: &[Line]) -> Vec<Block> {
    let document = Document::new(lines);
    blocks(lines, |at| {
        document
            .json_at(lines, at, &[tool])
            .or_else(|| text_block(tool, lines, at, None))
    })
}

/// What is found from line to line; after a block it goes on behind it.
fn blocks(lines: &[Line], find: impl Fn(usize) -> Option<Block>) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        match find(at) {
            Some(block) => {
                at = block.last + 1;
                blocks.push(block);
            }
            None => at += 1,
        }
    }
    blocks
}

fn text_block(tool: Tool, lines: &[Line], first: usize, gap_max: Option<usize>) -> Option<Block> {
    let opening = mark(tool, lines, first).filter(|mark| mark.opens)?;
    let mut order = Order::new(opening);
    let mut own = vec![first];
    let mut gap = 0;
    for at in first + 1..lines.len() {
        if lines[at].text.is_empty() {
            continue;
        }
        match mark(tool, lines, at) {
            Some(mark) if order.takes(mark) => {
                own.push(at);
                gap = 0;
            }
            Some(_) => break,
            None => {
                gap += 1;
                if gap_max.is_some_and(|max| gap > max || is_foreign(tool, lines, at)) {
                    break;
                }
            }
        }
    }
    Some(Block {
        tool,
        first,
        last: own.last().copied().unwrap_or(first),
        own,
        json: None,
    })
}

/// The text of `weigh load`, whole, so that none of its lines is taken for another tool's.
fn own_text(lines: &[Line], first: usize) -> Option<Block> {
    if !weigh::begins_text(&lines[first]) {
        return None;
    }
    // Its other lines may be as wrk's, but not wrk's first.
    let ends = |at: usize| match mark(Tool::Wrk, lines, at) {
        Some(mark) => mark.opens && mark.rank == 1,
        None => is_foreign(Tool::Wrk, lines, at),
    };
    Some(Block {
        tool: Tool::Weigh,
        first,
        last: weigh::text_end(lines, first, ends),
        own: Vec::new(),
        json: None,
    })
}

/// Whether a line begins something else: another tool's output, or a command.
fn is_foreign(tool: Tool, lines: &[Line], at: usize) -> bool {
    let opens = |other| mark(other, lines, at).is_some_and(|mark| mark.opens);
    ASKED.into_iter().any(|other| other != tool && opens(other))
        || weigh::begins_text(&lines[at])
        || command::parse(&lines[at].text).is_some()
}

/// The cleaned text in one piece, for documents that go over several lines.
struct Document {
    text: String,
    /// Where each line begins.
    starts: Vec<usize>,
    /// Where the last key stands that one of the tools' documents has; none begins after it.
    last_key: Option<usize>,
}

impl Document {
    fn new(lines: &[Line]) -> Self {
        let mut text = String::new();
        let mut starts = Vec::with_capacity(lines.len());
        for line in lines {
            starts.push(text.len());
            text.push_str(&line.text);
            text.push('\n');
        }
        let last_key = ASKED
            .into_iter()
            .filter_map(|tool| text.rfind(reader(tool).document.as_ref()?.key))
            .max();
        Self {
            text,
            starts,
            last_key,
        }
    }

    /// A tool's JSON document that begins with a line.
    fn json_at(&self, lines: &[Line], first: usize, tools: &[Tool]) -> Option<Block> {
        if !lines[first].text.starts_with('{') {
            return None;
        }
        let start = self.starts[first];
        self.last_key.filter(|&key| key > start)?;
        let mut documents =
            serde_json::Deserializer::from_str(&self.text[start..]).into_iter::<Value>();
        let json = documents.next()?.ok()?;
        let is_its = |tool: &Tool| match &reader(*tool).document {
            Some(document) => (document.is_one)(&json),
            None => false,
        };
        let tool = tools.iter().copied().find(is_its)?;
        let end = start + documents.byte_offset();
        // The last line that begins before the document's end; the first one does.
        let last = self.starts.partition_point(|&begin| begin < end).max(1) - 1;
        Some(Block {
            tool,
            first,
            last,
            own: Vec::new(),
            json: Some(json),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::lines::lines;

    #[test]
    fn an_output_ends_where_its_lines_begin_again() {
        let text = "Requests/sec:   1649.93\nTransfer/sec:      1.71MB\nRunning 30s test @ http://a/\n  8 threads and 96 connections\nRequests/sec:   2310.47\n";
        let blocks = all_blocks(&lines(text));
        let ends: Vec<_> = blocks
            .iter()
            .map(|block| (block.first, block.last))
            .collect();
        assert_eq!(ends, [(0, 1), (2, 4)]);
    }
}

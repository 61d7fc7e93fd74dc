//! Where outputs begin and end in a text that holds several of them, with prose around.
//!
//! Every tool marks the lines that are its own. A mark that *opens* may begin an output anywhere;
//! the others only go on with one that has begun, because prose and other tools have such lines
//! too. Lines of an output come in the order of their ranks: a line that should have come before,
//! or has come already, belongs to the next output.

use serde_json::Value;

use super::numbered;
use super::{Tool, ab, command, h2load, hey, httperf, k6, oha, redis_benchmark, time, wrk};

/// So many lines that are nobody's may stand inside an output: what a script of the tool's printed,
/// or a heading that somebody put between.
const GAP_LINES: usize = 3;

/// The tools in the order in which they are asked; wrk2 prints wrk's lines.
const ASKED: [Tool; 9] = [
    Tool::Wrk,
    Tool::Ab,
    Tool::Httperf,
    Tool::H2load,
    Tool::Oha,
    Tool::Hey,
    Tool::K6,
    Tool::RedisBenchmark,
    Tool::Time,
];

/// A line without its indentation, quoting, colours, overwritten progress and a listing's number.
pub(super) struct Line {
    /// Its number in the text, from 1. Progress that was overwritten shares the number.
    pub number: usize,
    pub text: String,
}

impl Line {
    /// What follows a label at the line's start.
    pub fn after(&self, label: &str) -> Option<&str> {
        self.text.strip_prefix(label).map(str::trim)
    }

    pub fn words(&self) -> Vec<&str> {
        self.text.split_whitespace().collect()
    }
}

/// The lines of a text.
pub(super) fn lines(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let raws: Vec<&str> = text.split('\n').collect();
    let prefixes = numbered::prefixes(&raws);
    for (index, (raw, prefix)) in raws.into_iter().zip(prefixes).enumerate() {
        let before = lines.len();
        for part in raw[prefix..].split('\r') {
            let text = clean(part);
            if !text.is_empty() {
                let number = index + 1;
                lines.push(Line { number, text });
            }
        }
        if lines.len() == before {
            let (number, text) = (index + 1, String::new());
            lines.push(Line { number, text });
        }
    }
    lines
}

/// Takes away what terminals, mails and pages put around a line.
fn clean(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' && chars.peek() == Some(&'[') {
            chars.next();
            // A control sequence ends with a letter.
            for c in chars.by_ref() {
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
        } else if c == '\u{a0}' {
            text.push(' ');
        } else {
            text.push(c);
        }
    }
    let mut rest = text.trim();
    while let Some(quoted) = rest.strip_prefix('>') {
        rest = quoted.trim_start();
    }
    rest.to_owned()
}

/// How a line belongs to a tool's output.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    /// Its place in the output, from 1; 0 for lines that may stand anywhere.
    rank: u8,
    /// Whether an output may begin with it.
    pub opens: bool,
    /// The key, below 64, of a line that stands once in an output.
    once: Option<u8>,
    /// Begins a part in which lines of a higher rank than this come again.
    repeats_from: Option<u8>,
}

impl Mark {
    /// A line that may begin an output and stands in it once.
    pub fn opens(rank: u8) -> Option<Self> {
        Some(Self {
            rank,
            opens: true,
            once: Some(rank),
            repeats_from: None,
        })
    }

    /// A line that stands once in an output that has begun.
    pub fn once(rank: u8) -> Option<Self> {
        Some(Self {
            opens: false,
            ..Self::opens(rank)?
        })
    }

    /// A line that stands any number of times in an output that has begun.
    pub fn many(rank: u8) -> Option<Self> {
        Some(Self {
            once: None,
            ..Self::once(rank)?
        })
    }

    /// A line that may begin an output and stands any number of times in it.
    pub fn opens_many(rank: u8) -> Option<Self> {
        Some(Self {
            once: None,
            ..Self::opens(rank)?
        })
    }

    /// A line that may stand anywhere in an output that has begun.
    pub fn anywhere() -> Option<Self> {
        Self::many(0)
    }

    /// Makes the line one of several that stand at the same place in any order, each once.
    pub fn with_key(self, key: u8) -> Option<Self> {
        Some(Self {
            once: Some(key),
            ..self
        })
    }

    /// Begins a part in which lines of a higher rank than `rank` come again.
    pub fn part(rank: u8) -> Option<Self> {
        Some(Self {
            repeats_from: Some(rank),
            ..Self::anywhere()?
        })
    }
}

/// What a tool says of a line.
pub(super) fn mark(tool: Tool, lines: &[Line], at: usize) -> Option<Mark> {
    let line = lines.get(at)?;
    match tool {
        Tool::Wrk | Tool::Wrk2 => wrk::mark(line),
        Tool::Ab => ab::mark(line),
        Tool::Httperf => httperf::mark(line),
        Tool::H2load => h2load::mark(line),
        Tool::Hey => hey::mark(lines, at),
        Tool::Oha => oha::mark(lines, at),
        Tool::K6 => k6::mark(line),
        Tool::RedisBenchmark => redis_benchmark::mark(line),
        Tool::Weigh => None,
        Tool::Time => time::mark(line),
    }
}

/// The next line with something in it.
pub(super) fn next_filled(lines: &[Line], at: usize) -> Option<&Line> {
    lines
        .iter()
        .skip(at + 1)
        .take(4)
        .find(|line| !line.text.is_empty())
}

/// An output: its tool and its lines, both included, as indices.
pub(super) struct Block {
    pub tool: Tool,
    pub first: usize,
    pub last: usize,
    /// Those of its lines that are the tool's.
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
        document.json_at(lines, at, &ASKED).or_else(|| {
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

/// Whether a line begins something else: another tool's output, or a command.
fn is_foreign(tool: Tool, lines: &[Line], at: usize) -> bool {
    let opens = |other| mark(other, lines, at).is_some_and(|mark| mark.opens);
    ASKED.into_iter().any(|other| other != tool && opens(other))
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
        let keys = [oha::KEY, k6::KEY];
        let last_key = keys.iter().filter_map(|key| text.rfind(key)).max();
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
        let tool = [Tool::Oha, Tool::K6]
            .into_iter()
            .filter(|tool| tools.contains(tool))
            .find(|tool| match tool {
                Tool::Oha => oha::is_document(&json),
                _ => k6::is_document(&json),
            })?;
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

    #[test]
    fn quoting_colours_and_progress_are_taken_away() {
        let text = "> > Requests/sec:    672.87\r\n\u{1b}[32m  Average:\t1 secs\u{1b}[0m\n\n \rSET: rps=1\r   \r====== SET ======\n";
        let lines = lines(text);
        let seen: Vec<_> = lines
            .iter()
            .map(|line| (line.number, line.text.as_str()))
            .collect();
        assert_eq!(
            seen,
            [
                (1, "Requests/sec:    672.87"),
                (2, "Average:\t1 secs"),
                (3, ""),
                (4, "SET: rps=1"),
                (4, "====== SET ======"),
                (5, ""),
            ]
        );
    }

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

//! Why a text has no output, or lacks a figure, where the text itself shows it.

use std::ops::Range;

use crate::command::Placed;
use crate::readers::reader;
use crate::scan;
use crate::text::lines::Line;
use crate::{ReadError, Tool};

/// What a tool says as it gives up that is long enough to be known without its command.
const TELLING: usize = 12;

/// What tools said where there is no output of theirs: the first such line of each. A line counts
/// if the last command above it is the tool's, or if the text has no output at all and the words
/// are the tool's beyond doubt. `within` are the lines of outputs, as indices.
pub(super) fn gave_up(
    lines: &[Line],
    commands: &[Placed],
    within: &[Range<usize>],
) -> Vec<ReadError> {
    let mut found: Vec<ReadError> = Vec::new();
    let mut told: Vec<(Tool, usize)> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if within.iter().any(|lines| lines.contains(&at)) {
            continue;
        }
        let above = commands[..commands.partition_point(|placed| placed.at < at)].last();
        // An output between has answered the command.
        let above = above.filter(|placed| {
            !within
                .iter()
                .any(|lines| (placed.at..at).contains(&lines.start))
        });
        let says = |tool: &Tool| {
            let begins = |words: &&str| match above {
                Some(placed) => placed.command.is_of(*tool) && line.text.starts_with(*words),
                None => {
                    within.is_empty() && words.len() >= TELLING && line.text.starts_with(*words)
                }
            };
            reader(*tool).gives_up.iter().any(begins)
        };
        let command = above.map_or(usize::MAX, |placed| placed.at);
        if let Some(tool) = Tool::ALL.into_iter().find(says)
            && !told.contains(&(tool, command))
        {
            told.push((tool, command));
            found.push(ReadError::GaveUp {
                tool,
                line: line.number,
                said: line.text.chars().take(200).collect(),
            });
        }
    }
    found
}

/// A line of a tool's output that is one only if its decimal commas are points.
pub(super) fn decimal_comma(tool: Tool, line: &Line) -> Option<ReadError> {
    let text = with_points(&line.text)?;
    let number = line.number;
    let with_points = [Line { number, text }];
    let is_own = |line: &Line| scan::mark(tool, std::slice::from_ref(line), 0).is_some();
    (!is_own(line) && is_own(&with_points[0])).then(|| ReadError::Figure {
        tool,
        line: number,
        expected: "a decimal point (run it with LC_ALL=C)",
        found: line.text.chars().take(120).collect(),
    })
}

/// A text with points for the commas between digits, if there are any.
fn with_points(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_digit =
        |at: Option<usize>| at.is_some_and(|at| bytes.get(at).is_some_and(u8::is_ascii_digit));
    let comma =
        |at: usize| bytes[at] == b',' && is_digit(at.checked_sub(1)) && is_digit(Some(at + 1));
    (0..bytes.len()).any(comma).then(|| {
        let point = |(at, c): (usize, char)| if c == ',' && comma(at) { '.' } else { c };
        text.char_indices().map(point).collect()
    })
}

/// JSON that begins as a tool's document does and does not end.
pub(super) fn cut_document(lines: &[Line], within: &[Range<usize>]) -> Vec<ReadError> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let is_known = within.iter().any(|lines| lines.contains(&at));
        if is_known || !lines[at].text.starts_with('{') {
            at += 1;
            continue;
        }
        let next = within
            .iter()
            .map(|lines| lines.start)
            .filter(|&start| start > at);
        let end = next.min().unwrap_or(lines.len());
        let texts: Vec<&str> = lines[at..end]
            .iter()
            .map(|line| line.text.as_str())
            .collect();
        let text = texts.join("\n");
        let has_key = |tool: &Tool| {
            let document = reader(*tool).document.as_ref();
            document.is_some_and(|document| text.contains(document.key))
        };
        if let Some(tool) = Tool::ALL.into_iter().find(has_key)
            && let Err(error) = serde_json::from_str::<serde_json::Value>(&text)
            && error.is_eof()
        {
            found.push(ReadError::Json {
                tool,
                line: lines[at].number,
                reason: error.to_string(),
            });
        }
        at = end;
    }
    found
}

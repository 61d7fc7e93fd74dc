use super::Tool;

/// Why a text could not be read as one run's output of a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    #[error("expected the output of {tool}, with {expected}; found {}", found_instead(.instead))]
    Nothing {
        tool: Tool,
        /// A line that its output has.
        expected: &'static str,
        instead: Option<Tool>,
    },
    #[error("line {line}: expected {expected} of {tool}, found `{found}`")]
    Figure {
        tool: Tool,
        /// The line, counted from 1.
        line: usize,
        expected: &'static str,
        found: String,
    },
    #[error("line {line}: the output of {tool} is cut off here, expected {expected} after it")]
    Cut {
        tool: Tool,
        /// The last line that was read, counted from 1.
        line: usize,
        expected: &'static str,
    },
    /// An output in a longer text lacks its result: it was cut off, or quoted only in part.
    #[error("{}: the output of {tool} is not all there: {expected} is missing", in_lines(*.lines))]
    Part {
        tool: Tool,
        /// The lines that are there, counted from 1, both included.
        lines: (usize, usize),
        expected: &'static str,
    },
    /// The text of `weigh load`, which is for people: its figures are rounded.
    #[error(
        "{}: this is the text of `weigh load`; what can be read is the document of \
         `weigh load ... --format json`",
        in_lines(*.lines)
    )]
    OwnText {
        /// The lines that are there, counted from 1, both included.
        lines: (usize, usize),
    },
    /// The tool ended without a result and said why.
    #[error("line {line}: {tool} gave up: {said}")]
    GaveUp {
        tool: Tool,
        /// The line, counted from 1.
        line: usize,
        said: String,
    },
    #[error("line {line}: expected the JSON of {tool}: {reason}")]
    Json {
        tool: Tool,
        /// The line, counted from 1.
        line: usize,
        reason: String,
    },
}

fn in_lines((first, last): (usize, usize)) -> String {
    match last {
        last if last == first => format!("line {first}"),
        last => format!("lines {first} to {last}"),
    }
}

fn found_instead(instead: &Option<Tool>) -> String {
    match instead {
        Some(tool) => format!("the output of {tool}"),
        None => "none of its lines".to_owned(),
    }
}

use super::Tool;

/// Why a text could not be read as one run's output of a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// No line of the text is one that the tool prints.
    #[error("expected the output of {tool}, with {expected}; found {}", found_instead(.instead))]
    Nothing {
        /// The tool whose output was expected.
        tool: Tool,
        /// A line that its output has.
        expected: &'static str,
        /// The tool whose output the text is instead.
        instead: Option<Tool>,
    },
    /// A line is the tool's, but a figure in it is none.
    #[error("line {line}: expected {expected} of {tool}, found `{found}`")]
    Figure {
        tool: Tool,
        /// The line, counted from 1.
        line: usize,
        /// The form that was expected.
        expected: &'static str,
        /// The line's text.
        found: String,
    },
    /// The output ends before it says how many requests there were.
    #[error("line {line}: the output of {tool} is cut off here, expected {expected} after it")]
    Cut {
        tool: Tool,
        /// The last line that was read, counted from 1.
        line: usize,
        /// The line that is missing.
        expected: &'static str,
    },
    /// An output in a longer text lacks its result: it was cut off, or quoted only in part.
    #[error("{}: the output of {tool} is not all there: {expected} is missing", in_lines(*.lines))]
    Part {
        tool: Tool,
        /// The lines that are there, counted from 1, both included.
        lines: (usize, usize),
        /// The line that is missing.
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
        /// What the tool said.
        said: String,
    },
    /// The text begins like JSON, but is none, or not the tool's.
    #[error("line {line}: expected the JSON of {tool}: {reason}")]
    Json {
        tool: Tool,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
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

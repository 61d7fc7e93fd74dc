//! A mistake in a text, before it is known in which file the text stands.

use std::ops::Range;

use config::reader::Problem;
use config::tree::Place;

/// A mistake and its bytes in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where it is, in bytes of the text.
    pub at: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What was expected there.
    pub label: String,
    /// What to do.
    pub help: Option<String>,
}

impl Fault {
    pub(crate) fn new(
        at: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
    ) -> Self {
        Self {
            at,
            message: message.into(),
            label: label.into(),
            help: None,
        }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self {
            help: Some(help.into()),
            ..self
        }
    }

    /// As a mistake of a source that is the text.
    pub(crate) fn in_source(self, source: usize) -> Problem {
        let place = Place {
            source,
            start: self.at.start,
            end: self.at.end,
        };
        self.at_place(place)
    }

    /// As a mistake of a value that stands at `place` in a file, `written` there and read as `text`.
    /// Quotes and escapes make the two differ, so what is wrong is looked for in what is written.
    pub(crate) fn in_value(self, place: Place, written: &str, text: &str) -> Problem {
        let wrong = text.get(self.at.clone()).unwrap_or_default();
        let before = text.get(..self.at.start).unwrap_or_default();
        let found = match wrong.is_empty() {
            true => None,
            false => {
                let nth = before.matches(wrong).count();
                written.match_indices(wrong).nth(nth)
            }
        };
        let exact = found.map(|(at, _)| Place {
            source: place.source,
            start: place.start + at,
            end: place.start + at + wrong.len(),
        });
        self.at_place(exact.unwrap_or(place))
    }

    fn at_place(self, place: Place) -> Problem {
        let problem = Problem::at(place, self.message, self.label);
        match self.help {
            Some(help) => problem.help(help),
            None => problem,
        }
    }
}

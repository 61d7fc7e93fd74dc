//! Text with places, made ready to be filled in for each request.
//!
//! It knows no clock and keeps nothing: what is appended follows from the values alone, so it is the
//! same for each subject, thread by thread and host by host.

pub(crate) mod draw;
pub(crate) mod feed;
pub(crate) mod request;
pub(crate) mod text;
mod zipf;

use std::ops::Range;

use readings::requests::{Fill, Piece, Template};

use draw::{Draws, Place};
use feed::FeedRows;
use zipf::Zipf;

/// The most hexadecimal digits of a place.
pub(crate) use readings::requests::DIGITS_MAX;
/// The highest exponent of Zipf's law.
pub(crate) const EXPONENT_MAX: f64 = 100.0;

/// What places are filled with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values<'v> {
    /// The number of the request, from 0 over all threads and hosts.
    pub(crate) number: u64,
    /// The number by which feeds choose their rows: that of the request, or of the user in a session.
    pub(crate) row: u64,
    pub(crate) seed: u64,
    /// What is added to both, but not where each row is used once ([`crate::Job::first_number`]).
    pub(crate) first: u64,
    pub(crate) feeds: &'v [FeedRows],
    /// What is kept of earlier answers, by number; one that is missing is filled in as nothing.
    pub(crate) captured: &'v [Vec<u8>],
    /// Milliseconds since 1970; needed if [`Filler::uses_now`].
    pub(crate) now_ms: u64,
}

/// A [`Template`] that can be filled in. What [`Job::validate`](crate::Job::validate) refuses is filled
/// in with something.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filler {
    /// All fixed text.
    text: Vec<u8>,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Text(Range<usize>),
    Column {
        feed: usize,
        column: usize,
        is_encoded: bool,
    },
    Captured {
        name: usize,
        is_encoded: bool,
    },
    Seq,
    Now,
    Uuid {
        place: Place,
    },
    /// `span` numbers; 0 for all that there are.
    Int {
        place: Place,
        from: i64,
        span: u64,
    },
    Zipf {
        place: Place,
        law: Zipf,
    },
    Hex {
        place: Place,
        digits: u32,
    },
}

impl Filler {
    /// Of a template whose places are numbered from `place` on in their request. Returns the number
    /// of the next place too.
    pub(crate) fn new(template: &Template, mut place: u32) -> (Self, u32) {
        let mut filler = Self::default();
        for piece in &template.0 {
            let step = match piece {
                Piece::Text(text) => {
                    filler.push_text(text);
                    continue;
                }
                Piece::Place { fill, is_encoded } => step(fill, *is_encoded, place),
            };
            filler.steps.push(step);
            place += 1;
        }
        (filler, place)
    }

    /// Adds fixed text.
    pub(crate) fn push_text(&mut self, text: &[u8]) {
        let from = self.text.len();
        self.text.extend_from_slice(text);
        let end = self.text.len();
        match self.steps.last_mut() {
            // Fixed text behind fixed text.
            Some(Step::Text(last)) if last.end == from => last.end = end,
            _ => self.steps.push(Step::Text(from..end)),
        }
    }

    /// Adds another one.
    pub(crate) fn extend(&mut self, other: Filler) {
        for step in other.steps {
            match step {
                Step::Text(range) => self.push_text(&other.text[range]),
                step => self.steps.push(step),
            }
        }
    }

    /// The text, if it has no places.
    pub(crate) fn as_fixed(&self) -> Option<&[u8]> {
        let is_text = |step: &Step| matches!(step, Step::Text(_));
        self.steps.iter().all(is_text).then_some(&self.text)
    }

    /// Whether it holds the time at which it is filled in.
    pub(crate) fn uses_now(&self) -> bool {
        self.steps.contains(&Step::Now)
    }

    /// Appends the filled text.
    #[inline]
    pub(crate) fn append(&self, values: &Values<'_>, out: &mut Vec<u8>) {
        let number = values.first.wrapping_add(values.number);
        let draws = Draws::of(values.seed, number);
        for step in &self.steps {
            match step {
                Step::Text(range) => out.extend_from_slice(&self.text[range.clone()]),
                Step::Column {
                    feed,
                    column,
                    is_encoded,
                } => {
                    if let Some(rows) = values.feeds.get(*feed) {
                        let row = rows.row(values.seed, (values.first, values.row), *feed);
                        append(rows.value(row, *column), *is_encoded, out);
                    }
                }
                Step::Captured { name, is_encoded } => {
                    if let Some(value) = values.captured.get(*name) {
                        append(value, *is_encoded, out);
                    }
                }
                Step::Seq => text::decimal(number.wrapping_add(1), out),
                Step::Now => text::decimal(values.now_ms, out),
                Step::Uuid { place } => {
                    let mut draws = draws.place(*place);
                    text::uuid(draws.next(), draws.next(), out);
                }
                Step::Int { place, from, span } => {
                    let mut draws = draws.place(*place);
                    let above = match span {
                        0 => draws.next(),
                        span => draws.below(*span),
                    };
                    text::signed(from.wrapping_add_unsigned(above), out);
                }
                Step::Zipf { place, law } => text::decimal(law.key(&mut draws.place(*place)), out),
                Step::Hex { place, digits } => {
                    let mut draws = draws.place(*place);
                    let mut left = *digits as usize;
                    while left > 0 {
                        let some = left.min(16);
                        text::hex(draws.next(), some, out);
                        left -= some;
                    }
                }
            }
        }
    }
}

fn step(fill: &Fill, is_encoded: bool, place: u32) -> Step {
    let place = Place::new(place);
    match *fill {
        Fill::Column { feed, column } => Step::Column {
            feed,
            column,
            is_encoded,
        },
        Fill::Captured { name } => Step::Captured { name, is_encoded },
        Fill::Seq => Step::Seq,
        Fill::Now => Step::Now,
        Fill::Uuid => Step::Uuid { place },
        Fill::Int { from, to } => Step::Int {
            place,
            from,
            span: (to.wrapping_sub(from) as u64).wrapping_add(1),
        },
        Fill::Zipf { keys, exponent } => Step::Zipf {
            place,
            law: Zipf::new(keys, exponent),
        },
        Fill::Hex { digits } => Step::Hex {
            place,
            digits: digits.min(DIGITS_MAX),
        },
    }
}

#[inline]
fn append(value: &[u8], is_encoded: bool, out: &mut Vec<u8>) {
    match is_encoded {
        true => text::encoded(value, out),
        false => out.extend_from_slice(value),
    }
}

#[cfg(test)]
mod tests;

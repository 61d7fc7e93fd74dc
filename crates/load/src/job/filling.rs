//! What makes requests of a target differ from one to the next.

use readings::requests::{Fill, Piece, Template};
use serde::{Deserialize, Serialize};

use super::log::Log;
use super::target::Target;
use super::traffic::Traffic;
use super::validate::JobError;
use crate::template::feed::FeedRows;
use crate::template::request::RequestTemplate;
use crate::template::{DIGITS_MAX, EXPONENT_MAX};

/// How the requests of a target are filled in, and which is due when.
///
/// With it every request has a number, from 0 over all threads and hosts: a thread has as many of any
/// stretch of numbers as it has of the connections. With a log, of N threads that have connections, the
/// one with number t sends the requests t, t + N, t + 2N and so on. What is filled in and which of
/// several requests it is follow from the job's seed and that number; of requests in order each thread
/// sends one after the other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Filling {
    /// For each of the target's requests: how it is filled in; `None` for one that is fixed.
    pub templates: Vec<Option<RequestTemplate>>,
    pub feeds: Vec<FeedRows>,
    /// The times and requests of open-loop segments. They go through it one after the other, each for
    /// as long as it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Log>,
    /// How many values of earlier answers there are.
    #[serde(default)]
    pub captured: usize,
}

/// Most bytes of requests that are filled in, which each connection has for itself.
const FILLED_BYTES_MAX: u64 = 4 << 30;

/// Where a template stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Field,
    Body,
}

impl Filling {
    /// The feeds that requests use, by number.
    pub(crate) fn used_feeds(&self) -> Vec<usize> {
        let templates = self.templates.iter().flatten();
        let pieces = templates
            .flat_map(RequestTemplate::templates)
            .flat_map(|one| &one.0);
        let mut used: Vec<usize> = pieces
            .filter_map(|piece| match piece {
                Piece::Place {
                    fill: Fill::Column { feed, .. },
                    ..
                } => Some(*feed),
                _ => None,
            })
            .collect();
        used.sort_unstable();
        used.dedup();
        used
    }

    fn validate(&self, name: &dyn Fn(usize) -> String) -> Result<(), JobError> {
        for (number, request) in self.templates.iter().enumerate() {
            let Some(request) = request else { continue };
            let refused = |why: String| JobError::Template {
                request: name(number),
                why,
            };
            self.validate_template(&request.path, Part::Path, &refused)?;
            for (_, value) in &request.fields {
                self.validate_template(value, Part::Field, &refused)?;
            }
            if let Some(body) = &request.body {
                self.validate_template(body, Part::Body, &refused)?;
            }
        }
        Ok(())
    }

    fn validate_template(
        &self,
        template: &Template,
        part: Part,
        refused: &dyn Fn(String) -> JobError,
    ) -> Result<(), JobError> {
        for piece in &template.0 {
            let (fill, is_encoded) = match piece {
                Piece::Text(text) if text.iter().any(|byte| part.refuses(*byte)) => {
                    return Err(refused(format!(
                        "its {} has {}",
                        part.name(),
                        part.refused()
                    )));
                }
                Piece::Text(_) => continue,
                Piece::Place { fill, is_encoded } => (fill, is_encoded),
            };
            let why = match *fill {
                Fill::Column { feed, column } => {
                    let known = self.feeds.get(feed);
                    let Some(rows) = known.filter(|rows| column < rows.columns.len()) else {
                        return Err(refused(format!("feed {feed} has no column {column}")));
                    };
                    if rows.rows() == 0 {
                        return Err(JobError::EmptyFeed(rows.name.clone()));
                    }
                    if !is_encoded {
                        part.validate_column(rows, column)?;
                    }
                    continue;
                }
                Fill::Int { from, to } if from > to => format!("int({from}, {to}) has no number"),
                Fill::Zipf { keys: 0, .. } => "zipf has no key".to_owned(),
                Fill::Zipf { exponent, .. } if !(0.0..=EXPONENT_MAX).contains(&exponent) => {
                    format!("the exponent of zipf is {exponent}; expected 0 to {EXPONENT_MAX}")
                }
                Fill::Hex { digits } if digits > DIGITS_MAX => {
                    format!("hex({digits}) is too long; expected at most {DIGITS_MAX} digits")
                }
                Fill::Captured { name } if name >= self.captured => {
                    "it needs what an earlier answer to the same user had; requests of users have \
                     that"
                        .to_owned()
                }
                _ => continue,
            };
            return Err(refused(why));
        }
        Ok(())
    }
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Path => "path",
            Part::Field => "header",
            Part::Body => "body",
        }
    }

    /// Whether a byte would end what stands there.
    fn refuses(self, byte: u8) -> bool {
        match self {
            Part::Path => byte <= b' ' || byte == 0x7f,
            Part::Field => matches!(byte, 0 | b'\r' | b'\n'),
            Part::Body => false,
        }
    }

    fn refused(self) -> &'static str {
        match self {
            Part::Path => "a space or control character",
            Part::Field | Part::Body => "CR, LF or NUL",
        }
    }

    /// Refuses the values of a column that cannot stand there.
    fn validate_column(self, feed: &FeedRows, column: usize) -> Result<(), JobError> {
        if self == Part::Body {
            return Ok(());
        }
        let is_bad = |row: &u64| {
            let value = feed.value(*row, column);
            value.iter().any(|byte| self.refuses(*byte))
        };
        match (0..feed.rows()).find(is_bad) {
            None => Ok(()),
            Some(row) => Err(JobError::FeedValue {
                feed: feed.name.clone(),
                row: row + 1,
                column: feed.columns[column].clone(),
                part: self.name(),
                has: self.refused(),
            }),
        }
    }
}

impl Target {
    /// How a request is filled in, if it has places.
    pub(crate) fn template(&self, request: usize) -> Option<&RequestTemplate> {
        let templates = &self.filling.as_ref()?.templates;
        templates.get(request)?.as_ref()
    }

    /// The log that gives its requests their times.
    pub(crate) fn log(&self) -> Option<&Log> {
        self.filling.as_ref()?.log.as_ref()
    }

    pub(super) fn validate_filling(&self) -> Result<(), JobError> {
        let Some(filling) = &self.filling else {
            return Ok(());
        };
        let has_places = filling.templates.iter().any(Option::is_some);
        let can = match self.traffic {
            Traffic::Answers | Traffic::Events(_) => true,
            Traffic::WebSocket(_) => !has_places && filling.log.is_none(),
            Traffic::Grpc(_) => !has_places,
            Traffic::Users(ref users) => !users.in_rounds || filling.log.is_none(),
        };
        if !can {
            return Err(JobError::NotFilled);
        }
        if let Some(highest) = filling.log.as_ref().and_then(Log::highest)
            && highest as usize >= self.requests.len()
        {
            return Err(JobError::Log("refers to an unknown request"));
        }
        let longest = filling
            .templates
            .iter()
            .flatten()
            .map(RequestTemplate::fixed_bytes);
        let bytes = longest.max().unwrap_or_default() as u64 * u64::from(self.connections);
        if bytes > FILLED_BYTES_MAX {
            return Err(JobError::FilledMemory {
                gib: bytes.div_ceil(1 << 30),
                most: FILLED_BYTES_MAX >> 30,
            });
        }
        filling.validate(&|number| {
            let request = self.requests.get(number);
            request.map_or_else(|| number.to_string(), |request| request.name.clone())
        })
    }
}

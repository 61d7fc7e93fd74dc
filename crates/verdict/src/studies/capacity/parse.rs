//! The text of an objective.

use std::str::FromStr;

use super::objective::{ACHIEVED_SHARE, ERROR_SHARE};
use super::{Direction, Limit, Objective, Offer, Quantity};

/// A text that is no objective.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectiveError {
    /// Nothing stands where a limit should.
    #[error("expected a limit such as `p99<50ms`, found nothing (at character {at})")]
    Empty {
        /// Where, in characters from 1.
        at: usize,
    },
    #[error(
        "expected a percentile such as `p99`, or `mean`, `max`, `errors` or `achieved`, found `{found}` (at character {at}){}",
        nearest.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default()
    )]
    Quantity {
        found: String,
        /// Where, in characters from 1.
        at: usize,
        /// The nearest right name.
        nearest: Option<&'static str>,
    },
    /// A percentile that there is not.
    #[error("expected a percentile above 0 and below 100, found `{found}` (at character {at})")]
    Percentile {
        found: String,
        /// Where, in characters from 1.
        at: usize,
    },
    /// No comparison sign, or the wrong one.
    #[error("expected {expected} after `{quantity}`, found `{found}` (at character {at})")]
    Sign {
        /// What should stand there.
        expected: &'static str,
        quantity: String,
        found: String,
        /// Where, in characters from 1.
        at: usize,
    },
    /// A value that cannot be read.
    #[error("expected {expected}, found `{found}` (at character {at})")]
    Value {
        /// What should stand there.
        expected: &'static str,
        found: String,
        /// Where, in characters from 1.
        at: usize,
    },
    #[error(
        "`{quantity}` is limited twice in the same direction (at character {at}); keep one of the limits"
    )]
    Twice {
        quantity: String,
        /// Where the second limit is, in characters from 1.
        at: usize,
    },
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let mut limits: Vec<Limit> = Vec::new();
        for (start, part) in parts(text) {
            let limit = limit(text, start, part)?;
            if let Some(quantity) = limited_twice(&limits, &limit) {
                let at = place(text, start + leading(part));
                return Err(ObjectiveError::Twice { quantity, at });
            }
            limits.push(limit);
        }
        let stated = limits.len();
        let says = |quantity| limits.iter().any(|l: &Limit| l.quantity == quantity);
        let (errors, achieved) = (says(Quantity::Errors), says(Quantity::Achieved));
        if !errors {
            limits.push(Limit {
                quantity: Quantity::Errors,
                direction: Direction::Below,
                value: ERROR_SHARE,
            });
        }
        if !achieved {
            limits.push(Limit {
                quantity: Quantity::Achieved,
                direction: Direction::AtLeast,
                value: ACHIEVED_SHARE,
            });
        }
        Ok(Self {
            limits,
            stated,
            offered: Offer::default(),
        })
    }
}

/// The quantity of a limit that others limit in the same direction already.
fn limited_twice(limits: &[Limit], limit: &Limit) -> Option<String> {
    let upper = |l: &Limit| matches!(l.direction, Direction::Below | Direction::AtMost);
    limits
        .iter()
        .any(|l| l.quantity == limit.quantity && upper(l) == upper(limit))
        .then(|| limit.quantity.to_string())
}

impl Objective {
    /// The same with the share of errors that is allowed, such as `1%`.
    ///
    /// # Errors
    /// When the text is no share, or the objective limits errors itself.
    pub fn with_errors(self, share: &str) -> Result<Self, ObjectiveError> {
        self.with(Quantity::Errors, Direction::AtMost, share)
    }

    /// The same with the share of the offered requests that has to be answered.
    ///
    /// # Errors
    /// When the text is no share, or the objective limits it itself.
    pub fn with_achieved(self, share: &str) -> Result<Self, ObjectiveError> {
        self.with(Quantity::Achieved, Direction::AtLeast, share)
    }

    fn with(
        mut self,
        quantity: Quantity,
        direction: Direction,
        share: &str,
    ) -> Result<Self, ObjectiveError> {
        let limit = Limit {
            quantity,
            direction,
            value: value(quantity, share.trim(), 1)?,
        };
        if let Some(quantity) = limited_twice(&self.limits[..self.stated], &limit) {
            return Err(ObjectiveError::Twice { quantity, at: 1 });
        }
        for one in &mut self.limits[self.stated..] {
            if one.quantity == quantity {
                *one = limit;
            }
        }
        Ok(self)
    }
}

/// The limits' texts with where they begin, in bytes.
fn parts(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        let before_is_space = text[..at].ends_with(char::is_whitespace);
        let joint = if rest.starts_with(',') {
            1
        } else if before_is_space
            && rest.starts_with("and")
            && rest[3..].chars().next().is_none_or(char::is_whitespace)
        {
            3
        } else {
            0
        };
        if joint > 0 {
            parts.push((start, &text[start..at]));
            start = at + joint;
            at = start;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    parts.push((start, &text[start..]));
    parts
}

fn leading(part: &str) -> usize {
    part.len() - part.trim_start().len()
}

/// A place in bytes as one in characters from 1.
fn place(text: &str, byte: usize) -> usize {
    text[..byte].chars().count() + 1
}

fn limit(text: &str, start: usize, part: &str) -> Result<Limit, ObjectiveError> {
    let begin = start + leading(part);
    let part = part.trim();
    if part.is_empty() {
        let at = place(text, begin);
        return Err(ObjectiveError::Empty { at });
    }
    let end = part
        .find(|c: char| c.is_whitespace() || "<>=".contains(c))
        .unwrap_or(part.len());
    let name = &part[..end];
    let quantity = quantity(name, place(text, begin))?;
    let rest = part[end..].trim_start();
    let sign_at = begin + part.len() - rest.len();
    let signs = [
        ("<=", Direction::AtMost),
        (">=", Direction::AtLeast),
        ("<", Direction::Below),
        (">", Direction::Above),
    ];
    let found = signs.into_iter().find(|(sign, _)| rest.starts_with(sign));
    let wants_more = quantity == Quantity::Achieved;
    let expected = if wants_more {
        "`>` or `>=`"
    } else {
        "`<` or `<=`"
    };
    let (sign, direction) = match found {
        Some((sign, direction))
            if matches!(direction, Direction::Above | Direction::AtLeast) == wants_more =>
        {
            (sign, direction)
        }
        found => {
            return Err(ObjectiveError::Sign {
                expected,
                quantity: name.to_owned(),
                found: found.map_or(rest.to_owned(), |(sign, _)| sign.to_owned()),
                at: place(text, sign_at),
            });
        }
    };
    let value_text = rest[sign.len()..].trim_start();
    let value_at = place(text, begin + part.len() - value_text.len());
    let value = value(quantity, value_text, value_at)?;
    Ok(Limit {
        quantity,
        direction,
        value,
    })
}

fn quantity(name: &str, at: usize) -> Result<Quantity, ObjectiveError> {
    const NAMES: [&str; 6] = ["p50", "p99", "mean", "max", "errors", "achieved"];
    match name {
        "mean" => return Ok(Quantity::Mean),
        "max" => return Ok(Quantity::Max),
        "errors" => return Ok(Quantity::Errors),
        "achieved" => return Ok(Quantity::Achieved),
        _ => {}
    }
    let digits = name.strip_prefix('p').unwrap_or("");
    if !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.') {
        let percentile = digits.parse::<f64>().ok();
        return match percentile.filter(|p| *p > 0.0 && *p < 100.0) {
            Some(percentile) => Ok(Quantity::Quantile(percentile / 100.0)),
            None => Err(ObjectiveError::Percentile {
                found: name.to_owned(),
                at,
            }),
        };
    }
    let lower = name.to_lowercase();
    let near = |n: &&str| strsim::jaro_winkler(n, &lower);
    let nearest = NAMES
        .into_iter()
        .max_by(|a, b| near(a).total_cmp(&near(b)))
        .filter(|n| near(n) > 0.7);
    Err(ObjectiveError::Quantity {
        found: name.to_owned(),
        at,
        nearest,
    })
}

fn value(quantity: Quantity, text: &str, at: usize) -> Result<f64, ObjectiveError> {
    let units: &[(&str, f64)] = if quantity.is_latency() {
        &[("us", 1.0), ("µs", 1.0), ("ms", 1e3), ("s", 1e6)]
    } else {
        &[("%", 0.01)]
    };
    let expected = if quantity.is_latency() {
        "a time above 0 with its unit, such as `200us`, `50ms` or `1.5s`"
    } else {
        "a percentage from 0% to 100%, such as `0.1%`"
    };
    let wrong = || ObjectiveError::Value {
        expected,
        found: text.to_owned(),
        at,
    };
    let (digits, scale) = units
        .iter()
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?.trim_end(), scale)))
        .ok_or_else(wrong)?;
    let plain = digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    let value = digits.parse::<f64>().ok().filter(|_| plain);
    let value = value.ok_or_else(wrong)? * scale;
    let fits = if quantity.is_latency() {
        value > 0.0 && value.is_finite()
    } else {
        value <= 1.0
    };
    if fits { Ok(value) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests;

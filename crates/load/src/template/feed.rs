//! Rows of data, in one piece of memory.

use std::sync::Arc;

use readings::requests::{Feed, FeedOrder};
use serde::{Deserialize, Serialize};

use super::draw::Draws;
use crate::job::packed::{self, Unpackable};

/// A [`Feed`] as a load keeps it: a value takes its bytes and 8 more. In a written job it is
/// compressed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Packed", into = "Packed")]
pub struct FeedRows {
    /// Its name in placeholders.
    pub name: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Which row a request has.
    pub order: FeedOrder,
    rows: u64,
    /// All values, row by row.
    text: Arc<[u8]>,
    /// Where each value ends.
    ends: Arc<[u64]>,
}

impl FeedRows {
    /// A value that a row lacks is empty.
    pub fn of(feed: &Feed) -> Self {
        let columns = feed.columns.len();
        let (mut text, mut ends) = (Vec::new(), Vec::new());
        for row in &feed.rows {
            for column in 0..columns {
                let value = row.get(column).map_or("", String::as_str);
                text.extend_from_slice(value.as_bytes());
                ends.push(text.len() as u64);
            }
        }
        Self {
            name: feed.name.clone(),
            columns: feed.columns.clone(),
            order: feed.order,
            rows: feed.rows.len() as u64,
            text: text.into(),
            ends: ends.into(),
        }
    }

    /// How many there are.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The row of a request, or of a user, with this number. With [`FeedOrder::Once`] numbers are
    /// below [`Self::rows`], and `first` is not added to them.
    #[inline]
    pub(crate) fn row(&self, seed: u64, (first, number): (u64, u64), feed: usize) -> u64 {
        let number = match self.order {
            FeedOrder::Once => number,
            FeedOrder::InTurn | FeedOrder::Random => first.wrapping_add(number),
        };
        match self.order {
            FeedOrder::Random => Draws::of(seed, number).row(feed).below(self.rows),
            FeedOrder::InTurn | FeedOrder::Once if number < self.rows => number,
            FeedOrder::InTurn | FeedOrder::Once => number % self.rows.max(1),
        }
    }

    /// A value; empty where there is none.
    #[inline]
    pub(crate) fn value(&self, row: u64, column: usize) -> &[u8] {
        let at = row as usize * self.columns.len() + column;
        let end_of = |at: usize| self.ends.get(at).map_or(0, |end| *end as usize);
        let from = at.checked_sub(1).map_or(0, end_of);
        self.text.get(from..end_of(at)).unwrap_or_default()
    }
}

#[derive(Serialize, Deserialize)]
struct Packed {
    name: String,
    columns: Vec<String>,
    order: FeedOrder,
    /// The number of rows, and the length and bytes of each value.
    values: String,
}

impl From<FeedRows> for Packed {
    fn from(feed: FeedRows) -> Self {
        let mut bytes = Vec::with_capacity(feed.text.len() + feed.ends.len() * 2);
        packed::write(feed.rows, &mut bytes);
        let mut from = 0;
        for &end in feed.ends.iter() {
            packed::write(end - from, &mut bytes);
            bytes.extend_from_slice(&feed.text[from as usize..end as usize]);
            from = end;
        }
        Self {
            name: feed.name,
            columns: feed.columns,
            order: feed.order,
            values: packed::pack(&bytes),
        }
    }
}

impl TryFrom<Packed> for FeedRows {
    type Error = Unpackable;

    fn try_from(packed: Packed) -> Result<Self, Unpackable> {
        let bytes = packed::unpack(&packed.values)?;
        let mut at = 0;
        let rows = packed::read(&bytes, &mut at).ok_or(Unpackable)?;
        let (mut text, mut ends) = (Vec::new(), Vec::new());
        while let Some(length) = packed::read(&bytes, &mut at) {
            let end = usize::try_from(length)
                .ok()
                .and_then(|length| at.checked_add(length));
            let value = end.and_then(|end| bytes.get(at..end)).ok_or(Unpackable)?;
            text.extend_from_slice(value);
            ends.push(text.len() as u64);
            at += value.len();
        }
        if rows.checked_mul(packed.columns.len() as u64) != Some(ends.len() as u64) {
            return Err(Unpackable);
        }
        Ok(Self {
            name: packed.name,
            columns: packed.columns,
            order: packed.order,
            rows,
            text: text.into(),
            ends: ends.into(),
        })
    }
}

//! What a cache asks its back end when an answer expires: how many requests come at once, and how long
//! an answer lasts.
//!
//! It shows where one answer is asked for: what the back end receives then is bursts with nothing between
//! them. The first burst of a load may have begun before its window, and counts neither.

pub mod words;

#[cfg(test)]
mod tests;

use readings::{ARRIVAL_SLOT_NS, Arrivals, Condition};
use serde::Serialize;

use super::CONFIDENCE;
use crate::stats::student::BlockMean;
use crate::trial::cells::{Cell, Cells};
use crate::trial::loops::Loop;

/// Slots without a request that end a burst: 100 ms.
const APART: usize = 10;
/// Bursts take at most this share of the time, or they are no bursts.
const SHARE: f64 = 0.5;
/// The fewest whole times between bursts in a block.
const FEWEST: usize = 2;

/// Expiries of the answers of a subject, over all blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expiries {
    pub condition: Condition,
    pub subject: String,
    pub expiries: usize,
    /// Requests at the back ends for each: 1 where one renews the answer for all.
    pub requests: BlockMean,
    pub most: u64,
    /// From one expiry to the next, s: how long an answer lasts, with the time to fetch it.
    pub lasts_s: BlockMean,
}

/// The subjects whose back ends receive bursts: by condition, then by subject, as declared.
pub(crate) fn expiries(cells: &Cells<'_>) -> Vec<Expiries> {
    let mut found = Vec::new();
    for condition in &cells.conditions {
        for subject in &cells.subjects {
            let trials = cells.judged(Loop::Open, condition, subject, false);
            let has_events =
                |cell: &Cell<'_>| cell.reading().is_some_and(|one| one.events.is_some());
            let trials = trials.values().filter(|cell| !has_events(cell));
            let loads = trials.filter_map(|cell| cell.latency());
            // A limited server lets bursts through too.
            let loads = loads.filter(|load| load.rate_limit_per_s.is_none());
            let all = loads.map(|load| Arrivals::sum(load.arrivals.values()));
            let all: Option<Vec<Arrivals>> = all.collect();
            let one = all.as_deref().and_then(of_blocks);
            found.extend(one.map(|one| Expiries {
                condition: condition.clone(),
                subject: subject.clone(),
                ..one
            }));
        }
    }
    found
}

fn of_blocks(all: &[Arrivals]) -> Option<Expiries> {
    let blocks: Option<Vec<Vec<Burst>>> = all.iter().map(|one| bursts(&one.counts)).collect();
    let blocks = blocks?;
    let requests = blocks.iter().map(|bursts| {
        let sum: u64 = bursts[1..].iter().map(|burst| burst.requests).sum();
        sum as f64 / (bursts.len() - 1) as f64
    });
    let lasts_s = blocks.iter().map(|bursts| {
        let (first, last) = (bursts[0].first, bursts[bursts.len() - 1].first);
        let slots = (last - first) as f64 / (bursts.len() - 1) as f64;
        slots * ARRIVAL_SLOT_NS as f64 / 1e9
    });
    let counted = || blocks.iter().flat_map(|bursts| &bursts[1..]);
    Some(Expiries {
        condition: Condition::new(),
        subject: String::new(),
        expiries: counted().count(),
        requests: BlockMean::of(&requests.collect::<Vec<_>>(), CONFIDENCE)?,
        most: counted().map(|burst| burst.requests).max()?,
        lasts_s: BlockMean::of(&lasts_s.collect::<Vec<_>>(), CONFIDENCE)?,
    })
}

#[derive(Clone, Copy, Debug)]
struct Burst {
    /// Its first and its last slot with a request.
    first: usize,
    last: usize,
    requests: u64,
}

/// The bursts of a load; `None` where what came were none.
fn bursts(counts: &[u32]) -> Option<Vec<Burst>> {
    let mut found: Vec<Burst> = Vec::new();
    for (at, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let requests = u64::from(*count);
        match found.last_mut() {
            Some(burst) if at - burst.last <= APART => {
                burst.last = at;
                burst.requests += requests;
            }
            _ => found.push(Burst {
                first: at,
                last: at,
                requests,
            }),
        }
    }
    let within: usize = found.iter().map(|burst| burst.last - burst.first + 1).sum();
    let are_bursts = within as f64 <= SHARE * counts.len() as f64;
    (are_bursts && found.len() > FEWEST).then_some(found)
}

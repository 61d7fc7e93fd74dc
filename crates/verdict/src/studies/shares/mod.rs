//! Which back end received how many of a load's requests, by their own counts: how evenly a balancer
//! shares them out, how many requests it makes of one, how many a cache answers itself.

mod exact;
pub mod expiry;
pub mod limit;
pub mod words;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use readings::{AgeReading, Condition, EventReading, LoadReading, Received};
use serde::Serialize;

use crate::trial::cells::{Cell, Cells};
use crate::trial::loops::Loop;

/// All intervals of a subject hold at once with this confidence.
const CONFIDENCE: f64 = 0.95;
/// Requests at the back ends over those of the load, beyond one, from which it is told: health
/// checks are fewer.
const PER_REQUEST: f64 = 0.01;
/// A share is off where its interval excludes the intended one, and it differs by this part of it.
const OFF: f64 = 0.01;

/// What the back ends of a subject received, over all blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shares {
    pub condition: Condition,
    pub subject: String,
    /// Whether it was an open loop, at the common rate.
    pub is_of_open_loop: bool,
    /// Requests of the load, failed ones included.
    pub requests: u64,
    /// Requests that reached the back ends.
    pub received: u64,
    /// Requests at the back ends for each of the load.
    pub per_request: f64,
    pub back_ends: Vec<BackEndShare>,
    /// What was answered without the back ends; absent where each request reached them.
    pub hits: Option<Hits>,
    /// How old answers say that they are; absent where none does, and where that is not read.
    pub ages: Option<AgeReading>,
}

/// The requests that one back end received.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BackEndShare {
    pub server: String,
    pub requests: u64,
    /// Its share of the requests at the back ends, 0 to 1, and its interval.
    pub share: f64,
    pub lower: f64,
    pub upper: f64,
    /// The share that it ought to have: by the declared weights, or the same as the others.
    pub intended: f64,
    /// Whether it has another.
    pub is_off: bool,
}

/// What a cache answered itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Hits {
    /// The hit ratio, 0 to 1, and its interval.
    pub ratio: f64,
    pub lower: f64,
    pub upper: f64,
    /// The same of the bytes of answers, heads included. The load counts these in its windows only;
    /// what it read otherwise is taken to be of the same size.
    pub byte_ratio: Option<f64>,
}

/// The subjects with several back ends, or one that did not receive each request once: by condition,
/// then by subject, as declared. Of several loops, the open one.
pub(crate) fn shares(cells: &Cells<'_>) -> Vec<Shares> {
    let mut found = Vec::new();
    for condition in &cells.conditions {
        for subject in &cells.subjects {
            let of = |of: Loop| {
                let mut sum = Sum::default();
                for cell in cells.judged(of, condition, subject, false).values() {
                    if has_disturbed_shares(cell) {
                        continue;
                    }
                    let load = match of {
                        Loop::Closed => cell.throughput(),
                        Loop::Open => cell.latency(),
                    };
                    sum.extend(load);
                }
                sum.shares(of)
            };
            let one = of(Loop::Open).or_else(|| of(Loop::Closed));
            found.extend(one.map(|one| Shares {
                condition: condition.clone(),
                subject: subject.clone(),
                ..one
            }));
        }
    }
    found
}

/// Whether events changed what back ends receive: some were lost, or the run itself asked the servers, to
/// see when a reload was in effect, and back ends counted those requests too.
fn has_disturbed_shares(cell: &Cell<'_>) -> bool {
    let events = cell.reading().and_then(|reading| reading.events.as_ref());
    let changes = |event: &EventReading| event.is_reload() || event.is_loss();
    events.is_some_and(|noticed| noticed.events.iter().any(changes))
}

/// What was counted in all blocks.
#[derive(Default)]
struct Sum {
    requests: u64,
    received: BTreeMap<String, Received>,
    /// Bytes that the load read, estimated for all of it.
    read_bytes: f64,
    ages: AgeReading,
    /// Whether a rate limit refuses some.
    is_limited: bool,
}

impl Sum {
    fn extend(&mut self, load: Option<&LoadReading>) {
        let Some(load) = load.filter(|load| !load.received.is_empty()) else {
            return;
        };
        // Of exchanges that last, many are open when a load ends.
        self.requests += match &load.lasting {
            Some(lasting) => lasting.opened,
            None => load.requests_all + load.errors_all.total(),
        };
        if let Some(ages) = &load.ages {
            self.ages.add(ages);
        }
        self.is_limited |= load.rate_limit_per_s.is_some();
        for (server, received) in &load.received {
            self.received
                .entry(server.clone())
                .or_default()
                .add(received);
        }
        if load.requests > 0 {
            let of_window = load.bytes_read as f64 / load.requests as f64;
            self.read_bytes += of_window * load.requests_all as f64;
        }
    }

    fn shares(&self, of: Loop) -> Option<Shares> {
        let all = Received::sum(&self.received);
        if self.requests == 0 {
            return None;
        }
        let per_request = all.requests as f64 / self.requests as f64;
        let is_each_once = (per_request - 1.0).abs() < PER_REQUEST;
        if self.received.len() < 2 && (is_each_once || self.is_limited) {
            return None;
        }
        Some(Shares {
            condition: Condition::new(),
            subject: String::new(),
            is_of_open_loop: of == Loop::Open,
            requests: self.requests,
            received: all.requests,
            per_request,
            back_ends: self.back_ends(all.requests),
            ages: Some(self.ages).filter(|ages| ages.answers > 0),
            hits: (per_request <= 1.0 - PER_REQUEST && !self.is_limited).then(|| self.hits(&all)),
        })
    }

    fn back_ends(&self, received: u64) -> Vec<BackEndShare> {
        let count = self.received.len() as f64;
        // Bonferroni: each interval gets its part of what may go wrong.
        let confidence = 1.0 - (1.0 - CONFIDENCE) / count;
        let weights = self.received.values().map(|one| one.weight.map(f64::from));
        let all: Option<f64> = weights.sum();
        let each = self.received.iter().map(|(server, one)| {
            let (lower, upper) = exact::interval(one.requests, received, confidence);
            let share = one.requests as f64 / received.max(1) as f64;
            let intended = match (one.weight, all) {
                (Some(weight), Some(all)) if all > 0.0 => f64::from(weight) / all,
                _ => 1.0 / count,
            };
            let is_outside = !(lower..=upper).contains(&intended);
            BackEndShare {
                server: server.clone(),
                requests: one.requests,
                share,
                lower,
                upper,
                intended,
                is_off: is_outside && (share - intended).abs() >= OFF * intended,
            }
        });
        each.collect()
    }

    fn hits(&self, all: &Received) -> Hits {
        let hits = self.requests.saturating_sub(all.requests);
        let (lower, upper) = exact::interval(hits, self.requests, CONFIDENCE);
        let missed_bytes = all.sent_bytes as f64 / self.read_bytes;
        Hits {
            ratio: hits as f64 / self.requests as f64,
            lower,
            upper,
            byte_ratio: (self.read_bytes > 0.0).then(|| (1.0 - missed_bytes).clamp(0.0, 1.0)),
        }
    }
}

//! How exactly a server keeps the rate limit that it declares, by what its back ends received in
//! windows of 10 ms to 10 s. What it kept for a burst is spent in the warm-up, since the load goes on
//! from there.

pub mod words;

#[cfg(test)]
mod tests;

use readings::{ARRIVAL_SLOT_NS, Arrivals, Condition, LoadReading};
use serde::Serialize;

use super::CONFIDENCE;
use crate::stats::student::BlockMean;
use crate::trial::cells::Cells;
use crate::trial::loops::Loop;

/// The windows, in slots of 10 ms.
const WINDOWS: [usize; 4] = [1, 10, 100, 1_000];
/// A limit is kept where the interval of what is let through beyond it lies within this share of it.
const KEPT: f64 = 0.01;
/// Less than this multiple of the limit does not show whether it is kept.
const OFFERED: f64 = 1.05;

/// What a server with a rate limit let through, over all blocks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limiting {
    pub condition: Condition,
    pub subject: String,
    pub limit_per_s: f64,
    /// What the load offered, requests per second, those of users included; the least of all blocks.
    pub offered_per_s: f64,
    /// What reached the back ends over what the limit allows, less one: 0.131 is 13.1% too many.
    pub excess: BlockMean,
    /// The fullest windows, the shortest first; those that are longer than the load are left out.
    pub windows: Vec<LimitWindow>,
    pub finding: LimitFinding,
}

/// Windows of one length, beginning at any slot of 10 ms, of all blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LimitWindow {
    pub window_s: f64,
    /// The requests of the fullest, over what the limit allows in it, less one.
    pub most: f64,
    pub least: f64,
}

/// What the interval says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitFinding {
    /// It is kept to 1%.
    Kept,
    TooMany,
    TooFew,
    /// The load offered less than the limit, or hardly more.
    NotReached,
    Unsettled,
}

/// The subjects that declare a limit: by condition, then by subject, as declared.
pub(crate) fn limits(cells: &Cells<'_>) -> Vec<Limiting> {
    let mut found = Vec::new();
    for condition in &cells.conditions {
        for subject in &cells.subjects {
            let trials = cells.judged(Loop::Open, condition, subject, false);
            let loads = trials.values().filter_map(|cell| cell.latency());
            let loads: Vec<&LoadReading> = loads.collect();
            found.extend(limiting(&loads).map(|one| Limiting {
                condition: condition.clone(),
                subject: subject.clone(),
                ..one
            }));
        }
    }
    found
}

/// Requests that reached the back ends in a load over what its limit allows; with what is allowed.
pub(crate) fn accepted(load: &LoadReading) -> Option<(f64, f64)> {
    let arrivals = Arrivals::sum(load.arrivals.values())?;
    let allowed = load.rate_limit_per_s? * arrivals.duration_s();
    (allowed > 0.0).then(|| (arrivals.total() as f64 / allowed, allowed))
}

fn limiting(loads: &[&LoadReading]) -> Option<Limiting> {
    let first = loads.first()?;
    let limit_per_s = first.rate_limit_per_s?;
    let offered = loads.iter().map(|load| load.offered_requests_per_s());
    let offered: Option<Vec<f64>> = offered.collect();
    let offered_per_s = offered?.into_iter().fold(f64::INFINITY, f64::min);
    let excess = loads
        .iter()
        .filter_map(|load| Some(accepted(load)?.0 - 1.0));
    let excess = BlockMean::of(&excess.collect::<Vec<_>>(), CONFIDENCE)?;
    let all = loads.iter();
    let all = all.filter_map(|load| Arrivals::sum(load.arrivals.values()));
    let all: Vec<Arrivals> = all.collect();
    Some(Limiting {
        condition: Condition::new(),
        subject: String::new(),
        limit_per_s,
        offered_per_s,
        finding: finding(&excess, offered_per_s / limit_per_s),
        excess,
        windows: windows(&all, limit_per_s),
    })
}

fn finding(excess: &BlockMean, offered: f64) -> LimitFinding {
    match excess.interval() {
        Some((low, _)) if low > KEPT => LimitFinding::TooMany,
        _ if offered < OFFERED => LimitFinding::NotReached,
        Some((_, high)) if high < -KEPT => LimitFinding::TooFew,
        Some((low, high)) if low > -KEPT && high < KEPT => LimitFinding::Kept,
        _ => LimitFinding::Unsettled,
    }
}

fn windows(all: &[Arrivals], limit_per_s: f64) -> Vec<LimitWindow> {
    let of_length = |slots: &usize| {
        let sums = all.iter().flat_map(|one| sums(&one.counts, *slots));
        let ends = sums.fold(None, |ends: Option<(u64, u64)>, sum| {
            let (least, most) = ends.unwrap_or((sum, sum));
            Some((least.min(sum), most.max(sum)))
        });
        let (least, most) = ends?;
        let window_s = *slots as f64 * ARRIVAL_SLOT_NS as f64 / 1e9;
        let beyond = |sum: u64| sum as f64 / (limit_per_s * window_s) - 1.0;
        Some(LimitWindow {
            window_s,
            most: beyond(most),
            least: beyond(least),
        })
    };
    WINDOWS.iter().filter_map(of_length).collect()
}

fn sums(counts: &[u32], slots: usize) -> impl Iterator<Item = u64> {
    let mut sum: u64 = counts
        .iter()
        .take(slots)
        .map(|count| u64::from(*count))
        .sum();
    let first = (counts.len() >= slots).then_some(sum);
    let moved = counts.iter().zip(counts.iter().skip(slots));
    let later = moved.map(move |(out, come)| {
        sum = sum + u64::from(*come) - u64::from(*out);
        sum
    });
    first.into_iter().chain(later)
}

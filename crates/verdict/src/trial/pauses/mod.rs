//! Latency without the times in which the client's CPU stood still.

pub(crate) mod words;

use readings::{Condition, LoadReading};
use serde::Serialize;

use crate::trial::cells::Cells;

/// What the pauses of a client did to one subject's latency. Which times are left out follows from
/// the pauses alone, so it is blind to the subject.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WithoutPauses {
    pub pauses: u64,
    pub longest_ms: f64,
    /// The share of the measured time that is left out, 0 to 1.
    pub share_left_out: f64,
    /// Length of a section, which is left out as a whole.
    pub section_s: f64,
    pub p99_us: f64,
    /// `None` where too few requests are left.
    pub p99_us_without: Option<f64>,
}

/// The pauses of the client in the open loops of one block, whichever subject they met.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlockPauses {
    pub condition: Condition,
    pub block: u32,
    pub pauses: u64,
    pub longest_ms: f64,
}

/// The blocks in which there were pauses, by condition as first seen, in the order of the blocks.
pub(crate) fn by_block(cells: &Cells<'_>) -> Vec<BlockPauses> {
    let mut found: Vec<BlockPauses> = Vec::new();
    for cell in cells.counted() {
        let load = cell.reading().and_then(|reading| reading.latency.as_ref());
        let Some(pauses) = load.and_then(|load| load.pauses.as_ref()) else {
            continue;
        };
        if pauses.count == 0 {
            continue;
        }
        let (condition, block) = (&cell.trial.condition, cell.trial.block);
        let same = |one: &BlockPauses| one.condition == *condition && one.block == block;
        let at = found.iter().position(same).unwrap_or_else(|| {
            found.push(BlockPauses {
                condition: condition.clone(),
                block,
                pauses: 0,
                longest_ms: 0.0,
            });
            found.len() - 1
        });
        found[at].pauses += pauses.count;
        let longest = pauses.pauses.iter().map(|pause| pause.duration_s * 1e3);
        found[at].longest_ms = longest.fold(found[at].longest_ms, f64::max);
    }
    found.sort_by_key(|one| one.block);
    found
}

/// The pauses of one load and its p99 without them; nothing where there were none.
pub fn without_pauses(load: &LoadReading) -> Option<WithoutPauses> {
    of_loads([load])
}

/// The same over the loads of several blocks: geometric means of the quantiles.
pub fn of_loads<'a>(loads: impl IntoIterator<Item = &'a LoadReading>) -> Option<WithoutPauses> {
    let mut found = WithoutPauses {
        pauses: 0,
        longest_ms: 0.0,
        share_left_out: 0.0,
        section_s: 0.0,
        p99_us: 0.0,
        p99_us_without: None,
    };
    let (mut count, mut time, mut left_out) = (0.0, 0.0, 0.0);
    let (mut with, mut without, mut resolved) = (0.0, 0.0, true);
    for load in loads {
        let p99 = load.response.quantile_us(0.99);
        if p99 <= 0.0 {
            continue;
        }
        count += 1.0;
        time += load.duration_s;
        with += p99.ln();
        let Some(pauses) = &load.pauses else {
            without += p99.ln();
            continue;
        };
        found.pauses += pauses.count;
        let longest = pauses.pauses.iter().map(|pause| pause.duration_s * 1e3);
        found.longest_ms = longest.fold(found.longest_ms, f64::max);
        found.section_s = found.section_s.max(pauses.section_s);
        left_out += pauses.share_left_out() * load.duration_s;
        let latency = &pauses.latency_us_without;
        resolved &= latency.resolves(0.99);
        without += latency.p99.max(f64::MIN_POSITIVE).ln();
    }
    if found.pauses == 0 || time <= 0.0 {
        return None;
    }
    found.share_left_out = left_out / time;
    found.p99_us = (with / count).exp();
    found.p99_us_without = resolved.then(|| (without / count).exp());
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::open;
    use readings::{ClientPauses, Pause, Quantiles};

    fn paused(left_out: u64, p99: f64) -> LoadReading {
        let mut load = open(2_000.0, 400.0);
        load.pauses = Some(ClientPauses {
            pauses: vec![Pause {
                start_s: 1.0,
                duration_s: 0.03,
            }],
            count: 3,
            duration_s: 0.04,
            section_s: 0.1,
            sections: 100,
            sections_left_out: left_out,
            latency_us_without: Quantiles {
                count: 200 * (100 - left_out),
                p99,
                ..Quantiles::default()
            },
        });
        load
    }

    #[test]
    fn the_share_left_out_is_that_of_the_time() {
        assert_eq!(without_pauses(&open(2_000.0, 400.0)), None);
        let one = without_pauses(&paused(10, 500.0)).unwrap();
        assert_eq!(
            (one.pauses, one.share_left_out, one.section_s),
            (3, 0.1, 0.1)
        );
        assert!((one.p99_us_without.unwrap() - 500.0).abs() < 1e-6);
        assert!((one.longest_ms - 30.0).abs() < 1e-9);
        let both = of_loads([&paused(10, 500.0), &open(2_000.0, 400.0)]).unwrap();
        assert_eq!(both.share_left_out, 0.05);
        // The other block's own p99.
        let expected = (500.0 * both.p99_us).sqrt();
        assert!((both.p99_us_without.unwrap() / expected - 1.0).abs() < 0.01);
    }

    #[test]
    fn too_few_requests_give_no_quantile() {
        assert_eq!(
            without_pauses(&paused(60, 500.0)).unwrap().p99_us_without,
            None
        );
    }
}

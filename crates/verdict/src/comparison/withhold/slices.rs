//! Whether a ratio depends on the length of the slices. The edges of a slice are cut off; where too
//! little is cut, or a subject needs longer to warm up, short slices give another ratio than long
//! ones (measured once: -58% by slices of 50 ms, -55% by long ones).

use readings::{Condition, Slice};

use crate::stats::sample::Sample;
use crate::trial::cells::Cells;
use crate::trial::loops::Loop;
use crate::{Rules, Verdict};

/// A slice is a long one from this many times the shortest on.
const LONG: f64 = 1.5;
/// The false alarm rate of the warning, over all comparisons of a run.
const FALSE_ALARM: f64 = 0.01;

/// The log ratio of two subjects by long slices less that by short ones; nothing where all are as
/// long, or were not taken in turns.
fn effect(ours: &[Slice], theirs: &[Slice]) -> Option<f64> {
    if ours.len() != theirs.len() {
        return None;
    }
    let shortest = ours
        .iter()
        .map(|s| s.duration_s)
        .fold(f64::INFINITY, f64::min);
    let per_s = |slices: &[Slice], long: bool| {
        let chosen = slices
            .iter()
            .filter(|s| (s.duration_s >= LONG * shortest) == long);
        let (requests, time) = chosen.fold((0.0, 0.0), |(n, t), s| {
            (n + s.requests as f64 + s.edges, t + s.duration_s)
        });
        (requests > 0.0 && time > 0.0).then(|| requests / time)
    };
    let ratio = |long| Some((per_s(ours, long)? / per_s(theirs, long)?).ln());
    Some(ratio(true)? - ratio(false)?)
}

/// The conditions of a comparison: its own or, with pooled factors, all that agree with it in the
/// remaining factors.
fn conditions_of<'c>(cells: &'c Cells<'_>, place: &'c Condition) -> Vec<&'c Condition> {
    if cells.is_condition(place) {
        return vec![place];
    }
    let is_part = |condition: &&Condition| {
        place
            .iter()
            .all(|(factor, level)| condition.get(factor) == Some(level))
    };
    cells.conditions.iter().filter(is_part).collect()
}

/// By how much the slices shift a log ratio of throughput.
///
/// Where each slice loses a fixed amount, as to a warm-up, what is lost in a ratio is `c / length`.
/// Two lengths give `c`, and so the ratio by slices without end.
pub(crate) struct SliceBias {
    /// The log ratio as measured less the one by slices without end.
    pub log_bias: f64,
    pub blocks: usize,
    /// Whether it differs from 0 beyond chance, over so many comparisons.
    is_sure: bool,
}

impl SliceBias {
    /// The bias of a subject against another; nothing with fewer than three blocks of slices of two
    /// lengths.
    pub(crate) fn of(
        cells: &Cells<'_>,
        place: &Condition,
        (subject, other): (&str, &str),
        comparisons: usize,
    ) -> Option<Self> {
        let mut biases = Vec::new();
        for condition in conditions_of(cells, place) {
            let ours = cells.judged(Loop::Closed, condition, subject, false);
            let theirs = cells.judged(Loop::Closed, condition, other, false);
            biases.extend(ours.iter().filter_map(|(block, ours)| {
                let theirs = theirs.get(block)?.slices_in_turns();
                let ours = ours.slices_in_turns();
                Some(effect(ours, theirs)? * bias_per_effect(ours)?)
            }));
        }
        let sample = Sample::of(&biases).filter(|sample| sample.blocks >= 3)?;
        Some(Self {
            log_bias: sample.mean,
            blocks: sample.blocks,
            is_sure: sample.p_value()? < FALSE_ALARM / comparisons.max(1) as f64,
        })
    }

    /// Whether a verdict does not rest on it: a difference that it leaves beyond the margin on the same
    /// side.
    pub(crate) fn leaves(&self, rules: &Rules, verdict: Verdict, log_ratio: f64) -> bool {
        let corrected = log_ratio - self.log_bias;
        verdict != Verdict::Same && corrected.abs() > rules.delta() && log_ratio * corrected > 0.0
    }

    /// Whether it is there, and larger than the margin.
    pub(crate) fn matters(&self, rules: &Rules) -> bool {
        self.is_sure && self.log_bias.abs() > rules.delta()
    }
}

/// The bias of all slices together for each unit by which long slices differ from short ones.
///
/// With a loss of `c / length`, all slices together lose `c n / t` (`n` slices over a time of `t`),
/// and long ones less than short ones by `c (n_short / t_short - n_long / t_long)`.
fn bias_per_effect(slices: &[Slice]) -> Option<f64> {
    let shortest = slices
        .iter()
        .map(|s| s.duration_s)
        .fold(f64::INFINITY, f64::min);
    let per_s = |chosen: &dyn Fn(&&Slice) -> bool| {
        let (count, time) = slices
            .iter()
            .filter(chosen)
            .fold((0.0, 0.0), |(n, t), s| (n + 1.0, t + s.duration_s));
        (time > 0.0).then(|| count / time)
    };
    let is_long = |s: &&Slice| s.duration_s >= LONG * shortest;
    let (all, long) = (per_s(&|_| true)?, per_s(&is_long)?);
    let short = per_s(&|s| !is_long(s))?;
    (short > long).then(|| -all / (short - long))
}

#[cfg(test)]
mod tests {
    use crate::Warning;
    use crate::fixtures::{analyse, header, throughput, throughput_blocks};
    use readings::{Slice, Trial};

    /// Blocks whose balancer is slower in short slices than in long ones by `edge`.
    fn blocks(edge: f64) -> Vec<Trial> {
        let rates: Vec<(f64, f64)> = (0..10).map(|i| (1000.0 + f64::from(i), 700.0)).collect();
        let mut trials = throughput_blocks(&rates);
        for (i, trial) in trials.iter_mut().enumerate() {
            let wobble = 1.0 + 0.002 * (i % 5) as f64;
            let short = match trial.subject.as_str() {
                "balance" => (1.0 - edge) * wobble,
                _ => 1.0,
            };
            let load = throughput(trial);
            let per_s = load.requests_per_s() * 10.0;
            load.slices = (0..20)
                .map(|at| {
                    let duration_s = if at % 2 == 0 { 0.1 } else { 0.2 };
                    let factor = if at % 2 == 0 { short } else { 1.0 };
                    Slice {
                        start_s: f64::from(at),
                        duration_s,
                        requests: (per_s * duration_s * factor) as u64,
                        ..Slice::default()
                    }
                })
                .collect();
        }
        trials
    }

    /// 5 ms lost of every slice of 100 and 200 ms: the truth is no difference.
    #[test]
    fn what_every_slice_loses_is_no_difference_of_servers() {
        let rates: Vec<(f64, f64)> = (0..10).map(|i| (1000.0 + f64::from(i), 1000.0)).collect();
        let mut trials = throughput_blocks(&rates);
        for (i, trial) in trials.iter_mut().enumerate() {
            let is_subject = trial.subject == "balance";
            let lost_s = if is_subject { 0.005 } else { 0.0 };
            let load = throughput(trial);
            let wobble = 1.0 + 0.0005 * (i % 5) as f64;
            load.slices = (0..20)
                .map(|at| {
                    let duration_s = if at % 2 == 0 { 0.1 } else { 0.2 };
                    Slice {
                        start_s: f64::from(at),
                        duration_s,
                        requests: (100_000.0 * (duration_s - lost_s) * wobble) as u64,
                        ..Slice::default()
                    }
                })
                .collect();
            load.duration_s = load.slices.iter().map(|s| s.duration_s).sum();
            load.requests = load.slices.iter().map(|s| s.requests).sum();
        }
        let analysis = analyse(&header(10), &trials);
        let c = &analysis.comparisons[0];
        assert!((c.ratio.unwrap() - 0.967).abs() < 0.002, "{c:?}");
        assert_eq!(c.verdict, crate::Verdict::Inconclusive, "{c:?}");
        let Some(crate::Note::SliceBias(bias)) = c.notes.last() else {
            panic!("{c:?}");
        };
        assert!((bias - 0.967).abs() < 0.002, "{bias}");
    }

    fn warned(edge: f64) -> bool {
        let warnings = analyse(&header(10), &blocks(edge)).warnings;
        warnings
            .iter()
            .any(|warning| matches!(warning, Warning::SliceLength { .. }))
    }

    #[test]
    fn short_slices_that_say_something_else_are_told() {
        assert!(warned(0.08));
        assert!(!warned(0.0));
        // Smaller than the margin.
        assert!(!warned(0.015));
    }
}

//! Whether a ratio depends on the length of the slices. The edges of a slice are cut off; where too
//! little is cut, or a subject needs longer to warm up, short slices give another ratio than long
//! ones (measured once: -58% by slices of 50 ms, -55% by long ones).

use readings::{Condition, Slice};

use crate::cells::Cells;
use crate::sample::Sample;
use crate::{Place, Rules, Warning};

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

/// The warning where the throughput ratio depends on the length of the slices by more than what
/// matters.
pub(crate) fn depends_on_length(
    rules: &Rules,
    cells: &Cells<'_>,
    place: &Condition,
    subject: &str,
    comparisons: usize,
) -> Option<Warning> {
    let ours = cells.of_subject(place, subject, false);
    let theirs = cells.of_subject(place, &rules.baseline, false);
    let effects: Vec<f64> = ours
        .iter()
        .filter_map(|(block, ours)| {
            let (ours, theirs) = (ours.throughput()?, theirs.get(block)?.throughput()?);
            effect(&ours.slices, &theirs.slices)
        })
        .collect();
    let sample = Sample::of(&effects).filter(|sample| sample.blocks >= 3)?;
    let sure = sample.p_value()? < FALSE_ALARM / comparisons.max(1) as f64;
    if !sure || sample.mean.abs() <= rules.delta() {
        return None;
    }
    Some(Warning::SliceLength {
        at: Place {
            subject: subject.to_owned(),
            condition: place.clone(),
        },
        baseline: rules.baseline.clone(),
        ratio: sample.mean.exp(),
        blocks: sample.blocks,
    })
}

#[cfg(test)]
mod tests {
    use crate::Warning;
    use crate::fixtures::{analyse, header, throughput_blocks};
    use readings::{Outcome, Slice, Trial};

    /// Blocks whose balancer is slower in short slices than in long ones by `edge`.
    fn blocks(edge: f64) -> Vec<Trial> {
        let rates: Vec<(f64, f64)> = (0..10).map(|i| (1000.0 + f64::from(i), 700.0)).collect();
        let mut trials = throughput_blocks(&rates);
        for (i, trial) in trials.iter_mut().enumerate() {
            let Outcome::Done(reading) = &mut trial.outcome else {
                panic!("it was measured");
            };
            let load = reading.throughput.as_mut().unwrap();
            let per_s = load.requests_per_s() * 10.0;
            let wobble = 1.0 + 0.002 * (i % 5) as f64;
            let short = match trial.subject.as_str() {
                "balance" => (1.0 - edge) * wobble,
                _ => 1.0,
            };
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
        // Smaller than what matters.
        assert!(!warned(0.015));
    }
}

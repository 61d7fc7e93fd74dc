//! Which forecasts of blocks are credible.
//!
//! A forecast says after how many blocks the interval is narrow enough, as if the spread stayed what
//! it is and averaged out. Beside a noise floor that is as large or as wide as the difference, and
//! beside programs that take much CPU time, that is not known.

use crate::Note;
use crate::comparison::decide::Decision;
use crate::comparison::draft::Case;
use crate::comparison::floor::half_width_after;

/// A forecast whose range goes beyond this many blocks is of no use: nobody makes such a run.
const MOST_BLOCKS_CREDIBLE: usize = 300;

/// Replaces forecasts of blocks that are not credible by a note that says why. If the baseline
/// differs from itself by as much, the note that a difference is measurable is replaced as well.
pub(super) fn forecasts(case: &Case<'_>, decision: &mut Decision) {
    let notes = &mut decision.notes;
    let (true, Some(log_ratio)) = (notes.iter().any(is_advice), case.log_ratio()) else {
        return;
    };
    let difference = log_ratio.abs().max(case.rules.delta());
    let floor = case.floor();
    let others = case.draft.others.filter(|others| others.are_many());
    if let Some(floor) = floor.filter(|floor| floor.ratio.ln().abs() >= difference) {
        let floor = floor.ratio;
        return replace(notes, is_advice, Note::FloorAsLarge { floor, others });
    }
    let forecast = notes.iter().find_map(|note| match note {
        Note::MoreBlocks { total, high, .. } => Some((*total, *high)),
        _ => None,
    });
    // For the effects of events the floor is a difference, not a ratio, and its spread is that of
    // counts.
    let Some((total, high)) = forecast.filter(|_| !case.draft.metric.is_of_events()) else {
        return;
    };
    let wide = floor.filter(|floor| {
        let after = half_width_after(floor, case.run.rules, total);
        after.is_some_and(|half_width| half_width > difference)
            || (others.is_some() && floor.size() > difference)
    });
    if wide.is_some() || high.is_none_or(|high| high > MOST_BLOCKS_CREDIBLE) {
        let of_forecast = |note: &Note| matches!(note, Note::MoreBlocks { .. });
        let floor = wide.map(|floor| Box::new(floor.clone()));
        replace(notes, of_forecast, Note::BlocksAlone { floor, others });
    }
}

/// Whether a note means nothing where the baseline differs from itself by as much.
fn is_advice(note: &Note) -> bool {
    matches!(
        note,
        Note::MoreBlocks { .. } | Note::MayMatter | Note::SmallerThanMatters
    )
}

/// Replaces all notes that are void by one; does nothing if none is void.
fn replace(notes: &mut Vec<Note>, is_void: impl Fn(&Note) -> bool, by: Note) {
    if let Some(at) = notes.iter().position(&is_void) {
        notes.retain(|note| !is_void(note));
        notes.insert(at, by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpusOfOthers;
    use crate::fixtures::{analyse, header, throughput, throughput_blocks};
    use readings::{MachineMetrics, Outcome, ServerMetrics, SystemMetrics, Trial};

    /// Ten blocks that leave a difference of 4% open; the second copy is `again` times the first.
    fn open_at(again: f64) -> Vec<Trial> {
        let rates: Vec<(f64, f64)> = [0.9, 1.02, 1.05, 0.88, 0.97, 0.99, 1.08, 0.86, 0.91, 0.94]
            .iter()
            .map(|share| (20_000.0, 20_000.0 * share))
            .collect();
        let mut trials = throughput_blocks(&rates);
        for trial in trials.iter_mut().filter(|trial| trial.baseline_copy) {
            let load = throughput(trial);
            load.requests = (load.requests as f64 * again) as u64;
        }
        trials
    }

    #[test]
    fn no_blocks_are_forecast_where_the_noise_floor_is_as_large() {
        let notes = |again| {
            let analysis = analyse(&header(10), &open_at(again));
            analysis.comparisons[0].notes.clone()
        };
        let is_forecast = |note: &Note| matches!(note, Note::MoreBlocks { .. });
        assert!(notes(1.0).iter().any(is_forecast), "{:?}", notes(1.0));
        let floored = notes(0.9);
        assert!(!floored.iter().any(is_forecast), "{floored:?}");
        assert!(
            matches!(floored[..], [Note::FloorAsLarge { .. }]),
            "{floored:?}"
        );
    }

    fn loads(trials: &mut [Trial]) -> impl Iterator<Item = (bool, u32, &mut readings::Reading)> {
        trials.iter_mut().map(|trial| {
            let (copy, block) = (trial.baseline_copy, trial.block);
            match &mut trial.outcome {
                Outcome::Done(reading) => (copy, block, &mut **reading),
                Outcome::Failed { .. } => unreachable!(),
            }
        })
    }

    /// Ten blocks that do not settle the difference. The second copy is alternately 16% above the
    /// first and as much below it: no bias, and a wide floor.
    fn with_wide_floor(share: f64) -> Vec<Trial> {
        let rates: Vec<(f64, f64)> = (0..10)
            .map(|at| {
                (
                    20_000.0,
                    20_000.0 * share * if at % 4 < 2 { 1.02 } else { 0.98 },
                )
            })
            .collect();
        let mut trials = throughput_blocks(&rates);
        for (copy, block, reading) in loads(&mut trials) {
            if copy {
                let load = reading.throughput.as_mut().unwrap();
                let factor = if block % 2 == 0 { 1.16 } else { 1.0 / 1.16 };
                load.requests = (load.requests as f64 * factor) as u64;
            }
        }
        trials
    }

    fn notes_of(trials: &[Trial]) -> Vec<Note> {
        let analysis = analyse(&header(10), trials);
        analysis.comparisons[0].notes.clone()
    }

    #[test]
    fn no_blocks_are_forecast_where_the_noise_floor_stays_as_wide() {
        // The difference is near the margin, and the floor would still be wider after the forecast.
        let notes = notes_of(&with_wide_floor(0.985));
        let Some(Note::BlocksAlone { floor, others }) = notes.last() else {
            panic!("{notes:?}");
        };
        let floor = floor.as_ref().unwrap();
        let (low, high) = (floor.low.unwrap(), floor.high.unwrap());
        assert!(low < 0.95 && high > 1.05, "{low} {high}");
        assert_eq!(*others, None);
    }

    /// The same, while other programs take so many CPUs.
    fn beside(cpus: f64, mut trials: Vec<Trial>) -> Vec<Trial> {
        for (_, _, reading) in loads(&mut trials) {
            let servers = ServerMetrics {
                user_s: 6.0,
                ..ServerMetrics::default()
            };
            let machine = MachineMetrics {
                cpus: 2,
                busy_s: Some(6.0 + 4.0 + cpus * 10.0),
                ..MachineMetrics::default()
            };
            reading.probed = Some(SystemMetrics {
                looked_s: 10.0,
                machine,
                servers: [("origin".to_owned(), servers)].into(),
                ..SystemMetrics::default()
            });
        }
        trials
    }

    #[test]
    fn on_a_disturbed_machine_the_share_of_others_is_told_instead_of_blocks() {
        // 4% apart, which ten blocks leave open, and a floor of up to 7% by its interval.
        let trials = || {
            let mut trials = open_at(1.0);
            for (copy, block, reading) in loads(&mut trials) {
                if copy {
                    let load = reading.throughput.as_mut().unwrap();
                    let factor = if block % 2 == 0 { 1.08 } else { 1.0 / 1.08 };
                    load.requests = (load.requests as f64 * factor) as u64;
                }
            }
            trials
        };
        let quiet = notes_of(&beside(0.0, trials()));
        assert!(
            matches!(quiet[..], [Note::MoreBlocks { .. }]),
            "credible on a quiet machine: {quiet:?}"
        );
        let notes = notes_of(&beside(1.4, trials()));
        let [Note::BlocksAlone { floor, others }] = &notes[..] else {
            panic!("{notes:?}");
        };
        assert!(floor.is_some());
        let CpusOfOthers { cpus, of_cpus } = others.unwrap();
        assert!((cpus - 1.4).abs() < 1e-9 && of_cpus == 2, "{others:?}");
    }

    #[test]
    fn a_forecast_that_may_be_of_many_hundred_blocks_is_none() {
        // Three blocks, 0% apart but for 14% either way: about 79 blocks, by chance 525.
        let rates = [
            (20_000.0, 21_400.0),
            (20_000.0, 18_800.0),
            (20_000.0, 20_100.0),
        ];
        let notes = {
            let analysis = analyse(&header(3), &throughput_blocks(&rates));
            analysis.comparisons[0].notes.clone()
        };
        let expected = Note::BlocksAlone {
            floor: None,
            others: None,
        };
        assert_eq!(notes, [expected]);
    }
}

//! Evidence beside other programs that take CPU time.
//!
//! A program that takes a CPU in bursts disturbs blocks in a way that few of them do not show: the
//! spread of three to five ratios can be small by luck. So beside such programs the spread counts as
//! no smaller than that of the noise floor, and no smaller than what the slices imply.

use readings::Condition;

use crate::comparison::pairs::Pairs;
use crate::comparison::pairs::pooling::Pool;
use crate::stats::sample::Sample;
use crate::trial::cells::Cells;
use crate::trial::others::of_reading;
use crate::{CpusOfOthers, Metric};

/// CPUs that others may take without notice: a kernel and its services always take some.
const OTHERS_CPUS: f64 = 0.1;
/// A verdict beside other programs that take many CPUs needs at least this many blocks.
pub(crate) const FEWEST_BLOCKS_BESIDE_OTHERS: usize = 5;

/// The CPUs that other programs took, as the mean over the trials of these conditions, if it is more
/// than on a quiet machine.
pub(crate) fn cpus_of_others<'a>(
    cells: &Cells<'_>,
    conditions: impl IntoIterator<Item = &'a Condition>,
) -> Option<CpusOfOthers> {
    let conditions = conditions.into_iter();
    let trials = conditions.flat_map(|condition| cells.of_condition(condition));
    let each: Vec<CpusOfOthers> = trials
        .filter_map(|cell| of_reading(cell.reading()?))
        .collect();
    let cpus = each.iter().map(|one| one.cpus).sum::<f64>() / each.len().max(1) as f64;
    let of_cpus = each.first()?.of_cpus;
    (cpus > OTHERS_CPUS).then_some(CpusOfOthers { cpus, of_cpus })
}

/// Whether so many blocks are too few beside other programs that take so many CPUs.
pub(crate) fn are_too_few(blocks: usize, others: Option<CpusOfOthers>) -> bool {
    blocks < FEWEST_BLOCKS_BESIDE_OTHERS && others.is_some_and(|others| others.are_many())
}

/// The standard deviation of the noise floor over blocks.
pub(crate) fn floor_sd(
    cells: &Cells<'_>,
    pool: &Pool<'_>,
    metric: Metric,
    baseline: &str,
) -> Option<f64> {
    let copies = pool.pairs(cells, metric, (baseline, true), (baseline, false));
    Some(copies.sample()?.sd)
}

/// The log ratios, summarised; beside other programs their spread is no smaller than that of the
/// floor and of the slices.
pub(crate) fn widened_sample(
    pairs: &Pairs,
    others: Option<CpusOfOthers>,
    floor_sd: Option<f64>,
) -> Option<Sample> {
    let mut sample = pairs.sample()?;
    if others.is_some() {
        let least = [floor_sd, pairs.sd_of_slices()].into_iter().flatten();
        sample.sd = least.fold(sample.sd, f64::max);
    }
    Some(sample)
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{analyse, header, throughput_blocks};
    use crate::{Note, Verdict, Warning};
    use readings::{MachineMetrics, Outcome, ServerMetrics, SystemMetrics, Trial};

    /// Blocks in which the balancer seems 12% faster, each time by nearly the same, while the
    /// baseline's copies differ by 15% one way or the other; other programs take `others` CPUs.
    fn blocks(count: usize, others: f64) -> Vec<Trial> {
        let mut trials = throughput_blocks(&vec![(1000.0, 1120.0); count]);
        for one in &mut trials {
            let Outcome::Done(reading) = &mut one.outcome else {
                unreachable!()
            };
            let load = reading.throughput.as_mut().unwrap();
            if one.baseline_copy {
                let factor = if one.block % 2 == 0 { 1.15 } else { 0.87 };
                load.requests = (load.requests as f64 * factor) as u64;
            }
            let servers = ServerMetrics {
                user_s: 2.0,
                system_s: 4.0,
                ..ServerMetrics::default()
            };
            reading.probed = Some(SystemMetrics {
                looked_s: 10.0,
                requests: load.requests,
                machine: MachineMetrics {
                    cpus: 2,
                    busy_s: Some(6.0 + 4.0 + others * 10.0),
                    ..MachineMetrics::default()
                },
                servers: [("origin".to_owned(), servers)].into(),
                ..SystemMetrics::default()
            });
        }
        trials
    }

    #[test]
    fn beside_other_programs_blocks_that_are_alike_by_luck_decide_nothing() {
        let quiet = analyse(&header(6), &blocks(6, 0.05));
        assert_eq!(quiet.comparisons[0].verdict, Verdict::Faster);
        let busy = analyse(&header(6), &blocks(6, 0.9));
        let c = &busy.comparisons[0];
        assert_eq!(c.verdict, Verdict::Inconclusive, "{:?}", c.notes);
        let (low, high) = c.interval().unwrap();
        assert!(low < 1.0 && high > 1.2, "{low} {high}");
        let told = busy.warnings.iter().find_map(|warning| match warning {
            Warning::OtherPrograms {
                others,
                least_difference,
            } => Some((others.cpus, others.of_cpus, *least_difference)),
            _ => None,
        });
        let (cpus, of_cpus, least) = told.unwrap();
        assert!((cpus - 0.9).abs() < 1e-9 && of_cpus == 2);
        assert!(least.unwrap() > 0.1, "{least:?}");
    }

    #[test]
    fn beside_other_programs_three_blocks_are_too_few() {
        let busy = analyse(&header(3), &blocks(3, 0.9));
        let c = &busy.comparisons[0];
        assert_eq!(c.verdict, Verdict::Inconclusive);
        assert!(
            matches!(c.notes[..], [Note::TooFewBesideOthers { needed: 5, .. }]),
            "{:?}",
            c.notes
        );
    }
}

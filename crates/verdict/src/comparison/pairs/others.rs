//! CPU time that other programs took beside a run.

use readings::Condition;

use crate::CpusOfOthers;
use crate::trial::cells::Cells;
use crate::trial::others::of_reading;

/// CPUs that others may take without notice: a kernel and its services always take some.
const OTHERS_CPUS: f64 = 0.1;

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

#[cfg(test)]
mod tests {
    use crate::fixtures::{analyse, header, reading, throughput, throughput_blocks};
    use crate::{Verdict, Warning};
    use readings::{MachineMetrics, ServerMetrics, SystemMetrics, Trial};

    /// Blocks in which the balancer seems 12% faster, each time by nearly the same, while the
    /// baseline's copies differ by 15% one way or the other; other programs take `others` CPUs.
    fn blocks(count: usize, others: f64) -> Vec<Trial> {
        let mut trials = throughput_blocks(&vec![(1000.0, 1120.0); count]);
        for one in &mut trials {
            let factor = match (one.baseline_copy, one.block % 2) {
                (false, _) => 1.0,
                (_, 0) => 1.15,
                _ => 0.87,
            };
            let load = throughput(one);
            load.requests = (load.requests as f64 * factor) as u64;
            let requests = load.requests;
            let servers = ServerMetrics {
                user_s: 2.0,
                system_s: 4.0,
                ..ServerMetrics::default()
            };
            reading(one).probed = Some(SystemMetrics {
                looked_s: 10.0,
                requests,
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
        assert_eq!(c.verdict, Verdict::Inconclusive, "{c:?}");
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
    fn beside_other_programs_three_blocks_tell_a_large_difference() {
        let mut trials = blocks(3, 0.9);
        for one in trials.iter_mut().filter(|one| one.subject != "direct") {
            let load = throughput(one);
            load.requests *= 15;
        }
        let busy = analyse(&header(3), &trials);
        let c = &busy.comparisons[0];
        assert_eq!(c.verdict, Verdict::Faster, "{c:?}");
        let (low, _) = c.interval().unwrap();
        assert!(low < 13.0, "the interval is wide: {low}");
    }
}

//! What each block says of a subject, metric by metric: what the figures of the table rest on.

use readings::{Condition, Journal};

use crate::metric::of_trial::{Datum, datum};
use crate::trial::cells::{Cell, Cells};
use crate::{Metric, Reason};

/// The blocks of a metric of a subject under a condition.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockFigures {
    pub condition: Condition,
    pub subject: String,
    pub metric: Metric,
    pub blocks: Vec<BlockFigure>,
}

/// What a block says of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockFigure {
    /// The block's number, from 1.
    pub block: u32,
    /// In the metric's unit; absent where the block cannot be used.
    pub value: Option<f64>,
    /// Whether enough answers of the block stand behind a quantile.
    pub is_resolved: bool,
    /// Why it cannot be used.
    pub reason: Option<Reason>,
}

/// The blocks of every metric that any trial of a journal has a figure of, by condition, subject and
/// metric. Background loads are left out.
pub fn block_figures(journal: &Journal) -> Vec<BlockFigures> {
    let journal = &*journal.by_load();
    let cells = Cells::of(&journal.header, journal.trials());
    let mut found = Vec::new();
    for metric in Metric::ALL.into_iter().filter(|one| cells.shows(*one)) {
        let of_metric: Vec<BlockFigures> = of_subjects(&cells, metric).collect();
        let blocks = || of_metric.iter().flat_map(|one| &one.blocks);
        if blocks().any(|block| block.value.is_some()) {
            found.extend(of_metric);
        }
    }
    found
}

fn of_subjects<'a>(
    cells: &'a Cells<'_>,
    metric: Metric,
) -> impl Iterator<Item = BlockFigures> + 'a {
    let of = move |condition: &'a Condition, subject: &'a String| {
        let trials = cells.judged(metric.load_loop(), condition, subject, false);
        let blocks = trials.into_iter();
        let blocks = blocks.filter_map(|(block, cell)| figure(block, cell, metric));
        let blocks: Vec<BlockFigure> = blocks.collect();
        (!blocks.is_empty()).then(|| BlockFigures {
            condition: condition.clone(),
            subject: subject.clone(),
            metric,
            blocks,
        })
    };
    let conditions = cells.conditions.iter();
    conditions.flat_map(move |condition| {
        let subjects = cells.subjects.iter();
        subjects.filter_map(move |subject| of(condition, subject))
    })
}

fn figure(block: u32, cell: &Cell<'_>, metric: Metric) -> Option<BlockFigure> {
    let (value, is_resolved, reason) = match datum(cell, metric) {
        Datum::NotMeasured => return None,
        Datum::Value(found) => (Some(found.value), true, None),
        Datum::Unresolved(found) => (Some(found.value), false, None),
        Datum::Unusable(reason) => (None, false, Some(reason)),
    };
    Some(BlockFigure {
        block,
        value,
        is_resolved,
        reason,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse;
    use testing::journals::journal;

    #[test]
    fn the_table_is_the_mean_of_the_blocks() {
        let journal = journal();
        let analysis = analyse(&journal);
        let blocks = block_figures(&journal);
        let of = |subject: &str, metric: Metric| {
            let mut all = blocks.iter();
            all.find(|one| one.subject == subject && one.metric == metric)
        };
        for metric in [Metric::RequestsPerS, Metric::LatencyUsP50] {
            for row in analysis
                .table
                .iter()
                .filter(|row| row.subject != "lighttpd")
            {
                let one = of(&row.subject, metric).unwrap();
                assert_eq!(one.blocks.len(), 6);
                let logs = one.blocks.iter().map(|block| block.value.unwrap().ln());
                let mean = (logs.sum::<f64>() / 6.0).exp();
                let shown = row.figure(metric).unwrap();
                assert!((mean / shown - 1.0).abs() < 1e-9, "{mean} {shown}");
            }
        }
        // What cannot be used says why.
        let lost = of("lighttpd", Metric::RequestsPerS).unwrap();
        let said = |block: &BlockFigure| block.value.is_none() && block.reason.is_some();
        assert!(lost.blocks.len() == 6 && lost.blocks.iter().all(said));
        let reason = lost.blocks[5].reason.clone();
        let failed = Reason::Failed("did not become ready within 10 s".to_owned());
        assert_eq!(reason, Some(failed));
    }
}

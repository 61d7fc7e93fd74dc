//! Where in its looks a run stands.

use serde::Serialize;

use crate::trial::cells::Cells;
use crate::{Looks, Rules};

/// Where in its looks a run stands.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Stage {
    /// The numbers of blocks at which the run looks; the last is all of them.
    pub looks: Looks,
    /// Blocks in which every declared subject was tried under every declared condition.
    pub blocks_done: u32,
    /// Which of the looks this is, from 1; absent between the looks, as when a run was stopped.
    pub look: Option<usize>,
    /// The error rate that each look may have, so that all of them together stay within the
    /// run's: p values after the correction of a question are compared with it.
    pub alpha_per_look: f64,
    /// The error rate of all looks together.
    #[serde(skip)]
    pub alpha: f64,
}

impl Stage {
    pub(crate) fn of(rules: &Rules, cells: &Cells<'_>) -> Self {
        let (blocks_done, blocks_begun) = cells.blocks();
        let looks = rules.looks.clone();
        // An incomplete block holds evidence beyond the look.
        let look = looks
            .look_at(blocks_done)
            .filter(|_| blocks_begun == blocks_done);
        Self {
            looks,
            blocks_done,
            look,
            alpha_per_look: rules.look_alpha(),
            alpha: rules.alpha(),
        }
    }

    /// Whether there is no look left.
    pub fn is_last(&self) -> bool {
        self.looks.next_look(self.blocks_done).is_none()
    }
}

#[cfg(test)]
mod tests {
    use crate::fixtures::{analyse, header, throughput_blocks};
    use crate::{Verdict, settled};
    use readings::{Outcome, Trial};

    /// Blocks in which the balancer keeps `share` of the throughput, `noise` more or less.
    fn blocks(count: usize, share: f64, noise: f64) -> Vec<Trial> {
        let rates: Vec<(f64, f64)> = (0..count)
            .map(|i| {
                let wobble = 1.0 + noise * ((i % 3) as f64 - 1.0);
                (20_000.0, 20_000.0 * share * wobble)
            })
            .collect();
        throughput_blocks(&rates)
    }

    #[test]
    fn a_run_may_stop_at_a_look_where_everything_is_settled() {
        let clear = blocks(20, 0.69, 0.01);
        for (done, look, may_stop) in [
            (9, None, false),
            (10, Some(1), true),
            (11, None, false),
            (20, Some(2), true),
        ] {
            let analysis = analyse(&header(30), &clear[..done * 3]);
            assert_eq!(analysis.stage.blocks_done, done as u32);
            assert_eq!(analysis.stage.look, look, "after {done}");
            assert_eq!(settled(&analysis), may_stop, "after {done}");
            assert_eq!(analysis.comparisons[0].verdict, Verdict::Slower);
        }
        let noisy = blocks(10, 0.97, 0.2);
        let analysis = analyse(&header(30), &noisy);
        assert_eq!(analysis.comparisons[0].verdict, Verdict::Inconclusive);
        assert!(!settled(&analysis));
        assert!(!analysis.stage.is_last());
    }

    #[test]
    fn a_block_that_was_only_begun_makes_no_look() {
        let rows = blocks(11, 0.69, 0.01);
        let analysis = analyse(&header(30), &rows[..31]);
        assert_eq!(
            (analysis.stage.blocks_done, analysis.stage.look),
            (10, None)
        );
        assert!(!settled(&analysis));
    }

    #[test]
    fn a_look_among_several_asks_for_more_than_the_only_one() {
        let rows = blocks(10, 0.69, 0.05);
        let (one, three) = (analyse(&header(10), &rows), analyse(&header(30), &rows));
        let width = |a: &crate::Analysis| {
            let (low, high) = a.comparisons[0].interval().unwrap();
            (high / low).ln()
        };
        // t(0.99167, 9) = 2.933 against t(0.975, 9) = 2.262.
        assert!((width(&three) / width(&one) - 2.933 / 2.262).abs() < 1e-3);
        assert!((one.stage.alpha_per_look - 0.05).abs() < 1e-12);
        assert!((three.stage.alpha_per_look - 0.05 / 3.0).abs() < 1e-12);
        // A p value between the two levels is a difference in the one and not in the other.
        let rows = blocks(10, 0.95, 0.078);
        let (one, three) = (analyse(&header(10), &rows), analyse(&header(30), &rows));
        let p = one.comparisons[0].p_value.unwrap();
        assert!(0.05 / 3.0 < p && p < 0.05, "{p}");
        assert_eq!(one.comparisons[0].verdict, Verdict::Slower);
        assert_eq!(three.comparisons[0].verdict, Verdict::Inconclusive);
    }

    #[test]
    fn what_cannot_be_measured_at_all_keeps_no_run_going() {
        let mut rows = blocks(10, 0.69, 0.01);
        for row in rows.iter_mut().filter(|r| r.subject == "balance") {
            row.outcome = Outcome::failed("did not become ready", readings::FailureCause::Subject);
        }
        assert!(settled(&analyse(&header(30), &rows)));
        // Some of it can be: the next blocks may bring the rest.
        let whole = blocks(10, 0.69, 0.01);
        for (row, good) in rows.iter_mut().zip(&whole).take(12) {
            row.outcome = good.outcome.clone();
        }
        let analysis = analyse(&header(30), &rows);
        assert_eq!(analysis.comparisons[0].verdict, Verdict::Invalid);
        assert!(!settled(&analysis));
    }

    #[test]
    fn a_run_without_comparisons_has_no_reason_to_stop() {
        let mut header = header(30);
        header.subjects.truncate(1);
        let rows: Vec<Trial> = blocks(10, 1.0, 0.0)
            .into_iter()
            .filter(|r| r.subject == "direct")
            .collect();
        let analysis = analyse(&header, &rows);
        assert_eq!(analysis.stage.look, Some(1));
        assert!(!settled(&analysis));
    }
}

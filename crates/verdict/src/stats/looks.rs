//! Interim looks at a run's data, and their share of the error budget.

use serde::Serialize;

/// The numbers of blocks after which a run looks at its data, and may stop.
///
/// A run of up to 30 blocks looks after 10, 20 and 30, and each look may spend a third of the
/// error budget: by Bonferroni's inequality the whole run then errs no more often than one that
/// looks once. A run of any other length has a fixed design: one look at its end, with the whole
/// budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Looks(Vec<u32>);

impl Looks {
    /// The looks of a run that may stop early.
    pub const SEQUENTIAL: [u32; 3] = [10, 20, 30];

    /// The looks of a run that plans so many blocks.
    pub fn of(planned: u32) -> Self {
        if Some(&planned) == Self::SEQUENTIAL.last() {
            Self(Self::SEQUENTIAL.to_vec())
        } else {
            Self(vec![planned])
        }
    }

    /// The numbers of blocks, ascending; at least one.
    pub fn blocks(&self) -> &[u32] {
        &self.0
    }

    /// The most blocks that the run has.
    pub fn planned(&self) -> u32 {
        self.0.last().copied().unwrap_or(0)
    }

    /// Whether the run looks once only, at its end.
    pub fn is_fixed(&self) -> bool {
        self.0.len() == 1
    }

    /// The share of the error budget that each look may spend.
    pub fn share(&self) -> f64 {
        1.0 / self.0.len() as f64
    }

    /// The number of blocks at the next look of a run that has done so many; nothing after the
    /// last look.
    pub fn next_look(&self, blocks: u32) -> Option<u32> {
        self.0.iter().copied().find(|look| *look > blocks)
    }

    /// Which look, from 1, so many blocks are; nothing between the looks.
    pub fn look_at(&self, blocks: u32) -> Option<usize> {
        Some(self.0.iter().position(|look| *look == blocks)? + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_blocks_have_three_looks_and_any_other_number_one() {
        let looks = Looks::of(30);
        assert_eq!(looks.blocks(), [10, 20, 30]);
        assert!((looks.share() - 1.0 / 3.0).abs() < 1e-12);
        for (done, next, at) in [
            (0, Some(10), None),
            (9, Some(10), None),
            (10, Some(20), Some(1)),
            (19, Some(20), None),
            (20, Some(30), Some(2)),
            (30, None, Some(3)),
            (31, None, None),
        ] {
            assert_eq!(looks.next_look(done), next, "after {done}");
            assert_eq!(looks.look_at(done), at, "after {done}");
        }
        for planned in [1, 5, 10, 20, 29, 40] {
            let looks = Looks::of(planned);
            assert_eq!(looks.blocks(), [planned]);
            assert!(looks.is_fixed());
            assert_eq!(looks.share(), 1.0);
        }
    }
}

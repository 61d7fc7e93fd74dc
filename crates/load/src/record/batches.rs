//! The response times of an open loop, batch by batch.

use readings::{Batch, Histogram};

/// Most batches; before there are more, neighbours are merged. Enough for a variance, and a bound on
/// memory.
const BATCHES_MAX: usize = 64;
/// With fewer, no variance is known.
const BATCHES_MIN: usize = 3;

/// What a thread records of batches: nothing per answer, and little after each slice.
#[derive(Debug)]
pub(crate) struct BatchRecorder {
    /// The response times of all slices so far.
    so_far: Histogram,
    slices: usize,
    /// Slices per batch; the last batch may have fewer.
    slices_per_batch: usize,
    batches: Vec<Histogram>,
}

impl BatchRecorder {
    pub(crate) fn new() -> Self {
        Self {
            so_far: Histogram::empty(),
            slices: 0,
            slices_per_batch: 1,
            batches: Vec::new(),
        }
    }

    /// A slice is over; `response` has the times of all slices.
    pub(crate) fn end_slice(&mut self, response: &Histogram) {
        let now = response.compact();
        let slice = now.since(&self.so_far);
        self.so_far = now;
        if self.slices == BATCHES_MAX * self.slices_per_batch {
            self.merge_pairs();
        }
        match self.batches.get_mut(self.slices / self.slices_per_batch) {
            Some(batch) => batch.merge(&slice),
            None => self.batches.push(slice),
        }
        self.slices += 1;
    }

    fn merge_pairs(&mut self) {
        self.slices_per_batch *= 2;
        let merged = self.batches.chunks(2).map(|pair| {
            let mut sum = Histogram::empty();
            pair.iter().for_each(|one| sum.merge(one));
            sum
        });
        self.batches = merged.collect();
    }

    /// Adds another thread's batches of the same slices.
    pub(crate) fn merge(&mut self, part: &BatchRecorder) {
        for (sum, one) in self.batches.iter_mut().zip(&part.batches) {
            sum.merge(one);
        }
    }

    /// Nothing with too few batches.
    pub(crate) fn reading(&self) -> Vec<Batch> {
        match self.batches.len() < BATCHES_MIN {
            true => Vec::new(),
            false => Batch::of(&self.batches),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_stay_bounded_and_keep_every_answer_in_its_slice() {
        let recorded = |slices: u64| {
            let mut response = Histogram::new();
            let mut recorder = BatchRecorder::new();
            for slice in 0..slices {
                // Later slices are slower.
                response.record_many_ns(1_000_000 + slice * 10_000, 10);
                recorder.end_slice(&response);
            }
            recorder
        };
        assert_eq!(recorded(2).reading(), []);
        for (slices, batches, each) in [(3, 3, 10), (64, 64, 10), (65, 33, 20), (300, 38, 80)] {
            let found = recorded(slices).reading();
            assert_eq!(
                (found.len(), found[0].requests),
                (batches, each),
                "{slices}"
            );
            let all: u64 = found.iter().map(|one| one.requests).sum();
            assert_eq!(all, slices * 10);
            let (first, last) = (found[0], found[batches - 1]);
            assert_eq!((first.above_p50, last.above_p50), (0, last.requests));
        }
        let mut both = recorded(5);
        both.merge(&recorded(5));
        assert!(both.reading().iter().all(|one| one.requests == 20));
    }
}

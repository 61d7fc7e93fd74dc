//! One load on its own, as `weigh load` makes it.

use readings::LoadReading;

use crate::trial::lag::{LateClient, late_at};
use crate::trial::overload::{Overload, overload};
use crate::trial::pauses::{WithoutPauses, without_pauses};
use crate::{Flaw, load_flaws};

/// A load, judged: what a report of it rests on.
#[derive(Clone, Debug)]
pub struct JudgedLoad<'a> {
    pub reading: &'a LoadReading,
    /// Why it cannot be used; empty when it can.
    pub flaws: Vec<Flaw>,
    /// The client's lag, where it is a good part of the 99th percentile and not of the median.
    pub late_tail: Option<LateClient>,
    /// The latency without the pauses of the client, where there were any.
    pub without_pauses: Option<WithoutPauses>,
    pub overload: Option<Overload>,
}

impl<'a> JudgedLoad<'a> {
    pub fn of(reading: &'a LoadReading) -> Self {
        let is_late = |quantile| late_at(reading, quantile);
        Self {
            reading,
            flaws: load_flaws(reading),
            late_tail: is_late(0.99).filter(|_| is_late(0.5).is_none()),
            without_pauses: without_pauses(reading),
            overload: overload(reading),
        }
    }
}

//! What the readings of a run say, and how far that can be trusted.
//!
//! Everything here is a pure function of a run's journal: no file, no clock, no random
//! number but from a seed that the caller gives.
//! [`analyse`] goes the whole way; [`reasons`] judges one load on its own.
//!
//! The unit of evidence is the block. Requests and slices inside a block are never treated as
//! independent samples: each block gives one log ratio of a subject to the baseline, and the
//! interval comes from how these differ from block to block.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod analysis;
mod bottleneck;
pub mod capacity;
mod cells;
mod compare;
mod decide;
pub mod diagnose;
mod events;
mod floor;
mod holm;
mod latency_curve;
mod looks;
mod machine;
mod notes;
mod pairs;
mod rules;
mod sample;
mod settings;
pub mod simulate;
mod slices;
pub mod steady;
mod student;
mod table;
pub mod text;
pub mod usl;
mod validity;
mod warnings;

#[cfg(test)]
mod fixtures;

pub use analysis::{
    Analysis, FailureCount, InvalidTrial, analyse, analyse_with, may_stop, settled,
};
pub use bottleneck::{Bottleneck, Effect, Finding, Standing, bottlenecks};
pub use cells::{latest, trial_flaws};
pub use compare::{BlockRatio, Comparison, Metric};
pub use decide::{FEWEST_BLOCKS, MOST_BLOCKS_ADVISED, Verdict};
pub use events::EventsRow;
pub use floor::NoiseFloor;
pub use latency_curve::{
    BoundRate, Contrast, Crossing, CurveRow, Estimate, LatencyCurves, Lower, Passes, SubjectCurve,
};
pub use looks::{Looks, Stage};
pub use machine::{ProbesCost, machine_reasons};
pub use notes::{FailuresOf, FullRateOf, Note, Place, Warning};
pub use rules::Rules;
pub use settings::{SettingDifference, SettingValue, SideBySide};
pub use student::{t_quantile, t_two_sided_p};
pub use table::SubjectRow;
pub use validity::{late_at, reasons};

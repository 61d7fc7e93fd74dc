//! What the readings of a run say, and how far that can be trusted.
//!
//! Everything here is a pure function of a run's journal: no file, no clock, no random
//! number but from a seed that the caller gives.
//! [`analyse`] goes the whole way; [`load_flaws`] judges one load on its own.
//!
//! The unit of evidence is the block. Requests and slices inside a block are never treated as
//! independent samples: each block gives one log ratio of a subject to the baseline, and the
//! interval comes from how these differ from block to block.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod analysis;
pub mod bottleneck;
mod bound;
pub mod capacity;
mod cells;
mod compare;
mod congestion;
mod credible;
mod decide;
mod dependence;
pub mod diagnose;
mod events;
mod flaw;
mod floor;
mod forecast;
mod gates;
mod holm;
mod host_fault;
mod interactions;
mod lag;
mod lasting;
mod latency_curve;
mod looks;
mod loops;
mod machine;
mod margin;
mod metric;
mod notes;
mod others;
mod outlook;
mod overload;
mod pairs;
mod path;
mod pauses;
pub mod plan;
mod pooling;
mod robust;
mod rules;
mod sample;
mod settings;
mod shift;
pub mod simulate;
mod slices;
mod starts;
pub mod steady;
mod student;
mod table;
pub mod text;
mod tiers;
mod tls;
mod uncounted_upstreams;
pub mod usl;
mod validity;
mod warnings;
mod withhold;

#[cfg(test)]
mod fixtures;

pub use analysis::{
    Analysis, FailureCount, InvalidTrial, analyse, analyse_with, at_a_look, may_stop, settled,
};
pub use bottleneck::{Bottleneck, Effect, Evidence, Finding, Standing, bottlenecks};
pub use bound::Bound;
pub use cells::{latest, trial_flaws};
pub use compare::{BlockRatio, Comparison};
pub use congestion::{CongestionSummary, Transport};
pub use decide::{FEWEST_BLOCKS, Verdict};
pub use events::{EventsRow, FailureScenario, FailureTally, simulate_failures};
pub use flaw::{Flaw, FullQueue, Reason, TrialFlaw};
pub use floor::NoiseFloor;
pub use forecast::{FORECAST_CONFIDENCE, MOST_BLOCKS_ADVISED};
pub use gates::{GateOutcome, GateReason, GateResult, judge_capacity_gates, judge_gates};
pub use host_fault::HostFault;
pub use interactions::{Dependence, Interaction, Level};
pub use lag::{LagRemedy, LateClient, late_at};
pub use lasting::is_lasting;
pub use latency_curve::{
    BoundRate, Contrast, Crossing, CurveRow, Estimate, LatencyCurves, Lower, Passes, PointFlaw,
    SubjectCurve,
};
pub use looks::{Looks, Stage};
pub use loops::Loop;
pub use machine::{ProbesCost, machine_flaws};
pub use metric::Metric;
pub use notes::{FailuresOf, FullRateOf, Note, Place, Warning};
pub use others::CpusOfOthers;
pub use outlook::{Outlook, outlook};
pub use overload::{Overload, overload};
pub use pauses::{BlockPauses, WithoutPauses, without_pauses};
pub use robust::Robust;
pub use rules::Rules;
pub use settings::{SettingDifference, SettingValue, SideBySide};
pub use shift::{SHIFT_QUANTILES, Shift, ShiftAt};
pub use starts::Starts;
pub use student::{t_quantile, t_two_sided_p};
pub use table::SubjectRow;
pub use tiers::{PairWithheld, SubjectPair, TierMember, Tiers};
pub use tls::TlsSummary;
pub use validity::load_flaws;

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

mod comparison;
mod metric;
mod rules;
pub mod simulate;
mod stats;
pub mod studies;
mod summary;
mod trial;
pub mod words;

#[cfg(test)]
mod fixtures;

pub use comparison::compare::Unresolved;
pub use comparison::events::{FailureScenario, FailureTally, simulate_failures};
pub use comparison::interactions::{Dependence, Interaction, Level};
pub use comparison::record::comparison::Comparison;
pub use comparison::record::floor::NoiseFloor;
pub use comparison::record::notes::{FailuresOf, FullRateOf, Note};
pub use comparison::record::ratio::{BlockRatio, Bound};
pub use comparison::record::verdict::Verdict;
pub use comparison::tiers::{PairWithheld, SubjectPair, TierMember, Tiers};
pub use metric::quantile::{QuantileBound, QuantileFigure, ResolvedBy};
pub use metric::{Metric, Unit};
pub use rules::Rules;
pub use stats::forecast::{FORECAST_CONFIDENCE, MOST_BLOCKS_ADVISED};
pub use stats::looks::Looks;
pub use stats::robust::Robust;
pub use stats::sample::FEWEST_BLOCKS;
pub use stats::steady;
pub use stats::student::{t_quantile, t_two_sided_p};
pub use studies::bottleneck::{Bottleneck, Effect, Evidence, Finding, Standing, bottlenecks};
pub use studies::buffering::{Cause, HeldBack};
pub use studies::curve::{
    BoundRate, Contrast, Crossing, CurveRow, Estimate, LatencyCurves, Lower, Passes, PointFlaw,
    SubjectCurve, settling_requests,
};
pub use studies::gates::{GateOutcome, GateReason, GateResult, judge_capacity_gates, judge_gates};
pub use studies::growth::slope;
pub use studies::growth::{Bend, Exponent, Growing, Growth, GrowthLevel, GrowthOver, Shape, Slope};
pub use studies::load::JudgedLoad;
pub use studies::scaling as usl;
pub use studies::shares::{BackEndShare, Hits, Shares};
pub use studies::shift::{SHIFT_QUANTILES, Shift, ShiftAt};
pub use studies::survival::Survival;
pub use studies::{bottleneck, capacity, diagnose, plan};
pub use summary::by_request::RequestRow;
pub use summary::congestion::{CongestionSummary, Transport};
pub use summary::levels::LevelComparison;
pub use summary::place::Place;
pub use summary::probes::ProbesCost;
pub use summary::ranking::{Ranked, Ranking, of_answer, primary};
pub use summary::settings::upgrades::{Upgrade, UpgradeChange, Version};
pub use summary::settings::{SettingDifference, SettingValue, SideBySide};
pub use summary::stage::Stage;
pub use summary::table::{
    BlockFigure, BlockFigures, EventsRow, ServerRow, SubjectRow, block_figures,
};
pub use summary::tls::TlsSummary;
pub use summary::warnings::Warning;
pub use summary::warnings::effect::{WarningEffect, with_effect};
pub use summary::warnings::run::is_of_handshakes;
pub use summary::{
    Analysis, FailureCount, InvalidTrial, analyse, analyse_with, at_a_look, may_stop, settled,
};
pub use trial::cells::cell::{latest, trial_flaws};
pub use trial::cells::judged::{
    Distribution, JudgedTrial, Judgement, LoadJudgement, judged_trials,
};
pub use trial::drift::{Drift, still_warming};
pub use trial::flaw::host_fault::HostFault;
pub use trial::flaw::{Flaw, FullQueue, Reason, TrialFlaw};
pub use trial::lag::{LagRemedy, LateClient, late_at};
pub use trial::lasting::is_lasting;
pub use trial::loops::Loop;
pub use trial::others::CpusOfOthers;
pub use trial::overload::{Overload, OverloadedBlocks, overload, overloaded_blocks};
pub use trial::pauses::{BlockPauses, WithoutPauses, without_pauses};
pub use trial::starts::Starts;
pub use trial::validity::machine::machine_flaws;
pub use trial::validity::{idle_flaw, load_flaws};

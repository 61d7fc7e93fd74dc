//! The events of a run.

use std::path::PathBuf;

use readings::{Condition, RateChoice, Trial, WarmUpChoice};
use verdict::TrialFlaw;
use verdict::plan::Decides;

#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent {
    /// The run starts.
    Begins {
        /// Trials left to measure.
        trials: usize,
        /// Groups (a condition in a block) left to measure.
        groups: usize,
        groups_per_block: usize,
        /// Blocks of the whole run at most.
        blocks: u32,
        /// Estimated duration of these groups, s.
        estimated_s: f64,
        /// Estimated duration of what comes after them, s: the searches for bottlenecks.
        after_s: f64,
        /// The run's folder.
        folder: PathBuf,
    },
    /// A group starts.
    GroupBegins {
        block: u32,
        /// Blocks of the run, as it is planned now.
        blocks: u32,
        condition: Condition,
        /// Groups that are left, this one included.
        left: usize,
    },
    /// The current activity, such as "starting servers".
    Phase {
        /// The activity.
        what: String,
    },
    /// Progress of a load.
    Load {
        subject: String,
        /// Good answers since the last event.
        requests: u64,
        /// Failures since the last event.
        errors: u64,
    },
    /// Slices of the load under way have ended.
    SlicesEnd {
        /// The sum of their planned lengths, s.
        planned_s: f64,
        /// How long they took, s.
        took_s: f64,
    },
    /// A trial's row was written.
    TrialEnds {
        /// The row.
        trial: Box<Trial>,
    },
    /// A group is done.
    GroupEnds,
    /// A group is measured again, since some of its trials cannot be used.
    Retry {
        /// Why, one for each such trial.
        reasons: Vec<RetryReason>,
        /// Retries left, this one included.
        left: u32,
    },
    /// The search for a subject's bottleneck starts, after the last block.
    BottleneckBegins {
        condition: Condition,
        subject: String,
        /// Searches left, this one included.
        left: usize,
    },
    /// All declared comparisons are settled, so the remaining blocks are skipped.
    Settled {
        /// Blocks measured.
        block: u32,
        /// Blocks planned.
        blocks: u32,
    },
    /// What the run can decide, by its blocks so far; said at most once, and after each change of the
    /// plan.
    Decides(Decides),
    /// Trials that cannot be used after the last block.
    Unusable {
        trials: Vec<UnusableTrial>,
        /// Groups that are measured again for it; 0 if none is.
        again: usize,
    },
    /// The rate of the open loops was chosen.
    RateChosen(RateChoice),
    /// The warm-up was made longer.
    WarmUpChosen(WarmUpChoice),
    /// The first block showed that starting servers takes longer than planned.
    StartsTake(StartsTake),
    /// What the run is waiting for, or does instead; of no interest once it is over.
    Note {
        /// A line.
        text: String,
    },
    /// A warning for the reader of the result.
    Warning {
        /// The sentence.
        text: String,
    },
}

/// What starting servers takes, where it is more than was planned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StartsTake {
    /// In a block, s.
    pub starts_s: f64,
    /// The same, as planned.
    pub planned_s: f64,
    /// The whole run with that, s.
    pub run_s: f64,
    /// Blocks of the run.
    pub blocks: u32,
}

/// Why a trial is measured again.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryReason {
    /// The trial's number.
    pub trial: u32,
    pub subject: String,
    pub why: WhyRetry,
}

/// A subject that cannot be used in a block.
#[derive(Clone, Debug, PartialEq)]
pub struct UnusableTrial {
    pub block: u32,
    pub condition: Condition,
    pub subject: String,
    pub why: WhyRetry,
}

#[derive(Clone, Debug, PartialEq)]
pub enum WhyRetry {
    /// It failed, for this reason.
    Failed(String),
    /// It was measured, but cannot be used, or only in part.
    Flawed(Vec<TrialFlaw>),
}

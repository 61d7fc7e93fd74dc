//! What a run reports.

use std::path::PathBuf;

use readings::{Condition, RateChoice, Trial};

/// What a run reports while it goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent {
    /// It begins.
    Begins {
        /// Trials still to make.
        trials: usize,
        /// Groups (a condition in a block) still to make.
        groups: usize,
        /// Groups of one block.
        groups_per_block: usize,
        /// Blocks of the whole run, at most.
        blocks: u32,
        /// About how long it takes, s.
        estimated_s: f64,
        /// Where everything is kept.
        folder: PathBuf,
    },
    /// A condition in a block begins.
    GroupBegins {
        /// The block.
        block: u32,
        /// Blocks of the run.
        blocks: u32,
        /// The condition.
        condition: Condition,
    },
    /// What is being done now, such as "starting servers".
    Phase {
        /// The words.
        what: String,
    },
    /// Load goes on.
    Load {
        /// The subject.
        subject: String,
        /// Good answers since the last event.
        requests: u64,
        /// Failures since the last event.
        errors: u64,
    },
    /// A trial's row was written.
    TrialEnds {
        /// The row.
        trial: Box<Trial>,
    },
    /// A condition in a block is done.
    GroupEnds,
    /// A condition in a block is measured again, since some of its trials cannot be used.
    Retry {
        /// What cannot be used, a sentence fragment each.
        reasons: Vec<String>,
        /// How often it can still be made.
        left: u32,
    },
    /// After the last block: what limits a subject is looked for.
    BottleneckBegins {
        /// The condition.
        condition: Condition,
        /// The subject.
        subject: String,
        /// Subjects and conditions that are left, this one among them.
        left: usize,
    },
    /// All that was declared is settled: the blocks that are left are not made.
    Settled {
        /// Blocks that were made.
        block: u32,
        /// Blocks that were planned.
        blocks: u32,
    },
    /// The rate at which latency is compared was chosen.
    RateChosen(RateChoice),
    /// Something to know.
    Warning {
        /// The sentence.
        text: String,
    },
}

//! The interface by which a run uses an agent; a fake implements it in tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::protocol::wire::{Answer, DriveOrder, Driven, LoadOrder, Loaded, Order};

/// How often a waiting caller gets its turn, unless it asks for another interval.
pub(super) const WAIT: Duration = Duration::from_millis(50);

/// Why an order was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The agent could not be started or was lost.
    #[error("lost the agent: {0}")]
    Lost(String),
    /// The agent reported a failure.
    #[error("{0}")]
    Failed(String),
}

/// The offset of another machine's clocks to this one's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clock {
    /// How far the other CLOCK_REALTIME is ahead, ns.
    pub ahead_ns: i64,
    /// The same of CLOCK_MONOTONIC, which starts at boot, ns.
    pub monotonic_ahead_ns: i64,
    /// The round trip in which that was measured, ns: the error is at most half of it.
    pub round_trip_ns: i64,
}

/// Receives the progress of a load.
pub trait LoadObserver {
    /// Good answers and failures of a segment since the last call, a few times a second.
    fn progress(&mut self, segment: usize, requests: u64, errors: u64);

    /// Called at least once in the observer's interval. `opened_ns` is given once a measured window
    /// has opened: when, by CLOCK_MONOTONIC of the load's machine.
    fn tick(&mut self, opened_ns: Option<i64>) {
        let _ = opened_ns;
    }

    /// The measured window of a segment has closed. Called where the order asks for windows.
    fn window_closes(&mut self, segment: usize) {
        let _ = segment;
    }

    /// A row of the load is over. Called where the order asks for rows.
    fn row(&mut self, row: Box<load::Row>) {
        let _ = row;
    }

    /// The longest time between two ticks.
    fn interval(&self) -> Duration {
        WAIT
    }
}

impl<F: FnMut(usize, u64, u64)> LoadObserver for F {
    fn progress(&mut self, segment: usize, requests: u64, errors: u64) {
        self(segment, requests, errors);
    }
}

/// An agent, as a run sees it. Its methods fail when it is lost, or reports a failure.
pub trait AgentHandle: Send {
    /// Gives an order and waits for its answer; waiting for a server ends when `stop` is set.
    fn ask_unless(&mut self, order: &Order, stop: &AtomicBool) -> Result<Answer, AgentError>;

    /// Gives an order and waits for its answer.
    fn ask(&mut self, order: &Order) -> Result<Answer, AgentError> {
        self.ask_unless(order, &AtomicBool::new(false))
    }

    /// Has a load made. When `stop` is set the load is cut short and what was measured is
    /// returned.
    fn load(
        &mut self,
        order: LoadOrder,
        stop: &AtomicBool,
        observer: &mut dyn LoadObserver,
    ) -> Result<Loaded, AgentError>;

    /// Has an outside driver run once. When `stop` is set the driver is killed.
    fn drive(&mut self, order: DriveOrder, stop: &AtomicBool) -> Result<Driven, AgentError>;

    /// Measures the offset of its clocks to this machine's.
    fn clock(&mut self) -> Result<Clock, AgentError>;

    /// Why it is gone, if it is.
    fn gone(&mut self) -> Option<AgentError>;

    /// Ends it with all that it has started. If it does not confirm that, returns its folder, which
    /// identifies it.
    fn end(self: Box<Self>) -> Option<PathBuf>;

    /// Identifies the network namespace that it is in, on any machine: `BOOT_ID/INODE`.
    fn network(&self) -> &str;

    /// The path of `weigh` where it runs.
    fn program(&self) -> &Path;
}

//! A server that was started, and what is under way with it.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ExitStatus};
use std::time::Instant;

use net::process::status_unreaped;
use readings::ServerStart;

use crate::kernel::cgroup::Cgroup;
use crate::kernel::proc_files::tree;
use crate::protocol::wire::StartServer;
use crate::serving::probe::{Probe, ReadinessWait};
use crate::serving::quota::ServerQuota;

pub(super) struct Server {
    pub(super) child: Child,
    pub(super) logs: Vec<String>,
    /// The file in its folder in which it counts what it receives.
    pub(super) counts: Option<String>,
    pub(super) ended: Option<ExitStatus>,
    /// The control group of the server and of everything that it starts; `None` without control
    /// groups.
    pub(super) group: Option<Cgroup>,
    /// Whether its processes are suspended.
    pub(super) is_suspended: bool,
    /// The limit on its CPU time, if it has one.
    pub(super) quota: Option<ServerQuota>,
    /// Its latest reload.
    pub(super) reload: Option<Reloading>,
    pub(super) stopping: Option<Stopping>,
    /// The wait of [`is_ready`](super::Servers::is_ready).
    pub(super) waiting: Option<ReadinessWait>,
    /// When its process began, by CLOCK_MONOTONIC.
    pub(super) began_ns: i64,
    /// How it started, once it was ready.
    pub(super) start: Option<ServerStart>,
}

/// A server that was sent its first signal.
pub(super) struct Stopping {
    /// The number of the signal that was sent last, and when.
    pub(super) signal: usize,
    pub(super) since: Instant,
    /// Its processes at that time: those that it leaves behind are killed.
    pub(super) family: Vec<i32>,
    pub(super) ended_before: bool,
}

impl Server {
    /// A server whose process began at that time, by CLOCK_MONOTONIC.
    pub(super) fn begun(
        child: Child,
        began_ns: i64,
        group: Option<Cgroup>,
        order: &StartServer,
    ) -> Self {
        Self {
            child,
            logs: order.logs.clone(),
            counts: order.counts.clone(),
            ended: None,
            group,
            is_suspended: false,
            quota: None,
            reload: None,
            stopping: None,
            waiting: None,
            began_ns,
            start: None,
        }
    }

    pub(super) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub(super) fn processes(&self) -> Vec<i32> {
        match &self.group {
            Some(group) => group.processes(),
            None => tree(self.pid()),
        }
    }

    /// Its exit status, once it has ended. Only [`kill_family`](super::stop::kill_family) reaps it: until then its process
    /// ID, which is also that of its process group, is not reused.
    pub(super) fn status(&self) -> Option<ExitStatus> {
        status_unreaped(self.pid()).ok().flatten()
    }
}

/// A reload that was begun.
pub(super) struct Reloading {
    /// The server's processes before the reload.
    pub(super) pids: Vec<i32>,
    /// How much the server had printed before, bytes.
    pub(super) output_bytes: u64,
    /// The command, until it has ended.
    pub(super) command: Option<ReloadCommand>,
    /// The request that checks whether it is in effect, while it is under way.
    pub(super) probe: Option<Probe>,
}

/// A running command; dropping it kills it.
pub(super) struct ReloadCommand(pub(super) Child);

impl Drop for ReloadCommand {
    fn drop(&mut self) {
        // Fails only if the command has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(super) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("status {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        _ => "for an unknown reason".to_string(),
    }
}

//! Suspends and stops servers.

use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use net::os;

use super::Servers;
use super::server::Stopping;
use crate::kernel::cgroup::Cgroup;
use crate::kernel::proc_files::tree;
use crate::kernel::signals::{SIGKILL, kill_listed, signal_all_listed};

const SIGCONT: i32 = 18;
const SIGSTOP: i32 = 19;

impl Servers {
    /// Suspends all processes of a server (SIGSTOP), or resumes them.
    pub(crate) fn suspend(&mut self, server: &str, suspended: bool) -> Result<(), String> {
        const ATTEMPTS: usize = 100;
        let signal = if suspended { SIGSTOP } else { SIGCONT };
        let one = self
            .running
            .get_mut(server)
            .ok_or_else(|| format!("`{server}` does not run"))?;
        one.is_suspended = suspended;
        match signal_all_listed(|| one.processes(), signal, ATTEMPTS).contains(&one.pid()) {
            true => Ok(()),
            false => Err(format!("cannot send a signal to `{server}`: it has ended")),
        }
    }

    /// Sends a server the first signal that stops it, and does not wait. Nothing happens if it does
    /// not run, or was sent it before.
    pub(crate) fn begin_stop(&mut self, server: &str, signal: i32) {
        if self.running.get(server).is_some_and(|one| one.is_suspended) {
            // Suspended processes do not handle the signal, and would be killed in the end.
            // Resuming them fails only if the server has ended.
            let _ = self.suspend(server, false);
        }
        let Some(one) = self.running.get_mut(server) else {
            return;
        };
        if one.stopping.is_some() {
            return;
        }
        // The limit ends first: throttled processes end slowly.
        one.quota = None;
        let pid = one.pid();
        let stopping = Stopping {
            signal: 0,
            since: Instant::now(),
            family: tree(pid),
            ended_before: one.ended.is_some() || one.status().is_some(),
        };
        if !stopping.ended_before {
            let _ = os::kill(pid, signal);
        }
        one.stopping = Some(stopping);
    }

    /// Goes on stopping a server, without waiting: sends the first signal, later each next one when
    /// the time of the one before is over, and in the end kills all that is left. Returns whether that
    /// was done, which takes several calls.
    pub(crate) fn poll_stop(&mut self, server: &str, signals: &[(i32, Duration)]) -> bool {
        // One that does not run is stopped.
        let is_over = self.stop_step(server, signals).unwrap_or(true);
        if is_over {
            self.end_stop(server);
        }
        is_over
    }

    /// Stops a server: sends each signal and waits in turn, then kills all that is left; at once
    /// when `hurry` is set. Returns whether it had to be killed, and whether it had ended before.
    pub(crate) fn stop(
        &mut self,
        server: &str,
        signals: &[(i32, Duration)],
        hurry: &AtomicBool,
    ) -> Option<(bool, bool)> {
        while !self.stop_step(server, signals)? && !hurry.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(5));
        }
        self.end_stop(server)
    }

    /// Sends a server the signal that is due. Returns whether it has ended, or all signals have had
    /// their time; `None` if it does not run.
    fn stop_step(&mut self, server: &str, signals: &[(i32, Duration)]) -> Option<bool> {
        if let Some((signal, _)) = signals.first() {
            self.begin_stop(server, *signal);
        }
        let one = self.running.get_mut(server)?;
        // Also of a server whose time went by while others were waited for.
        let has_ended = one.status().is_some();
        let pid = one.pid();
        let Some(stopping) = one.stopping.as_mut().filter(|_| !has_ended) else {
            return Some(true);
        };
        let wait = signals.get(stopping.signal).map(|(_, wait)| *wait);
        if wait.is_some_and(|wait| stopping.since.elapsed() < wait) {
            return Some(false);
        }
        let Some((next, _)) = signals.get(stopping.signal + 1) else {
            return Some(true);
        };
        let _ = os::kill(pid, *next);
        stopping.signal += 1;
        stopping.since = Instant::now();
        Some(false)
    }

    /// Kills what is left of a server. Returns whether the server itself was, and whether it had ended
    /// before it was to stop.
    fn end_stop(&mut self, server: &str) -> Option<(bool, bool)> {
        let mut one = self.running.remove(server)?;
        one.quota = None;
        let has_ended = one.ended.is_some() || one.status().is_some();
        let (family, ended_before) = match one.stopping.take() {
            Some(stopping) => (stopping.family, stopping.ended_before),
            None => (tree(one.pid()), has_ended),
        };
        kill_family(&mut one.child, one.group.as_ref(), family);
        Some((!has_ended, ended_before))
    }
}

/// Kills what is left of a child: itself, its process group, and its control group or, without one,
/// its `family`. Then reaps it. The child must not have been reaped before, as its process ID and
/// that of its group could be reused.
pub(crate) fn kill_family(child: &mut Child, group: Option<&Cgroup>, family: Vec<i32>) {
    let pid = child.id() as i32;
    let _ = os::kill(-pid, SIGKILL);
    let _ = os::kill(pid, SIGKILL);
    match group {
        Some(group) => group.kill(),
        None => {
            // This process has adopted the orphans. A process that is not its descendant only
            // reuses a process ID of the family, and is left alone.
            kill_listed(|| {
                let mut mine = tree(std::process::id() as i32);
                mine.retain(|pid| family.contains(pid));
                mine
            });
        }
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::proc_files::Process;
    use crate::kernel::signals::SIGTERM as TERM;
    use crate::serving::servers::fixtures::{NAME, end, servers, until_it_printed};

    #[test]
    fn a_server_that_ended_while_others_were_waited_for_was_not_killed() {
        let mut servers = servers("exec sleep 600");
        let pid = servers.running[NAME].pid();
        servers.begin_stop(NAME, TERM);
        // A zombie until its status is asked for, as its parent can from then on.
        let deadline = Instant::now() + Duration::from_secs(60);
        while Process::read(pid).is_some() {
            assert!(Instant::now() < deadline, "it goes on");
            sleep(Duration::from_millis(5));
        }
        // Its time has gone by.
        let signals = [(TERM, Duration::ZERO)];
        let stopped = servers.stop(NAME, &signals, &AtomicBool::new(false));
        assert_eq!(stopped, Some((false, false)));
        end(servers);
    }

    /// The server ignores SIGTERM, and ends at SIGINT.
    #[test]
    fn a_server_is_sent_one_signal_after_the_other_without_waiting() {
        let script = "trap '' TERM; trap 'exit 0' INT; echo ready; while :; do sleep 0.01; done";
        let mut servers = servers(script);
        until_it_printed(&servers, "ready");
        let signals = [
            (TERM, Duration::from_millis(50)),
            (2, Duration::from_secs(60)),
        ];
        let (begin, mut longest) = (Instant::now(), Duration::ZERO);
        loop {
            let before = Instant::now();
            let is_over = servers.poll_stop(NAME, &signals);
            longest = longest.max(before.elapsed());
            if is_over {
                break;
            }
            sleep(Duration::from_millis(1));
        }
        assert!(begin.elapsed() >= signals[0].1);
        assert!(longest < Duration::from_secs(30), "{longest:?}");
        assert!(
            servers.poll_stop(NAME, &signals),
            "it does not run any more"
        );
        end(servers);
    }

    #[test]
    fn servers_can_tidy_up_when_the_agent_ends_and_do_not_keep_it() {
        for (trap, is_gentle) in [("echo tidy; exit 0", true), ("", false)] {
            let script = format!("trap '{trap}' TERM; echo ready; while :; do sleep 0.01; done");
            let mut servers = servers(&script);
            until_it_printed(&servers, "ready");
            let pid = servers.running[NAME].pid();
            servers.end_all();
            assert!(Process::read(pid).is_none());
            let output = servers.folders[NAME].output_since(0);
            assert_eq!(output.contains("tidy"), is_gentle);
            end(servers);
        }
    }
}

//! Hooks: commands that run on events of back ends.
//!
//! They run concurrently up to a bound, each with a time limit, as the service's `user_account`.

use std::collections::HashSet;
use std::process::Child;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::command::{Account, account, kill, shell};
use crate::config::Config;
use crate::engine::restart_on_panic;
use crate::engine::shared::ProcessState;

/// Concurrent hooks: a flood of clients must not become a flood of processes.
const RUNNING_MAX: usize = 16;
/// Hooks in the queue.
const WAITING_MAX: usize = 1024;
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// How long hooks may run on at shutdown.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(1);
/// How often running hooks are polled.
const POLL: Duration = Duration::from_millis(10);

/// Kinds of failure; each is reported once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum HookFailure {
    Start,
    Status,
    Late,
    End,
}

/// Runs hooks. Dropping it waits for them, briefly.
pub(super) struct Runner {
    check_accounts: Vec<Account>,
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    full_is_reported: bool,
}

struct Job {
    command: Box<[u8]>,
    account: Account,
}

impl Runner {
    pub(super) fn start(config: &Config, process: &Arc<ProcessState>) -> Runner {
        let check_accounts = config.services.iter().map(|service| {
            let account = account(service.user_account.as_deref());
            account.unwrap_or_else(|why| {
                let name = &service.name;
                let notice = format!("hooks of service {name} do not run: {why}");
                process.notices.push(notice);
                Account::Unavailable
            })
        });
        let (jobs, receiver) = mpsc::sync_channel(WAITING_MAX);
        let check_accounts = check_accounts.collect();
        let own = process.clone();
        let started = net::os::start_thread("of hooks", move || {
            // Commands that run survive a panic.
            let mut hooks = RunningHooks::new(own.clone());
            restart_on_panic("the hook thread", &own, || hooks.run(&receiver));
        });
        if let Err(error) = &started {
            process.notices.push(format!("hooks do not run: {error}"));
        }
        let thread = started.ok();
        Runner {
            check_accounts,
            jobs: thread.is_some().then_some(jobs),
            thread,
            full_is_reported: false,
        }
    }

    /// Queues a hook of a service.
    pub(super) fn run(&mut self, service: usize, command: &[u8], process: &ProcessState) {
        let account = self.check_accounts.get(service).copied();
        let account = account.unwrap_or(Account::Unavailable);
        let job = Job {
            command: command.into(),
            account,
        };
        let sent = match (&self.jobs, account) {
            (_, Account::Unavailable) | (None, _) => {
                process.hook_failures.add(1);
                return;
            }
            (Some(jobs), _) => jobs.try_send(job),
        };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = sent {
            process.hook_failures.add(1);
            if !std::mem::replace(&mut self.full_is_reported, true) {
                let why = "too many hooks are waiting; some are skipped";
                process.notices.push(why.to_owned());
            }
        }
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct RunningHooks {
    process: Arc<ProcessState>,
    children: Vec<(Child, Instant)>,
    reported: HashSet<HookFailure>,
}

impl RunningHooks {
    fn new(process: Arc<ProcessState>) -> RunningHooks {
        RunningHooks {
            process,
            children: Vec::new(),
            reported: HashSet::new(),
        }
    }

    fn run(&mut self, jobs: &Receiver<Job>) {
        let mut end: Option<Instant> = None;
        loop {
            self.reap();
            if end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
            if self.children.len() >= RUNNING_MAX {
                std::thread::sleep(POLL);
                continue;
            }
            let job = match (end.is_some(), self.children.is_empty()) {
                (false, true) => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                (false, false) => jobs.recv_timeout(POLL),
                (true, idle) => match jobs.try_recv() {
                    Ok(job) => Ok(job),
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) if idle => break,
                    Err(_) => {
                        std::thread::sleep(POLL);
                        Err(RecvTimeoutError::Timeout)
                    }
                },
            };
            match job {
                Ok(job) => {
                    #[cfg(test)]
                    self.process
                        .meet_panic(crate::engine::shared::Fault::HookPanic);
                    self.start(&job);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => end = Some(Instant::now() + SHUTDOWN_LIMIT),
            }
        }
        let left = self.children.len() + jobs.try_iter().count();
        for (child, _) in &mut self.children {
            kill(child);
        }
        for _ in 0..left {
            self.report(HookFailure::End, "hooks were killed at shutdown".into());
        }
    }

    fn start(&mut self, job: &Job) {
        match shell(&job.command, job.account).spawn() {
            Ok(child) => self.children.push((child, Instant::now() + TIME_LIMIT)),
            Err(error) => self.report(HookFailure::Start, format!("cannot start a hook: {error}")),
        }
    }

    /// Reaps hooks that have exited, and kills those over the limit.
    fn reap(&mut self) {
        let mut ended = Vec::new();
        self.children.retain_mut(|(child, end)| {
            match child.try_wait() {
                Ok(None) if Instant::now() < *end => return true,
                Ok(None) => {
                    kill(child);
                    let limit = TIME_LIMIT;
                    ended.push((HookFailure::Late, format!("did not end within {limit:?}")));
                }
                Ok(Some(status)) if status.success() => {}
                Ok(Some(status)) => ended.push((HookFailure::Status, format!("failed: {status}"))),
                Err(error) => ended.push((
                    HookFailure::Status,
                    format!("cannot be waited for: {error}"),
                )),
            }
            false
        });
        for (kind, how) in ended {
            self.report(kind, format!("a hook {how}"));
        }
    }

    fn report(&mut self, kind: HookFailure, notice: String) {
        self.process.hook_failures.add(1);
        if self.reported.insert(kind) {
            self.process.notices.push(notice);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::model::Service;
    use crate::engine::shared::Fault;
    use testing::Text as _;

    #[test]
    fn a_thread_that_panics_is_restarted_and_loses_one_hook() {
        let mut config = Config::new();
        config.services.push(Service::new("web"));
        let process = Arc::new(ProcessState::default());
        let mut runner = Runner::start(&config, &process);
        let folder = std::env::temp_dir().join(format!("weigh-hooks-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        process.inject(Fault::HookPanic);
        for name in ["lost", "run"] {
            let command = format!("touch {}", folder.join(name).display());
            runner.run(0, command.as_bytes(), &process);
        }
        drop(runner);
        assert!(!folder.join("lost").exists() && folder.join("run").exists());
        let said = process.notices.take();
        said[0].begins("the hook thread failed and is restarted: ");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}

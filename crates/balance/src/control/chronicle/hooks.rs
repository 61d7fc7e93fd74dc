//! Commands that run when something happens to a back end.
//!
//! A command line is the configuration's, with an address and names of the configuration filled
//! in, so nothing that a client sends reaches the shell. Commands run side by side up to a bound,
//! each up to a time limit, as the account that the service names.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use net::os;

use crate::config::Config;
use crate::config::model::{Backend, Hooks, Service};
use crate::engine::state::Own;

/// Commands that run at one time: they are short, and a flood of clients must not become a flood
/// of processes.
const RUNNING_MAX: usize = 16;
/// Commands that wait for one of them to end.
const WAITING_MAX: usize = 1024;
/// How long a command may take.
const TIME_LIMIT: Duration = Duration::from_secs(10);
/// How long commands may go on when the balancer has ended.
const AT_THE_END: Duration = Duration::from_secs(1);
/// How often commands that run are looked after.
const LOOK: Duration = Duration::from_millis(10);
const SIGKILL: i32 = 9;

/// What commands of a service run as.
#[derive(Clone, Copy, Debug)]
enum Account {
    /// The balancer's own.
    Own,
    /// Another: its user and group number.
    Other(u32, u32),
    /// It cannot be had, so nothing runs.
    Unavailable,
}

/// What has been reported, so that it is not again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Trouble {
    Start,
    Status,
    Late,
    End,
}

/// Runs commands; dropping it waits for them, but not for long.
pub(super) struct Runner {
    accounts: Vec<Account>,
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
    full_is_reported: bool,
}

struct Job {
    command: Box<[u8]>,
    account: Account,
}

impl Runner {
    pub(super) fn start(config: &Config, own: &Arc<Own>) -> Runner {
        let accounts = config.services.iter().map(|service| {
            let account = account(service.user_account.as_deref());
            account.unwrap_or_else(|why| {
                let name = &service.name;
                let notice = format!("the commands of service {name} are not run: {why}");
                own.notices.say(notice);
                Account::Unavailable
            })
        });
        let (jobs, receiver) = mpsc::sync_channel(WAITING_MAX);
        let accounts = accounts.collect();
        let own = own.clone();
        let thread = std::thread::spawn(move || Running::new(own).run(&receiver));
        Runner {
            accounts,
            jobs: Some(jobs),
            thread: Some(thread),
            full_is_reported: false,
        }
    }

    /// Has a command of a service run.
    pub(super) fn run(&mut self, service: usize, command: &[u8], own: &Own) {
        let account = self.accounts.get(service).copied();
        let account = account.unwrap_or(Account::Unavailable);
        let job = Job {
            command: command.into(),
            account,
        };
        let sent = match (&self.jobs, account) {
            (_, Account::Unavailable) | (None, _) => {
                own.hook_failures.add(1);
                return;
            }
            (Some(jobs), _) => jobs.try_send(job),
        };
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = sent {
            own.hook_failures.add(1);
            if !std::mem::replace(&mut self.full_is_reported, true) {
                let why = "too many commands of hooks wait; some are left out";
                own.notices.say(why.to_owned());
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

/// Why the commands of a service cannot run as the account that it names; `None` when they can,
/// or when it has none.
pub(super) fn refusal(service: &Service) -> Option<String> {
    let hooks = |one: &Backend| one.hooks != Hooks::default();
    let any = service.backends.iter().any(hooks);
    let name = service.user_account.as_deref().filter(|_| any);
    account(name).err()
}

/// The account of that name, as far as commands can run as it.
fn account(name: Option<&str>) -> Result<Account, String> {
    let Some(name) = name else {
        return Ok(Account::Own);
    };
    let (user, group) = os::user_ids(name)
        .ok_or_else(|| format!("this machine has no user account `{}`", name.escape_debug()))?;
    // The owner of a process's folder is the account that it runs as.
    let own = std::fs::metadata("/proc/self").map(|found| found.uid());
    match own {
        Ok(own) if own == user => Ok(Account::Own),
        _ if os::is_root() => Ok(Account::Other(user, group)),
        _ => Err(format!(
            "only root can run commands as `{}`",
            name.escape_debug()
        )),
    }
}

/// The commands that run.
struct Running {
    own: Arc<Own>,
    children: Vec<(Child, Instant)>,
    reported: HashSet<Trouble>,
}

impl Running {
    fn new(own: Arc<Own>) -> Running {
        Running {
            own,
            children: Vec::new(),
            reported: HashSet::new(),
        }
    }

    fn run(&mut self, jobs: &Receiver<Job>) {
        let mut end: Option<Instant> = None;
        loop {
            self.look();
            if end.is_some_and(|end| Instant::now() >= end) {
                break;
            }
            if self.children.len() >= RUNNING_MAX {
                std::thread::sleep(LOOK);
                continue;
            }
            let job = match (end.is_some(), self.children.is_empty()) {
                (false, true) => jobs.recv().map_err(|_| RecvTimeoutError::Disconnected),
                (false, false) => jobs.recv_timeout(LOOK),
                (true, idle) => match jobs.try_recv() {
                    Ok(job) => Ok(job),
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) if idle => break,
                    Err(_) => {
                        std::thread::sleep(LOOK);
                        Err(RecvTimeoutError::Timeout)
                    }
                },
            };
            match job {
                Ok(job) => self.start(&job),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => end = Some(Instant::now() + AT_THE_END),
            }
        }
        let left = self.children.len() + jobs.try_iter().count();
        for (child, _) in &mut self.children {
            kill(child);
        }
        for _ in 0..left {
            self.trouble(
                Trouble::End,
                "commands of hooks were cut off at the end".into(),
            );
        }
    }

    fn start(&mut self, job: &Job) {
        let mut command = Command::new("/bin/sh");
        command
            .arg("-c")
            .arg(OsStr::from_bytes(&job.command))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A group of its own, to be killed as a whole.
            .process_group(0);
        if let Account::Other(user, group) = job.account {
            // Supplementary groups are given up along with the user.
            command.gid(group).uid(user);
        }
        match command.spawn() {
            Ok(child) => self.children.push((child, Instant::now() + TIME_LIMIT)),
            Err(error) => self.trouble(
                Trouble::Start,
                format!("cannot start a command of a hook: {error}"),
            ),
        }
    }

    /// Collects those that have ended, and ends those that took too long.
    fn look(&mut self) {
        let mut ended = Vec::new();
        self.children.retain_mut(|(child, end)| {
            match child.try_wait() {
                Ok(None) if Instant::now() < *end => return true,
                Ok(None) => {
                    kill(child);
                    let limit = TIME_LIMIT;
                    ended.push((Trouble::Late, format!("did not end within {limit:?}")));
                }
                Ok(Some(status)) if status.success() => {}
                Ok(Some(status)) => ended.push((Trouble::Status, format!("failed: {status}"))),
                Err(error) => ended.push((Trouble::Status, format!("is lost: {error}"))),
            }
            false
        });
        for (trouble, how) in ended {
            self.trouble(trouble, format!("a command of a hook {how}"));
        }
    }

    fn trouble(&mut self, trouble: Trouble, notice: String) {
        self.own.hook_failures.add(1);
        if self.reported.insert(trouble) {
            self.own.notices.say(notice);
        }
    }
}

/// Kills a command with what it has started, and collects it.
fn kill(child: &mut Child) {
    // Not collected yet, so the number is still this child's.
    if let Ok(group) = i32::try_from(child.id()) {
        let _ = os::kill(-group, SIGKILL);
    }
    let _ = child.wait();
}

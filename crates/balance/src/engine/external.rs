//! Dispatch mode `external`: a program chooses the back end.
//!
//! The program is started for each choice. Workers send requests through a bounded channel to a
//! pool of threads, and collect the replies in their loop; the client waits as in a queue. Without
//! a valid reply in time, round robin decides.

use std::collections::VecDeque;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use net::ConnId;
use net::os::{StartThreadError, start_thread};
use net::wait::{Watch, wait};

use super::restarts::restart_on_panic;
use super::shared::ProcessState;
use crate::command::{Account, account, kill, shell};
use crate::config::model::{Config, Dispatch, Service};

/// Concurrent programs.
const RUNNING_MAX: usize = 16;
/// Requests that wait for a free thread.
const WAITING_MAX: usize = 1024;
/// Limit from the client's arrival to the reply.
const TIME_LIMIT: Duration = Duration::from_secs(2);
const TIME_LIMIT_NS: u64 = TIME_LIMIT.as_nanos() as u64;
/// Longest output in bytes; names of back ends have at most 64.
const OUTPUT_MAX: usize = 256;
/// How often a thread that waits for a program checks whether to stop.
const POLL: Duration = Duration::from_millis(50);

struct ChoiceRequest {
    number: u64,
    service: usize,
    command: Vec<u8>,
    asked: Instant,
    to: Sender<Reply>,
}

pub(super) struct Reply {
    number: u64,
    backend: Option<u32>,
}

/// Why there is no choice.
#[derive(Debug, thiserror::Error)]
enum ChoiceError {
    #[error("cannot be started: {0}")]
    Start(#[source] std::io::Error),
    #[error("cannot be waited for: {0}")]
    Lost(#[source] std::io::Error),
    #[error("did not exit within {TIME_LIMIT:?}")]
    Late,
    #[error("failed: {0}")]
    Status(std::process::ExitStatus),
    #[error("printed `{0}`, which is no back end's name or number")]
    Unknown(String),
    #[error("is not run, as its account is unavailable")]
    Account,
}

/// What the threads know of a service.
struct ProgramService {
    name: String,
    backends: Vec<String>,
    account: Account,
    /// The last run failed, which was reported.
    failing: AtomicBool,
}

/// The threads that run programs. Dropping it stops them and kills running programs.
pub(super) struct ExternalPrograms {
    stop: Arc<AtomicBool>,
    requests: Option<SyncSender<ChoiceRequest>>,
    threads: Vec<JoinHandle<()>>,
}

impl ExternalPrograms {
    /// Starts the threads, if any service needs them.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn start(
        config: &Config,
        process: &Arc<ProcessState>,
    ) -> Result<Option<ExternalPrograms>, StartThreadError> {
        let asks = |service: &Service| matches!(service.dispatch, Dispatch::External { .. });
        if !config.services.iter().any(asks) {
            return Ok(None);
        }
        let services = config.services.iter().map(|service| ProgramService {
            name: service.name.clone(),
            backends: service.backends.iter().map(|b| b.name.clone()).collect(),
            account: account(service.user_account.as_deref()).unwrap_or(Account::Unavailable),
            failing: AtomicBool::new(false),
        });
        let services: Arc<[ProgramService]> = services.collect();
        let (requests, receiver) = sync_channel(WAITING_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        let mut external_programs = ExternalPrograms {
            stop: Arc::new(AtomicBool::new(false)),
            requests: Some(requests),
            threads: Vec::new(),
        };
        for _ in 0..RUNNING_MAX {
            let runner = ProgramRunner {
                services: services.clone(),
                requests: receiver.clone(),
                process: process.clone(),
                stop: external_programs.stop.clone(),
            };
            let work = move || {
                let thread = "a thread of external choosers";
                restart_on_panic(thread, &runner.process, || runner.run());
            };
            let thread = start_thread("of external choosers", work)?;
            external_programs.threads.push(thread);
        }
        Ok(Some(external_programs))
    }

    /// The handle of one worker.
    pub fn external_chooser(&self) -> Option<ExternalChooser> {
        self.requests.clone().map(ExternalChooser::new)
    }
}

impl Drop for ExternalPrograms {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.requests = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

struct ProgramRunner {
    services: Arc<[ProgramService]>,
    requests: Arc<Mutex<Receiver<ChoiceRequest>>>,
    process: Arc<ProcessState>,
    stop: Arc<AtomicBool>,
}

impl ProgramRunner {
    fn run(&self) {
        loop {
            // The lock is held while waiting: its holder takes the next request.
            let next = {
                let requests = self.requests.lock();
                requests.unwrap_or_else(PoisonError::into_inner).recv()
            };
            let Ok(request) = next else { return };
            #[cfg(test)]
            self.process.meet_panic(super::shared::Fault::ChooserPanic);
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            let Some(service) = self.services.get(request.service) else {
                continue;
            };
            let backend = match self.run_program(service, &request) {
                Ok(backend) => {
                    service.failing.store(false, Ordering::Relaxed);
                    Some(backend)
                }
                Err(why) => {
                    self.process.hook_failures.add(1);
                    if !service.failing.swap(true, Ordering::Relaxed) {
                        self.process.notices.push(format!(
                            "service {}: the external chooser {why}; round robin is used \
                             instead",
                            service.name
                        ));
                    }
                    None
                }
            };
            let number = request.number;
            let _ = request.to.send(Reply { number, backend });
        }
    }

    fn run_program(
        &self,
        service: &ProgramService,
        request: &ChoiceRequest,
    ) -> Result<u32, ChoiceError> {
        let end = request.asked + TIME_LIMIT;
        if Instant::now() >= end {
            return Err(ChoiceError::Late);
        }
        if matches!(service.account, Account::Unavailable) {
            return Err(ChoiceError::Account);
        }
        let mut command = shell(&request.command, service.account);
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .map_err(ChoiceError::Start)?;
        let output = self.read_output(&mut child, end);
        if output.is_err() {
            kill(&mut child);
        }
        let output = output?;
        let text = String::from_utf8_lossy(&output);
        let word = text.trim();
        let backends = &service.backends;
        let by_name = backends.iter().position(|name| name == word);
        match by_name.or_else(|| word.parse().ok().filter(|at| *at < backends.len())) {
            Some(at) => Ok(at as u32),
            None => Err(ChoiceError::Unknown(word.escape_debug().to_string())),
        }
    }

    /// Reads the program's output until it exits.
    fn read_output(&self, child: &mut Child, end: Instant) -> Result<Vec<u8>, ChoiceError> {
        let mut output = Vec::new();
        if let Some(mut out) = child.stdout.take() {
            let mut bytes = [0; OUTPUT_MAX];
            loop {
                let remaining = self.remaining(end)?;
                let mut watches = [Watch::read(out.as_fd())];
                wait(&mut watches, Some(remaining)).map_err(ChoiceError::Lost)?;
                if !watches[0].ready {
                    continue;
                }
                match out.read(&mut bytes).map_err(ChoiceError::Lost)? {
                    0 => break,
                    n => output.extend_from_slice(&bytes[..n]),
                }
                if output.len() > OUTPUT_MAX {
                    let begin = String::from_utf8_lossy(&output[..32]).into_owned();
                    return Err(ChoiceError::Unknown(format!("{}...", begin.escape_debug())));
                }
            }
        }
        // Usually it exits when it closes its output; there is no event for one that does not.
        loop {
            match child.try_wait().map_err(ChoiceError::Lost)? {
                Some(status) if status.success() => return Ok(output),
                Some(status) => return Err(ChoiceError::Status(status)),
                None => std::thread::sleep(self.remaining(end)?.min(Duration::from_millis(1))),
            }
        }
    }

    /// How long to wait before checking again.
    fn remaining(&self, end: Instant) -> Result<Duration, ChoiceError> {
        let remaining = end.saturating_duration_since(Instant::now());
        match remaining.is_zero() || self.stop.load(Ordering::Acquire) {
            true => Err(ChoiceError::Late),
            false => Ok(remaining.min(POLL)),
        }
    }
}

/// A worker's handle: sends requests and receives replies.
pub(super) struct ExternalChooser {
    requests: SyncSender<ChoiceRequest>,
    sender: Sender<Reply>,
    replies: Receiver<Reply>,
    number: u64,
    /// Requests without a reply, in order: number, client, and when it was sent, ns.
    waiting: VecDeque<(u64, ConnId, u64)>,
}

impl ExternalChooser {
    fn new(requests: SyncSender<ChoiceRequest>) -> ExternalChooser {
        let (sender, replies) = channel();
        ExternalChooser {
            requests,
            sender,
            replies,
            number: 0,
            waiting: VecDeque::new(),
        }
    }

    /// A new handle for a worker that replaces the one with this handle.
    pub fn fresh(&self) -> ExternalChooser {
        ExternalChooser::new(self.requests.clone())
    }

    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Asks a service's program for a client. Returns the number of the reply; `None` if too many
    /// requests wait.
    pub fn ask(
        &mut self,
        service: usize,
        command: Vec<u8>,
        client: ConnId,
        now_ns: u64,
    ) -> Option<u64> {
        self.number += 1;
        let request = ChoiceRequest {
            number: self.number,
            service,
            command,
            asked: Instant::now(),
            to: self.sender.clone(),
        };
        self.requests.try_send(request).ok()?;
        self.waiting.push_back((self.number, client, now_ns));
        Some(self.number)
    }

    /// The number, the client and the back end of a reply, or of a request whose limit has passed;
    /// `None` if there is none now.
    pub fn next_reply(&mut self, now_ns: u64) -> Option<(u64, ConnId, Option<u32>)> {
        loop {
            let (number, backend) = match self.replies.try_recv() {
                Ok(reply) => (reply.number, reply.backend),
                Err(_) => match self.waiting.front() {
                    Some((number, _, asked_ns)) if is_late(*asked_ns, now_ns) => (*number, None),
                    _ => return None,
                },
            };
            // Sorted by number.
            let at = self.waiting.binary_search_by_key(&number, |one| one.0);
            if let Some((_, client, _)) = at.ok().and_then(|at| self.waiting.remove(at)) {
                return Some((number, client, backend));
            }
        }
    }
}

fn is_late(asked_ns: u64, now_ns: u64) -> bool {
    now_ns.saturating_sub(asked_ns) > TIME_LIMIT_NS + POLL.as_nanos() as u64
}

/// State of the external choice for a client or its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ExternalChoice {
    #[default]
    NotAsked,
    /// Waiting for the reply with this number.
    Pending(u64),
    /// The reply, which may name no back end.
    Chosen(Option<u32>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Template;
    use crate::config::model::Backend;
    use crate::engine::shared::Fault;

    #[test]
    fn a_thread_that_panics_is_restarted_and_its_client_gets_no_choice() {
        let mut service = Service::new("web");
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 80));
        service.backends.push(Backend::new("one", address.into()));
        service.dispatch = Dispatch::External {
            command: Template::parse("echo one").unwrap(),
        };
        let mut config = Config::new();
        config.services.push(service);
        let process = Arc::new(ProcessState::default());
        let programs = ExternalPrograms::start(&config, &process).unwrap().unwrap();
        let (to, replies) = channel();
        let ask = |number| {
            let request = ChoiceRequest {
                number,
                service: 0,
                command: b"echo one".to_vec(),
                asked: Instant::now(),
                to: to.clone(),
            };
            programs.requests.as_ref().unwrap().send(request).unwrap();
        };
        process.inject(Fault::ChooserPanic);
        for number in 0..20 {
            ask(number);
        }
        let chosen: Vec<_> = (0..19)
            .map(|_| replies.recv_timeout(Duration::from_secs(20)).unwrap())
            .collect();
        assert!(chosen.iter().all(|one| one.backend == Some(0)));
        // The other threads may answer all of them before this one has ended.
        let end = Instant::now() + Duration::from_secs(20);
        let mut said = process.notices.take();
        while said.is_empty() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(5));
            said = process.notices.take();
        }
        let words = "a thread of external choosers failed and is restarted: ";
        assert!(said[0].starts_with(words), "{said:?}");
    }
}

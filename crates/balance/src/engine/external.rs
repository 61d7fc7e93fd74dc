//! Dispatch mode `external`: a program says which back end gets a client.
//!
//! The program is a process per question. Workers hand questions to threads apart through a
//! bounded channel, and look for the answers in their turns; the client waits meanwhile, as it
//! does in a queue. Without an answer in time, or with one that is none, back ends are taken one
//! after the other.

use std::collections::VecDeque;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use net::wait::{Watch, wait};
use net::{ConnId, Io};

use super::shared::Own;
use super::worker::Worker;
use crate::command::{Account, account, kill, shell};
use crate::config::Facts;
use crate::config::model::{Config, Dispatch, Service};

/// Programs that run at one time.
const RUNNING_MAX: usize = 16;
/// Questions that wait for one of them to end.
const WAITING_MAX: usize = 1024;
/// How long an answer may take, from the client's coming.
const TIME_LIMIT: Duration = Duration::from_secs(2);
const TIME_LIMIT_NS: u64 = TIME_LIMIT.as_nanos() as u64;
/// An answer that is longer is none, bytes: a back end's name has 64 at most.
const ANSWER_MAX: usize = 256;
/// How often a thread that waits for a program looks whether it is to end.
const LOOK: Duration = Duration::from_millis(50);

/// A question of a worker.
struct Question {
    number: u64,
    service: usize,
    command: Vec<u8>,
    asked: Instant,
    to: Sender<Answer>,
}

/// The back end that a program has named.
pub(super) struct Answer {
    number: u64,
    backend: Option<u32>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    #[error("cannot be started: {0}")]
    Start(#[source] std::io::Error),
    #[error("is lost: {0}")]
    Lost(#[source] std::io::Error),
    #[error("did not answer within {TIME_LIMIT:?}")]
    Late,
    #[error("failed: {0}")]
    Status(std::process::ExitStatus),
    #[error("answered `{0}`, which is no back end's name or number")]
    Unknown(String),
    #[error("is not asked, as its account cannot be had")]
    Account,
}

/// A service, as far as its program is concerned.
struct Asked {
    name: String,
    backends: Vec<String>,
    account: Account,
    /// It has failed since its last answer, which was told.
    failing: AtomicBool,
}

/// The threads that ask programs; dropping it ends them, and the programs that run.
pub(super) struct Asking {
    stop: Arc<AtomicBool>,
    questions: Option<SyncSender<Question>>,
    threads: Vec<JoinHandle<()>>,
}

impl Asking {
    /// Starts the threads, where any service has a program.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(config: &Config, own: &Arc<Own>) -> std::io::Result<Option<Asking>> {
        let asks = |service: &Service| matches!(service.dispatch, Dispatch::External { .. });
        if !config.services.iter().any(asks) {
            return Ok(None);
        }
        let services = config.services.iter().map(|service| Asked {
            name: service.name.clone(),
            backends: service.backends.iter().map(|b| b.name.clone()).collect(),
            account: account(service.user_account.as_deref()).unwrap_or(Account::Unavailable),
            failing: AtomicBool::new(false),
        });
        let services: Arc<[Asked]> = services.collect();
        let (questions, receiver) = sync_channel(WAITING_MAX);
        let receiver = Arc::new(Mutex::new(receiver));
        let mut asking = Asking {
            stop: Arc::new(AtomicBool::new(false)),
            questions: Some(questions),
            threads: Vec::new(),
        };
        for _ in 0..RUNNING_MAX {
            let asker = Asker {
                services: services.clone(),
                questions: receiver.clone(),
                own: own.clone(),
                stop: asking.stop.clone(),
            };
            let thread = std::thread::Builder::new().name("external".to_owned());
            asking.threads.push(thread.spawn(move || asker.run())?);
        }
        Ok(Some(asking))
    }

    /// What a worker asks with.
    pub fn external_chooser(&self) -> Option<ExternalChooser> {
        let (sender, answers) = channel();
        self.questions.clone().map(|questions| ExternalChooser {
            questions,
            sender,
            answers,
            number: 0,
            waiting: VecDeque::new(),
        })
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        self.questions = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// One of the threads.
struct Asker {
    services: Arc<[Asked]>,
    questions: Arc<Mutex<Receiver<Question>>>,
    own: Arc<Own>,
    stop: Arc<AtomicBool>,
}

impl Asker {
    fn run(&self) {
        loop {
            // The lock is held while waiting: whoever has it takes the next question.
            let next = {
                let questions = self.questions.lock();
                questions.unwrap_or_else(PoisonError::into_inner).recv()
            };
            let Ok(question) = next else { return };
            if self.stop.load(Ordering::Acquire) {
                return;
            }
            let Some(service) = self.services.get(question.service) else {
                continue;
            };
            let answer = self.answer(service, &question);
            let backend = match answer {
                Ok(backend) => {
                    service.failing.store(false, Ordering::Relaxed);
                    Some(backend)
                }
                Err(why) => {
                    self.own.hook_failures.add(1);
                    if !service.failing.swap(true, Ordering::Relaxed) {
                        self.own.notices.say(format!(
                            "service {}: the program that chooses back ends {why}; they are taken \
                             one after the other",
                            service.name
                        ));
                    }
                    None
                }
            };
            let number = question.number;
            let _ = question.to.send(Answer { number, backend });
        }
    }

    fn answer(&self, service: &Asked, question: &Question) -> Result<u32, NoAnswer> {
        let end = question.asked + TIME_LIMIT;
        if Instant::now() >= end {
            return Err(NoAnswer::Late);
        }
        if matches!(service.account, Account::Unavailable) {
            return Err(NoAnswer::Account);
        }
        let mut command = shell(&question.command, service.account);
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .map_err(NoAnswer::Start)?;
        let said = self.listen(&mut child, end);
        if said.is_err() {
            kill(&mut child);
        }
        let said = said?;
        let text = String::from_utf8_lossy(&said);
        let word = text.trim();
        let backends = &service.backends;
        let by_name = backends.iter().position(|name| name == word);
        let by_number = || word.parse().ok().filter(|at| *at < backends.len());
        match by_name.or_else(by_number) {
            Some(at) => Ok(at as u32),
            None => Err(NoAnswer::Unknown(word.escape_debug().to_string())),
        }
    }

    /// What a program prints until it ends.
    fn listen(&self, child: &mut Child, end: Instant) -> Result<Vec<u8>, NoAnswer> {
        let mut said = Vec::new();
        if let Some(mut out) = child.stdout.take() {
            let mut bytes = [0; ANSWER_MAX];
            loop {
                let left = self.left(end)?;
                let mut watches = [Watch::read(out.as_fd())];
                wait(&mut watches, Some(left)).map_err(NoAnswer::Lost)?;
                if !watches[0].ready {
                    continue;
                }
                match out.read(&mut bytes).map_err(NoAnswer::Lost)? {
                    0 => break,
                    n => said.extend_from_slice(&bytes[..n]),
                }
                if said.len() > ANSWER_MAX {
                    let begin = String::from_utf8_lossy(&said[..32]).into_owned();
                    return Err(NoAnswer::Unknown(format!("{}...", begin.escape_debug())));
                }
            }
        }
        // Mostly it ends with its output; nothing tells when one does that goes on.
        loop {
            match child.try_wait().map_err(NoAnswer::Lost)? {
                Some(status) if status.success() => return Ok(said),
                Some(status) => return Err(NoAnswer::Status(status)),
                None => std::thread::sleep(self.left(end)?.min(Duration::from_millis(1))),
            }
        }
    }

    /// For how long to wait before looking again.
    fn left(&self, end: Instant) -> Result<Duration, NoAnswer> {
        let left = end.saturating_duration_since(Instant::now());
        match left.is_zero() || self.stop.load(Ordering::Acquire) {
            true => Err(NoAnswer::Late),
            false => Ok(left.min(LOOK)),
        }
    }
}

/// A worker's end: it asks, and takes the answers.
pub(super) struct ExternalChooser {
    questions: SyncSender<Question>,
    sender: Sender<Answer>,
    answers: Receiver<Answer>,
    number: u64,
    /// Questions without an answer yet, in their order: number, client, and when it was asked, ns.
    waiting: VecDeque<(u64, ConnId, u64)>,
}

impl ExternalChooser {
    /// Whether any question has no answer yet.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// How far a program has been asked for a client, or for its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ExternalChoice {
    /// It has not been.
    #[default]
    None,
    /// The number of the question.
    Asked(u64),
    /// What it said, if anything.
    Said(Option<u32>),
}

impl<I: Io> Worker<I> {
    /// Has the program of a client's service asked; the client goes on when it has answered.
    pub(super) fn ask(&mut self, client: ConnId) {
        let now_ns = self.now();
        let Worker {
            connections,
            services,
            shared,
            external_chooser,
            ..
        } = self;
        let connection = &mut connections[client.slot()];
        let service = connection.service as usize;
        let (Some(known), Some(external_chooser), Some(command)) = (
            &mut connection.client,
            external_chooser,
            &services[service].program,
        ) else {
            return;
        };
        let mut line = Vec::new();
        let facts = Facts {
            client: known.address.ip(),
            backend: "",
            service: &shared.services[service].name,
        };
        command.fill(&facts, &mut line);
        external_chooser.number += 1;
        let number = external_chooser.number;
        let question = Question {
            number,
            service,
            command: line,
            asked: Instant::now(),
            to: external_chooser.sender.clone(),
        };
        if external_chooser.questions.try_send(question).is_ok() {
            known.external_choice = ExternalChoice::Asked(number);
            external_chooser.waiting.push_back((number, client, now_ns));
            return;
        }
        // Too many wait already.
        shared.hook_failures.add(1);
        known.external_choice = ExternalChoice::Said(None);
        self.said(client);
    }

    /// Takes answers, and lets clients go on whose time is over.
    pub(super) fn take_answers(&mut self) {
        let now_ns = self.now();
        loop {
            let Some(external_chooser) = &mut self.external_chooser else {
                return;
            };
            let late = |(_, _, asked_ns): &&(u64, ConnId, u64)| {
                now_ns.saturating_sub(*asked_ns) > TIME_LIMIT_NS + LOOK.as_nanos() as u64
            };
            let (number, backend) = match external_chooser.answers.try_recv() {
                Ok(answer) => (answer.number, answer.backend),
                Err(_) => match external_chooser.waiting.front().filter(late) {
                    Some((number, ..)) => (*number, None),
                    None => return,
                },
            };
            // Numbers grow.
            let at = external_chooser
                .waiting
                .binary_search_by_key(&number, |one| one.0);
            let Some((_, client, _)) = at.ok().and_then(|at| external_chooser.waiting.remove(at))
            else {
                continue;
            };
            let connection = &mut self.connections[client.slot()];
            let Some(known) = connection
                .client
                .as_mut()
                .filter(|_| connection.conn == Some(client))
            else {
                continue;
            };
            // It may have gone, or ask for another request already.
            if known.external_choice == ExternalChoice::Asked(number) {
                known.external_choice = ExternalChoice::Said(backend);
                self.said(client);
            }
        }
    }

    /// A client goes on with what was said.
    fn said(&mut self, client: ConnId) {
        let service = self.connection(client).service as usize;
        if !self.services[service].queue.is_empty() {
            return self.enqueue(client);
        }
        self.seek(client);
    }
}

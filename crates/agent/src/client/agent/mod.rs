//! The caller's side of the pipe.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use net::os::{self, ChildSetup, StartThreadError};

use crate::client::child_guard::ChildGuard;
use crate::client::frame_queue::FrameQueue;
use crate::client::handle::{AgentError, AgentHandle, Clock, LoadObserver, WAIT};
use crate::client::load_check::LoadCheck;
use crate::client::output::StderrTail;
use crate::client::read_answer::read_answer;
use crate::client::reply_timeout::{self, ReplyTimeout};
use crate::kernel::clock;
use crate::protocol::pipe::{self, FrameSender, Incoming, Liveness, PipeFault, Side};
use crate::protocol::shortened::{REASON_BYTES_MAX, shortened, start_of};
use crate::protocol::wire::{Answer, DriveOrder, Driven, LoadOrder, Loaded, Order};

/// How long a pipe may take to end after a fault was found, so that its command can say why.
const STATUS_WAIT: Duration = Duration::from_millis(200);
/// Exchanges that an offset between clocks is measured by.
const CLOCK_EXCHANGES: usize = 12;
/// The name of a driver among the servers that an agent has started; theirs have no dots.
const DRIVER: &str = "load.driver";
/// The most by which another machine's clock may differ: 100 years.
const AHEAD_NS_MAX: u64 = 100 * 365 * 86_400 * 1_000_000_000;

/// An agent and the pipe to it. Dropping it closes the pipe, which makes the agent kill all that
/// it started.
pub struct Agent {
    pub(crate) child: ChildGuard,
    pub(crate) incoming: FrameQueue,
    pub(crate) liveness: Arc<Liveness>,
    /// Why it was killed.
    killed: Option<String>,
    /// The first fault of its pipe.
    fault: Option<PipeFault>,
    /// How far its CLOCK_MONOTONIC was ahead when that was last measured, ns.
    ahead_ns: i64,
    pub(crate) folder: PathBuf,
    pub(crate) program: PathBuf,
    pub(crate) network: String,
    /// On another machine: the host's name, and errors that its pipe printed. Its pids and paths
    /// mean nothing here.
    pub(crate) elsewhere: Option<(String, StderrTail)>,
}

impl Agent {
    /// Starts an agent as a child: `program agent`.
    ///
    /// # Errors
    /// When it does not start, or is of another version.
    pub fn start(program: &Path) -> Result<Self, AgentError> {
        // In a session of its own Ctrl-C does not reach it; the caller ends it.
        let setup = ChildSetup {
            own_session: true,
            ..ChildSetup::default()
        };
        Self::start_with(program, setup)
    }

    /// The same in the namespaces, groups and CPUs of a host.
    ///
    /// # Errors
    /// When it does not start, or is of another version.
    pub fn start_with(program: &Path, setup: ChildSetup) -> Result<Self, AgentError> {
        let mut command = Command::new(program);
        command
            .arg("agent")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        os::set_up_child(&mut command, setup);
        let lost = |e: io::Error| {
            let program = program.display();
            AgentError::Lost(format!("cannot start {program}: {e}{}", os::Lacking(&e)))
        };
        let mut agent = Self::of_child(command.spawn().map_err(lost)?, None)?;
        // On this machine the kernel closes a pipe with its owner, so silence needs no limit.
        match agent.greet(None, None, &AtomicBool::new(false))? {
            None => Ok(agent),
            Some(line) => Err(AgentError::Lost(format!("unexpected greeting: {line}"))),
        }
    }

    /// The agent at the other end of a child's pipe.
    pub(crate) fn of_child(
        mut child: Child,
        elsewhere: Option<(String, StderrTail)>,
    ) -> Result<Self, AgentError> {
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(AgentError::Lost("it has no pipe".into()));
        };
        // It reads faster than this, or its output ends: a failure shows there.
        let interval = pipe::limit() / pipe::BEATS;
        let leader = child.id() as i32;
        let liveness = Arc::new(Liveness::default());
        let both = || -> Result<_, StartThreadError> {
            let sender = FrameSender::start(input, Side::Coordinator, interval, || {})?;
            Ok((sender, FrameQueue::read(output, liveness.clone())?))
        };
        let (sender, incoming) = match both() {
            Ok(both) => both,
            Err(error) => {
                // Its pipes are closed; it is not to be left as a zombie.
                drop(ChildGuard::new(child));
                return Err(AgentError::Lost(error.to_string()));
            }
        };
        let child = ChildGuard::of_agent(child, sender);
        if elsewhere.is_some() {
            // It leads a session, so what its command leaves behind is killed with it.
            child.has_started("pipe", leader);
        }
        Ok(Self {
            child,
            incoming,
            liveness,
            killed: None,
            fault: None,
            ahead_ns: 0,
            folder: PathBuf::new(),
            program: PathBuf::new(),
            network: String::new(),
            elsewhere,
        })
    }

    /// The exit status of the pipe's command, if it ends soon.
    pub(crate) fn status(&self) -> Option<i32> {
        let end = Instant::now() + STATUS_WAIT;
        loop {
            match self.child.ended() {
                Ok(Some(status)) => return status.code(),
                Ok(None) if Instant::now() < end => std::thread::sleep(STATUS_WAIT / 20),
                _ => return None,
            }
        }
    }

    /// Whether it is on another machine.
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere.is_some()
    }

    fn lost(&self, why: impl std::fmt::Display) -> AgentError {
        let why = self.killed.clone().unwrap_or_else(|| why.to_string());
        AgentError::Lost(match &self.elsewhere {
            None => why,
            Some((host, words)) => match words.shown() {
                said if said.is_empty() => format!("host `{host}`: {why}"),
                said => format!("host `{host}`: {why} ({said})"),
            },
        })
    }

    pub(crate) fn fault(&mut self, fault: PipeFault) -> AgentError {
        let fault = match fault {
            _ if self.liveness.is_silent() => PipeFault::Silent {
                seconds: pipe::limit().as_secs(),
            },
            // For a pipe on this machine, the message says enough.
            PipeFault::Ended { .. } if self.is_elsewhere() => PipeFault::Ended {
                status: self.status(),
            },
            fault => fault,
        };
        // Nothing that follows in this pipe can be trusted.
        let fault = self.fault.get_or_insert(fault).clone();
        self.child.kill();
        self.lost(fault)
    }

    /// Ends the agent and all that it has started. If it does not confirm that, returns its folder,
    /// which identifies it.
    pub fn end(self) -> Option<PathBuf> {
        let Self {
            child,
            liveness,
            folder,
            incoming,
            ..
        } = self;
        drop(child);
        // The confirmation may still be queued in this program.
        let end = Instant::now() + STATUS_WAIT;
        while !liveness.has_ended() {
            let left = end.saturating_duration_since(Instant::now());
            let Some(Ok(_)) = incoming.next_within(left) else {
                break;
            };
        }
        (!liveness.has_ended()).then_some(folder)
    }

    /// Records a process that the agent started and that leads a session. An agent on another
    /// machine kills such processes itself when its input ends.
    fn has_started(&self, name: &str, pid: i32) {
        if !self.is_elsewhere() {
            self.child.has_started(name, pid);
        }
    }

    /// The folder that its servers live in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn send(&mut self, order: &Order) -> Result<(), AgentError> {
        let message = serde_json::to_vec(order).map_err(|e| AgentError::Lost(e.to_string()))?;
        match self.child.send(&message) {
            Ok(()) => Ok(()),
            // Its output says why, if it says anything.
            Err(error) => Err(self.gone().unwrap_or_else(|| self.lost(error))),
        }
    }

    /// Kills it, as it does not do what it should; the error says why.
    fn give_up(&mut self, why: impl std::fmt::Display) -> AgentError {
        let why = shortened(&why.to_string(), REASON_BYTES_MAX);
        let why = self.killed.get_or_insert(why).clone();
        self.child.kill();
        self.lost(why)
    }

    /// The next answer, if one comes in `wait`. Forwards `stop` to the agent once. Kills an agent
    /// that exceeds its timeout.
    fn next_answer(
        &mut self,
        stop: &AtomicBool,
        timeout: &mut ReplyTimeout,
        wait: Duration,
    ) -> Result<Option<Answer>, AgentError> {
        if !timeout.cancelled && stop.load(Ordering::Relaxed) {
            timeout.cancel();
            self.send(&Order::Cancel)?;
        }
        if let Some(fault) = self.fault.clone() {
            return Err(self.lost(fault));
        }
        let came = self.incoming.next_within(wait);
        // An agent that never ends may send one answer after the other.
        if let (Some(limit), Some(Ok(Incoming::Message(_)))) = (timeout.add_elapsed(), &came) {
            let seconds = limit.as_secs();
            return Err(self.give_up(format_args!(
                "it has not come to an end after {seconds} s, longer than its order can take"
            )));
        }
        match came {
            Some(Ok(Incoming::Message(message))) => {
                timeout.answered();
                let answer = read_answer(&message).map_err(|why| self.give_up(why))?;
                Ok(Some(answer))
            }
            Some(Ok(Incoming::Heartbeat)) => Ok(None),
            Some(Ok(Incoming::End)) => Err(self.lost("it ended before it was told to")),
            Some(Ok(Incoming::Fault(reason))) => Err(self.fault(PipeFault::AtAgent { reason })),
            // The reader returns none after the first frame.
            Some(Ok(Incoming::Foreign(text))) => Err(self.fault(PipeFault::Foreign { text })),
            Some(Err(fault)) => Err(self.fault(fault)),
            None if self.liveness.is_silent() => Err(self.fault(PipeFault::Ended { status: None })),
            None => match timeout.add_silence(wait) {
                None => Ok(None),
                Some(waited) => Err(self.give_up(format_args!(
                    "it has not answered for {} s",
                    waited.as_secs()
                ))),
            },
        }
    }

    /// Sends an order; `take` gets each answer, or `None` where none came in `wait`, until it
    /// returns something.
    fn converse<T>(
        &mut self,
        order: &Order,
        stop: &AtomicBool,
        wait: Duration,
        mut take: impl FnMut(&mut Self, Option<Answer>) -> Result<Option<T>, AgentError>,
    ) -> Result<T, AgentError> {
        self.send(order)?;
        let lead = match order {
            Order::Load(load) => self.lead(load),
            _ => Duration::ZERO,
        };
        let mut timeout = ReplyTimeout::with(order, lead);
        loop {
            let answer = match self.next_answer(stop, &mut timeout, wait)? {
                Some(Answer::Failed { reason }) => {
                    return Err(AgentError::Failed(shortened(&reason, REASON_BYTES_MAX)));
                }
                answer => answer,
            };
            if let Some(result) = take(self, answer)? {
                return Ok(result);
            }
        }
    }

    /// The time until a load begins, if its start was given.
    fn lead(&self, order: &LoadOrder) -> Duration {
        let Some(part) = order.job.part else {
            return Duration::ZERO;
        };
        let there_ns = clock::monotonic_ns().saturating_add(self.ahead_ns);
        let there_ns = u64::try_from(there_ns).unwrap_or_default();
        Duration::from_nanos(part.start_ns.saturating_sub(there_ns))
    }

    /// As [`AgentHandle::ask`], for callers that know what it is.
    ///
    /// # Errors
    /// When the agent is lost or says that it cannot.
    pub fn ask(&mut self, order: &Order) -> Result<Answer, AgentError> {
        self.ask_unless(order, &AtomicBool::new(false))
    }

    /// Records servers that it has started or stopped.
    fn record(&self, order: &Order, answer: &Answer) {
        match (order, answer) {
            (Order::Start(order), Answer::Started { pid, .. }) => {
                self.has_started(&order.server, *pid);
            }
            (Order::Stop { server, .. }, Answer::Stopped { .. }) => self.child.has_ended(server),
            (Order::Timed { of: order, .. }, Answer::Timed { of: answer, .. }) => {
                self.record(order, answer);
            }
            _ => {}
        }
    }
}

impl AgentHandle for Agent {
    fn ask_unless(&mut self, order: &Order, stop: &AtomicBool) -> Result<Answer, AgentError> {
        self.converse(order, stop, WAIT, |agent, answer| {
            if let Some(answer) = &answer {
                agent.record(order, answer);
            }
            Ok(answer)
        })
    }

    fn load(
        &mut self,
        order: LoadOrder,
        stop: &AtomicBool,
        observer: &mut dyn LoadObserver,
    ) -> Result<Loaded, AgentError> {
        let wait = observer.interval();
        let longest = reply_timeout::longest_load(&order, self.lead(&order));
        let mut check = LoadCheck::of(&order, longest);
        self.converse(&Order::Load(order), stop, wait, |agent, answer| {
            if let Some(Err(why)) = answer.as_ref().map(|answer| check.take(answer)) {
                return Err(agent.give_up(why));
            }
            observer.tick(match answer {
                Some(Answer::WindowOpens { at_ns, .. }) => Some(at_ns),
                _ => None,
            });
            match answer {
                None | Some(Answer::WindowOpens { .. }) => {}
                Some(Answer::Progress {
                    segment,
                    requests,
                    errors,
                }) => observer.progress(segment, requests, errors),
                Some(Answer::WindowCloses { segment }) => observer.window_closes(segment),
                Some(Answer::Row(row)) => observer.row(row),
                Some(Answer::Loaded(loaded)) => return Ok(Some(*loaded)),
                Some(other) => return Err(agent.give_up(unexpected(&other))),
            }
            Ok(None)
        })
    }

    fn drive(&mut self, order: DriveOrder, stop: &AtomicBool) -> Result<Driven, AgentError> {
        self.converse(&Order::Drive(order), stop, WAIT, |agent, answer| {
            match answer {
                None => {}
                Some(Answer::Started { pid, .. }) => agent.has_started(DRIVER, pid),
                Some(Answer::Driven(driven)) => {
                    agent.child.has_ended(DRIVER);
                    return Ok(Some(*driven));
                }
                Some(other) => return Err(agent.give_up(unexpected(&other))),
            }
            Ok(None)
        })
    }

    /// Of several exchanges the quickest counts
    /// (F. Cristian, Probabilistic clock synchronization, 1989).
    fn clock(&mut self) -> Result<Clock, AgentError> {
        let mut best: Option<Clock> = None;
        for _ in 0..CLOCK_EXCHANGES {
            let (wall, begin) = (clock::wall_ns(), clock::monotonic_ns());
            let Answer::Clock {
                wall_ns,
                monotonic_ns,
            } = self.ask(&Order::Clock)?
            else {
                return Err(self.give_up("it did not report its clocks"));
            };
            let round_trip_ns = clock::monotonic_ns() - begin;
            let middle_ns = round_trip_ns / 2;
            let ahead = (
                ahead_ns(wall_ns, wall + middle_ns),
                ahead_ns(monotonic_ns, begin + middle_ns),
            );
            let (Some(ahead_ns), Some(monotonic_ahead_ns)) = ahead else {
                return Err(self.give_up(format_args!(
                    "its clock cannot be right: {wall_ns} ns since 1970, {monotonic_ns} ns since boot"
                )));
            };
            let clock = Clock {
                ahead_ns,
                monotonic_ahead_ns,
                round_trip_ns,
            };
            if best.is_none_or(|best| round_trip_ns < best.round_trip_ns) {
                best = Some(clock);
            }
        }
        let best = best.unwrap_or_default();
        self.ahead_ns = best.monotonic_ahead_ns;
        Ok(best)
    }

    fn gone(&mut self) -> Option<AgentError> {
        if let Some(fault) = self.fault.clone() {
            return Some(self.lost(fault));
        }
        // Between orders an agent sends nothing.
        let fault = loop {
            match self.incoming.next_within(Duration::ZERO) {
                None => break None,
                Some(Err(fault)) => break Some(fault),
                Some(Ok(Incoming::Fault(reason))) => break Some(PipeFault::AtAgent { reason }),
                // An answer to an order that was given up.
                Some(Ok(_)) => {}
            }
        };
        if let Some(fault) = fault {
            return Some(self.fault(fault));
        }
        match self.child.ended() {
            Ok(None) if self.killed.is_none() && !self.liveness.is_silent() => None,
            _ => Some(self.fault(PipeFault::Ended { status: None })),
        }
    }

    fn end(self: Box<Self>) -> Option<PathBuf> {
        Agent::end(*self)
    }

    fn network(&self) -> &str {
        &self.network
    }

    fn program(&self) -> &Path {
        &self.program
    }
}

/// How far another machine's clock is ahead, ns; `None` if it shows no time that a clock can.
fn ahead_ns(there_ns: i64, here_ns: i64) -> Option<i64> {
    let ahead_ns = there_ns.checked_sub(here_ns)?;
    (there_ns >= 0 && ahead_ns.unsigned_abs() <= AHEAD_NS_MAX).then_some(ahead_ns)
}

fn unexpected(answer: &Answer) -> String {
    format!("unexpected answer: {}", start_of(answer))
}

#[cfg(test)]
mod tests;

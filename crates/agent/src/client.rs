//! The caller's side of the pipe.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use net::os::{self, ChildSetup};

use super::child_guard::ChildGuard;
use super::clock;
use super::handle::LoadObserver;
use super::reply_timeout::ReplyTimeout;
use super::ssh::LastWords;
use super::wire::{Answer, DriveOrder, Driven, LoadOrder, Loaded, Order};

/// Longest wait for an answer before `stop` is checked.
const WAIT: Duration = Duration::from_millis(50);
/// Exchanges that an offset between clocks is measured by.
const CLOCK_EXCHANGES: usize = 12;
/// The name of a driver among the servers that an agent has started; theirs have no dots.
const DRIVER: &str = "load.driver";
/// The longest line of an answer. The samples of a long load on many servers need less.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// The most answers that are queued; then the agent has to wait before it sends more.
const ANSWERS_MAX: usize = 64;

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

/// An agent and the pipe to it. Dropping it closes the pipe, which makes the agent kill all that
/// it started.
pub struct Agent {
    child: ChildGuard,
    pub(super) answers: Receiver<io::Result<String>>,
    /// Why it was killed.
    killed: Option<String>,
    folder: PathBuf,
    program: PathBuf,
    network: String,
    /// On another machine: the host's name, and errors that its pipe printed. Its pids and paths
    /// mean nothing here.
    elsewhere: Option<(String, LastWords)>,
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
        let lost =
            |e: io::Error| AgentError::Lost(format!("cannot start {}: {e}", program.display()));
        let mut agent = Self::of_child(command.spawn().map_err(lost)?, None)?;
        let answer = agent.ask(&Order::Hello)?;
        agent.greeted(answer)?;
        Ok(agent)
    }

    /// The agent at the other end of a child's pipe.
    pub(super) fn of_child(
        mut child: Child,
        elsewhere: Option<(String, LastWords)>,
    ) -> Result<Self, AgentError> {
        let Some(output) = child.stdout.take() else {
            return Err(AgentError::Lost("it has no output".into()));
        };
        Ok(Self {
            child: ChildGuard::new(child),
            answers: read_answers(output),
            killed: None,
            folder: PathBuf::new(),
            program: PathBuf::new(),
            network: String::new(),
            elsewhere,
        })
    }

    pub(super) fn greeted(&mut self, answer: Answer) -> Result<(), AgentError> {
        match answer {
            Answer::Hello {
                version,
                folder,
                program,
                network,
                ..
            } if version == env!("CARGO_PKG_VERSION") => {
                self.folder = PathBuf::from(folder);
                if !self.is_elsewhere() {
                    self.child.owns_folder(&self.folder);
                }
                self.program = PathBuf::from(program);
                self.network = network;
                Ok(())
            }
            Answer::Hello { version, .. } => Err(AgentError::Failed(format!(
                "its weigh is version {version}; expected {}",
                env!("CARGO_PKG_VERSION")
            ))),
            other => Err(AgentError::Lost(format!("unexpected greeting: {other:?}"))),
        }
    }

    /// Measures the offset of its clocks; of several exchanges the quickest counts
    /// (F. Cristian, Probabilistic clock synchronization, 1989).
    ///
    /// # Errors
    /// When the agent is lost.
    pub fn clock(&mut self) -> Result<Clock, AgentError> {
        let mut best: Option<Clock> = None;
        for _ in 0..CLOCK_EXCHANGES {
            let (wall, begin) = (clock::wall_ns(), clock::monotonic_ns());
            let Answer::Clock {
                wall_ns,
                monotonic_ns,
            } = self.ask(&Order::Clock)?
            else {
                return Err(AgentError::Lost("it did not report its clocks".into()));
            };
            let round_trip_ns = clock::monotonic_ns() - begin;
            let clock = Clock {
                ahead_ns: wall_ns - wall - round_trip_ns / 2,
                monotonic_ahead_ns: monotonic_ns - begin - round_trip_ns / 2,
                round_trip_ns,
            };
            if best.is_none_or(|best| round_trip_ns < best.round_trip_ns) {
                best = Some(clock);
            }
        }
        Ok(best.unwrap_or_default())
    }

    /// The path of its program on its machine.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Whether it is on another machine.
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// Identifies its network namespace, across machines.
    pub fn network(&self) -> &str {
        &self.network
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

    /// Why it is gone, if it is. Needs no order.
    pub fn gone(&mut self) -> Option<AgentError> {
        match self.child.ended() {
            Ok(None) if self.killed.is_none() => None,
            _ => Some(self.lost("it ended")),
        }
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

    pub(super) fn send(&mut self, order: &Order) -> Result<(), AgentError> {
        let mut line = serde_json::to_vec(order).map_err(|e| AgentError::Lost(e.to_string()))?;
        line.push(b'\n');
        self.child.send(&line).map_err(|e| self.lost(e))
    }

    fn answer(line: io::Result<String>) -> Result<Answer, AgentError> {
        let line = line.map_err(|e| AgentError::Lost(e.to_string()))?;
        serde_json::from_str(&line)
            .map_err(|e| AgentError::Lost(format!("its answer cannot be read: {e}")))
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
        match self.answers.recv_timeout(wait) {
            Ok(line) => {
                timeout.answered();
                Self::answer(line).map(Some)
            }
            Err(RecvTimeoutError::Timeout) => match timeout.is_over_after(wait) {
                None => Ok(None),
                Some(waited) => {
                    let seconds = waited.as_secs();
                    self.killed = Some(format!("it has not answered for {seconds} s"));
                    self.child.kill();
                    Err(self.lost("it was killed"))
                }
            },
            Err(RecvTimeoutError::Disconnected) => Err(self.lost("it ended")),
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
        let mut timeout = ReplyTimeout::with(order);
        loop {
            let answer = match self.next_answer(stop, &mut timeout, wait)? {
                Some(Answer::Failed { reason }) => return Err(AgentError::Failed(reason)),
                answer => answer,
            };
            if let Some(result) = take(self, answer)? {
                return Ok(result);
            }
        }
    }

    /// Gives an order and waits for its answer.
    ///
    /// # Errors
    /// When the agent is lost or says that it cannot.
    pub fn ask(&mut self, order: &Order) -> Result<Answer, AgentError> {
        self.ask_unless(order, &AtomicBool::new(false))
    }

    /// The same, but waiting for a server ends when `stop` is set.
    ///
    /// # Errors
    /// When the agent is lost or says that it cannot.
    pub fn ask_unless(&mut self, order: &Order, stop: &AtomicBool) -> Result<Answer, AgentError> {
        self.converse(order, stop, WAIT, |agent, answer| {
            match (order, &answer) {
                (Order::Start(order), Some(Answer::Started { pid, .. })) => {
                    agent.has_started(&order.server, *pid);
                }
                (Order::Stop { server, .. }, Some(Answer::Stopped { .. })) => {
                    agent.child.has_ended(server);
                }
                _ => {}
            }
            Ok(answer)
        })
    }

    /// Has a load made. When `stop` is set the load is cut short and what was measured is
    /// returned.
    pub(super) fn load_observed(
        &mut self,
        order: LoadOrder,
        stop: &AtomicBool,
        observer: &mut dyn LoadObserver,
    ) -> Result<Loaded, AgentError> {
        let wait = observer.interval();
        self.converse(&Order::Load(order), stop, wait, |_, answer| {
            observer.tick(matches!(answer, Some(Answer::WindowOpens { .. })));
            match answer {
                None | Some(Answer::WindowOpens { .. }) => {}
                Some(Answer::Progress {
                    segment,
                    requests,
                    errors,
                }) => observer.progress(segment, requests, errors),
                Some(Answer::Loaded(loaded)) => return Ok(Some(*loaded)),
                Some(other) => return Err(unexpected(&other)),
            }
            Ok(None)
        })
    }

    /// Has an outside driver run once. When `stop` is set it is killed.
    ///
    /// # Errors
    /// When the agent is lost, or the driver cannot be started.
    pub fn drive(&mut self, order: DriveOrder, stop: &AtomicBool) -> Result<Driven, AgentError> {
        self.converse(&Order::Drive(order), stop, WAIT, |agent, answer| {
            match answer {
                None => {}
                Some(Answer::Started { pid, .. }) => agent.has_started(DRIVER, pid),
                Some(Answer::Driven(driven)) => {
                    agent.child.has_ended(DRIVER);
                    return Ok(Some(*driven));
                }
                Some(other) => return Err(unexpected(&other)),
            }
            Ok(None)
        })
    }
}

fn unexpected(answer: &Answer) -> AgentError {
    AgentError::Lost(format!("unexpected answer: {answer:?}"))
}

/// Reads a child's lines on a thread of its own. After an error nothing more comes.
pub fn read_answers(output: impl Read + Send + 'static) -> Receiver<io::Result<String>> {
    lines_within(output, ANSWER_BYTES_MAX)
}

fn lines_within(
    output: impl Read + Send + 'static,
    bytes_max: usize,
) -> Receiver<io::Result<String>> {
    let (sender, receiver) = mpsc::sync_channel(ANSWERS_MAX);
    std::thread::spawn(move || {
        let mut output = BufReader::new(output);
        while let Some(line) = next_line(&mut output, bytes_max).transpose() {
            let is_last = line.is_err();
            if sender.send(line).is_err() || is_last {
                break;
            }
        }
    });
    receiver
}

/// The next line, without its end; `None` at the end of the input.
fn next_line(input: &mut impl BufRead, bytes_max: usize) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    // One byte more, so that a longer line is noticed.
    let limit = bytes_max as u64 + 1;
    if input.take(limit).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.pop_if(|last| *last == b'\n').is_none() && line.len() > bytes_max {
        return Err(io::Error::other(format!(
            "a line of its output is longer than {bytes_max} bytes"
        )));
    }
    line.pop_if(|last| *last == b'\r');
    String::from_utf8(line).map(Some).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_prints_is_bounded_in_bytes() {
        let text = b"one\r\ntwo\n\nlast".as_slice();
        let lines: Vec<_> = lines_within(text, 4).iter().map(Result::unwrap).collect();
        assert_eq!(lines, ["one", "two", "", "last"]);
        // Without the limit it would be read until memory is used up.
        let endless = lines_within(io::repeat(b'x'), 1000);
        let error = endless.recv().unwrap().unwrap_err().to_string();
        assert!(error.contains("longer than 1000 bytes"), "{error}");
        assert!(endless.recv().is_err());
    }
}

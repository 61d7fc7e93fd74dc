//! The start of a conversation: skips what else may be printed, and checks that both sides have the
//! same version.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::client::agent::Agent;
use crate::client::handle::{AgentError, WAIT};
use crate::client::read_answer::read_answer;
use crate::protocol::pipe::{self, Incoming, PipeFault};
use crate::protocol::shortened::{REASON_BYTES_MAX, shortened, start_of};
use crate::protocol::wire::{Answer, Order};

/// The longest time from the start of a pipe's command to the agent's greeting.
const OPENS_MAX: Duration = Duration::from_secs(60);
/// How many lines a login shell may print before the greeting.
const FOREIGN_LINES_MAX: usize = 200;

impl Agent {
    /// Greets the agent. A line that begins with `other` ends the greeting and is returned.
    /// `silence` is how long the agent lives without a heartbeat. Setting `stop` ends the wait.
    pub(crate) fn greet(
        &mut self,
        other: Option<&str>,
        silence: Option<Duration>,
        stop: &AtomicBool,
    ) -> Result<Option<String>, AgentError> {
        // If the pipe's command has ended already, its own error says more.
        let _ = self.send(&Order::Hello {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            silence_ms: silence.map(|silence| silence.as_millis() as u64),
        });
        let end = Instant::now() + OPENS_MAX;
        let (mut lines, mut printed) = (0, None);
        while lines < FOREIGN_LINES_MAX {
            if stop.load(Ordering::Relaxed) {
                return Err(AgentError::Failed(
                    "stopped before its agent had greeted".to_owned(),
                ));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let seconds = OPENS_MAX.as_secs();
                let why = format!("nothing has answered for {seconds} s");
                return Err(AgentError::Failed(why));
            }
            let line = match self.incoming.next_within(left.min(WAIT)) {
                Some(Ok(Incoming::Foreign(line))) => line,
                Some(Ok(Incoming::Message(line))) => {
                    let answer = read_answer(&line).map_err(AgentError::Lost)?;
                    return self.greeted(answer).map(|()| None);
                }
                Some(Ok(Incoming::Fault(reason))) => {
                    return Err(self.fault(PipeFault::AtAgent { reason }));
                }
                Some(Ok(Incoming::Heartbeat | Incoming::End)) | None => continue,
                Some(Err(PipeFault::Ended { .. })) => return Err(self.never_opened(printed)),
                Some(Err(fault)) => return Err(self.fault(fault)),
            };
            if other.is_some_and(|other| line.starts_with(other)) {
                return Ok(Some(line));
            }
            if line.starts_with("{\"answer\":") {
                return Err(AgentError::Failed(format!(
                    "its weigh is older and has another protocol; expected version {}",
                    env!("CARGO_PKG_VERSION")
                )));
            }
            lines += 1;
            printed = Some(line);
        }
        Err(AgentError::Failed(
            "its login shell prints too much; it should print nothing where there is no terminal"
                .to_owned(),
        ))
    }

    /// The error of a pipe that ended before its agent had greeted, and the last line that it
    /// `printed`.
    fn never_opened(&self, printed: Option<String>) -> AgentError {
        let said = self.elsewhere.as_ref().map(|(_, words)| words.shown());
        let said = said.filter(|said| !said.is_empty()).or(printed);
        AgentError::Failed(match (said, self.status()) {
            (Some(said), _) => shortened(&said, REASON_BYTES_MAX),
            (None, Some(status)) => {
                format!("its command ended with status {status} and said nothing")
            }
            (None, None) => "it ended and said nothing".to_owned(),
        })
    }

    fn greeted(&mut self, answer: Answer) -> Result<(), AgentError> {
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
                pipe::watch(&self.liveness, pipe::limit(), self.child.killer())
                    .map_err(|error| AgentError::Lost(error.to_string()))
            }
            Answer::Failed { reason } => {
                Err(AgentError::Failed(shortened(&reason, REASON_BYTES_MAX)))
            }
            Answer::Hello { version, .. } => Err(AgentError::Failed(format!(
                "its weigh is version {}; expected {}",
                shortened(&version.escape_debug().to_string(), REASON_BYTES_MAX),
                env!("CARGO_PKG_VERSION")
            ))),
            other => {
                let why = format!("unexpected greeting: {}", start_of(&other));
                Err(AgentError::Lost(why))
            }
        }
    }
}

//! Calls of an engine's command line.

use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use agent::AgentError;
use net::os;

/// The time limit of a call, in which an image may have to be fetched.
const CALL_MAX: Duration = Duration::from_secs(300);
/// The most characters of an engine's own error in a message.
const SAID_MAX: usize = 600;
const SIGKILL: i32 = 9;

/// The output of a command.
///
/// # Errors
/// When it is not installed, fails, or takes too long.
pub(super) fn output_of(words: &[&str]) -> Result<String, AgentError> {
    let Some((program, arguments)) = words.split_first() else {
        return Err(AgentError::Failed("no command was given".into()));
    };
    let mut command = agent::piped(program);
    command.args(arguments).stdin(Stdio::null());
    let failed = |why: String| failed(program, why);
    let child = started(program, &mut command)?;
    let pid = child.id() as i32;
    let (sender, receiver) = mpsc::channel();
    let started = os::start_thread("which waits for a command", move || {
        // Fails if the caller has given up.
        let _ = sender.send(child.wait_with_output());
    });
    if let Err(error) = started {
        // The refused thread has dropped the child, but nothing has waited for it.
        let _ = os::kill(pid, SIGKILL);
        os::process::reap_child(pid);
        return Err(failed(error.to_string()));
    }
    let output = match receiver.recv_timeout(CALL_MAX) {
        Ok(output) => output.map_err(|e| failed(e.to_string()))?,
        Err(_) => {
            // It has not been reaped, as the thread still waits for it, so its number is valid.
            let _ = os::kill(pid, SIGKILL);
            let seconds = CALL_MAX.as_secs();
            return Err(failed(format!("it has not ended for {seconds} s")));
        }
    };
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: String = said.trim().chars().take(SAID_MAX).collect();
    Err(failed(match said.is_empty() {
        true => output.status.to_string(),
        false => said.replace('\n', "; "),
    }))
}

pub(super) fn started(program: &str, command: &mut Command) -> Result<Child, AgentError> {
    let why = |e: std::io::Error| {
        let help = match e.kind() {
            std::io::ErrorKind::NotFound => "; is it installed?".to_owned(),
            _ => os::Lacking(&e).to_string(),
        };
        failed(program, format!("it cannot be started: {e}{help}"))
    };
    command.spawn().map_err(why)
}

pub(super) fn failed(program: &str, why: String) -> AgentError {
    AgentError::Failed(format!("{program}: {why}"))
}

/// Words as an owned command line.
pub(super) fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

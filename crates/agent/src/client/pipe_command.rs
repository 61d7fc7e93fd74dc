//! Opens pipes to agents on other machines: with the system's `ssh`, or with any other command that
//! passes standard input and output on.
//!
//! The agent there is the same program. It lies in a cache folder of the user, named after version
//! and checksum. If it is missing and the command can run a shell there, it is sent.

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use net::os::{self, ChildSetup};

use crate::client::agent::Agent;
use crate::client::handle::AgentError;
use crate::client::output::StderrTail;
use crate::client::program::{Program, fits};
use crate::protocol::pipe;

const MISSING: &str = "weigh-missing";
const STORED: &str = "weigh-stored";
/// [`STORED`] is looked for in this many bytes, as a login shell may print something first.
const STORED_BYTES_MAX: u64 = 64 * 1024;

/// What is appended to the words of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Nothing: it is a pipe to an agent.
    Agent,
    /// `sh -c SCRIPT`, as separate words.
    Shell,
    /// The script as one word, which a login shell reads.
    LoginShell,
}

/// A command whose standard input and output are a pipe to another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipeCommand {
    host: String,
    words: Vec<String>,
    form: Form,
}

impl PipeCommand {
    /// A machine by its `ssh` destination, with the user's `ssh` configuration.
    pub fn ssh(host: &str, destination: &str) -> Self {
        let mut words = vec![
            "ssh",
            "-T",
            "-o",
            "BatchMode=yes",
            "-o",
            "ConnectTimeout=15",
        ];
        // A dead connection is noticed after 15 s.
        words.extend(["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]);
        words.extend(["-x", "-a", "--", destination]);
        Self::of(
            host,
            words.into_iter().map(str::to_owned).collect(),
            Form::LoginShell,
        )
    }

    /// A command that runs `weigh agent` somewhere.
    pub fn agent(host: &str, words: Vec<String>) -> Self {
        Self::of(host, words, Form::Agent)
    }

    /// A command that runs, on another machine, the words that are appended to it. These call a
    /// shell with a script that finds or stores `weigh`.
    pub fn shell(host: &str, words: Vec<String>) -> Self {
        Self::of(host, words, Form::Shell)
    }

    fn of(host: &str, words: Vec<String>, form: Form) -> Self {
        Self {
            host: host.to_owned(),
            words,
            form,
        }
    }

    /// The command that is started on this machine.
    fn program(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    fn command(&self, script: &str) -> Command {
        let mut command = piped(self.program());
        command.args(self.words.iter().skip(1));
        match self.form {
            Form::Agent => {}
            Form::Shell => {
                command.args(["sh", "-c", script]);
            }
            // No login shell expands anything inside single quotes.
            Form::LoginShell => {
                command.arg(format!("exec sh -c '{script}'"));
            }
        }
        command
    }
}

/// A command with pipes for input, output and errors. It runs in a session of its own, so it gets
/// no Ctrl-C, and cannot prompt for a password.
pub fn piped(program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let setup = ChildSetup {
        own_session: true,
        ..ChildSetup::default()
    };
    os::set_up_child(&mut command, setup);
    command
}

enum Opened {
    Agent(Box<Agent>),
    /// The program is not there. The fields are what `uname -s` and `uname -m` print.
    Missing {
        system: String,
        machine: String,
    },
}

impl Agent {
    /// Starts an agent at the other end of a command's pipe. If the program is missing there and a
    /// shell can store it, sends it first.
    ///
    /// # Errors
    /// When the machine cannot be reached, the program is built for another kind of machine, or it
    /// does not start there.
    pub fn open(command: &PipeCommand, program: &Program) -> Result<Self, AgentError> {
        Self::open_unless(command, program, &AtomicBool::new(false))
    }

    /// The same, but waiting for the agent ends when `stop` is set.
    ///
    /// # Errors
    /// As [`Self::open`], and when `stop` is set.
    pub fn open_unless(
        command: &PipeCommand,
        program: &Program,
        stop: &AtomicBool,
    ) -> Result<Self, AgentError> {
        let (system, machine) = match attempt(command, program, stop)? {
            Opened::Agent(agent) => return Ok(*agent),
            Opened::Missing { system, machine } => (system, machine),
        };
        fits(program, &system, &machine).map_err(AgentError::Failed)?;
        push(command, program)?;
        match attempt(command, program, stop)? {
            Opened::Agent(agent) => Ok(*agent),
            Opened::Missing { .. } => Err(AgentError::Failed(
                "the program was sent, but is not there".to_owned(),
            )),
        }
    }
}

/// A piece of script that sets `p` to the program's folder. For root this is by default not in the
/// home folder: servers that root starts run as other users, who cannot read root's home.
fn place(program: &Program) -> String {
    format!(
        "if [ \"$(id -u)\" = 0 ]; then umask 022; c=${{XDG_CACHE_HOME:-/var/cache}}; \
         else umask 077; c=${{XDG_CACHE_HOME:-$HOME/.cache}}; fi; p=\"$c/weigh/{}\"",
        program.mark()
    )
}

fn attempt(
    command: &PipeCommand,
    program: &Program,
    stop: &AtomicBool,
) -> Result<Opened, AgentError> {
    let script = format!(
        "{}; if [ -x \"$p/weigh\" ]; then exec \"$p/weigh\" agent; fi; \
         echo {MISSING} \"$(uname -s)\" \"$(uname -m)\"",
        place(program)
    );
    let mut child = command.command(&script).spawn().map_err(|e| {
        let program = command.program();
        AgentError::Failed(format!("cannot start {program}: {e}{}", os::Lacking(&e)))
    })?;
    let words = child.stderr.take().map(StderrTail::of).unwrap_or_default();
    let mut agent = Agent::of_child(child, Some((command.host.clone(), words)))?;
    Ok(
        match agent.greet(Some(MISSING), Some(pipe::limit()), stop)? {
            None => Opened::Agent(Box::new(agent)),
            Some(line) => {
                let rest = line.strip_prefix(MISSING).unwrap_or_default();
                let mut fields = rest.split_whitespace().map(str::to_owned);
                Opened::Missing {
                    system: fields.next().unwrap_or_default(),
                    machine: fields.next().unwrap_or_default(),
                }
            }
        },
    )
}

/// Sends a program. It gets its name only after the checksum has been verified there. The receiver
/// reads a given length, as the end of a pipe may not arrive.
fn push(command: &PipeCommand, program: &Program) -> Result<(), AgentError> {
    let failed = |why: String| AgentError::Failed(format!("weigh could not be put there: {why}"));
    let engine = command.program();
    let mut file = fs::File::open(&program.path).map_err(|e| failed(e.to_string()))?;
    let bytes = file.metadata().map_err(|e| failed(e.to_string()))?.len();
    let script = format!(
        "{}; set -e; mkdir -p \"$p\"; n=\"$p/part.$$\"; trap \"rm -f \\\"$n\\\"\" EXIT; \
         head -c {bytes} >\"$n\"; s=$(sha256sum \"$n\" | cut -c 1-64); if [ \"$s\" = {} ]; then \
         chmod a+rx \"$n\"; mv -f \"$n\" \"$p/weigh\"; echo {STORED}; \
         else echo \"the checksum there is $s\" >&2; fi",
        place(program),
        program.sum
    );
    let mut child = command
        .command(&script)
        .spawn()
        .map_err(|e| failed(format!("cannot start {engine}: {e}{}", os::Lacking(&e))))?;
    let words = child.stderr.take().map(StderrTail::of).unwrap_or_default();
    // Dropped at the end of the block, which closes it.
    let sent = match child.stdin.take() {
        Some(mut pipe) => std::io::copy(&mut file, &mut pipe).and_then(|_| pipe.flush()),
        None => Err(std::io::ErrorKind::BrokenPipe.into()),
    };
    let mut output = Vec::new();
    if let Some(pipe) = child.stdout.take() {
        // What was read before an error is still used.
        let _ = pipe.take(STORED_BYTES_MAX).read_to_end(&mut output);
    }
    let status = child.wait().map_err(|e| failed(e.to_string()))?;
    if String::from_utf8_lossy(&output).contains(STORED) {
        return Ok(());
    }
    let said = words.shown();
    Err(failed(match (said.is_empty(), sent) {
        (false, _) => said,
        (true, Err(e)) => e.to_string(),
        (true, Ok(())) => format!("{engine} ended ({status})"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_script_ends_its_quotes() {
        let program = Program::read(&std::env::current_exe().unwrap()).unwrap();
        assert!(!place(&program).contains('\''));
        assert!(place(&program).contains("weigh/"));
    }

    #[test]
    fn a_stop_ends_the_wait_for_a_greeting() {
        let program = Program::read(&std::env::current_exe().unwrap()).unwrap();
        let words = ["sleep", "60"].map(str::to_owned).to_vec();
        let command = PipeCommand::agent("pod", words);
        let stop = AtomicBool::new(false);
        let begun = std::time::Instant::now();
        let opened = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(100));
                stop.store(true, std::sync::atomic::Ordering::Relaxed);
            });
            Agent::open_unless(&command, &program, &stop)
        });
        let why = opened.err().unwrap().to_string();
        assert!(why.contains("stopped before"), "{why}");
        assert!(begun.elapsed() < std::time::Duration::from_secs(10));
    }

    #[test]
    fn a_command_that_is_no_pipe_to_an_agent_is_refused_with_its_words() {
        let program = Program::read(&std::env::current_exe().unwrap()).unwrap();
        let error = |words: &[&str]| {
            let words = words.iter().map(|word| (*word).to_owned()).collect();
            let opened = Agent::open(&PipeCommand::agent("pod", words), &program);
            opened.err().unwrap().to_string()
        };
        let missing = error(&["weigh-no-such-program"]);
        assert!(
            missing.contains("cannot start weigh-no-such-program"),
            "{missing}"
        );
        let said = error(&["sh", "-c", "echo no such pod >&2; exit 1"]);
        assert_eq!(said, "no such pod");
        let silent = error(&["sh", "-c", "exit 0"]);
        assert!(silent.contains("status 0"), "{silent}");
        let echo = error(&["cat"]);
        assert!(echo.contains("returns what is sent"), "{echo}");
        let old = error(&["sh", "-c", r#"read l; echo '{"answer":"failed"}'; sleep 5"#]);
        assert!(old.contains("older"), "{old}");
    }
}

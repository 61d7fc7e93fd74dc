//! Starts agents on other machines through the system's `ssh`, with the user's configuration of it.
//!
//! The agent there is the same program, in a cache folder of the user, named by version and
//! checksum. It is sent if it is missing.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use net::os::{self, ChildSetup};
use sha2::{Digest, Sha256};

use super::client::{Agent, AgentError};
use super::wire::{Answer, Order};

/// Longest time from the start of `ssh` to the agent's greeting.
const OPENS_MAX: Duration = Duration::from_secs(60);
/// Lines that a login shell may print before.
const NOISE_LINES_MAX: usize = 200;
/// Lines of standard error in a message.
const LAST_WORDS_LINES: usize = 8;
/// The longest such line.
const LAST_WORDS_LINE_BYTES_MAX: u64 = 4096;
const MISSING: &str = "weigh-missing";
const STORED: &str = "weigh-stored";
/// How much is read before that word: a login shell may print something.
const STORED_BYTES_MAX: u64 = 64 * 1024;

/// A machine behind ssh.
#[derive(Clone, Copy, Debug)]
pub struct Far<'a> {
    /// Its name in the experiment.
    pub host: &'a str,
    /// Its destination, as `ssh` takes it.
    pub destination: &'a str,
}

/// A program to run there.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    /// SHA-256, hexadecimal.
    sum: String,
    /// The machine that it is built for, where that is known.
    machine: Option<&'static str>,
}

impl Program {
    /// Reads a program's checksum and the machine that it is built for.
    ///
    /// # Errors
    /// When it cannot be read or is no program for Linux.
    pub fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let mut file = fs::File::open(path).map_err(|e| format!("{shown}: {e}"))?;
        let mut sum = Sha256::new();
        let mut head = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let n = file
                .read(&mut buffer)
                .map_err(|e| format!("{shown}: {e}"))?;
            if n == 0 {
                break;
            }
            if head.is_empty() {
                head = buffer[..n.min(64)].to_vec();
            }
            sum.update(&buffer[..n]);
        }
        if !head.starts_with(b"\x7fELF") {
            return Err(format!("{shown} is no program for Linux"));
        }
        let sum = sum.finalize().iter().map(|b| format!("{b:02x}")).collect();
        Ok(Self {
            path: path.to_path_buf(),
            sum,
            machine: machine_of(&head),
        })
    }

    /// Its path below the cache folder there.
    fn place(&self) -> String {
        format!("weigh/{}-{}", env!("CARGO_PKG_VERSION"), &self.sum[..16])
    }
}

/// As in `uname -m`, from the ELF header (`e_machine`, System V gABI).
fn machine_of(head: &[u8]) -> Option<&'static str> {
    let number = [*head.get(18)?, *head.get(19)?];
    let little = head.get(5) == Some(&1);
    let number = match little {
        true => u16::from_le_bytes(number),
        false => u16::from_be_bytes(number),
    };
    Some(match (number, little) {
        (62, _) => "x86_64",
        (183, true) => "aarch64",
        (243, _) => "riscv64",
        (22, _) => "s390x",
        (21, true) => "ppc64le",
        _ => return None,
    })
}

/// The last lines of a child's standard error.
#[derive(Clone, Debug, Default)]
pub(super) struct LastWords(Arc<Mutex<(Vec<String>, bool)>>);

impl LastWords {
    fn of(output: ChildStderr) -> Self {
        let words = Self::default();
        let kept = words.clone();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            // A longer line is read in parts.
            while let Ok(1..) = (&mut output)
                .take(LAST_WORDS_LINE_BYTES_MAX)
                .read_until(b'\n', &mut line)
            {
                let text = String::from_utf8_lossy(&line).trim().to_owned();
                line.clear();
                let line = text;
                if let Ok(mut kept) = kept.0.lock()
                    && !line.is_empty()
                {
                    kept.0.push(line);
                    if kept.0.len() > LAST_WORDS_LINES {
                        kept.0.remove(0);
                    }
                }
            }
            if let Ok(mut kept) = kept.0.lock() {
                kept.1 = true;
            }
        });
        words
    }

    /// The lines, as soon as the output has ended, or after 300 ms.
    pub(super) fn shown(&self) -> String {
        let end = Instant::now() + Duration::from_millis(300);
        loop {
            let (lines, ended) = match self.0.lock() {
                Ok(kept) => (kept.0.join("; "), kept.1),
                Err(_) => return String::new(),
            };
            if ended || Instant::now() >= end {
                return lines;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

enum Opened {
    Agent(Box<Agent>),
    /// The program is not there. `uname -s` and `uname -m`.
    Missing {
        system: String,
        machine: String,
    },
}

impl Agent {
    /// Starts an agent on a machine behind ssh; sends the program first where it is missing.
    ///
    /// # Errors
    /// When the machine cannot be reached, is of another kind than the program, or the program
    /// does not start there.
    pub fn start_over_ssh(far: Far<'_>, program: &Program) -> Result<Self, AgentError> {
        let (system, machine) = match attempt(far, program)? {
            Opened::Agent(agent) => return Ok(*agent),
            Opened::Missing { system, machine } => (system, machine),
        };
        fits(program, &system, &machine).map_err(AgentError::Failed)?;
        push(far, program)?;
        match attempt(far, program)? {
            Opened::Agent(agent) => Ok(*agent),
            Opened::Missing { .. } => Err(AgentError::Failed(
                "the program was sent, but is not there".to_owned(),
            )),
        }
    }
}

/// Whether a program can run on a machine.
fn fits(program: &Program, system: &str, machine: &str) -> Result<(), String> {
    if system != "Linux" {
        return Err(format!("it runs {system}; weigh needs Linux"));
    }
    match program.machine {
        Some(built) if built != machine => Err(format!(
            "it is of the kind {machine}, and {} is built for {built}: name a weigh of version {} \
             that is built for {machine} by ssh_binary = \"…\"",
            program.path.display(),
            env!("CARGO_PKG_VERSION"),
        )),
        _ => Ok(()),
    }
}

/// The user's own `ssh`, without a terminal and without prompts.
fn ssh(far: Far<'_>, script: &str) -> Command {
    let mut command = Command::new("ssh");
    command.args(["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15"]);
    // A dead connection is noticed after 15 s.
    command.args(["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3"]);
    command.args(["-x", "-a", "--", far.destination]);
    // No login shell expands anything inside single quotes.
    command.arg(format!("exec sh -c '{script}'"));
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // In a session of its own it gets no Ctrl-C, and cannot prompt for a password.
    let setup = ChildSetup {
        own_session: true,
        ..ChildSetup::default()
    };
    os::set_up_child(&mut command, setup);
    command
}

/// Sets `p` to the program's folder. Servers that root starts run as other users, who cannot read
/// root's home.
fn place(program: &Program) -> String {
    format!(
        "if [ \"$(id -u)\" = 0 ]; then umask 022; c=${{XDG_CACHE_HOME:-/var/cache}}; \
         else umask 077; c=${{XDG_CACHE_HOME:-$HOME/.cache}}; fi; p=\"$c/{}\"",
        program.place()
    )
}

fn attempt(far: Far<'_>, program: &Program) -> Result<Opened, AgentError> {
    let script = format!(
        "{}; if [ -x \"$p/weigh\" ]; then exec \"$p/weigh\" agent; fi; \
         echo {MISSING} \"$(uname -s)\" \"$(uname -m)\"",
        place(program)
    );
    let mut command = ssh(far, &script);
    let mut child = command
        .spawn()
        .map_err(|e| AgentError::Failed(format!("cannot start ssh: {e}")))?;
    let words = child.stderr.take().map(LastWords::of).unwrap_or_default();
    let mut agent = Agent::of_child(child, Some((far.host.to_owned(), words.clone())))?;
    // If ssh has ended already, its own error says more.
    let _ = agent.send(&Order::Hello);
    let end = Instant::now() + OPENS_MAX;
    for _ in 0..NOISE_LINES_MAX {
        let left = end.saturating_duration_since(Instant::now());
        let line = match agent.answers.recv_timeout(left) {
            Ok(Ok(line)) => line,
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                let said = words.shown();
                return Err(AgentError::Failed(match said.is_empty() {
                    true => "ssh ended and said nothing".to_owned(),
                    false => said,
                }));
            }
            Err(RecvTimeoutError::Timeout) => {
                let seconds = OPENS_MAX.as_secs();
                return Err(AgentError::Failed(format!(
                    "nothing has answered for {seconds} s"
                )));
            }
        };
        if let Some(rest) = line.strip_prefix(MISSING) {
            let mut fields = rest.split_whitespace().map(str::to_owned);
            return Ok(Opened::Missing {
                system: fields.next().unwrap_or_default(),
                machine: fields.next().unwrap_or_default(),
            });
        }
        if let Ok(answer @ Answer::Hello { .. }) = serde_json::from_str(&line) {
            agent.greeted(answer)?;
            return Ok(Opened::Agent(Box::new(agent)));
        }
    }
    Err(AgentError::Failed(
        "its login shell prints too much; it should print nothing where there is no terminal"
            .to_owned(),
    ))
}

/// Sends a program. It gets its name only after its checksum was verified there.
fn push(far: Far<'_>, program: &Program) -> Result<(), AgentError> {
    let failed = |why: String| AgentError::Failed(format!("weigh could not be put there: {why}"));
    let script = format!(
        "{}; set -e; mkdir -p \"$p\"; n=\"$p/part.$$\"; trap \"rm -f \\\"$n\\\"\" EXIT; \
         cat >\"$n\"; s=$(sha256sum \"$n\" | cut -c 1-64); if [ \"$s\" = {} ]; then \
         chmod a+rx \"$n\"; mv -f \"$n\" \"$p/weigh\"; echo {STORED}; \
         else echo \"the checksum there is $s\" >&2; fi",
        place(program),
        program.sum
    );
    let mut child = ssh(far, &script)
        .spawn()
        .map_err(|e| failed(format!("cannot start ssh: {e}")))?;
    let words = child.stderr.take().map(LastWords::of).unwrap_or_default();
    let sent = fs::File::open(&program.path).and_then(|mut file| {
        // Dropped at the end, which closes it.
        let mut pipe = child.stdin.take().ok_or(std::io::ErrorKind::BrokenPipe)?;
        std::io::copy(&mut file, &mut pipe)?;
        pipe.flush()
    });
    let mut output = Vec::new();
    if let Some(pipe) = child.stdout.take() {
        // What was read before an error is used.
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
        (true, Ok(())) => format!("ssh ended ({status})"),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_tells_what_it_is_built_for() {
        let own = Program::read(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(own.machine, Some(std::env::consts::ARCH));
        assert!(fits(&own, "Linux", std::env::consts::ARCH).is_ok());
        let why = fits(&own, "Linux", "armv7l").unwrap_err();
        assert!(
            why.contains("armv7l") && why.contains("ssh_binary"),
            "{why}"
        );
        let why = fits(&own, "Darwin", "arm64").unwrap_err();
        assert!(why.contains("Darwin"), "{why}");
        let none = Program::read(Path::new("/proc/self/status")).unwrap_err();
        assert!(none.contains("no program"), "{none}");
    }

    #[test]
    fn nothing_in_a_script_ends_its_quotes() {
        let program = Program {
            path: PathBuf::new(),
            sum: "0".repeat(64),
            machine: None,
        };
        assert!(!place(&program).contains('\''));
        assert!(place(&program).contains("weigh/"));
    }
}

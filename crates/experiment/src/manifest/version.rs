//! How a program reports its version.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

/// Time limit for a program to report its version.
const LONGEST: Duration = Duration::from_secs(3);
/// How much of each of its outputs is read.
const BYTES_MAX: u64 = 64 * 1024;

/// How a program reports its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub command: Vec<String>,
    /// The version is the word that follows this text.
    pub after: String,
}

impl Version {
    /// The version in what the command printed, without a `v` before it.
    pub fn find_in(&self, printed: &str) -> Option<String> {
        let start = printed.find(self.after.as_str())? + self.after.len();
        let word: String = printed[start..]
            .trim_start()
            .chars()
            .take_while(|c| !c.is_whitespace() && !matches!(c, ',' | ')' | '('))
            .collect();
        let number = word
            .strip_prefix('v')
            .filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let word = number.map_or(word.clone(), str::to_owned);
        (!word.is_empty()).then_some(word)
    }
}

/// What a version command prints on standard output and error. `None` if within 3 s it does not
/// end, or a process that it started keeps an output open.
pub fn printed(words: &[String]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let end = Instant::now() + LONGEST;
    let (sender, outputs) = mpsc::channel();
    let pipes: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|pipe| Box::new(pipe) as _),
        child.stderr.take().map(|pipe| Box::new(pipe) as _),
    ];
    for (number, pipe) in pipes.into_iter().enumerate() {
        let (mut pipe, sender) = (pipe?.take(BYTES_MAX), sender.clone());
        let started = thread::Builder::new().spawn(move || {
            let mut bytes = Vec::new();
            // What was read before an error is used.
            let _ = pipe.read_to_end(&mut bytes);
            let _ = sender.send((number, bytes));
        });
        if started.is_err() {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
    }
    while child.try_wait().ok()?.is_none() {
        if Instant::now() >= end {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        sleep(Duration::from_millis(2));
    }
    let mut texts = [String::new(), String::new()];
    for _ in 0..2 {
        let left = end.saturating_duration_since(Instant::now());
        let (number, bytes) = outputs.recv_timeout(left).ok()?;
        texts[number] = String::from_utf8_lossy(&bytes).into_owned();
    }
    Some(texts.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_says_nothing_or_hangs_has_no_version() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(printed(&words("echo v 1.2")).as_deref(), Some("v 1.2\n"));
        assert_eq!(printed(&words("no-such-program-here -v")), None);
        let start = Instant::now();
        assert_eq!(printed(&words("sleep 100")), None);
        // The program ends, but a process that it started keeps its output open; or it prints
        // endlessly.
        let script = |script: &str| ["sh", "-c", script].map(str::to_owned);
        assert_eq!(printed(&script("sleep 20 & echo v 1.2")), None);
        assert!(start.elapsed() < Duration::from_secs(15));
        let long = printed(&script("head -c 1000000 /dev/zero; echo v 1.2 >&2"));
        assert!(long.is_none_or(|text| text.len() <= 2 * BYTES_MAX as usize));
    }
}

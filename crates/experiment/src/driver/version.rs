//! Asking a driver for its version.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::Driver;
use super::render::Filler;

/// Time limit for a program to report its version.
const LONGEST: Duration = Duration::from_secs(3);

impl Driver {
    /// The version of the installed program; `None` where it does not report one within 3 s.
    /// `weigh` is the running program.
    pub fn version(&self, weigh: &Path) -> Option<String> {
        let programs = self.available().programs;
        self.version_in(&printed(&self.version_words(&programs, weigh)?)?)
    }

    /// The command that prints its version.
    pub fn version_words(
        &self,
        programs: &BTreeMap<String, PathBuf>,
        weigh: &Path,
    ) -> Option<Vec<String>> {
        let version = self.version.as_ref()?;
        let filler = Filler::new(self, programs, weigh);
        filler.words("version.command", &version.command).ok()
    }

    /// The version in the output of that command.
    pub fn version_in(&self, text: &str) -> Option<String> {
        self.version.as_ref()?.find_in(text)
    }
}

/// What a command prints on both of its outputs.
fn printed(words: &[String]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .ok()?;
    let end = Instant::now() + LONGEST;
    // A program that fills the pipe blocks, and runs into the time limit.
    while child.try_wait().ok()?.is_none() {
        if Instant::now() >= end {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        sleep(Duration::from_millis(2));
    }
    let output = child.wait_with_output().ok()?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Some(text)
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
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}

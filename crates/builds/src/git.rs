//! Calls of git.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::BuildError;

/// Environment variables with which a caller, such as a hook, points git to a repository.
const OF_A_REPOSITORY: [&str; 7] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
];

/// A call of git that ignores the repository of a surrounding hook or bisection.
pub(crate) fn git(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).stdin(Stdio::null());
    without_repository(&mut command);
    command
}

/// Removes the variables that point git to a repository.
pub(crate) fn without_repository(command: &mut Command) {
    for name in OF_A_REPOSITORY {
        command.env_remove(name);
    }
}

/// Runs git, and returns its output without the final line break.
pub(crate) fn output(command: &mut Command) -> Result<String, BuildError> {
    let output = command.output().map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => BuildError::NoGit,
        _ => BuildError::Git {
            command: words(command),
            why: e.to_string(),
        },
    })?;
    if output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout);
        return Ok(text.trim_end_matches('\n').to_owned());
    }
    Err(BuildError::Git {
        command: words(command),
        why: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

/// [`output`] with these arguments, in a folder.
pub(crate) fn ask(folder: &Path, arguments: &[&str]) -> Result<String, BuildError> {
    output(git(folder).args(arguments))
}

fn words(command: &Command) -> String {
    let words: Vec<_> = command
        .get_args()
        .skip(2)
        .map(OsStr::to_string_lossy)
        .collect();
    words.join(" ")
}

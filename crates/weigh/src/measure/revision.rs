//! The commit that a run is about.

use std::process::Command;

/// The output of `git`, if it is installed and succeeds.
fn git(arguments: &[&str]) -> Option<String> {
    // Takes no lock, as the user may be committing.
    let output = Command::new("git")
        .arg("--no-optional-locks")
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The short name of the commit that is checked out in a folder's repository.
pub fn short_commit(folder: &str) -> Option<String> {
    let folder = if folder.is_empty() { "." } else { folder };
    git(&["-C", folder, "rev-parse", "--short", "HEAD"]).filter(|commit| !commit.is_empty())
}

/// The commit of the repository around the current folder, with `+changes` where tracked files
/// differ from it; nothing outside a repository.
pub fn revision() -> Option<String> {
    let commit = git(&["rev-parse", "--verify", "HEAD"]).filter(|commit| !commit.is_empty())?;
    let changes = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(match changes.is_empty() {
        true => commit,
        false => format!("{commit}+changes"),
    })
}

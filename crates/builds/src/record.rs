//! What a run's folder keeps of its builds: their output, and the commits, so that a resumed run
//! measures the same ones.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::{Builds, Pins};

/// The folder within a run's folder.
const FOLDER: &str = "builds";
const REVISIONS: &str = "revisions.json";

impl Builds {
    /// Writes commits and build logs into a run's folder.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn record(&self, folder: &Path) -> io::Result<()> {
        if self.revisions.is_empty() {
            return Ok(());
        }
        fs::create_dir_all(folder.join(FOLDER))?;
        let revisions = self.revisions.iter().map(|(wanted, built)| {
            json!({
                "repository": wanted.repository,
                "revision": wanted.revision,
                "build": wanted.build,
                "commit": built.commit(),
            })
        });
        let document = Value::Array(revisions.collect());
        let text = format!("{document:#}\n");
        fs::write(folder.join(FOLDER).join(REVISIONS), text)?;
        for (from, to) in self.logs(folder) {
            fs::copy(from, to)?;
        }
        Ok(())
    }

    /// Removes what [`Self::record`] wrote.
    pub fn unrecord(&self, folder: &Path) {
        let logs = self.logs(folder).into_iter().map(|(_, to)| to);
        let revisions = folder.join(FOLDER).join(REVISIONS);
        for file in logs.chain([revisions]) {
            let _ = fs::remove_file(file);
        }
        let _ = fs::remove_dir(folder.join(FOLDER));
    }

    /// The log of each build and its copy: `COMMIT.log`, and where a commit was built by several
    /// commands `COMMIT-2.log` and so on.
    fn logs(&self, folder: &Path) -> Vec<(PathBuf, PathBuf)> {
        let mut of_commits: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
        for built in self.revisions.values() {
            let logs = of_commits.entry(built.commit()).or_default();
            if !logs.contains(&built.log.as_path()) {
                logs.push(&built.log);
            }
        }
        let copy = |commit: &str, at: usize| match at {
            0 => format!("{commit}.log"),
            at => format!("{commit}-{}.log", at + 1),
        };
        let mut out = Vec::new();
        for (commit, logs) in of_commits {
            for (at, log) in logs.into_iter().enumerate() {
                out.push((log.to_owned(), folder.join(FOLDER).join(copy(commit, at))));
            }
        }
        out
    }
}

/// The commits that are recorded in a run's folder.
pub fn recorded(folder: &Path) -> Pins {
    let text = fs::read(folder.join(FOLDER).join(REVISIONS)).unwrap_or_default();
    let document: Value = serde_json::from_slice(&text).unwrap_or_default();
    let rows = document.as_array().into_iter().flatten();
    rows.filter_map(|row| {
        let text = |key: &str| Some(row.get(key)?.as_str()?.to_owned());
        Some(((text("repository")?, text("revision")?), text("commit")?))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Built, Wanted};

    #[test]
    fn each_build_of_a_commit_keeps_its_log() {
        let mut builds = Builds::default();
        for (revision, build) in [("main", "make"), ("v1", "make"), ("main", "make FAST=1")] {
            let wanted = Wanted {
                repository: String::new(),
                revision: revision.to_owned(),
                build: build.to_owned(),
            };
            let log = Path::new("/cache").join(build);
            builds.revisions.insert(wanted, Built::fake("c0ffee", log));
        }
        let logs = builds.logs(Path::new("run"));
        let path = |from: &str, to: &str| (PathBuf::from(from), PathBuf::from(to));
        assert_eq!(
            logs,
            [
                path("/cache/make", "run/builds/c0ffee.log"),
                path("/cache/make FAST=1", "run/builds/c0ffee-2.log"),
            ]
        );
    }
}

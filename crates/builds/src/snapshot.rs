//! The working tree as a commit, with uncommitted changes and new files.

use std::fs;
use std::path::Path;

use crate::BuildError;
use crate::git::{ask, git, output};

/// Folders of runs are left out: otherwise each run would change the snapshot.
const OF_RUNS: &str = ":(exclude,glob)**/weigh-runs/**";

/// The commit of the working tree at `top`: HEAD if nothing has changed, otherwise a commit that is
/// only in `mirror`. The same content on the same HEAD always gives the same commit. Ignored files
/// are left out.
pub(crate) fn commit(top: &Path, mirror: &Path) -> Result<String, BuildError> {
    let head =
        ask(top, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).map_err(|e| match e {
            BuildError::Git { .. } => BuildError::NoRevision {
                folder: top.display().to_string(),
                revision: "HEAD".to_owned(),
            },
            other => other,
        })?;
    copy_excludes(top, mirror);
    let index = mirror.join(format!("index-{}", std::process::id()));
    let in_mirror = |arguments: &[&str]| {
        let mut command = git(top);
        command
            .env("GIT_DIR", mirror)
            .env("GIT_WORK_TREE", top)
            .env("GIT_INDEX_FILE", &index)
            .args(arguments);
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "weigh")
                .env(format!("GIT_{who}_EMAIL"), "weigh@localhost")
                .env(format!("GIT_{who}_DATE"), "2000-01-01T00:00:00Z");
        }
        output(&mut command)
    };
    let made = (|| {
        // Starts from HEAD, so that a file that is both tracked and ignored stays.
        in_mirror(&["read-tree", &head])?;
        in_mirror(&["add", "--all", "--", ".", OF_RUNS])?;
        let tree = in_mirror(&["write-tree"])?;
        if tree == in_mirror(&["rev-parse", &format!("{head}^{{tree}}")])? {
            return Ok(head.clone());
        }
        in_mirror(&["commit-tree", &tree, "-p", &head, "-m", "The working tree"])
    })();
    let _ = fs::remove_file(&index);
    made
}

/// Copies the ignore rules that the repository has beside `.gitignore`.
fn copy_excludes(top: &Path, mirror: &Path) {
    let to = mirror.join("info/exclude");
    let _ = fs::create_dir_all(mirror.join("info"));
    let from = ask(top, &["rev-parse", "--git-path", "info/exclude"]);
    if !from.is_ok_and(|from| fs::copy(top.join(from), &to).is_ok()) {
        let _ = fs::remove_file(&to);
    }
}

//! Why a run could not be prepared.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
#[error(
    "the build of `{revision}` ({commit}) failed ({status}): {build}\nthe end of its output, all \
     of which is in {log}:\n{lines}",
    log = log.display()
)]
pub struct FailedBuild {
    pub revision: String,
    pub commit: String,
    pub build: String,
    pub status: String,
    pub log: PathBuf,
    /// The last lines that it printed.
    pub lines: String,
}

/// Why a run could not be prepared.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error(
        "revisions need the program git, which is not there; install it with: apt-get install git"
    )]
    NoGit,
    #[error("{folder} is not in a git repository with a working tree: {why}")]
    NoRepository { folder: String, why: String },
    #[error(
        "the repository {folder} has no revision `{revision}`; expected a branch, a tag or a commit, \
         or `.` for the working tree"
    )]
    NoRevision { folder: String, revision: String },
    #[error("`git {command}` failed: {why}")]
    Git { command: String, why: String },
    #[error(transparent)]
    Failed(Box<FailedBuild>),
    #[error(
        "server `{server}`: a revision cannot run on a host behind a pipe, since it is built on this \
         machine; build it there, and name its command"
    )]
    Remote { server: String },
    #[error(
        "no folder for the cache is known, as neither XDG_CACHE_HOME nor HOME is set; give one with --cache DIR"
    )]
    NoCache,
    #[error("the cache {path} cannot be used: {why}", path = path.display())]
    Cache { path: PathBuf, why: String },
    #[error("the image `{image}` is not on this machine and cannot be pulled: {why}")]
    NoImage { image: String, why: String },
    #[error("images need podman, which is not there; install it with: apt-get install podman")]
    NoPodman,
    #[error("stopped")]
    Stopped,
}

impl BuildError {
    /// Whether the arguments or files of the user are at fault, rather than this machine.
    pub fn is_callers(&self) -> bool {
        !matches!(
            self,
            Self::NoGit | Self::NoPodman | Self::Git { .. } | Self::Stopped
        )
    }
}

//! Why a run cannot start or continue.

use std::path::PathBuf;

use agent::AgentError;
use experiment::ExperimentError;
use experiment::recipe::RecipeError;
use hosts::TopologyError;

use crate::journal::JournalError;

/// Why a run cannot start or continue. A failed trial is a row, not an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run's folder cannot be written.
    #[error("cannot write the run's folder {}: {why}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        why: String,
    },
    /// A requirement of the experiment is missing on this machine.
    #[error("this experiment cannot run here:\n  {}", sentences.join("\n  "))]
    Missing {
        /// What is missing, and the command that installs it.
        sentences: Vec<String>,
    },
    /// A port that the experiment names is in use.
    #[error(
        "server `{server}` is to listen on port {port}, which is in use; stop what listens there, or remove `port` so that a free one is chosen"
    )]
    Port { server: String, port: u16 },
    /// A host is bound to a CPU that cannot be used.
    #[error(
        "host `{host}` is bound to CPU {cpu}, which does not exist or may not be used here (available: {have})"
    )]
    Cpu {
        host: String,
        cpu: u32,
        /// The CPUs that this process may use.
        have: String,
    },
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The experiment in the folder cannot be read.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// A recipe cannot be used.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The agent cannot be started.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// A machine cannot be used.
    #[error("host `{host}`: {why}")]
    Host { host: String, why: String },
    /// Namespaces or links cannot be created.
    #[error("cannot create the hosts of this experiment: {0}")]
    Topology(TopologyError),
}

impl RunError {
    /// Whether the caller's arguments or files are at fault, rather than the machine.
    pub fn is_callers(&self) -> bool {
        match self {
            RunError::Topology(TopologyError::Setting(_)) => true,
            RunError::Agent(_) | RunError::Topology(_) | RunError::Host { .. } => false,
            RunError::Journal(JournalError::GoingOn { .. } | JournalError::Row { .. }) => false,
            // `--resume` of a run that does not exist.
            RunError::Journal(JournalError::Io { source, .. }) => {
                source.kind() == std::io::ErrorKind::NotFound
            }
            _ => true,
        }
    }
}

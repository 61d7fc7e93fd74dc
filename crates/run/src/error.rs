//! Why a run cannot start or continue.

use std::path::PathBuf;

use agent::AgentError;
use experiment::ExperimentError;
use experiment::recipe::RecipeError;
use hosts::{HostsError, TopologyError};

use crate::journal::JournalError;
use crate::testbed::cpu_placement::PlacementError;

/// Why a run cannot start or continue. A failed trial is a row, not an error.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("cannot write the run's folder {}: {why}", path.display())]
    Folder { path: PathBuf, why: String },
    #[error("this experiment cannot run here:\n  {}", sentences.join("\n  "))]
    Missing {
        /// What is missing, and the command that installs it.
        sentences: Vec<String>,
    },
    /// CPUs or ports that the experiment names cannot be used.
    #[error(transparent)]
    Placement(#[from] PlacementError),
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

impl From<HostsError> for RunError {
    fn from(error: HostsError) -> Self {
        match error {
            HostsError::Agent(source)
            | HostsError::Topology(TopologyError::Agent { source, .. }) => RunError::Agent(source),
            HostsError::Topology(other) => RunError::Topology(other),
            HostsError::Machine { host, why } => RunError::Host { host, why },
        }
    }
}

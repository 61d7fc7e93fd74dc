//! Why a run cannot begin or go on.

use std::path::PathBuf;

use agent::AgentError;
use experiment::ExperimentError;
use experiment::recipe::RecipeError;
use hosts::TopologyError;

use crate::journal::JournalError;

/// Why a run cannot begin or go on. Trials that fail are rows, not errors.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The run's folder cannot be used.
    #[error("cannot write the run's folder {}: {why}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// Something that the experiment needs is not on this machine.
    #[error("this experiment cannot run here:\n  {}", sentences.join("\n  "))]
    Missing {
        /// What is missing, with the command that installs it.
        sentences: Vec<String>,
    },
    /// A port that the experiment names is taken.
    #[error(
        "server `{server}` shall listen on port {port}, which is in use; stop what listens there, or leave `port` out so that a free one is chosen"
    )]
    Port {
        /// The server.
        server: String,
        /// The port.
        port: u16,
    },
    /// A host without a usable CPU.
    #[error(
        "host `{host}` is bound to CPU {cpu}, which this machine does not have or may not use (it has {have})"
    )]
    Cpu {
        /// The host.
        host: String,
        /// The CPU.
        cpu: u32,
        /// The CPUs that can be used.
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
    Host {
        /// The host.
        host: String,
        /// Why.
        why: String,
    },
    /// The hosts cannot be made.
    #[error("the hosts of this experiment cannot be made here: {0}")]
    Topology(TopologyError),
}

impl RunError {
    /// Whether the caller's words or files are at fault, rather than the machine.
    pub fn is_callers(&self) -> bool {
        match self {
            RunError::Topology(TopologyError::Setting(_)) => true,
            RunError::Agent(_) | RunError::Topology(_) | RunError::Host { .. } => false,
            RunError::Journal(JournalError::GoingOn { .. }) => false,
            // A run that shall go on, but is not there.
            RunError::Journal(JournalError::Io { source, .. }) => {
                source.kind() == std::io::ErrorKind::NotFound
            }
            _ => true,
        }
    }
}
